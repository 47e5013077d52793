//! Why the session of an agent can't be continued.

use crate::config::Mode;
use crate::flow::builder_session::SessionFiles;
use serde::{Serialize, Serializer};
use std::fmt;

/// The facts about a session that decide whether it can be continued.
#[derive(Clone, Copy, Debug)]
pub struct SessionFacts {
    /// A process works on the run of the session.
    pub is_run_live: bool,
    /// The last attempt in the session has ended.
    pub has_ended: bool,
    /// The session continues as a step of its run, so its first question can be built again
    /// whatever is kept.
    pub is_in_run: bool,
    /// The session has the agent's own id, not one made by Autopilot.
    pub is_its_own: bool,
    /// `autopilot gc` has removed the files of the session.
    pub is_removed: bool,
    pub files: SessionFiles,
    /// The questions and answers of the session are recorded, so an agent can be told of them.
    pub is_recorded: bool,
    /// The agent of the session, if the configuration of that time can be read.
    pub mode: Option<Mode>,
}

/// The reason why a session can't be continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionHindrance {
    AtWork,
    RunAtWork,
    Removed,
    Gone,
    UnknownAgent,
    NotKept,
}

/// Returns the reason why a session can't be continued now; none if it can.
pub fn session_hindrance(session: SessionFacts) -> Option<SessionHindrance> {
    if session.is_run_live {
        let at_work = SessionHindrance::AtWork;
        return Some(if session.has_ended { SessionHindrance::RunAtWork } else { at_work });
    }
    if session.is_in_run {
        return None;
    }
    if session.is_its_own && session.is_removed {
        return Some(SessionHindrance::Removed);
    }
    if session.is_its_own && session.files == SessionFiles::Gone {
        return Some(SessionHindrance::Gone);
    }
    let is_kept = match session.mode {
        None => return Some(SessionHindrance::UnknownAgent),
        Some(Mode::ClaudeCodeCli | Mode::CodexCli | Mode::Acp | Mode::OpenaiApi) => {
            session.is_its_own
        }
        Some(Mode::Command | Mode::Script) => false,
    };
    (!is_kept && !session.is_recorded).then_some(SessionHindrance::NotKept)
}

impl fmt::Display for SessionHindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SessionHindrance::AtWork => "at work",
            SessionHindrance::RunAtWork => "its run is in progress",
            SessionHindrance::Removed => "removed by `autopilot gc`",
            SessionHindrance::Gone => "its files are gone",
            SessionHindrance::UnknownAgent => "its agent is unknown",
            SessionHindrance::NotKept => "its conversation was not kept",
        })
    }
}

impl Serialize for SessionHindrance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_hinders_and_the_first_that_holds_is_told() {
        let free = SessionFacts {
            is_run_live: false,
            has_ended: true,
            is_in_run: false,
            is_its_own: true,
            is_removed: false,
            files: SessionFiles::Kept,
            is_recorded: false,
            mode: Some(Mode::ClaudeCodeCli),
        };
        let why = |facts| session_hindrance(facts).map(|why| why.to_string());
        assert_eq!(why(free), None);
        let live = SessionFacts { is_run_live: true, is_in_run: true, ..free };
        assert_eq!(why(live).as_deref(), Some("its run is in progress"));
        assert_eq!(why(SessionFacts { has_ended: false, ..live }).as_deref(), Some("at work"));
        let removed = SessionFacts { is_removed: true, ..free };
        assert_eq!(why(removed).as_deref(), Some("removed by `autopilot gc`"));
        assert_eq!(why(SessionFacts { is_in_run: true, ..removed }), None);
        let gone = SessionFacts { files: SessionFiles::Gone, ..free };
        assert_eq!(why(gone).as_deref(), Some("its files are gone"));
        assert_eq!(why(SessionFacts { is_in_run: true, ..gone }), None);
        let elsewhere = SessionFacts { files: SessionFiles::Elsewhere, ..free };
        assert_eq!(why(elsewhere), None);
        let unknown = SessionFacts { mode: None, ..free };
        assert_eq!(why(unknown).as_deref(), Some("its agent is unknown"));
        let script = SessionFacts { mode: Some(Mode::Script), ..free };
        assert_eq!(why(script).as_deref(), Some("its conversation was not kept"));
        assert_eq!(why(SessionFacts { is_recorded: true, ..script }), None);
        let anonymous = SessionFacts { is_its_own: false, ..free };
        assert_eq!(why(anonymous).as_deref(), Some("its conversation was not kept"));
    }
}
