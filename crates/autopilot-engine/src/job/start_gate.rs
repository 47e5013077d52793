//! Starts agents of one kind one after the other: each renews its login at the start, and when
//! several renew the same login at once, all but the first are refused. Agents without their own
//! home also rewrite the user's settings file then, and several at once have been seen to corrupt
//! it.

use super::Job;
use autopilot_core::config::Mode;
use autopilot_host::turnstile::{self, Turnstile};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(50);
/// The longest wait for other agents to start: work is worth more than order.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// An agent that has been silent for this long has read its settings and its login.
pub const HELD_MAX: Duration = Duration::from_secs(10);

impl Job {
    /// Waits for this agent's turn to start; the turn lasts until its first output.
    pub(super) async fn wait_to_start(&self, mode: Mode) -> Option<Turnstile> {
        let kind = match mode {
            Mode::ClaudeCodeCli | Mode::CodexCli | Mode::Acp => mode.word(),
            Mode::OpenaiApi | Mode::Command | Mode::Script => return None,
        };
        // One directory for all repositories of the user, who has one login for all of them.
        let states = self.context.place.state.parent()?;
        let path = states.join("starts").join(format!("{kind}.lock"));
        let began = Instant::now();
        while began.elapsed() < WAIT_MAX && !self.cancel.is_asked() {
            match turnstile::try_enter(path.as_std_path()) {
                Ok(Some(entered)) => return Some(entered),
                Ok(None) => tokio::time::sleep(POLL).await,
                // Without file locks, as on some network file systems, agents start at any time.
                Err(_) => return None,
            }
        }
        None
    }
}
