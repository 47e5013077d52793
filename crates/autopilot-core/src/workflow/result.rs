//! The results of the steps of a workflow, as later steps and the files of a run see them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::WorkflowStep;
use crate::rows::rows;

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

rows! {
/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
StepStatus -> &'static str {
    Succeeded: "succeeded",
    Failed: "failed",
    Skipped: "skipped",
}}

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
        self.row()
    }
}

impl fmt::Display for StepStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The results of a step's dependencies that have ended, in the order in which the step names them.
pub fn dependencies<'a>(step: &WorkflowStep, results: &'a [StepResult]) -> Vec<&'a StepResult> {
    let by_id: BTreeMap<&str, &StepResult> =
        results.iter().map(|result| (result.step_id.as_str(), result)).collect();
    step.depends_on.iter().filter_map(|on| by_id.get(on.as_str()).copied()).collect()
}
