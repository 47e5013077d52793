//! Commands that fail and then pass on the same tree. Their success says less than another's, so a
//! person reads it with both logs.

use crate::evidence::{RoundEvidence, SeenCommand};
use crate::rows::rows;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

rows! {
/// What the failure of a command counts for that might pass when it is run again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
FlakyGates -> &'static str {
    /// A failure is a failure.
    #[default]
    Fail: "fail",
    /// Every command that failed is run once more on the same tree, and that result counts.
    RetryOnce: "retry_once",
    /// The same, if all tests that failed are named in `gates.known_flaky`.
    Known: "known",
}}

impl FlakyGates {
    /// Whether a command is run once more on the same tree. `known` are the names of flaky tests,
    /// `base` is what the untouched base has shown.
    ///
    /// A command that did not end by itself, could not be run, or rewrote files would do so again,
    /// and a failure that the base has too is excused.
    pub fn gives_second_try(
        self,
        seen: &SeenCommand,
        known: &[String],
        base: &RoundEvidence,
    ) -> bool {
        let may_differ = seen.failed() && seen.ended && seen.not_run().is_none() && !seen.changed;
        let is_known = |test: &String| known.contains(test);
        may_differ
            && !seen.is_known(base)
            && match self {
                FlakyGates::Fail => false,
                FlakyGates::RetryOnce => true,
                FlakyGates::Known => !seen.failing.is_empty() && seen.failing.iter().all(is_known),
            }
    }
}

/// The failure of a command that was run again on the same tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstTry {
    /// Names of the failed tests, where the output names them.
    #[serde(default)]
    pub failing: BTreeSet<String>,
    pub log: String,
}

impl FirstTry {
    /// What is kept of a failed command.
    pub fn of(seen: &SeenCommand) -> FirstTry {
        FirstTry { failing: seen.failing.clone(), log: seen.log.clone() }
    }
}

/// The sentence for a person about a command that had two results on the same tree; none if the
/// results were the same.
pub fn flaky_note(seen: &SeenCommand) -> Option<String> {
    let SeenCommand { name, log, .. } = seen;
    let first = seen.first_try.as_ref()?;
    let logs = format!("logs: .autopilot/{}, .autopilot/{log}", first.log);
    let failed = listed(&first.failing);
    if !seen.failed() {
        return Some(format!(
            "`{name}` is flaky: it failed{failed} and then passed on the same tree; {logs}"
        ));
    }
    let is_other = first.failing != seen.failing;
    is_other.then(|| {
        let now = listed(&seen.failing);
        format!(
            "`{name}` is flaky: it failed{failed}, then otherwise{now} on the same tree; {logs}"
        )
    })
}

/// The sentence for a person about a gate that passes where it failed before, on the same tree and
/// with the same commands.
pub fn flaky_gate_note(log: Option<&str>) -> String {
    let log = log.map(|log| format!("; log of the failure: .autopilot/{log}")).unwrap_or_default();
    format!("the commands are flaky: they failed before on the same tree{log}")
}

/// The names that a sentence has room for.
const NAMES_MAX: usize = 5;

fn listed(tests: &BTreeSet<String>) -> String {
    let named: Vec<&str> = tests.iter().take(NAMES_MAX).map(String::as_str).collect();
    let more = match tests.len().saturating_sub(NAMES_MAX) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    if named.is_empty() { String::new() } else { format!(" ({}{more})", named.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red(failing: &[&str]) -> SeenCommand {
        SeenCommand {
            name: "tests".to_owned(),
            exit_code: Some(1),
            ended: true,
            failing: failing.iter().map(|name| (*name).to_owned()).collect(),
            log: "logs/1.log".to_owned(),
            ..SeenCommand::default()
        }
    }

    #[test]
    fn only_a_failure_that_may_be_another_next_time_is_tried_again() {
        let known = ["a".to_owned(), "b".to_owned()];
        let base = RoundEvidence::default();
        let again =
            |policy: FlakyGates, seen: &SeenCommand| policy.gives_second_try(seen, &known, &base);
        for (seen, once, listed) in [
            (red(&["a"]), true, true),
            (red(&["a", "b"]), true, true),
            (red(&["a", "c"]), true, false),
            (red(&[]), true, false),
            (SeenCommand { exit_code: Some(0), ..red(&["a"]) }, false, false),
            (SeenCommand { exit_code: Some(127), ..red(&["a"]) }, false, false),
            (SeenCommand { ended: false, ..red(&["a"]) }, false, false),
            (SeenCommand { changed: true, ..red(&["a"]) }, false, false),
        ] {
            assert!(!again(FlakyGates::Fail, &seen), "{seen:?}");
            assert_eq!(again(FlakyGates::RetryOnce, &seen), once, "{seen:?}");
            assert_eq!(again(FlakyGates::Known, &seen), listed, "{seen:?}");
        }
        let red_base = RoundEvidence { checks: vec![red(&["a"])], ..base.clone() };
        let excused = FlakyGates::RetryOnce.gives_second_try(&red(&["a"]), &known, &red_base);
        assert!(!excused, "the base has the same failure");
    }

    #[test]
    fn two_results_on_one_tree_are_told_with_tests_and_logs() {
        let first = FirstTry::of(&red(&["a", "b"]));
        let with = |seen: SeenCommand| {
            let second = SeenCommand { log: "logs/2.log".to_owned(), ..seen };
            flaky_note(&SeenCommand { first_try: Some(first.clone()), ..second })
        };
        let passed = with(SeenCommand { exit_code: Some(0), ..red(&[]) }).unwrap();
        assert_eq!(
            passed,
            "`tests` is flaky: it failed (a, b) and then passed on the same tree; logs: \
             .autopilot/logs/1.log, .autopilot/logs/2.log"
        );
        let other = with(red(&["c"])).unwrap();
        assert!(other.contains("it failed (a, b), then otherwise (c) on the same tree"), "{other}");
        assert_eq!(with(red(&["a", "b"])), None, "the same failure twice is not flaky");
        assert_eq!(flaky_note(&red(&["a"])), None);
        let many: Vec<String> = (0..7).map(|number| format!("t{number}")).collect();
        assert_eq!(listed(&many.into_iter().collect()), " (t0, t1, t2, t3, t4 and 2 more)");
    }
}
