//! What keys mean. A pure function: the same key in the same view is the same act.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Raises or lowers the pause, as `autopilot pause` and `unpause` do.
    Pause,
    /// As `autopilot stop`.
    Stop,
    /// As `autopilot stop --now`.
    StopNow,
    /// What Ctrl-C is without a dashboard.
    Interrupt,
    Move(By),
    Log,
    Diff,
    Tasks,
    Help,
    Back,
    /// Of an onlooker: the run goes on.
    Leave,
    Redraw,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Line(isize),
    Page(isize),
    First,
    Last,
}

impl By {
    /// Where this leads from a place, with so many rows to a page.
    pub fn from(self, place: usize, last: usize, rows: usize) -> usize {
        let page = isize::try_from(rows.max(1)).unwrap_or(isize::MAX);
        match self {
            By::Line(lines) => place.saturating_add_signed(lines).min(last),
            By::Page(pages) => place.saturating_add_signed(pages.saturating_mul(page)).min(last),
            By::First => 0,
            By::Last => last,
        }
    }
}

/// Where the key was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// The board of the process that works.
    Board,
    /// The board of an onlooker.
    Watch,
    /// Anything that is laid over the board.
    Over,
    /// The same for an onlooker.
    WatchOver,
}

pub fn act(key: KeyEvent, at: Where) -> Option<Act> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match (key.code, at) {
            (KeyCode::Char('c'), Where::Watch | Where::WatchOver) => Some(Act::Leave),
            (KeyCode::Char('c'), Where::Board | Where::Over) => Some(Act::Interrupt),
            (KeyCode::Char('l'), _) => Some(Act::Redraw),
            (KeyCode::Char('d'), _) => Some(Act::Move(By::Page(1))),
            (KeyCode::Char('u'), _) => Some(Act::Move(By::Page(-1))),
            _ => None,
        };
    }
    match (key.code, at) {
        (KeyCode::Char('q') | KeyCode::Esc, Where::Over | Where::WatchOver) => Some(Act::Back),
        (KeyCode::Char('q') | KeyCode::Esc, Where::Watch) => Some(Act::Leave),
        (KeyCode::Char('p'), _) => Some(Act::Pause),
        (KeyCode::Char('s'), _) => Some(Act::Stop),
        (KeyCode::Char('S'), _) => Some(Act::StopNow),
        (KeyCode::Up | KeyCode::Char('k'), _) => Some(Act::Move(By::Line(-1))),
        (KeyCode::Down | KeyCode::Char('j'), _) => Some(Act::Move(By::Line(1))),
        (KeyCode::PageUp, _) => Some(Act::Move(By::Page(-1))),
        (KeyCode::PageDown | KeyCode::Char(' '), _) => Some(Act::Move(By::Page(1))),
        (KeyCode::Home | KeyCode::Char('g'), _) => Some(Act::Move(By::First)),
        (KeyCode::End | KeyCode::Char('G'), _) => Some(Act::Move(By::Last)),
        (KeyCode::Char('l') | KeyCode::Enter, _) => Some(Act::Log),
        (KeyCode::Char('d'), _) => Some(Act::Diff),
        (KeyCode::Char('t') | KeyCode::Tab, _) => Some(Act::Tasks),
        (KeyCode::Char('?' | 'h') | KeyCode::F(1), _) => Some(Act::Help),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(code: KeyCode, at: Where) -> Option<Act> {
        act(KeyEvent::new(code, KeyModifiers::NONE), at)
    }

    fn control(letter: char, at: Where) -> Option<Act> {
        act(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL), at)
    }

    #[test]
    fn whoever_looks_on_leaves_and_stops_nothing() {
        for at in [Where::Watch, Where::WatchOver] {
            assert_eq!(control('c', at), Some(Act::Leave));
        }
        for at in [Where::Board, Where::Over] {
            assert_eq!(control('c', at), Some(Act::Interrupt));
        }
        for at in [Where::Over, Where::WatchOver] {
            assert_eq!(plain(KeyCode::Char('q'), at), Some(Act::Back));
        }
    }

    #[test]
    fn the_keys_of_the_board() {
        for (code, meant) in [
            (KeyCode::Char('p'), Some(Act::Pause)),
            (KeyCode::Char('s'), Some(Act::Stop)),
            (KeyCode::Char('S'), Some(Act::StopNow)),
            (KeyCode::Up, Some(Act::Move(By::Line(-1)))),
            (KeyCode::Char('j'), Some(Act::Move(By::Line(1)))),
            (KeyCode::Char('l'), Some(Act::Log)),
            (KeyCode::Char('d'), Some(Act::Diff)),
            (KeyCode::Char('?'), Some(Act::Help)),
            (KeyCode::Char('t'), Some(Act::Tasks)),
            (KeyCode::Char('q'), None),
            (KeyCode::Esc, None),
            (KeyCode::Char('x'), None),
        ] {
            assert_eq!(plain(code, Where::Board), meant, "{code:?}");
        }
    }

    #[test]
    fn control_c_interrupts_a_run_of_ours_and_only_leaves_that_of_another_process() {
        assert_eq!(control('c', Where::Board), Some(Act::Interrupt));
        assert_eq!(control('c', Where::Over), Some(Act::Interrupt));
        assert_eq!(control('c', Where::Watch), Some(Act::Leave));
        assert_eq!(plain(KeyCode::Char('q'), Where::Watch), Some(Act::Leave));
    }

    #[test]
    fn q_and_escape_lead_back_from_whatever_lies_over_the_board() {
        assert_eq!(plain(KeyCode::Char('q'), Where::Over), Some(Act::Back));
        assert_eq!(plain(KeyCode::Esc, Where::Over), Some(Act::Back));
    }

    #[test]
    fn letting_a_key_go_is_no_key() {
        let mut key = KeyEvent::new(KeyCode::Char('S'), KeyModifiers::SHIFT);
        assert_eq!(act(key, Where::Board), Some(Act::StopNow));
        key.kind = KeyEventKind::Release;
        assert_eq!(act(key, Where::Board), None);
    }

    #[test]
    fn moves_stay_inside() {
        assert_eq!(By::Line(-1).from(0, 9, 5), 0);
        assert_eq!(By::Line(1).from(9, 9, 5), 9);
        assert_eq!(By::Page(1).from(2, 9, 5), 7);
        assert_eq!(By::Page(1).from(7, 9, 0), 8);
        assert_eq!((By::First.from(7, 9, 5), By::Last.from(0, 9, 5)), (0, 9));
    }
}
