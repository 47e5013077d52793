//! Agents of one kind begin one after the other: each rewrites the settings file of its user when it
//! starts, and several at once have been seen to spoil it. A directory of its own for each worker
//! would do too, but would lose the user's login, skills and settings.

use super::Job;
use autopilot_agents::Agent;
use autopilot_host::turnstile::{self, Turnstile};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(50);
/// Whoever waits longer than this begins beside the others: work is worth more than order.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// An agent that has said nothing for so long has long read its settings.
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
        // One place for all repositories of the user, whose settings file is one too.
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
