//! Prints the statistics of runs.

use super::super::{Done, answer};
use super::none;
use crate::cli::Global;
use crate::terminal;
use autopilot_core::id::{Micros, Time};
use autopilot_engine::query::RunArchive;
use autopilot_engine::query::stats::{
    self as query, Figures, RECORDS_MAX, RunStats, SparedAttempts,
};
use autopilot_view as view;
use std::collections::BTreeMap;

/// Prints the statistics of the runs since a time.
pub fn stats(
    global: &Global,
    archive: Option<&RunArchive>,
    runs_max: Option<usize>,
    since: Option<Time>,
) -> Done {
    let stats = archive.map(|archive| query::stats(archive, runs_max, since)).transpose()?;
    let stats = stats.unwrap_or_default();
    answer(global, stats.figures(), |_| match stats.runs.is_empty() && stats.left_out == 0 {
        true => none(since).to_owned(),
        false => text(&stats),
    })
}

fn text(stats: &RunStats) -> String {
    let count: usize = stats.runs.values().sum();
    let tasks: usize = stats.tasks.values().sum();
    let since = stats.oldest.map(|at| format!(" since {}", at.rfc3339())).unwrap_or_default();
    let mut text = format!("{}{since}: {}\n", view::count(count, "run"), counted(&stats.runs));
    text.push_str(&format!("{}: {}\n", view::count(tasks, "task"), counted(&stats.tasks)));
    text.push_str(&format!(
        "{} in all, {}, {}, {} continued, {} waited for quota\n\n",
        view::money::cost_and_reserved(stats.cost, stats.reserved),
        view::count(stats.broken, "broken attempt"),
        view::count(stats.lost, "interruption"),
        view::count(stats.continued, "session"),
        view::duration(stats.waited_ms)
    ));
    let money = |micros: u64| Micros(micros).to_string();
    let rows = [
        figure_row("iterations per task", &stats.rounds, |number| number.to_string()),
        figure_row("time per task", &stats.task_ms, view::duration),
        figure_row("cost per task", &stats.task_cost, money),
        figure_row("time per run", &stats.run_ms, view::duration),
        figure_row("cost per run", &stats.run_cost, money),
    ];
    text.push_str(&terminal::table(&["", "mean", "median", "p90", "max"], rows));
    let steps = stats.shares().into_iter().map(|(step, tried, share)| {
        vec![
            step.word().to_owned(),
            tried.attempts.to_string(),
            view::duration(tried.ms),
            format!("{:.0} %", share * 100.0),
        ]
    });
    text.push('\n');
    text.push_str(&terminal::table(&["step", "attempts", "time", "share"], steps));
    let savings = [
        ("loop.review_on_red: false", stats.savings.reviews),
        ("uat.generate: auto", stats.savings.cases),
    ];
    for (setting, SparedAttempts { attempts, cost }) in savings {
        if attempts > 0 {
            let attempts = view::count(attempts, "attempt");
            text.push_str(&format!("\n`{setting}` would have saved {attempts}, {cost}\n"));
        }
    }
    if let Some(remark) = remark(stats) {
        text.push_str(&format!("\n{remark}\n"));
    }
    text
}

fn remark(stats: &RunStats) -> Option<String> {
    let mut parts = Vec::new();
    if stats.left_out > 0 {
        parts.push(format!(
            "left out {}: more than {RECORDS_MAX} records; --since or -n takes fewer",
            view::count(stats.left_out, "older run")
        ));
    }
    if stats.more_runs {
        parts.push("there are older runs; -n takes more of them".to_owned());
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn counted(counts: &BTreeMap<&'static str, usize>) -> String {
    let parts: Vec<String> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

fn figure_row(name: &str, figures: &Figures, shown: impl Fn(u64) -> String) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    match figures.summary(1.0) {
        None => row.push("-".to_owned()),
        Some(told) if name.starts_with("iterations") => {
            row.extend([format!("{:.1}", told.mean), format!("{:.1}", told.median)]);
            row.extend([told.p90, told.max].map(|number| shown(number as u64)));
        }
        Some(told) => {
            let numbers = [told.mean, told.median, told.p90, told.max];
            row.extend(numbers.map(|number| shown(number.round() as u64)));
        }
    }
    row
}
