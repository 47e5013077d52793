//! The text about a goal's run.

use autopilot_core::workflow::Completion;
use autopilot_engine::query::show::{GoalHistory, ShownIteration, ShownStep};
use autopilot_host::escape::one_line;
use autopilot_view as view;
use std::fmt::Write;

/// The number of iterations that are shown, from the end.
const ITERATIONS_MAX: usize = 12;
/// The most characters of an answer; the files have all of it.
const SAID_CHARS_MAX: usize = 400;

/// The iterations of a goal with their results.
pub fn text(goal: &GoalHistory, run: &str) -> String {
    let mut text = String::new();
    let before = goal.iterations.len().saturating_sub(ITERATIONS_MAX);
    if before > 0 {
        let _ = writeln!(text, "\n{}: see the report", view::count(before, "earlier iteration"));
    }
    for iteration in goal.iterations.iter().skip(before) {
        text.push_str(&of_iteration(iteration));
    }
    let _ = writeln!(text, "\nfiles   {}", goal.artifacts);
    let report = goal.report_path.clone().unwrap_or_else(|| format!("autopilot report {run}"));
    let _ = writeln!(text, "report  {report}");
    if goal.next.is_empty() {
        text.push_str("next    nothing: no file was changed\n");
    }
    for (place, command) in goal.next.iter().enumerate() {
        let _ = writeln!(text, "{}  {command}", if place == 0 { "next  " } else { "      " });
    }
    text
}

fn of_iteration(iteration: &ShownIteration) -> String {
    let workflow = iteration.workflow.as_deref().unwrap_or("no workflow yet");
    let mut text = format!("\niteration {}  {}\n", iteration.index, one_line(workflow));
    for line in crate::terminal::table(&[], iteration.steps.iter().map(row)).lines() {
        let _ = writeln!(text, "  {line}");
    }
    if let Some(word) = &iteration.validation {
        let _ = writeln!(text, "  validation: {}", short(word));
    }
    if let Some(said) = &iteration.completion {
        let _ = writeln!(text, "  reviewer: {}", reviewer(said, iteration.overruled));
    }
    text
}

fn row(step: &ShownStep) -> Vec<String> {
    let session = step.session.as_ref().map(|id| format!("session {id}")).unwrap_or_default();
    vec![
        one_line(&step.task).into_owned(),
        step.status.to_owned(),
        view::duration(step.work_ms),
        view::money::cost(step.bill),
        one_line(&session).into_owned(),
        step.failure.as_deref().map(short).unwrap_or_default(),
    ]
}

fn reviewer(said: &Completion, overruled: bool) -> String {
    let word = match (said.done, overruled) {
        (true, _) => "done",
        (false, true) => "said done and was overruled",
        (false, false) => "not done",
    };
    let text = said.reason.as_deref().filter(|_| !said.done).or(said.summary.as_deref());
    match text {
        Some(text) => format!("{word}: {}", short(text)),
        None => word.to_owned(),
    }
}

fn short(text: &str) -> String {
    let line = one_line(text.trim());
    let mut kept: String = line.chars().take(SAID_CHARS_MAX).collect();
    if line.chars().count() > SAID_CHARS_MAX {
        kept.push('…');
    }
    kept
}
