//! Agents of one kind begin one after the other: a login is renewed at the start, and of several that
//! renew the same one at once all but the first are refused. Those without a home of their own also
//! rewrite the settings file of their user then, and several at once have been seen to spoil it.

use super::Job;
use autopilot_agents::Agent;
use autopilot_host::turnstile::{self, Turnstile};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(50);
/// Whoever waits longer than this begins beside the others: work is worth more than order.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// An agent that has said nothing for so long has long read its settings and its login.
pub const HELD_MAX: Duration = Duration::from_secs(10);

impl Job {
    /// Held until the agent has said its first word.
    pub(super) async fn wait_to_start(&self, agent: &Agent) -> Option<Turnstile> {
        let kind = match agent {
            Agent::ClaudeCode { .. } => "claude_code_cli",
            Agent::Codex { .. } => "codex_cli",
            Agent::Acp { .. } => "acp",
            Agent::OpenAi(_) | Agent::Command { .. } | Agent::Script { .. } => return None,
        };
        // One place for all repositories of the user, whose login is one too.
        let states = self.context.place.state.parent()?;
        let path = states.join("starts").join(format!("{kind}.lock"));
        let began = Instant::now();
        while began.elapsed() < WAIT_MAX && !self.cancel.is_asked() {
            match turnstile::try_enter(path.as_std_path()) {
                Ok(Some(entered)) => return Some(entered),
                Ok(None) => tokio::time::sleep(POLL).await,
                // Without locks, as on some network file systems, they begin as they come.
                Err(_) => return None,
            }
        }
        None
    }
}
