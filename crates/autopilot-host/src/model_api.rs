//! A model behind an OpenAI-compatible API: one question, the answer while it is written, or why
//! there is none.
//!
//! Invariants: the key is in no message and goes to no other host than the one of the base
//! address; every wait, try and answer has a limit.

mod address;
mod chat;
mod door;
mod failure;
mod reader;
mod responses;
mod retry;
mod sse;
mod way;

pub use address::Address;
pub use door::{Door, Key};
pub use failure::{Failure, FailureKind};

use retry::Patience;
use serde_json::Value;
use std::time::Duration;
use way::Way;

/// Where the vendor's own service is.
pub const BASE_DEFAULT: &str = "https://api.openai.com/v1";

#[derive(Clone, Debug)]
pub struct Question {
    pub api: Api,
    pub model: String,
    pub effort: Option<String>,
    /// What the model is told before the conversation.
    pub instructions: Option<String>,
    pub prompt: String,
    /// The conversation so far, the oldest first.
    pub earlier: Vec<Turn>,
    /// The answer this one goes on from, by its name at the server.
    pub previous: Option<String>,
    /// In the form that strict modes take.
    pub schema: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    pub prompt: String,
    pub answer: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// Responses, or Chat Completions where the server has no Responses.
    Auto,
    Responses,
    Chat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub tries_max: u32,
    /// A server that wants a longer pause is not waited for.
    pub pause_max: Duration,
    /// No try begins later than this.
    pub retry_time_max: Duration,
    pub connect_time_max: Duration,
    /// Without a byte from the server, before and within the answer.
    pub idle_time_max: Duration,
    pub answer_bytes_max: usize,
    pub stream_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            tries_max: 5,
            pause_max: Duration::from_secs(60),
            retry_time_max: Duration::from_secs(600),
            connect_time_max: Duration::from_secs(30),
            // A local server may load its model first; another may think before it writes.
            idle_time_max: Duration::from_secs(600),
            answer_bytes_max: 2 << 20,
            // Every few letters come in an event of some hundred bytes.
            stream_bytes_max: 256 << 20,
        }
    }
}

/// What is heard until the answer is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The next piece of the answer.
    Text(String),
    Thought(String),
    /// What was said of the answer so far is not part of it.
    Anew,
    /// Of all tries together.
    Usage(Tokens),
    Retry {
        number: u32,
        tries_max: u32,
        wait: Duration,
        why: String,
    },
    /// The server has had enough of us, until then if it said so.
    RateLimit {
        until_unix: Option<i64>,
    },
    Notice(String),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    /// The part of `input` that came from the server's cache.
    pub cached: u64,
}

impl Tokens {
    fn plus(self, more: Tokens) -> Tokens {
        Tokens {
            input: self.input.saturating_add(more.input),
            output: self.output.saturating_add(more.output),
            cached: self.cached.saturating_add(more.cached),
        }
    }
}

/// The end of an answer; its text was heard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Its name at the server.
    pub id: Option<String>,
    /// Whether the server keeps it, so that a later question can go on from it.
    pub stored: bool,
    pub model: Option<String>,
}

pub fn ask(
    door: &Door,
    question: &Question,
    hear: &mut dyn FnMut(Event),
) -> Result<Answer, Failure> {
    let mut way = Way::first(question)?;
    let mut patience = Patience::begin(door.limits());
    let mut used = Tokens::default();
    loop {
        let mut said = false;
        let mut tell = |event: Event| {
            said |= matches!(event, Event::Text(_));
            hear(event);
        };
        let (tried, tokens) = try_once(door, question, way, &mut tell);
        if let Some(tokens) = tokens {
            used = used.plus(tokens);
            hear(Event::Usage(used));
        }
        let failure = match tried {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        if said {
            hear(Event::Anew);
        }
        if let Some((next, notice)) = way.after(&failure, question) {
            hear(Event::Notice(notice.to_owned()));
            way = next;
            continue;
        }
        match patience.wait_for(&failure) {
            Some(pause) => {
                hear(Event::Retry {
                    number: pause.number,
                    tries_max: door.limits().tries_max,
                    wait: pause.length,
                    why: failure.message.clone(),
                });
                std::thread::sleep(pause.length);
            }
            None => {
                if failure.is_rate_limit() {
                    hear(Event::RateLimit { until_unix: failure.until_unix });
                }
                return Err(failure);
            }
        }
    }
}

fn try_once(
    door: &Door,
    question: &Question,
    way: Way,
    hear: &mut dyn FnMut(Event),
) -> (Result<Answer, Failure>, Option<Tokens>) {
    let mut reader = way.reader(door.limits().answer_bytes_max);
    let tried = door
        .post(way.path(), &way.body(question), &mut |part| reader.part(&part, hear))
        .and_then(|()| reader.end());
    (tried, reader.tokens())
}
