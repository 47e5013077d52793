//! Plans as answers: checked against their schema and the rules of plans, with the faults of both
//! at once.

use autopilot_core::plan::{self, Checked, Plan, Rules};
use serde_json::Value;

use super::{Fault, Given, Schema, dig, read, without_nulls};

impl From<plan::Fault> for Fault {
    fn from(fault: plan::Fault) -> Self {
        Fault::new(fault.pointer, fault.what)
    }
}

/// Reads and checks the plan of an answer. The plan must also satisfy `also`, a schema the user
/// edited.
pub fn read_plan<'a>(
    given: impl Into<Given<'a>>,
    also: Option<&Schema>,
    rules: &Rules,
) -> Result<(Plan, Checked), Vec<Fault>> {
    let given = given.into();
    let by_rules = |plan: &Plan| plan::check(plan, rules);
    match read::<Plan>(given, also) {
        Ok(plan) => match by_rules(&plan) {
            Ok(checked) => Ok((plan, checked)),
            Err(faults) => Err(faults.into_iter().map(Fault::from).collect()),
        },
        Err(mut faults) => {
            // There is one repair only, so the prompt names every further fault that can be seen.
            let unseen = meant(given).and_then(|plan| by_rules(&plan).err()).unwrap_or_default();
            // Where the schema and the rules object to the same place, the rules say it in words,
            // and may have more than one thing to say.
            let in_words = |fault: &Fault| unseen.iter().any(|rule| rule.pointer == fault.pointer);
            faults.retain(|fault| fault.pointer.is_empty() || !in_words(fault));
            faults.extend(unseen.into_iter().map(Fault::from));
            Err(faults)
        }
    }
}

/// Returns the last object that can be read as a plan, even if its schema objects.
fn meant(given: Given<'_>) -> Option<Plan> {
    let plan = |value: Value| serde_json::from_value(without_nulls(value)).ok();
    given.structured.cloned().and_then(plan).or_else(|| {
        let whole =
            dig(given.text).ok()?.objects.into_iter().rev().filter(|found| !found.in_broken);
        whole.map(|found| found.value).find_map(plan)
    })
}
