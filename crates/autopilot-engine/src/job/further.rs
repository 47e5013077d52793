//! One more turn of an attempt's session, requested by a person.
//!
//! For a step of a workflow, the turn is the step's next attempt. For any other step it decides
//! nothing and merges nothing: its changes go to a separate branch.

use super::agent::agent_of;
use super::artifact::{Metadata, OUTPUT, PROMPT};
use super::asking::{AgentTurn, Question};
use super::own_work::blocking;
use super::workshop::{Workshop, seconds_now};
use super::{Job, JobError};
use crate::recorded::{RecordedExec, RecordedRun};
use autopilot_agents::{Access, Agent, AgentEnding, AgentOutcome, Cause, Exchange};
use autopilot_core::event::{Bill, SessionPrompt, SessionTotal};
use autopilot_core::id::AttemptId;
use autopilot_core::warmth::SlotUser;
use autopilot_host::git::{
    AttemptName, Capture, CommitRequest, GitError, Oid, PublishRefusal, commit_task,
    publish_reachable, session_branch,
};
use camino::Utf8Path;
use std::collections::BTreeSet;
use std::time::Instant;

/// Bytes of the earlier exchanges that are repeated, newest first.
const EARLIER_BYTES_MAX: usize = 96 * 1024;
/// Maximum bytes of one repeated prompt or answer.
const SAID_BYTES_MAX: u64 = 1 << 20;
/// Characters of the prompt in the title of a commit.
const TITLE_CHARS_MAX: usize = 60;

/// A person's request to continue a session.
#[derive(Clone, Debug)]
pub struct Further {
    pub session: String,
    /// The agent itself knows the session by this id.
    pub is_its_own: bool,
    pub prompt: String,
    pub access: Access,
}

/// The result of the continued turn.
#[derive(Clone, Debug)]
pub struct Furthered {
    pub ending: AgentOutcome,
    pub answer: String,
    /// The agent no longer knows the session; nothing was answered.
    pub is_vanished: bool,
    pub log: String,
    pub branch: Option<ContinuedBranch>,
    pub notes: Vec<String>,
}

/// The branch with the changes of the turn.
#[derive(Clone, Debug)]
pub struct ContinuedBranch {
    pub name: String,
    /// The commit the changes were made on.
    pub base: String,
    pub commit: String,
    /// Why the branch has not the expected name.
    pub instead: Option<PublishRefusal>,
}

impl Job {
    /// Continues the session with one turn.
    pub async fn further_limited(&self, ask: &Further) -> Result<Furthered, JobError> {
        self.own_work().scope(self.further(ask)).await
    }

    async fn further(&self, ask: &Further) -> Result<Furthered, JobError> {
        let count = self.context.config.worktrees.ports;
        let _held = self.context.workshop.ports.lease(self.want.id, count)?;
        let branch = session_branch(&ask.session);
        let start = self.newest(&branch)?;
        // The saved work of the attempt itself keeps its name.
        let name = format!("{}-turn-{}", self.id_for_refs(self.want.id), seconds_now());
        let of = (&start, &start);
        let bench = self.bench_as(&name, SlotUser::Builder, of, Instant::now()).await?;
        let earlier = self.exchanges_of(None, self.want.id, is_answered)?;
        let asked = |prompt| Question::new(prompt, &bench.dir, ask.access);
        let question = self.put(ask, earlier, asked)?;
        let turn = self.turn(&question).await;
        self.leave_home();
        // Capture before judging: whatever the agent wrote must be reachable.
        let capture = bench.capture(self.name_for_refs(), &name)?;
        let turn = turn?;
        let asked_for = question.session.as_deref().filter(|_| ask.is_its_own);
        let mut notes = turn.ran.notes.clone();
        notes.extend(self.billing().note());
        notes.extend(super::build::notes_of(&capture));
        notes.extend(capture.violations.iter().map(super::violation::violation));
        let branch = match ask.access {
            Access::Edit | Access::Unsafe => {
                match self.keep_changes(ask, &branch, &start, &capture, &name) {
                    Err(JobError::Git(GitError::Withheld { branch, why })) => {
                        let kept = &capture.salvage_ref;
                        notes.push(format!(
                            "{branch} was not published: {why}; the changes are kept at {kept}"
                        ));
                        None
                    }
                    kept => kept?,
                }
            }
            Access::Read => {
                let kept = capture.commit.as_ref().map(|_| &capture.salvage_ref);
                notes.extend(kept.map(|kept| {
                    format!(
                        "it changed files although it may only read; the changes are kept at {kept}"
                    )
                }));
                None
            }
        };
        Ok(Furthered {
            is_vanished: is_vanished(&turn.ending, asked_for),
            answer: self.clean(&turn.ending.answer),
            ending: turn.ending.outcome,
            log: turn.log,
            branch,
            notes,
        })
    }

