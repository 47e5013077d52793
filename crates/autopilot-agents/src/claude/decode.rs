//! Lines of stream-json into events, and the judgement at the end.

use serde_json::Value;

use super::result::RunResult;
use crate::agent::{Decoder, Expected, Stream};
use crate::classify::{Facts, Trouble, classify};
use crate::ending::{Ending, ExitFacts, Odd, Outcome};
use crate::event::{self, AgentEvent, ChangeKind, RateStatus};
use crate::jsonl::{Line, json_line, said_success, silent_end};
use crate::tail::Tail;

#[derive(Debug)]
pub(crate) struct ClaudeDecoder {
    expected: Expected,
    session: Option<String>,
    result: Option<RunResult>,
    resets_at_unix: Option<i64>,
    /// Set while it repeats a request, with the reason; a run that is cut then was waiting for the
    /// vendor.
    retrying: Option<(Trouble, String)>,
    last_text: String,
    words: Tail,
    odd: Odd,
}

impl ClaudeDecoder {
    pub(crate) fn new(expected: Expected) -> Self {
        ClaudeDecoder {
            expected,
            session: None,
            result: None,
            resets_at_unix: None,
            retrying: None,
            last_text: String::new(),
            words: Tail::default(),
            odd: Odd::default(),
        }
    }

    fn event(&mut self, event: &Value) -> Vec<AgentEvent> {
        let mut events = self.session(event);
        let more = match event["type"].as_str() {
            Some("system") => self.system(event),
            Some("assistant") => self.assistant(event),
            Some("user") => user(event),
            Some("result") => self.result(event),
            Some("rate_limit_event") => self.rate_limit(&event["rate_limit_info"]),
            Some("control_request") => control_request(event),
            // Pieces of messages that come whole as well, and replies to requests of ours.
            Some("stream_event" | "control_response") => Vec::new(),
            Some(_) | None => {
                self.odd.unknown += 1;
                Vec::new()
            }
        };
        events.extend(more);
        events
    }

    /// Any event may carry the id: `init` need not be the first.
    fn session(&mut self, event: &Value) -> Vec<AgentEvent> {
        let Some(id) = event["session_id"].as_str() else { return Vec::new() };
        if self.session.as_deref() == Some(id) {
            return Vec::new();
        }
        let mut events = vec![AgentEvent::Session { id: id.to_owned() }];
        if let Some(asked) = self.expected.session.as_deref().filter(|asked| *asked != id) {
            let text = format!("session {asked} was to be resumed and {id} answers");
            events.push(AgentEvent::Notice { text });
        }
        self.session = Some(id.to_owned());
        events
    }

    fn system(&mut self, event: &Value) -> Vec<AgentEvent> {
        match event["subtype"].as_str() {
            Some("init") => failed_servers(event),
            Some("api_retry") => {
                let word = event["error"].as_str();
                let status = event["error_status"].as_u64();
                let text = retry_text(event);
                let facts = Facts { word, http_status: status, text: "" };
                // Without a status the connection itself was lost.
                let trouble = classify(facts).unwrap_or(Trouble::Outage);
                self.retrying = Some((trouble, text.clone()));
                vec![AgentEvent::Notice { text }]
            }
            Some("permission_denied") => vec![AgentEvent::Permission {
                tool: string(&event["tool_name"]),
                granted: false,
                reason: event::summary(event["message"].as_str().unwrap_or("")),
            }],
            Some(
                "status" | "thinking_tokens" | "hook_started" | "hook_response" | "ui_invalidate",
            ) => Vec::new(),
            Some(_) | None => {
                self.odd.unknown += 1;
                Vec::new()
            }
        }
    }

    fn assistant(&mut self, event: &Value) -> Vec<AgentEvent> {
        if event["is_api_error_message"] == true {
            let info = &event["api_error_params"]["rate_limit_info"];
            self.resets_at_unix = info["resetsAt"].as_i64().or(self.resets_at_unix);
            let text = texts(&event["message"]["content"]);
            return vec![AgentEvent::Notice { text: event::text(&text) }];
        }
        self.retrying = None;
        let of_subagent = event["parent_tool_use_id"].is_string();
        let blocks = event["message"]["content"].as_array().map_or(&[][..], Vec::as_slice);
        let mut events = Vec::new();
        for block in blocks {
            match block["type"].as_str() {
                Some("text") => {
                    let text = block["text"].as_str().unwrap_or("");
                    if !of_subagent {
                        self.last_text = text.to_owned();
                    }
                    events.push(AgentEvent::Text { text: event::text(text) });
                }
                Some("thinking") => events.push(AgentEvent::Thought {
                    text: event::text(block["thinking"].as_str().unwrap_or("")),
                }),
                Some("tool_use") => events.push(AgentEvent::ToolCall {
                    id: string(&block["id"]),
                    name: string(&block["name"]),
                    summary: tool_summary(&block["input"]),
                }),
                Some(_) | None => self.odd.unknown += 1,
            }
        }
        events
    }

