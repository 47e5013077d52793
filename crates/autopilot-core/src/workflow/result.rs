//! What became of the steps of a workflow, as those after them and the files of a run see it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Workflow, WorkflowStep};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepResult {
    pub step_id: String,
    pub status: StepStatus,
    /// Empty when there was none.
    pub session_id: String,
    pub output_text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    Succeeded,
    Failed,
    Skipped,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
}

impl StepStatus {
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
    /// Of a step that was not begun because of what it depends on.
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

    /// Of a step whose agent came to nothing.
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

/// What a step depends on, as far as it has ended, in the order the step names it.
pub fn dependencies<'a>(step: &WorkflowStep, results: &'a [StepResult]) -> Vec<&'a StepResult> {
    let by_id: BTreeMap<&str, &StepResult> =
        results.iter().map(|result| (result.step_id.as_str(), result)).collect();
    step.depends_on.iter().filter_map(|on| by_id.get(on.as_str()).copied()).collect()
}

/// Steps end in any order and are told in that of the workflow.
pub fn in_step_order(workflow: &Workflow, mut results: Vec<StepResult>) -> Vec<StepResult> {
    let places: BTreeMap<&str, usize> =
        workflow.steps.iter().enumerate().map(|(at, step)| (step.id.as_str(), at)).collect();
    results
        .sort_by_key(|result| places.get(result.step_id.as_str()).copied().unwrap_or(places.len()));
    results
}
