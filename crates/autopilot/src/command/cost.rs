//! `autopilot cost`: what runs have cost in money and tokens, told by whatever it is asked by.
//!
//! Invariant: what nobody told is never shown as 0 and never part of a sum.

pub mod sum;

use super::past::{Configs, Past, Told, no_run, unreadable};
use super::runs::since;
use super::{Done, done};
use crate::cli::{Cost, CostBy, Global};
use crate::exit::Failure;
use crate::terminal;
use autopilot_core::config::{Agent, Config, role_of};
use autopilot_core::event::Record;
use autopilot_core::id::Time;
use autopilot_core::state::Task;
use autopilot_core::step::Step;
use autopilot_engine::clock::now;
use autopilot_engine::job::mode_word;
use autopilot_host::escape::one_line;
use autopilot_journal::{History, Run};
use autopilot_view::cost::{Sum, charges};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Runs whose records are looked at.
const RUNS_MAX: usize = 100_000;
/// Records read for it, over all runs; what is older is left out and said to be.
const RECORDS_MAX: u64 = 500_000;
const WEEK_DAYS: i64 = 7;
const DAY_MS: i64 = 86_400_000;

pub fn cost(global: &Global, args: &Cost) -> Done {
    let now = now();
    let from = args.since.as_deref().map(|text| since(text, now)).transpose()?;
    let Some(past) = Past::open(global)?.1 else { return nothing(global, args) };
    let said = match (&args.run, args.by) {
        (None, None) if from.is_none() => at_a_glance(&past, now)?,
        (None, by) => {
            let by = by.unwrap_or(CostBy::Day);
            let spent = Spent::of_all(&past, from)?;
            Said { parts: vec![Part::of("all runs", by, &spent)], left_out: spent.left_out }
        }
        (Some(run), by) => {
            let told = past.run(Some(run))?;
            let parts = of_run(&past, &told, by, from)?;
            Said { parts, left_out: 0 }
        }
    };
    if global.json {
        terminal::json(&said.object());
    } else {
        terminal::say(said.text().trim_end());
    }
    done()
}

/// Nobody has begun a run here: nothing was spent, unless a certain one is asked for.
fn nothing(global: &Global, args: &Cost) -> Done {
    if args.run.is_some() {
        return Err(no_run());
    }
    if global.json {
        terminal::json(&Said { parts: Vec::new(), left_out: 0 }.object());
    } else {
        terminal::say("no runs yet; `autopilot run tasks/<name>.md` begins one");
    }
    done()
}

fn at_a_glance(past: &Past, now: Time) -> Result<Said, Failure> {
    let mut parts = match past.newest()? {
        Some(newest) => of_run(past, &newest, None, None)?,
        None => Vec::new(),
    };
    let today = Time(now.0.div_euclid(DAY_MS) * DAY_MS);
    let week = Time(today.0 - (WEEK_DAYS - 1) * DAY_MS);
    let mut spent = Spent::of_all(past, Some(week))?;
    let left_out = spent.left_out;
    parts.push(Part::of("last 7 days", CostBy::Day, &spent));
    spent.items.retain(|item| item.at >= today);
    parts.insert(parts.len() - 1, Part::of("today", CostBy::Run, &spent));
    Ok(Said { parts, left_out })
}

/// By one thing, or else by task and by step.
fn of_run(
    past: &Past,
    told: &Told,
    by: Option<CostBy>,
    from: Option<Time>,
) -> Result<Vec<Part>, Failure> {
    let mut spent = Spent::default();
    spent.add(past, told, &past.records(&told.run.id)?, from);
    let title = format!("run {}", told.run.id);
    let ways = by.map_or(vec![CostBy::Task, CostBy::Step], |by| vec![by]);
    Ok(ways.into_iter().map(|by| Part::of(&title, by, &spent)).collect())
}

/// Everything that was spent, with all it can be summed by.
#[derive(Default)]
struct Spent {
    items: Vec<Item>,
    /// Runs that would have been too much to read.
    left_out: usize,
}

struct Item {
    at: Time,
    sum: Sum,
    run: String,
    task: String,
    step: &'static str,
    agent: String,
    model: String,
}

impl Spent {
    fn of_all(past: &Past, from: Option<Time>) -> Result<Spent, Failure> {
        let mut spent = Spent::default();
        let mut records = 0;
        for run in past.runs(RUNS_MAX)? {
            if is_older(past, &run, from)? {
                continue;
            }
            // The newest counts however long it is.
            if records > 0 && records + run.last_seq > RECORDS_MAX {
                spent.left_out += 1;
                continue;
            }
            records += run.last_seq;
            let known = past.records(&run.id)?;
            let told = past.tell(run)?;
            spent.add(past, &told, &known, from);
        }
        Ok(spent)
    }

