//! A run or a task in full, with its evidence, from the records.

mod goal;

pub use goal::{GoalHistory, ShownIteration, ShownStep};

use super::{KnownRun, NamedEntry, QueryError, RunArchive};
use autopilot_core::event::{Outcome, Record};
use autopilot_core::id::TaskId;
use autopilot_core::state::Task;
use autopilot_host::redact::Redactor;
use autopilot_view::history::{PastAttempt, RunHistory, history};
use autopilot_view::sessions::{Session, is_current, sessions};
use autopilot_view::state_json;
use serde_json::{Value, json};

/// Everything known about a run or one of its tasks.
pub struct ShownRun {
    pub known: KnownRun,
    /// The task that is shown; `None` means the whole run.
    only: Option<TaskId>,
    pub history: RunHistory,
    /// The last sessions of the steps.
    pub current: Vec<Session>,
    /// The history of a whole run towards a goal.
    pub goal: Option<GoalHistory>,
    pub redactor: Redactor,
}

/// Finds a run or a task to show; without an id, the newest run.
pub fn show(archive: &RunArchive, id: Option<&str>) -> Result<ShownRun, QueryError> {
    let (known, only) = match archive.named(id)? {
        NamedEntry::Run(known) => (known, None),
        NamedEntry::Task(known, task) => (known, Some(task)),
    };
    let records = archive.records(&known.run.id)?;
    let history = history(&records);
    let has_iterations = known.state.run.flow.has_iterations() && only.is_none();
    Ok(ShownRun {
        current: current(&known, &records),
        goal: has_iterations.then(|| GoalHistory::of(archive, &known, &history, &records)),
        redactor: archive.redactor(&known.state),
        known,
        only,
        history,
    })
}

impl ShownRun {
    /// The task that is shown; `None` means the whole run.
    pub fn only(&self) -> Option<&Task> {
        self.only.map(|id| self.known.state.task(id))
    }

    /// The object `show --json` prints, redacted.
    pub fn to_json(&self) -> Value {
        let mut shown = object(&self.known, self.only(), &self.history, &self.current);
        if let (Value::Object(fields), Some(goal)) = (&mut shown, &self.goal)
            && let Value::Object(more) = json!(goal)
        {
            fields.extend(more);
        }
        self.redactor.redact_json(&mut shown);
        shown
    }
}

/// The last sessions of the steps.
fn current(known: &KnownRun, records: &[Record]) -> Vec<Session> {
    let all = sessions(&known.run.id, records);
    let is_current = |session: &&Session| is_current(session, &all, &known.state);
    all.iter().filter(is_current).cloned().collect()
}

/// The outcome of an attempt in a word.
pub fn outcome_word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed { .. } => "failed",
        Outcome::Broke { .. } => "broke",
        Outcome::Lost => "interrupted",
        Outcome::Quota { .. } => "quota",
        Outcome::Away { .. } => "away",
        Outcome::Revoked => "ended",
        Outcome::Skipped { .. } => "skipped",
    }
}

fn object(
    known: &KnownRun,
    only: Option<&Task>,
    history: &RunHistory,
    current: &[Session],
) -> Value {
    let name = |task: &Task| task.parent.is_some().then(|| task.name().to_owned());
    let is_wanted = |id| only.is_none_or(|only| only.id == id);
    let attempts = history.attempts.iter().filter(|tried| is_wanted(tried.task));
    let remarks = history.remarks.iter().filter(|remark| match (only, remark.task) {
        (None, _) => true,
        (Some(only), task) => task == Some(only.id),
    });
    json!({
        "run": state_json::state_json(&known.state),
        "state": known.word(),
        "task": only.map(|task| task.name()),
        "cost_usd": known.state.run.spent.usd.usd(),
        "attempts": attempts.map(|tried| attempt(tried, name(known.state.task(tried.task))))
            .collect::<Vec<_>>(),
        "sessions": current.iter().filter(|session| is_wanted(session.task)).map(|session| json!({
            "task": name(known.state.task(session.task)),
            "step": session.step.word(),
            "session": session.id,
            "attempt": session.attempt.to_string(),
        })).collect::<Vec<_>>(),
        "remarks": remarks.map(|remark| json!({
            "at": remark.at.rfc3339(),
            "task": remark.task.and_then(|id| name(known.state.task(id))),
            "text": remark.text,
        })).collect::<Vec<_>>(),
    })
}

fn attempt(tried: &PastAttempt, task: Option<String>) -> Value {
    let facts = &tried.facts;
    let why = tried.ended.as_ref().and_then(|(_, outcome)| autopilot_view::why(outcome));
    json!({
        "id": tried.id.to_string(),
        "task": task,
        "step": tried.step.word(),
        "iteration": tried.round,
        "started_at": tried.started.rfc3339(),
        "ended_at": tried.ended.as_ref().map(|(at, _)| at.rfc3339()),
        "outcome": tried.ended.as_ref().map(|(_, outcome)| outcome_word(outcome)),
        "why": why,
        "exit_code": facts.exit,
        "signal": facts.signal,
        "duration": facts.ms as f64 / 1000.0,
        "log_path": facts.log.as_deref().map(state_json::in_root),
        "artifact_path": facts.artifact.as_deref().map(state_json::in_root),
        "verdict": facts.verdict().map(|verdict| verdict.word()),
        "issues_count": facts.issues(),
        "base": facts.base,
        "tree": facts.tree,
        "commit": facts.commit,
        "cost_usd": tried.bill.usd.usd(),
        "tokens_in": tried.bill.tokens_in,
        "tokens_out": tried.bill.tokens_out,
        "used": facts.used.as_deref().map(state_json::used),
        "excused": facts.excused,
        "notes": facts.notes,
    })
}
