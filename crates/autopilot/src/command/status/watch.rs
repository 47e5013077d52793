//! `autopilot status --watch`: follows the run of another process in the journal, with the
//! dashboard on a terminal and a line per change elsewhere, until no process works on it.

use crate::cli::Global;
use crate::command::live::{self, OwnHands};
use crate::command::past;
use crate::exit::{CommandFailure, OrFailed};
use crate::terminal;
use crate::terminal::lines::{PATIENCE, TerminalLines};
use autopilot_core::state::State;
use autopilot_engine::feed::{FeedItem, FeedNews, Subscription};
use autopilot_engine::place::StatePaths;
use autopilot_engine::query::QueryError;
use autopilot_host::redact::Redactor;
use autopilot_tui::dashboard::ScreenFeed;
use autopilot_tui::screen::Seat;
use autopilot_tui::show;
use autopilot_tui::tty::{self, Signals};
use std::sync::Arc;

/// Watches the newest run until no process works on it. The caller prints the result.
pub fn watch(global: &Global) -> Result<(), CommandFailure> {
    let (place, Some(past)) = past::open(global)? else { return Ok(()) };
    let Some(told) = past.newest()? else { return Ok(()) };
    if !told.is_live() {
        return Ok(());
    }
    let redactor = past.redactor(&told.state);
    let subscription = past.follow(&told)?;
    if live::is_wanted(global) {
        dashboard(&place, subscription, told.state)
    } else {
        lines(global, subscription, told.state, &redactor)
    }
}

fn lines(
    global: &Global,
    mut subscription: Subscription,
    mut state: State,
    redactor: &Redactor,
) -> Result<(), CommandFailure> {
    let mut lines = TerminalLines::of(global);
    let counted = autopilot_tui::notice::counted(&autopilot_tui::tally::Tally::of(&state));
    let title = format!("{}: {counted}", state.run.title);
    terminal::say(&redactor.redact(&title));
    loop {
        match subscription.take(PATIENCE).map_err(QueryError::from)? {
            FeedNews::Item(FeedItem::Record(record)) => {
                state.apply_record(&record);
                for line in lines.told(&record, &state) {
                    terminal::say(&redactor.redact(&line));
                }
            }
            FeedNews::Item(FeedItem::Sight { .. } | FeedItem::Notice(_) | FeedItem::Missed(_))
            | FeedNews::Quiet => {}
            FeedNews::Ended => {
                terminal::say("");
                return Ok(());
            }
        }
    }
}

fn dashboard(
    place: &StatePaths,
    subscription: Subscription,
    state: State,
) -> Result<(), CommandFailure> {
    let signals = Arc::new(Signals::listen().or_failed("cannot listen for signals")?);
    let mut screen = live::screen(Seat::Onlooker, place, &state);
    screen.take_up(state);
    let heard = Arc::clone(&signals);
    let is_over = Box::new(move || heard.any().is_some());
    let mut feed = ScreenFeed { subscription, is_over, failed: None };
    let shown = show::show(&mut screen, &mut feed, &mut OwnHands::new(place));
    if let Some(signal) = signals.any() {
        tty::obey(signal);
    }
    if let Some(error) = feed.failed {
        return Err(QueryError::from(error).into());
    }
    shown.map_err(CommandFailure::failed)
}
