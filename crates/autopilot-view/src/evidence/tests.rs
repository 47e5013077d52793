//! The statement as a whole, and notes in which others have written.

use super::*;
use autopilot_core::doubt::Doubt;
use autopilot_core::event::{AnsweringAgent, Facts, Outcome, StepAnswer, TaskEnd};
use autopilot_core::evidence::{RoundEvidence, SeenCommand};
use autopilot_core::flaky::FirstTry;
use autopilot_core::gate_book::GateMark;
use autopilot_core::id::{TaskId, Time};
use autopilot_core::state::{Run, Shown, State, Status, Task};
use autopilot_core::step::Step;

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