    /// The turn of a step that a person continues. `question` is how the step was first asked,
    /// `left_behind` a sentence about work that is not in the directory.
    pub(super) async fn turn_by(
        &self,
        words: &SessionPrompt,
        left_behind: Option<&str>,
        question: Question<'_>,
    ) -> Result<AgentTurn, JobError> {
        let asked = self.context.text(&words.prompt)?;
        let said = match left_behind {
            Some(sentence) => format!("{asked}\n\n{sentence}"),
            None => asked.clone(),
        };
        let ask = Further {
            session: words.session.clone(),
            // An agent other than the one that had the session does not know it.
            is_its_own: words.is_its_own && words.lane == self.want.lane,
            prompt: said.clone(),
            access: question.access,
        };
        // Questions that ended before they were answered are retold too.
        let mut earlier = self.exchanges_of(Some(&words.session), words.attempt, |_| true)?;
        if earlier.is_empty() {
            earlier.push(Exchange { prompt: question.prompt.clone(), answer: String::new() });
        }
        let further = self.put(&ask, earlier.clone(), |prompt| question.instead(prompt))?;
        let mut turn = self.turn(&further).await?;
        let asked_for = further.session.as_deref().filter(|_| ask.is_its_own);
        if is_vanished(&turn.ending, asked_for) && !self.cancel.is_asked() {
            let prompt = with_exchanges(&earlier, &said)?;
            let notes = turn.ran.notes;
            turn = self.turn(&further.instead(prompt)).await?;
            turn.ran.notes.splice(0..0, notes);
            turn.ran
                .notes
                .push("its session was gone; a new one got the earlier conversation".to_owned());
        }
        turn.ran.notes.push(format!("continued by a person: {}", title(&asked)));
        Ok(turn)
    }

    /// The bill of this job by now.
    pub fn owed(&self) -> (Bill, Option<Box<SessionTotal>>) {
        self.billing().owed()
    }

    /// The commit with the changes made in the session since, or else the work of the task, or else
    /// the run's branch.
    fn newest(&self, branch: &str) -> Result<Oid, JobError> {
        let hub = &self.context.workshop.hub;
        let task = self.name_for_refs();
        let salvage = |id| AttemptName { task, id: &self.id_for_refs(id) }.salvage_ref();
        let mut refs = vec![format!("refs/heads/{branch}")];
        refs.extend(self.task.cut_short.iter().rev().map(|id| salvage(*id)));
        for name in refs {
            if let Some(commit) = blocking(|| hub.resolve(&name))? {
                return Ok(commit);
            }
        }
        match &self.task.commit {
            Some(commit) => Ok(Oid::parse(commit)?),
            None => self.tip(),
        }
    }

    /// The question in a form this agent can continue from: with its own session, or with the
    /// earlier exchanges. `asked` makes a question of a prompt.
    fn put<'a>(
        &self,
        ask: &Further,
        earlier: Vec<Exchange>,
        asked: impl Fn(String) -> Question<'a>,
    ) -> Result<Question<'a>, JobError> {
        let agent = agent_of(self.agent_config(), &self.context.place.root)?;
        let by_session = |session: String, earlier| {
            Ok(asked(ask.prompt.clone()).in_session(Some(session), earlier))
        };
        if let Agent::OpenAi(_) = agent {
            let is_all_lost = earlier.is_empty();
            let answered: Vec<Exchange> =
                earlier.iter().filter(|said| !said.answer.is_empty()).cloned().collect();
            if ask.is_its_own {
                return by_session(ask.session.clone(), answered);
            }
            if is_all_lost || !answered.is_empty() {
                // This id tells the agent's adapter that only Autopilot keeps the exchanges.
                return by_session(format!("told:{}", self.want.id), answered);
            }
        } else if ask.is_its_own && agent.keeps_sessions() {
            return by_session(ask.session.clone(), Vec::new());
        }
        Ok(asked(with_exchanges(&earlier, &ask.prompt)?))
    }

    /// The questions and answers of an attempt, oldest first; with a session, also those of the
    /// earlier attempts that had it.
    fn exchanges_of(
        &self,
        session: Option<&str>,
        attempt: AttemptId,
        is_retold: fn(&Metadata) -> bool,
    ) -> Result<Vec<Exchange>, JobError> {
        let run = RecordedRun::open(&self.context.place.views(), &self.run.id)?;
        let (attempt, task) = (attempt.to_string(), self.task.name());
        let is_part = |said: &Metadata| {
            let has_session = session.is_some() && said.session.as_deref() == session;
            said.attempt == attempt || has_session && said.task == task
        };
        let mut room = EARLIER_BYTES_MAX;
        let mut exchanges = Vec::new();
        let execs = run.newest_first()?;
        for (exec, _) in execs.filter(|(_, said)| is_part(said) && is_retold(said)) {
            let Some(mut said) = exchange(&run, &exec) else { continue };
            let left = room.checked_sub(said.prompt.len() + said.answer.len());
            // The oldest exchange that fits only partly is cut rather than left out.
            if left.is_none() && !exchanges.is_empty() {
                break;
            }
            let clip = |text: &str| autopilot_agents::event::clip(text, EARLIER_BYTES_MAX / 2);
            (said.prompt, said.answer) = (clip(&said.prompt), clip(&said.answer));
            room = left.unwrap_or(0);
            exchanges.push(said);
        }
        exchanges.reverse();
        Ok(exchanges)
    }

    /// Commits the changes on the session's branch and publishes it to the user's repository.
    fn keep_changes(
        &self,
        ask: &Further,
        branch: &str,
        start: &Oid,
        capture: &Capture,
        attempt: &str,
    ) -> Result<Option<ContinuedBranch>, JobError> {
        let Workshop { hub, repo, .. } = &self.context.workshop;
        let request = CommitRequest {
            run: &self.run.id,
            attempt: AttemptName { task: self.name_for_refs(), id: attempt },
            branch,
            parent: start,
            tree: &capture.tree,
            message: &message(&self.clean(&ask.prompt), &ask.session),
            identity: &repo.identity,
            now: seconds_now(),
        };
        blocking(|| -> Result<Option<ContinuedBranch>, GitError> {
            if hub.tree_of(start)? == capture.tree {
                return Ok(None);
            }
            let made = commit_task(hub, &request)?;
            let there = publish_reachable(hub, repo, branch, &self.context.border)?;
            Ok(Some(ContinuedBranch {
                name: there.branch,
                base: start.to_string(),
                commit: made.commit.to_string(),
                instead: there.instead,
            }))
        })
    }
}

