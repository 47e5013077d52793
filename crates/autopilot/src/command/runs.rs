//! `autopilot runs`: the runs of this repository, newest first.

use super::past::{Past, Standing, Told};
use super::{Done, done};
use crate::cli::{Global, Runs};
use crate::exit::Failure;
use crate::terminal;
use autopilot_core::id::Time;
use autopilot_core::view;
use serde_json::{Value, json};

/// Titles are cut to this many characters so that a row stays a row.
const TITLE_CHARS_MAX: usize = 48;

pub fn runs(global: &Global, args: &Runs) -> Done {
    let (_, past) = Past::open(global)?;
    let runs = match &past {
        Some(past) => tell(past, args.number)?,
        None => Vec::new(),
    };
    if global.json {
        terminal::json(&Value::Array(runs.iter().map(object).collect()));
    } else if runs.is_empty() {
        terminal::say("no runs yet; `autopilot run tasks/<name>.md` begins one");
    } else {
        let heading = ["run", "flow", "state", "started", "worked", "cost", "tasks", "title"];
        let heading = heading.map(str::to_owned).to_vec();
        let rows: Vec<Vec<String>> = std::iter::once(heading).chain(runs.iter().map(row)).collect();
        terminal::say(terminal::table(&rows).trim_end());
    }
    done()
}

fn tell(past: &Past, runs_max: usize) -> Result<Vec<Told>, Failure> {
    let tell = |run| {
        let mut told = past.tell(run)?;
        told.run.title = past.redactor(&told.state).redact(&told.run.title).into_owned();
        Ok(told)
    };
    past.runs(runs_max)?.into_iter().map(tell).collect()
}

fn row(told: &Told) -> Vec<String> {
    let (closed, all) = tasks(told);
    let title: String = told.run.title.chars().take(TITLE_CHARS_MAX).collect();
    vec![
        told.run.id.clone(),
        told.run.mode.clone(),
        told.word().to_owned(),
        started(told).rfc3339(),
        view::duration(told.state.run.active_ms),
        told.state.run.spent.usd.to_string(),
        format!("{closed}/{all}"),
        autopilot_host::escape::one_line(&title).into_owned(),
    ]
}

fn object(told: &Told) -> Value {
    let (closed, all) = tasks(told);
    let state = &told.state;
    json!({
        "run_id": told.run.id,
        "mode": told.run.mode,
        "title": told.run.title,
        "state": told.word(),
        "live": matches!(told.standing(), Standing::Live { .. }),
        "started_at": started(told).rfc3339(),
        "last_transition_at": state.run.moved_at.rfc3339(),
        "duration": state.run.active_ms as f64 / 1000.0,
        "cost_usd": state.run.spent.usd.usd(),
        "tasks_done": closed,
        "tasks_total": all,
        "branch_name": state.run.branch,
    })
}

fn started(told: &Told) -> Time {
    Time(told.run.created_at_ms)
}

fn tasks(told: &Told) -> (usize, usize) {
    let all = view::leaves(&told.state).count();
    (view::leaves(&told.state).filter(|task| task.is_closed()).count(), all)
}
