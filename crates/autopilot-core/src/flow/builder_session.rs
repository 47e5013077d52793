//! Whether a builder continues the session it had, or starts a new one.
//!
//! Only builders continue, those who work on a step of a workflow too: whoever plans, reviews or judges
//! is asked without what was said before. A person who continues a step chooses its session.

use crate::config::SessionPolicy;
use crate::event::SessionEnd;
use crate::state::{BuilderSession, Task};
use crate::step::{Role, Step};
use std::fmt;

/// The tries in a row that may break in one session; the next one starts a new session.
const BREAKS_MAX: u32 = 1;

/// The facts outside of the task that decide whether its session is continued.
#[derive(Clone, Copy, Debug)]
pub struct SessionChances {
    /// The configured choice, `builder.session`.
    pub policy: SessionPolicy,
    /// The agent can resume a session at all.
    pub keeps_sessions: bool,
    /// The lane of the agent that works now.
    pub lane: u32,
    pub files: SessionFiles,
}

/// The place of an agent's session files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionFiles {
    /// They are kept here.
    Kept,
    Gone,
    /// The agent keeps them where nobody else can look.
    Elsewhere,
}

/// The session that a builder is asked in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BuilderTurn<'a> {
    Continued(&'a BuilderSession),
    /// A new session; with a reason if there was one that could have been continued.
    Fresh(Option<FreshWhy>),
}

/// The reason why a session is not continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreshWhy {
    Configured,
    OtherAgent,
    Gone,
    Full,
    Refused,
    BrokeAgain,
}

/// Returns the session in which the builder of a task is asked at a step.
pub fn builder_turn(task: &Task, step: Step, chances: SessionChances) -> BuilderTurn<'_> {
    let Some(last) = task.talk.session.as_ref() else { return BuilderTurn::Fresh(None) };
    if step.role() != Some(Role::Builder) || !chances.keeps_sessions {
        return BuilderTurn::Fresh(None);
    }
    let by_end = last.end.and_then(of_no_more_use);
    let why = match chances {
        SessionChances { policy: SessionPolicy::Fresh, .. } => Some(FreshWhy::Configured),
        SessionChances { lane, .. } if lane != last.lane => Some(FreshWhy::OtherAgent),
        SessionChances { files: SessionFiles::Gone, .. } => Some(FreshWhy::Gone),
        SessionChances { files: SessionFiles::Kept | SessionFiles::Elsewhere, .. } => {
            by_end.or((last.breaks > BREAKS_MAX).then_some(FreshWhy::BrokeAgain))
        }
    };
    match why {
        Some(why) => BuilderTurn::Fresh(Some(why)),
        None => BuilderTurn::Continued(last),
    }
}

/// Returns why a continued turn with this end is repeated at once in a new session: the agent has
/// not worked in the old one.
pub fn asked_anew(end: SessionEnd) -> Option<FreshWhy> {
    match end {
        SessionEnd::Gone | SessionEnd::Full => of_no_more_use(end),
        SessionEnd::Answered | SessionEnd::Stopped | SessionEnd::Broke | SessionEnd::Refused => {
            None
        }
    }
}

fn of_no_more_use(end: SessionEnd) -> Option<FreshWhy> {
    match end {
        SessionEnd::Answered | SessionEnd::Stopped | SessionEnd::Broke => None,
        SessionEnd::Full => Some(FreshWhy::Full),
        SessionEnd::Refused => Some(FreshWhy::Refused),
        SessionEnd::Gone => Some(FreshWhy::Gone),
    }
}

impl fmt::Display for FreshWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FreshWhy::Configured => "`builder.session` is fresh",
            FreshWhy::OtherAgent => "another agent had the last one",
            FreshWhy::Gone => "the last one is gone",
            FreshWhy::Full => "the last one has no room left",
            FreshWhy::Refused => "the last one was refused",
            FreshWhy::BrokeAgain => "the last one broke twice",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::AttemptId;

    const FREE: SessionChances = SessionChances {
        policy: SessionPolicy::Continue,
        keeps_sessions: true,
        lane: 0,
        files: SessionFiles::Kept,
    };

    fn task(end: Option<SessionEnd>, breaks: u32) -> Task {
        let attempt = AttemptId { seq: 7, place: 0 };
        let session = BuilderSession { session: "s".into(), attempt, lane: 0, end, breaks };
        let mut task = Task::default();
        task.talk.session = Some(session);
        task
    }

    fn fresh(task: &Task, step: Step, chances: SessionChances) -> Option<Option<FreshWhy>> {
        match builder_turn(task, step, chances) {
            BuilderTurn::Continued(_) => None,
            BuilderTurn::Fresh(why) => Some(why),
        }
    }

    #[test]
    fn builders_continue_however_their_last_turn_was_cut_and_nobody_else_does() {
        let ends = [SessionEnd::Answered, SessionEnd::Stopped, SessionEnd::Broke];
        for end in ends.into_iter().map(Some).chain([None]) {
            for step in [Step::Build, Step::Fix, Step::WorkflowStep] {
                assert_eq!(fresh(&task(end, 1), step, FREE), None, "{end:?}");
            }
            for step in Step::ALL.into_iter().filter(|step| step.role() != Some(Role::Builder)) {
                assert_eq!(fresh(&task(end, 0), step, FREE), Some(None), "{step}");
            }
        }
        assert_eq!(fresh(&Task::default(), Step::Fix, FREE), Some(None));
    }

    #[test]
    fn each_reason_against_a_session_is_named() {
        let of = |end, breaks, chances| fresh(&task(end, breaks), Step::Fix, chances);
        let configured = SessionChances { policy: SessionPolicy::Fresh, ..FREE };
        assert_eq!(of(None, 0, configured), Some(Some(FreshWhy::Configured)));
        let other = SessionChances { lane: 1, ..FREE };
        assert_eq!(of(None, 0, other), Some(Some(FreshWhy::OtherAgent)));
        let gone = SessionChances { files: SessionFiles::Gone, ..FREE };
        assert_eq!(of(None, 0, gone), Some(Some(FreshWhy::Gone)));
        let elsewhere = SessionChances { files: SessionFiles::Elsewhere, ..FREE };
        assert_eq!(of(None, 0, elsewhere), None);
        assert_eq!(of(Some(SessionEnd::Full), 1, FREE), Some(Some(FreshWhy::Full)));
        assert_eq!(of(Some(SessionEnd::Refused), 1, FREE), Some(Some(FreshWhy::Refused)));
        assert_eq!(of(Some(SessionEnd::Gone), 1, FREE), Some(Some(FreshWhy::Gone)));
        assert_eq!(of(Some(SessionEnd::Broke), 2, FREE), Some(Some(FreshWhy::BrokeAgain)));
        let forgetful = SessionChances { keeps_sessions: false, ..FREE };
        assert_eq!(of(None, 0, forgetful), Some(None), "it never had one to continue");
    }

    #[test]
    fn only_a_session_that_is_gone_or_full_is_replaced_within_the_try() {
        assert_eq!(asked_anew(SessionEnd::Gone), Some(FreshWhy::Gone));
        assert_eq!(asked_anew(SessionEnd::Full), Some(FreshWhy::Full));
        for end in
            [SessionEnd::Answered, SessionEnd::Stopped, SessionEnd::Broke, SessionEnd::Refused]
        {
            assert_eq!(asked_anew(end), None);
        }
    }
}
