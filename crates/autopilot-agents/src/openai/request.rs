//! What the process is asked, as one document.

use autopilot_core::config::Api;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::launch::Exchange;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub base_url: Option<String>,
    /// The name of the variable, never the key; no key is sent without it.
    pub key_env: Option<String>,
    pub api: Api,
    pub model: String,
    pub effort: Option<String>,
    pub instructions: Option<String>,
    pub prompt: String,
    pub session: Option<String>,
    pub earlier: Vec<Exchange>,
    /// In the form that strict modes take.
    pub schema: Option<Value>,
    pub limits: Limits,
}

/// How long and how often the process asks on its own. What takes longer is the engine's to wait
/// for: it knows of other tasks, other agents and the money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub tries_max: u32,
    pub pause_ms_max: u64,
    pub retry_ms_max: u64,
    pub connect_ms_max: u64,
    pub idle_ms_max: u64,
}

const TRIES_MAX: u32 = 5;
/// A server that wants a longer pause is not waited for here.
const PAUSE_MS_MAX: u64 = 30_000;
/// No try begins later than this.
const RETRY_MS_MAX: u64 = 5 * 60_000;
const CONNECT_MS_MAX: u64 = 30_000;
/// Without a byte. A local server may load its model first; another thinks before it writes.
const IDLE_MS_MAX: u64 = 10 * 60_000;

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            tries_max: TRIES_MAX,
            pause_ms_max: PAUSE_MS_MAX,
            retry_ms_max: RETRY_MS_MAX,
            connect_ms_max: CONNECT_MS_MAX,
            idle_ms_max: IDLE_MS_MAX,
        }
    }
}

/// Of the name of a conversation that the server does not keep.
const TOLD: &str = "told:";

impl Request {
    pub(super) fn document(&self) -> String {
        // A value of these types always has a JSON form: no maps with keys but strings.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The answer to go on from, by its name at the server.
    pub fn previous(&self) -> Option<&str> {
        self.session.as_deref().filter(|session| !session.starts_with(TOLD))
    }

    /// The conversation is neither at the server nor here.
    pub fn is_lost(&self) -> bool {
        self.session.is_some() && self.previous().is_none() && self.earlier.is_empty()
    }

    /// The name under which the conversation can be gone on with.
    pub fn session_after(id: Option<&str>, stored: bool) -> String {
        match id {
            Some(id) if stored => id.to_owned(),
            id => format!("{TOLD}{}", id.unwrap_or("1")),
        }
    }
}
