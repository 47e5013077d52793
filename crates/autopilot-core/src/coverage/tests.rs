//! What counts as covered, case by case.

use super::*;
use crate::doubt::DoubtKind;
use crate::event::{Facts, Outcome};
use crate::evidence::SeenCommand;
use crate::id::{AttemptId, TaskId, Time};
use crate::state::Shown;
use crate::test_report::{ReportSource, TestOutcome};
use crate::three_runs::ThreeRuns;

fn ids(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Two criteria, and tests of every kind.
fn ground() -> CoverageGround {
    CoverageGround {
        criteria: named_criteria(&texts(&["it adds", "it subtracts"]), "sums"),
        red: ids(&["red", "red2"]),
        weak: ids(&["weak"]),
        not_red: ids(&["vacuous"]),
        green: ids(&["red", "red2", "weak", "vacuous", "old"]),
        base_has_names: true,
    }
}

fn answer(
    first: &[&str],
    second: &[&str],
    all_covered: bool,
    uncovered: &[&str],
) -> CoverageAnswer {
    let map = [("AC-1", first), ("AC-2", second)];
    let entry = |(id, tests): (&str, &[&str])| MappedCriterion {
        criterion: id.to_owned(),
        tests: texts(tests),
    };
    CoverageAnswer {
        map: map.into_iter().map(entry).collect(),
        all_covered,
        uncovered: texts(uncovered),
    }
}

#[test]
fn a_map_is_believed_only_of_tests_that_fail_without_the_change() {
    use CoverageVerdict::{Covered, Uncovered};
    for (name, verdict, said) in [
        ("both red", Covered, answer(&["red"], &["red2"], true, &[])),
        ("one test for both", Covered, answer(&["red"], &["red"], true, &[])),
        ("weakly red", Covered, answer(&["red"], &["weak"], true, &[])),
        ("red beside old", Covered, answer(&["red", "old"], &["red2", "none"], true, &[])),
        ("green before", Uncovered, answer(&["red"], &["old"], true, &[])),
        ("vacuous", Uncovered, answer(&["vacuous"], &["red"], true, &[])),
        ("not existing", Uncovered, answer(&["red"], &["none"], true, &[])),
        ("nothing", Uncovered, answer(&["red"], &[], true, &[])),
        ("a no", Uncovered, answer(&["red"], &["red2"], false, &["AC-2"])),
        ("a no beside a yes", Uncovered, answer(&["red"], &["red2"], true, &["AC-1"])),
        ("a no to nothing", Uncovered, answer(&["red"], &["red2"], false, &[])),
        ("no answer", Uncovered, CoverageAnswer { all_covered: true, ..CoverageAnswer::default() }),
    ] {
        let check = check_coverage(&said, &ground());
        assert_eq!(check.verdict, verdict, "{name}: {check:?}");
        assert_eq!(check.outcome() == Outcome::Passed, verdict == Covered, "{name}");
    }
    let mut other = answer(&["red"], &[], true, &[]);
    other.map[1] = MappedCriterion { criterion: "AC-3".to_owned(), tests: texts(&["red2"]) };
    assert_eq!(check_coverage(&other, &ground()).verdict, Uncovered, "another criterion");
}

#[test]
fn an_answer_is_asked_for_again_with_all_its_faults() {
    let told = |answer: &CoverageAnswer| {
        let faults = coverage_faults(answer, &ground());
        faults.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for answer in [
        answer(&["red"], &["weak"], true, &[]),
        // What exists and proves nothing is for the check, not for another turn.
        answer(&["red"], &["old"], true, &[]),
        answer(&["red"], &[], false, &["AC-2"]),
    ] {
        assert_eq!(told(&answer), [""; 0]);
    }
    let mut said = answer(&["none"], &[], true, &["AC-7"]);
    said.map.push(MappedCriterion { criterion: "AC-9".to_owned(), tests: Vec::new() });
    assert_eq!(
        told(&said),
        [
            "/map/0/tests/0: no test `none` passes with the change",
            "/map/2/criterion: there is no criterion `AC-9`",
            "/uncovered/0: there is no criterion `AC-7`",
            "/allCovered: it is true, and the answer has no test for AC-2",
        ]
    );
    let vague = told(&answer(&["red"], &["red"], false, &[]));
    assert_eq!(vague, ["/allCovered: it is false, and `uncovered` names no criterion"]);
}

#[test]
fn criteria_keep_names_of_their_own_where_each_has_one() {
    let of = |acceptance: &[&str]| {
        let named = named_criteria(&texts(acceptance), " the goal ").into_iter();
        named.map(|it| format!("{}={}", it.id, it.text)).collect::<Vec<_>>()
    };
    assert_eq!(of(&["it adds", "it: subtracts"]), ["AC-1=it adds", "AC-2=it: subtracts"]);
    assert_eq!(of(&["AC-3: it adds", "AC-1.2: more"]), ["AC-3=it adds", "AC-1.2=more"]);
    assert_eq!(of(&["AC-3: a", "AC-3: b"]), ["AC-1=AC-3: a", "AC-2=AC-3: b"]);
    assert_eq!(of(&["AC-3: a", "b"]), ["AC-1=AC-3: a", "AC-2=b"]);
    assert_eq!(of(&["AC-x: a"]), ["AC-1=AC-x: a"]);
    assert_eq!(of(&[]), ["AC-1=the goal"]);
}

fn evidence(tests: &[(&str, TestOutcome)], runs: Option<ThreeRuns>) -> RoundEvidence {
    let mut report = TestReport { source: ReportSource::Runner, ..TestReport::default() };
    tests.iter().for_each(|(id, outcome)| report.add(id, *outcome));
    let seen = SeenCommand {
        name: "tests".to_owned(),
        report: Some(Box::new(report)),
        ..SeenCommand::default()
    };
    let three_runs = runs.map(Box::new);
    RoundEvidence { checks: vec![seen], three_runs, ..RoundEvidence::default() }
}

#[test]
fn only_names_of_tests_that_pass_with_the_change_can_cover_anything() {
    use TestOutcome::{Failed, Passed, Skipped};
    let runs = ThreeRuns {
        proven_red: ids(&["new", "skipped", "tests/a.sh"]),
        weakly_red: ids(&["weak", "tests/b.sh"]),
        not_red: ids(&["vacuous"]),
        ..ThreeRuns::default()
    };
    let passed = ["new", "weak", "vacuous", "old", "repaired"].map(|id| (id, Passed));
    let green = evidence(&[&passed[..], &[("skipped", Skipped)]].concat(), Some(runs));
    let base = evidence(&[("repaired", Failed), ("gone", Failed), ("old", Passed)], None);
    let of = |change_base| {
        let seen = CoverageSeen { green: &green, base: &base, change_base, run_base: "b0" };
        CoverageGround::of(Vec::new(), &seen)
    };
    let on_base = of("b0");
    assert_eq!(on_base.red, ids(&["new", "repaired"]), "it failed on the base of the run");
    assert_eq!(on_base.weak, ids(&["weak"]));
    assert_eq!(on_base.not_red, ids(&["vacuous"]));
    assert_eq!(of("b1").red, ids(&["new"]), "another task may have repaired it");
}

#[test]
fn where_no_test_is_red_or_has_a_name_nobody_is_asked() {
    let none = CoverageGround { red: ids(&[]), weak: ids(&[]), ..ground() };
    let check = none.settled().unwrap();
    assert_eq!(check.verdict, CoverageVerdict::NothingIsRed);
    let why = "no test fails without the change, so nothing proves AC-1, AC-2";
    assert_eq!(check.outcome(), Outcome::Failed { why: why.to_owned() });
    let said = answer(&["old"], &["old"], true, &[]);
    assert_eq!(check_coverage(&said, &none), check, "whatever is said");
    let nameless = CoverageGround { green: ids(&[]), ..none };
    let check = nameless.settled().unwrap();
    assert!(matches!(check.outcome(), Outcome::Failed { .. }), "the base had names");
    let check = CoverageGround { base_has_names: false, ..nameless }.settled().unwrap();
    let Outcome::Misconfigured { why } = check.outcome() else { panic!("{check:?}") };
    assert!(why.contains("`gates.reports`"), "{why}");
    assert_eq!(ground().settled(), None);
}

#[test]
fn people_read_what_covers_a_criterion_and_what_is_missing() {
    let all = ids(&["a", "b", "c", "d", "e"]);
    let many =
        CriterionProof { criterion: "AC-1".to_owned(), tests: all, ..CriterionProof::default() };
    assert_eq!(many.words(), "AC-1: covered by `a`, `b`, `c` and 2 more");
    let check = check_coverage(&answer(&["red", "weak"], &["weak"], true, &[]), &ground());
    assert_eq!(
        coverage_notes(&check),
        [
            "AC-1: covered by `red`, and weakly by `weak`, which did not compile or load without the change",
            "AC-2: weakly covered by `weak`, which did not compile or load without the change",
        ]
    );
    let check = check_coverage(&answer(&["old", "none"], &[], true, &[]), &ground());
    insta::assert_snapshot!(check.why(), @"criteria without a test that fails without the change: AC-1 (“it adds”): `none` does not pass with the change, or does not exist, `old` does not fail without the change; AC-2 (“it subtracts”): no test of the change covers it");
    assert_eq!(coverage_notes(&check), [""; 0]);
    let doubts = coverage_doubts(&ground());
    assert_eq!(doubts.len(), 1);
    assert_eq!((doubts[0].kind, doubts[0].test.as_deref()), (DoubtKind::NotRed, Some("vacuous")));
}

#[test]
fn a_base_whose_tests_have_no_names_is_told_where_names_are_needed() {
    let named = evidence(&[("a", TestOutcome::Passed)], None);
    let nameless = evidence(&[], None);
    let asked = [Switch::RedGreen].into();
    assert_eq!(note_of_base(&asked, &named), None);
    assert!(note_of_base(&asked, &nameless).is_some());
    assert!(note_of_base(&asked, &RoundEvidence::default()).is_some());
    assert_eq!(note_of_base(&BTreeSet::new(), &nameless), None);
}

fn shown(outcome: Outcome, verdict: Option<CoverageVerdict>, round: u32) -> Shown {
    let missing = CriterionProof::missing(&ground().criteria[0], "nothing".to_owned());
    let check = |verdict| CoverageCheck {
        verdict,
        criteria: vec![missing.clone()],
        ..CoverageCheck::default()
    };
    let facts = Facts { coverage: verdict.map(check).map(Box::new), ..Facts::default() };
    Shown { id: AttemptId { seq: 1, place: 0 }, round, at: Time(0), outcome, facts }
}

fn failed() -> Outcome {
    Outcome::Failed { why: "it said no".to_owned() }
}

fn task(validated: Outcome, covered: Option<Shown>) -> Task {
    let mut task = Task { id: TaskId(1), round: 1, ..Task::default() };
    task.results.insert(Step::Validate, shown(validated, None, 1));
    task.results.extend(covered.map(|shown| (Step::Coverage, shown)));
    task
}

#[test]
fn a_round_needs_a_check_that_found_every_criterion_covered() {
    use CoverageVerdict::{Covered, NothingIsRed, Uncovered};
    let mut state = State::default();
    let ok = || Outcome::Passed;
    let of = |state: &State, task: &Task| refusal_of(state, task).is_some();
    let unchecked = task(ok(), None);
    assert!(!of(&state, &unchecked), "nobody asked for it");
    state.run.switches = [Switch::RedGreen].into();
    for (refused, covered) in [
        (true, None),
        (false, Some(shown(ok(), Some(Covered), 1))),
        (true, Some(shown(failed(), Some(Covered), 1))),
        (true, Some(shown(ok(), None, 1))),
        (true, Some(shown(ok(), Some(Uncovered), 1))),
        (true, Some(shown(failed(), Some(NothingIsRed), 1))),
    ] {
        let case = format!("{covered:?}");
        assert_eq!(of(&state, &task(ok(), covered)), refused, "{case}");
    }
    // What failed, failed already; and a repair is proven by its commands.
    assert!(!of(&state, &task(failed(), None)));
    assert_eq!(nothing_to_cover(&unchecked), None);
    let mut repair = unchecked;
    repair.spec.mends = true;
    assert!(!of(&state, &repair) && nothing_to_cover(&repair).is_some());
}

#[test]
fn what_is_not_covered_is_repaired_with_its_text() {
    use CoverageVerdict::{Covered, NothingIsRed, Uncovered};
    let of = |verdict, round| {
        let mut task = task(Outcome::Passed, Some(shown(failed(), Some(verdict), 1)));
        task.round = round;
        let found = findings_of(&task).into_iter();
        found.map(|found| found.message).collect::<Vec<_>>()
    };
    let first = "AC-1 (“it adds”) is not covered: nothing";
    assert_eq!(of(Uncovered, 2), [first]);
    assert_eq!(of(NothingIsRed, 2), ["no test fails without the change", first]);
    assert_eq!(of(Covered, 2), [""; 0]);
    assert_eq!(of(Uncovered, 3), [""; 0], "of an older round");
}
