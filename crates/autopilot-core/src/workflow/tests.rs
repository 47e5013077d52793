//! Workflows, results and answers in; faults, prompts and summaries out.

mod answer;
mod result;
mod rule;
mod shown;

use serde_json::{Value, json};

use super::*;
use crate::prompt::Caps;

const CAPS: Caps = Caps { prompt_bytes_max: 64 << 10, tail_lines_max: 50 };

fn rules() -> WorkflowRules {
    WorkflowRules::new(["claude", "codex"])
}

/// `a; b after a; c after a b`
fn workflow(text: &str) -> Value {
    let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
    let step = |part: &str| {
        let (id, after) = part.split_once(" after").unwrap_or((part, ""));
        let goal = format!("use the task-executor skill. Do {}", id.trim());
        let after: Vec<&str> = after.split_whitespace().collect();
        json!({ "id": id.trim(), "goal": goal, "dependsOn": after })
    };
    json!({ "version": 1, "id": "wf", "steps": parts.map(step).collect::<Vec<_>>() })
}

/// The workflow with one more, or another, member of its first step.
fn with(text: &str, key: &str, value: Value) -> Value {
    let mut workflow = workflow(text);
    workflow["steps"][0][key] = value;
    workflow
}

fn checked(text: &str) -> CheckedWorkflow {
    check(&workflow(text), &rules()).unwrap()
}

fn lines(faults: &[PlanFault]) -> String {
    faults.iter().map(PlanFault::to_string).collect::<Vec<_>>().join("\n")
}

fn faults(json: &Value) -> String {
    lines(&check(json, &rules()).unwrap_err())
}

fn warnings(json: &Value) -> String {
    check(json, &rules()).unwrap().warnings.join("\n")
}

fn result(step: &str, status: StepStatus, output: &str) -> StepResult {
    StepResult {
        step_id: step.to_owned(),
        status,
        session_id: format!("s-{step}"),
        output_text: output.to_owned(),
        usage: None,
        error: None,
    }
}

impl StepResult {
    /// The result of a step that was not started because a dependency failed.
    fn skipped(step: &str, failed: &[&str]) -> StepResult {
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
    fn broke(step: &str, error: impl Into<String>) -> StepResult {
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