    fn add(&mut self, past: &Past, told: &Told, records: &[Record], from: Option<Time>) {
        let redactor = past.redactor(&told.state);
        let configs = Configs::of(past, records);
        for charge in charges(records) {
            if from.is_some_and(|from| charge.at < from) {
                continue;
            }
            let task = told.state.tasks.get(charge.task.index());
            let task = match task.filter(|task| task.parent.is_some()) {
                Some(task) => redactor.redact(task.name()).into_owned(),
                None => "(the run itself)".to_owned(),
            };
            let config = configs.at(charge.attempt);
            let of = told.state.tasks.get(charge.task.index());
            let agent = config.and_then(|config| agent_of(config, of, charge.step, charge.lane));
            let mode = agent.as_ref().map_or("unknown", |agent| mode_word(agent.mode));
            let model = agent.and_then(|agent| agent.model);
            self.items.push(Item {
                at: charge.at,
                sum: charge.sum,
                run: told.run.id.clone(),
                task,
                step: charge.step.word(),
                agent: mode.to_owned(),
                model: model.unwrap_or_else(|| "not configured".to_owned()),
            });
        }
    }
}

/// Whether nothing at all happened in it since then.
fn is_older(past: &Past, run: &Run, from: Option<Time>) -> Result<bool, Failure> {
    let Some(from) = from else { return Ok(false) };
    let last = past.history.read(&run.id, run.last_seq.max(1), 1).map_err(unreadable)?;
    Ok(last.first().is_none_or(|record| record.at_ms < from.0))
}

/// Who did it, by the configuration it was done with.
pub fn agent_of(config: &Config, task: Option<&Task>, step: Step, lane: u32) -> Option<Agent> {
    let by = task.map(|task| task.by(step).clone()).unwrap_or_default();
    Some(config.agent_by(role_of(step.word())?, &by).candidate(lane).clone())
}

impl Item {
    fn key(&self, by: CostBy) -> String {
        match by {
            CostBy::Step => self.step.to_owned(),
            CostBy::Task => self.task.clone(),
            CostBy::Run => self.run.clone(),
            CostBy::Day => self.at.rfc3339().chars().take(10).collect(),
            CostBy::Agent => self.agent.clone(),
            CostBy::Model => self.model.clone(),
        }
    }
}

/// One table with its total.
struct Part {
    title: String,
    by: CostBy,
    rows: Vec<(String, Sum)>,
    total: Sum,
}

impl Part {
    fn of(title: &str, by: CostBy, spent: &Spent) -> Part {
        let mut rows: BTreeMap<String, Sum> = BTreeMap::new();
        let mut latest: BTreeMap<String, Time> = BTreeMap::new();
        let mut total = Sum::default();
        for item in &spent.items {
            let at = latest.entry(item.key(by)).or_insert(item.at);
            *at = item.at.max(*at);
            let row = rows.entry(item.key(by)).or_default();
            *row = row.plus(item.sum);
            total = total.plus(item.sum);
        }
        let mut rows: Vec<(String, Sum)> = rows.into_iter().collect();
        match by {
            // Newest first; ids of runs of the same second are in no order.
            CostBy::Day | CostBy::Run => {
                rows.sort_by_key(|(key, _)| std::cmp::Reverse(latest.get(key).copied()));
            }
            // Dearest first.
            CostBy::Step | CostBy::Task | CostBy::Agent | CostBy::Model => {
                rows.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.bill.usd));
            }
        }
        Part { title: title.to_owned(), by, rows, total }
    }

    fn text(&self) -> String {
        let word = by_word(self.by);
        let mut text = format!("{} by {word}{}\n", self.title, zone(self.by));
        if self.rows.is_empty() {
            text.push_str("  nothing was asked of an agent\n");
            return text;
        }
        let heading = [word, "cost", "in", "cached", "out", "attempts"].map(str::to_owned);
        let row = |(key, sum): &(String, Sum)| {
            let mut row = vec![one_line(key).into_owned()];
            row.extend(sum::cells(sum));
            row
        };
        let mut table = vec![heading.to_vec()];
        table.extend(self.rows.iter().map(row));
        if self.rows.len() > 1 {
            table.push(row(&("total".to_owned(), self.total)));
        }
        for line in terminal::table(&table).lines() {
            text.push_str(&format!("  {line}\n"));
        }
        text
    }

    fn object(&self) -> Value {
        let rows = self.rows.iter().map(|(key, sum)| {
            let mut row = sum::object(sum);
            row[by_word(self.by)] = json!(key);
            row
        });
        json!({
            "of": self.title,
            "by": by_word(self.by),
            "rows": rows.collect::<Vec<_>>(),
            "total": sum::object(&self.total),
        })
    }
}

struct Said {
    parts: Vec<Part>,
    left_out: usize,
}

impl Said {
    fn text(&self) -> String {
        let parts: Vec<String> = self.parts.iter().map(Part::text).collect();
        let mut text = parts.join("\n");
        if self.left_out > 0 {
            text.push_str(&format!(
                "\nleft out {} older runs: more than {RECORDS_MAX} records; --since takes fewer\n",
                self.left_out
            ));
        }
        text
    }

    fn object(&self) -> Value {
        json!({
            "days": "UTC",
            "parts": self.parts.iter().map(Part::object).collect::<Vec<_>>(),
            "runs_left_out": self.left_out,
        })
    }
}

fn by_word(by: CostBy) -> &'static str {
    match by {
        CostBy::Step => "step",
        CostBy::Task => "task",
        CostBy::Run => "run",
        CostBy::Day => "day",
        CostBy::Agent => "agent",
        CostBy::Model => "model",
    }
}

fn zone(by: CostBy) -> &'static str {
    if by == CostBy::Day { " (UTC)" } else { "" }
}
