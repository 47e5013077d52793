//! The summary of one iteration for the next.

use super::{Completion, StepResult, Workflow};
use crate::prompt::cut;

/// The longest reason; more text needs a workflow of its own.
const REASON_BYTES_MAX: usize = 8 * 1024;

/// Summarizes an iteration. `results` are in the order of the workflow's steps.
pub fn carry_summary(
    workflow: &Workflow,
    results: &[StepResult],
    completion: &Completion,
) -> String {
    let mut text = format!("Previous workflow: {}\nStep statuses:\n", workflow.id);
    for StepResult { step_id, status, session_id, .. } in results {
        text.push_str(&format!("- {step_id}: {status} (session {session_id})\n"));
    }
    let reason = completion.reason.as_deref().unwrap_or("no reason given");
    let said = match completion.done {
        true => "done".to_owned(),
        false => format!("not done ({})", cut(reason, REASON_BYTES_MAX)),
    };
    text.push_str(&format!("Reviewer: {said}"));
    text
}
