//! The fold of one merged task.

use super::coverage::coverage;
use super::three_runs::three_runs;
use super::{
    EvidenceAcceptance, EvidenceCommand, EvidenceDoubt, EvidenceGate, EvidenceKind,
    EvidencePredicate, EvidenceReview, EvidenceRun, EvidenceStatement, EvidenceSubject,
    EvidenceTask, EvidenceTests, EvidenceTool, PREDICATE_TYPE, STATEMENT_TYPE, SubjectDigest,
};
use autopilot_core::doubt::{Doubt, ranked};
use autopilot_core::event::{Outcome, Verdict};
use autopilot_core::evidence::{RoundEvidence, SeenCommand};
use autopilot_core::state::{Run, Shown, Task};
use autopilot_core::step::Step;
use autopilot_core::three_runs::doubts_of;

/// The command that fails when it changes files; another that does is told in a doubt.
const FORMAT: &str = "format";

/// A commit of the run's branch that merged the work of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedCommit {
    pub commit: String,
    pub tree: String,
}

/// What the fold needs besides the state.
#[derive(Clone, Copy)]
pub struct EvidenceSource<'a> {
    /// Reads a text of the journal by its hash.
    pub read: &'a dyn Fn(&str) -> Option<String>,
    /// The version of this program.
    pub version: &'a str,
}

/// The statement about the commit that merged a task. `task` is as it was with its merge on record.
pub fn statement_of_merge(
    run: &Run,
    task: &Task,
    merged: &MergedCommit,
    source: EvidenceSource<'_>,
) -> Option<EvidenceStatement> {
    let merge = task.shown(Step::Merge).filter(|merge| merge.outcome == Outcome::Passed)?;
    let own_tree = task.shown(Step::Validate).and(task.tree.as_deref());
    let gates = [
        task.shown(Step::Validate).map(|it| gate(EvidenceKind::Task, it, own_tree, source)),
        task.shown(Step::Prove).map(|it| gate(EvidenceKind::LastWord, it, own_tree, source)),
        // A task that is merged onto its own base has nothing to prove once more.
        (merge.facts.answer.as_ref()).map(|_| EvidenceGate {
            ended_at: None,
            ..gate(EvidenceKind::Merge, merge, None, source)
        }),
    ];
    let task_facts = EvidenceTask {
        name: task.name().to_owned(),
        title: task.spec.title.clone(),
        iteration: task.round,
        attempt: merge.id,
        commit: merge.facts.commit.clone()?,
        tree: task.tree.clone(),
        started_at: task.started_at.map(|at| at.rfc3339()),
    };
    let predicate = EvidencePredicate {
        task: Some(task_facts),
        gates: gates.into_iter().flatten().collect(),
        reviews: task
            .shown(Step::Review)
            .and_then(|it| review(Step::Review, it))
            .into_iter()
            .collect(),
        coverage: task.shown(Step::Coverage).map(coverage).unwrap_or_default(),
        acceptance: acceptance(task, own_tree, source),
        waived: waived(task),
        doubts: doubts(run, task),
        ..empty(run, source)
    };
    Some(statement(run, merged, predicate))
}

/// A statement about a commit of the run's branch.
pub(super) fn statement(
    run: &Run,
    merged: &MergedCommit,
    predicate: EvidencePredicate,
) -> EvidenceStatement {
    let digest = SubjectDigest { git_commit: merged.commit.clone(), git_tree: merged.tree.clone() };
    EvidenceStatement {
        statement_type: STATEMENT_TYPE.to_owned(),
        subject: vec![EvidenceSubject { name: run.branch.clone(), digest }],
        predicate_type: PREDICATE_TYPE.to_owned(),
        predicate,
    }
}

/// A predicate that says only which run it is about.
pub(super) fn empty(run: &Run, source: EvidenceSource<'_>) -> EvidencePredicate {
    EvidencePredicate {
        run: EvidenceRun {
            id: run.id.clone(),
            flow: run.flow.word().to_owned(),
            branch: run.branch.clone(),
            base: run.base.clone(),
            started_at: run.started_at.rfc3339(),
        },
        task: None,
        gates: Vec::new(),
        reviews: Vec::new(),
        coverage: Vec::new(),
        acceptance: None,
        waived: Vec::new(),
        doubts: Vec::new(),
        whole: None,
        tool: EvidenceTool { name: "autopilot".to_owned(), version: source.version.to_owned() },
    }
}

