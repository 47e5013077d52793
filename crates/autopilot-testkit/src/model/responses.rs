//! The Responses protocol and the tools Codex gives to the model `gpt-5.5`.

use serde_json::{Value, json};

use super::http::Event;
use super::script::{Call, Tokens};
use super::wire::{Reply, Seen, list, string, texts};

pub(super) fn read(body: &Value) -> Seen {
    let mut seen = Seen { model: string(&body["model"]), ..Seen::default() };
    seen.tools = list(&body["tools"]).iter().map(tool_name).collect();
    if let Some(text) = body["input"].as_str() {
        seen.prompt(text);
        return seen;
    }
    let mut counted: Option<String> = None;
    for item in list(&body["input"]) {
        match (item["type"].as_str(), item["role"].as_str()) {
            (Some("message") | None, Some("user")) => {
                counted = None;
                texts(&item["content"]).iter().for_each(|text| seen.prompt(text));
            }
            (Some("message") | None, Some("assistant")) => {
                counted = Some("said".to_owned());
                seen.assistant_turn();
            }
            // Calls of one turn stand apart from each other, with their results between them.
            (Some("function_call" | "custom_tool_call" | "tool_search_call"), _) => {
                let turn = turn_of(&string(&item["call_id"]));
                match counted.replace(turn.clone()) {
                    Some(before) if before == turn || before == "said" => {}
                    Some(_) | None => seen.assistant_turn(),
                }
            }
            _ => {}
        }
    }
    seen
}

/// All of the id but the call's place in its turn.
fn turn_of(call_id: &str) -> String {
    call_id.rsplit_once('_').map_or(call_id, |(turn, _)| turn).to_owned()
}

fn tool_name(tool: &Value) -> String {
    tool["name"].as_str().or_else(|| tool["type"].as_str()).unwrap_or("").to_owned()
}

pub(super) fn whole(reply: &Reply<'_>) -> Value {
    response(reply, "completed", items(reply))
}

pub(super) fn events(reply: &Reply<'_>) -> Vec<Event> {
    let mut events = vec![
        json!({"type": "response.created", "response": response(reply, "in_progress", Vec::new())}),
    ];
    let items = items(reply);
    for (index, item) in items.iter().enumerate() {
        events.push(json!({
            "type": "response.output_item.added", "output_index": index, "item": opened(item),
        }));
        if let Some(text) = item["content"][0]["text"].as_str() {
            events.push(json!({
                "type": "response.output_text.delta", "output_index": index, "content_index": 0,
                "item_id": item["id"], "delta": text,
            }));
        }
        events.push(json!({
            "type": "response.output_item.done", "output_index": index, "item": item,
        }));
    }
    events.push(
        json!({"type": "response.completed", "response": response(reply, "completed", items)}),
    );
    events.iter().map(Event::typed).collect()
}

pub(super) fn failed(kind: &str, message: &str) -> Event {
    Event::typed(&json!({
        "type": "response.failed",
        "response": {
            "id": "resp_failed", "object": "response", "status": "failed",
            "error": {"code": kind, "message": message},
        },
    }))
}

fn response(reply: &Reply<'_>, status: &str, output: Vec<Value>) -> Value {
    json!({
        "id": format!("resp_{:x}", reply.serial),
        "object": "response",
        "created_at": 0,
        "model": reply.seen.model,
        "status": status,
        "output": output,
        "usage": usage(reply.turn.tokens),
    })
}

fn items(reply: &Reply<'_>) -> Vec<Value> {
    let turn = reply.turn;
    let mut items = Vec::new();
    if let Some(thought) = &turn.thought {
        items.push(json!({
            "type": "reasoning", "id": format!("rs_{:x}", reply.serial),
            "summary": [{"type": "summary_text", "text": thought}],
        }));
    }
    for text in turn.text.iter().chain(reply.text_answer().as_ref()) {
        items.push(json!({
            "type": "message", "id": format!("msg_{:x}", reply.serial), "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }));
    }
    let calls = turn.calls.iter().enumerate();
    items.extend(calls.filter_map(|(place, call)| tool(call, &reply.call_id("call", place))));
    items
}

/// A message begins without its text.
fn opened(item: &Value) -> Value {
    let mut opened = item.clone();
    if item["type"] == "message" {
        opened["content"] = json!([]);
        opened["status"] = "in_progress".into();
    }
    opened
}

fn tool(call: &Call, id: &str) -> Option<Value> {
    let function = |name: &str, input: &Value| {
        json!({
            "type": "function_call", "id": format!("fc_{id}"), "call_id": id,
            "name": name, "arguments": input.to_string(),
        })
    };
    Some(match call {
        Call::Write { path, text } => patch(id, &format!("*** Add File: {path}\n{}", plus(text))),
        Call::Edit { path, old, new } => {
            let minus: String = old.lines().map(|line| format!("-{line}\n")).collect();
            patch(id, &format!("*** Update File: {path}\n@@\n{minus}{}", plus(new)))
        }
        Call::Read { path } => function("exec_command", &json!({"cmd": format!("cat '{path}'")})),
        Call::Shell { command } => function("exec_command", &json!({"cmd": command})),
        Call::Mcp { server, tool, input } => {
            let mut item = function(tool, input);
            item["namespace"] = format!("mcp__{server}").into();
            item
        }
        // Freeform tools take a text.
        Call::Tool { name, input } => {
            input.as_str().map_or_else(|| function(name, input), |text| custom(id, name, text))
        }
        Call::Answer(_) => return None,
    })
}

fn patch(id: &str, hunk: &str) -> Value {
    custom(id, "apply_patch", &format!("*** Begin Patch\n{hunk}*** End Patch\n"))
}

fn custom(id: &str, name: &str, input: &str) -> Value {
    json!({
        "type": "custom_tool_call", "id": format!("ctc_{id}"), "call_id": id,
        "name": name, "input": input, "status": "completed",
    })
}

fn plus(text: &str) -> String {
    text.lines().map(|line| format!("+{line}\n")).collect()
}

fn usage(tokens: Tokens) -> Value {
    let input = tokens.input + tokens.cached;
    json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input + tokens.output,
    })
}
