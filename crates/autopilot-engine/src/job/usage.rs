//! The usage of a turn by the session files that its agent left in its home.

use super::Job;
use super::home::{CLAUDE_SESSIONS, CODEX_SESSIONS, Home};
use autopilot_agents::{AgentUsage, session_file};
use autopilot_host::agent_home;
use camino::Utf8Path;
use std::path::Path;

impl Job {
    /// The usage that the session files in the home tell for a turn that started at `since`.
    pub(super) fn session_usage(
        &self,
        home: &Home,
        session: Option<&str>,
        since: &str,
    ) -> Option<AgentUsage> {
        session_usage_in(home.dir()?, session, since)
    }
}

/// The usage that the session files in the home of an attempt's agent tell for a turn that started
/// at `since`.
pub(crate) fn session_usage_in(
    home: &Utf8Path,
    session: Option<&str>,
    since: &str,
) -> Option<AgentUsage> {
    let is_of_session = |path: &Path| {
        let path = path.to_string_lossy();
        path.ends_with(".jsonl") && session.is_none_or(|session| path.contains(session))
    };
    let parts = [CLAUDE_SESSIONS, CODEX_SESSIONS].map(Path::new);
    let texts = parts.map(|part| agent_home::texts(home.as_std_path(), part, is_of_session));
    session_file::session_usage(texts.iter().flatten().map(String::as_str), since)
}