/// Returns whether the agent lost the session: it said so, or it used another one.
fn is_vanished(ending: &AgentEnding, asked_for: Option<&str>) -> bool {
    let said = matches!(ending.outcome, AgentOutcome::Broke { cause: Cause::Session, .. });
    let other = match (asked_for, ending.session.as_deref()) {
        (Some(asked), Some(got)) => asked != got,
        (_, None) | (None, _) => false,
    };
    said || other
}

fn exchange(run: &RecordedRun, exec: &RecordedExec) -> Option<Exchange> {
    let text = |name: &str| run.text(exec, name, SAID_BYTES_MAX);
    Some(Exchange { prompt: text(PROMPT)?, answer: text(OUTPUT).unwrap_or_default() })
}

/// The attempts of a run with at least one recorded question and answer.
pub fn kept_attempts(views: &Utf8Path, run: &str) -> BTreeSet<String> {
    let Ok(run) = RecordedRun::open(views, run) else { return BTreeSet::new() };
    let said = run.newest_first().into_iter().flatten().map(|(_, said)| said);
    said.filter(is_answered).map(|said| said.attempt).collect()
}

fn is_answered(said: &Metadata) -> bool {
    said.status.as_deref() == Some("succeeded")
}

/// The prompt with the earlier exchanges, for an agent that remembers nothing.
fn with_exchanges(earlier: &[Exchange], prompt: &str) -> Result<String, JobError> {
    if earlier.is_empty() {
        return Err(JobError::NothingSaid);
    }
    let mut text = String::new();
    for said in earlier {
        let answered = match said.answer.trim() {
            "" => "You had not answered when it ended.".to_owned(),
            _ => format!("You answered:\n{}", said.answer),
        };
        text.push_str(&format!("Earlier you were asked:\n{}\n\n{answered}\n\n", said.prompt));
    }
    text.push_str(&format!("Now you are asked:\n{prompt}\n"));
    Ok(text)
}

fn message(prompt: &str, session: &str) -> String {
    format!("{}\n\nDone in the session {session}.", title(prompt))
}

fn title(prompt: &str) -> String {
    let line = prompt.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("a turn");
    line.chars().take(TITLE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_told_again_and_nothing_is_made_up() {
        let said = Exchange { prompt: "first?".into(), answer: "yes".into() };
        let text = with_exchanges(&[said], "and now?").unwrap();
        let order = ["first?", "yes", "and now?"].map(|part| text.find(part).unwrap());
        assert!(order.is_sorted(), "{text}");
        assert!(with_exchanges(&[], "and now?").is_err());
    }

    #[test]
    fn a_title_is_one_line_and_short() {
        let told = message("\n  do it\nmore", "s-1");
        assert_eq!(told, "do it\n\nDone in the session s-1.");
        let long = message(&"x".repeat(500), "s");
        assert_eq!(long.lines().next().unwrap().len(), TITLE_CHARS_MAX);
    }
}
