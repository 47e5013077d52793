//! The steps of workflows as a run keeps them: tasks, each with its step in its specification.

use serde::{Deserialize, Serialize};

use super::{StepResult, StepStatus, Usage, WorkflowStep};
use crate::event::{End, Skip};
use crate::session_name::current_of;
use crate::state::{State, Status, Task};
use crate::step::Step;
use crate::task_file::TaskSpec;

/// A step as it is kept with the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StepBody {
    #[serde(flatten)]
    pub spec: TaskSpec,
    pub step: WorkflowStep,
    pub iteration: u32,
    /// The id of its workflow, and its place there.
    pub workflow: String,
    pub place: usize,
}

/// What is known of a step that is over.
#[derive(Clone, Debug)]
pub struct Past {
    pub name: String,
    pub body: String,
    pub status: StepStatus,
    pub session: String,
    /// Blob: what it said.
    pub answer: Option<String>,
    pub why: Option<String>,
    pub usage: Usage,
}

impl Past {
    /// Nothing while it is not over, and of what is part of no iteration.
    pub fn of(state: &State, task: &Task) -> Option<Past> {
        let Status::Settled(end) = &task.status else { return None };
        if task.is_dropped() {
            return None;
        }
        let (status, why) = match end {
            End::Closed => (StepStatus::Succeeded, None),
            End::Failed { why } => (StepStatus::Failed, Some(why.to_string())),
            End::Skipped { why: Skip::Asked } => {
                (StepStatus::Skipped, Some("Skipped by a person".to_owned()))
            }
            End::Skipped { .. } => {
                let needs = task.spec.depends_on.iter().filter_map(|name| state.named(name));
                let bad = needs.filter(|need| !need.is_closed()).map(|need| step_id(need.name()));
                let bad: Vec<String> = bad.collect();
                let text = format!("Skipped: dependencies failed [{}]", bad.join(", "));
                (StepStatus::Skipped, Some(text))
            }
        };
        Some(Past {
            name: task.name().to_owned(),
            body: task.spec.body.clone(),
            status,
            session: current_of(state, task).unwrap_or_default(),
            answer: task.last(Step::WorkflowStep).and_then(|shown| shown.facts.answer.clone()),
            why,
            usage: Usage {
                input_tokens: task.spent.bill.tokens_in,
                output_tokens: task.spent.bill.tokens_out,
            },
        })
    }

    /// With the text of its answer.
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

/// The id a step has in its workflow.
fn step_id(name: &str) -> String {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match name.rsplit_once("-i") {
        Some((id, number)) if is_number(number) => id.to_owned(),
        Some(_) | None => name.to_owned(),
    }
}
