//! Tool calls as they become known: an agent announces a call first and fills in its details later.

use std::collections::VecDeque;

use serde_json::Value;

use super::place::{FILES_MAX, NamedPlaces, local};
use crate::event::{self, AgentEvent, ChangeKind};
use crate::jsonl::{items_of, text_of};

/// The number of open calls that are remembered.
pub(super) const CALLS_MAX: usize = 256;

/// The calls that have not ended yet.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: VecDeque<ToolCall>,
}

/// One call, as far as the agent has described it.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) name: String,
    /// The protocol's kind of the tool: read, edit, delete, move, search, execute, think, fetch, …
    pub(super) kind: String,
    /// The command, the file or the address.
    pub(super) what: String,
    /// The files on which the call acts, as far as the agent lists them.
    pub(super) places: Vec<String>,
    /// The files that the call's input names.
    pub(super) named: NamedPlaces,
    /// The files of which the call shows a difference.
    pub(super) diffs: Vec<(String, ChangeKind)>,
    pub(super) is_new_file: bool,
    pub(super) is_announced: bool,
}

impl Calls {
    /// Takes a `tool_call` or `tool_call_update`.
    pub(super) fn updated(&mut self, update: &Value) -> Vec<AgentEvent> {
        let mut call = self.learn(update);
        let status = text_of(&update["status"]);
        let ended = matches!(status, "completed" | "failed");
        let mut events = Vec::new();
        if ended || !call.what.is_empty() || status == "in_progress" {
            events.extend(call.announce());
        }
        if !ended {
            self.keep(call);
            return events;
        }
        let ok = status == "completed";
        let summary = event::summary(&output(update));
        events.push(AgentEvent::ToolResult { id: call.id.clone(), ok, summary });
        if ok {
            events.extend(call.changes());
        }
        events
    }

    /// Returns the call for which a permission is asked; it may not have been announced before.
    pub(super) fn asked(&mut self, tool_call: &Value) -> (ToolCall, Option<AgentEvent>) {
        let mut call = self.learn(tool_call);
        let event = call.announce();
        self.keep(call.clone());
        (call, event)
    }

    fn learn(&mut self, update: &Value) -> ToolCall {
        let id = text_of(&update["toolCallId"]);
        let at = self.open.iter().position(|call| call.id == id);
        let mut call = at.and_then(|at| self.open.remove(at)).unwrap_or_default();
        call.id = id.to_owned();
        call.learn(update);
        call
    }

    fn keep(&mut self, call: ToolCall) {
        if self.open.len() == CALLS_MAX {
            self.open.pop_front();
        }
        self.open.push_back(call);
    }
}

impl ToolCall {
    fn learn(&mut self, update: &Value) {
        if let Some(kind) = update["kind"].as_str() {
            self.kind = kind.to_owned();
        }
        if let Some(name) = name(update).filter(|_| self.name.is_empty()) {
            self.name = name.to_owned();
        }
        let input = &update["rawInput"];
        let has_input = input.as_object().is_some_and(|input| !input.is_empty());
        // A call that has only begun may have no more than a stock phrase for a title.
        let is_vague = update["status"] == "pending" && !has_input;
        let title = if is_vague { "" } else { text_of(&update["title"]) };
        let what = telling(input).unwrap_or_else(|| event::summary(title));
        if !what.is_empty() && what != self.name {
            self.what = what;
        } else if self.what.is_empty() && has_input && update["sessionUpdate"] == "tool_call_update"
        {
            self.what = event::summary(&input.to_string());
        }
        self.learn_files(update);
    }

    fn learn_files(&mut self, update: &Value) {
        self.named.learn(&update["rawInput"]);
        for place in items_of(&update["locations"]) {
            let path = local(text_of(&place["path"]));
            if path.is_empty() || self.places.contains(&path) {
                continue;
            }
            if self.places.len() == FILES_MAX {
                self.named.is_cut = true;
                break;
            }
            self.places.push(path);
        }
        for diff in items_of(&update["content"]).iter().filter(|item| item["type"] == "diff") {
            let path = local(text_of(&diff["path"]));
            let known = self.diffs.iter().any(|(seen, _)| *seen == path);
            if known || path.is_empty() {
                continue;
            }
            if self.diffs.len() == FILES_MAX {
                self.named.is_cut = true;
                break;
            }
            let is_new = text_of(&diff["oldText"]).is_empty();
            let kind = if is_new { ChangeKind::Added } else { ChangeKind::Modified };
            self.diffs.push((path, kind));
        }
        // One agent sends no difference for a file that it writes whole.
        self.is_new_file |= update["rawOutput"]["metadata"]["exists"] == false;
    }

    fn announce(&mut self) -> Option<AgentEvent> {
        if std::mem::replace(&mut self.is_announced, true) {
            return None;
        }
        if self.name.is_empty() {
            self.name = if self.kind.is_empty() { "tool" } else { &self.kind }.to_owned();
        }
        Some(AgentEvent::ToolCall {
            id: self.id.clone(),
            name: self.name.clone(),
            summary: self.what.clone(),
        })
    }

