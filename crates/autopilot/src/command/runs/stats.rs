//! Runs in figures: how they ended, and what tasks took in iterations, time and money.

mod figure;

use super::super::past::{Past, Standing, Told};
use super::super::{Done, done};
use super::{begun_since, none};
use crate::cli::Global;
use crate::exit::Failure;
use crate::terminal;
use autopilot_core::event::{Event, Outcome};
use autopilot_core::id::{Micros, Time};
use autopilot_core::state::Task;
use autopilot_core::step::Step;
use autopilot_engine::store;
use autopilot_journal::{History, Run};
use autopilot_view as view;
use figure::Figures;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Runs summed up unless another number is asked for.
const RUNS_USUAL: usize = 1_000;
/// Records read for it, over all runs; what is older is left out and said to be.
const RECORDS_MAX: u64 = 500_000;
/// Records read from the journal at a time.
const READ_MAX: usize = 4_096;

pub fn stats(
    global: &Global,
    past: Option<&Past>,
    runs_max: Option<usize>,
    since: Option<Time>,
) -> Done {
    let mut sums = Sums::default();
    if let Some(past) = past {
        let runs_max = runs_max.unwrap_or(RUNS_USUAL);
        // One more, to know whether there are more.
        let mut runs = begun_since(past, runs_max.saturating_add(1), since)?;
        sums.more_runs = runs.len() > runs_max;
        runs.truncate(runs_max);
        gather(past, runs, &mut sums)?;
    }
    if global.json {
        terminal::json(&sums.object());
    } else if sums.runs.is_empty() && sums.left_out == 0 {
        terminal::say(none(since));
    } else {
        terminal::say(sums.text().trim_end());
    }
    done()
}

fn gather(past: &Past, runs: Vec<Run>, sums: &mut Sums) -> Result<(), Failure> {
    let mut records = 0;
    for run in runs {
        // The newest counts however long it is.
        if records > 0 && records + run.last_seq > RECORDS_MAX {
            sums.left_out += 1;
            continue;
        }
        records += run.last_seq;
        sums.steps_of(past, &run)?;
        sums.add(&past.tell(run)?);
    }
    Ok(())
}

#[derive(Default)]
struct Sums {
    /// By how they stand.
    runs: BTreeMap<&'static str, usize>,
    tasks: BTreeMap<&'static str, usize>,
    run_ms: Figures,
    run_cost: Figures,
    rounds: Figures,
    task_ms: Figures,
    task_cost: Figures,
    cost: Micros,
    waited_ms: u64,
    broken: usize,
    lost: usize,
    steps: BTreeMap<Step, Tried>,
    oldest: Option<Time>,
    /// Runs that would have been too much to read.
    left_out: usize,
    /// Whether there are runs beyond the number asked for.
    more_runs: bool,
}

#[derive(Default)]
struct Tried {
    attempts: usize,
    ms: u64,
}

impl Sums {
    fn add(&mut self, told: &Told) {
        *self.runs.entry(outcome(told)).or_default() += 1;
        let begun = Time(told.run.created_at_ms);
        self.oldest = Some(self.oldest.map_or(begun, |oldest| oldest.min(begun)));
        let run = &told.state.run;
        self.run_ms.push(run.active_ms);
        self.run_cost.push(run.spent.usd.0);
        self.cost = self.cost.plus(run.spent.usd);
        for task in &told.state.tasks {
            self.waited_ms += task.spent.waited_ms;
        }
        for task in view::leaves(&told.state) {
            self.add_task(task);
        }
    }

    /// What was never begun took nothing, and would only make the others look good.
    fn add_task(&mut self, task: &Task) {
        *self.tasks.entry(view::task_word(task)).or_default() += 1;
        if task.spent.attempts > 0 {
            self.rounds.push(u64::from(task.round));
            self.task_ms.push(task.spent.work_ms);
            self.task_cost.push(task.spent.bill.usd.0);
        }
    }

    /// From the records, because a state forgets what a retry makes good.
    fn steps_of(&mut self, past: &Past, run: &Run) -> Result<(), Failure> {
        let mut from = 1;
        loop {
            let batch = past.history.read(&run.id, from, READ_MAX);
            let batch = batch.map_err(super::super::past::unreadable)?;
            for record in &batch {
                let record = store::decode(record)
                    .map_err(|error| Failure::failed(autopilot_engine::cause::chain(&error)))?;
                from = record.seq + 1;
                record.events.iter().for_each(|event| self.hear(event));
            }
            if batch.len() < READ_MAX {
                return Ok(());
            }
        }
    }

    fn hear(&mut self, event: &Event) {
        if let Event::AttemptEnded { step, outcome, facts, .. } = event {
            let tried = self.steps.entry(*step).or_default();
            tried.attempts += 1;
            tried.ms += facts.ms;
            match outcome {
                Outcome::Broke { .. } => self.broken += 1,
                Outcome::Lost => self.lost += 1,
                Outcome::Passed
                | Outcome::Failed { .. }
                | Outcome::Quota { .. }
                | Outcome::Away { .. }
                | Outcome::Revoked
                | Outcome::Skipped { .. } => {}
            }
        }
    }

