//! The Chat Completions protocol and the tools of opencode.

use serde_json::{Value, json};

use super::http::Event;
use super::script::{Call, Tokens};
use super::wire::{Reply, Seen, list, string, texts};

pub(super) fn read(body: &Value) -> Seen {
    let mut seen = Seen { model: string(&body["model"]), ..Seen::default() };
    let tools = list(&body["tools"]).iter();
    seen.tools = tools.map(|tool| string(&tool["function"]["name"])).collect();
    for message in list(&body["messages"]) {
        match message["role"].as_str() {
            Some("user") => texts(&message["content"]).iter().for_each(|text| seen.prompt(text)),
            Some("assistant") => seen.assistant_turn(),
            Some(_) | None => {}
        }
    }
    seen
}

pub(super) fn whole(reply: &Reply<'_>) -> Value {
    let calls = calls(reply);
    let mut message = json!({"role": "assistant", "content": text(reply)});
    if !calls.is_empty() {
        message["tool_calls"] = calls.clone().into();
    }
    json!({
        "id": id(reply),
        "object": "chat.completion",
        "created": 0,
        "model": reply.seen.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish(reply, &calls)}],
        "usage": usage(reply.turn.tokens),
    })
}

pub(super) fn events(reply: &Reply<'_>) -> Vec<Event> {
    let calls = calls(reply);
    let chunk = |delta: Value, finish: Value| {
        json!({
            "id": id(reply),
            "object": "chat.completion.chunk",
            "created": 0,
            "model": reply.seen.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        })
    };
    let mut chunks = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
    if let Some(text) = text(reply) {
        chunks.push(chunk(json!({"content": text}), Value::Null));
    }
    for (index, call) in calls.iter().enumerate() {
        let mut call = call.clone();
        call["index"] = index.into();
        chunks.push(chunk(json!({"tool_calls": [call]}), Value::Null));
    }
    chunks.push(chunk(json!({}), finish(reply, &calls).into()));
    let mut end = chunk(json!({}), Value::Null);
    end["choices"] = json!([]);
    end["usage"] = usage(reply.turn.tokens);
    chunks.push(end);
    let mut events: Vec<Event> = chunks.iter().map(Event::bare).collect();
    events.push(Event { name: None, data: "[DONE]".to_owned() });
    events
}

pub(super) fn error(kind: &str, message: &str) -> Value {
    json!({"error": {"type": kind, "code": kind, "message": message, "param": null}})
}

fn id(reply: &Reply<'_>) -> String {
    format!("chatcmpl-{:x}", reply.serial)
}

fn text(reply: &Reply<'_>) -> Option<String> {
    reply.turn.text.clone().or_else(|| reply.text_answer())
}

fn calls(reply: &Reply<'_>) -> Vec<Value> {
    let calls = reply.turn.calls.iter().enumerate();
    calls
        .filter_map(|(place, call)| {
            let (name, input) = tool(call)?;
            Some(json!({
                "id": reply.call_id("call", place),
                "type": "function",
                "function": {"name": name, "arguments": input.to_string()},
            }))
        })
        .collect()
}

fn tool(call: &Call) -> Option<(String, Value)> {
    let (name, input) = match call {
        Call::Write { path, text } => ("write", json!({"filePath": path, "content": text})),
        Call::Edit { path, old, new } => {
            ("edit", json!({"filePath": path, "oldString": old, "newString": new}))
        }
        Call::Read { path } => ("read", json!({"filePath": path})),
        Call::Shell { command } => ("bash", json!({"command": command, "description": "Run it"})),
        Call::Mcp { server, tool, input } => {
            return Some((format!("{server}_{tool}"), input.clone()));
        }
        Call::Tool { name, input } => (name.as_str(), input.clone()),
        Call::Answer(_) => return None,
    };
    Some((name.to_owned(), input))
}

fn finish(reply: &Reply<'_>, calls: &[Value]) -> String {
    let usual = if calls.is_empty() { "stop" } else { "tool_calls" };
    reply.turn.stop.clone().unwrap_or_else(|| usual.to_owned())
}

fn usage(tokens: Tokens) -> Value {
    let input = tokens.input + tokens.cached;
    json!({
        "prompt_tokens": input,
        "completion_tokens": tokens.output,
        "total_tokens": input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
    })
}
