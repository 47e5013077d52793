//! The cost of runs in money and tokens, grouped by a key.
//!
//! Invariant: an unreported cost is never shown as 0 and never part of a sum.

use super::{KnownRun, QueryError, RunArchive, RunConfigs};
use autopilot_core::config::{AgentConfig, Config};
use autopilot_core::event::Record;
use autopilot_core::id::Time;
use autopilot_core::state::Task;
use autopilot_core::step::Step;
use autopilot_journal::{JournalHistory, JournalRun};
use autopilot_view::cost::{Sum, charges};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Maximum number of runs whose records are read.
const RUNS_MAX: usize = 100_000;
/// Maximum number of records read over all runs; older runs are left out and counted.
pub const RECORDS_MAX: u64 = 500_000;
const WEEK_DAYS: i64 = 7;
const DAY_MS: i64 = 86_400_000;

/// The key by which costs are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CostKey {
    Step,
    Task,
    Run,
    Day,
    Agent,
    Model,
}

impl CostKey {
    /// The word for the key, in a heading and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            CostKey::Step => "step",
            CostKey::Task => "task",
            CostKey::Run => "run",
            CostKey::Day => "day",
            CostKey::Agent => "agent",
            CostKey::Model => "model",
        }
    }
}

/// The cost of one run or of all runs, grouped by a key or as an overview.
pub fn cost(
    archive: &RunArchive,
    run: Option<&str>,
    by: Option<CostKey>,
    from: Option<Time>,
    now: Time,
) -> Result<CostAnswer, QueryError> {
    match (run, by) {
        (None, None) if from.is_none() => at_a_glance(archive, now),
        (None, by) => {
            let by = by.unwrap_or(CostKey::Day);
            let spent = SpentLedger::of_all(archive, from)?;
            let parts = vec![CostTable::of("all runs", by, &spent)];
            Ok(CostAnswer { parts, left_out: spent.left_out, ..Default::default() })
        }
        (Some(run), by) => {
            let known = archive.run(Some(run))?;
            let parts = of_run(archive, &known, by, from)?;
            Ok(CostAnswer { parts, ..Default::default() })
        }
    }
}

fn at_a_glance(archive: &RunArchive, now: Time) -> Result<CostAnswer, QueryError> {
    let mut parts = match archive.newest()? {
        Some(newest) => of_run(archive, &newest, None, None)?,
        None => Vec::new(),
    };
    let today = Time(now.0.div_euclid(DAY_MS) * DAY_MS);
    let week = Time(today.0 - (WEEK_DAYS - 1) * DAY_MS);
    let mut spent = SpentLedger::of_all(archive, Some(week))?;
    let left_out = spent.left_out;
    parts.push(CostTable::of("last 7 days", CostKey::Day, &spent));
    spent.items.retain(|item| item.at >= today);
    parts.insert(parts.len() - 1, CostTable::of("today", CostKey::Run, &spent));
    Ok(CostAnswer { parts, left_out, ..Default::default() })
}

/// The cost of one run, by a key or else by task and by step.
fn of_run(
    archive: &RunArchive,
    known: &KnownRun,
    by: Option<CostKey>,
    from: Option<Time>,
) -> Result<Vec<CostTable>, QueryError> {
    let mut spent = SpentLedger::default();
    spent.add(archive, known, &archive.records(&known.run.id)?, from);
    let title = format!("run {}", known.run.id);
    let ways = by.map_or(vec![CostKey::Task, CostKey::Step], |by| vec![by]);
    Ok(ways.into_iter().map(|by| CostTable::of(&title, by, &spent)).collect())
}

/// Every cost with all the keys it can be grouped by.
#[derive(Default)]
struct SpentLedger {
    items: Vec<SpentItem>,
    /// The number of runs that were too much to read.
    left_out: usize,
}

struct SpentItem {
    at: Time,
    sum: Sum,
    run: String,
    task: String,
    step: &'static str,
    agent: String,
    model: String,
}

