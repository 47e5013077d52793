//! Progress lines of a run, for a terminal without a dashboard and for a log.

use super::money;
use super::wording::happened;
use super::{duration, passed_word};
use autopilot_core::event::{Event, Facts, Outcome, Skip, TaskEnd};
use autopilot_core::id::TaskId;
use autopilot_core::state::State;
use autopilot_core::step::Step;

/// The importance of a line: quiet output shows the first kind only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineWeight {
    Transition,
    Step,
    Detail,
}

/// One line of progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressLine {
    pub weight: LineWeight,
    pub text: String,
}

/// The progress line of an event, if it has one; `state` is that after its record.
pub fn line(event: &Event, state: &State) -> Option<ProgressLine> {
    let text = text(event, state)?;
    let text = match event.task() {
        Some(task) => format!("{}: {text}", state.task(task).label()),
        None => text,
    };
    Some(ProgressLine { weight: weight(event), text })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "everything else changes the course of the run")]
fn weight(event: &Event) -> LineWeight {
    match event {
        Event::AttemptStarted { .. } | Event::AttemptEnded { .. } | Event::StageSkipped { .. } => {
            LineWeight::Step
        }
        Event::SessionOpened { .. } | Event::Billed { .. } => LineWeight::Detail,
        _ => LineWeight::Transition,
    }
}

/// The text of the line, without the name of the task.
#[expect(clippy::wildcard_enum_match_arm, reason = "the others have the same words everywhere")]
fn text(event: &Event, state: &State) -> Option<String> {
    Some(match event {
        Event::RunStarted { run } => format!("run {} started on branch {}", run.id, run.branch),
        Event::Booted { .. } => format!("run {} continues", state.run.id),
        Event::AttemptStarted { task, step, lane } => started(state, *task, *step, *lane),
        Event::AttemptEnded { step, outcome, facts, .. } => {
            let log = facts.log.as_ref().filter(|_| is_bad(outcome));
            let log = log.map(|log| format!("  log: .autopilot/{log}")).unwrap_or_default();
            // An attempt that the controller ended has no time of its own.
            let took = (facts.ms > 0 || !matches!(outcome, Outcome::Revoked | Outcome::Lost))
                .then(|| format!(" ({})", duration(facts.ms)));
            let took = took.unwrap_or_default();
            format!("{step} {}{took}{log}", ended(*step, outcome, facts))
        }
        // Other skipped stages are settings, not news.
        Event::StageSkipped { step, .. } if !matches!(step, Step::Review | Step::Uat) => {
            return None;
        }
        Event::Overruled { why, .. } => why.clone(),
        Event::RoundFailed { round, reasons, .. } => {
            let why: Vec<&str> = reasons.iter().map(|reason| reason.text.as_str()).collect();
            format!("iteration {round} not good enough: {}", why.join("; "))
        }
        Event::RailTripped { rail, .. } => rail.to_string(),
        Event::TaskSettled { task, end } if state.task(*task).parent.is_some() => settled(end),
        Event::WaitEnded { .. } => "continues".to_owned(),
        Event::Halted { halt } if halt.now => format!("stopping now: {}", halt.why),
        Event::Halted { halt } => format!("stopping after the current steps: {}", halt.why),
        Event::SessionOpened { session, continued: true, .. } => {
            format!("continues session {session}")
        }
        Event::SessionOpened { session, .. } => format!("session {session}"),
        Event::Billed { bill, .. } => format!("cost so far {}", money::cost(*bill)),
        other => happened(other)?,
    })
}

fn started(state: &State, task: TaskId, step: Step, lane: u32) -> String {
    let of = state.task(task);
    let has_iterations = of.parent.is_some() || super::iteration(state).is_some();
    let round = if has_iterations { format!(" (iteration {})", of.round) } else { String::new() };
    let by = match lane {
        0 => String::new(),
        _ => format!(", by {}", state.lane_name(task, step, lane)),
    };
    format!("{}{round}{by}", step.row().doing)
}

/// Whether an attempt ended with a failure that a person should look at.
pub fn is_bad(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Failed { .. } | Outcome::Misconfigured { .. } | Outcome::Broke { .. }
    )
}

fn ended(step: Step, outcome: &Outcome, facts: &Facts) -> String {
    // An agent that says no ends well.
    let code = facts.exit.filter(|code| *code != 0).map(|code| format!("exit {code}"));
    let warm = facts.warm.then(|| "warm".to_owned());
    let how: Vec<String> = code.into_iter().chain(warm).collect();
    let code = if how.is_empty() { String::new() } else { format!(" ({})", how.join(", ")) };
    match outcome {
        Outcome::Passed => passed_word(step, facts).to_owned(),
        Outcome::Failed { why } => format!("failed{code}: {why}"),
        Outcome::Misconfigured { why } => format!("can't be done as configured: {why}"),
        Outcome::Broke { why } => format!("broke{code}: {why}"),
        Outcome::Lost => "interrupted".to_owned(),
        Outcome::Quota { until } => format!("has no quota until {}", until.rfc3339()),
        Outcome::Away { why, text, .. } => format!("could not run ({}): {text}", why.word()),
        Outcome::Revoked => "stopped".to_owned(),
        Outcome::Skipped { why } => format!("skipped: {why}"),
    }
}

fn settled(end: &TaskEnd) -> String {
    match end {
        TaskEnd::Closed => "DONE".to_owned(),
        TaskEnd::Failed { why } => format!("FAILED: {why}"),
        TaskEnd::Skipped { why: Skip::Asked } => "skipped by a person".to_owned(),
        TaskEnd::Skipped { why: Skip::Blocked { .. } } => {
            "BLOCKED: a task it needs failed".to_owned()
        }
        TaskEnd::Skipped { why: Skip::Stopped { .. } } => {
            "not started: the run is stopping".to_owned()
        }
        TaskEnd::Skipped { why: Skip::Dropped } => {
            "not started: its iteration was dropped".to_owned()
        }
    }
}
