//! `autopilot status --watch`: the run of another process as it goes on, read from the journal.
//! On a terminal the dashboard, elsewhere a line per change. It ends when nobody works on it.

use super::REFRESH;
use crate::cli::Global;
use crate::command::live::{self, OwnHands};
use crate::command::past::{Past, Standing, standing, unreadable};
use crate::exit::Failure;
use crate::terminal;
use crate::terminal::lines::Lines;
use autopilot_core::event::Record;
use autopilot_core::state::State;
use autopilot_engine::store;
use autopilot_engine::workspace;
use autopilot_host::redact::Redactor;
use autopilot_journal::{History, Run};
use autopilot_tui::screen::{Screen, Seat};
use autopilot_tui::show::{self, Feed, News};
use autopilot_tui::tty::{self, Signals};
use std::time::Instant;

/// Records taken at a time; the rest comes with the next look.
const RECORDS_MAX: usize = 4096;

/// Watches the newest run until nobody works on it any more. What it came to is for the caller.
pub fn watch(global: &Global) -> Result<(), Failure> {
    let (_, Some(past)) = Past::open(global)? else { return Ok(()) };
    let Some(told) = past.newest()? else { return Ok(()) };
    if !matches!(told.standing(), Standing::Live { .. }) {
        return Ok(());
    }
    let redactor = past.redactor(&told.state);
    let follower = Follower { past, run: told.run };
    if live::is_wanted(global) {
        dashboard(follower, told.state)
    } else {
        lines(global, &follower, told.state, &redactor)
    }
}

fn lines(
    global: &Global,
    follower: &Follower,
    mut state: State,
    redactor: &Redactor,
) -> Result<(), Failure> {
    let mut lines = Lines::of(global);
    let counted = autopilot_tui::notice::counted(&autopilot_tui::tally::Tally::of(&state));
    let title = format!("{}: {counted}", state.run.title);
    terminal::say(&redactor.redact(&title));
    loop {
        // Asked before reading: what is written after the end would be missed otherwise.
        let is_live = follower.is_live(&state)?;
        for record in follower.news(state.seq)? {
            state.apply_record(&record);
            for line in lines.told(&record, &state) {
                terminal::say(&redactor.redact(&line));
            }
        }
        if !is_live {
            terminal::say("");
            return Ok(());
        }
        std::thread::sleep(REFRESH);
    }
}

fn dashboard(follower: Follower, state: State) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::failed(format!("cannot hear signals: {error}"));
    let signals = Signals::listen().map_err(cannot)?;
    let place = follower.past.place.clone();
    let mut screen = live::screen(Seat::Onlooker, &place, &state);
    screen.take_up(state);
    let mut feed = Watched { follower, signals, looked: None, failed: None };
    let shown = show::show(&mut screen, &mut feed, &mut OwnHands::new(&place));
    if let Some(signal) = feed.signals.any() {
        tty::obey(signal);
    }
    if let Some(failure) = feed.failed {
        return Err(failure);
    }
    shown.map_err(|error| Failure::failed(error.to_string()))
}

/// One run in the journal.
struct Follower {
    past: Past,
    run: Run,
}

impl Follower {
    fn news(&self, after: u64) -> Result<Vec<Record>, Failure> {
        let records =
            self.past.history.read(&self.run.id, after + 1, RECORDS_MAX).map_err(unreadable)?;
        records
            .iter()
            .map(|record| store::decode(record).map_err(super::super::past::unfoldable))
            .collect()
    }

    fn is_live(&self, state: &State) -> Result<bool, Failure> {
        let holder = workspace::holder(&self.past.place);
        let run = self.past.history.run(&self.run.id).map_err(unreadable)?;
        let run = run.as_ref().unwrap_or(&self.run);
        Ok(matches!(standing(run, state, holder.as_ref()), Standing::Live { .. }))
    }
}

/// What the dashboard gets of it.
struct Watched {
    follower: Follower,
    signals: Signals,
    looked: Option<Instant>,
    failed: Option<Failure>,
}

impl Feed for Watched {
    fn take(&mut self, screen: &mut Screen) -> News {
        if self.signals.any().is_some() {
            return News::End;
        }
        if self.looked.is_some_and(|at| at.elapsed() < REFRESH) {
            return News::None;
        }
        self.looked = Some(Instant::now());
        let (is_live, records) =
            match (self.follower.is_live(&screen.state), self.follower.news(screen.state.seq)) {
                (Ok(is_live), Ok(records)) => (is_live, records),
                (Err(failure), _) | (_, Err(failure)) => {
                    self.failed = Some(failure);
                    return News::End;
                }
            };
        for record in &records {
            screen.record(record);
        }
        match (is_live, records.is_empty()) {
            (false, true) => News::End,
            (true, true) => News::None,
            (_, false) => News::Some,
        }
    }
}
