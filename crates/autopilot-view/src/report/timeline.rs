//! Attempts and waits of tasks as bars on an axis of time.

use super::attempt::tone_and_word;
use super::words::ReportLine;
use super::{PageSource, Tone};
use crate::duration;
use autopilot_core::event::{Event, HoldWhy, Record};
use autopilot_core::id::{TaskId, Time};
use std::collections::BTreeMap;

/// The most bars in one row; the last ones are shown.
const BARS_MAX: usize = 80;
/// The number of marks on the axis, including the two ends.
const TICKS: u64 = 5;

/// The timeline of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    pub begin: Time,
    pub end: Time,
    pub ticks: Vec<String>,
    pub rows: Vec<Row>,
}

/// The bars of one task.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub task: TaskId,
    pub name: ReportLine,
    /// The time from the creation of the task to its end.
    pub life: BarExtent,
    pub bars: Vec<Bar>,
    /// The number of earlier bars, which are not shown.
    pub before: usize,
}

/// One attempt or wait.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    pub extent: BarExtent,
    pub kind: BarKind,
    pub words: ReportLine,
    /// The id of the attempt; none for a wait.
    pub attempt: Option<String>,
}

/// The kind of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarKind {
    Work(Tone),
    /// A wait for an account, or for a person to resume the run.
    Wait,
}

/// The place of a bar in thousandths of a percent, so that the same run gives the same page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarExtent {
    pub left: u64,
    pub width: u64,
}

struct TimeSpan {
    from: Time,
    to: Option<Time>,
    why: String,
}

/// The timeline of the chosen tasks. Attempts and waits without an end last until now, or until the
/// last record of a run that no process works on.
pub(super) fn timeline(source: &PageSource<'_>, records: &[Record]) -> Timeline {
    let (state, words) = (source.state, &source.words);
    let until = if source.is_live { source.known.now } else { state.at };
    let begin = state.run.started_at;
    let end = Time(until.0.max(begin.0 + 1));
    let scale = Scale { begin, ms: end.since_ms(begin).max(1) };
    let bar = |from: Time, to: Option<Time>, kind, what: String, attempt| {
        let to = to.unwrap_or(end);
        let words = words.line(&format!("{what} ({})", duration(to.since_ms(from))));
        (from, Bar { extent: scale.extent(from, to), kind, words, attempt })
    };
    let (mut waits, births) = (waits(records), births(records));
    let mut rows = Vec::new();
    for id in &source.choice.tasks {
        let task = state.task(*id);
        let worked = source.history.of_task(*id).map(|tried| {
            let (tone, word) = tone_and_word(tried, source.is_live);
            let (to, what) =
                (tried.ended.as_ref().map(|(at, _)| *at), format!("{}: {word}", tried.step));
            bar(tried.started, to, BarKind::Work(tone), what, Some(tried.id.to_string()))
        });
        let waited = waits.remove(id).unwrap_or_default().into_iter();
        let waited = waited.map(|span| bar(span.from, span.to, BarKind::Wait, span.why, None));
        let mut bars: Vec<(Time, Bar)> = worked.chain(waited).collect();
        bars.sort_by_key(|(from, _)| *from);
        let before = bars.len().saturating_sub(BARS_MAX);
        let born = births.get(id).copied().unwrap_or(begin);
        rows.push(Row {
            task: *id,
            name: words.task_name(task, "the run itself"),
            life: scale.extent(born, task.ended_at.unwrap_or(end)),
            bars: bars.into_iter().skip(before).map(|(_, bar)| bar).collect(),
            before,
        });
    }
    let ticks = (0..TICKS).map(|tick| duration(scale.ms * tick / (TICKS - 1))).collect();
    Timeline { begin, end, ticks, rows }
}

struct Scale {
    begin: Time,
    ms: u64,
}

impl Scale {
    fn extent(&self, from: Time, to: Time) -> BarExtent {
        let place = |at: Time| {
            let ms = u128::from(at.since_ms(self.begin).min(self.ms));
            u64::try_from(ms * 100_000 / u128::from(self.ms)).unwrap_or(100_000)
        };
        let left = place(from);
        BarExtent { left, width: place(to).saturating_sub(left) }
    }
}

/// The time at which each task was added.
fn births(records: &[Record]) -> BTreeMap<TaskId, Time> {
    let mut births = BTreeMap::new();
    for record in records {
        for event in &record.events {
            if let Event::TaskAdded { task, .. } = event {
                births.insert(*task, record.at);
            }
        }
    }
    births
}

/// The waits of all tasks; the row of the run has the times in which nothing was at work.
fn waits(records: &[Record]) -> BTreeMap<TaskId, Vec<TimeSpan>> {
    let mut all: BTreeMap<TaskId, Vec<TimeSpan>> = BTreeMap::new();
    let mut last: Option<Time> = None;
    for record in records {
        for event in &record.events {
            wait(&mut all, event, record.at, last);
        }
        last = Some(record.at);
    }
    all
}

#[expect(clippy::wildcard_enum_match_arm, reason = "no other event begins or ends a wait")]
fn wait(all: &mut BTreeMap<TaskId, Vec<TimeSpan>>, event: &Event, at: Time, last: Option<Time>) {
    match event {
        Event::WaitBegan { task, account, why, .. } => {
            let why = match why {
                HoldWhy::Quota => format!("waiting for quota of {account}"),
                HoldWhy::Auth
                | HoldWhy::Outage
                | HoldWhy::Model
                | HoldWhy::Program
                | HoldWhy::Machine(_) => {
                    format!("waiting for {account}: {}", why.word())
                }
            };
            all.entry(*task).or_default().push(TimeSpan { from: at, to: None, why });
        }
        Event::WaitEnded { task }
        | Event::AttemptStarted { task, .. }
        | Event::TaskSettled { task, .. } => close(all, *task, at),
        Event::Halted { halt } => {
            let why = format!("halted: {}", halt.why);
            all.entry(TaskId::ROOT).or_default().push(TimeSpan { from: at, to: None, why });
        }
        Event::Resumed => close(all, TaskId::ROOT, at),
        Event::Booted { .. } => {
            let root = all.entry(TaskId::ROOT).or_default();
            let is_halted = root.last().is_some_and(|span| span.to.is_none());
            if let (Some(from), false) = (last, is_halted) {
                let why = "no process was running".to_owned();
                root.push(TimeSpan { from, to: Some(at), why });
            }
        }
        _ => {}
    }
}

fn close(all: &mut BTreeMap<TaskId, Vec<TimeSpan>>, task: TaskId, at: Time) {
    if let Some(span) = all.get_mut(&task).and_then(|spans| spans.last_mut())
        && span.to.is_none()
    {
        span.to = Some(at);
    }
}
