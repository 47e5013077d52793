//! `autopilot runs`: lists the runs of this repository, newest first, or their statistics.

mod stats;

use super::{Done, answer, past};
use crate::cli::{Global, Runs};
use crate::exit::CommandFailure;
use crate::terminal;
use autopilot_core::config::duration;
use autopilot_core::id::Time;
use autopilot_engine::clock::now;
use autopilot_engine::query::runs::{self as query, RunRow};
use autopilot_view as view;

/// The number of runs that are listed by default.
const LISTED: usize = 20;
/// The most characters of a title, so that each row fits on a line.
const TITLE_CHARS_MAX: usize = 48;
const HEADING: [&str; 9] =
    ["run", "flow", "state", "started", "worked", "cost", "tasks", "iterations", "title"];

/// Prints the list or the statistics.
pub fn runs(global: &Global, args: &Runs) -> Done {
    let since = args.since.as_deref().map(|text| since(text, now())).transpose()?;
    let number = args.number.map(|number| number as usize);
    let (_, archive) = past::open(global)?;
    if args.stats {
        return stats::stats(global, archive.as_ref(), number, since);
    }
    let runs = match &archive {
        Some(archive) => query::runs(archive, number.unwrap_or(LISTED), since)?,
        None => Vec::new(),
    };
    answer(global, runs, |runs| match runs.is_empty() {
        true => none(since).to_owned(),
        false => terminal::table(&HEADING, runs.iter().map(row)),
    })
}

/// The answer where there is no run.
pub fn none(since: Option<Time>) -> &'static str {
    match since {
        Some(_) => "no runs since then",
        None => "no runs yet; `autopilot run tasks/<name>.md` starts one",
    }
}

/// The time that `7d` (ago) or a date (its beginning) stands for.
pub fn since(text: &str, now: Time) -> Result<Time, CommandFailure> {
    if let Ok(time) = duration(text) {
        let ms = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        return Ok(Time(now.0.saturating_sub(ms)));
    }
    let day = text.parse::<jiff::civil::Date>().ok();
    let begin = day.and_then(|day| day.to_zoned(jiff::tz::TimeZone::UTC).ok());
    begin.map(|begin| Time(begin.timestamp().as_millisecond())).ok_or_else(|| {
        CommandFailure::usage(format!("`{text}` is neither a time such as 7d or 12h nor a day"))
            .hint("as in `--since 7d` or `--since 2026-01-31`")
    })
}

fn row(run: &RunRow) -> Vec<String> {
    let title: String = run.title.chars().take(TITLE_CHARS_MAX).collect();
    vec![
        run.run_id.clone(),
        run.mode.clone(),
        run.state.to_owned(),
        run.started_at.clone(),
        view::duration(run.active_ms),
        view::money::cost_and_reserved(run.spent, run.reserved),
        format!("{}/{}", run.tasks_done, run.tasks_total),
        run.iterations.to_string(),
        autopilot_host::escape::one_line(&title).into_owned(),
    ]
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
            assert_eq!(since(bad, now).unwrap_err().kind, crate::exit::ExitKind::Usage, "{bad}");
        }
    }
}
