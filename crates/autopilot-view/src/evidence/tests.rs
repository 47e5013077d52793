//! The statement as a whole, and notes in which others have written.

use super::*;
use autopilot_core::doubt::Doubt;
use autopilot_core::event::{AnsweringAgent, Facts, Outcome, StepAnswer, TaskEnd};
use autopilot_core::evidence::{RoundEvidence, SeenCommand};
use autopilot_core::flaky::FirstTry;
use autopilot_core::gate_book::GateMark;
use autopilot_core::id::{TaskId, Time};
use autopilot_core::pipeline::Switch;
use autopilot_core::state::{Run, Shown, State, Status, Task};
use autopilot_core::step::Step;

/// A change of what is told.
type Forgery<'a> = &'a dyn Fn(&mut EvidencePredicate);

fn shown(seq: u64, facts: Facts) -> Shown {
    let id = AttemptId { seq, place: 0 };
    Shown { id, round: 2, at: Time(seq as i64 * 1000), outcome: Outcome::Passed, facts }
}

fn evidence() -> String {
    let tests = SeenCommand {
        name: "tests".to_owned(),
        command: "sh test.sh".to_owned(),
        exit_code: Some(0),
        output: "not told".to_owned(),
        log: "logs/tests.log".to_owned(),
        log_sha256: Some("ab".repeat(32)),
        ended: true,
        ms: Some(1200),
        first_try: Some(FirstTry { failing: ["a::b".to_owned()].into(), log: "x".to_owned() }),
        ..SeenCommand::default()
    };
    let lint = SeenCommand {
        name: "lint".to_owned(),
        command: "lint".to_owned(),
        exit_code: Some(1),
        ended: true,
        ..SeenCommand::default()
    };
    serde_json::to_string(&RoundEvidence { checks: vec![tests, lint], ..RoundEvidence::default() })
        .unwrap()
}

fn task() -> Task {
    let mark = GateMark {
        tree: Some("1".repeat(40)),
        evidence: Some("hash".to_owned()),
        ..GateMark::default()
    };
    let validated = Facts {
        gate: Some(Box::new(mark)),
        excused: vec!["lint failed with exit code 1".to_owned()],
        doubts: vec![Doubt::new(DoubtKind::Claim, "it says so").about_file("a.rs")],
        ..Facts::default()
    };
    let reviewed = Facts {
        said: Some(StepAnswer::Review { verdict: Verdict::RequestChanges, issues: 2, blocking: 0 }),
        by: Some(AnsweringAgent {
            role: "reviewer".to_owned(),
            mode: "script".to_owned(),
            model: Some("m-1".to_owned()),
        }),
        ..Facts::default()
    };
    let merged =
        Facts { commit: Some("3".repeat(40)), tip: Some("4".repeat(40)), ..Facts::default() };
    let mut task = Task {
        id: TaskId(1),
        parent: Some(TaskId::ROOT),
        round: 2,
        tree: Some("1".repeat(40)),
        started_at: Some(Time(500)),
        status: Status::Settled(TaskEnd::Closed),
        results: [
            (Step::Build, Shown { round: 1, ..shown(1, Facts::default()) }),
            (Step::Validate, shown(3, validated)),
            (Step::Review, shown(4, reviewed)),
            (Step::Merge, shown(6, merged)),
        ]
        .into(),
        skipped: [(Step::Uat, "no `uat` command is configured".to_owned())].into(),
        ..Task::default()
    };
    task.spec.name = "say-done".to_owned();
    task.spec.title = "Say done".to_owned();
    task
}

fn run() -> Run {
    Run {
        id: "r1".to_owned(),
        branch: "autopilot/run-r1".to_owned(),
        base: "0".repeat(40),
        ..Run::default()
    }
}

fn merged() -> MergedCommit {
    MergedCommit { commit: "4".repeat(40), tree: "1".repeat(40) }
}

fn read(hash: &str) -> Option<String> {
    (hash == "hash").then(evidence)
}

