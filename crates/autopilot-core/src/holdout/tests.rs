//! Held-out tests: what is told of them, what counts, and where they may lie.

use super::*;
use crate::test_report::TestOutcome;

const MARKER: &str = "the-answer-is-42";

fn held() -> HeldOutTests {
    let files: [(&str, bool, &[u8]); 4] = [
        ("tests/add.sh", true, b"test $(sh add.sh 1 2) = the-answer-is-42\n"),
        ("tests/test_tax.py", false, b"class TestTax:\n    def test_rate(self):\n        pass\n\ndef test_zero():\n    pass\n"),
        ("tests/test_vat.py", false, b"def test_zero():\n    pass\n"),
        ("web/a.test.js", false, b"test('adds\tup', () => {});\ntest(\"adds\", () => {});\n"),
    ];
    HeldOutTests::of(files.into_iter())
}

fn told(id: &str) -> Option<String> {
    held().named(id).map(HeldOutName::told)
}

#[test]
fn only_a_name_that_a_held_out_file_has_is_told() {
    for (id, name) in [
        ("tests/add.sh", Some("tests/add.sh")),
        ("FAILED tests/add.sh: the-answer-is-42", Some("tests/add.sh")),
        ("tests/test_tax.py::TestTax::test_rate", Some("TestTax::test_rate")),
        ("tests/test_tax.py::TestTax::test_rate[the-answer-is-42]", Some("TestTax::test_rate")),
        ("test_rate (tests.test_tax.TestTax.test_rate)", Some("TestTax::test_rate")),
        ("tests.test_tax.TestTax::test_rate", Some("TestTax::test_rate")),
        ("tests/test_vat.py::test_zero", Some("test_zero")),
        ("web/a.test.js > adds", Some("adds")),
        ("tests/test_tax.py", Some("tests/test_tax.py")),
        ("tests/test_tax.py::test_other", Some("tests/test_tax.py")),
        ("the-answer-is-42", None),
        ("test_rate_two", None),
        ("my_test_zero", None),
        ("adds-more", None),
        ("adds what it likes", None),
        ("other/tests_add.sh", None),
        ("", None),
    ] {
        assert_eq!(told(id).as_deref(), name, "{id}");
    }
}

#[test]
fn a_name_is_one_short_line() {
    let long = format!("test('{}', () => {{}});", "long ".repeat(100));
    let held = HeldOutTests::of([("a.test.js", false, long.as_bytes())].into_iter());
    let name = held.named(&"long ".repeat(100)).unwrap().told();
    assert!(name.chars().count() == 121 && name.ends_with('…'), "{name}");
    let name = HeldOutTests::of([("a\n`b`", false, &b""[..])].into_iter());
    assert_eq!(name.named("a\n`b`").unwrap().told(), "a b");
}

#[test]
fn the_digest_is_of_paths_modes_and_contents() {
    let of = |path: &str, mode, text: &str| {
        HeldOutTests::of([(path, mode, text.as_bytes())].into_iter()).digest
    };
    let one = of("a", false, "x");
    assert_eq!(one, of("a", false, "x"));
    for other in [of("b", false, "x"), of("a", true, "x"), of("a", false, "y")] {
        assert_ne!(one, other);
    }
}

struct Case {
    exit: Option<i32>,
    failing: &'static [&'static str],
    visible: VisibleTests,
    was_ended: bool,
    rewrote: bool,
}

const RED: Case = Case {
    exit: Some(1),
    failing: &[],
    visible: VisibleTests::Passed,
    was_ended: false,
    rewrote: false,
};

fn weighed(case: &Case, report: Option<&TestReport>) -> HeldOutRun {
    let failing = case.failing.iter().map(|id| (*id).to_owned()).collect();
    held().weigh(&HeldOutShown {
        exit_code: case.exit,
        was_ended: case.was_ended,
        rewrote: case.rewrote,
        report,
        failing: &failing,
        visible: case.visible,
        visible_report: None,
        is_readable: false,
        is_edited: false,
    })
}

#[test]
fn what_a_run_prints_is_not_told() {
    for (case, line) in [
        (Case { failing: &["tests/add.sh"], ..RED }, "held-out test `tests/add.sh` fails"),
        (Case { failing: &["tests/add.sh", MARKER], ..RED }, "held-out test `tests/add.sh` fails"),
        (RED, "a held-out test failed"),
        (
            Case { failing: &[MARKER], ..RED },
            "a held-out test failed, and one test without a held-out name",
        ),
        (
            Case { exit: Some(42), failing: &["x", MARKER], ..RED },
            "a held-out test failed, and some tests without a held-out name",
        ),
        (Case { exit: None, ..RED }, "a held-out test failed"),
        (Case { was_ended: true, ..RED }, "the held-out tests did not end in time"),
        (
            Case { exit: Some(0), rewrote: true, ..RED },
            "files were changed while the held-out tests ran",
        ),
        (Case { exit: Some(0), failing: &[MARKER], ..RED }, "the held-out tests pass"),
    ] {
        let run = weighed(&case, None);
        assert_eq!(run.sentence(), line);
        assert_eq!(run.passed(), line.ends_with("pass"));
        assert_eq!(run.findings().is_empty(), run.passed());
        let kept = serde_json::to_string(&run).unwrap();
        assert!(!kept.contains(MARKER), "{kept}");
    }
}

