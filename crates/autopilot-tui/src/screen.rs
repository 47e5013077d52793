//! The state of a run and of the view of it, folded from records, sights, notices and keys. It has no
//! clock, terminal or file; the time is an argument of the drawing.

mod worker;

use crate::key::MoveBy;
use crate::notice;
use crate::page::TextPage;
use crate::tally::Tally;
use autopilot_core::event::{Event, Outcome, Record, TaskEnd};
use autopilot_core::id::{TaskId, Time};
use autopilot_core::state::State;
use autopilot_core::step::Step;
use autopilot_engine::feed::Sight;
use autopilot_host::escape::one_line;
use autopilot_view::progress::{self, LineWeight, is_bad};
use autopilot_view::trouble::{LastTrouble, trouble};
use autopilot_view::{headline, why};
use std::collections::{BTreeMap, VecDeque};

pub use worker::Worker;

/// Lines of the log that are kept.
pub const LOG_LINES_MAX: usize = 500;
/// Lines of a failed step's log that are shown.
pub const TAIL_LINES_MAX: usize = 5;

/// How texts are shown: times as local times, and secrets taken out.
pub struct Manner {
    pub clock: Box<dyn Fn(Time) -> String + Send>,
    pub clean: Box<dyn Fn(&str) -> String + Send>,
}

impl Manner {
    /// Makes a text from outside one harmless line.
    pub fn line(&self, text: &str) -> String {
        one_line(&(self.clean)(text)).into_owned()
    }
}

/// Who is looking at the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// Someone at the process that works on the run: leaving means stopping.
    Controller,
    /// Someone at another process: leaving changes nothing.
    Onlooker,
}

/// What fills the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    Board,
    Tasks,
    Help,
    Page(TextPage),
}

/// A line of the log on the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    pub at: Time,
    pub text: String,
    pub kind: LineKind,
}

/// What a line of the log is about, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    Plain,
    /// Tasks start in parallel, or a task unlocks others.
    Graph,
    Good,
    Bad,
    Output,
}

/// The newest failure of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownFailure {
    pub task: TaskId,
    pub step: Step,
    pub round: u32,
    pub exit: Option<i32>,
    pub why: String,
    /// The path of the log, relative to the `.autopilot` directory.
    pub log: Option<String>,
    /// The end of the log, once it has been read.
    pub tail: Option<Vec<String>>,
}

/// Everything the dashboard shows.
pub struct Screen {
    pub manner: Manner,
    pub seat: Seat,
    pub state: State,
    pub tally: Tally,
    pub workers: BTreeMap<TaskId, Worker>,
    pub log: VecDeque<LogLine>,
    pub failure: Option<ShownFailure>,
    pub view: View,
    pub selected: Option<TaskId>,
    /// The answer to the last key, shown until the next key.
    pub answer: Option<String>,
    pub is_stopping: bool,
    /// A line above everything else: the process of the run is gone, or it waits.
    pub banner: Option<String>,
    pub has_color: bool,
    /// Whether the output of steps goes to the log too.
    pub streams_output: bool,
    word: String,
}

impl Screen {
    /// A screen on which no run is shown yet.
    pub fn new(seat: Seat, manner: Manner) -> Screen {
        Screen {
            manner,
            seat,
            state: State::default(),
            tally: Tally::default(),
            workers: BTreeMap::new(),
            log: VecDeque::new(),
            failure: None,
            view: View::Board,
            selected: None,
            answer: None,
            is_stopping: false,
            banner: None,
            has_color: true,
            streams_output: false,
            word: "starting".to_owned(),
        }
    }

    /// Shows a whole state: at the start, and when records were missed.
    pub fn take_up(&mut self, state: State) {
        self.tally = Tally::of(&state);
        self.state = state;
        self.failure = self.newest_failure();
        self.settle();
    }

    /// The state of the run in a few words.
    pub fn word(&self) -> &str {
        &self.word
    }

    /// Applies a record and puts its lines into the log.
    pub fn record(&mut self, record: &Record) {
        self.state.apply_record(record);
        self.tally.record(record, &self.state);
        self.settle();
        for event in &record.events {
            self.tell_event(event, record.at);
            self.note_failure(event);
        }
        self.forget_mended();
        for line in notice::lines(record, &self.state, &self.tally) {
            self.push(record.at, line, LineKind::Graph);
        }
    }

    /// Derives once per record what depends on more than the record's own tasks.
    fn settle(&mut self) {
        self.word = headline(&self.state);
        self.keep_live_workers();
    }

    /// Takes in what a step shows while it runs.
    pub fn sight(&mut self, task: TaskId, step: Step, sight: &Sight, at: Time) {
        let worker = self.workers.entry(task).or_default();
        let line = worker.see(sight, &self.manner);
        if self.streams_output
            && let Some(line) = line
        {
            let name = self.name(task);
            self.push(at, format!("{name} {step} | {line}"), LineKind::Output);
        }
    }

