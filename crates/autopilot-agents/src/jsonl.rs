//! The parts shared by agents that print one JSON object per line.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::agent::OutputStream;
use crate::classify::{ErrorFacts, classify};
use crate::command::failure;
use crate::ending::{AgentOutcome, Cause, ExitFacts, OddLines};
use crate::event::AgentEvent;
use crate::tail::LastLines;

/// The lines of one launch, as far as they are not events.
#[derive(Debug, Default)]
pub(crate) struct JsonLines {
    /// The last lines that are not JSON objects: start-up errors come that way.
    pub(crate) words: LastLines,
    pub(crate) odd: OddLines,
}

impl JsonLines {
    /// Reads a line as an event; the error holds what is shown of a line that is none.
    pub(crate) fn read<T: DeserializeOwned>(
        &mut self,
        stream: OutputStream,
        line: &str,
        truncated: bool,
    ) -> Result<T, Vec<AgentEvent>> {
        if line.trim().is_empty() {
            return Err(Vec::new());
        }
        match stream {
            OutputStream::Err => {}
            OutputStream::Out if truncated => {
                // The line is a part of an event, so it may hold words of the model: no error is
                // read from it.
                self.odd.cut += 1;
                return Err(vec![AgentEvent::notice(line)]);
            }
            OutputStream::Out => match serde_json::from_str::<Value>(line) {
                Ok(event) if event.is_object() => {
                    return serde_json::from_value(event).map_err(|_| self.unknown());
                }
                Ok(_) | Err(_) => self.odd.malformed += 1,
            },
        }
        self.words.push(line);
        Err(vec![AgentEvent::notice(line)])
    }

    /// Counts an event of an unknown type, which shows nothing.
    pub(crate) fn unknown(&mut self) -> Vec<AgentEvent> {
        self.odd.unknown += 1;
        Vec::new()
    }

    /// The outcome after the agent reported success. The exit has to agree unless we had to end
    /// the process, which takes nothing from an answer that was complete.
    pub(crate) fn said_success(&self, exit: &ExitFacts) -> AgentOutcome {
        if exit.is_zero() || exit.is_by_us() {
            return AgentOutcome::Success;
        }
        let why = format!("the agent reported success but {}", failure(exit, &self.words));
        AgentOutcome::broke(Cause::Crash, why)
    }

    /// The outcome if the process never reported a result. If it ended by itself, the reason, if
    /// any, is in its words.
    pub(crate) fn silent_end(&self, exit: &ExitFacts, started: bool) -> AgentOutcome {
        if let Some(outcome) = exit.forced() {
            return outcome;
        }
        let why = format!("the agent {}", failure(exit, &self.words));
        let said = self.words.text();
        if let Some(trouble) = classify(ErrorFacts { text: &said, ..ErrorFacts::default() }) {
            return trouble.outcome(why, None);
        }
        match (started, exit.is_zero()) {
            (false, false) => AgentOutcome::broke(Cause::Startup, why),
            (true, false) => AgentOutcome::broke(Cause::Crash, why),
            (_, true) => AgentOutcome::broke(Cause::Empty, format!("no result: {why}")),
        }
    }
}

/// The outcome if nothing was said and nothing done, which the agents call a success.
pub(crate) fn no_answer() -> AgentOutcome {
    AgentOutcome::broke(Cause::Empty, "the agent ended without an answer and without using a tool")
}

/// The text of a value; empty if the value is not a text.
pub(crate) fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// The items of a value; none if the value is not a list.
pub(crate) fn items_of(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