    /// Steps that took time, the longest first, with their share.
    fn shares(&self) -> Vec<(Step, &Tried, f64)> {
        let all: u64 = self.steps.values().map(|tried| tried.ms).sum();
        let share = |ms: u64| if all == 0 { 0.0 } else { ms as f64 / all as f64 };
        let mut shares: Vec<(Step, &Tried, f64)> =
            self.steps.iter().map(|(step, tried)| (*step, tried, share(tried.ms))).collect();
        shares.sort_by_key(|(step, tried, _)| (std::cmp::Reverse(tried.ms), *step));
        shares
    }

    fn remark(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.left_out > 0 {
            parts.push(format!(
                "left out {} older runs: more than {RECORDS_MAX} records; --since or -n takes fewer",
                self.left_out
            ));
        }
        if self.more_runs {
            parts.push("there are older runs; -n takes more of them".to_owned());
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    fn text(&self) -> String {
        let count: usize = self.runs.values().sum();
        let tasks: usize = self.tasks.values().sum();
        let since = self.oldest.map(|at| format!(" since {}", at.rfc3339())).unwrap_or_default();
        let mut text = format!("{count} runs{since}: {}\n", counted(&self.runs));
        text.push_str(&format!("{tasks} tasks: {}\n", counted(&self.tasks)));
        text.push_str(&format!(
            "{} in all, {} broken attempts, {} interruptions, {} waited for quota\n\n",
            self.cost,
            self.broken,
            self.lost,
            view::duration(self.waited_ms)
        ));
        let money = |micros: u64| Micros(micros).to_string();
        let rows = vec![
            ["", "mean", "median", "p90", "max"].map(str::to_owned).to_vec(),
            figure_row("iterations per task", &self.rounds, |number| number.to_string()),
            figure_row("time per task", &self.task_ms, view::duration),
            figure_row("cost per task", &self.task_cost, money),
            figure_row("time per run", &self.run_ms, view::duration),
            figure_row("cost per run", &self.run_cost, money),
        ];
        text.push_str(&terminal::table(&rows));
        let heading = ["step", "attempts", "time", "share"].map(str::to_owned).to_vec();
        let steps = self.shares().into_iter().map(|(step, tried, share)| {
            vec![
                step.word().to_owned(),
                tried.attempts.to_string(),
                view::duration(tried.ms),
                format!("{:.0} %", share * 100.0),
            ]
        });
        let steps: Vec<Vec<String>> = std::iter::once(heading).chain(steps).collect();
        text.push('\n');
        text.push_str(&terminal::table(&steps));
        if let Some(remark) = self.remark() {
            text.push_str(&format!("\n{remark}\n"));
        }
        text
    }

    fn object(&self) -> Value {
        let seconds = |ms: f64| json!(ms / 1000.0);
        let dollars = |micros: f64| json!(micros / 1e6);
        let steps: Map<String, Value> = self
            .shares()
            .into_iter()
            .map(|(step, tried, share)| {
                let told = json!({
                    "attempts": tried.attempts,
                    "duration": tried.ms as f64 / 1000.0,
                    "share": share,
                });
                (step.word().to_owned(), told)
            })
            .collect();
        json!({
            "since": self.oldest.map(Time::rfc3339),
            "runs": { "total": self.runs.values().sum::<usize>(), "by_state": self.runs },
            "tasks": { "total": self.tasks.values().sum::<usize>(), "by_status": self.tasks },
            "cost_usd": self.cost.usd(),
            "broken_attempts": self.broken,
            "interruptions": self.lost,
            "waited_for_quota": self.waited_ms as f64 / 1000.0,
            "iterations_per_task": self.rounds.object(|number| json!(number)),
            "duration_per_task": self.task_ms.object(seconds),
            "cost_usd_per_task": self.task_cost.object(dollars),
            "duration_per_run": self.run_ms.object(seconds),
            "cost_usd_per_run": self.run_cost.object(dollars),
            "steps": steps,
            "runs_left_out": self.left_out,
            "older_runs_exist": self.more_runs || self.left_out > 0,
        })
    }
}

/// What a person would call the end of it; a run that works is at no end.
fn outcome(told: &Told) -> &'static str {
    match told.standing() {
        Standing::Live { .. } => "RUNNING",
        Standing::Over | Standing::Abandoned | Standing::Rests | Standing::Interrupted => {
            told.word()
        }
    }
}

fn counted(counts: &BTreeMap<&'static str, usize>) -> String {
    let parts: Vec<String> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

fn figure_row(name: &str, figures: &Figures, shown: impl Fn(u64) -> String) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    match figures.told() {
        None => row.push("-".to_owned()),
        Some(told) if name.starts_with("iterations") => {
            row.extend([format!("{:.1}", told.mean), format!("{:.1}", told.median)]);
            row.extend([shown(told.p90), shown(told.max)]);
        }
        Some(told) => {
            row.extend([told.mean.round() as u64, told.median.round() as u64].map(&shown));
            row.extend([shown(told.p90), shown(told.max)]);
        }
    }
    row
}
