//! Entries of `.autopilot/RELEASE_NOTES_RUNNING.md`: one per failed round and per settled task, keyed
//! by its event so that none is written twice after a crash.

use super::money;
use super::{count, duration, one_line};
use autopilot_core::event::{Event, Record, Skip, TaskEnd, Verdict};
use autopilot_core::pipeline::Switch;
use autopilot_core::state::{State, Task};
use autopilot_core::step::Step;

/// One entry of the release notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteEntry {
    pub key: String,
    pub text: String,
}

/// Returns the entries of a record; `state` is that after the record.
pub fn entries(record: &Record, state: &State) -> Vec<NoteEntry> {
    let entries = record.numbered().filter_map(|(id, event)| {
        Some(NoteEntry {
            key: format!("{} {id}", state.run.id),
            text: entry(event, record, state)?,
        })
    });
    entries.collect()
}

#[expect(clippy::wildcard_enum_match_arm, reason = "no other event is worth a note")]
fn entry(event: &Event, record: &Record, state: &State) -> Option<String> {
    let at = record.at.rfc3339();
    match event {
        Event::RoundFailed { task, round, reasons, .. } => {
            let name = state.task(*task).label();
            let mut text = format!("- {at} **{name}** iteration {round} not good enough\n");
            for reason in reasons {
                text.push_str(&format!("  - {}: {}\n", reason.step, one_line(&reason.text)));
            }
            Some(text)
        }
        Event::TaskSettled { task, end } if state.task(*task).parent.is_some() => {
            let task = state.task(*task);
            Some(format!("- {at} **{}** {}\n", task.name(), settled(task, end, state)))
        }
        Event::Switched { switch: Switch::Review, on: false, by } => {
            Some(format!("- {at} REVIEW SKIPPED from here on ({by})\n"))
        }
        _ => None,
    }
}

fn settled(task: &Task, end: &TaskEnd, state: &State) -> String {
    let title = one_line(&task.spec.title);
    let (rounds, time) = (count(task.round as usize, "iteration"), duration(task.spent.work_ms));
    let spent = format!("{rounds}, {time}, {}", money::cost(task.spent.bill));
    match end {
        TaskEnd::Closed => {
            let commit: String =
                task.commit.iter().flat_map(|commit| commit.chars()).take(10).collect();
            let waived = match waived(task, state).as_slice() {
                [] => String::new(),
                some => format!("; waived: {}", one_line(&some.join(", "))),
            };
            let used = task.used.line().map(|used| format!("; used {}", one_line(&used)));
            let used = used.unwrap_or_default();
            format!("DONE: {title} ({spent}, commit {commit}){waived}{used}")
        }
        TaskEnd::Failed { why } => format!("FAILED: {title}: {why} ({spent})"),
        TaskEnd::Skipped { why: Skip::Asked } => format!("skipped by a person: {title}"),
        TaskEnd::Skipped { why: Skip::Dropped } => {
            format!("skipped, its iteration was not started: {title}")
        }
        TaskEnd::Skipped { why: Skip::Blocked { by } | Skip::Stopped { by } } => {
            format!("BLOCKED by {}: {title}", state.task(*by).name())
        }
    }
}

/// The checks that a green result was excused from, so that nobody reads more into it.
pub(super) fn waived(task: &Task, state: &State) -> Vec<String> {
    let mut waived: Vec<String> = Vec::new();
    let skipped = |step: Step| task.skipped.get(&step);
    waived.extend(skipped(Step::Review).map(|why| format!("review skipped ({why})")));
    waived.extend(skipped(Step::Uat).map(|why| format!("UAT skipped ({why})")));
    let proven = state.root().and_then(|root| root.last(Step::Preflight));
    let is_red = proven.is_some_and(|shown| shown.facts.exit.is_some_and(|code| code != 0));
    if is_red && state.run.red_base_allowed {
        waived.push("red base: only new failures counted".to_owned());
    }
    let verdict = task.last(Step::Review).and_then(|shown| shown.facts.verdict());
    if verdict == Some(Verdict::RequestChanges) && skipped(Step::Review).is_none() {
        let gate = state.run.limits.review.row();
        waived.push(format!("verdict REQUEST_CHANGES overruled (gates.review: {gate})"));
    }
    waived
}
