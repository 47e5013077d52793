//! The controller's decisions about each task, in words that do not depend on time or place.

use autopilot_core::event::{Event, Outcome, Record, TaskEnd};
use autopilot_core::id::TaskId;
use std::collections::{BTreeMap, BTreeSet};

/// The decisions of each task in order, by task name; the run itself is `run`.
pub type Decisions = BTreeMap<String, Vec<String>>;

/// The first difference between two runs for one task; `None` means that a run had no more
/// decisions.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    pub task: String,
    /// The number of equal decisions before the difference.
    pub after: usize,
    pub recorded: Option<String>,
    pub replayed: Option<String>,
}

/// The name under which a task's decisions are compared.
pub fn named(names: &BTreeMap<TaskId, String>, task: TaskId) -> String {
    names.get(&task).filter(|name| !name.is_empty()).cloned().unwrap_or_else(|| "run".to_owned())
}

/// Returns whether an outcome says something about the work, and not about the machine or the
/// account.
pub fn is_about_work(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Passed
            | Outcome::Failed { .. }
            | Outcome::Misconfigured { .. }
            | Outcome::Broke { .. }
            | Outcome::Skipped { .. }
    )
}

/// The decisions in a run's records.
pub fn decisions(records: &[Record]) -> Decisions {
    let mut names = BTreeMap::new();
    let mut all = Decisions::new();
    for event in records.iter().flat_map(|record| &record.events) {
        if let Event::TaskAdded { task, spec, .. } = event {
            names.insert(*task, spec.name.clone());
        }
        if let Some((task, text)) = decision(event) {
            all.entry(named(&names, task)).or_default().push(text);
        }
    }
    all
}

#[expect(clippy::wildcard_enum_match_arm, reason = "whatever else there is decides nothing")]
fn decision(event: &Event) -> Option<(TaskId, String)> {
    match event {
        Event::AttemptEnded { task, step, outcome, facts, .. }
            if !step.row().leaves_machine && is_about_work(outcome) =>
        {
            let verdict = facts.verdict().map(|verdict| format!(" ({})", verdict.word()));
            let word = outcome_word(outcome);
            // The same word over other files is another decision.
            let tree = facts.tree.as_deref().map(|tree| format!(" with tree {}", short(tree)));
            let (verdict, tree) = (verdict.unwrap_or_default(), tree.unwrap_or_default());
            Some((*task, format!("{step} {word}{verdict}{tree}")))
        }
        Event::RoundFailed { task, round, reasons, .. } => {
            let steps: Vec<String> = reasons.iter().map(|reason| reason.step.to_string()).collect();
            Some((*task, format!("round {round} failed at {}", steps.join(", "))))
        }
        Event::Overruled { task, why } => Some((*task, format!("overruled: {why}"))),
        Event::RailTripped { task, rail } => Some((*task, format!("halted by {rail:?}"))),
        Event::TaskSettled { task, end } => Some((*task, format!("settled: {}", end_word(end)))),
        _ => None,
    }
}

fn short(tree: &str) -> &str {
    tree.get(..12).unwrap_or(tree)
}

fn outcome_word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed { .. } => "failed",
        Outcome::Misconfigured { .. } => "can't be done as configured",
        Outcome::Broke { .. } => "broke",
        Outcome::Skipped { .. } => "was skipped",
        Outcome::Lost | Outcome::Quota { .. } | Outcome::Away { .. } | Outcome::Revoked => "ended",
    }
}

fn end_word(end: &TaskEnd) -> &'static str {
    match end {
        TaskEnd::Closed => "done",
        TaskEnd::Skipped { .. } => "skipped",
        TaskEnd::Failed { .. } => "failed",
    }
}

/// The difference between the files that the branches of two runs end with, given as trees.
pub fn compare_ends(recorded: Option<&str>, replayed: Option<&str>) -> Option<Difference> {
    let word = |tree: &str| format!("the branch ends with tree {}", short(tree));
    let (recorded, replayed) = (recorded.map(word), replayed.map(word));
    let task = "run".to_owned();
    (recorded != replayed).then_some(Difference { task, after: 0, recorded, replayed })
}

/// The first difference of each task.
pub fn compare(recorded: &Decisions, replayed: &Decisions) -> Vec<Difference> {
    let mut found = Vec::new();
    let tasks: BTreeSet<&String> = recorded.keys().chain(replayed.keys()).collect();
    for task in tasks {
        let of = |run: &Decisions| run.get(task).cloned().unwrap_or_default();
        let (one, two) = (of(recorded), of(replayed));
        let after = one.iter().zip(&two).take_while(|(one, two)| one == two).count();
        if after < one.len().max(two.len()) {
            found.push(Difference {
                task: task.clone(),
                after,
                recorded: one.get(after).cloned(),
                replayed: two.get(after).cloned(),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use autopilot_core::event::Facts;
    use autopilot_core::id::{AttemptId, Time};
    use autopilot_core::step::Step;

    fn of(task: &str, words: &[&str]) -> Decisions {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        BTreeMap::from([(task.to_owned(), words)])
    }

    #[test]
    fn the_first_difference_of_each_task_is_told() {
        let recorded = of("a", &["build passed", "validate failed", "fix passed"]);
        assert_eq!(compare(&recorded, &recorded), []);
        let other = of("a", &["build passed", "validate passed"]);
        let found = compare(&recorded, &other);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].after, found[0].recorded.as_deref()), (1, Some("validate failed")));
        assert_eq!(found[0].replayed.as_deref(), Some("validate passed"));
    }

    #[test]
    fn the_same_words_over_other_files_are_a_difference() {
        let ended = |tree: &str| {
            let facts = Facts { tree: Some(tree.into()), ..Facts::default() };
            let event = Event::AttemptEnded {
                id: AttemptId { seq: 1, place: 0 },
                task: TaskId(0),
                step: Step::Build,
                outcome: Outcome::Passed,
                facts: Box::new(facts),
            };
            decisions(&[Record { seq: 1, at: Time(0), events: vec![event] }])
        };
        assert_eq!(compare(&ended("aaaa"), &ended("aaaa")), []);
        assert_eq!(compare(&ended("aaaa"), &ended("bbbb")).len(), 1);
        assert_eq!(compare_ends(Some("a"), Some("a")), None);
        assert!(compare_ends(Some("a"), Some("b")).is_some());
        assert!(compare_ends(Some("a"), None).is_some());
    }

    #[test]
    fn what_is_missing_at_the_end_or_altogether_is_a_difference() {
        let recorded = of("a", &["build passed", "settled: done"]);
        let found = compare(&recorded, &of("a", &["build passed"]));
        assert_eq!((found[0].after, found[0].replayed.as_deref()), (1, None));
        let found = compare(&recorded, &of("b", &["build passed"]));
        let tasks: Vec<&str> = found.iter().map(|difference| difference.task.as_str()).collect();
        assert_eq!(tasks, ["a", "b"]);
    }
}
