//! The judgement on whether the goal is met: done, or not done and why.
//!
//! An answer that can't be read means not done; nothing but a plain `"done": true` is a yes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::check::check;
use super::member::{Members, kind};
use super::{CheckedWorkflow, PlanFault, Workflow, WorkflowRules};
use crate::event::{Outcome, StepAnswer};
use crate::plan::{Notes, PlanFaults};
use crate::prompt::cut;
use crate::three_runs::AcceptedTest;

const KEYS: &[&str] = &["done", "summary", "reason", "nextWorkflow", "accepted_tests"];
/// The longest summary or reason.
const TEXT_BYTES_MAX: usize = 16 * 1024;
/// The number of faults of an answer that its reason names.
const FAULTS_NAMED_MAX: usize = 5;

/// The reviewer's judgement on a goal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    pub done: bool,
    /// A summary of the work, for a yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The reason for a no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The workflow to run next, which saves generating one.
    #[serde(rename = "nextWorkflow", default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Workflow>,
    /// The tests of which the judge accepts that they fail, are skipped or are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted_tests: Vec<AcceptedTest>,
}

impl Completion {
    /// A no with its reason.
    pub fn not_done(reason: impl Into<String>) -> Completion {
        Completion { reason: Some(reason.into()), ..Completion::default() }
    }

    /// What the answer means for its step.
    pub fn outcome(&self) -> Outcome {
        match (self.done, self.reason.as_deref()) {
            (true, _) => Outcome::Passed,
            (false, reason) => Outcome::Failed {
                why: format!("not done: {}", reason.unwrap_or("no reason was given")),
            },
        }
    }

    /// The part of the answer that the gate reads.
    pub fn said(&self) -> StepAnswer {
        StepAnswer::Completion { done: self.done }
    }

    /// Turns a yes into a no.
    #[must_use]
    pub fn overruled(self, why: impl Into<String>) -> Completion {
        Completion { done: false, reason: Some(why.into()), ..self }
    }
}

/// A judgement without faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessed {
    pub completion: Completion,
    /// The next workflow, checked.
    pub next: Option<CheckedWorkflow>,
    /// Remarks on members that were not used or not understood.
    pub warnings: Vec<String>,
}

impl Assessed {
    /// The workflow it asks for next; what is done needs none.
    pub fn next_if_not_done(&self) -> Option<&CheckedWorkflow> {
        self.next.as_ref().filter(|_| !self.completion.done)
    }
}

/// Checks an answer, and the workflow in it.
pub fn assess(json: &Value, rules: &WorkflowRules) -> Result<Assessed, Vec<PlanFault>> {
    let mut faults = PlanFaults::default();
    let mut warnings = Notes::default();
    let Some(given) = json.as_object() else {
        faults.add("", format!("the answer is {}, not an object", kind(json)));
        return Err(faults.all());
    };
    let members = Members::new("", given, KEYS);
    let done = given.get("done").and_then(Value::as_bool);
    if done.is_none() {
        faults.add("/done", "`done` is missing or not true or false");
    }
    let text = |key: &str, faults: &mut PlanFaults| {
        let text = members.text(key, faults).map(str::trim).filter(|text| !text.is_empty());
        text.map(|text| cut(text, TEXT_BYTES_MAX))
    };
    let (summary, reason) = (text("summary", &mut faults), text("reason", &mut faults));
    let accepted_tests = match members.get("accepted_tests").map(Vec::deserialize) {
        Some(Ok(accepted)) => accepted,
        Some(Err(why)) => {
            faults.add("/accepted_tests", format!("it is not a list of tests with reasons: {why}"));
            Vec::new()
        }
        None => Vec::new(),
    };
    members.warn_of_unknown("the answer", &mut warnings);
    let next = match (done, members.get("nextWorkflow")) {
        (Some(true), Some(_)) => {
            warnings.add("`done` is true, so `nextWorkflow` is ignored");
            None
        }
        (_, Some(next)) => next_workflow(next, rules, &mut faults),
        (_, None) => None,
    };
    match (done, &summary, &reason) {
        (Some(true), None, _) => warnings.add("`done` is true, but there is no summary"),
        (Some(false), _, None) => faults.add("/reason", "say in `reason` why the task is not done"),
        _ => {}
    }
    if !faults.is_empty() {
        return Err(faults.all());
    }
    let done = done.unwrap_or(false);
    let mut warnings = warnings.all();
    if let Some(next) = &next {
        warnings.extend(next.warnings.iter().cloned());
    }
    let reason = reason.filter(|_| !done);
    let workflow = next.as_ref().map(|next| next.workflow.clone());
    Ok(Assessed {
        completion: Completion { done, summary, reason, next: workflow, accepted_tests },
        next,
        warnings,
    })
}

fn next_workflow(
    json: &Value,
    rules: &WorkflowRules,
    faults: &mut PlanFaults,
) -> Option<CheckedWorkflow> {
    match check(json, &rules.of_next()) {
        Ok(checked) => Some(checked),
        Err(found) => {
            for fault in found {
                faults.add(format!("/nextWorkflow{}", fault.pointer), fault.what);
            }
            None
        }
    }
}

/// The best reading of an answer with faults, or of none at all: never done. A reason holds
/// although the next workflow that came with it does not.
pub fn salvage(json: Option<&Value>, faults: &[PlanFault]) -> Assessed {
    let named: Vec<String> =
        faults.iter().take(FAULTS_NAMED_MAX).map(PlanFault::to_string).collect();
    let says_no = json.filter(|json| json.get("done") == Some(&Value::Bool(false)));
    let reason = says_no.and_then(|json| json.get("reason")?.as_str()).map(str::trim);
    let (reason, warnings) = match reason.filter(|reason| !reason.is_empty()) {
        Some(reason) => {
            let warnings =
                named.iter().map(|fault| format!("part of the answer is not used: {fault}"));
            (cut(reason, TEXT_BYTES_MAX), warnings.collect())
        }
        None if named.is_empty() => ("the answer could not be read".to_owned(), Vec::new()),
        None => (format!("the answer could not be read: {}", named.join("; ")), Vec::new()),
    };
    Assessed { completion: Completion::not_done(reason), next: None, warnings }
}
