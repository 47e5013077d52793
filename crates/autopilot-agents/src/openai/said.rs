//! The lines that the process prints: one JSON object each.

use serde::{Deserialize, Serialize};

use crate::event::TokenCount;

/// One line of the process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum ApiSaid {
    /// The next piece of the answer.
    Text { text: String },
    /// A piece of the model's reasoning.
    Thought { text: String },
    /// The answer starts over: the pieces so far are not part of it.
    Anew,
    /// The tokens of all tries together.
    Usage { tokens: TokenCount },
    /// The request failed and is repeated after a pause.
    Retry { number: u32, tries_max: u32, wait_ms: u64, why: String },
    /// The server's limit is reached, until the given time if the server named one.
    Limit { until_unix: Option<i64> },
    /// A message for people.
    Notice { text: String },
    /// The answer is complete.
    Done { session: String, model: Option<String> },
    /// The process gives up.
    Failed(ApiFailed),
}

/// A request that failed for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiFailed {
    /// The part that failed.
    pub by: FailedBy,
    /// The HTTP status of the server's reply.
    pub status: Option<u16>,
    /// The server's type of the error.
    pub error_type: Option<String>,
    /// The server's code of the error.
    pub code: Option<String>,
    pub message: String,
    /// The pause that the server asked for.
    pub retry_after_ms: Option<u64>,
    /// The time at which the server's limit resets.
    pub until_unix: Option<i64>,
}

/// The part of a request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailedBy {
    /// The value of the key's variable cannot be a key.
    Key,
    /// The address or another setting can't be used.
    Setting,
    /// The server replied with an error.
    Server,
    /// The connection failed or broke.
    Connection,
    /// The server sent nothing for too long.
    Silence,
    /// The answer is longer than is read.
    Length,
    /// The server's reply could not be understood.
    Nonsense,
    /// The answer reached the model's length limit.
    OutputLimit,
    /// The model refused to answer.
    Refusal,
    /// The session to resume is gone.
    Session,
}

impl ApiSaid {
    /// The line to print, without its end.
    pub fn line(&self) -> String {
        // A value of these types always has a JSON form: no maps with keys but strings.
        serde_json::to_string(self).unwrap_or_default()
    }
}