fn source() -> EvidenceSource<'static> {
    EvidenceSource { read: &read, version: "1.2.3" }
}

fn told() -> EvidenceStatement {
    statement_of_merge(&run(), &task(), &merged(), source()).unwrap()
}

#[test]
fn the_evidence_of_a_merge_in_full() {
    let mut state = State::default();
    state.run = run();
    state.run.switches.insert(Switch::ThreeRuns);
    state.run.tip = Some("4".repeat(40));
    let root = Task { id: TaskId::ROOT, ..Task::default() };
    state.tasks = vec![root, task()];
    let told = with_whole(told(), &state, source());
    insta::assert_snapshot!(told.note(None).unwrap());
}

#[test]
fn a_task_whose_merge_is_not_on_record_has_no_evidence() {
    for outcome in [Outcome::Revoked, Outcome::Skipped { why: "it stands".to_owned() }] {
        let mut task = task();
        task.results.insert(Step::Merge, Shown { outcome, ..shown(6, Facts::default()) });
        assert_eq!(statement_of_merge(&run(), &task, &merged(), source()), None);
    }
}

#[test]
fn what_people_wrote_into_a_note_stays_below_the_statement() {
    let (told, words) = (told(), "Reviewed by Ada\n\n{not json}");
    let first = told.note(Some(words)).unwrap();
    assert!(first.ends_with(&format!("}}\n\n{words}\n")), "{first}");
    assert_eq!(EvidenceStatement::read(&first), Some(told.clone()));
    let mut later = told;
    later.predicate.waived.push("x".to_owned());
    let second = later.note(Some(&first)).unwrap();
    assert_eq!(second.matches("Reviewed by Ada").count(), 1);
    assert_eq!(EvidenceStatement::read(&second), Some(later.clone()));
    assert_eq!(later.note(Some(&second)).unwrap(), second, "nothing changes the second time");
    assert_eq!(EvidenceStatement::read(words), None);
}

fn commit() -> CommitFacts {
    CommitFacts {
        commit: "4".repeat(40),
        tree: "1".repeat(40),
        parents: vec!["0".repeat(40), "3".repeat(40)],
        task_tree: Some("1".repeat(40)),
        run: Some("r1".to_owned()),
    }
}

#[test]
fn a_note_that_differs_from_its_commit_is_wrong() {
    assert_eq!(faults(&told(), &commit()), []);
    let other = || "9".repeat(40);
    let cases: [(CommitFacts, &str); 5] = [
        (CommitFacts { commit: other(), ..commit() }, "about another commit"),
        (CommitFacts { tree: other(), ..commit() }, "is not that of the commit"),
        (CommitFacts { parents: vec![other()], ..commit() }, "did not merge"),
        (CommitFacts { task_tree: Some(other()), ..commit() }, "not that of its commit"),
        (CommitFacts { run: Some("r2".to_owned()), ..commit() }, "another run"),
    ];
    for (is, text) in cases {
        let found = faults(&told(), &is);
        assert!(
            matches!(&found[..], [EvidenceFault::Wrong(said)] if said.contains(text)),
            "{found:?}"
        );
    }
    let gone = faults(&told(), &CommitFacts { task_tree: None, ..commit() });
    assert!(matches!(&gone[..], [EvidenceFault::Unknown(_)]), "{gone:?}");
    let foreign = EvidenceStatement { predicate_type: "x".to_owned(), ..told() };
    assert!(matches!(&faults(&foreign, &commit())[..], [EvidenceFault::Unknown(_)]));
}

