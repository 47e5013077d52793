//! The sessions agents had in a run, and how to resume each.

use super::cost::{agent_of, figures};
use super::{KnownRun, QueryError, RunArchive, RunConfigs};
use crate::job::further::kept_attempts;
use crate::job::session_files_of;
use crate::kept;
use autopilot_core::config::AgentConfig;
use autopilot_core::decide::{SessionFacts, SessionHindrance, session_hindrance};
use autopilot_core::flow::builder_session::SessionFiles;
use autopilot_host::redact::Redactor;
use autopilot_view::cost::Sum;
use autopilot_view::report::ResumeWay;
use autopilot_view::sessions::{self as view, Session};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A run's sessions, as `sessions --json` prints them.
#[derive(Clone, Debug, Serialize)]
pub struct RunSessions {
    pub run_id: String,
    pub sessions: Vec<SessionRow>,
}

/// One session in the list, redacted.
#[derive(Clone, Debug, Serialize)]
pub struct SessionRow {
    #[serde(flatten, serialize_with = "figures")]
    pub cost: Sum,
    pub session: String,
    pub is_the_agents_own: bool,
    /// The word for the agent that had the session.
    pub agent: &'static str,
    pub model: Option<String>,
    pub task: String,
    pub step: &'static str,
    pub iteration: u32,
    pub attempt: String,
    pub began_at: String,
    pub ended_at: Option<String>,
    pub state: &'static str,
    /// Whether the session is the one its step is in now.
    pub is_current: bool,
    /// The command that resumes the session, if it can be resumed.
    pub resume: Option<String>,
    pub not_resumable_because: Option<SessionHindrance>,
}

/// The sessions of a run.
pub fn sessions(archive: &RunArchive, known: &KnownRun) -> Result<RunSessions, QueryError> {
    let sessions = rows(archive, known)?.into_iter().map(|(_, row)| row).collect();
    Ok(RunSessions { run_id: known.run.id.clone(), sessions })
}

/// How to resume each session of a run, by session id.
pub fn ways(
    archive: &RunArchive,
    known: &KnownRun,
) -> Result<BTreeMap<String, ResumeWay>, QueryError> {
    let way = |(session, row): (Session, SessionRow)| {
        let hindrance = row.not_resumable_because.map(|why| why.to_string());
        (session.id, ResumeWay { command: row.resume, hindrance })
    };
    Ok(rows(archive, known)?.into_iter().map(way).collect())
}

/// Why a session can't be continued, as a step of its run or outside of it.
pub fn hindrance(
    archive: &RunArchive,
    known: &KnownRun,
    session: &Session,
    is_in_run: bool,
) -> Result<Option<SessionHindrance>, QueryError> {
    let book = SessionBook::open(archive, known)?;
    Ok(session_hindrance(SessionFacts { is_in_run, ..book.facts(session) }))
}

fn rows(archive: &RunArchive, known: &KnownRun) -> Result<Vec<(Session, SessionRow)>, QueryError> {
    let book = SessionBook::open(archive, known)?;
    let row = |session: &Session| (session.clone(), book.row(session));
    Ok(book.sessions.iter().map(row).collect())
}

/// A run's sessions with what decides whether they can be resumed.
struct SessionBook<'a> {
    archive: &'a RunArchive,
    known: &'a KnownRun,
    configs: RunConfigs,
    sessions: Vec<Session>,
    /// Attempts whose questions and answers are recorded.
    recorded: BTreeSet<String>,
    redactor: Redactor,
}

impl<'a> SessionBook<'a> {
    fn open(archive: &'a RunArchive, known: &'a KnownRun) -> Result<SessionBook<'a>, QueryError> {
        let records = archive.records(&known.run.id)?;
        Ok(SessionBook {
            archive,
            known,
            configs: RunConfigs::of(archive, &records),
            sessions: view::sessions(&known.run.id, &records),
            recorded: kept_attempts(&archive.place.views(), &known.run.id),
            redactor: archive.redactor(&known.state),
        })
    }

    fn row(&self, session: &Session) -> SessionRow {
        let agent = self.agent(session);
        let id = self.redactor.redact(&session.id).into_owned();
        let hindrance = session_hindrance(self.facts(session));
        SessionRow {
            cost: session.cost,
            is_the_agents_own: session.is_its_own,
            agent: agent.as_ref().map_or("unknown", |agent| agent.mode.word()),
            model: agent.and_then(|agent| agent.model),
            task: self.known.task_label(session.task, &self.redactor),
            step: session.step.word(),
            iteration: session.round,
            attempt: session.attempt.to_string(),
            began_at: session.began.rfc3339(),
            ended_at: session.ended.as_ref().map(|(at, _)| at.rfc3339()),
            state: match &session.ended {
                Some((_, outcome)) => super::show::outcome_word(outcome),
                None if self.known.is_live() => "running",
                None => "interrupted",
            },
            is_current: view::is_current(session, &self.sessions, &self.known.state),
            resume: hindrance.is_none().then(|| format!("autopilot resume {id} --prompt \"…\"")),
            not_resumable_because: hindrance,
            session: id,
        }
    }

    fn facts(&self, session: &Session) -> SessionFacts {
        let (place, run) = (&self.archive.place, &self.known.run.id);
        SessionFacts {
            is_run_live: self.known.is_live(),
            has_ended: session.ended.is_some(),
            is_in_run: self.known.state.task(session.task).pipeline.continues_at().is_some(),
            is_its_own: session.is_its_own,
            is_removed: kept::is_removed(place, run, session.attempt, &session.id),
            files: self.files(session),
            is_recorded: self.recorded.contains(&session.attempt.to_string()),
            mode: self.agent(session).map(|agent| agent.mode),
        }
    }

    fn files(&self, session: &Session) -> SessionFiles {
        let of = (self.known.run.id.as_str(), session.attempt);
        let found = self
            .agent(session)
            .and_then(|agent| session_files_of(&self.archive.place, of, &session.id, &agent).ok());
        found.unwrap_or(SessionFiles::Elsewhere)
    }

    fn agent(&self, session: &Session) -> Option<AgentConfig> {
        let task = self.known.state.tasks.get(session.task.index());
        agent_of(self.configs.at(session.attempt)?, task, session.step, session.lane)
    }
}
