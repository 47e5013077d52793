//! The three protocols the agents speak, behind one vocabulary.

use serde_json::Value;

use super::http::Event;
use super::script::{Call, Turn};
use super::{anthropic, chat, responses};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Anthropic,
    Responses,
    Chat,
}

/// What a request shows of the conversation.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) model: String,
    /// What the user said, oldest first.
    pub(super) prompts: Vec<String>,
    /// For each prompt, how many turns of the assistant came after it.
    pub(super) turns_after: Vec<usize>,
    /// Names of the tools that may be called.
    pub(super) tools: Vec<String>,
}

impl Seen {
    pub(super) fn prompt(&mut self, text: &str) {
        // The programs' own remarks, which may quote anything.
        let text = text.trim();
        if !text.is_empty() && !text.starts_with("<system-reminder>") {
            self.prompts.push(text.to_owned());
            self.turns_after.push(0);
        }
    }

    pub(super) fn assistant_turn(&mut self) {
        self.turns_after.iter_mut().for_each(|count| *count += 1);
    }

    pub(super) fn has(&self, tool: &str) -> bool {
        self.tools.iter().any(|name| name == tool)
    }
}

/// What an answer needs besides its turn.
pub(super) struct Reply<'a> {
    pub(super) turn: &'a Turn,
    pub(super) seen: &'a Seen,
    /// Never given twice, so that ids stay unique over resumes and servers.
    pub(super) serial: u64,
    /// Which turn of its prompt this is; part of the ids of calls.
    pub(super) number: usize,
}

impl Reply<'_> {
    pub(super) fn call_id(&self, prefix: &str, place: usize) -> String {
        format!("{prefix}_t{}_{:x}_{place}", self.number, self.serial)
    }

    /// An answer to a schema is text where no tool takes it.
    pub(super) fn text_answer(&self) -> Option<String> {
        self.turn.calls.iter().find_map(|call| match call {
            Call::Answer(json) => Some(json.to_string()),
            Call::Write { .. }
            | Call::Edit { .. }
            | Call::Read { .. }
            | Call::Shell { .. }
            | Call::Mcp { .. }
            | Call::Tool { .. } => None,
        })
    }
}

impl Wire {
    pub(super) fn of(path: &str) -> Option<Self> {
        match path {
            "/v1/messages" => Some(Wire::Anthropic),
            "/v1/responses" => Some(Wire::Responses),
            "/v1/chat/completions" => Some(Wire::Chat),
            _ => None,
        }
    }

    pub(super) fn read(self, body: &Value) -> Seen {
        match self {
            Wire::Anthropic => anthropic::read(body),
            Wire::Responses => responses::read(body),
            Wire::Chat => chat::read(body),
        }
    }

    pub(super) fn events(self, reply: &Reply<'_>) -> Vec<Event> {
        match self {
            Wire::Anthropic => anthropic::events(reply),
            Wire::Responses => responses::events(reply),
            Wire::Chat => chat::events(reply),
        }
    }

    pub(super) fn whole(self, reply: &Reply<'_>) -> Value {
        match self {
            Wire::Anthropic => anthropic::whole(reply),
            Wire::Responses => responses::whole(reply),
            Wire::Chat => chat::whole(reply),
        }
    }

    pub(super) fn error_event(self, kind: &str, message: &str) -> Event {
        match self {
            Wire::Anthropic => Event::typed(&anthropic::error(kind, message)),
            Wire::Responses => responses::failed(kind, message),
            Wire::Chat => Event::bare(&chat::error(kind, message)),
        }
    }

    pub(super) fn error(self, kind: &str, message: &str) -> Value {
        match self {
            Wire::Anthropic => anthropic::error(kind, message),
            Wire::Responses | Wire::Chat => chat::error(kind, message),
        }
    }
}

/// The texts of a content, which is a text itself or a list of parts.
pub(super) fn texts(content: &Value) -> Vec<String> {
    if let Some(text) = content.as_str() {
        return vec![text.to_owned()];
    }
    let parts = content.as_array().map_or(&[][..], Vec::as_slice);
    parts.iter().filter_map(|part| part["text"].as_str()).map(str::to_owned).collect()
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn string(value: &Value) -> String {
    value.as_str().unwrap_or("").to_owned()
}
