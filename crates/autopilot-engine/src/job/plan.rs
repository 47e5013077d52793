//! PLAN and SCHEDULE: a planner divides the work, and the controller checks the plan and turns it
//! into tasks. A plan takes effect only when it keeps every rule.

use super::asking::{AskedQuestion, Question, refused};
use super::opening::{based_on, plan_prompt};
use super::own_work::blocking;
use super::workshop::{Workshop, seconds_now};
use super::{Done, Job, JobError};
use crate::begin::known_plan::{self, SoundPlan};
use crate::begin::{PlanBody, parse_plan};
use autopilot_agents::answer::read_plan;
use autopilot_core::config::{Mode, Role, WorkBy};
use autopilot_core::event::{Facts, Outcome, TaskEntry};
use autopilot_core::guard::is_denied;
use autopilot_core::pipeline::Switch;
use autopilot_core::plan::{self, CheckedPlan, Plan, PlanRules, PlanTask, PlannedTask, TaskBody};
use autopilot_core::prompt;
use autopilot_core::step::Step;
use autopilot_core::task_file::TaskSpec;
use autopilot_host::git::{
    AttemptName, DocumentRequest, GitError, Oid, commit_document, list_paths,
};
use std::sync::Arc;

/// Maximum number of paths in the summary of the repository.
const PATHS_MAX: usize = 200_000;
/// Lines of that summary in the prompt.
const TREE_LINES_MAX: usize = 120;
/// The path of the planner's test plan on the run's branch.
const TEST_PLAN: &str = "tests/TEST_PLAN.md";
const REFUSED: &str = "the plan is not valid";

impl Job {
    pub(super) async fn plan(&self) -> Result<Done, JobError> {
        let whole = self.plan_body()?;
        let rules = self.rules(&whole.spec)?;
        if let Some(given) = self.given_plan()? {
            return match parse_plan(&given, &rules) {
                Ok(plan) => self.planned(&plan, &rules, Facts::default()),
                Err(faults) => Ok((refused(REFUSED, &faults), Facts::default())),
            };
        }
        let AskedQuestion { mut facts, answer, repaired } =
            self.ask_planner(&whole, &rules).await?;
        facts.notes.extend(repaired.map(|count| {
            format!("the planner's first answer had problems ({count}); asked again")
        }));
        match answer {
            Ok(plan) => self.planned(&Arc::new(plan), &rules, facts),
            Err(unanswered) => Ok((unanswered.refused(REFUSED), facts)),
        }
    }

    async fn ask_planner(
        &self,
        whole: &PlanBody,
        rules: &PlanRules,
    ) -> Result<AskedQuestion<(Plan, CheckedPlan)>, JobError> {
        let tip = self.tip()?;
        let bench = self.judge_bench(&tip, &tip).await?.bench;
        let listing = blocking(|| list_paths(&self.context.workshop.hub, &tip, PATHS_MAX))?;
        let tree = prompt::tree_summary(listing.paths.iter().map(String::as_str), TREE_LINES_MAX);
        let kit = self.kit(&whole.spec, &self.run_base()?)?;
        let expands = self.task.parent.map(|_| prompt::Expand {
            title: &whole.spec.title,
            goal: &whole.spec.goal,
            acceptance: &whole.spec.acceptance,
        });
        let rest = prompt::PlanPrompt {
            repo_status: &based_on(&tip, &self.run.base_branch),
            tree: &tree,
            rejected: self.rejection(),
            expands,
            ..Default::default()
        };
        let prompt = plan_prompt(&self.context.config, whole, rules, &kit, rest);
        let question = Question::reading(prompt, &bench.dir);
        self.ask_by::<Plan, _>(question, |ending, own| read_plan(ending, own, rules)).await
    }

    fn planned(
        &self,
        sound: &SoundPlan,
        rules: &PlanRules,
        mut facts: Facts,
    ) -> Result<Done, JobError> {
        let (plan, checked) = &**sound;
        let kit = self.kit(&self.plan_body()?.spec, &self.tip()?)?;
        facts.notes.extend(kit.left_out(plan, self.builder_mode()));
        let text = self.keep_answer(&mut facts, plan, Some(&self.plan_name()))?;
        known_plan::written(&text, rules, sound);
        facts.notes.extend(checked.notes.iter().cloned());
        Ok((Outcome::Passed, facts))
    }

    fn plan_name(&self) -> String {
        match self.task.parent {
            None => "plan/plan.json".to_owned(),
            Some(_) => format!("plan/{}.plan.json", self.task.name()),
        }
    }

