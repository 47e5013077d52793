//! The usage of a turn by the session files that its agent left in its home.

use super::Job;
use super::home::{CLAUDE_SESSIONS, CODEX_SESSIONS, Home};
use autopilot_agents::{AgentUsage, session_file};
use autopilot_host::{agent_home, dir};
use autopilot_journal::foreign_figures;
use camino::Utf8Path;
use std::path::Path;

/// The directory of opencode's data in its home, and the name of its database with its log.
const OPENCODE_DATA: &str = "data/opencode";
const OPENCODE_DATABASE: &str = "opencode.db";

impl Job {
    /// The usage that the session files in the home tell for a turn that started at `since`.
    pub(super) fn session_usage(
        &self,
        home: &Home,
        session: Option<&str>,
        since: &str,
    ) -> Option<AgentUsage> {
        let dir = Utf8Path::from_path(home.dir()).filter(|dir| !dir.as_str().is_empty())?;
        session_usage_in(dir, session, since)
    }

    /// Bills a resumed session from the count that its files in the home tell, before the turn starts.
    pub(super) fn bill_from_count(&self, home: &Home, session: Option<&str>, since: &str) {
        let dir = Utf8Path::from_path(home.dir()).filter(|dir| !dir.as_str().is_empty());
        let count =
            dir.zip(session).and_then(|(dir, session)| count_resumed_in(dir, session, since));
        if let Some(count) = count {
            self.billing().resumes_at(&count);
        }
    }
}

/// The count from which the agent in this home goes on in a session that it resumed at `since`.
pub(crate) fn count_resumed_in(home: &Utf8Path, session: &str, since: &str) -> Option<AgentUsage> {
    let is_it = |path: &Path| path.file_stem().is_some_and(|stem| stem == session);
    let texts = agent_home::texts(home.as_std_path(), Path::new(CLAUDE_SESSIONS), is_it);
    session_file::count_resumed(texts.iter().map(String::as_str), since)
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
    let told = session_file::session_usage(texts.iter().flatten().map(String::as_str), since);
    told.or_else(|| opencode_usage(home, session?))
}

/// The usage in the database of opencode. It is read from a copy, because the agent wrote it.
fn opencode_usage(home: &Utf8Path, session: &str) -> Option<AgentUsage> {
    let copy = home.with_extension("usage");
    let is_other = |path: &Path| !path.to_string_lossy().starts_with(OPENCODE_DATABASE);
    let part = Path::new(OPENCODE_DATA);
    let kept = agent_home::keep(home.as_std_path(), part, copy.as_std_path(), is_other);
    let path = copy.join(OPENCODE_DATA).join(OPENCODE_DATABASE);
    let (table, sql) = (session_file::OPENCODE_TABLE, session_file::OPENCODE_TOTALS);
    let figures = kept.ok().and_then(|()| foreign_figures(&path, table, sql, session));
    // Best effort: the next boot removes leftovers.
    let _leftover = dir::remove(copy.as_std_path());
    session_file::opencode_usage(figures?)
}
