//! Workflows and judgements on completion as answers. Both are checked against a schema the user
//! edited and against the rules of workflows, which say in words all that our own schemas say; the
//! faults of both are reported at once.

use autopilot_core::workflow::{
    self, Assessed, CheckedWorkflow, WorkflowRules, assess, check, salvage,
};
use serde_json::Value;

use super::{AnswerFault, AnswerSchema, FoundValue, GivenAnswer, faults};

/// Reads and checks the workflow of an answer: the last object without a fault. The object must
/// also satisfy `also`, a schema the user edited. Parts of a broken object do not count here or
/// below: a yes could be a part of what says no.
pub fn read_workflow<'a>(
    given: impl Into<GivenAnswer<'a>>,
    also: Option<&AnswerSchema>,
    rules: &WorkflowRules,
) -> Result<CheckedWorkflow, Vec<AnswerFault>> {
    let mut meant = None;
    let mut last = None;
    for object in given.into().whole_objects()? {
        let place = if object.value.get("steps").is_some() { &mut meant } else { &mut last };
        match object.judged(also, |value| check(value, rules)) {
            Ok(checked) => return Ok(checked),
            Err(faults) => {
                place.get_or_insert(faults);
            }
        }
    }
    Err(meant.or(last).unwrap_or_default())
}

/// Reads the judgement on whether the goal is met. A fault of the next workflow in it is a fault of
/// the judgement.
///
/// The last judgement counts, but no yes after a no of the same answer.
pub fn read_completion<'a>(
    given: impl Into<GivenAnswer<'a>>,
    also: Option<&AnswerSchema>,
    rules: &WorkflowRules,
) -> Result<Assessed, Vec<AnswerFault>> {
    let given = given.into();
    let mut objects = given.whole_objects()?;
    let meant = last_word(&objects).unwrap_or(0);
    if is_contradicted(&objects, meant, given.text) {
        return Err(vec![AnswerFault::new(
            "/done",
            "two judgements that differ: an earlier object says that it is not done",
        )]);
    }
    let object = objects.swap_remove(meant);
    if object.is_followed_by_done(given.text) {
        return Err(vec![AnswerFault::new(
            "",
            "the last JSON object with a `done` member can't be read",
        )]);
    }
    object.judged(also, |value| assess(value, rules))
}

/// Returns the best reading of a judgement that stayed faulty after its repair: never done.
pub fn completion_after_all<'a>(
    given: impl Into<GivenAnswer<'a>>,
    faults: &[AnswerFault],
) -> Assessed {
    let given = given.into();
    let objects = given.whole_objects().unwrap_or_default();
    let meant = last_word(&objects).map(|place| &objects[place]);
    let meant = meant.filter(|object| !object.is_followed_by_done(given.text));
    let in_core = |fault: &AnswerFault| workflow::PlanFault {
        pointer: fault.pointer.clone(),
        what: fault.what.clone(),
    };
    salvage(meant.map(|object| &object.value), &faults.iter().map(in_core).collect::<Vec<_>>())
}

/// Whether a yes is contradicted by a no before it that is not part of a quotation. A no has a
/// reason: without one, the object may be any value with such a member.
fn is_contradicted(objects: &[FoundValue], meant: usize, text: &str) -> bool {
    let done = |object: &FoundValue| object.value.get("done").and_then(Value::as_bool);
    let is_yes = objects.get(meant).and_then(done) == Some(true);
    let is_no =
        |object: &FoundValue| done(object) == Some(false) && object.value.get("reason").is_some();
    is_yes && objects.iter().any(|other| is_no(other) && !other.is_quoted(text))
}

fn last_word(objects: &[FoundValue]) -> Option<usize> {
    objects.iter().position(|object| object.value.get("done").is_some())
}

impl FoundValue {
    /// Whether the text after the object mentions `done` in something that is not a readable
    /// object.
    fn is_followed_by_done(&self, text: &str) -> bool {
        text[self.end..].contains("\"done\"")
    }

    fn judged<T>(
        self,
        also: Option<&AnswerSchema>,
        judge: impl FnOnce(&Value) -> Result<T, Vec<workflow::PlanFault>>,
    ) -> Result<T, Vec<AnswerFault>> {
        let mut all = self.faults;
        all.extend(faults(&self.value, also.as_slice()));
        match judge(&self.value) {
            Ok(read) if all.is_empty() => return Ok(read),
            Ok(_) => {}
            Err(found) => all.extend(found.into_iter().map(AnswerFault::from)),
        }
        Err(all)
    }
}

#[cfg(test)]
mod tests;