impl SpentLedger {
    fn of_all(archive: &RunArchive, from: Option<Time>) -> Result<SpentLedger, QueryError> {
        let mut spent = SpentLedger::default();
        let mut records = 0;
        for run in archive.runs(RUNS_MAX)? {
            if is_older(archive, &run, from)? {
                continue;
            }
            // The newest run counts however long it is.
            if records > 0 && records + run.last_seq > RECORDS_MAX {
                spent.left_out += 1;
                continue;
            }
            records += run.last_seq;
            let of_run = archive.records(&run.id)?;
            let known = archive.tell(run)?;
            spent.add(archive, &known, &of_run, from);
        }
        Ok(spent)
    }

    fn add(
        &mut self,
        archive: &RunArchive,
        known: &KnownRun,
        records: &[Record],
        from: Option<Time>,
    ) {
        let redactor = archive.redactor(&known.state);
        let configs = RunConfigs::of(archive, records);
        for charge in charges(records) {
            if from.is_some_and(|from| charge.at < from) {
                continue;
            }
            let config = configs.at(charge.attempt);
            let of = known.state.tasks.get(charge.task.index());
            let agent = config.and_then(|config| agent_of(config, of, charge.step, charge.lane));
            let mode = agent.as_ref().map_or("unknown", |agent| agent.mode.word());
            let model = agent.and_then(|agent| agent.model);
            self.items.push(SpentItem {
                at: charge.at,
                sum: charge.sum,
                run: known.run.id.clone(),
                task: known.task_label(charge.task, &redactor),
                step: charge.step.word(),
                agent: mode.to_owned(),
                model: model.unwrap_or_else(|| "not configured".to_owned()),
            });
        }
    }
}

/// Returns whether a run had no record since a time.
fn is_older(
    archive: &RunArchive,
    run: &JournalRun,
    from: Option<Time>,
) -> Result<bool, QueryError> {
    let Some(from) = from else { return Ok(false) };
    let last = archive.history.read(&run.id, run.last_seq.max(1), 1)?;
    Ok(last.first().is_none_or(|record| record.at_ms < from.0))
}

/// The agent that made an attempt, by the configuration of that time.
pub(super) fn agent_of(
    config: &Config,
    task: Option<&Task>,
    step: Step,
    lane: u32,
) -> Option<AgentConfig> {
    let by = task.map(|task| task.by(step).clone()).unwrap_or_default();
    Some(config.agent_by(step.role()?, &by).candidate(lane).clone())
}

impl SpentItem {
    fn key(&self, by: CostKey) -> String {
        match by {
            CostKey::Step => self.step.to_owned(),
            CostKey::Task => self.task.clone(),
            CostKey::Run => self.run.clone(),
            CostKey::Day => self.at.rfc3339().chars().take(10).collect(),
            CostKey::Agent => self.agent.clone(),
            CostKey::Model => self.model.clone(),
        }
    }
}

/// One table of costs with its total.
#[derive(Clone, Debug, Serialize)]
pub struct CostTable {
    #[serde(rename = "of")]
    pub title: String,
    pub by: CostKey,
    pub rows: Vec<CostRow>,
    #[serde(serialize_with = "figures")]
    pub total: Sum,
}

/// One row of a table of costs.
#[derive(Clone, Debug, Serialize)]
pub struct CostRow {
    #[serde(flatten, serialize_with = "figures")]
    pub sum: Sum,
    /// The key of the table, which names the field, and the row's value of it.
    #[serde(flatten, serialize_with = "as_field")]
    pub key: (CostKey, String),
}

impl CostTable {
    fn of(title: &str, by: CostKey, spent: &SpentLedger) -> CostTable {
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
            // Newest first; the ids of runs of the same second have no order.
            CostKey::Day | CostKey::Run => {
                rows.sort_by_key(|(key, _)| std::cmp::Reverse(latest.get(key).copied()));
            }
            // Dearest first.
            CostKey::Step | CostKey::Task | CostKey::Agent | CostKey::Model => {
                rows.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.bill.usd));
            }
        }
        let rows = rows.into_iter().map(|(key, sum)| CostRow { sum, key: (by, key) }).collect();
        CostTable { title: title.to_owned(), by, rows, total }
    }
}

