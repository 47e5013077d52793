//! Statistics over runs: how they ended, and the iterations, time and money of their tasks.

mod figure;
mod saving;

pub use figure::{FigureSummary, Figures};
pub use saving::{SavingFigures, Savings, SparedAttempts};

use super::runs::begun_since;
use super::{KnownRun, QueryError, RunArchive};
use crate::store;
use autopilot_core::event::{Bill, Event, Outcome};
use autopilot_core::id::{Micros, Time};
use autopilot_core::state::Task;
use autopilot_core::step::Step;
use autopilot_journal::{JournalHistory, JournalRun};
use autopilot_view as view;
use saving::SavingReader;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The default number of runs.
const RUNS_USUAL: usize = 1_000;
/// Maximum number of records read over all runs; older runs are left out and counted.
pub const RECORDS_MAX: u64 = 500_000;
/// Records read from the journal at a time.
const READ_MAX: usize = 4_096;
const SECOND_MS: f64 = 1e3;
const DOLLAR_MICROS: f64 = 1e6;

/// Statistics over the newest runs, at most `runs_max`, started since a time.
pub fn stats(
    archive: &RunArchive,
    runs_max: Option<usize>,
    since: Option<Time>,
) -> Result<RunStats, QueryError> {
    let mut sums = RunStats::default();
    let runs_max = runs_max.unwrap_or(RUNS_USUAL);
    // One more run tells whether there are more.
    let mut runs = begun_since(archive, runs_max.saturating_add(1), since)?;
    sums.more_runs = runs.len() > runs_max;
    runs.truncate(runs_max);
    let mut records = 0;
    for run in runs {
        // The newest run counts however long it is.
        if records > 0 && records + run.last_seq > RECORDS_MAX {
            sums.left_out += 1;
            continue;
        }
        records += run.last_seq;
        let saved = sums.steps_of(archive, &run)?;
        let known = archive.tell(run)?;
        saved.add_to(&mut sums.savings, &known.state);
        sums.add(&known);
    }
    Ok(sums)
}

/// Statistics over many runs.
#[derive(Default)]
pub struct RunStats {
    /// The number of runs by how they stand.
    pub runs: BTreeMap<&'static str, usize>,
    pub tasks: BTreeMap<&'static str, usize>,
    pub run_ms: Figures,
    pub run_cost: Figures,
    pub rounds: Figures,
    pub task_ms: Figures,
    pub task_cost: Figures,
    /// The bills of all runs, and the money that is reserved and not spent.
    pub cost: Bill,
    pub reserved: Micros,
    pub waited_ms: u64,
    pub broken: usize,
    pub lost: usize,
    /// The number of times that a builder continued its session.
    pub continued: usize,
    pub steps: BTreeMap<Step, StepShare>,
    pub savings: Savings,
    pub oldest: Option<Time>,
    /// The number of runs that were too much to read.
    pub left_out: usize,
    /// Whether there are runs beyond the requested number.
    pub more_runs: bool,
}

/// The attempts of a step and their total time.
#[derive(Default)]
pub struct StepShare {
    pub attempts: usize,
    pub ms: u64,
}

impl RunStats {
    fn add(&mut self, known: &KnownRun) {
        *self.runs.entry(outcome(known)).or_default() += 1;
        let begun = Time(known.run.created_at_ms);
        self.oldest = Some(self.oldest.map_or(begun, |oldest| oldest.min(begun)));
        let run = &known.state.run;
        self.run_ms.push(run.active_ms);
        self.run_cost.push(run.spent.usd.0);
        self.cost = self.cost.plus(run.spent);
        self.reserved = self.reserved.plus(known.state.reserved(None));
        for task in &known.state.tasks {
            self.waited_ms += task.spent.waited_ms;
        }
        for task in view::leaves(&known.state) {
            self.add_task(task);
        }
    }

    /// A task that never started would only make the averages look better, so it is left out.
    fn add_task(&mut self, task: &Task) {
        *self.tasks.entry(view::task_word(task)).or_default() += 1;
        if task.spent.attempts > 0 {
            self.rounds.push(u64::from(task.round));
            self.task_ms.push(task.spent.work_ms);
            self.task_cost.push(task.spent.bill.usd.0);
        }
    }

    /// Counts attempts from the records, because the state forgets attempts that a retry replaced.
    fn steps_of(
        &mut self,
        archive: &RunArchive,
        run: &JournalRun,
    ) -> Result<SavingReader, QueryError> {
        let mut from = 1;
        let mut saving = SavingReader::default();
        loop {
            let batch = archive.history.read(&run.id, from, READ_MAX)?;
            for record in &batch {
                let record = store::decode(record)?;
                from = record.seq + 1;
                record.events.iter().for_each(|event| self.hear(event));
                saving.hear(&record);
            }
            if batch.len() < READ_MAX {
                return Ok(saving);
            }
        }
    }

