//! The parts shared by agents that print one JSON object per line.

use serde_json::Value;

use crate::agent::Stream;
use crate::classify::{Facts, classify};
use crate::command::failure;
use crate::ending::{Cause, ExitFacts, Odd, Outcome};
use crate::event::{self, AgentEvent};
use crate::tail::Tail;

/// One line of such an agent.
pub(crate) enum Line {
    Event(Value),
    Words(Vec<AgentEvent>),
}

/// Decodes a line. Any line that is not a JSON object is kept as words: start-up errors come that
/// way.
pub(crate) fn json_line(
    stream: Stream,
    line: &str,
    truncated: bool,
    odd: &mut Odd,
    words: &mut Tail,
) -> Line {
    if line.trim().is_empty() {
        return Line::Words(Vec::new());
    }
    match stream {
        Stream::Err => {}
        Stream::Out if truncated => {
            // The line is a part of an event, so it may hold words of the model: no error is read
            // from it.
            odd.cut += 1;
            return Line::Words(vec![AgentEvent::Notice { text: event::text(line) }]);
        }
        Stream::Out => match serde_json::from_str::<Value>(line) {
            Ok(event) if event.is_object() => return Line::Event(event),
            Ok(_) | Err(_) => odd.malformed += 1,
        },
    }
    words.push(line);
    Line::Words(vec![AgentEvent::Notice { text: event::text(line) }])
}

/// The outcome after the agent reported success. The exit has to agree unless we had to end the
/// process, which takes nothing from an answer that was complete.
pub(crate) fn said_success(exit: &ExitFacts, words: &Tail) -> Outcome {
    if exit.is_zero() || exit.is_by_us() {
        return Outcome::Success;
    }
    let why = format!("the agent reported success but {}", failure(exit, words));
    Outcome::broke(Cause::Crash, why)
}

/// The outcome if nothing was said and nothing done, which the agents call a success.
pub(crate) fn no_answer() -> Outcome {
    Outcome::broke(Cause::Empty, "the agent ended without an answer and without using a tool")
}

/// The outcome if the process ended by itself and never reported a result: the reason, if any, is
/// in its words.
pub(crate) fn silent_end(exit: &ExitFacts, words: &Tail, started: bool) -> Outcome {
    let why = format!("the agent {}", failure(exit, words));
    let said = words.text();
    if let Some(trouble) = classify(Facts { text: &said, ..Facts::default() }) {
        return trouble.outcome(why, None);
    }
    match (started, exit.is_zero()) {
        (false, false) => Outcome::broke(Cause::Startup, why),
        (true, false) => Outcome::broke(Cause::Crash, why),
        (_, true) => Outcome::broke(Cause::Empty, format!("no result: {why}")),
    }
}