/// Costs in as many tables as were asked for, as `cost --json` prints them.
#[derive(Clone, Debug, Serialize)]
pub struct CostAnswer {
    /// The time zone of days.
    days: &'static str,
    pub parts: Vec<CostTable>,
    /// The number of runs that were too much to read.
    #[serde(rename = "runs_left_out")]
    pub left_out: usize,
}

impl Default for CostAnswer {
    fn default() -> CostAnswer {
        CostAnswer { days: "UTC", parts: Vec::new(), left_out: 0 }
    }
}

/// A sum in JSON: null where nothing is known; `…_complete` says whether all of it is.
#[derive(Serialize)]
struct CostFigures {
    cost_usd: Option<f64>,
    cost_estimated_usd: f64,
    cost_reserved_usd: f64,
    cost_complete: bool,
    tokens_in: Option<u64>,
    tokens_out: Option<u64>,
    tokens_cached: Option<u64>,
    tokens_complete: bool,
    attempts: u32,
    attempts_of_unknown_cost: u32,
}

/// Serializes a sum as its figures.
pub(super) fn figures<S: Serializer>(sum: &Sum, serializer: S) -> Result<S::Ok, S::Error> {
    let bill = &sum.bill;
    let tokens = |number: u64| (!sum.are_tokens_dark()).then_some(number);
    let figures = CostFigures {
        cost_usd: (!sum.is_cost_dark()).then(|| bill.usd.usd()),
        cost_estimated_usd: bill.estimated.usd(),
        cost_reserved_usd: sum.reserved.usd(),
        cost_complete: sum.cost_unknown == 0,
        tokens_in: tokens(bill.tokens_in),
        tokens_out: tokens(bill.tokens_out),
        tokens_cached: (bill.cached > 0).then_some(bill.cached),
        tokens_complete: sum.tokens_unknown == 0,
        attempts: sum.attempts,
        attempts_of_unknown_cost: sum.cost_unknown,
    };
    figures.serialize(serializer)
}

fn as_field<S: Serializer>(
    (key, value): &(CostKey, String),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map([(key.word(), value)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use autopilot_core::event::Bill;
    use autopilot_core::id::Micros;

    fn sum(usd: u64, attempts: u32, cost_unknown: u32) -> Sum {
        let bill = Bill { usd: Micros(usd), tokens_in: usd * 3, ..Bill::default() };
        Sum { bill, attempts, cost_unknown, tokens_unknown: cost_unknown, ..Sum::default() }
    }

    #[test]
    fn what_is_unknown_is_never_told_as_nothing() {
        let told = |sum| figures(&sum, serde_json::value::Serializer).unwrap();
        assert_eq!(told(sum(0, 2, 2))["cost_usd"], serde_json::Value::Null);
        assert_eq!(told(sum(500_000, 2, 1))["cost_usd"], 0.5);
        assert_eq!(told(sum(500_000, 2, 1))["cost_complete"], false);
    }

    #[test]
    fn tables_by_step_are_told_dearest_first_and_by_day_newest_first() {
        let item = |at: i64, step, usd| SpentItem {
            at: Time(at * DAY_MS),
            sum: sum(usd, 1, 0),
            run: "r".to_owned(),
            task: "t".to_owned(),
            step,
            agent: "script".to_owned(),
            model: "m".to_owned(),
        };
        let items = vec![item(1, "BUILD", 5), item(2, "REVIEW", 7), item(1, "BUILD", 1)];
        let spent = SpentLedger { items, left_out: 0 };
        let keys = |by| {
            let table = CostTable::of("all", by, &spent);
            table.rows.into_iter().map(|row| (row.key.1, row.sum.bill.usd.0)).collect::<Vec<_>>()
        };
        assert_eq!(keys(CostKey::Step), [("REVIEW".to_owned(), 7), ("BUILD".to_owned(), 6)]);
        assert_eq!(
            keys(CostKey::Day),
            [("1970-01-03".to_owned(), 7), ("1970-01-02".to_owned(), 6)]
        );
    }
}
