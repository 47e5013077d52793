//! The question to the process, as one JSON document.

use autopilot_core::config::Api;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::launch::Exchange;

/// Everything that the process needs to ask a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRequest {
    /// The address of the server; `None` takes the one in the environment, or else the vendor's.
    pub base_url: Option<String>,
    /// The name of the variable that holds the key, never the key itself; without it no key is
    /// sent.
    pub key_env: Option<String>,
    pub api: Api,
    pub model: String,
    pub effort: Option<String>,
    /// The system prompt.
    pub instructions: Option<String>,
    pub prompt: String,
    /// The id of the session to resume, as [`ModelRequest::session_after`] made it.
    pub session: Option<String>,
    /// The earlier exchanges, for a server that does not keep them.
    pub earlier: Vec<Exchange>,
    /// The schema of the answer, in the form that strict modes take.
    pub schema: Option<Value>,
}

/// The prefix of the name of a conversation that the server does not keep.
const TOLD: &str = "told:";

impl ModelRequest {
    pub(super) fn document(&self) -> String {
        // A value of these types always has a JSON form: no maps with keys but strings.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The server's id of the response to continue from.
    pub fn previous(&self) -> Option<&str> {
        self.session.as_deref().filter(|session| !session.starts_with(TOLD))
    }

    /// Whether neither the server nor the request holds the conversation.
    pub fn is_lost(&self) -> bool {
        self.session.is_some() && self.previous().is_none() && self.earlier.is_empty()
    }

    /// The id under which the conversation can be resumed. `stored` tells whether the server keeps
    /// it.
    pub fn session_after(id: Option<&str>, stored: bool) -> String {
        match id {
            Some(id) if stored => id.to_owned(),
            id => format!("{TOLD}{}", id.unwrap_or("1")),
        }
    }
}
