//! The runs of a repository, newest first.

use super::{KnownRun, QueryError, RunArchive, Standing};
use autopilot_core::event::Bill;
use autopilot_core::id::{Micros, Time};
use autopilot_journal::JournalRun;
use autopilot_view::{self as view, ExitWord};
use serde::Serialize;

/// Runs that are searched for those started since a time.
const RUNS_SEARCHED_MAX: usize = 100_000;

/// One run in the list, as `runs --json` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct RunRow {
    pub run_id: String,
    pub mode: String,
    pub title: String,
    pub state: &'static str,
    pub live: bool,
    pub started_at: String,
    pub last_transition_at: String,
    /// Seconds of work on the run.
    pub duration: f64,
    pub cost_usd: f64,
    pub cost_estimated_usd: f64,
    pub cost_reserved_usd: f64,
    pub cost_complete: bool,
    pub tasks_done: usize,
    pub tasks_total: usize,
    pub iterations: u32,
    pub outcome: Option<&'static str>,
    pub branch_name: String,
    #[serde(skip)]
    pub active_ms: u64,
    #[serde(skip)]
    pub spent: Bill,
    #[serde(skip)]
    pub reserved: Micros,
}

/// The newest runs, at most `runs_max`, started since a time.
pub fn runs(
    archive: &RunArchive,
    runs_max: usize,
    since: Option<Time>,
) -> Result<Vec<RunRow>, QueryError> {
    let row = |run| {
        let known = archive.tell(run)?;
        let title = archive.redactor(&known.state).redact(&known.run.title).into_owned();
        Ok(RunRow::of(&known, title))
    };
    begun_since(archive, runs_max, since)?.into_iter().map(row).collect()
}

impl RunRow {
    fn of(known: &KnownRun, title: String) -> RunRow {
        let (tasks_done, tasks_total) = tasks(known);
        let (run, reserved) = (&known.state.run, known.state.reserved(None));
        RunRow {
            run_id: known.run.id.clone(),
            mode: known.run.mode.clone(),
            title,
            state: known.word(),
            live: known.is_live(),
            started_at: Time(known.run.created_at_ms).rfc3339(),
            last_transition_at: run.moved_at.rfc3339(),
            duration: run.active_ms as f64 / 1000.0,
            cost_usd: run.spent.usd.usd(),
            cost_estimated_usd: run.spent.estimated.usd(),
            cost_reserved_usd: reserved.usd(),
            cost_complete: run.spent.is_complete(),
            tasks_done,
            tasks_total,
            iterations: iterations(known),
            outcome: outcome(known),
            branch_name: run.branch.clone(),
            active_ms: run.active_ms,
            spent: run.spent,
            reserved,
        }
    }
}

/// The runs started since a time, newest first, at most `runs_max`.
pub(super) fn begun_since(
    archive: &RunArchive,
    runs_max: usize,
    since: Option<Time>,
) -> Result<Vec<JournalRun>, QueryError> {
    let searched_max = if since.is_some() { RUNS_SEARCHED_MAX } else { runs_max };
    let mut runs = archive.runs(searched_max.max(runs_max))?;
    if let Some(since) = since {
        runs.retain(|run| run.created_at_ms >= since.0);
    }
    runs.truncate(runs_max);
    Ok(runs)
}

/// The iterations of a goal, or else the most that any task took.
fn iterations(known: &KnownRun) -> u32 {
    let state = &known.state;
    let of_tasks = || view::leaves(state).map(|task| task.round).max();
    view::iteration(state).map(|(round, _)| round).or_else(of_tasks).unwrap_or(0)
}

/// The outcome of the run in a word; `None` while it is open.
fn outcome(known: &KnownRun) -> Option<&'static str> {
    match known.standing() {
        Standing::Live { .. } | Standing::Rests | Standing::Interrupted => None,
        Standing::Abandoned => Some("abandoned"),
        Standing::Over => Some(match ExitWord::of(&known.state) {
            ExitWord::Done => "done",
            ExitWord::Paused => return None,
            ExitWord::Failed => "failed",
            ExitWord::NotConverged => "not_converged",
            ExitWord::PushFailed => "push_failed",
            ExitWord::Misconfigured => "misconfigured",
        }),
    }
}

fn tasks(known: &KnownRun) -> (usize, usize) {
    let all = view::leaves(&known.state).count();
    (view::leaves(&known.state).filter(|task| task.is_closed()).count(), all)
}
