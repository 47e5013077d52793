//! Entries of `.autopilot/RELEASE_NOTES_RUNNING.md`: one per round and per settled task, keyed by
//! the event they tell of so that none is written twice after a crash.

use super::{duration, failure};
use crate::event::{End, Event, Record};
use crate::id::AttemptId;
use crate::state::State;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    pub text: String,
}

/// The entries a record brings; `state` is what holds after it.
pub fn entries(record: &Record, state: &State) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (place, event) in record.events.iter().enumerate() {
        if let Some(text) = entry(event, record, state) {
            let place = AttemptId { seq: record.seq, place: place as u32 };
            entries.push(Entry { key: format!("{} {place}", state.run.id), text });
        }
    }
    entries
}

fn entry(event: &Event, record: &Record, state: &State) -> Option<String> {
    let at = record.at.rfc3339();
    match event {
        Event::RoundFailed { task, round, reasons, .. } => {
            let name = state.task(*task).name();
            let mut text = format!("- {at} **{name}** iteration {round} not good enough\n");
            for reason in reasons {
                text.push_str(&format!("  - {}: {}\n", reason.step, one_line(&reason.text)));
            }
            Some(text)
        }
        Event::TaskSettled { task, end } if state.task(*task).parent.is_some() => {
            let task = state.task(*task);
            let (name, title) = (task.name(), one_line(&task.spec.title));
            let spent = format!(
                "{} iterations, {}, {}",
                task.round,
                duration(task.spent.work_ms),
                task.spent.bill.usd
            );
            Some(match end {
                End::Closed => {
                    let commit: String =
                        task.commit.clone().unwrap_or_default().chars().take(10).collect();
                    format!("- {at} **{name}** DONE: {title} ({spent}, commit {commit})\n")
                }
                End::Failed { .. } => {
                    let why = failure(task).map(ToString::to_string).unwrap_or_default();
                    format!("- {at} **{name}** FAILED: {title}: {why} ({spent})\n")
                }
                End::Skipped { .. } => format!("- {at} **{name}** skipped: {title}\n"),
            })
        }
        Event::Switched { switch: crate::pipeline::Switch::Review, on: false, by } => {
            Some(format!("- {at} REVIEW SKIPPED from here on ({by})\n"))
        }
        Event::RunStarted { .. }
        | Event::Booted { .. }
        | Event::TaskAdded { .. }
        | Event::TaskMoved { .. }
        | Event::StageSkipped { .. }
        | Event::AttemptStarted { .. }
        | Event::AttemptEnded { .. }
        | Event::SessionOpened { .. }
        | Event::Billed { .. }
        | Event::Overruled { .. }
        | Event::RailTripped { .. }
        | Event::TaskSettled { .. }
        | Event::TaskReopened { .. }
        | Event::WaitBegan { .. }
        | Event::WaitEnded { .. }
        | Event::Halted { .. }
        | Event::Resumed
        | Event::LimitsChanged { .. }
        | Event::Switched { .. }
        | Event::TimePassed => None,
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
