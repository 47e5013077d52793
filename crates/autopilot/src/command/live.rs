//! The dashboard of a run: when it is shown, and what its keys do. Each key does what a command
//! does, by the same means.

use super::past;
use crate::cli::Global;
use crate::terminal;
use crate::terminal::lines::{PATIENCE, TerminalLines, clock};
use crate::terminal::watching::Watching;
use autopilot_core::event::HaltWhy;
use autopilot_core::id::{TaskId, Time};
use autopilot_core::state::State;
use autopilot_engine::ask::{self, AskError, HaltReply, HaltRequest};
use autopilot_engine::cause::chain;
use autopilot_engine::clock::now;
use autopilot_engine::feed::{FeedItem, FeedNews, SightLevel, Subscription};
use autopilot_engine::flag::Flag;
use autopilot_engine::place::StatePaths;
use autopilot_engine::query::{diff, log};
use autopilot_engine::run_process::OpenRun;
use autopilot_host::hand;
use autopilot_tui::dashboard::{self, ScreenFeed};
use autopilot_tui::screen::{Manner, Screen, Seat, TAIL_LINES_MAX};
use autopilot_tui::show::{self, Hands};
use autopilot_tui::tty;
use camino::Utf8Path;
use std::sync::mpsc;
use std::time::Duration;

/// The most bytes of a log that are shown.
const LOG_BYTES_MAX: u64 = 1 << 20;
const DIFF_BYTES_MAX: usize = 4 << 20;
const SIGINT: i32 = 2;
/// How long the screen waits for the answer to a key.
const KEY_WAIT_MAX: Duration = Duration::from_secs(1);

/// Whether the dashboard is wanted: there is a terminal, and no option or variable is against it.
pub fn is_wanted(global: &Global) -> bool {
    let variable = |name: &str| std::env::var(name).ok();
    !(global.no_ui || global.quiet || global.json)
        && is_for_people(variable("TERM").as_deref(), variable("CI").as_deref())
        && tty::is_usable()
}

fn is_for_people(term: Option<&str>, ci: Option<&str>) -> bool {
    term.is_some_and(|term| !term.is_empty() && term != "dumb")
        && ci.is_none_or(|ci| matches!(ci, "" | "0" | "false"))
}

/// Shows the dashboard of a run while this process works on it.
pub fn watch(global: &Global, place: &StatePaths, run: &OpenRun) -> Watching {
    let live = LiveView {
        place: place.clone(),
        streams_output: global.verbose,
        lines: TerminalLines::of(global),
    };
    let (subscription, state) = run.follow(SightLevel::Output);
    Watching::start(move || live.show(subscription, state))
}

/// Shows the dashboard from the first record on, when signals are caught and it is sure to be
/// removed again. Before that, and if the terminal is lost, it prints lines.
struct LiveView {
    place: StatePaths,
    streams_output: bool,
    lines: TerminalLines,
}

impl LiveView {
    fn show(mut self, mut subscription: Subscription, mut state: State) {
        let first = loop {
            match subscription.take(PATIENCE) {
                Ok(FeedNews::Item(item @ FeedItem::Record(_))) => break item,
                Ok(FeedNews::Item(item)) => self.lines.tell(&item, &mut state),
                Ok(FeedNews::Quiet) => {}
                Ok(FeedNews::Ended) | Err(_) => return,
            }
        };
        let mut begun = state.clone();
        if let FeedItem::Record(record) = &first {
            begun.apply_record(record);
        }
        terminal::flush();
        let mut screen = screen(Seat::Controller, &self.place, &begun);
        screen.streams_output = self.streams_output;
        screen.take_up(state);
        dashboard::tell(&mut screen, &first);
        let mut feed = ScreenFeed::of(subscription);
        let _lost = show::show(&mut screen, &mut feed, &mut OwnHands::new(&self.place));
        // There are items left only if the terminal was lost.
        self.lines.follow(&mut feed.subscription, &mut screen.state);
    }
}

/// An empty screen with the person's time zone and colours, which hides the run's secrets.
pub fn screen(seat: Seat, place: &StatePaths, state: &State) -> Screen {
    let redactor = past::at(place).ok().map(|archive| archive.redactor(state));
    let paths = place.clone();
    let clean = move |text: &str| match &redactor {
        Some(redactor) => paths.relative(&redactor.redact(text)),
        None => paths.relative(text),
    };
    let manner = Manner { clock: Box::new(clock), clean: Box::new(clean) };
    let mut screen = Screen::new(seat, manner);
    screen.has_color = std::env::var_os("NO_COLOR").is_none();
    screen
}

