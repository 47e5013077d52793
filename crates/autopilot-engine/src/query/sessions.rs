//! The sessions agents had in a run, and how to resume each.

use super::cost::{self, agent_of};
use super::{KnownRun, QueryError, RunArchive, RunConfigs, Standing};
use crate::job::further::kept_attempts;
use crate::kept;
use autopilot_core::config::{AgentConfig, Mode};
use autopilot_view::report::ResumeWay;
use autopilot_view::sessions::{self as view, Session};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How to resume each session of a run, by session id.
pub fn ways(
    archive: &RunArchive,
    known: &KnownRun,
) -> Result<BTreeMap<String, ResumeWay>, QueryError> {
    let listed = RunSessions::of(archive, known)?;
    let way = |session: &Session| {
        let hindrance = listed.hindrance(session).map(str::to_owned);
        let command = hindrance.is_none().then(|| listed.command(session));
        (session.id.clone(), ResumeWay { command, hindrance })
    };
    Ok(listed.sessions.iter().map(way).collect())
}

/// A run with its agents' sessions.
pub struct RunSessions<'a> {
    pub known: &'a KnownRun,
    configs: RunConfigs,
    pub sessions: Vec<Session>,
    /// Attempts whose questions and answers are kept, so that an agent can be told of them.
    kept: BTreeSet<String>,
    /// Sessions whose files the agent has deleted.
    removed: BTreeSet<String>,
    clean: Box<dyn Fn(&str) -> String>,
}

impl<'a> RunSessions<'a> {
    /// Reads the sessions of a run.
    pub fn of(archive: &RunArchive, known: &'a KnownRun) -> Result<RunSessions<'a>, QueryError> {
        let records = archive.records(&known.run.id)?;
        let sessions = view::sessions(&known.run.id, &records);
        let configs = RunConfigs::of(archive, &records);
        let redactor = archive.redactor(&known.state);
        let clean = Box::new(move |text: &str| redactor.redact(text).into_owned());
        let kept = kept_attempts(&archive.place.views(), &known.run.id);
        let is_removed = |session: &&Session| {
            kept::is_removed(&archive.place, &known.run.id, session.attempt, &session.id)
        };
        let removed = sessions.iter().filter(is_removed).map(|gone| gone.id.clone()).collect();
        Ok(RunSessions { known, configs, sessions, kept, removed, clean })
    }

    /// The object `sessions --json` prints.
    pub fn to_json(&self) -> Value {
        let session = |session: &Session| {
            let mut known = cost::sum_object(&session.cost);
            let hindrance = self.hindrance(session);
            let said = json!({
                "session": (self.clean)(&session.id),
                "is_the_agents_own": session.is_its_own,
                "agent": self.agent(session),
                "model": self.model(session),
                "task": self.task(session),
                "step": session.step.word(),
                "iteration": session.round,
                "attempt": session.attempt.to_string(),
                "began_at": session.began.rfc3339(),
                "ended_at": session.ended.as_ref().map(|(at, _)| at.rfc3339()),
                "state": self.state(session),
                "is_current": self.is_current(session),
                "resume": hindrance.is_none().then(|| self.command(session)),
                "not_resumable_because": hindrance,
            });
            if let (Value::Object(known), Value::Object(said)) = (&mut known, said) {
                known.extend(said);
            }
            known
        };
        json!({
            "run_id": self.known.run.id,
            "sessions": self.sessions.iter().map(session).collect::<Vec<_>>(),
        })
    }

    /// The word for the agent that had the session.
    pub fn agent(&self, session: &Session) -> &'static str {
        self.config_of(session).map_or("unknown", |agent| agent.mode.word())
    }

    /// The session's id, redacted.
    pub fn id(&self, session: &Session) -> String {
        (self.clean)(&session.id)
    }

    fn model(&self, session: &Session) -> Option<String> {
        self.config_of(session).and_then(|agent| agent.model)
    }

    fn config_of(&self, session: &Session) -> Option<AgentConfig> {
        let task = self.known.state.tasks.get(session.task.index());
        agent_of(self.configs.at(session.attempt)?, task, session.step, session.lane)
    }

    /// The name of the session's task.
    pub fn task(&self, session: &Session) -> String {
        let task = self.known.state.tasks.get(session.task.index());
        match task.filter(|task| task.parent.is_some()) {
            Some(task) => (self.clean)(task.name()),
            None => "(the run itself)".to_owned(),
        }
    }

    /// The session's state in a word.
    pub fn state(&self, session: &Session) -> &'static str {
        match &session.ended {
            Some((_, outcome)) => super::show::outcome_word(outcome),
            None if matches!(self.known.standing(), Standing::Live { .. }) => "running",
            None => "interrupted",
        }
    }

    /// Returns whether the session is the one its step is in now.
    pub fn is_current(&self, session: &Session) -> bool {
        view::is_current(session, &self.sessions, &self.known.state)
    }

    /// Why the session can't be resumed now.
    pub fn hindrance(&self, session: &Session) -> Option<&'static str> {
        if matches!(self.known.standing(), Standing::Live { .. }) {
            return Some(if session.ended.is_none() {
                "at work"
            } else {
                "its run is in progress"
            });
        }
        // The first question of such a step can be built again whatever is kept.
        if self.known.state.task(session.task).pipeline.continues_at().is_some() {
            return None;
        }
        if session.is_its_own && self.removed.contains(&session.id) {
            return Some("removed by `autopilot gc`");
        }
        let keeps_it = match self.config_of(session).map(|agent| agent.mode) {
            None => return Some("its agent is unknown"),
            Some(Mode::ClaudeCodeCli | Mode::CodexCli | Mode::Acp | Mode::OpenaiApi) => {
                session.is_its_own
            }
            Some(Mode::Command | Mode::Script) => false,
        };
        let can = keeps_it || self.kept.contains(&session.attempt.to_string());
        (!can).then_some("its conversation was not kept")
    }

    /// The command that resumes the session.
    pub fn command(&self, session: &Session) -> String {
        format!("autopilot resume {} --prompt \"…\"", (self.clean)(&session.id))
    }
}
