//! What is told of tests that a change no longer runs, or runs with settings of its own.

use autopilot_core::evidence::{RoundEvidence, SeenCommand};
use autopilot_core::test_report::lost::{LostSearch, lost_in_gate};
use autopilot_core::test_report::{TestOutcome, TestReport};
use autopilot_core::three_runs::{ProofRun, RunsSeen, ThreeRuns, red_tests};
use std::collections::{BTreeMap, BTreeSet};

fn gate(code: i32, tests: &[(&str, TestOutcome)]) -> RoundEvidence {
    let mut report = TestReport::default();
    tests.iter().for_each(|(id, outcome)| report.add(id, *outcome));
    let seen = SeenCommand {
        name: "tests".to_owned(),
        exit_code: Some(code),
        ended: true,
        report: Some(Box::new(report)),
        ..SeenCommand::default()
    };
    RoundEvidence { checks: vec![seen], ..RoundEvidence::default() }
}

#[test]
fn a_test_that_is_skipped_now_is_told() {
    let (base, head) = (TestOutcome::Passed, TestOutcome::Skipped);
    let (base, head) = (gate(0, &[("a", base)]), gate(0, &[("a", head)]));
    let search =
        LostSearch { base: &base, merged: &[], green: &head.checks, runs: None, task: "greet" };
    let told = lost_in_gate(&search);
    assert!(told.iter().any(|doubt| doubt.test.as_deref() == Some("a")), "{told:?}");
}

#[test]
fn settings_for_both_sides_are_told_whatever_the_runs_show() {
    let settings = BTreeSet::from(["build.rs".to_owned()]);
    let runs = ThreeRuns { settings, ..ThreeRuns::default() };
    assert_eq!(runs.doubts("greet").len(), 1);
}

#[test]
fn a_test_that_was_not_run_without_the_change_is_not_red() {
    let green = gate(0, &[("t.py::a", TestOutcome::Passed)]);
    let left_out = BTreeSet::from(["t.py".to_owned()]);
    let red = [ProofRun { tree: "t".to_owned(), checks: gate(1, &[]).checks }];
    let seen = RunsSeen {
        touched: &left_out,
        base: &RoundEvidence::default(),
        green: &green.checks,
        no_regression: &[],
        red: &red,
        base_tests: &BTreeMap::new(),
        changed_tests: &BTreeSet::new(),
        moved_tests: &BTreeMap::new(),
        left_out: &left_out,
    };
    let red = red_tests(&seen);
    assert_eq!((red.weak.len(), red.unknown.len()), (0, 1));
}
