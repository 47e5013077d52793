//! A workflow and the word on completion as answers: by a schema the user edited and by the rules of
//! workflows, which say in words all that our own schemas say, with the faults of both at once.

use autopilot_core::workflow::{self, Assessed, Checked, Rules, assess, check, salvage};
use serde_json::Value;

use super::{Dug, Fault, Given, Schema, dig, faults, without_nulls};

/// The workflow of an answer, checked: the last that nothing is wrong with. `also` is a schema the
/// user edited.
pub fn read_workflow<'a>(
    given: impl Into<Given<'a>>,
    also: Option<&Schema>,
    rules: &Rules,
) -> Result<Checked, Vec<Fault>> {
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

/// The word on completion. What is wrong with its next workflow is wrong with it.
///
/// The last word counts, or none: one before it may be an example, or what was thought at first.
pub fn read_completion<'a>(
    given: impl Into<Given<'a>>,
    also: Option<&Schema>,
    rules: &Rules,
) -> Result<Assessed, Vec<Fault>> {
    let mut objects = objects(given.into())?;
    let object = objects.swap_remove(last_word(&objects).unwrap_or(0));
    if object.is_spoken_over() {
        return Err(vec![Fault::new("", "the last JSON object that says `done` can't be read")]);
    }
    object.judged(also, |value| assess(value, rules))
}

/// What is left of a word on completion that could not be read, for want of a better one: not done.
pub fn completion_after_all<'a>(given: impl Into<Given<'a>>, faults: &[Fault]) -> Assessed {
    let objects = objects(given.into()).unwrap_or_default();
    let meant = last_word(&objects).map(|place| &objects[place]);
    let meant = meant.filter(|object| !object.is_spoken_over()).map(|object| &object.value);
    let in_core = |fault: &Fault| workflow::Fault {
        pointer: fault.pointer.clone(),
        what: fault.what.clone(),
    };
    salvage(meant, &faults.iter().map(in_core).collect::<Vec<_>>())
}

fn last_word(objects: &[Object<'_>]) -> Option<usize> {
    objects.iter().position(|object| object.value.get("done").is_some())
}

struct Object<'a> {
    value: Value,
    /// Keys it gives twice.
    faults: Vec<Fault>,
    /// The text after it.
    rest: &'a str,
}

impl Object<'_> {
    /// Something after it says whether it is done and is no object.
    fn is_spoken_over(&self) -> bool {
        self.rest.contains("\"done\"")
    }

    fn judged<T>(
        self,
        also: Option<&Schema>,
        judge: impl FnOnce(&Value) -> Result<T, Vec<workflow::Fault>>,
    ) -> Result<T, Vec<Fault>> {
        let mut all = self.faults;
        all.extend(faults(&self.value, also.as_slice()));
        match judge(&self.value) {
            Ok(read) if all.is_empty() => return Ok(read),
            Ok(_) => {}
            Err(found) => all.extend(found.into_iter().map(Fault::from)),
        }
        Err(all)
    }
}

/// The whole objects of an answer, the last first; never none. Parts of a broken one are left out: a
/// yes could be a part of what says no.
fn objects(given: Given<'_>) -> Result<Vec<Object<'_>>, Vec<Fault>> {
    let structured = given.structured.map(|value| Object {
        value: without_nulls(value.clone()),
        faults: Vec::new(),
        rest: "",
    });
    let dug = match dig(given.text) {
        Err(faults) if structured.is_none() => return Err(faults),
        dug => dug.unwrap_or_else(|_| Dug::default()),
    };
    let whole = dug.objects.into_iter().rev().filter(|found| !found.in_broken);
    let in_text = whole.map(|found| Object {
        value: without_nulls(found.value),
        faults: found.faults,
        rest: &given.text[found.end..],
    });
    let objects: Vec<Object<'_>> = structured.into_iter().chain(in_text).collect();
    if objects.is_empty() {
        let none = || Fault::new("", "there is no JSON object in the answer");
        return Err(vec![dug.broken.unwrap_or_else(none)]);
    }
    Ok(objects)
}

#[cfg(test)]
mod tests;