pub(super) fn gate(
    kind: EvidenceKind,
    shown: &Shown,
    tree: Option<&str>,
    source: EvidenceSource<'_>,
) -> EvidenceGate {
    let mark = shown.facts.gate.as_deref();
    let seen = mark.and_then(|mark| mark.evidence.as_deref()).or(shown.facts.answer.as_deref());
    let text = seen.and_then(|hash| (source.read)(hash)).unwrap_or_default();
    let seen: RoundEvidence = serde_json::from_str(&text).unwrap_or_default();
    // The record of a gate has its commands alone; what ran beside it is in the answer of the attempt.
    let answer = shown.facts.answer.as_deref().and_then(|hash| (source.read)(hash));
    let answer: RoundEvidence =
        answer.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let on = mark.and_then(|mark| mark.tree.as_deref()).or(tree);
    EvidenceGate {
        kind,
        attempt: shown.id,
        outcome: outcome(&shown.outcome).to_owned(),
        tree: on.map(str::to_owned),
        warm: shown.facts.warm,
        taken_from: mark.and_then(|mark| mark.taken),
        commands: seen.checks.iter().map(command).collect(),
        three_runs: answer.three_runs.as_deref().map(three_runs).map(Box::new),
        excused: shown.facts.excused.clone(),
        ended_at: Some(shown.at.rfc3339()),
    }
}

pub(super) fn command(seen: &SeenCommand) -> EvidenceCommand {
    let held_out = seen.holdout.as_deref();
    EvidenceCommand {
        name: seen.name.clone(),
        command: seen.command.clone(),
        exit_code: seen.exit_code,
        passed: seen.is_exit_zero()
            && seen.ended
            && !seen.is_incomplete(None)
            && !(seen.changed && seen.name == FORMAT),
        tests: seen.report.as_deref().and_then(EvidenceTests::of),
        duration_ms: seen.ms,
        log_sha256: seen.log_sha256.clone(),
        failing: seen
            .failing
            .iter()
            .chain(held_out.iter().flat_map(|run| &run.failing))
            .cloned()
            .collect(),
        flaky: seen.first_try.as_ref().map(|first| first.failing.iter().cloned().collect()),
        held_out_sha256: held_out.map(|run| run.digest.clone()),
    }
}

pub(super) fn review(step: Step, shown: &Shown) -> Option<EvidenceReview> {
    if matches!(shown.outcome, Outcome::Skipped { .. }) {
        return None;
    }
    let (facts, verdict) = (&shown.facts, shown.facts.verdict());
    let by = facts.by.as_ref();
    let role = step.role().map(|role| role.word().to_owned()).unwrap_or_default();
    Some(EvidenceReview {
        attempt: shown.id,
        step: step.word().to_owned(),
        role: by.map_or(role, |by| by.role.clone()),
        agent: by.map(|by| by.mode.clone()),
        model: by.and_then(|by| by.model.clone()),
        verdict,
        issues: facts.issues(),
        overruled: verdict == Some(Verdict::RequestChanges),
    })
}

pub(super) fn acceptance(
    task: &Task,
    tree: Option<&str>,
    source: EvidenceSource<'_>,
) -> Option<EvidenceAcceptance> {
    let skipped = |why: &String| {
        let why = Some(why.clone());
        EvidenceAcceptance { outcome: "skipped".to_owned(), why, gate: None }
    };
    if let Some(why) = task.skipped.get(&Step::Uat) {
        return Some(skipped(why));
    }
    let shown = task.shown(Step::Uat)?;
    Some(EvidenceAcceptance {
        outcome: outcome(&shown.outcome).to_owned(),
        why: crate::why(&shown.outcome).map(str::to_owned),
        gate: Some(gate(EvidenceKind::Acceptance, shown, tree, source)),
    })
}

/// The judgements that were skipped for a task. Why nothing was accepted is said there.
fn waived(task: &Task) -> Vec<String> {
    let why = task.skipped.get(&Step::Review);
    why.map(|why| format!("review skipped: {why}")).into_iter().collect()
}

fn doubts(run: &Run, task: &Task) -> Vec<EvidenceDoubt> {
    let shown = task.results.keys().filter_map(|step| task.shown(*step));
    let open = doubts_of(run.limits.yardstick_changes, task);
    let told = shown.flat_map(|shown| shown.facts.doubts.iter().cloned());
    let all: Vec<Doubt> = told.chain(open).collect();
    ranked(all).into_iter().map(doubt).collect()
}

pub(super) fn doubt(doubt: Doubt) -> EvidenceDoubt {
    let Doubt { kind, text, file, test } = doubt;
    EvidenceDoubt { kind, text, file, test }
}

fn outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Skipped { .. } => "skipped",
        Outcome::Failed { .. }
        | Outcome::Misconfigured { .. }
        | Outcome::Broke { .. }
        | Outcome::Lost
        | Outcome::Quota { .. }
        | Outcome::Away { .. }
        | Outcome::Revoked => "failed",
    }
}
