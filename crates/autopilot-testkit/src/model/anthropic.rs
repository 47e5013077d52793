//! The Messages protocol and the tools of Claude Code.

use serde_json::{Value, json};

use super::http::Event;
use super::script::{Call, Tokens};
use super::wire::{Reply, Seen, list, string, texts};

const ANSWER_TOOL: &str = "StructuredOutput";
/// How Claude Code passes on what a person says while a turn runs.
const SAID_MEANWHILE: &str = "The user sent a new message while you were working:";

pub(super) fn read(body: &Value) -> Seen {
    let mut seen = Seen { model: string(&body["model"]), ..Seen::default() };
    seen.tools = list(&body["tools"]).iter().map(|tool| string(&tool["name"])).collect();
    for message in list(&body["messages"]) {
        match message["role"].as_str() {
            // A prompt may share its message with the result of a tool.
            Some("user") => texts(&message["content"]).iter().for_each(|text| seen.prompt(text)),
            Some("assistant") => seen.assistant_turn(),
            Some("system") => texts(&message["content"])
                .iter()
                .filter_map(|text| text.strip_prefix(SAID_MEANWHILE))
                .for_each(|text| seen.prompt(text)),
            Some(_) | None => {}
        }
    }
    seen
}

pub(super) fn whole(reply: &Reply<'_>) -> Value {
    let blocks = blocks(reply);
    json!({
        "id": format!("msg_{:x}", reply.serial),
        "type": "message",
        "role": "assistant",
        "model": reply.seen.model,
        "content": blocks,
        "stop_reason": stop(reply, &blocks),
        "stop_sequence": null,
        "usage": usage(reply.turn.tokens, reply.turn.tokens.output),
    })
}

pub(super) fn events(reply: &Reply<'_>) -> Vec<Event> {
    let blocks = blocks(reply);
    let mut start = whole(reply);
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"] = usage(reply.turn.tokens, 1);
    let mut events = vec![json!({"type": "message_start", "message": start})];
    for (index, block) in blocks.iter().enumerate() {
        let (opened, delta) = opened(block);
        events
            .push(json!({"type": "content_block_start", "index": index, "content_block": opened}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop(reply, &blocks), "stop_sequence": null},
        "usage": {"output_tokens": reply.turn.tokens.output},
    }));
    events.push(json!({"type": "message_stop"}));
    events.iter().map(Event::typed).collect()
}

pub(super) fn error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

fn blocks(reply: &Reply<'_>) -> Vec<Value> {
    let turn = reply.turn;
    let mut blocks = Vec::new();
    if let Some(thought) = &turn.thought {
        blocks.push(json!({"type": "thinking", "thinking": thought, "signature": "c2lnbmVk"}));
    }
    if let Some(text) = &turn.text {
        blocks.push(json!({"type": "text", "text": text}));
    }
    for (place, call) in turn.calls.iter().enumerate() {
        let Some((name, input)) = tool(call, reply.seen) else {
            blocks.push(json!({"type": "text", "text": reply.text_answer()}));
            continue;
        };
        let id = reply.call_id("toolu", place);
        blocks.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
    }
    blocks
}

/// A block as it begins, and all the rest of it.
fn opened(block: &Value) -> (Value, Value) {
    match block["type"].as_str() {
        Some("tool_use") => (
            json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}),
            json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}),
        ),
        Some("thinking") => (
            json!({"type": "thinking", "thinking": "", "signature": block["signature"]}),
            json!({"type": "thinking_delta", "thinking": block["thinking"]}),
        ),
        Some(_) | None => (
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": block["text"]}),
        ),
    }
}

fn tool(call: &Call, seen: &Seen) -> Option<(String, Value)> {
    let (name, input) = match call {
        Call::Write { path, text } => ("Write", json!({"file_path": path, "content": text})),
        Call::Edit { path, old, new } => {
            ("Edit", json!({"file_path": path, "old_string": old, "new_string": new}))
        }
        Call::Read { path } => ("Read", json!({"file_path": path})),
        Call::Shell { command } => ("Bash", json!({"command": command, "description": "Run it"})),
        Call::Mcp { server, tool, input } => {
            return Some((format!("mcp__{server}__{tool}"), input.clone()));
        }
        Call::Tool { name, input } => (name.as_str(), input.clone()),
        Call::Answer(json) if seen.has(ANSWER_TOOL) => (ANSWER_TOOL, json.clone()),
        Call::Answer(_) => return None,
    };
    Some((name.to_owned(), input))
}

fn stop(reply: &Reply<'_>, blocks: &[Value]) -> String {
    let calls = blocks.iter().any(|block| block["type"] == "tool_use");
    let usual = if calls { "tool_use" } else { "end_turn" };
    reply.turn.stop.clone().unwrap_or_else(|| usual.to_owned())
}

fn usage(tokens: Tokens, output: u64) -> Value {
    json!({
        "input_tokens": tokens.input,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": tokens.cached,
        "output_tokens": output,
    })
}
