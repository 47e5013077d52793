//! The builder's turn: in the session it had, with only what is new, or in a new one with the whole
//! prompt. Which of them is decided in `autopilot_core::flow::builder_session`.

use super::agent::agent_of;
use super::asking::{AgentTurn, AskedQuestion, Question};
use super::build::Start;
use super::left_session::session_files;
use super::own_work::blocking;
use super::skill::Kit;
use super::workshop::Bench;
use super::{Job, JobError};
use crate::kept;
use autopilot_agents::AgentOutcome;
use autopilot_agents::answer::Summary;
use autopilot_core::event::{Outcome, SessionEnd};
use autopilot_core::flow::builder_session::{
    BuilderTurn, FreshWhy, SessionChances, SessionFiles, asked_anew, builder_turn,
};
use autopilot_core::prompt::ContinuedWork;
use autopilot_core::state::BuilderSession;
use autopilot_core::task_file::TaskSpec;
use autopilot_core::workflow::{StepPrompt, has_newer_needs, step_continued};
use autopilot_host::git::{AttemptName, ChangedPath, GitError, Oid};

/// Added to the prompt of a new session if an earlier one has worked on the files in this attempt.
const TAKEN_OVER: &str = "\nThe files in the working directory hold unfinished changes of an \
earlier session on this step, which could not continue. Look at them first.\n";

/// The session that a builder is asked in.
pub(super) enum SessionChoice {
    Continued(BuilderSession),
    Fresh(Option<FreshWhy>),
}

impl SessionChoice {
    pub fn is_continued(&self) -> bool {
        matches!(self, SessionChoice::Continued(_))
    }
}

impl Job {
    /// The session for this attempt. A replay repeats the recorded choice.
    pub(super) fn session_choice(&self) -> Result<SessionChoice, JobError> {
        if let Some(player) = &self.context.player {
            let resumed = player.resumed(self.task.label(), self.want.step);
            return Ok(match resumed {
                Some(session) => SessionChoice::Continued(self.recorded_session(session)),
                None => SessionChoice::Fresh(None),
            });
        }
        let config = self.agent_config();
        let agent = agent_of(config, &self.context.place.root)?;
        let files = self.task.talk.session.as_ref().map(|last| {
            let of = (self.run.id.as_str(), last.attempt);
            session_files(&self.context.place, of, &last.session, &agent)
        });
        let chances = SessionChances {
            policy: self.agent.session,
            keeps_sessions: agent.keeps_sessions(),
            lane: self.want.lane,
            files: files.unwrap_or(SessionFiles::Gone),
        };
        Ok(match builder_turn(&self.task, self.want.step, chances) {
            BuilderTurn::Continued(last) => SessionChoice::Continued(last.clone()),
            BuilderTurn::Fresh(why) => SessionChoice::Fresh(why),
        })
    }

    fn recorded_session(&self, session: String) -> BuilderSession {
        let known = self.task.talk.session.clone().filter(|last| last.session == session);
        let (attempt, lane) = (self.want.id, self.want.lane);
        known.unwrap_or(BuilderSession { session, attempt, lane, end: None, breaks: 0 })
    }

    /// Asks the builder, and asks once more in a new session if the old one turns out to be of no
    /// use.
    pub(super) async fn ask_builder(
        &self,
        choice: &SessionChoice,
        spec: &TaskSpec,
        bench: &Bench,
        start: &Start,
        kit: &Kit,
    ) -> Result<AskedQuestion<Summary>, JobError> {
        let whole = || -> Result<String, JobError> {
            kit.give(self.build_prompt(spec, bench, start, kit, None)?, self.caps())
        };
        let last = match choice {
            SessionChoice::Fresh(why) => {
                let mut asked = self.ask(Question::editing(whole()?, &bench.dir)).await?;
                asked.facts.notes.extend(why.map(fresh_note));
                return Ok(asked);
            }
            SessionChoice::Continued(last) => last,
        };
        let prompt = self.continued_prompt(last, spec, bench, start, kit)?;
        let session = Some(last.session.clone());
        let question = Question::editing(prompt, &bench.dir).in_session(session, Vec::new());
        let mut asked = self.ask::<Summary>(question).await?;
        asked.facts.notes.insert(0, format!("continued session {}", last.session));
        let anew = asked.facts.turn.and_then(asked_anew).filter(|_| asked.answer.is_err());
        let Some(why) = anew.filter(|_| !self.cancel.is_asked()) else { return Ok(asked) };
        let mut prompt = whole()?;
        if bench.is_changed()? {
            prompt.push_str(TAKEN_OVER);
        }
        let before = asked.facts.notes;
        let mut asked = self.ask::<Summary>(Question::editing(prompt, &bench.dir)).await?;
        asked.facts.notes.splice(0..0, before.into_iter().chain([fresh_note(why)]));
        Ok(asked)
    }

