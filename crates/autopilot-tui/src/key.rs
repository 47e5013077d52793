//! The meaning of the keys. A pure function: the same key in the same view is the same act.

use crate::screen::{Seat, View};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAct {
    /// Pauses the run or cancels the pause, as `autopilot pause` and `unpause` do.
    Pause,
    /// Stops the run after the current steps, as `autopilot stop` does.
    Stop,
    /// Stops the run at once, as `autopilot stop --now` does.
    StopNow,
    /// Sends this process the interrupt that Ctrl-C sends without a dashboard.
    Interrupt,
    Move(MoveBy),
    Log,
    Diff,
    Tasks,
    Help,
    Back,
    /// Ends the display of an onlooker; the run continues.
    Leave,
    Redraw,
}

/// How far a key moves the selection or a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveBy {
    Line(isize),
    Page(isize),
    First,
    Last,
}

impl MoveBy {
    /// The row this leads to from the row `place`, with `rows` rows to a page.
    pub fn from(self, place: usize, last: usize, rows: usize) -> usize {
        let page = isize::try_from(rows.max(1)).unwrap_or(isize::MAX);
        match self {
            MoveBy::Line(lines) => place.saturating_add_signed(lines).min(last),
            MoveBy::Page(pages) => {
                place.saturating_add_signed(pages.saturating_mul(page)).min(last)
            }
            MoveBy::First => 0,
            MoveBy::Last => last,
        }
    }
}

/// Returns what a key asks for in a view, if anything.
pub fn act(key: KeyEvent, seat: Seat, view: &View) -> Option<KeyAct> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match (key.code, seat) {
            (KeyCode::Char('c'), Seat::Onlooker) => Some(KeyAct::Leave),
            (KeyCode::Char('c'), Seat::Controller) => Some(KeyAct::Interrupt),
            (KeyCode::Char('l'), _) => Some(KeyAct::Redraw),
            (KeyCode::Char('d'), _) => Some(KeyAct::Move(MoveBy::Page(1))),
            (KeyCode::Char('u'), _) => Some(KeyAct::Move(MoveBy::Page(-1))),
            _ => None,
        };
    }
    match (key.code, seat) {
        (KeyCode::Char('q') | KeyCode::Esc, _) if *view != View::Board => Some(KeyAct::Back),
        (KeyCode::Char('q') | KeyCode::Esc, Seat::Onlooker) => Some(KeyAct::Leave),
        (KeyCode::Char('p'), _) => Some(KeyAct::Pause),
        (KeyCode::Char('s'), _) => Some(KeyAct::Stop),
        (KeyCode::Char('S'), _) => Some(KeyAct::StopNow),
        (KeyCode::Up | KeyCode::Char('k'), _) => Some(KeyAct::Move(MoveBy::Line(-1))),
        (KeyCode::Down | KeyCode::Char('j'), _) => Some(KeyAct::Move(MoveBy::Line(1))),
        (KeyCode::PageUp, _) => Some(KeyAct::Move(MoveBy::Page(-1))),
        (KeyCode::PageDown | KeyCode::Char(' '), _) => Some(KeyAct::Move(MoveBy::Page(1))),
        (KeyCode::Home | KeyCode::Char('g'), _) => Some(KeyAct::Move(MoveBy::First)),
        (KeyCode::End | KeyCode::Char('G'), _) => Some(KeyAct::Move(MoveBy::Last)),
        (KeyCode::Char('l') | KeyCode::Enter, _) => Some(KeyAct::Log),
        (KeyCode::Char('d'), _) => Some(KeyAct::Diff),
        (KeyCode::Char('t') | KeyCode::Tab, _) => Some(KeyAct::Tasks),
        (KeyCode::Char('?' | 'h') | KeyCode::F(1), _) => Some(KeyAct::Help),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOARD: View = View::Board;
    const OVER: View = View::Help;

    fn plain(code: KeyCode, seat: Seat, view: &View) -> Option<KeyAct> {
        act(KeyEvent::new(code, KeyModifiers::NONE), seat, view)
    }

    fn control(letter: char, seat: Seat, view: &View) -> Option<KeyAct> {
        act(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL), seat, view)
    }

    #[test]
    fn whoever_looks_on_leaves_and_stops_nothing() {
        for view in [BOARD, OVER] {
            assert_eq!(control('c', Seat::Onlooker, &view), Some(KeyAct::Leave));
            assert_eq!(control('c', Seat::Controller, &view), Some(KeyAct::Interrupt));
        }
        for seat in [Seat::Controller, Seat::Onlooker] {
            assert_eq!(plain(KeyCode::Char('q'), seat, &OVER), Some(KeyAct::Back));
        }
    }

    #[test]
    fn the_keys_of_the_board() {
        for (code, meant) in [
            (KeyCode::Char('p'), Some(KeyAct::Pause)),
            (KeyCode::Char('s'), Some(KeyAct::Stop)),
            (KeyCode::Char('S'), Some(KeyAct::StopNow)),
            (KeyCode::Up, Some(KeyAct::Move(MoveBy::Line(-1)))),
            (KeyCode::Char('j'), Some(KeyAct::Move(MoveBy::Line(1)))),
            (KeyCode::Char('l'), Some(KeyAct::Log)),
            (KeyCode::Char('d'), Some(KeyAct::Diff)),
            (KeyCode::Char('?'), Some(KeyAct::Help)),
            (KeyCode::Char('t'), Some(KeyAct::Tasks)),
            (KeyCode::Char('q'), None),
            (KeyCode::Esc, None),
            (KeyCode::Char('x'), None),
        ] {
            assert_eq!(plain(code, Seat::Controller, &BOARD), meant, "{code:?}");
        }
    }

    #[test]
    fn control_c_interrupts_a_run_of_ours_and_only_leaves_that_of_another_process() {
        assert_eq!(control('c', Seat::Controller, &BOARD), Some(KeyAct::Interrupt));
        assert_eq!(control('c', Seat::Controller, &OVER), Some(KeyAct::Interrupt));
        assert_eq!(control('c', Seat::Onlooker, &BOARD), Some(KeyAct::Leave));
        assert_eq!(plain(KeyCode::Char('q'), Seat::Onlooker, &BOARD), Some(KeyAct::Leave));
    }

    #[test]
    fn q_and_escape_lead_back_from_whatever_lies_over_the_board() {
        assert_eq!(plain(KeyCode::Char('q'), Seat::Controller, &OVER), Some(KeyAct::Back));
        assert_eq!(plain(KeyCode::Esc, Seat::Controller, &OVER), Some(KeyAct::Back));
    }

    #[test]
    fn letting_a_key_go_is_no_key() {
        let mut key = KeyEvent::new(KeyCode::Char('S'), KeyModifiers::SHIFT);
        assert_eq!(act(key, Seat::Controller, &BOARD), Some(KeyAct::StopNow));
        key.kind = KeyEventKind::Release;
        assert_eq!(act(key, Seat::Controller, &BOARD), None);
    }

    #[test]
    fn moves_stay_inside() {
        assert_eq!(MoveBy::Line(-1).from(0, 9, 5), 0);
        assert_eq!(MoveBy::Line(1).from(9, 9, 5), 9);
        assert_eq!(MoveBy::Page(1).from(2, 9, 5), 7);
        assert_eq!(MoveBy::Page(1).from(7, 9, 0), 8);
        assert_eq!((MoveBy::First.from(7, 9, 5), MoveBy::Last.from(0, 9, 5)), (0, 9));
    }
}
