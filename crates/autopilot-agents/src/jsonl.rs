//! The parts shared by agents that print one JSON object per line.

use serde_json::Value;

use crate::agent::OutputStream;
use crate::classify::{ErrorFacts, classify};
use crate::command::failure;
use crate::ending::{AgentOutcome, Cause, ExitFacts, Odd};
use crate::event::{self, AgentEvent};
use crate::tail::LastLines;

/// One line of such an agent.
pub(crate) enum JsonLine {
    Event(Value),
    Words(Vec<AgentEvent>),
}

/// Decodes a line. Any line that is not a JSON object is kept as words: start-up errors come that
/// way.
pub(crate) fn json_line(
    stream: OutputStream,
    line: &str,
    truncated: bool,
    odd: &mut Odd,
    words: &mut LastLines,
) -> JsonLine {
    if line.trim().is_empty() {
        return JsonLine::Words(Vec::new());
    }
    match stream {
        OutputStream::Err => {}
        OutputStream::Out if truncated => {
            // The line is a part of an event, so it may hold words of the model: no error is read
            // from it.
            odd.cut += 1;
            return JsonLine::Words(vec![AgentEvent::Notice { text: event::text(line) }]);
        }
        OutputStream::Out => match serde_json::from_str::<Value>(line) {
            Ok(event) if event.is_object() => return JsonLine::Event(event),
            Ok(_) | Err(_) => odd.malformed += 1,
        },
    }
    words.push(line);
    JsonLine::Words(vec![AgentEvent::Notice { text: event::text(line) }])
}

/// The outcome after the agent reported success. The exit has to agree unless we had to end the
/// process, which takes nothing from an answer that was complete.
pub(crate) fn said_success(exit: &ExitFacts, words: &LastLines) -> AgentOutcome {
    if exit.is_zero() || exit.is_by_us() {
        return AgentOutcome::Success;
    }
    let why = format!("the agent reported success but {}", failure(exit, words));
    AgentOutcome::broke(Cause::Crash, why)
}

/// The outcome if nothing was said and nothing done, which the agents call a success.
pub(crate) fn no_answer() -> AgentOutcome {
    AgentOutcome::broke(Cause::Empty, "the agent ended without an answer and without using a tool")
}

/// The outcome if the process ended by itself and never reported a result: the reason, if any, is
/// in its words.
pub(crate) fn silent_end(exit: &ExitFacts, words: &LastLines, started: bool) -> AgentOutcome {
    let why = format!("the agent {}", failure(exit, words));
    let said = words.text();
    if let Some(trouble) = classify(ErrorFacts { text: &said, ..ErrorFacts::default() }) {
        return trouble.outcome(why, None);
    }
    match (started, exit.is_zero()) {
        (false, false) => AgentOutcome::broke(Cause::Startup, why),
        (true, false) => AgentOutcome::broke(Cause::Crash, why),
        (_, true) => AgentOutcome::broke(Cause::Empty, format!("no result: {why}")),
    }
}
