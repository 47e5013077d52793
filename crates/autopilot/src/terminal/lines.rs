//! A run shown line by line: for a terminal without a dashboard, for a pipe and for a log.

use crate::cli::Global;
use crate::terminal;
use crate::terminal::watching::Watching;
use autopilot_agents::telling;
use autopilot_core::event::Record;
use autopilot_core::id::{TaskId, Time};
use autopilot_core::state::State;
use autopilot_core::step::Step;
use autopilot_engine::feed::{FeedItem, FeedNews, Sight, SightLevel, Subscription};
use autopilot_engine::run_process::OpenRun;
use autopilot_tui::notice;
use autopilot_tui::tally::Tally;
use autopilot_view::progress::{self, LineWeight};
use std::time::Duration;

/// How long to wait for the next item of a feed before asking again.
pub const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verbosity {
    Quiet,
    Normal,
    Verbose,
}

impl Verbosity {
    fn of(global: &Global) -> Verbosity {
        match (global.quiet, global.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        }
    }

    fn shows(self, weight: LineWeight) -> bool {
        match self {
            Verbosity::Quiet => weight == LineWeight::Transition,
            Verbosity::Normal => weight <= LineWeight::Step,
            Verbosity::Verbose => true,
        }
    }
}

/// Shows a run line by line while it works.
pub fn watch(global: &Global, run: &OpenRun) -> Watching {
    let mut lines = TerminalLines::of(global);
    let (mut subscription, mut state) = run.follow(lines.level());
    Watching::start(move || lines.follow(&mut subscription, &mut state))
}

/// A run shown line by line on standard error.
pub struct TerminalLines {
    verbosity: Verbosity,
    tally: Tally,
}

impl TerminalLines {
    /// The lines of the verbosity that the command line asks for.
    pub fn of(global: &Global) -> TerminalLines {
        TerminalLines { verbosity: Verbosity::of(global), tally: Tally::default() }
    }

    /// Returns the lines of a record: first its steps, then what it means for the graph of tasks.
    pub fn told(&mut self, record: &Record, state: &State) -> Vec<String> {
        self.tally.record(record, state);
        let clock = clock(record.at);
        let steps = record.events.iter().filter_map(|event| progress::line(event, state));
        let steps = steps.filter(|line| self.verbosity.shows(line.weight)).map(|line| line.text);
        let mut lines: Vec<String> = steps.collect();
        if self.verbosity.shows(LineWeight::Step) {
            lines.extend(notice::lines(record, state, &self.tally));
        }
        lines.into_iter().map(|line| format!("{clock} {line}")).collect()
    }
}

impl TerminalLines {
    /// The sights that are shown besides the records.
    pub fn level(&self) -> SightLevel {
        match self.verbosity {
            Verbosity::Verbose => SightLevel::Output,
            Verbosity::Quiet | Verbosity::Normal => SightLevel::Notices,
        }
    }

    /// Shows everything the feed brings until the run has ended.
    pub fn follow(&mut self, subscription: &mut Subscription, state: &mut State) {
        let mut missed = 0;
        loop {
            match subscription.take(PATIENCE) {
                Ok(FeedNews::Item(FeedItem::Missed(more))) => missed += more,
                Ok(FeedNews::Item(item)) => self.tell(&item, state),
                Ok(FeedNews::Quiet) => {}
                Ok(FeedNews::Ended) => break,
                Err(error) => {
                    terminal::note(&format!("cannot follow the run any further: {error}"));
                    break;
                }
            }
        }
        if missed > 0 {
            terminal::note(&format!(
                "{} came faster than they could be shown; the logs have them",
                autopilot_view::count(missed as usize, "line")
            ));
        }
    }

    /// Shows one item and applies it to `state`.
    pub fn tell(&mut self, item: &FeedItem, state: &mut State) {
        match item {
            FeedItem::Record(record) => {
                state.apply_record(record);
                for line in self.told(record, state) {
                    terminal::note(&line);
                }
            }
            FeedItem::Sight { task, step, sight } => self.sight(*task, *step, sight, state),
            FeedItem::Notice(text) => terminal::note(text),
            FeedItem::Missed(_) => {}
        }
    }

    fn sight(&self, task: TaskId, step: Step, sight: &Sight, state: &State) {
        let task = state.task(task);
        let name = task.label();
        match sight {
            Sight::Suspect { silent } => terminal::note(&format!(
                "{name}: {step} has been silent for {} s; it will be stopped if it stays silent",
                silent.as_secs()
            )),
            Sight::Output { text } if self.verbosity == Verbosity::Verbose => {
                terminal::note(&format!("{name} {step} | {text}"));
            }
            Sight::Agent(event) if self.verbosity == Verbosity::Verbose => {
                if let Some(text) = telling::told(event) {
                    terminal::note(&format!("{name} {step} | {text}"));
                }
            }
            Sight::Output { .. } | Sight::Agent(_) => {}
        }
    }
}

/// The local time of day of a moment.
pub fn clock(at: Time) -> String {
    jiff::Timestamp::from_millisecond(at.0)
        .map(|at| at.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string())
        .unwrap_or_default()
}