    fn changes(self) -> Vec<AgentEvent> {
        let by_place = match self.kind.as_str() {
            "edit" if self.is_new_file => ChangeKind::Added,
            "edit" | "move" => ChangeKind::Modified,
            "delete" => ChangeKind::Deleted,
            _ => return Vec::new(),
        };
        let changes = match self.diffs.is_empty() {
            true => self.places.into_iter().map(|path| (path, by_place)).collect(),
            false => self.diffs,
        };
        changes.into_iter().map(|(path, kind)| AgentEvent::FileChange { path, kind }).collect()
    }
}

/// The name of the tool. A title may be the tool's name or a sentence.
fn name(update: &Value) -> Option<&str> {
    let named = update["name"].as_str().or(update["_meta"]["claudeCode"]["toolName"].as_str());
    let is_word = |title: &&str| {
        !title.is_empty() && title.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
    };
    named.or(update["title"].as_str().filter(is_word))
}

/// The part of a call that a person wants to see: the command, the file, the address.
fn telling(input: &Value) -> Option<String> {
    const KEYS: &[&str] = &[
        "command",
        "filePath",
        "file_path",
        "filepath",
        "path",
        "pattern",
        "url",
        "query",
        "skill",
        "prompt",
    ];
    let words = |list: &Vec<Value>| {
        let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
        words.join(" ")
    };
    let text = |value: &Value| value.as_array().map(words).or(value.as_str().map(str::to_owned));
    let word = KEYS.iter().find_map(|key| text(&input[*key]));
    word.map(|word| event::summary(&word)).filter(|word| !word.is_empty())
}

fn output(update: &Value) -> String {
    let items = items_of(&update["content"]).iter();
    let texts: Vec<&str> = items.filter_map(|item| item["content"]["text"].as_str()).collect();
    if !texts.is_empty() {
        let text = texts.join("\n");
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("```"));
        return lines.collect::<Vec<_>>().join("\n");
    }
    let raw = &update["rawOutput"];
    let said = raw.as_str().or(raw["output"].as_str()).or(raw["error"].as_str());
    said.or(raw["stdout"].as_str()).unwrap_or("").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines(events: &[AgentEvent]) -> Vec<String> {
        events.iter().map(|event| serde_json::to_string(event).unwrap()).collect()
    }

    #[test]
    fn a_call_is_told_once_when_it_is_known_what_it_does() {
        let mut calls = Calls::default();
        let first = json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "write",
            "kind": "edit", "status": "pending", "rawInput": {} });
        assert_eq!(calls.updated(&first), []);
        let more = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c",
            "status": "in_progress", "locations": [{ "path": "/r/a" }],
            "rawInput": { "filePath": "/r/a", "content": "x" } });
        insta::assert_snapshot!(lines(&calls.updated(&more)).join("\n"),
            @r#"{"event":"tool_call","id":"c","name":"write","summary":"/r/a"}"#);
        let last = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c",
            "status": "completed", "title": "a", "rawOutput": { "output": "Wrote it.",
            "metadata": { "exists": false } } });
        insta::assert_snapshot!(lines(&calls.updated(&last)).join("\n"), @r#"
        {"event":"tool_result","id":"c","ok":true,"summary":"Wrote it."}
        {"event":"file_change","path":"/r/a","kind":"added"}
        "#);
        assert!(calls.open.is_empty());
    }

    #[test]
    fn a_call_that_failed_has_changed_nothing() {
        let mut calls = Calls::default();
        let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c",
            "kind": "edit", "status": "failed", "title": "Edit a file",
            "content": [{ "type": "diff", "path": "/r/a", "oldText": "x", "newText": "y" }] });
        insta::assert_snapshot!(lines(&calls.updated(&update)).join("\n"), @r#"
        {"event":"tool_call","id":"c","name":"edit","summary":"Edit a file"}
        {"event":"tool_result","id":"c","ok":false,"summary":""}
        "#);
    }

    #[test]
    fn a_place_or_a_difference_that_is_a_url_is_a_path_from_the_root() {
        let mut calls = Calls::default();
        let asked = json!({ "toolCallId": "c", "kind": "edit",
            "locations": [{ "path": "file:///etc/passwd" }, { "path": "src/a.rs" }],
            "content": [{ "type": "diff", "path": "file:///etc/group", "newText": "y" }] });
        let (call, _) = calls.asked(&asked);
        assert_eq!(call.places, ["/etc/passwd", "src/a.rs"]);
        assert_eq!(call.diffs, [("/etc/group".to_owned(), ChangeKind::Added)]);
    }

    #[test]
    fn only_so_many_calls_are_remembered() {
        let mut calls = Calls::default();
        for n in 0..CALLS_MAX + 10 {
            calls.updated(&json!({ "toolCallId": n.to_string(), "status": "pending" }));
        }
        assert_eq!(calls.open.len(), CALLS_MAX);
        let places: Vec<Value> =
            (0..FILES_MAX * 2).map(|n| json!({ "path": n.to_string() })).collect();
        calls.updated(&json!({ "toolCallId": "x", "locations": places }));
        assert_eq!(calls.open.back().unwrap().places.len(), FILES_MAX);
    }
}
