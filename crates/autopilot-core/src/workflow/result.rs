//! The results of the steps of a workflow, as later steps and the files of a run see them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Workflow, WorkflowStep};

/// The result of one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepResult {
    pub step_id: String,
    pub status: StepStatus,
    /// The name of the step's session; empty if there was none.
    pub session_id: String,
    /// The step's answer, or the reason why it was skipped.
    pub output_text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<StepUsage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    Succeeded,
    Failed,
    Skipped,
}

/// The tokens that a step used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
}

impl StepStatus {
    /// The word for the status in files and prompts.
    pub fn word(self) -> &'static str {
        match self {
            StepStatus::Succeeded => "succeeded",
            StepStatus::Failed => "failed",
            StepStatus::Skipped => "skipped",
        }
    }
}

impl fmt::Display for StepStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl StepResult {
    /// The result of a step that was not started because a dependency failed.
    pub fn skipped(step: &str, failed: &[&str]) -> StepResult {
        StepResult {
            step_id: step.to_owned(),
            status: StepStatus::Skipped,
            session_id: String::new(),
            output_text: format!("Skipped: dependencies failed [{}]", failed.join(", ")),
            usage: None,
            error: None,
        }
    }

    /// The result of a step whose agent gave no answer.
    pub fn broke(step: &str, error: impl Into<String>) -> StepResult {
        StepResult {
            step_id: step.to_owned(),
            status: StepStatus::Failed,
            session_id: String::new(),
            output_text: String::new(),
            usage: None,
            error: Some(error.into()),
        }
    }
}

/// The results of a step's dependencies that have ended, in the order in which the step names them.
pub fn dependencies<'a>(step: &WorkflowStep, results: &'a [StepResult]) -> Vec<&'a StepResult> {
    let by_id: BTreeMap<&str, &StepResult> =
        results.iter().map(|result| (result.step_id.as_str(), result)).collect();
    step.depends_on.iter().filter_map(|on| by_id.get(on.as_str()).copied()).collect()
}

/// Sorts results into the order of the workflow, since steps end in any order.
pub fn in_step_order(workflow: &Workflow, mut results: Vec<StepResult>) -> Vec<StepResult> {
    let places: BTreeMap<&str, usize> =
        workflow.steps.iter().enumerate().map(|(at, step)| (step.id.as_str(), at)).collect();
    results
        .sort_by_key(|result| places.get(result.step_id.as_str()).copied().unwrap_or(places.len()));
    results
}
