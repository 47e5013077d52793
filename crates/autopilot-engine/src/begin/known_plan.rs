//! The plan that was read last. A run reads the same plan when it is given, when it is planned and
//! when it is scheduled, and reading ten thousand tasks by their schema and rules takes half a second.

use autopilot_core::plan::{CheckedPlan, Plan, PlanRules, PlanTask};
use std::sync::{Arc, Mutex, PoisonError};

/// A plan without faults, and what its rules made of it.
pub type SoundPlan = Arc<(Plan, CheckedPlan)>;

/// A text, the rules that it was read by, and the plan that it is. It depends on nothing else.
struct KnownPlan {
    text: String,
    rules: PlanRules,
    plan: SoundPlan,
}

static LAST: Mutex<Option<KnownPlan>> = Mutex::new(None);

/// Returns the plan of this text if it was the last one that was read, by the same rules.
pub(super) fn get(text: &str, rules: &PlanRules) -> Option<SoundPlan> {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let known = last.as_ref().filter(|known| known.text == text && known.rules == *rules);
    known.map(|known| Arc::clone(&known.plan))
}

/// Returns the tasks of a plan's text, without a word on whether they keep the rules.
pub(super) fn tasks_of(text: &str) -> Vec<PlanTask> {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = last.as_ref().filter(|known| known.text == text) {
        return known.plan.0.tasks.clone();
    }
    drop(last);
    serde_json::from_str::<Plan>(text).map(|plan| plan.tasks).unwrap_or_default()
}

pub(super) fn put(text: &str, rules: &PlanRules, plan: &SoundPlan) {
    let (text, rules, plan) = (text.to_owned(), rules.clone(), Arc::clone(plan));
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(KnownPlan { text, rules, plan });
}

/// Remembers the text that a plan was written as, which reads as the very same plan. Text that was
/// changed on the way, such as a secret that was taken out, is not the plan's own.
pub fn written(text: &str, rules: &PlanRules, plan: &SoundPlan) {
    if serde_json::to_string_pretty(&plan.0).is_ok_and(|own| own == text) {
        put(text, rules, plan);
    }
}

#[cfg(test)]
mod tests {
    use super::super::given::parse_plan;
    use super::*;
    use std::collections::BTreeMap;

    /// One test, because there is one last plan in a process.
    #[test]
    fn only_the_same_text_by_the_same_rules_is_known() {
        let given = r#"{"plan_summary": "s", "tasks": [{"id": "a", "title": "A", "goal": "g",
            "acceptance_criteria": ["c"], "depends_on": []}]}"#;
        let rules = PlanRules {
            tasks_max: 10,
            depth_max: 10,
            fan_out_max: 10,
            allowed_paths: Vec::new(),
            deny_paths: Vec::new(),
            commands_allowed: false,
            serialize_overlapping: false,
            taken: BTreeMap::new(),
        };
        let read = parse_plan(given, &rules).unwrap();
        assert!(Arc::ptr_eq(&read, &parse_plan(given, &rules).unwrap()), "read once");
        // As answers are kept.
        let own = serde_json::to_string_pretty(&read.0).unwrap();
        assert_ne!(own, given);
        written(&own, &rules, &read);
        assert!(Arc::ptr_eq(&read, &parse_plan(&own, &rules).unwrap()));
        let afresh = parse_plan(given, &rules).unwrap();
        assert!(!Arc::ptr_eq(&read, &afresh) && *read == *afresh, "what is written reads the same");
        // A text that is not the plan's own is read.
        let other = own.replace("\"g\"", "\"h\"");
        written(&other, &rules, &read);
        assert_eq!(parse_plan(&other, &rules).unwrap().0.tasks[0].goal, "h");
        let taken = BTreeMap::from([("a".to_owned(), "done".to_owned())]);
        assert!(parse_plan(&other, &PlanRules { taken, ..rules.clone() }).is_err());
        assert!(parse_plan("{}", &rules).is_err());
    }
}
