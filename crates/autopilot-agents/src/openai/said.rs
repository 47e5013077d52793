//! What the process says: one JSON object per line.

use serde::{Deserialize, Serialize};

use crate::event::Tokens;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum Said {
    /// The next piece of the answer.
    Text {
        text: String,
    },
    Thought {
        text: String,
    },
    /// What was said of the answer so far is not part of it.
    Anew,
    /// Of all tries together.
    Usage {
        tokens: Tokens,
    },
    Retry {
        number: u32,
        tries_max: u32,
        wait_ms: u64,
        why: String,
    },
    /// The server wants to be left alone, until then if it said so.
    Limit {
        until_unix: Option<i64>,
    },
    Notice {
        text: String,
    },
    Done {
        session: String,
        model: Option<String>,
    },
    Failed(Failed),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    pub by: FailedBy,
    pub status: Option<u16>,
    /// The server's words for the error.
    pub error_type: Option<String>,
    pub code: Option<String>,
    pub message: String,
    pub retry_after_ms: Option<u64>,
    pub until_unix: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailedBy {
    Key,
    /// The address or another setting can't be used.
    Setting,
    Server,
    Connection,
    Silence,
    Length,
    Nonsense,
    OutputLimit,
    Refusal,
    Session,
}

impl Said {
    /// The line to print, without its end.
    pub fn line(&self) -> String {
        // A value of these types always has a JSON form: no maps with keys but strings.
        serde_json::to_string(self).unwrap_or_default()
    }
}
