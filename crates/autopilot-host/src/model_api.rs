//! A model behind an OpenAI-compatible API: one question, and the answer while it is written, or
//! the reason why there is none.
//!
//! Invariants: the key is in no message and goes to no other host than the one of the base address;
//! every wait, try and answer has a limit.

mod address;
mod chat;
mod client;
mod failure;
mod reader;
mod responses;
mod retry;
mod sse;
mod way;

pub use address::ApiAddress;
pub use client::{ApiClient, ApiKey};
pub use failure::{ApiFailure, FailureKind};

use retry::RetryPatience;
use serde_json::Value;
use std::time::Duration;
use way::ApiWay;

/// The base address of the vendor's own service.
pub const BASE_DEFAULT: &str = "https://api.openai.com/v1";

/// A question to a model.
#[derive(Clone, Debug)]
pub struct ApiQuestion {
    /// The API to use.
    pub api: ApiKind,
    /// The name of the model.
    pub model: String,
    /// The reasoning effort, in the words of the API.
    pub effort: Option<String>,
    /// The text the model is given before the conversation.
    pub instructions: Option<String>,
    /// The question itself.
    pub prompt: String,
    /// The conversation so far, the oldest first.
    pub earlier: Vec<EarlierTurn>,
    /// The server's id of the answer that this question continues.
    pub previous: Option<String>,
    /// The JSON Schema of the answer, in the form that strict modes accept.
    pub schema: Option<Value>,
}

/// An earlier question of a conversation and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierTurn {
    /// The question.
    pub prompt: String,
    /// The answer.
    pub answer: String,
}

/// The API by which a question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiKind {
    /// Responses, or Chat Completions where the server has no Responses.
    Auto,
    /// The Responses API.
    Responses,
    /// The Chat Completions API.
    Chat,
}

/// The limits on tries, waits and sizes of one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiLimits {
    /// How often the question is sent.
    pub tries_max: u32,
    /// The longest pause a server can ask for; with a longer one it is not asked again.
    pub pause_max: Duration,
    /// How long after the first try another one may begin.
    pub retry_time_max: Duration,
    /// How long finding the host and connecting may take, each.
    pub connect_time_max: Duration,
    /// How long the server may send nothing, before and within the answer.
    pub idle_time_max: Duration,
    /// The longest text of an answer.
    pub answer_bytes_max: usize,
    /// The most bytes read from the server for one try.
    pub stream_bytes_max: u64,
}

impl Default for ApiLimits {
    fn default() -> ApiLimits {
        ApiLimits {
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

/// An event before the answer is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiEvent {
    /// The next piece of the answer.
    Text(String),
    /// A piece of the model's reasoning.
    Thought(String),
    /// The pieces of the answer so far are void; the answer starts over.
    Anew,
    /// The tokens of all tries together.
    Usage(ApiTokens),
    /// The question is sent again after a pause.
    Retry { number: u32, tries_max: u32, wait: Duration, why: String },
    /// The server's rate limit is reached, until then if the server said so.
    RateLimit { until_unix: Option<i64> },
    /// A message for a person.
    Notice(String),
}

/// The tokens that a question has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApiTokens {
    /// The tokens of the question, cached ones included.
    pub input: u64,
    /// The tokens of the answer.
    pub output: u64,
    /// The part of `input` that came from the server's cache.
    pub cached: u64,
}

impl ApiTokens {
    fn plus(self, more: ApiTokens) -> ApiTokens {
        ApiTokens {
            input: self.input.saturating_add(more.input),
            output: self.output.saturating_add(more.output),
            cached: self.cached.saturating_add(more.cached),
        }
    }
}

/// The end of an answer; its text has come in events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiAnswer {
    /// The server's id of the answer.
    pub id: Option<String>,
    /// Whether the server keeps the answer, so that a later question can continue it.
    pub stored: bool,
    /// The name of the model that answered, if the server told.
    pub model: Option<String>,
}

/// Asks the question, in simpler ways and again if need be, and calls `hear` with every event. It
/// blocks until the answer is complete.
pub fn ask(
    client: &ApiClient,
    question: &ApiQuestion,
    hear: &mut dyn FnMut(ApiEvent),
) -> Result<ApiAnswer, ApiFailure> {
    let mut way = ApiWay::first(question)?;
    let mut patience = RetryPatience::begin(client.limits());
    let mut used = ApiTokens::default();
    loop {
        let mut said = false;
        let mut tell = |event: ApiEvent| {
            said |= matches!(event, ApiEvent::Text(_));
            hear(event);
        };
        let (tried, tokens) = try_once(client, question, way, &mut tell);
        if let Some(tokens) = tokens {
            used = used.plus(tokens);
            hear(ApiEvent::Usage(used));
        }
        let failure = match tried {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        if said {
            hear(ApiEvent::Anew);
        }
        if let Some((next, notice)) = way.after(&failure, question) {
            hear(ApiEvent::Notice(notice.to_owned()));
            way = next;
            continue;
        }
        match patience.wait_for(&failure) {
            Some(pause) => {
                hear(ApiEvent::Retry {
                    number: pause.number,
                    tries_max: client.limits().tries_max,
                    wait: pause.length,
                    why: failure.message.clone(),
                });
                std::thread::sleep(pause.length);
            }
            None => {
                if failure.is_rate_limit() {
                    hear(ApiEvent::RateLimit { until_unix: failure.until_unix });
                }
                return Err(failure);
            }
        }
    }
}

/// Asks the question once. The tokens count even if the try fails.
fn try_once(
    client: &ApiClient,
    question: &ApiQuestion,
    way: ApiWay,
    hear: &mut dyn FnMut(ApiEvent),
) -> (Result<ApiAnswer, ApiFailure>, Option<ApiTokens>) {
    let mut reader = way.reader(client.limits().answer_bytes_max);
    let tried = client
        .post(way.path(), &way.body(question), &mut |part| reader.part(&part, hear))
        .and_then(|()| reader.end());
    (tried, reader.tokens())
}
