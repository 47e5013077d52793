//! Workflows and judgements on completion as answers. Both are checked against a schema the user
//! edited and against the rules of workflows, which say in words all that our own schemas say; the
//! faults of both are reported at once.

use autopilot_core::workflow::{
    self, Assessed, CheckedWorkflow, WorkflowRules, assess, check, salvage,
};
use serde_json::Value;

use super::{AnswerFault, AnswerSchema, Dug, GivenAnswer, dig, faults, without_nulls};

/// Reads and checks the workflow of an answer: the last object without a fault. The object must
/// also satisfy `also`, a schema the user edited.
pub fn read_workflow<'a>(
    given: impl Into<GivenAnswer<'a>>,
    also: Option<&AnswerSchema>,
    rules: &WorkflowRules,
) -> Result<CheckedWorkflow, Vec<AnswerFault>> {
    let mut meant = None;
    let mut last = None;
    for object in objects(given.into())? {
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
/// Only the last judgement counts: an earlier one may be an example, or a first thought.
pub fn read_completion<'a>(
    given: impl Into<GivenAnswer<'a>>,
    also: Option<&AnswerSchema>,
    rules: &WorkflowRules,
) -> Result<Assessed, Vec<AnswerFault>> {
    let mut objects = objects(given.into())?;
    let object = objects.swap_remove(last_word(&objects).unwrap_or(0));
    if object.is_spoken_over() {
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
    let objects = objects(given.into()).unwrap_or_default();
    let meant = last_word(&objects).map(|place| &objects[place]);
    let meant = meant.filter(|object| !object.is_spoken_over()).map(|object| &object.value);
    let in_core = |fault: &AnswerFault| workflow::PlanFault {
        pointer: fault.pointer.clone(),
        what: fault.what.clone(),
    };
    salvage(meant, &faults.iter().map(in_core).collect::<Vec<_>>())
}

fn last_word(objects: &[WorkflowObject<'_>]) -> Option<usize> {
    objects.iter().position(|object| object.value.get("done").is_some())
}

struct WorkflowObject<'a> {
    value: Value,
    /// The keys that the object gives twice.
    faults: Vec<AnswerFault>,
    /// The text after the object.
    rest: &'a str,
}

impl WorkflowObject<'_> {
    /// Whether the text after the object mentions `done` in something that is not a readable
    /// object.
    fn is_spoken_over(&self) -> bool {
        self.rest.contains("\"done\"")
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

/// The whole objects of an answer, the last one first; never an empty list. Parts of a broken
/// object are left out: a yes could be a part of what says no.
fn objects(given: GivenAnswer<'_>) -> Result<Vec<WorkflowObject<'_>>, Vec<AnswerFault>> {
    let structured = given.structured.map(|value| WorkflowObject {
        value: without_nulls(value.clone()),
        faults: Vec::new(),
        rest: "",
    });
    let dug = match dig(given.text) {
        Err(faults) if structured.is_none() => return Err(faults),
        dug => dug.unwrap_or_else(|_| Dug::default()),
    };
    let whole = dug.objects.into_iter().rev().filter(|found| !found.in_broken);
    let in_text = whole.map(|found| WorkflowObject {
        value: without_nulls(found.value),
        faults: found.faults,
        rest: &given.text[found.end..],
    });
    let objects: Vec<WorkflowObject<'_>> = structured.into_iter().chain(in_text).collect();
    if objects.is_empty() {
        let none = || AnswerFault::new("", "there is no JSON object in the answer");
        return Err(vec![dug.broken.unwrap_or_else(none)]);
    }
    Ok(objects)
}

#[cfg(test)]
mod tests;
