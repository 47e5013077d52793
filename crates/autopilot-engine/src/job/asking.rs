//! The one way to ask an agent: a question goes in, a typed answer and the facts of the turn come
//! out.
//!
//! A step builds its prompt, calls [`Job::ask`] with the type of the answer, and makes facts of the
//! result. Preparing the agent, talking with it and closing the turn is in `turn`; the meaning of
//! an ending without an answer is in `meaning`.

mod meaning;
mod turn;

pub use turn::AgentTurn;

use super::slot_dir::SlotDir;
use super::{Job, JobError};
use autopilot_agents::answer::{self, AgentAnswer, AnswerFault};
use autopilot_agents::{Access, AgentEnding, AgentOutcome, Exchange};
use autopilot_core::event::{Facts, Outcome, SessionEnd};
use autopilot_core::prompt::{cut, fenced};
use autopilot_core::step::Step;
use autopilot_host::file;
use camino::Utf8PathBuf;

const SCHEMA_BYTES_MAX: u64 = 1 << 20;
/// Bytes of an unreadable answer, and of its question, that are shown to the agent that repairs it.
const UNREADABLE_BYTES_MAX: usize = 16 * 1024;
/// Faults of a refused answer that are named in the message.
const FAULTS_NAMED_MAX: usize = 12;

/// One question to the agent of an attempt.
pub struct Question<'a> {
    pub prompt: String,
    dir: &'a SlotDir,
    /// The agent's access to the directory.
    pub access: Access,
    /// The JSON Schema of the answer, and a file with it for the agent's own schema option.
    schema: Option<(&'static str, Utf8PathBuf)>,
    /// The session the question is asked in.
    pub session: Option<String>,
    earlier: Vec<Exchange>,
}

