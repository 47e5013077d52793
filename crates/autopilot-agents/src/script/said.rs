//! What the scripted agent prints: one JSON object per line.

use serde::{Deserialize, Serialize};

use crate::event::{ChangeKind, Tokens};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum Said {
    Text {
        text: String,
    },
    Change {
        path: String,
        kind: ChangeKind,
    },
    Session {
        id: String,
    },
    Tokens {
        tokens: Tokens,
    },
    Cost {
        usd: f64,
    },
    /// The last one is the answer of the run.
    Answer {
        text: String,
    },
    Fail {
        kind: FailKind,
        why: String,
        until_unix: Option<i64>,
    },
}

/// The ways a real agent gives up that a process's exit cannot show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailKind {
    Broke,
    Quota,
    Auth,
    Outage,
    Model,
}

impl Said {
    /// The line to print, without its end.
    pub fn line(&self) -> String {
        // A value of these types always has a JSON form: no maps with keys but strings.
        serde_json::to_string(self).unwrap_or_default()
    }
}
