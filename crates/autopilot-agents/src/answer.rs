//! Answers by schema: found in what an agent said, validated, and typed.
//!
//! An answer is the last object that satisfies every schema asked of it. If none does, every fault
//! is reported at once, so that one repair prompt can name them all.

mod dig;
mod kind;
mod markdown;
mod plan;
mod schema;
mod strict;
mod workflow;

pub use autopilot_core::flow::review::{ReviewAnswer, ReviewIssue};
pub use autopilot_core::plan::{Edge, Plan, PlanTask, ValidationCommands};
pub use autopilot_core::workflow::{Completion, Workflow};
pub use dig::{ANSWER_BYTES_MAX, DEPTH_MAX, Dug, Found, OBJECTS_MAX, dig};
pub use kind::{Answer, CommandRan, SubagentUsed, Summary};
pub use markdown::markdown;
pub use plan::read_plan;
pub use schema::{Schema, SchemaError};
pub use strict::strict_form;
pub use workflow::{completion_after_all, read_completion, read_workflow};

use serde_json::Value;

use crate::ending::Ending;
use crate::event::clip;

/// Faults named in one repair prompt.
pub const FAULTS_MAX: usize = 40;
const FAULT_BYTES_MAX: usize = 400;

/// One thing that is wrong with an answer, and where (a JSON pointer; empty for the whole).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub pointer: String,
    pub what: String,
}

impl Fault {
    pub fn new(pointer: impl Into<String>, what: impl AsRef<str>) -> Self {
        Fault { pointer: pointer.into(), what: clip(what.as_ref(), FAULT_BYTES_MAX) }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.pointer.is_empty() {
            return f.write_str(&self.what);
        }
        write!(f, "{}: {}", self.pointer, self.what)
    }
}

/// What an agent gave as its answer.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    pub text: &'a str,
    pub structured: Option<&'a Value>,
}

impl<'a> From<&'a str> for Given<'a> {
    fn from(text: &'a str) -> Self {
        Given { text, structured: None }
    }
}

impl<'a> From<&'a Ending> for Given<'a> {
    fn from(ending: &'a Ending) -> Self {
        Given { text: &ending.answer, structured: ending.structured.as_ref() }
    }
}

/// The answer of a known kind. `also` is a schema the user edited, valid in addition to ours.
pub fn read<'a, T: Answer>(
    given: impl Into<Given<'a>>,
    also: Option<&Schema>,
) -> Result<T, Vec<Fault>> {
    let ours = T::schema().map_err(|error| vec![Fault::new("", error.to_string())])?;
    let schemas: Vec<&Schema> = std::iter::once(ours).chain(also).collect();
    let value = read_value(given, &schemas)?;
    serde_json::from_value(value).map_err(|error| vec![Fault::new("", error.to_string())])
}

/// The answer as JSON, by any schemas.
pub fn read_value<'a>(
    given: impl Into<Given<'a>>,
    schemas: &[&Schema],
) -> Result<Value, Vec<Fault>> {
    let given = given.into();
    let structured = given.structured.map(|value| {
        let value = without_nulls(value.clone());
        let faults = faults(&value, schemas);
        (value, faults)
    });
    let structured_faults = match structured {
        Some((value, faults)) if faults.is_empty() => return Ok(value),
        Some((_, faults)) => Some(faults),
        None => None,
    };
    let from_text = read_text(given.text, schemas);
    match (from_text, structured_faults) {
        (Err(_), Some(faults)) => Err(faults),
        (from_text, _) => from_text,
    }
}

fn read_text(text: &str, schemas: &[&Schema]) -> Result<Value, Vec<Fault>> {
    let dug = dig(text)?;
    let mut last_faults = None;
    for found in dug.objects.into_iter().rev() {
        let value = without_nulls(found.value);
        let mut all = found.faults;
        all.extend(faults(&value, schemas));
        if all.is_empty() {
            return Ok(value);
        }
        // Parts of a broken object say nothing about what the agent meant.
        if !found.in_broken && last_faults.is_none() {
            last_faults = Some(all);
        }
    }
    let broken = dug.broken.map(|fault| vec![fault]);
    let none = || vec![Fault::new("", "there is no JSON object in the answer")];
    Err(last_faults.or(broken).unwrap_or_else(none))
}

fn faults(value: &Value, schemas: &[&Schema]) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    for fault in schemas.iter().flat_map(|schema| schema.faults(value)) {
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    faults
}

/// A member that is null is a member that is not there: strict schemas make models write them all.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(_, member)| !member.is_null());
            Value::Object(kept.map(|(key, member)| (key, without_nulls(member))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// Asks once more for the same answer, with all that was wrong.
pub fn repair_prompt(faults: &[Fault], schema_json: &str) -> String {
    let mut lines: Vec<String> =
        faults.iter().take(FAULTS_MAX).map(|fault| format!("- {fault}")).collect();
    if faults.len() > FAULTS_MAX {
        lines.push(format!("- and {} more", faults.len() - FAULTS_MAX));
    }
    format!(
        "Your last answer could not be used:\n{}\n\nDo no further work. Correct all of this and \
         return JSON only: one object, no prose, no code fence, valid by this JSON Schema:\n{}\n",
        lines.join("\n"),
        schema_json.trim()
    )
}

#[cfg(test)]
mod tests;
