//! The lines that the scripted agent prints: one JSON object each.

use serde::{Deserialize, Serialize};

use crate::event::{ChangeKind, TokenCount};

/// One line of the scripted agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum ScriptSaid {
    /// The agent says something.
    Text { text: String },
    /// The agent changed a file.
    Change { path: String, kind: ChangeKind },
    /// The agent names its session.
    Session { id: String },
    /// The tokens used so far.
    Tokens { tokens: TokenCount },
    /// The cost so far.
    Cost { usd: f64 },
    /// The answer; the last one counts.
    Answer { text: String },
    /// The agent gives up.
    Fail(ScriptFailure),
}

/// The failure of an agent that gives up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptFailure {
    pub kind: FailKind,
    #[serde(default = "no_reason")]
    pub why: String,
    /// The time at which a quota resets.
    pub until_unix: Option<i64>,
}

fn no_reason() -> String {
    "the script says so".to_owned()
}

/// The ways in which a real agent gives up that a process's exit cannot show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailKind {
    Broke,
    Quota,
    Auth,
    Outage,
    Model,
}

impl ScriptSaid {
    /// The line to print, without its line end.
    pub fn line(&self) -> String {
        // A value of these types always has a JSON form: no maps with keys but strings.
        serde_json::to_string(self).unwrap_or_default()
    }
}