    fn hear(&mut self, event: &Event) {
        if let Event::SessionOpened { continued: true, .. } = event {
            self.continued += 1;
        }
        if let Event::AttemptEnded { step, outcome, facts, .. } = event {
            let tried = self.steps.entry(*step).or_default();
            tried.attempts += 1;
            tried.ms += facts.ms;
            match outcome {
                Outcome::Broke { .. } => self.broken += 1,
                Outcome::Lost => self.lost += 1,
                Outcome::Passed
                | Outcome::Failed { .. }
                | Outcome::Misconfigured { .. }
                | Outcome::Quota { .. }
                | Outcome::Away { .. }
                | Outcome::Revoked
                | Outcome::Skipped { .. } => {}
            }
        }
    }

    /// The steps that took time with their share, longest first.
    pub fn shares(&self) -> Vec<(Step, &StepShare, f64)> {
        let all: u64 = self.steps.values().map(|tried| tried.ms).sum();
        let share = |ms: u64| if all == 0 { 0.0 } else { ms as f64 / all as f64 };
        let mut shares: Vec<(Step, &StepShare, f64)> =
            self.steps.iter().map(|(step, tried)| (*step, tried, share(tried.ms))).collect();
        shares.sort_by_key(|(step, tried, _)| (std::cmp::Reverse(tried.ms), *step));
        shares
    }

    /// The figures as `runs --stats --json` prints them.
    pub fn figures(&self) -> StatsFigures<'_> {
        let share = |(step, tried, share): (Step, &StepShare, f64)| {
            let duration = seconds(tried.ms);
            let known = json!({ "attempts": tried.attempts, "duration": duration, "share": share });
            (step.word().to_owned(), known)
        };
        StatsFigures {
            since: self.oldest.map(Time::rfc3339),
            runs: RunCounts { total: self.runs.values().sum(), by_state: &self.runs },
            tasks: TaskCounts { total: self.tasks.values().sum(), by_status: &self.tasks },
            cost_usd: self.cost.usd.usd(),
            cost_estimated_usd: self.cost.estimated.usd(),
            cost_reserved_usd: self.reserved.usd(),
            cost_complete: self.cost.is_complete(),
            broken_attempts: self.broken,
            interruptions: self.lost,
            sessions_continued: self.continued,
            waited_for_quota: seconds(self.waited_ms),
            iterations_per_task: self.rounds.summary(1.0),
            duration_per_task: self.task_ms.summary(SECOND_MS),
            cost_usd_per_task: self.task_cost.summary(DOLLAR_MICROS),
            duration_per_run: self.run_ms.summary(SECOND_MS),
            cost_usd_per_run: self.run_cost.summary(DOLLAR_MICROS),
            steps: self.shares().into_iter().map(share).collect(),
            would_save: self.savings.figures(),
            runs_left_out: self.left_out,
            older_runs_exist: self.more_runs || self.left_out > 0,
        }
    }
}

/// The statistics over many runs, in seconds and dollars.
#[derive(Clone, Debug, Serialize)]
pub struct StatsFigures<'a> {
    pub since: Option<String>,
    pub runs: RunCounts<'a>,
    pub tasks: TaskCounts<'a>,
    pub cost_usd: f64,
    pub cost_estimated_usd: f64,
    pub cost_reserved_usd: f64,
    pub cost_complete: bool,
    pub broken_attempts: usize,
    pub interruptions: usize,
    pub sessions_continued: usize,
    pub waited_for_quota: f64,
    pub iterations_per_task: Option<FigureSummary>,
    pub duration_per_task: Option<FigureSummary>,
    pub cost_usd_per_task: Option<FigureSummary>,
    pub duration_per_run: Option<FigureSummary>,
    pub cost_usd_per_run: Option<FigureSummary>,
    /// The attempts, time and share of each step, longest first.
    pub steps: Map<String, Value>,
    /// What `loop.review_on_red: false` and `uat.generate: auto` would have saved.
    pub would_save: SavingFigures,
    pub runs_left_out: usize,
    pub older_runs_exist: bool,
}

/// The number of runs, in all and by how they stand.
#[derive(Clone, Debug, Serialize)]
pub struct RunCounts<'a> {
    pub total: usize,
    pub by_state: &'a BTreeMap<&'static str, usize>,
}

/// The number of tasks, in all and by how they stand.
#[derive(Clone, Debug, Serialize)]
pub struct TaskCounts<'a> {
    pub total: usize,
    pub by_status: &'a BTreeMap<&'static str, usize>,
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / SECOND_MS
}

/// The outcome of a run as a person would call it.
fn outcome(known: &KnownRun) -> &'static str {
    if known.is_live() { "RUNNING" } else { known.word() }
}