/// What the keys of the dashboard do.
pub struct OwnHands {
    place: StatePaths,
}

impl OwnHands {
    /// The keys for the run of this repository.
    pub fn new(place: &StatePaths) -> OwnHands {
        OwnHands { place: place.clone() }
    }

    /// Asks the process that works on the run, without keeping the screen waiting for long. The
    /// request is carried on where that process is slow to answer.
    fn asked(
        &self,
        ask: impl FnOnce(&StatePaths) -> Result<String, AskError> + Send + 'static,
    ) -> String {
        let (sender, answer) = mpsc::channel();
        let place = self.place.clone();
        std::thread::spawn(move || {
            let _nobody_waits = sender.send(ask(&place));
        });
        match answer.recv_timeout(KEY_WAIT_MAX) {
            Ok(Ok(text)) => text,
            Ok(Err(error)) => chain(&error),
            Err(_slow) => "the run was asked; it has not answered yet".to_owned(),
        }
    }

    fn in_repository<'a>(&self, path: &'a Utf8Path) -> &'a Utf8Path {
        path.strip_prefix(&self.place.root).unwrap_or(path)
    }
}

impl Hands for OwnHands {
    fn now(&self) -> Time {
        now()
    }

    fn pause(&mut self, state: &State) -> String {
        let is_paused = state.run.halt.as_ref().is_some_and(|halt| halt.why == HaltWhy::Pause);
        if !is_paused && Flag::Pause.raised(&self.place).is_none() {
            return self.asked(|place| Ok(ask::halt(place, HaltRequest::Pause)?.to_string()));
        }
        self.asked(|place| {
            let (_, answer) = ask::unpause(place)?;
            Ok(answer.map_or_else(|| "the pause is cancelled".to_owned(), |told| told.text))
        })
    }

    fn stop(&mut self, now: bool) -> String {
        let (request, then) = match now {
            true => (HaltRequest::StopNow, "`autopilot resume` continues it"),
            false => (HaltRequest::Stop, "S stops it now"),
        };
        self.asked(move |place| {
            let reply = ask::halt(place, request)?;
            let is_heard = matches!(&reply, HaltReply::Answered { answer, .. } if answer.changed);
            Ok(if is_heard { format!("{reply}; {then}") } else { reply.to_string() })
        })
    }

    fn interrupt(&mut self) {
        // Without a handler the signal ends this process, which is wanted too.
        let _always_possible = hand::signal_self(SIGINT);
    }

    fn log(&mut self, state: &State, task: TaskId) -> Result<(String, String), String> {
        let task = state.task(task);
        let name = task.label();
        let run = (state.run.id.as_str(), state.run.started_at);
        let (path, heading) = log::newest_of(&self.place, name, run)
            .ok_or_else(|| format!("{name} has no log yet"))?;
        let shown = self.in_repository(&path);
        log::readable_end(&self.place, &path, LOG_BYTES_MAX)
            .map(|text| (heading, text))
            .map_err(|error| format!("cannot read {shown}: {error}"))
    }

    fn diff(&mut self, state: &State, task: TaskId) -> Result<(String, String), String> {
        let task = state.task(task);
        let text =
            diff::text_of(&self.place, task, DIFF_BYTES_MAX).map_err(|error| error.to_string())?;
        if text.trim().is_empty() {
            return Err(format!("{} has changed nothing yet", task.name()));
        }
        Ok((format!("{}: changed so far", task.name()), text))
    }

    fn tail(&mut self, state: &State, log: &str) -> Vec<String> {
        log::reason_lines(&self.place, &state.run.id, log, TAIL_LINES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumb_terminals_and_build_servers_get_lines() {
        assert!(is_for_people(Some("xterm-256color"), None));
        assert!(is_for_people(Some("screen"), Some("false")));
        assert!(!is_for_people(Some("dumb"), None));
        assert!(!is_for_people(None, None));
        assert!(!is_for_people(Some("xterm"), Some("true")));
    }
}