    /// Turns the plan, or a person's edited version of it, into tasks.
    pub(super) fn schedule(&self) -> Result<Done, JobError> {
        let whole = self.plan_body()?;
        let edited = self.task.shown(Step::ApprovePlan).and_then(|s| s.facts.answer.clone());
        let made = self.task.last(Step::Plan).and_then(|shown| shown.facts.answer.clone());
        let is_edited = edited.is_some();
        let missing = JobError::Internal("there is no plan");
        let text = self.context.text(&edited.or(made).ok_or(missing)?)?;
        let rules = self.rules(&whole.spec)?;
        let sound = match parse_plan(&text, &rules) {
            Ok(sound) => sound,
            Err(faults) => return Ok((refused(REFUSED, &faults), Facts::default())),
        };
        let (plan, checked) = &*sound;
        let artifact = Some(self.write_clean(&self.plan_name(), &text)?);
        let mut facts = Facts { artifact, ..Facts::default() };
        facts.notes.extend(self.keep_test_plan(plan, &rules)?);
        let kit = self.kit(&whole.spec, &self.tip()?)?;
        let mode = self.builder_mode();
        // The planner's own plan was noted when it arrived.
        facts.notes.extend(kit.left_out(plan, mode).filter(|_| is_edited));
        let tasks: Vec<&PlanTask> = checked.tasks.iter().map(|planned| &planned.task).collect();
        let skills = kit.shared_out(&tasks, mode);
        for (planned, skills) in checked.tasks.iter().zip(skills) {
            let mut body = plan::body(&planned.task, &whole.spec);
            body.spec.skills = skills;
            kit.keep_known(&mut body.guidance.skills, mode);
            facts.tasks.push(self.entry(planned, &body)?);
        }
        Ok((Outcome::Passed, facts))
    }

    /// The mode of the builder, who uses the skills.
    fn builder_mode(&self) -> Mode {
        self.context.config.agent(Role::Builder).mode
    }

    fn entry(&self, planned: &PlannedTask, body: &TaskBody) -> Result<TaskEntry, JobError> {
        let task = &planned.task;
        let config = &self.context.config;
        let of_each = config.plan.task_uat && config.commands.uat.is_some();
        let has_uat = body.spec.commands.uat.is_some() || of_each;
        let text = self.clean_json(body)?;
        Ok(TaskEntry {
            by: WorkBy::default(),
            name: task.id.clone(),
            title: self.clean(&task.title),
            source: self.task.spec.source.clone(),
            body: self.context.texts.put(&text)?,
            depends_on: task.depends_on.clone(),
            switches: has_uat.then_some(Switch::Uat).into_iter().collect(),
            expand: task.expand,
            mends: false,
            priority: task.priority,
            urgency: planned.urgency,
            paths: task.allowed_paths.clone(),
        })
    }

    /// Commits the planner's test plan to the run's branch; the checkout is not touched.
    fn keep_test_plan(&self, plan: &Plan, rules: &PlanRules) -> Result<Option<String>, JobError> {
        let whole = plan.test_plan.as_deref().filter(|_| self.task.parent.is_none());
        let Some(text) = whole.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
        if is_denied(TEST_PLAN, &rules.deny_paths) {
            let note = format!("the test plan was not committed: {TEST_PLAN} is a denied path");
            return Ok(Some(note));
        }
        let text = format!("{}\n", self.clean(text).trim_end());
        let Workshop { hub, repo, .. } = &self.context.workshop;
        let document = DocumentRequest {
            run: &self.run.id,
            attempt: AttemptName { task: "plan", id: &self.want.id.to_string() },
            onto: &self.run.branch,
            start: &Oid::parse(&self.run.base)?,
            path: TEST_PLAN,
            text: &text,
            message: "Test plan",
            identity: &repo.identity,
            now: seconds_now(),
        };
        let kept = blocking(|| commit_document(hub, &document))?;
        let taken = || format!("the test plan was not committed: the path {TEST_PLAN} is taken");
        Ok(kept.is_none().then(taken))
    }

    /// The text to plan: the plan file of the run, or a task that is planned later.
    fn plan_body(&self) -> Result<PlanBody, JobError> {
        let own = &self.task.spec.body;
        match self.task.parent {
            None => self.body(own),
            Some(_) => {
                let spec = self.body::<TaskBody>(own)?.spec;
                Ok(PlanBody { text: self.whole()?.text, spec })
            }
        }
    }

    /// A plan supplied with the run, used as it is. After a rejection, a new plan is made.
    fn given_plan(&self) -> Result<Option<String>, JobError> {
        match &self.run.plan {
            Some(hash) if self.task.parent.is_none() && self.task.round == 1 => {
                Ok(Some(self.context.text(hash)?))
            }
            Some(_) | None => Ok(None),
        }
    }

    /// Why a person rejected the last plan.
    fn rejection(&self) -> Option<&str> {
        let reason = self.task.reasons.iter().find(|reason| reason.step == Step::ApprovePlan)?;
        Some(&reason.text)
    }

    fn rules(&self, whole: &TaskSpec) -> Result<PlanRules, JobError> {
        Ok(PlanRules::of(&self.context.config, whole, self.taken_names()?))
    }

    /// The tip of the run's branch.
    pub(super) fn tip(&self) -> Result<Oid, JobError> {
        let name = format!("refs/heads/{}", self.run.branch);
        match blocking(|| self.context.workshop.hub.resolve(&name))? {
            Some(tip) => Ok(tip),
            None if self.run.tip.is_none() => Ok(Oid::parse(&self.run.base)?),
            None => {
                let name = self.run.branch.clone();
                Err(GitError::NotFound { what: "branch", name }.into())
            }
        }
    }
}
