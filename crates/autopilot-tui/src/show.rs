//! The loop of the dashboard: it reads the feed and the keys and draws frames. It owns the terminal.

use crate::dashboard::ScreenFeed;
use crate::draw;
use crate::key::{self, KeyAct};
use crate::page::TextPage;
use crate::screen::{Screen, View};
use crate::tty::Tty;
use autopilot_core::id::{TaskId, Time};
use autopilot_core::state::State;
use crossterm::event::{self, Event};
use crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate};
use crossterm::{execute, queue};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use std::io;
use std::time::{Duration, Instant};

/// How long a key or an item of the feed may wait; also the shortest time between two frames.
const POLL: Duration = Duration::from_millis(100);
/// How often the screen is drawn for its clocks although nothing happened.
const REDRAW_EVERY: Duration = Duration::from_millis(500);
/// How often a log that is shown is read again.
const REREAD_EVERY: Duration = Duration::from_secs(1);
/// Keys read between two frames.
const KEYS_MAX: usize = 64;

/// Why the dashboard could not be shown.
#[derive(Debug, thiserror::Error)]
pub enum ShowError {
    #[error("cannot use the terminal: {0}")]
    Terminal(#[from] io::Error),
    #[error("the dashboard was closed after a panic")]
    Panicked,
}

/// Whether the feed had anything since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    None,
    Some,
    /// The feed has ended.
    End,
}

/// The effects of keys. Each does the same as a command, by the same means.
pub trait Hands {
    /// The time now.
    fn now(&self) -> Time;
    /// Pauses the run or cancels the pause; returns what it did, or why it refused.
    fn pause(&mut self, state: &State) -> String;
    /// Stops the run after the current steps, or now; returns what it did.
    fn stop(&mut self, now: bool) -> String;
    /// Sends this process the interrupt that a terminal sends for Ctrl-C.
    fn interrupt(&mut self);
    /// A title and the end of the newest log of a task.
    fn log(&mut self, state: &State, task: TaskId) -> Result<(String, String), String>;
    /// A title and the changes of a task.
    fn diff(&mut self, state: &State, task: TaskId) -> Result<(String, String), String>;
    /// The lines of a failed step's log that say why, by the path in the journal.
    fn tail(&mut self, state: &State, log: &str) -> Vec<String>;
}

/// Shows the screen until the feed ends or an onlooker leaves.
pub fn show(
    screen: &mut Screen,
    feed: &mut ScreenFeed,
    hands: &mut dyn Hands,
) -> Result<(), ShowError> {
    let tty = Tty::take()?;
    let mut terminal = Terminal::new(CrosstermBackend::new(tty.writer()?))?;
    let mut drawn: Option<Instant> = None;
    let mut read = Instant::now();
    loop {
        let news = feed.take(screen);
        if news == News::End {
            return Ok(());
        }
        if let Some(log) = screen.wants_tail().map(str::to_owned) {
            let lines = hands.tail(&screen.state, &log);
            screen.tail(&log, lines);
        }
        if read.elapsed() >= REREAD_EVERY {
            read = Instant::now();
            reread(screen, hands);
        }
        if !tty.is_ours() {
            return Err(ShowError::Panicked);
        }
        if news == News::Some || drawn.is_none_or(|at| at.elapsed() >= REDRAW_EVERY) {
            // Terminals that support it show the frame as a whole; others ignore the request.
            queue!(terminal.backend_mut(), BeginSynchronizedUpdate)?;
            terminal.draw(|frame| draw::draw(frame, screen, hands.now()))?;
            execute!(terminal.backend_mut(), EndSynchronizedUpdate)?;
            drawn = Some(Instant::now());
        }
        let mut wait = POLL;
        for _ in 0..KEYS_MAX {
            if !event::poll(wait)? {
                break;
            }
            wait = Duration::ZERO;
            drawn = None;
            let Event::Key(key) = event::read()? else { continue };
            match key::act(key, screen.seat, &screen.view) {
                Some(KeyAct::Leave) => return Ok(()),
                Some(KeyAct::Redraw) => terminal.clear()?,
                Some(act) => {
                    let rows = draw::rows(screen, terminal.size()?.height);
                    obey(act, screen, hands, rows);
                }
                None => {}
            }
        }
    }
}