    fn continued_prompt(
        &self,
        last: &BuilderSession,
        spec: &TaskSpec,
        bench: &Bench,
        start: &Start,
        kit: &Kit,
    ) -> Result<String, JobError> {
        let changed = self.changed_since(last, start)?;
        let work = ContinuedWork { changed: changed.as_deref(), ..self.since(last, spec, bench) };
        self.build_prompt(spec, bench, start, kit, Some(&work))
    }

    /// The turn of a step of a workflow. `question` has the whole prompt, `facts` what is in it.
    pub(super) async fn turn_of_step(
        &self,
        choice: &SessionChoice,
        facts: &StepPrompt<'_>,
        question: Question<'_>,
        bench: &Bench,
        (start, spec): (&Start, &TaskSpec),
    ) -> Result<AgentTurn, JobError> {
        let last = match choice {
            SessionChoice::Fresh(why) => {
                let mut turn = self.turn(&question).await?;
                turn.ran.notes.extend(why.map(fresh_note));
                return Ok(turn);
            }
            SessionChoice::Continued(last) => last,
        };
        let changed = self.changed_since(last, start)?;
        let work = ContinuedWork { changed: changed.as_deref(), ..self.since(last, spec, bench) };
        let is_news = has_newer_needs(&self.state()?, &self.task, last.attempt);
        let news = if is_news { facts.dependencies } else { &[] };
        let prompt =
            step_continued(&StepPrompt { dependencies: news, ..*facts }, &work, self.caps());
        let session = Some(last.session.clone());
        let mut turn = self.turn(&question.instead(prompt).in_session(session, Vec::new())).await?;
        let mut notes = vec![format!("continued session {}", last.session)];
        let is_done = turn.ending.outcome == AgentOutcome::Success;
        let anew = asked_anew(turn.session_end()).filter(|_| !is_done && !self.cancel.is_asked());
        if let Some(why) = anew {
            notes.append(&mut turn.ran.notes);
            notes.push(fresh_note(why));
            let mut prompt = question.prompt.clone();
            if bench.is_changed()? {
                prompt.push_str(TAKEN_OVER);
            }
            turn = self.turn(&question.instead(prompt)).await?;
        }
        turn.ran.notes.splice(0..0, notes);
        Ok(turn)
    }

    /// What has happened since the last turn of a session, besides changed files.
    fn since<'a>(
        &'a self,
        last: &BuilderSession,
        spec: &'a TaskSpec,
        bench: &'a Bench,
    ) -> ContinuedWork<'a> {
        let worked_in = kept::worked_in(&self.kept_before(&last.session));
        let dir = bench.dir.seen.as_str();
        let formatter = spec.commands.format.as_ref();
        let formatter = formatter.or(self.context.config.commands.format.as_ref());
        ContinuedWork {
            interrupted: self.why_interrupted(),
            moved_to: worked_in.filter(|before| before != dir).map(|_| dir),
            formatted_by: formatter
                .filter(|_| last.end == Some(SessionEnd::Answered))
                .map(String::as_str),
            changed: None,
        }
    }

    /// Why the last try of this step has not answered, if there was one.
    fn why_interrupted(&self) -> Option<&str> {
        let broken = self.task.broken.as_ref();
        let broken = broken.filter(|_| self.task.broken_at == Some(self.want.step));
        match broken.map(|shown| &shown.outcome) {
            Some(Outcome::Broke { why }) => Some(why),
            _ if !self.task.cut_short.is_empty() => Some("it was interrupted"),
            _ => None,
        }
    }

    /// The files that differ from how the agent left them at the end of its last turn.
    fn changed_since(
        &self,
        last: &BuilderSession,
        start: &Start,
    ) -> Result<Option<Vec<String>>, JobError> {
        let (task, id) = (self.name_for_refs(), self.id_for_refs(last.attempt));
        let results = self.task.results.values();
        let result = results.into_iter().find(|shown| shown.id == last.attempt);
        let recorded = result.and_then(|shown| shown.facts.commit.clone());
        let workshop = &self.context.workshop;
        blocking(|| -> Result<_, GitError> {
            let kept = workshop.hub.resolve(&AttemptName { task, id: &id }.salvage_ref())?;
            let recorded = recorded.as_deref().map(Oid::parse).transpose()?;
            let Some(left) = kept.or(recorded) else { return Ok(None) };
            let change = workshop.change(&left, &start.commit)?;
            Ok(Some(change.paths.iter().map(ChangedPath::display).collect()))
        })
    }
}

fn fresh_note(why: FreshWhy) -> String {
    format!("started a new session: {why}")
}
