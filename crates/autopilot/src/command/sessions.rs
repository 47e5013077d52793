//! `autopilot sessions`: the conversations agents had in a run, and how to go on with each.

use super::cost::{agent_of, sum};
use super::past::{Configs, Past, Standing, Told};
use super::{Done, done};
use crate::cli::{Global, Sessions};
use crate::exit::Failure;
use crate::terminal;
use autopilot_core::config::{Agent, Mode};
use autopilot_engine::job::further::kept_attempts;
use autopilot_engine::job::mode_word;
use autopilot_engine::kept;
use autopilot_host::escape::one_line;
use autopilot_view::report::Way;
use autopilot_view::sessions::{self as view, Session};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub fn sessions(global: &Global, args: &Sessions) -> Done {
    let past = Past::must(global)?;
    let told = past.run(args.run.as_deref())?;
    let listed = Listed::of(&past, &told)?;
    if global.json {
        terminal::json(&listed.object());
    } else {
        terminal::say(listed.text().trim_end());
    }
    done()
}

/// How to go on with each session of a run, by its id.
pub fn ways(past: &Past, told: &Told) -> Result<BTreeMap<String, Way>, Failure> {
    let listed = Listed::of(past, told)?;
    let way = |session: &Session| {
        let hindrance = listed.hindrance(session).map(str::to_owned);
        let command = hindrance.is_none().then(|| listed.command(session));
        (session.id.clone(), Way { command, hindrance })
    };
    Ok(listed.sessions.iter().map(way).collect())
}

/// A run with its sessions.
struct Listed<'a> {
    told: &'a Told,
    configs: Configs,
    sessions: Vec<Session>,
    /// Attempts of which we could tell an agent what was said.
    kept: BTreeSet<String>,
    /// Of what agents had kept, that which is gone.
    removed: BTreeSet<String>,
    clean: Box<dyn Fn(&str) -> String>,
}

impl<'a> Listed<'a> {
    fn of(past: &Past, told: &'a Told) -> Result<Listed<'a>, Failure> {
        let records = past.records(&told.run.id)?;
        let sessions = view::sessions(&told.run.id, &records);
        let configs = Configs::of(past, &records);
        let redactor = past.redactor(&told.state);
        let clean = Box::new(move |text: &str| redactor.redact(text).into_owned());
        let kept = kept_attempts(&past.place.views(), &told.run.id);
        let is_removed = |session: &&Session| {
            kept::is_removed(&past.place, &told.run.id, session.attempt, &session.id)
        };
        let removed = sessions.iter().filter(is_removed).map(|gone| gone.id.clone()).collect();
        Ok(Listed { told, configs, sessions, kept, removed, clean })
    }

    fn text(&self) -> String {
        if self.sessions.is_empty() {
            return format!("no agent was asked anything in run {} yet", self.told.run.id);
        }
        let heading = [
            "session",
            "agent",
            "task",
            "step",
            "iteration",
            "attempt",
            "began",
            "cost",
            "state",
            "current",
            "resumable",
        ];
        let row = |session: &Session| {
            let [cost, ..] = sum::cells(&session.cost);
            vec![
                one_line(&(self.clean)(&session.id)).into_owned(),
                self.agent(session).to_owned(),
                one_line(&self.task(session)).into_owned(),
                session.step.word().to_owned(),
                session.round.to_string(),
                session.attempt.to_string(),
                session.began.rfc3339(),
                cost,
                self.state(session).to_owned(),
                if self.is_current(session) { "yes" } else { "no" }.to_owned(),
                self.hindrance(session).map_or("yes".to_owned(), |why| format!("no: {why}")),
            ]
        };
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        rows.extend(self.sessions.iter().map(row));
        let mut text = format!("run {}\n{}", self.told.run.id, terminal::table(&rows));
        let resumable = |session: &&Session| self.hindrance(session).is_none();
        if let Some(last) = self.sessions.iter().rfind(resumable) {
            text.push_str(&format!("\ngo on with one: {}\n", self.command(last)));
        }
        text
    }

    fn object(&self) -> Value {
        let session = |session: &Session| {
            let mut told = sum::object(&session.cost);
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
            if let (Value::Object(told), Value::Object(said)) = (&mut told, said) {
                told.extend(said);
            }
            told
        };
        json!({
            "run_id": self.told.run.id,
            "sessions": self.sessions.iter().map(session).collect::<Vec<_>>(),
        })
    }

    fn agent(&self, session: &Session) -> &'static str {
        self.config_of(session).map_or("unknown", |agent| mode_word(agent.mode))
    }

    fn model(&self, session: &Session) -> Option<String> {
        self.config_of(session).and_then(|agent| agent.model)
    }

    fn config_of(&self, session: &Session) -> Option<Agent> {
        let task = self.told.state.tasks.get(session.task.index());
        agent_of(self.configs.at(session.attempt)?, task, session.step, session.lane)
    }

    fn task(&self, session: &Session) -> String {
        let task = self.told.state.tasks.get(session.task.index());
        match task.filter(|task| task.parent.is_some()) {
            Some(task) => (self.clean)(task.name()),
            None => "(the run itself)".to_owned(),
        }
    }

    fn state(&self, session: &Session) -> &'static str {
        match &session.ended {
            Some((_, outcome)) => super::show::word(outcome),
            None if matches!(self.told.standing(), Standing::Live { .. }) => "running",
            None => "interrupted",
        }
    }

    fn is_current(&self, session: &Session) -> bool {
        view::is_current(session, &self.sessions, &self.told.state)
    }

    /// Why nobody can go on with it now.
    fn hindrance(&self, session: &Session) -> Option<&'static str> {
        if matches!(self.told.standing(), Standing::Live { .. }) {
            return Some(if session.ended.is_none() { "at work" } else { "its run is at work" });
        }
        // How it was asked first can be told again whatever is kept.
        if self.told.state.task(session.task).pipeline.continues_at().is_some() {
            return None;
        }
        if session.is_its_own && self.removed.contains(&session.id) {
            return Some("removed by `autopilot gc`");
        }
        let keeps_it = match self.config_of(session).map(|agent| agent.mode) {
            None => return Some("its agent is not known"),
            Some(Mode::ClaudeCodeCli | Mode::CodexCli | Mode::Acp | Mode::OpenaiApi) => {
                session.is_its_own
            }
            Some(Mode::Command | Mode::Script) => false,
        };
        let can = keeps_it || self.kept.contains(&session.attempt.to_string());
        (!can).then_some("nothing of what was said is kept")
    }

    fn command(&self, session: &Session) -> String {
        format!("autopilot resume {} --prompt \"…\"", (self.clean)(&session.id))
    }
}
