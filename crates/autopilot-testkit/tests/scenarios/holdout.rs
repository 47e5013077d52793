//! Held-out tests: what judges by them, and what is told of them.

use autopilot_core::flow::Flow;
use autopilot_core::holdout::{
    HeldOutEnd, HeldOutRun, HeldOutShown, HeldOutTests, HoldoutGround, VisibleTests, is_judged,
    location_fault,
};

const SECRET: &str = "expects 42";

fn weighed(exit_code: i32, failing: &[&str], rewrote: bool) -> HeldOutRun {
    let long = format!("test('{}', () => {{}});", "long".repeat(60));
    let files: [(&str, bool, &[u8]); 2] =
        [("a.test.js", false, long.as_bytes()), ("tests/sum.sh", false, b"expects 42\n")];
    let failing = failing.iter().map(|id| (*id).to_owned()).collect();
    HeldOutTests::of(files.into_iter()).weigh(&HeldOutShown {
        exit_code: Some(exit_code),
        was_ended: false,
        rewrote,
        report: None,
        failing: &failing,
        visible: VisibleTests::Passed,
        visible_report: None,
        is_readable: false,
        is_edited: false,
    })
}

#[test]
fn of_held_out_tests_the_names_are_told_and_nothing_that_was_printed() {
    let run = weighed(1, &["tests/sum.sh", SECRET, &"long".repeat(60)], false);
    assert_eq!(run.end, HeldOutEnd::Failed);
    let told = run.lines();
    assert_eq!(told.last().map(String::as_str), Some("held-out test `tests/sum.sh` fails"));
    assert!(told.len() == 2 && told.iter().all(|line| line.len() < 160), "{told:?}");
    assert!(!run.sentence().contains(SECRET));
}

#[test]
fn held_out_tests_that_fail_or_are_changed_prove_nothing() {
    assert!(weighed(0, &[], false).passed());
    assert!(!weighed(1, &[], false).passed());
    assert_eq!(weighed(0, &[], true).end, HeldOutEnd::Rewrote);
}

#[test]
fn the_whole_of_a_plan_is_judged_by_held_out_tests_and_its_parts_are_not() {
    assert!(is_judged(Flow::Task, false) && is_judged(Flow::Plan, true));
    assert!(!is_judged(Flow::Plan, false) && !is_judged(Flow::Goal, false));
}

#[test]
fn held_out_tests_lie_where_no_agent_reads() {
    let ground = HoldoutGround {
        root: "/home/u/shop".into(),
        git: "/home/u/shop/.git".into(),
        state: "/state".into(),
        write: &[],
    };
    assert_eq!(location_fault("/home/u/held".into(), &ground), None);
    for dir in ["/home/u/shop", "/home/u/shop/held", "/home/u/shop/.git/x", "/state/x", "/home"] {
        assert!(location_fault(dir.into(), &ground).is_some(), "{dir}");
    }
}
