//! The steps of workflows as a run keeps them: as tasks, each with its step in its specification.

use serde::{Deserialize, Serialize};

use super::{StepResult, StepStatus, StepUsage, WorkflowStep};
use crate::event::{Skip, TaskEnd};
use crate::id::AttemptId;
use crate::session_name::current_of;
use crate::state::{State, Status, Task};
use crate::step::Step;
use crate::task_file::TaskSpec;
use crate::wanted::Want;

/// A step's task body, as it is kept with the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StepBody {
    #[serde(flatten)]
    pub spec: TaskSpec,
    pub step: WorkflowStep,
    pub iteration: u32,
    /// The id of the step's workflow.
    pub workflow: String,
    /// The step's place in its workflow.
    pub place: usize,
}

/// The record of a step that is over.
#[derive(Clone, Debug)]
pub struct PastStep {
    /// The name of the step's task.
    pub name: String,
    /// The task's body, a [`StepBody`] in JSON.
    pub body: String,
    pub status: StepStatus,
    /// The name of the step's session; empty if there was none.
    pub session: String,
    /// The blob of the step's answer.
    pub answer: Option<String>,
    /// The reason why the step failed or was skipped.
    pub why: Option<String>,
    pub usage: StepUsage,
}

/// The steps that are over and matter to an attempt: those its task depends on, or all of them.
pub fn past_steps(state: &State, want: Want) -> Vec<PastStep> {
    let task = state.task(want.task);
    let is_step = task.pipeline.continues_at() == Some(want.step);
    let asks_of_all = task.pipeline.has_tasks_by_round() && want.step.role().is_some();
    let needs = task.spec.depends_on.iter().filter(|_| is_step);
    let children = task.children.iter().filter(|_| asks_of_all);
    let children = children.map(|child| state.task(*child));
    let tasks = needs.filter_map(|name| state.named(name)).chain(children);
    tasks.filter_map(|task| PastStep::of(state, task)).collect()
}

/// Whether a step that a task depends on has a result that is newer than `attempt`: a person continued
/// that step meanwhile.
pub fn has_newer_needs(state: &State, task: &Task, attempt: AttemptId) -> bool {
    let mut needs = task.spec.depends_on.iter().filter_map(|name| state.named(name));
    needs.any(|need| need.last(Step::WorkflowStep).is_some_and(|shown| shown.id > attempt))
}

impl PastStep {
    /// The record of a task; `None` if the task is not over or belongs to no iteration.
    pub fn of(state: &State, task: &Task) -> Option<PastStep> {
        let Status::Settled(end) = &task.status else { return None };
        if task.is_dropped() {
            return None;
        }
        let (status, why) = match end {
            TaskEnd::Closed => (StepStatus::Succeeded, None),
            TaskEnd::Failed { why } => (StepStatus::Failed, Some(why.to_string())),
            TaskEnd::Skipped { why: Skip::Asked } => {
                (StepStatus::Skipped, Some("Skipped by a person".to_owned()))
            }
            TaskEnd::Skipped { .. } => {
                let needs = task.spec.depends_on.iter().filter_map(|name| state.named(name));
                let bad = needs.filter(|need| !need.is_closed()).map(|need| step_id(need.name()));
                let bad: Vec<String> = bad.collect();
                let text = format!("Skipped: dependencies failed [{}]", bad.join(", "));
                (StepStatus::Skipped, Some(text))
            }
        };
        Some(PastStep {
            name: task.name().to_owned(),
            body: task.spec.body.clone(),
            status,
            session: current_of(state, task).unwrap_or_default(),
            answer: task.last(Step::WorkflowStep).and_then(|shown| shown.facts.answer.clone()),
            why,
            usage: StepUsage {
                input_tokens: task.spent.bill.tokens_in,
                output_tokens: task.spent.bill.tokens_out,
            },
        })
    }

    /// The step's result, with the text of its answer.
    pub fn result(&self, step_id: &str, said: Option<String>) -> StepResult {
        StepResult {
            step_id: step_id.to_owned(),
            status: self.status,
            session_id: self.session.clone(),
            output_text: match self.status {
                StepStatus::Skipped => self.why.clone().unwrap_or_default(),
                StepStatus::Succeeded | StepStatus::Failed => said.unwrap_or_default(),
            },
            usage: Some(self.usage),
            error: self.why.clone().filter(|_| self.status == StepStatus::Failed),
        }
    }
}

/// The id that a step has in its workflow.
fn step_id(name: &str) -> String {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match name.rsplit_once("-i") {
        Some((id, number)) if is_number(number) => id.to_owned(),
        Some(_) | None => name.to_owned(),
    }
}
