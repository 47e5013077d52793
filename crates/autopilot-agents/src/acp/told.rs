//! The updates that an agent sends while it works: decoded into events, with the answer among them.

use serde_json::Value;

use super::call::{Calls, ToolCall};
use crate::command::LastBytes;
use crate::event::{self, AgentEvent, TEXT_BYTES_MAX};
use crate::jsonl::{JsonLines, items_of, text_of};

/// The updates of one turn so far.
#[derive(Debug, Default)]
pub(super) struct ToldUpdates {
    /// The current message, which is the answer if no other follows.
    answer: LastBytes,
    /// The id of the current message, if the agent numbers its messages.
    message: Option<String>,
    /// Whether a tool was used since: the next text begins another message.
    is_over: bool,
    /// The text that arrived in pieces and was not shown yet.
    unshown: Option<(Voice, String)>,
    calls: Calls,
    did_anything: bool,
}

/// Whether a text is part of the answer or of the model's reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    Aloud,
    Thinking,
}

impl ToldUpdates {
    pub(super) fn updated(&mut self, update: &Value, lines: &mut JsonLines) -> Vec<AgentEvent> {
        match update["sessionUpdate"].as_str() {
            Some("agent_message_chunk") => self.said(update),
            Some("agent_thought_chunk") => {
                self.piece(Voice::Thinking, text_of(&update["content"]["text"]))
            }
            Some("tool_call" | "tool_call_update") => {
                self.is_over = true;
                self.did_anything = true;
                let mut events = self.flush();
                events.extend(self.calls.updated(update));
                events
            }
            Some("plan") => {
                let mut events = self.flush();
                events.push(AgentEvent::notice(&plan(update)));
                events
            }
            Some(
                "user_message_chunk"
                | "available_commands_update"
                | "current_mode_update"
                | "config_option_update"
                | "session_info_update",
            ) => Vec::new(),
            Some(_) | None => lines.unknown(),
        }
    }

    pub(super) fn asked(&mut self, tool_call: &Value) -> (ToolCall, Vec<AgentEvent>) {
        let mut events = self.flush();
        let (asked, event) = self.calls.asked(tool_call);
        events.extend(event);
        (asked, events)
    }

    /// Shows the pieces that wait for the rest of their message.
    pub(super) fn flush(&mut self) -> Vec<AgentEvent> {
        let shown = self.unshown.take().map(|(voice, text)| match voice {
            Voice::Aloud => AgentEvent::text(&text),
            Voice::Thinking => AgentEvent::thought(&text),
        });
        shown.into_iter().collect()
    }

    /// Ends the current message: another prompt follows, so the message was not the answer.
    pub(super) fn go_on(&mut self) {
        self.is_over = true;
    }

    pub(super) fn did_nothing(&self) -> bool {
        !self.did_anything && self.answer.text.trim().is_empty()
    }

    pub(super) fn answer(&self) -> &str {
        &self.answer.text
    }

    fn said(&mut self, update: &Value) -> Vec<AgentEvent> {
        let id = update["messageId"].as_str();
        let is_other = id.is_some() && self.message.is_some() && self.message.as_deref() != id;
        let mut events = Vec::new();
        let text = text_of(&update["content"]["text"]);
        if is_other || (self.is_over && !text.is_empty()) {
            events.extend(self.flush());
            self.answer = LastBytes::default();
            self.is_over = false;
        }
        self.message = id.map(str::to_owned).or(self.message.take());
        self.answer.push(text);
        events.extend(self.piece(Voice::Aloud, text));
        events
    }

    fn piece(&mut self, voice: Voice, text: &str) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        if self.unshown.as_ref().is_some_and(|(before, _)| *before != voice) {
            events.extend(self.flush());
        }
        if text.is_empty() {
            return events;
        }
        let (_, unshown) = self.unshown.get_or_insert_with(|| (voice, String::new()));
        unshown.push_str(text);
        if unshown.len() >= TEXT_BYTES_MAX {
            events.extend(self.flush());
        }
        events
    }
}

fn plan(update: &Value) -> String {
    let lines = items_of(&update["entries"]).iter().map(|entry| {
        let mark = match entry["status"].as_str() {
            Some("completed") => "x",
            Some("in_progress") => ">",
            Some(_) | None => " ",
        };
        format!("[{mark}] {}", event::summary(text_of(&entry["content"])))
    });
    let lines: Vec<String> = lines.collect();
    format!("plan: {}", lines.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::ANSWER_BYTES_MAX;
    use serde_json::json;

    fn say(told: &mut ToldUpdates, id: Option<&str>, text: &str) -> Vec<AgentEvent> {
        let update = json!({ "sessionUpdate": "agent_message_chunk", "messageId": id,
            "content": { "type": "text", "text": text } });
        told.updated(&update, &mut JsonLines::default())
    }

    fn shown(text: &str) -> AgentEvent {
        AgentEvent::Text { text: text.into() }
    }

    #[test]
    fn pieces_are_shown_as_the_message_they_make() {
        let mut told = ToldUpdates::default();
        assert_eq!(say(&mut told, Some("a"), ""), []);
        assert_eq!(say(&mut told, Some("a"), "I will "), []);
        assert_eq!(say(&mut told, Some("a"), "look."), []);
        assert_eq!(say(&mut told, Some("b"), "Done."), [shown("I will look.")]);
        assert_eq!(told.flush(), [shown("Done.")]);
        assert_eq!(told.answer(), "Done.");
    }

    #[test]
    fn without_ids_a_tool_ends_a_message_and_a_thought_does_not() {
        let mut told = ToldUpdates::default();
        let tool = json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "x y" });
        let thought = json!({ "sessionUpdate": "agent_thought_chunk",
            "content": { "type": "text", "text": "hm" } });
        say(&mut told, None, "First.");
        told.updated(&tool, &mut JsonLines::default());
        say(&mut told, None, "Sec");
        assert_eq!(told.updated(&thought, &mut JsonLines::default()), [shown("Sec")]);
        say(&mut told, None, "ond.");
        assert_eq!(told.answer(), "Second.");
    }

    #[test]
    fn a_tool_at_the_end_leaves_the_answer_that_was_given() {
        let mut told = ToldUpdates::default();
        say(&mut told, None, "The answer.");
        let tool = json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "x y" });
        told.updated(&tool, &mut JsonLines::default());
        say(&mut told, None, "");
        assert_eq!(told.answer(), "The answer.");
    }

    #[test]
    fn a_flood_of_words_is_shown_in_parts_and_kept_in_bounds() {
        let mut told = ToldUpdates::default();
        let word = "x".repeat(1024);
        let mut events = Vec::new();
        for _ in 0..4 * ANSWER_BYTES_MAX / word.len() {
            events.extend(say(&mut told, None, &word));
            assert!(told.answer().len() <= 2 * ANSWER_BYTES_MAX);
        }
        assert_eq!(events.len(), 4 * ANSWER_BYTES_MAX / TEXT_BYTES_MAX);
    }
}