    /// Puts a notice into the log.
    pub fn notice(&mut self, text: &str, at: Time) {
        let text = self.manner.line(text);
        self.push(at, text, LineKind::Plain);
    }

    /// Takes in the last lines of the failed step's log, which the caller has read.
    pub fn tail(&mut self, log: &str, lines: Vec<String>) {
        if let Some(failure) = self.failure.as_mut().filter(|f| f.log.as_deref() == Some(log)) {
            failure.tail = Some(lines);
        }
    }

    /// The log whose last lines are to be read next.
    pub fn wants_tail(&self) -> Option<&str> {
        let failure = self.failure.as_ref().filter(|failure| failure.tail.is_none())?;
        failure.log.as_deref()
    }

    /// The name of a task as it is shown; the root is `run`.
    pub fn name(&self, task: TaskId) -> String {
        match self.state.tasks.get(task.index()) {
            Some(task) if task.parent.is_some() => self.manner.line(task.name()),
            Some(_) | None => "run".to_owned(),
        }
    }

    /// The tasks with a running attempt, in the order of their start.
    pub fn live(&self) -> Vec<TaskId> {
        self.state.live.values().map(|live| live.task).collect()
    }

    /// The task that keys act on: the selected one, else a running, failed or first one.
    pub fn chosen(&self) -> Option<TaskId> {
        let known = |id: &TaskId| id.index() < self.state.tasks.len();
        self.selected
            .filter(known)
            .or_else(|| self.live().first().copied())
            .or_else(|| self.failure.as_ref().map(|failure| failure.task))
            .or_else(|| self.tally.leaves.first().copied())
    }

    /// Shows another view, or the board again.
    pub fn toggle(&mut self, view: View) {
        self.view = if self.view == view { View::Board } else { view };
    }

    /// Scrolls a page, or moves the selection.
    pub fn move_by(&mut self, by: MoveBy, rows: usize) {
        match &mut self.view {
            View::Page(page) => page.scroll(by, rows),
            View::Board | View::Tasks => self.select(by, rows),
            View::Help => {}
        }
    }

    fn select(&mut self, by: MoveBy, rows: usize) {
        let live;
        let among = match self.view {
            View::Board if !self.state.live.is_empty() => {
                live = self.live();
                &live
            }
            View::Board | View::Tasks | View::Help | View::Page(_) => &self.tally.leaves,
        };
        let Some(last) = among.len().checked_sub(1) else { return };
        // The first key selects the first row instead of moving on from it.
        let place = self.selected.and_then(|task| among.iter().position(|id| *id == task));
        let place = match place {
            Some(place) => by.from(place, last, rows),
            None if by == MoveBy::Line(1) => 0,
            None => by.from(0, last, rows),
        };
        self.selected = among.get(place).copied();
    }

    fn push(&mut self, at: Time, text: String, kind: LineKind) {
        self.log.push_back(LogLine { at, text, kind });
        while self.log.len() > LOG_LINES_MAX {
            self.log.pop_front();
        }
    }

    fn tell_event(&mut self, event: &Event, at: Time) {
        let Some(line) = progress::line(event, &self.state) else { return };
        if line.weight > LineWeight::Step {
            return;
        }
        let text = self.manner.line(&line.text);
        self.push(at, text, kind(event));
    }

    fn note_failure(&mut self, event: &Event) {
        let Event::AttemptEnded { id, task, step, outcome, facts } = event else { return };
        let (Outcome::Failed { why } | Outcome::Misconfigured { why } | Outcome::Broke { why }) =
            outcome
        else {
            return;
        };
        // The task may already be in its next round: the same record may start it.
        let known = self.state.task(*task);
        let shown = known.last(*step).into_iter().chain(&known.broken);
        let round = shown.filter(|shown| shown.id == *id).map(|shown| shown.round).next();
        // A command that failed in the same round says more than the review after it.
        let is_told = |shown: &ShownFailure| {
            let of_same = shown.task == *task && Some(shown.round) == round;
            of_same && shown.step == Step::Validate && *step == Step::Review
        };
        if self.failure.as_ref().is_some_and(is_told) {
            return;
        }
        self.failure = Some(ShownFailure {
            task: *task,
            step: *step,
            round: round.unwrap_or(known.round),
            exit: facts.exit,
            why: self.manner.line(why),
            log: facts.log.clone(),
            tail: None,
        });
    }

    /// Takes the failure of a task that is done since off the screen.
    fn forget_mended(&mut self) {
        let Some(shown) = &self.failure else { return };
        let is_over = matches!(
            self.state.task(shown.task).end(),
            Some(TaskEnd::Closed | TaskEnd::Skipped { .. })
        );
        if is_over {
            self.failure = self.newest_failure();
        }
    }

