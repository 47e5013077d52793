//! Plans as answers: checked against their schema and the rules of plans, with the faults of both
//! at once.

use autopilot_core::plan::{self, CheckedPlan, Plan, PlanRules};

use super::{AnswerFault, AnswerSchema, GivenAnswer, read};

impl From<plan::PlanFault> for AnswerFault {
    fn from(fault: plan::PlanFault) -> Self {
        AnswerFault::new(fault.pointer, fault.what)
    }
}

/// Reads and checks the plan of an answer. The plan must also satisfy `also`, a schema the user
/// edited.
pub fn read_plan<'a>(
    given: impl Into<GivenAnswer<'a>>,
    also: Option<&AnswerSchema>,
    rules: &PlanRules,
) -> Result<(Plan, CheckedPlan), Vec<AnswerFault>> {
    let given = given.into();
    let by_rules = |plan: &Plan| plan::check(plan, rules);
    match read::<Plan>(given, also) {
        Ok(plan) => match by_rules(&plan) {
            Ok(checked) => Ok((plan, checked)),
            Err(faults) => Err(faults.into_iter().map(AnswerFault::from).collect()),
        },
        Err(mut faults) => {
            // There is one repair only, so the prompt names every further fault that can be seen.
            let unseen = meant(given).and_then(|plan| by_rules(&plan).err()).unwrap_or_default();
            // Where the schema and the rules object to the same place, the rules say it in words,
            // and may have more than one thing to say.
            let in_words =
                |fault: &AnswerFault| unseen.iter().any(|rule| rule.pointer == fault.pointer);
            faults.retain(|fault| fault.pointer.is_empty() || !in_words(fault));
            faults.extend(unseen.into_iter().map(AnswerFault::from));
            Err(faults)
        }
    }
}

/// Returns the last object that can be read as a plan, even if its schema objects.
fn meant(given: GivenAnswer<'_>) -> Option<Plan> {
    let mut values = given.whole_objects().ok()?.into_iter().map(|found| found.value);
    values.find_map(|value| serde_json::from_value(value).ok())
}