/// Does what a key means and shows the answer.
pub fn obey(act: KeyAct, screen: &mut Screen, hands: &mut dyn Hands, rows: usize) {
    screen.answer = None;
    match act {
        KeyAct::Pause => screen.answer = Some(hands.pause(&screen.state)),
        KeyAct::Stop => {
            screen.is_stopping = true;
            screen.answer = Some(hands.stop(false));
        }
        KeyAct::StopNow => screen.answer = Some(hands.stop(true)),
        // After the stop key, an interrupt is the second request to stop, which means now.
        KeyAct::Interrupt if screen.is_stopping => screen.answer = Some(hands.stop(true)),
        KeyAct::Interrupt => {
            screen.answer =
                Some("stopping after the current step; press again to stop now".to_owned());
            hands.interrupt();
        }
        KeyAct::Log => open(screen, |state, task| hands.log(state, task), TextPage::log),
        KeyAct::Diff => open(screen, |state, task| hands.diff(state, task), TextPage::diff),
        KeyAct::Move(by) => screen.move_by(by, rows),
        KeyAct::Tasks => screen.toggle(View::Tasks),
        KeyAct::Help => screen.toggle(View::Help),
        KeyAct::Back => screen.view = View::Board,
        KeyAct::Leave | KeyAct::Redraw => {}
    }
}

fn open(
    screen: &mut Screen,
    read: impl FnOnce(&State, TaskId) -> Result<(String, String), String>,
    page: impl FnOnce(String, &str) -> TextPage,
) {
    let Some(task) = screen.chosen() else {
        screen.answer = Some("no tasks yet".to_owned());
        return;
    };
    screen.selected = Some(task);
    match read(&screen.state, task) {
        Ok((title, text)) => screen.view = View::Page(page(title, &text)),
        Err(why) => screen.answer = Some(screen.manner.line(&why)),
    }
}

/// Reads a shown log again: it may have grown, or the task may have a newer one.
fn reread(screen: &mut Screen, hands: &mut dyn Hands) {
    let Some(task) = screen.chosen() else { return };
    let View::Page(page) = &mut screen.view else { return };
    if page.kind != crate::page::PageKind::Log || !page.follows {
        return;
    }
    if let Ok((title, text)) = hands.log(&screen.state, task) {
        page.title = title;
        page.grow(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::SampleRun;
    use autopilot_core::step::Step;

    #[derive(Default)]
    struct Noted(Vec<&'static str>);

    impl Hands for Noted {
        fn now(&self) -> Time {
            Time(0)
        }

        fn pause(&mut self, _: &State) -> String {
            self.0.push("pause");
            String::new()
        }

        fn stop(&mut self, now: bool) -> String {
            self.0.push(if now { "stop now" } else { "stop" });
            String::new()
        }

        fn interrupt(&mut self) {
            self.0.push("interrupt");
        }

        fn log(&mut self, _: &State, _: TaskId) -> Result<(String, String), String> {
            Err("a has no log yet".to_owned())
        }

        fn diff(&mut self, state: &State, task: TaskId) -> Result<(String, String), String> {
            Ok((state.task(task).name().to_owned(), "+new".to_owned()))
        }

        fn tail(&mut self, _: &State, _: &str) -> Vec<String> {
            Vec::new()
        }
    }

    fn obeyed(acts: &[KeyAct]) -> (Vec<&'static str>, SampleRun) {
        let mut sample = SampleRun::planned(&[("a", &[]), ("b", &[])]);
        sample.start(&["b"], Step::Build);
        let mut hands = Noted::default();
        for act in acts {
            obey(*act, &mut sample.screen, &mut hands, 10);
        }
        (hands.0, sample)
    }

    #[test]
    fn an_interrupt_after_a_stop_by_key_means_now() {
        assert_eq!(obeyed(&[KeyAct::Interrupt, KeyAct::Interrupt]).0, ["interrupt", "interrupt"]);
        assert_eq!(obeyed(&[KeyAct::Stop, KeyAct::Interrupt]).0, ["stop", "stop now"]);
        assert_eq!(obeyed(&[KeyAct::StopNow, KeyAct::Pause]).0, ["stop now", "pause"]);
    }

    #[test]
    fn a_page_opens_for_the_task_at_work_and_what_is_not_there_is_answered() {
        let (_, sample) = obeyed(&[KeyAct::Diff]);
        let View::Page(page) = &sample.screen.view else { panic!("no page") };
        assert_eq!((page.title.as_str(), page.lines.as_slice()), ("b", &["+new".to_owned()][..]));
        let (_, sample) = obeyed(&[KeyAct::Log]);
        assert_eq!(sample.screen.view, View::Board);
        assert_eq!(sample.screen.answer.as_deref(), Some("a has no log yet"));
    }
}