    fn newest_failure(&self) -> Option<ShownFailure> {
        let LastTrouble { task, step, shown } = trouble(&self.state)?;
        Some(ShownFailure {
            task: task.id,
            step: step.or(task.step()).unwrap_or(Step::Tasks),
            round: shown.round,
            exit: shown.facts.exit,
            why: self.manner.line(why(&shown.outcome).unwrap_or_default()),
            log: shown.facts.log.clone(),
            tail: None,
        })
    }

    fn keep_live_workers(&mut self) {
        let live = self.live();
        for worker in &live {
            self.workers.entry(*worker).or_default();
        }
        let state = &self.state;
        self.workers.retain(|task, worker| {
            let attempt = state.live.iter().find(|(_, live)| live.task == *task);
            let Some((id, _)) = attempt else { return false };
            worker.now_at(*id);
            true
        });
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "only ends have a colour")]
fn kind(event: &Event) -> LineKind {
    match event {
        Event::AttemptEnded { outcome, .. } if is_bad(outcome) => LineKind::Bad,
        Event::TaskSettled { end: TaskEnd::Closed, .. } => LineKind::Good,
        Event::TaskSettled { .. } | Event::RailTripped { .. } | Event::RoundFailed { .. } => {
            LineKind::Bad
        }
        _ => LineKind::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{SampleRun, manner};

    #[test]
    fn only_the_newest_lines_of_the_log_are_kept() {
        let mut screen = Screen::new(Seat::Controller, manner());
        for n in 0..LOG_LINES_MAX + 9 {
            screen.notice(&n.to_string(), Time(0));
        }
        assert_eq!(screen.log.len(), LOG_LINES_MAX);
        assert_eq!(screen.log[0].text, "9");
    }

    #[test]
    fn arrows_select_among_the_workers_on_the_board_and_among_all_in_the_list() {
        let mut sample = SampleRun::planned(&[("a", &[]), ("b", &[]), ("c", &["a"]), ("d", &[])]);
        sample.start(&["b", "d"], Step::Build);
        let (a, b, d) = (sample.id("a"), sample.id("b"), sample.id("d"));
        let screen = &mut sample.screen;
        assert_eq!(screen.chosen(), Some(b), "keys are about the first worker");
        screen.move_by(MoveBy::Line(1), 5);
        assert_eq!(screen.selected, Some(b));
        screen.move_by(MoveBy::Line(1), 5);
        screen.move_by(MoveBy::Line(1), 5);
        assert_eq!(screen.selected, Some(d));
        screen.toggle(View::Tasks);
        screen.move_by(MoveBy::First, 5);
        assert_eq!(screen.selected, Some(a));
        screen.toggle(View::Tasks);
        assert_eq!(screen.view, View::Board);
    }

    #[test]
    fn the_failure_of_a_task_that_is_done_since_gives_way_to_one_that_is_not() {
        let mut sample = SampleRun::planned(&[("a", &[]), ("b", &[])]);
        sample.start(&["a", "b"], Step::Build);
        let (a, b) = (sample.id("a"), sample.id("b"));
        let broke = |why: &str| Outcome::Broke { why: why.into() };
        sample.ends(b, broke("b is broken"), Default::default());
        sample.ends(a, broke("a is broken"), Default::default());
        let shown = |sample: &SampleRun| sample.screen.failure.clone().map(|failure| failure.why);
        assert_eq!(shown(&sample).as_deref(), Some("a is broken"));
        sample.happens(vec![Event::TaskSettled { task: a, end: TaskEnd::Closed }]);
        assert_eq!(shown(&sample).as_deref(), Some("b is broken"));
        sample.happens(vec![Event::TaskSettled { task: b, end: TaskEnd::Closed }]);
        assert_eq!(shown(&sample), None);
        let mut late = Screen::new(Seat::Onlooker, manner());
        late.take_up(sample.state().clone());
        assert_eq!(late.failure, None);
    }

    #[test]
    fn a_state_taken_up_later_shows_the_same_as_one_that_was_followed() {
        let mut sample = SampleRun::planned(&[("a", &[]), ("b", &["a"])]);
        sample.start(&["a"], Step::Build);
        let task = sample.id("a");
        let outcome = Outcome::Failed { why: "red with hunter2".into() };
        let facts = autopilot_core::event::Facts { exit: Some(1), ..Default::default() };
        sample.ends(task, outcome, facts);
        let mut late = Screen::new(Seat::Onlooker, manner());
        late.take_up(sample.state().clone());
        let screen = &sample.screen;
        assert_eq!((&late.tally, &late.failure), (&screen.tally, &screen.failure));
        let why = late.failure.as_ref().map(|failure| failure.why.as_str());
        assert_eq!(why, Some("red with [secret]"));
        assert_eq!((late.word(), &late.workers), (screen.word(), &screen.workers));
    }
}
