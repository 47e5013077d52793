//! `autopilot runs`: the runs of this repository, newest first, or all of them in figures.

mod stats;

use super::past::{Past, Standing, Told};
use super::{Done, done};
use crate::cli::{Global, Runs};
use crate::exit::Failure;
use crate::terminal;
use autopilot_core::config::duration;
use autopilot_core::flow::Flow;
use autopilot_core::id::Time;
use autopilot_engine::clock::now;
use autopilot_journal::Run;
use autopilot_view::{self as view, ExitWord};
use serde_json::{Value, json};

/// Runs listed unless another number is asked for.
const LISTED: usize = 20;
/// Runs among which those since a time are looked for.
const RUNS_SEARCHED_MAX: usize = 100_000;
/// Titles are cut to this many characters so that a row stays a row.
const TITLE_CHARS_MAX: usize = 48;

pub fn runs(global: &Global, args: &Runs) -> Done {
    let since = args.since.as_deref().map(|text| since(text, now())).transpose()?;
    let (_, past) = Past::open(global)?;
    if args.stats {
        return stats::stats(global, past.as_ref(), args.number, since);
    }
    let runs = match &past {
        Some(past) => tell(past, args.number.unwrap_or(LISTED), since)?,
        None => Vec::new(),
    };
    if global.json {
        terminal::json(&Value::Array(runs.iter().map(object).collect()));
    } else if runs.is_empty() {
        terminal::say(none(since));
    } else {
        let heading =
            ["run", "flow", "state", "started", "worked", "cost", "tasks", "iterations", "title"];
        let heading = heading.map(str::to_owned).to_vec();
        let rows: Vec<Vec<String>> = std::iter::once(heading).chain(runs.iter().map(row)).collect();
        terminal::say(terminal::table(&rows).trim_end());
    }
    done()
}

fn none(since: Option<Time>) -> &'static str {
    match since {
        Some(_) => "no runs since then",
        None => "no runs yet; `autopilot run tasks/<name>.md` begins one",
    }
}

/// `7d` ago, or the beginning of a day.
pub fn since(text: &str, now: Time) -> Result<Time, Failure> {
    if let Ok(time) = duration(text) {
        let ms = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        return Ok(Time(now.0.saturating_sub(ms)));
    }
    let day = text.parse::<jiff::civil::Date>().ok();
    let begin = day.and_then(|day| day.to_zoned(jiff::tz::TimeZone::UTC).ok());
    begin.map(|begin| Time(begin.timestamp().as_millisecond())).ok_or_else(|| {
        Failure::usage(format!("`{text}` is neither a time such as 7d or 12h nor a day"))
            .help("as in `--since 7d` or `--since 2026-01-31`")
    })
}

fn begun_since(past: &Past, runs_max: usize, since: Option<Time>) -> Result<Vec<Run>, Failure> {
    let searched_max = if since.is_some() { RUNS_SEARCHED_MAX } else { runs_max };
    let mut runs = past.runs(searched_max.max(runs_max))?;
    if let Some(since) = since {
        runs.retain(|run| run.created_at_ms >= since.0);
    }
    runs.truncate(runs_max);
    Ok(runs)
}

fn tell(past: &Past, runs_max: usize, since: Option<Time>) -> Result<Vec<Told>, Failure> {
    let tell = |run| {
        let mut told = past.tell(run)?;
        told.run.title = past.redactor(&told.state).redact(&told.run.title).into_owned();
        Ok(told)
    };
    begun_since(past, runs_max, since)?.into_iter().map(tell).collect()
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
        view::money::cost(told.state.run.spent),
        format!("{closed}/{all}"),
        iterations(told).to_string(),
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
        "cost_complete": !state.run.spent.unpriced,
        "tasks_done": closed,
        "tasks_total": all,
        "iterations": iterations(told),
        "outcome": outcome(told),
        "branch_name": state.run.branch,
    })
}

/// Of the whole towards a goal; else the most any task took.
fn iterations(told: &Told) -> u32 {
    let state = &told.state;
    match state.run.flow {
        Flow::Goal => state.root().map_or(0, |root| root.round),
        Flow::Task | Flow::Queue | Flow::Plan => {
            view::leaves(state).map(|task| task.round).max().unwrap_or(0)
        }
    }
}

/// What became of it in a word; nothing while that is open.
fn outcome(told: &Told) -> Option<&'static str> {
    match told.standing() {
        Standing::Live { .. } | Standing::Rests | Standing::Interrupted => None,
        Standing::Abandoned => Some("abandoned"),
        Standing::Over => Some(match ExitWord::of(&told.state) {
            ExitWord::Done => "done",
            ExitWord::Paused => return None,
            ExitWord::Failed => "failed",
            ExitWord::NotConverged => "not_converged",
            ExitWord::PushFailed => "push_failed",
        }),
    }
}

fn started(told: &Told) -> Time {
    Time(told.run.created_at_ms)
}

fn tasks(told: &Told) -> (usize, usize) {
    let all = view::leaves(&told.state).count();
    (view::leaves(&told.state).filter(|task| task.is_closed()).count(), all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_a_while_ago_or_a_day() {
        let now = Time(1_800_000_000_000);
        assert_eq!(since("1h", now).unwrap(), Time(1_799_996_400_000));
        assert_eq!(since("1970-01-02", now).unwrap(), Time(86_400_000));
        for bad in ["", "yesterday", "7", "2026-13-01"] {
            assert_eq!(since(bad, now).unwrap_err().code, crate::exit::USAGE, "{bad}");
        }
    }
}
