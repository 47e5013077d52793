//! Progress lines of a run, for a terminal without a dashboard and for a log.

use super::history::{freed, held, switched, waits};
use super::{duration, passed_word};
use autopilot_core::event::{Event, Facts, Outcome, Skip, TaskEnd};
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

fn line(weight: LineWeight, text: String) -> Option<ProgressLine> {
    Some(ProgressLine { weight, text })
}

/// The progress line of an event, if it has one; `state` is that after its record.
pub fn told(event: &Event, state: &State) -> Option<ProgressLine> {
    use LineWeight::{Detail, Step as StepLine, Transition};
    let name = |task: &autopilot_core::id::TaskId| {
        let task = state.task(*task);
        task.label().to_owned()
    };
    match event {
        Event::RunStarted { run } => {
            line(Transition, format!("run {} started on branch {}", run.id, run.branch))
        }
        Event::Booted { .. } => line(Transition, format!("run {} continues", state.run.id)),
        Event::AttemptStarted { task, step, lane } => {
            let of = state.task(*task);
            let round = match (of.parent, super::iteration(state)) {
                (None, None) => String::new(),
                (Some(_), _) | (None, Some(_)) => format!(" (iteration {})", of.round),
            };
            let by = match lane {
                0 => String::new(),
                _ => format!(", by {}", state.lane_name(*task, *step, *lane)),
            };
            line(StepLine, format!("{}: {}{round}{by}", name(task), step.row().doing))
        }
        Event::AttemptEnded { task, step, outcome, facts, .. } => {
            let took = duration(facts.ms);
            let text = format!("{}: {step} {} ({took})", name(task), ended(*step, outcome, facts));
            let text = match (&facts.log, is_bad(outcome)) {
                (Some(log), true) => format!("{text}  log: .autopilot/{log}"),
                (Some(_), false) | (None, _) => text,
            };
            line(StepLine, text)
        }
        Event::StageSkipped { task, step, why } if *step == Step::Review || *step == Step::Uat => {
            line(StepLine, format!("{}: {step} skipped: {why}", name(task)))
        }
        Event::StageSkipped { .. } => None,
        Event::Overruled { task, why } => line(Transition, format!("{}: {why}", name(task))),
        Event::RoundFailed { task, round, reasons, .. } => {
            let why: Vec<&str> = reasons.iter().map(|reason| reason.text.as_str()).collect();
            let why = why.join("; ");
            line(Transition, format!("{}: iteration {round} not good enough: {why}", name(task)))
        }
        Event::RailTripped { task, rail } => line(Transition, format!("{}: {rail}", name(task))),
        Event::TaskSettled { task, end } if state.task(*task).parent.is_some() => {
            line(Transition, format!("{}: {}", name(task), settled(end)))
        }
        Event::TaskSettled { .. } => None,
        Event::TaskReopened { task } => line(Transition, format!("{}: reopened", name(task))),
        Event::TaskContinued { task, words } => {
            let text = format!("{}: a person continues session {}", name(task), words.session);
            line(Transition, text)
        }
        Event::WaitBegan { task, until, account, why, guess, .. } => {
            let waits = waits(account, *why, *until, *guess);
            line(Transition, format!("{}: {waits}", name(task)))
        }
        Event::AccountHeld { account, until, why, text, guess, .. } => {
            line(Transition, held(account, *until, *why, text, *guess))
        }
        Event::AccountFreed { account } => line(Transition, freed(account)),
        Event::WaitEnded { task } => line(Transition, format!("{}: continues", name(task))),
        Event::Halted { halt } if halt.now => {
            line(Transition, format!("stopping now: {}", halt.why))
        }
        Event::Halted { halt } => {
            line(Transition, format!("stopping after the current steps: {}", halt.why))
        }
        Event::Resumed => line(Transition, "resumed".to_owned()),
        Event::LimitsChanged { config: Some(_), .. } => {
            line(Transition, "models changed".to_owned())
        }
        Event::LimitsChanged { config: None, .. } => line(Transition, "limits changed".to_owned()),
        Event::Switched { switch, on, by } => line(Transition, switched(*switch, *on, by)),
        Event::SessionOpened { task, session, .. } => {
            line(Detail, format!("{}: session {session}", name(task)))
        }
        Event::Billed { task, bill, .. } => {
            line(Detail, format!("{}: cost so far {}", name(task), bill.usd))
        }
        Event::RoomChanged { short: Some(short) } => {
            line(Transition, format!("not starting more workers: {short}"))
        }
        Event::RoomChanged { short: None } => {
            line(Transition, "enough room for more workers again".to_owned())
        }
        Event::TaskAdded { .. }
        | Event::TaskMoved { .. }
        | Event::MoneyGiven { .. }
        | Event::TimePassed => None,
    }
}

fn is_bad(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed { .. } | Outcome::Broke { .. })
}

fn ended(step: Step, outcome: &Outcome, facts: &Facts) -> String {
    let code = facts.exit.map(|code| format!(" (exit {code})")).unwrap_or_default();
    match outcome {
        Outcome::Passed => passed_word(step, facts).to_owned(),
        Outcome::Failed { why } => format!("failed{code}: {why}"),
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