    fn result(&mut self, event: &Value) -> Vec<AgentEvent> {
        let result = RunResult::read(event);
        let events = vec![
            AgentEvent::Usage(result.usage),
            AgentEvent::Result { ok: result.ok(), text: event::text(&result.text) },
        ];
        // One per turn; the last is the run's.
        self.result = Some(result);
        events
    }

    fn rate_limit(&mut self, info: &Value) -> Vec<AgentEvent> {
        let status = match info["status"].as_str() {
            Some("rejected") => RateStatus::Rejected,
            Some("allowed_warning") => RateStatus::Warning,
            Some("allowed") => RateStatus::Allowed,
            Some(_) | None => {
                self.odd.unknown += 1;
                return Vec::new();
            }
        };
        let resets_at_unix = info["resetsAt"].as_i64();
        if status == RateStatus::Rejected {
            self.resets_at_unix = resets_at_unix;
        }
        vec![AgentEvent::RateLimit { status, resets_at_unix }]
    }

    fn outcome(&self, exit: &ExitFacts) -> Outcome {
        match &self.result {
            Some(result) if result.ok() => said_success(exit, &self.words),
            Some(result) => result.trouble(self.resets_at_unix),
            None => self.without_result(exit),
        }
    }

    fn without_result(&self, exit: &ExitFacts) -> Outcome {
        let waiting = exit.timed_out || exit.stuck;
        if let Some((trouble, why)) = self.retrying.as_ref().filter(|_| waiting) {
            return trouble.outcome(why.clone(), self.resets_at_unix);
        }
        exit.forced().unwrap_or_else(|| silent_end(exit, &self.words, self.session.is_some()))
    }
}

impl Decoder for ClaudeDecoder {
    fn line(&mut self, stream: Stream, line: &str, truncated: bool) -> Vec<AgentEvent> {
        match json_line(stream, line, truncated, &mut self.odd, &mut self.words) {
            Line::Event(event) => self.event(&event),
            Line::Words(events) => events,
        }
    }

    fn finish(self: Box<Self>, exit: ExitFacts) -> Ending {
        let outcome = self.outcome(&exit);
        let (answer, structured, usage) = match self.result {
            Some(result) => {
                let text = if result.ok() { result.text } else { self.last_text };
                (text, result.structured, Some(result.usage))
            }
            None => (self.last_text, None, None),
        };
        Ending { outcome, answer, structured, session: self.session, usage, odd: self.odd }
    }
}

fn user(event: &Value) -> Vec<AgentEvent> {
    let blocks = event["message"]["content"].as_array().map_or(&[][..], Vec::as_slice);
    let results = blocks.iter().filter(|block| block["type"] == "tool_result");
    let mut events: Vec<AgentEvent> = results
        .map(|block| AgentEvent::ToolResult {
            id: string(&block["tool_use_id"]),
            ok: block["is_error"] != true,
            summary: event::summary(&texts(&block["content"])),
        })
        .collect();
    events.extend(file_change(&event["tool_use_result"]));
    events
}

fn file_change(result: &Value) -> Option<AgentEvent> {
    let path = result["filePath"].as_str()?.to_owned();
    let kind = match result["type"].as_str() {
        Some("create") => ChangeKind::Added,
        Some("update") => ChangeKind::Modified,
        // An edit has no type; its patch tells it from a read.
        _ if result["structuredPatch"].is_array() => ChangeKind::Modified,
        _ => return None,
    };
    Some(AgentEvent::FileChange { path, kind })
}

fn control_request(event: &Value) -> Vec<AgentEvent> {
    let request = &event["request"];
    if request["subtype"] != "can_use_tool" {
        return Vec::new();
    }
    vec![AgentEvent::Permission {
        tool: string(&request["tool_name"]),
        granted: false,
        reason: format!("asked: {}", tool_summary(&request["input"])),
    }]
}

/// A server that fails to start does not fail the run.
fn failed_servers(init: &Value) -> Vec<AgentEvent> {
    let servers = init["mcp_servers"].as_array().map_or(&[][..], Vec::as_slice);
    let failed = servers.iter().filter(|server| server["status"] == "failed");
    failed
        .map(|server| AgentEvent::Notice {
            text: format!("MCP server {} did not start", string(&server["name"])),
        })
        .collect()
}

fn retry_text(event: &Value) -> String {
    let status = event["error_status"].as_u64().map_or("no reply".to_owned(), |s| s.to_string());
    format!(
        "retry {} of {} after {} ({})",
        event["attempt"],
        event["max_retries"],
        status,
        event["error"].as_str().unwrap_or("unknown")
    )
}

/// What a person would want to know of a call: the command, the file, or all of it.
fn tool_summary(input: &Value) -> String {
    let telling = ["command", "file_path", "path", "pattern", "url", "query", "skill", "prompt"];
    let word = telling.iter().find_map(|key| input[*key].as_str());
    word.map_or_else(|| event::summary(&input.to_string()), event::summary)
}

/// A content is a text or a list of blocks.
fn texts(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or("").to_owned()
}