impl<'a> Question<'a> {
    /// A question to an agent that works in `dir`.
    pub fn new(prompt: String, dir: &'a SlotDir, access: Access) -> Question<'a> {
        Question { prompt, dir, access, schema: None, session: None, earlier: Vec::new() }
    }

    /// A question to an agent that may only read.
    pub fn reading(prompt: String, dir: &'a SlotDir) -> Question<'a> {
        Question::new(prompt, dir, Access::Read)
    }

    /// A question to an agent that may change files in the directory.
    pub fn editing(prompt: String, dir: &'a SlotDir) -> Question<'a> {
        Question::new(prompt, dir, Access::Edit)
    }

    /// The question in an existing session, after the `earlier` exchanges.
    #[must_use]
    pub fn in_session(self, session: Option<String>, earlier: Vec<Exchange>) -> Question<'a> {
        Question { session, earlier, ..self }
    }

    /// Another question to the same agent, in a new session.
    pub fn instead(&self, prompt: String) -> Question<'a> {
        let schema = self.schema.clone();
        Question { schema, ..Question::new(prompt, self.dir, self.access) }
    }
}

/// The result of a question.
pub struct AskedQuestion<T> {
    /// The facts of the turn, to which the step adds its own.
    pub facts: Facts,
    pub answer: Result<T, Unanswered>,
    /// The number of faults in the first answer, if a second one was requested.
    pub repaired: Option<usize>,
}

impl<T> AskedQuestion<T> {
    /// Returns whether the agent ended well, whatever its answer is worth.
    pub fn ended_well(&self) -> bool {
        match &self.answer {
            Ok(_) | Err(Unanswered::Faulty { .. }) => true,
            Err(Unanswered::Ended(_)) => false,
        }
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Unanswered {
    /// The agent ended with a failure.
    Ended(Outcome),
    /// The agent ended well, but its answer can't be used.
    Faulty { faults: Vec<AnswerFault>, ending: Box<AgentEnding> },
}

impl Unanswered {
    /// The outcome for a step whose answer can be requested again.
    pub fn outcome(self) -> Outcome {
        match self {
            Unanswered::Ended(outcome) => outcome,
            Unanswered::Faulty { faults, .. } => {
                let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
                Outcome::Broke { why: format!("{}: {}", meaning::UNREADABLE, faults.join("; ")) }
            }
        }
    }

    /// The outcome for a step that adds tasks: an answer that is still wrong after a repair would
    /// be wrong again in another try.
    pub fn refused(self, what: &str) -> Outcome {
        match self {
            Unanswered::Ended(outcome) => outcome,
            Unanswered::Faulty { faults, .. } => refused(what, &faults),
        }
    }
}

/// The note about a builder's report that could not be read even when asked for again.
pub fn no_report(faults: &[AnswerFault]) -> String {
    format!(
        "the builder's report could not be read, so the work is judged without it: {}",
        named(faults)
    )
}

/// The outcome for a refused answer, with the first of its faults.
pub fn refused<T: ToString>(what: &str, faults: &[T]) -> Outcome {
    Outcome::Failed { why: format!("{what}: {}", named(faults)) }
}

/// The first faults in one line, and how many more there are.
fn named<T: ToString>(faults: &[T]) -> String {
    let mut named: Vec<String> =
        faults.iter().take(FAULTS_NAMED_MAX).map(ToString::to_string).collect();
    if faults.len() > FAULTS_NAMED_MAX {
        named.push(format!("and {} more", faults.len() - FAULTS_NAMED_MAX));
    }
    named.join("; ")
}

impl Job {
    /// Asks a question, and asks again only for the answer if that can't be read.
    pub(super) async fn ask<T: AgentAnswer>(
        &self,
        question: Question<'_>,
    ) -> Result<AskedQuestion<T>, JobError> {
        self.ask_by::<T, T>(question, |ending, own| answer::read::<T>(ending, own)).await
    }

    /// Asks for an answer that must also keep rules beyond its schema. `read` finds all faults at
    /// once, because the answer is requested only once more.
    pub(super) async fn ask_by<S: AgentAnswer, T>(
        &self,
        mut question: Question<'_>,
        read: impl Fn(&AgentEnding, Option<&answer::AnswerSchema>) -> Result<T, Vec<AnswerFault>>,
    ) -> Result<AskedQuestion<T>, JobError> {
        // An editing agent reports at the end; its schema option would end the work early.
        if question.access == Access::Read {
            question.schema = Some((S::SCHEMA_JSON, self.schema_file::<S>()?));
        }
        let own = self.own_schema()?;
        let read = |ending: &AgentEnding| read(ending, own.as_ref());
        let first = self.turn(&question).await?;
        let (turn, answer, repaired) = match self.understood(&first.ending, &read) {
            Err(Unanswered::Faulty { faults, .. }) if !self.cancel.is_asked() => {
                let repaired = Some(faults.len());
                let second = self.repair(&question, first, &faults, S::SCHEMA_JSON).await?;
                let answer = self.understood(&second.ending, &read);
                (second, answer, repaired)
            }
            answer => (first, answer, None),
        };
        Ok(AskedQuestion { facts: self.facts_of(&turn)?, answer, repaired })
    }

    fn understood<T>(
        &self,
        ending: &AgentEnding,
        read: &impl Fn(&AgentEnding) -> Result<T, Vec<AnswerFault>>,
    ) -> Result<T, Unanswered> {
        if ending.outcome != AgentOutcome::Success {
            return Err(Unanswered::Ended(self.judged(ending)));
        }
        let ending_of = || Box::new(ending.clone());
        read(ending).map_err(|faults| Unanswered::Faulty { faults, ending: ending_of() })
    }

    async fn repair(
        &self,
        question: &Question<'_>,
        first: AgentTurn,
        faults: &[AnswerFault],
        schema: &str,
    ) -> Result<AgentTurn, JobError> {
        let said = first.ending.answer;
        // Not every agent remembers what it was asked.
        let prompt = format!(
            "{}\nWhat you said was:\n{}\n\nWhat you were asked was:\n{}",
            answer::repair_prompt(faults, schema),
            autopilot_agents::event::clip(&self.clean(&said), UNREADABLE_BYTES_MAX),
            fenced("text", &cut(&question.prompt, UNREADABLE_BYTES_MAX))
        );
        let earlier = Exchange { prompt: question.prompt.clone(), answer: said };
        let alone = question.instead(prompt);
        let again =
            question.instead(alone.prompt.clone()).in_session(first.ending.session, vec![earlier]);
        let mut second = self.turn(&again).await?;
        // The prompt holds all that is needed, so an agent that can't resume is asked anew.
        if meaning::session_end(&second.ending.outcome) == SessionEnd::Gone {
            second = self.turn(&alone).await?;
        }
        second.ran.notes.splice(0..0, first.ran.notes);
        Ok(second)
    }

    /// The outcome of a turn that ended without an answer.
    pub(super) fn judged(&self, ending: &AgentEnding) -> Outcome {
        let is_money_gone = self.money_left().is_some_and(|left| left.0 == 0);
        meaning::judged(&ending.outcome, is_money_gone, &jiff::Zoned::now())
    }

    /// Keeps an answer as the text of its step and as a file for people.
    pub(super) fn keep_answer(
        &self,
        facts: &mut Facts,
        answer: &impl serde::Serialize,
        file: Option<&str>,
    ) -> Result<String, JobError> {
        let text = self.context.place.without_place(&self.clean_json(answer)?);
        if let Some(file) = file {
            facts.artifact = Some(self.write_clean(file, &text)?);
        }
        facts.answer = Some(self.context.texts.put(&text)?);
        Ok(text)
    }

    pub(super) fn facts_of(&self, turn: &AgentTurn) -> Result<Facts, JobError> {
        Ok(Facts {
            exit: turn.ran.exit.code,
            signal: turn.ran.exit.signal,
            log: Some(turn.log.clone()),
            tail: Some(self.context.texts.put(&turn.ran.tail)?),
            notes: turn.ran.notes.clone(),
            turn: Some(turn.session_end()),
            by: Some(turn.by.clone()),
            ..Facts::default()
        })
    }

    /// Writes the schema to a file for the agent's own schema option.
    fn schema_file<T: AgentAnswer>(&self) -> Result<Utf8PathBuf, JobError> {
        let name = format!("{}_schema.json", T::NAME);
        let path = self.context.place.state.join("schemas").join(name);
        super::process::write_plain(&path, T::SCHEMA_JSON)?;
        Ok(path)
    }

    /// The user's edited schema, which applies in addition to the built-in one.
    pub(super) fn own_schema(&self) -> Result<Option<answer::AnswerSchema>, JobError> {
        // Users can edit the schemas of plans and reviews only.
        if !matches!(self.want.step, Step::Plan | Step::Review | Step::WholeReview) {
            return Ok(None);
        }
        let Some(path) = &self.agent_config().schema_path else {
            return Ok(None);
        };
        let path = self.context.place.root.join(path);
        // The built-in schema applies in any case; an existing file must be valid.
        if path.symlink_metadata().is_err() {
            return Ok(None);
        }
        let bytes = file::read_capped(path.as_std_path(), SCHEMA_BYTES_MAX)?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(Some(answer::AnswerSchema::parse(path.as_str(), &text)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(count: usize) -> Vec<AnswerFault> {
        (0..count).map(|n| AnswerFault::new("", format!("fault {n}"))).collect()
    }

    #[test]
    fn a_refusal_names_the_first_faults_and_counts_the_rest() {
        let why = |count| {
            let outcome = refused("the plan is not valid", &faults(count));
            let Outcome::Failed { why } = outcome else { panic!("{outcome:?}") };
            why
        };
        assert_eq!(why(2), "the plan is not valid: fault 0; fault 1");
        assert!(why(FAULTS_NAMED_MAX).ends_with("fault 11"));
        assert!(why(FAULTS_NAMED_MAX + 3).ends_with("fault 11; and 3 more"));
    }
}
