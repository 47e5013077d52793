//! `autopilot cost`: what runs have cost in money and tokens, grouped as asked.

/// Costs as text.
pub mod sum;

use super::runs::{none, since};
use super::{Done, answer, past};
use crate::cli::{Cost, CostBy, Global};
use crate::terminal;
use autopilot_engine::clock::now;
use autopilot_engine::query::QueryError;
use autopilot_engine::query::cost::{
    self as query, CostAnswer, CostKey, CostRow, CostTable, RECORDS_MAX,
};
use autopilot_host::escape::one_line;
use autopilot_view::cost::Sum;

/// Prints the costs of one run or of all.
pub fn cost(global: &Global, args: &Cost) -> Done {
    let now = now();
    let from = args.since.as_deref().map(|text| since(text, now)).transpose()?;
    let Some(archive) = past::open(global)?.1 else { return nothing(global, args) };
    let said = query::cost(&archive, args.run.as_deref(), args.by.map(key), from, now)?;
    answer(global, said, text)
}

/// The answer for a repository without runs; asking for a certain run is an error.
fn nothing(global: &Global, args: &Cost) -> Done {
    if args.run.is_some() {
        return Err(QueryError::NoRunYet.into());
    }
    answer(global, CostAnswer::default(), |_| none(None).to_owned())
}

fn key(by: CostBy) -> CostKey {
    match by {
        CostBy::Step => CostKey::Step,
        CostBy::Task => CostKey::Task,
        CostBy::Run => CostKey::Run,
        CostBy::Day => CostKey::Day,
        CostBy::Agent => CostKey::Agent,
        CostBy::Model => CostKey::Model,
    }
}

fn text(said: &CostAnswer) -> String {
    let parts: Vec<String> = said.parts.iter().map(table).collect();
    let mut text = parts.join("\n");
    if said.left_out > 0 {
        text.push_str(&format!(
            "\nleft out {}: more than {RECORDS_MAX} records; --since takes fewer\n",
            autopilot_view::count(said.left_out, "older run")
        ));
    }
    text
}

fn table(part: &CostTable) -> String {
    let word = part.by.word();
    let mut text = format!("{} by {word}{}\n", part.title, zone(part.by));
    if part.rows.is_empty() {
        text.push_str("  nothing was asked of an agent\n");
        return text;
    }
    let heading = [word, "cost", "in", "cached", "out", "attempts"];
    let row = |key: &str, sum: &Sum| {
        let mut row = vec![one_line(key).into_owned()];
        row.extend(sum::cells(sum));
        row
    };
    let total = (part.rows.len() > 1).then(|| row("total", &part.total));
    let rows = part.rows.iter().map(|CostRow { key: (_, key), sum }| row(key, sum));
    for line in terminal::table(&heading, rows.chain(total)).lines() {
        text.push_str(&format!("  {line}\n"));
    }
    text
}

fn zone(by: CostKey) -> &'static str {
    if by == CostKey::Day { " (UTC)" } else { "" }
}