#[test]
fn a_note_that_contradicts_itself_is_wrong() {
    let cases: [(Forgery<'_>, &str); 4] = [
        (&|told| told.gates[0].excused.clear(), "a command of it failed"),
        (&|told| told.gates[0].outcome = "failed".to_owned(), "attempt 3.0 failed"),
        (&|told| told.gates[0].tree = Some("9".repeat(40)), "another tree than the task's"),
        (&|told| told.gates[0].commands[0].exit_code = Some(1), "a command of it failed"),
    ];
    for (change, text) in cases {
        let mut told = told();
        change(&mut told.predicate);
        let found = faults(&told, &commit());
        let is_said = found.iter().any(|fault| fault.text().contains(text));
        assert!(is_said, "{text}: {found:?}");
    }
}

#[test]
fn every_part_but_the_version_is_compared_with_the_journal() {
    let changes: [(Forgery<'_>, &[&str]); 9] = [
        (&|told| told.tool.version = "9".to_owned(), &[]),
        (&|told| told.run.flow = "goal".to_owned(), &["the run"]),
        (&|told| told.task = None, &["the task"]),
        (&|told| told.gates[0].commands[0].log_sha256 = None, &["the gates"]),
        (&|told| told.reviews[0].verdict = Some(Verdict::Approve), &["the reviews"]),
        (&|told| told.acceptance = None, &["the acceptance"]),
        (&|told| told.waived.push("x".to_owned()), &["what was waived"]),
        (&|told| told.doubts.clear(), &["the doubts"]),
        (&|told| told.whole = Some(whole()), &["the whole result"]),
    ];
    for (change, parts) in changes {
        let mut forged = told().predicate;
        change(&mut forged);
        assert_eq!(differences(&forged, &told().predicate), parts);
    }
}

fn whole() -> EvidenceWhole {
    EvidenceWhole {
        proof: "cold".to_owned(),
        gates: Vec::new(),
        reviews: Vec::new(),
        coverage: Vec::new(),
        acceptance: None,
        waived: Vec::new(),
        doubts: Vec::new(),
    }
}

#[test]
fn the_tests_of_each_criterion_are_told_and_one_without_is_wrong() {
    use autopilot_core::coverage::{CoverageCheck, CoverageVerdict, CriterionProof};
    let proof = CriterionProof {
        criterion: "AC-1".to_owned(),
        text: "it adds".to_owned(),
        tests: ["a::adds".to_owned()].into(),
        weak_tests: ["b::adds".to_owned()].into(),
        missing: None,
    };
    let verdict = CoverageVerdict::Covered;
    let check = CoverageCheck { verdict, criteria: vec![proof], ..CoverageCheck::default() };
    let facts = Facts { coverage: Some(Box::new(check)), ..Facts::default() };
    let mut task = task();
    task.results.insert(Step::Coverage, shown(5, facts));
    let told = statement_of_merge(&run(), &task, &merged(), source()).unwrap();
    let json = serde_json::to_value(&told.predicate.coverage).unwrap();
    let row = serde_json::json!({
        "criterion": "AC-1", "text": "it adds", "tests": ["a::adds"], "weakTests": ["b::adds"],
    });
    assert_eq!(json, serde_json::json!([row]));
    assert_eq!(faults(&told, &commit()), []);
    let mut forged = told.clone();
    forged.predicate.coverage[0].tests.clear();
    assert_eq!(faults(&forged, &commit()), [], "a weak one is one");
    assert_eq!(differences(&forged.predicate, &told.predicate), ["the coverage"]);
    forged.predicate.coverage[0].weak_tests.clear();
    assert_eq!(
        faults(&forged, &commit()),
        [EvidenceFault::Wrong("no test covers AC-1".to_owned())]
    );
}

#[test]
fn a_result_that_failed_from_nothing_or_was_proven_on_another_tree_is_wrong() {
    let mut forged = told();
    forged.predicate.whole = Some(EvidenceWhole { proof: "failed".to_owned(), ..whole() });
    let text = "the result failed when it was proven from nothing";
    assert_eq!(faults(&forged, &commit()), [EvidenceFault::Wrong(text.to_owned())]);
    let gate = EvidenceGate { tree: Some("9".repeat(40)), ..told().predicate.gates.remove(0) };
    forged.predicate.whole = Some(EvidenceWhole { gates: vec![gate], ..whole() });
    let text = "a gate of the whole ran on another tree than the result's";
    assert_eq!(faults(&forged, &commit()), [EvidenceFault::Wrong(text.to_owned())]);
}