#[test]
fn many_failing_tests_are_counted() {
    let names: Vec<String> = (0..30).map(|n| format!("t/{n:02}.sh")).collect();
    let held = HeldOutTests::of(names.iter().map(|name| (name.as_str(), false, &b""[..])));
    let failing: BTreeSet<String> =
        names.into_iter().chain((0..99).map(|n| format!("x{n}"))).collect();
    let run = held.weigh(&HeldOutShown {
        exit_code: Some(1),
        was_ended: false,
        rewrote: false,
        report: None,
        failing: &failing,
        visible: VisibleTests::Passed,
        visible_report: None,
        is_readable: false,
        is_edited: false,
    });
    assert_eq!((run.failing.len(), run.more, run.others), (HELD_OUT_TOLD_MAX, 10, OTHERS_MAX));
    assert!(run.sentence().ends_with("10 more held-out tests fail"), "{}", run.sentence());
}

#[test]
fn a_run_that_ends_amid_its_tests_has_not_passed() {
    let mut report = TestReport::default();
    report.add("tests/add.sh", TestOutcome::Passed);
    assert!(weighed(&Case { exit: Some(0), ..RED }, Some(&report)).passed());
    report.miss("tests/test_vat.py::test_zero");
    assert!(!weighed(&Case { exit: Some(0), ..RED }, Some(&report)).passed());
}

#[test]
fn over_a_red_base_only_a_held_out_name_counts() {
    let of = |failing| {
        let case = Case { failing, visible: VisibleTests::RedAsBase, ..RED };
        weighed(&case, None).only_known
    };
    assert!(of(&["old"]) && of(&[]));
    assert!(!of(&["old", "tests/add.sh"]));
    assert!(!weighed(&RED, None).only_known);
    let ended = Case { was_ended: true, visible: VisibleTests::RedAsBase, ..RED };
    assert!(!weighed(&ended, None).only_known, "a time limit is no failing test");
}

#[test]
fn a_runner_that_leaves_the_held_out_tests_out_is_doubted() {
    let passed = |ids: &[&str]| {
        let mut report = TestReport::default();
        ids.iter().for_each(|id| report.add(id, TestOutcome::Passed));
        weighed(&Case { exit: Some(0), ..RED }, Some(&report))
    };
    let doubts = passed(&["tests/own.py::test_own"]).doubts();
    assert_eq!(doubts.first().map(|doubt| doubt.kind), Some(DoubtKind::WeakProof));
    assert_eq!(passed(&["tests/test_vat.py::test_zero"]).doubts(), []);
    assert_eq!(passed(&[]).doubts(), [], "a runner without names says nothing");
}

#[test]
fn what_weakens_the_holdout_is_told() {
    let run =
        HeldOutRun { readable: true, edited: true, only_known: true, ..HeldOutRun::default() };
    let kinds: Vec<DoubtKind> = run.doubts().iter().map(|doubt| doubt.kind).collect();
    assert_eq!(kinds, [DoubtKind::NoSandbox, DoubtKind::WeakProof, DoubtKind::WeakProof]);
}

#[test]
fn the_whole_is_judged_and_its_parts_are_not() {
    for (flow, is_whole, wanted) in [
        (Flow::Task, false, true),
        (Flow::Queue, false, true),
        (Flow::Plan, false, false),
        (Flow::Plan, true, true),
        (Flow::Goal, false, false),
        (Flow::Goal, true, true),
    ] {
        assert_eq!(is_judged(flow, is_whole), wanted, "{flow:?} {is_whole}");
    }
    let commands = vec![("tests", "make t".to_owned()), ("lint", "make l".to_owned())];
    let held = with_held_out(commands.clone());
    assert_eq!(held, [commands, vec![(HOLDOUT, "make t".to_owned())]].concat());
}

#[test]
fn the_holdout_follows_tests_that_pass_or_are_as_red_as_the_base() {
    let seen = |code: i32, failing: &str, rewrote: &[&str]| SeenCommand {
        name: "tests".to_owned(),
        exit_code: Some(code),
        ended: true,
        failing: [failing.to_owned()].into(),
        rewrote: rewrote.iter().map(|file| (*file).to_owned()).collect(),
        ..SeenCommand::default()
    };
    let base = RoundEvidence { checks: vec![seen(1, "old", &[])], ..RoundEvidence::default() };
    for (seen, wanted) in [
        (seen(0, "", &[]), VisibleTests::Passed),
        (seen(1, "old", &[]), VisibleTests::RedAsBase),
        (seen(1, "new", &[]), VisibleTests::Failed),
        (seen(0, "", &["a.rs"]), VisibleTests::Failed),
    ] {
        assert_eq!(VisibleTests::of(&seen, &base), wanted, "{seen:?}");
    }
}

#[test]
fn held_out_tests_lie_outside_of_what_agents_read() {
    let write = ["/home/u/open".into(), "/held/in".into()];
    let ground = HoldoutGround {
        root: "/home/u/shop".into(),
        git: "/home/u/git/shop.git".into(),
        state: "/home/u/.local/state/a/1f".into(),
        write: &write,
    };
    let fault = |dir: &str| location_fault(dir.into(), &ground);
    for good in ["/home/u/holdout", "/home/u/shopping", "/home/u/open", "/srv/held"] {
        let is_opened = good == "/home/u/open";
        assert_eq!(fault(good).is_some(), is_opened, "{good}");
    }
    for (dir, part) in [
        ("/home/u/shop", "in the checkout"),
        ("/home/u/shop/.autopilot/held", "in the checkout"),
        ("/home/u/shop/.git/held", "in the checkout"),
        ("/home/u/git/shop.git/x", "in the repository"),
        ("/home/u/.local/state/a/1f/x", "in the state directory"),
        ("/home/u", "has the checkout"),
        ("/", "has the checkout"),
        ("/home/u/.local", "has the state directory"),
        ("/held", "`sandbox.write` opens `/held/in`"),
    ] {
        let told = fault(dir).map(|fault| fault.to_string()).unwrap_or_default();
        assert!(told.contains(part), "{dir}: {told}");
    }
}
