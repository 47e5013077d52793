//! The part of a task's result that may be merged, and what a failed merge leaves to repair.

use crate::event::Outcome;
use crate::state::{Shown, Task};
use crate::step::Step;

/// The tree of a task that may be merged: exactly the one that passed. A task that is not validated
/// alone is validated with the whole run at its end.
pub fn proven_tree(task: &Task) -> Option<&str> {
    let is_validated_alone = task.pipeline.place(Step::Validate).is_some();
    let tree = task.tree.as_deref()?;
    (!is_validated_alone || proves(task.shown(Step::Validate), tree)).then_some(tree)
}

fn proves(validation: Option<&Shown>, tree: &str) -> bool {
    validation.is_some_and(|shown| {
        shown.outcome == Outcome::Passed && shown.facts.tree.as_deref() == Some(tree)
    })
}

/// Whether the work of this round was dropped in favour of the earlier result.
pub fn keeps_earlier_result(task: &Task) -> bool {
    let work = task.pipeline.continues_at().and_then(|step| task.shown(step));
    work.is_some_and(|shown| matches!(shown.outcome, Outcome::Skipped { .. }))
}

/// The reason why the round before this one failed at the merge, if it did.
pub fn failed_merge(task: &Task) -> Option<&str> {
    failed_before(task.last(Step::Merge)?, task.round)
}

fn failed_before(merge: &Shown, round: u32) -> Option<&str> {
    merge.outcome.failure().filter(|_| merge.round + 1 == round)
}

/// The outcome of checking the untouched base, and the failures that are excused from now on.
/// `not_run` are the reasons why commands were not run at all, which nobody can allow: without them
/// nothing would be proven.
pub fn baseline(
    failed: Vec<String>,
    not_run: Vec<String>,
    branch: &str,
    is_red_allowed: bool,
) -> (Outcome, Vec<String>) {
    if !not_run.is_empty() {
        return (Outcome::Misconfigured { why: not_run.join("; ") }, Vec::new());
    }
    if failed.is_empty() || is_red_allowed {
        return (Outcome::Passed, failed);
    }
    let why = failed.join("; ");
    let why =
        format!("{why} on the untouched base `{branch}`; fix it, or run with --allow-red-base");
    (Outcome::Failed { why }, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Facts;
    use crate::id::{AttemptId, Time};

    fn shown(round: u32, outcome: Outcome, tree: &str) -> Shown {
        let facts = Facts { tree: Some(tree.to_owned()), ..Facts::default() };
        Shown { id: AttemptId { seq: 1, place: 0 }, round, at: Time(0), outcome, facts }
    }

    fn failed() -> Outcome {
        Outcome::Failed { why: "no".to_owned() }
    }

    #[test]
    fn only_the_exact_tree_that_passed_is_proven() {
        assert!(proves(Some(&shown(1, Outcome::Passed, "t")), "t"));
        assert!(!proves(Some(&shown(1, Outcome::Passed, "t")), "other"));
        assert!(!proves(Some(&shown(1, failed(), "t")), "t"));
        assert!(!proves(None, "t"));
    }

    #[test]
    fn only_the_merge_of_the_round_before_is_repaired() {
        assert_eq!(failed_before(&shown(1, failed(), "t"), 2), Some("no"));
        assert_eq!(failed_before(&shown(1, failed(), "t"), 3), None);
        assert_eq!(failed_before(&shown(1, Outcome::Passed, "t"), 2), None);
    }

    #[test]
    fn a_red_base_fails_unless_it_is_allowed_and_then_its_failures_are_excused() {
        let red = || vec!["tests failed".to_owned(), "lint failed".to_owned()];
        let none = Vec::new;
        assert_eq!(baseline(none(), none(), "main", false), (Outcome::Passed, none()));
        assert_eq!(baseline(red(), none(), "main", true), (Outcome::Passed, red()));
        let why = "tests failed; lint failed on the untouched base `main`; fix it, or run with \
                   --allow-red-base";
        assert_eq!(baseline(red(), none(), "main", false).0.failure(), Some(why));
        for is_red_allowed in [true, false] {
            let gone = vec!["no pytest".to_owned()];
            let misconfigured = Outcome::Misconfigured { why: "no pytest".to_owned() };
            assert_eq!(baseline(red(), gone, "main", is_red_allowed), (misconfigured, none()));
        }
    }
}
