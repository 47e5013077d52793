//! Answers by schema: found in the text of an agent, validated, and typed.
//!
//! The answer is the last object that satisfies every schema asked of it. If none does, every fault
//! is reported at once, so that one repair prompt can name them all.

mod coverage;
mod dig;
mod kind;
mod markdown;
mod plan;
mod review;
mod schema;
mod strict;
mod workflow;

pub use autopilot_core::coverage::CoverageAnswer;
pub use autopilot_core::flow::review::{ReviewAnswer, ReviewIssue};
pub use autopilot_core::plan::{Plan, PlanEdge, PlanTask, ValidationCommands};
pub use autopilot_core::workflow::{Completion, Workflow};
pub use coverage::read_coverage;
pub use dig::{ANSWER_BYTES_MAX, DEPTH_MAX, Dug, FoundValue, OBJECTS_MAX, dig};
pub use kind::{AgentAnswer, CommandRan, SubagentUsed, Summary};
pub use markdown::markdown;
pub use plan::read_plan;
pub use review::{ReadReview, read_review};
pub use schema::{AnswerSchema, SchemaError};
pub use strict::strict_form;
pub use workflow::{completion_after_all, read_completion, read_workflow};

use serde_json::Value;

use crate::ending::AgentEnding;
use crate::event::clip;

/// The number of faults that one repair prompt names at most.
pub const FAULTS_MAX: usize = 40;
const FAULT_BYTES_MAX: usize = 400;

/// One fault of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerFault {
    /// A JSON pointer to the faulty value; empty for the whole answer.
    pub pointer: String,
    /// The description of the fault.
    pub what: String,
}

impl AnswerFault {
    /// Clips `what` to a length that fits into a repair prompt.
    pub fn new(pointer: impl Into<String>, what: impl AsRef<str>) -> Self {
        AnswerFault { pointer: pointer.into(), what: clip(what.as_ref(), FAULT_BYTES_MAX) }
    }
}

impl std::fmt::Display for AnswerFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.pointer.is_empty() {
            return f.write_str(&self.what);
        }
        write!(f, "{}: {}", self.pointer, self.what)
    }
}

/// The answer of an agent, before it is validated.
#[derive(Debug, Clone, Copy)]
pub struct GivenAnswer<'a> {
    /// The text of the agent's last message.
    pub text: &'a str,
    /// The value from the agent's own schema mechanism, where it has one.
    pub structured: Option<&'a Value>,
}

impl<'a> From<&'a str> for GivenAnswer<'a> {
    fn from(text: &'a str) -> Self {
        GivenAnswer { text, structured: None }
    }
}

impl<'a> From<&'a AgentEnding> for GivenAnswer<'a> {
    fn from(ending: &'a AgentEnding) -> Self {
        GivenAnswer { text: &ending.answer, structured: ending.structured.as_ref() }
    }
}

/// Reads an answer of a known kind. The answer must also satisfy `also`, a schema the user edited.
pub fn read<'a, T: AgentAnswer>(
    given: impl Into<GivenAnswer<'a>>,
    also: Option<&AnswerSchema>,
) -> Result<T, Vec<AnswerFault>> {
    let ours = T::schema().map_err(|error| vec![AnswerFault::new("", error.to_string())])?;
    let schemas: Vec<&AnswerSchema> = std::iter::once(ours).chain(also).collect();
    let value = read_value(given, &schemas)?;
    serde_json::from_value(value).map_err(|error| vec![AnswerFault::new("", error.to_string())])
}

/// Reads an answer as JSON that satisfies all of `schemas`.
pub fn read_value<'a>(
    given: impl Into<GivenAnswer<'a>>,
    schemas: &[&AnswerSchema],
) -> Result<Value, Vec<AnswerFault>> {
    let Dug { objects, broken } = given.into().objects()?;
    let mut first_faults = None;
    for mut found in objects {
        found.faults.extend(faults(&found.value, schemas));
        if found.faults.is_empty() {
            return Ok(found.value);
        }
        // Parts of a broken object do not show what the agent meant.
        if !found.in_broken {
            first_faults.get_or_insert(found.faults);
        }
    }
    Err(first_faults.unwrap_or_else(|| vec![broken.unwrap_or_else(no_object)]))
}

impl GivenAnswer<'_> {
    /// The objects of the answer, the one that counts most first: the value of the schema
    /// mechanism, then those of the text from the last to the first.
    fn objects(self) -> Result<Dug, Vec<AnswerFault>> {
        let structured = self.structured.map(|value| FoundValue {
            value: value.clone(),
            faults: Vec::new(),
            in_broken: false,
            start: self.text.len(),
            end: self.text.len(),
        });
        let mut dug = match dig(self.text) {
            Err(faults) if structured.is_none() => return Err(faults),
            dug => dug.unwrap_or_default(),
        };
        dug.objects.extend(structured);
        dug.objects.reverse();
        for found in &mut dug.objects {
            found.value = without_nulls(found.value.take());
        }
        Ok(dug)
    }

    /// The same without the parts of broken objects; never an empty list.
    fn whole_objects(self) -> Result<Vec<FoundValue>, Vec<AnswerFault>> {
        let Dug { mut objects, broken } = self.objects()?;
        objects.retain(|found| !found.in_broken);
        if objects.is_empty() {
            return Err(vec![broken.unwrap_or_else(no_object)]);
        }
        Ok(objects)
    }
}

fn no_object() -> AnswerFault {
    AnswerFault::new("", "there is no JSON object in the answer")
}

fn faults(value: &Value, schemas: &[&AnswerSchema]) -> Vec<AnswerFault> {
    let mut faults: Vec<AnswerFault> = Vec::new();
    for fault in schemas.iter().flat_map(|schema| schema.faults(value)) {
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    faults
}

/// Removes members that are null: strict schemas make models write every member, and null stands
/// for an absent one.
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

/// The prompt that asks for the same answer once more and names its faults.
pub fn repair_prompt(faults: &[AnswerFault], schema_json: &str) -> String {
    let mut lines: Vec<String> =
        faults.iter().take(FAULTS_MAX).map(|fault| format!("- {fault}")).collect();
    if faults.len() > FAULTS_MAX {
        lines.push(format!("- and {} more", faults.len() - FAULTS_MAX));
    }
    format!(
        "Your last answer could not be used:\n{}\n\nDo no further work. Correct all of this and \
         return JSON only: one object, no prose, no code fence, valid against this JSON Schema:\n{}\n",
        lines.join("\n"),
        schema_json.trim()
    )
}

#[cfg(test)]
mod tests;
