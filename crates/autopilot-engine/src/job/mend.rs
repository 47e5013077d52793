//! Creates a task that repairs what all merged tasks together have broken.

use super::user_command::CommandCheck;
use super::{Job, JobError};
use autopilot_core::event::TaskEntry;
use autopilot_core::pipeline::Switch;
use autopilot_core::plan::TaskBody;
use autopilot_core::prompt::tail;
use autopilot_core::step::Step;
use autopilot_core::task_file::TaskSpec;

/// Lines of a failing command's output in the goal of the repair task.
const TAIL_LINES_MAX: usize = 60;

impl Job {
    /// The repair task. `failed` are the commands that failed on the run's branch, `cases` the
    /// acceptance cases.
    pub(super) fn mending_task(
        &self,
        whole: &TaskSpec,
        failed: &[&CommandCheck],
        cases: Option<&str>,
    ) -> Result<TaskEntry, JobError> {
        let (kind, words) = if self.want.step == Step::Uat {
            ("uat-fix", "UAT fix")
        } else {
            ("integration-fix", "Integration fix")
        };
        let (name, number) = self.free_name(kind)?;
        let mut goal = String::from(
            "All tasks of the plan are merged, but together they fail. Find out why and fix \
             it with as small a change as possible; keep what the tasks were asked to do.",
        );
        for check in failed {
            let output = tail(&check.ran.tail, TAIL_LINES_MAX);
            goal.push_str(&format!("\n`{}`: {}\n{output}", check.line, check.failure()));
        }
        let acceptance =
            failed.iter().map(|check| format!("`{}` exits with 0", check.line)).collect();
        let uat = failed.iter().find(|check| check.name == "uat").map(|check| check.line.clone());
        let mut commands = whole.commands.clone();
        commands.uat = uat.or(commands.uat);
        let has_uat = commands.uat.is_some();
        let spec = TaskSpec {
            id: name.clone(),
            title: format!("{words} {number}"),
            goal: self.clean(&goal),
            acceptance,
            commands,
            uat: cases.map(|cases| self.clean(cases)).into_iter().collect(),
            // The goal is the output of programs, so skill names in it are not requests.
            skills: Some(self.asked_names(whole)),
            ..whole.clone()
        };
        let body = TaskBody { spec, ..TaskBody::default() };
        Ok(TaskEntry {
            title: body.spec.title.clone(),
            source: self.task.spec.source.clone(),
            body: self.context.texts.put(&self.clean_json(&body)?)?,
            switches: has_uat.then_some(Switch::Uat).into_iter().collect(),
            name,
            ..TaskEntry::default()
        })
    }

    fn free_name(&self, kind: &str) -> Result<(String, u32), JobError> {
        let taken = self.taken_names()?;
        let named = |number: u32| (format!("{kind}-{number}"), number);
        let free = (1..).map(named).find(|(name, _)| !taken.contains_key(name));
        Ok(free.unwrap_or_else(|| named(self.task.round)))
    }
}
