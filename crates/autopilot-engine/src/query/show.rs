//! A run or a task in full, with its evidence, from the records.

mod goal;

pub use goal::{GoalHistory, ShownIteration, ShownStep};

use super::{KnownRun, NamedEntry, QueryError, RunArchive};
use autopilot_core::coverage::CoverageCheck;
use autopilot_core::doubt::Doubt;
use autopilot_core::event::{Outcome, Record};
use autopilot_core::id::TaskId;
use autopilot_core::state::{State, Task};
use autopilot_core::test_report::TestTally;
use autopilot_host::redact::Redactor;
use autopilot_view::history::{PastAttempt, Remark, RunHistory, history};
use autopilot_view::sessions::{Session, is_current, sessions};
use autopilot_view::state_json;
use serde::Serialize;
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
        let (state, only) = (&self.known.state, self.only);
        let is_wanted = |id| only.is_none_or(|only| only == id);
        let attempts = self.history.attempts.iter().filter(|tried| is_wanted(tried.task));
        let sessions = self.current.iter().filter(|session| is_wanted(session.task));
        let remarks = self.history.remarks.iter();
        let remarks = remarks.filter(|remark| only.is_none() || remark.task == only);
        let mut shown = json!(ShownObject {
            run: state_json::state_json(state),
            state: self.known.word(),
            task: self.only().map(Task::name),
            cost_usd: state.run.spent.usd.usd(),
            cost_estimated_usd: state.run.spent.estimated.usd(),
            cost_reserved_usd: state.reserved(None).usd(),
            attempts: attempts.map(|tried| ShownAttempt::of(tried, state)).collect(),
            sessions: sessions.map(|session| ShownSession::of(session, state)).collect(),
            remarks: remarks.map(|remark| ShownRemark::of(remark, state)).collect(),
            goal: self.goal.as_ref(),
        });
        self.redactor.redact_json(&mut shown);
        shown
    }
}

#[derive(Serialize)]
struct ShownObject<'a> {
    run: Value,
    state: &'static str,
    task: Option<&'a str>,
    cost_usd: f64,
    cost_estimated_usd: f64,
    cost_reserved_usd: f64,
    attempts: Vec<ShownAttempt<'a>>,
    sessions: Vec<ShownSession<'a>>,
    remarks: Vec<ShownRemark<'a>>,
    #[serde(flatten)]
    goal: Option<&'a GoalHistory>,
}

/// The session that a step is in now.
#[derive(Serialize)]
struct ShownSession<'a> {
    task: Option<&'a str>,
    step: &'static str,
    session: &'a str,
    attempt: String,
}

impl<'a> ShownSession<'a> {
    fn of(session: &'a Session, state: &'a State) -> ShownSession<'a> {
        ShownSession {
            task: name(state, session.task),
            step: session.step.word(),
            session: &session.id,
            attempt: session.attempt.to_string(),
        }
    }
}

#[derive(Serialize)]
struct ShownRemark<'a> {
    at: String,
    task: Option<&'a str>,
    text: &'a str,
}

impl<'a> ShownRemark<'a> {
    fn of(remark: &'a Remark, state: &'a State) -> ShownRemark<'a> {
        let task = remark.task.and_then(|task| name(state, task));
        ShownRemark { at: remark.at.rfc3339(), task, text: &remark.text }
    }
}

#[derive(Serialize)]
struct ShownAttempt<'a> {
    id: String,
    task: Option<&'a str>,
    step: &'static str,
    iteration: u32,
    started_at: String,
    ended_at: Option<String>,
    outcome: Option<&'static str>,
    why: Option<&'a str>,
    exit_code: Option<i32>,
    signal: Option<i32>,
    duration: f64,
    log_path: Option<String>,
    artifact_path: Option<String>,
    verdict: Option<&'static str>,
    issues_count: u64,
    base: Option<&'a str>,
    tree: Option<&'a str>,
    commit: Option<&'a str>,
    cost_usd: f64,
    cost_estimated_usd: f64,
    cost_reserved_usd: f64,
    tokens_in: u64,
    tokens_out: u64,
    used: Option<Value>,
    excused: &'a [String],
    /// A gate ran over what the base had built.
    warm: bool,
    /// The numbers of the tests of a gate's commands.
    tests: &'a [TestTally],
    /// The criteria and the tests that cover them.
    coverage: Option<&'a CoverageCheck>,
    doubts: &'a [Doubt],
    notes: &'a [String],
}

impl<'a> ShownAttempt<'a> {
    fn of(tried: &'a PastAttempt, state: &'a State) -> ShownAttempt<'a> {
        let facts = &tried.facts;
        ShownAttempt {
            id: tried.id.to_string(),
            task: name(state, tried.task),
            step: tried.step.word(),
            iteration: tried.round,
            started_at: tried.started.rfc3339(),
            ended_at: tried.ended.as_ref().map(|(at, _)| at.rfc3339()),
            outcome: tried.ended.as_ref().map(|(_, outcome)| outcome_word(outcome)),
            why: tried.ended.as_ref().and_then(|(_, outcome)| autopilot_view::why(outcome)),
            exit_code: facts.exit,
            signal: facts.signal,
            duration: facts.ms as f64 / 1000.0,
            log_path: facts.log.as_deref().map(state_json::in_root),
            artifact_path: facts.artifact.as_deref().map(state_json::in_root),
            verdict: facts.verdict().map(|verdict| verdict.word()),
            issues_count: facts.issues(),
            base: facts.base.as_deref(),
            tree: facts.tree.as_deref(),
            commit: facts.commit.as_deref(),
            cost_usd: tried.bill.usd.usd(),
            cost_estimated_usd: tried.bill.estimated.usd(),
            cost_reserved_usd: tried.reserved.usd(),
            tokens_in: tried.bill.tokens_in,
            tokens_out: tried.bill.tokens_out,
            used: facts.used.as_deref().map(state_json::used),
            excused: &facts.excused,
            warm: facts.warm,
            tests: &facts.tests,
            coverage: facts.coverage.as_deref(),
            doubts: &facts.doubts,
            notes: &facts.notes,
        }
    }
}

/// The name of a task; none for the run itself.
fn name(state: &State, task: TaskId) -> Option<&str> {
    let task = state.task(task);
    task.parent.is_some().then(|| task.name())
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
        Outcome::Misconfigured { .. } => "misconfigured",
        Outcome::Broke { .. } => "broke",
        Outcome::Lost => "interrupted",
        Outcome::Quota { .. } => "quota",
        Outcome::Away { .. } => "away",
        Outcome::Revoked => "ended",
        Outcome::Skipped { .. } => "skipped",
    }
}
