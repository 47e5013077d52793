//! Creates a task that repairs what all merged tasks together have broken.

use super::user_command::CommandCheck;
use super::{Job, JobError};
use autopilot_core::event::TaskEntry;
use autopilot_core::flow::whole_review::WantedRepair;
use autopilot_core::pipeline::Switch;
use autopilot_core::plan::TaskBody;
use autopilot_core::prompt::tail;
use autopilot_core::task_file::{CommandOverrides, TaskSpec};
use autopilot_core::three_runs::OpenTest;

/// Lines of a failing command's output in the goal of the repair task.
const TAIL_LINES_MAX: usize = 60;

/// What a repair is for.
#[derive(Clone, Copy)]
pub(super) enum Mending<'a> {
    /// The merged tasks fail together.
    Together,
    /// They break tests of the base for which nothing accounts.
    Regression(&'a [OpenTest]),
    /// The reviewer of the whole result asks for changes.
    Review {
        wanted: &'a WantedRepair<'a>,
        /// The tests of the base for which nothing accounts either.
        open: &'a [OpenTest],
    },
    /// They do not do what these acceptance cases say.
    Cases(Option<&'a str>),
    /// They fail from nothing, and passed over what the base had built.
    FromNothing {
        /// The task with whose merge it began.
        culprit: Option<&'a str>,
    },
}

const TOGETHER: &str = "All tasks of the plan are merged, but together they fail. Find out why and fix \
                        it with as small a change as possible; keep what the tasks were asked to do.";
const REGRESSION: &str = "All tasks of the plan are merged, but tests that the repository had before do not pass over the result \
     as they did, and no task accounts for that. Make them pass again, or restore them, with as small a \
     change as possible; keep what the tasks were asked to do.";
const OPEN: &str = "Tests that the repository had before do not pass over the result as they did, and nobody accounts \
     for that. Make them pass again, or restore them:";
const REVIEW: &str = "All tasks of the plan are merged, and a reviewer of what they make together asks for changes. Resolve \
     what the review names with as small a change as possible; keep what the tasks were asked to do. The \
     review is about the whole plan:";
const FROM_NOTHING: &str = "Everything is merged and passed its checks over what an earlier build had left. From nothing, in \
     a fresh checkout without any build output, the result fails. Something depends on a file that is \
     not in the repository or not built from it. Find out what and fix it with as small a change as \
     possible; keep what the tasks were asked to do.";

impl<'a> Mending<'a> {
    /// The tests of the base that the repair restores.
    fn open(self) -> &'a [OpenTest] {
        match self {
            Mending::Regression(open) | Mending::Review { open, .. } => open,
            Mending::Together | Mending::Cases(_) | Mending::FromNothing { .. } => &[],
        }
    }

    /// The beginning of the task's name, and its title.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Mending::Together | Mending::Regression(_) => ("integration-fix", "Integration fix"),
            Mending::Review { .. } => ("review-fix", "Review fix"),
            Mending::Cases(_) => ("uat-fix", "UAT fix"),
            Mending::FromNothing { .. } => ("proof-fix", "Proof fix"),
        }
    }

    fn goal(self) -> String {
        match self {
            Mending::Together | Mending::Cases(_) => TOGETHER.to_owned(),
            Mending::Regression(open) => format!("{REGRESSION}\n{}", listed(open)),
            Mending::Review { wanted, open: [] } => format!("{REVIEW}\n{}", wanted.told()),
            Mending::Review { wanted, open } => {
                format!("{REVIEW}\n{}\n\n{OPEN}\n{}", wanted.told(), listed(open))
            }
            Mending::FromNothing { culprit: None } => FROM_NOTHING.to_owned(),
            Mending::FromNothing { culprit: Some(task) } => {
                format!("{FROM_NOTHING}\nIt fails since task `{task}` was merged.")
            }
        }
    }
}

fn listed(open: &[OpenTest]) -> String {
    open.iter().map(OpenTest::words).collect::<Vec<_>>().join("\n")
}

impl Job {
    /// The repair task. `failed` are the commands that failed on the run's branch.
    pub(super) fn mending_task(
        &self,
        whole: &TaskSpec,
        failed: &[&CommandCheck],
        mending: Mending<'_>,
    ) -> Result<TaskEntry, JobError> {
        let (kind, words) = mending.names();
        let (name, number) = self.free_name(kind)?;
        let mut goal = mending.goal();
        for check in failed {
            if let Some(run) = &check.holdout {
                goal.push_str(&format!("\n{}", run.lines().join("\n")));
                continue;
            }
            let output = tail(&check.ran.tail, TAIL_LINES_MAX);
            goal.push_str(&format!("\n`{}`: {}\n{output}", check.line, check.failure()));
        }
        let accepted = |check: &&CommandCheck| match check.holdout {
            Some(_) => "the held-out tests, which nobody shows you, pass".to_owned(),
            None => format!("`{}` exits with 0", check.line),
        };
        let mut acceptance: Vec<String> = failed.iter().map(accepted).collect();
        if let Mending::Review { wanted, .. } = mending {
            acceptance.extend(wanted.acceptance(&whole.acceptance));
        }
        let open = mending.open().iter();
        acceptance.extend(open.map(|test| format!("`{}` passes as it was", test.id)));
        let uat = failed.iter().find(|check| check.name == "uat").map(|check| check.line.clone());
        let mut commands = whole.commands.clone();
        commands.uat = uat.or(commands.uat);
        let cases = match mending {
            Mending::Together | Mending::Regression(_) | Mending::Review { .. } => None,
            Mending::Cases(cases) => cases,
            Mending::FromNothing { .. } => {
                own_commands(&mut commands, failed);
                None
            }
        };
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
            mends: true,
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

/// Makes the commands that failed those of the repair. Two tasks may have had different ones.
fn own_commands(commands: &mut CommandOverrides, failed: &[&CommandCheck]) {
    let line = |name: &str| {
        let lines: Vec<&str> = failed
            .iter()
            .filter(|check| check.name == name)
            .map(|check| check.line.as_str())
            .collect();
        match lines.as_slice() {
            [] => None,
            [line] => Some((*line).to_owned()),
            lines => {
                Some(lines.iter().map(|line| format!("({line})")).collect::<Vec<_>>().join(" && "))
            }
        }
    };
    commands.tests = line("tests").or(commands.tests.take());
    commands.lint = line("lint").or(commands.lint.take());
    commands.format = line("format").or(commands.format.take());
}
