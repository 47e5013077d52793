//! Decodes lines of stream-json into events, and judges the launch at its end.

use serde_json::{Value, json};

use super::permission;
use super::result::RunResult;
use crate::agent::OutputStream;
use crate::classify::{AgentTrouble, ErrorFacts, classify};
use crate::conversation::{Act, AgentMessage, Conversation, Deaf, HeardLine};
use crate::ending::{AgentEnding, AgentOutcome, Cause, ExitFacts};
use crate::event::{self, AgentEvent, ChangeKind, RateStatus, Scope, TokenCount};
use crate::jsonl::{JsonLines, items_of, no_answer, text_of};
use crate::launch::LaunchRequest;

#[derive(Debug, Default)]
pub(crate) struct ClaudeConversation {
    launch: LaunchRequest,
    session: Option<String>,
    /// The notice that another session answered than the one to resume; once set, it stays.
    stranger: Option<String>,
    /// Whether the `init` event has arrived.
    has_begun: bool,
    result: Option<RunResult>,
    resets_at_unix: Option<i64>,
    /// The reason for which Claude is repeating a request; a launch that is cut off meanwhile was
    /// waiting for the vendor.
    retrying: Option<(AgentTrouble, String)>,
    last_text: String,
    /// Whether Claude has said something or used a tool.
    has_acted: bool,
    /// The tokens of the turns before the last; a message from a person may start one more turn.
    tokens: TokenCount,
    /// The messages from a person that Claude has not started on yet: each may begin one more turn.
    unheard: Vec<String>,
    /// Whether stdin is closed, so that nothing more can be said.
    is_closed: bool,
    lines: JsonLines,
}

impl ClaudeConversation {
    pub(crate) fn new(launch: LaunchRequest) -> Self {
        ClaudeConversation { launch, ..Self::default() }
    }

    fn event(&mut self, event: &Value) -> HeardLine {
        let mut heard = HeardLine::from(self.session(event));
        let more = match event["type"].as_str() {
            Some("system") => self.system(event),
            Some("assistant") => self.assistant(event),
            Some("user") => {
                self.took_up(&event["message"]["content"]);
                user(event)
            }
            Some("result") if self.is_closed => self.later(event),
            Some("result") => {
                if self.unheard.is_empty() {
                    self.is_closed = true;
                    heard.acts.push(Act::Close);
                }
                self.result(event)
            }
            Some("rate_limit_event") => self.rate_limit(&event["rate_limit_info"]),
            Some("control_request") => {
                let (events, reply) = self.asked(event);
                heard.acts.push(Act::Say(reply.to_string()));
                events
            }
            Some("control_cancel_request") => Vec::new(),
            // Pieces of messages that arrive whole as well, and replies to our requests.
            Some("stream_event" | "control_response") => Vec::new(),
            Some(_) | None => self.lines.unknown(),
        };
        heard.events.extend(more);
        heard
    }

    /// Claude echoes a user message when it starts on it.
    fn took_up(&mut self, content: &Value) {
        let said = texts(content);
        if let Some(place) = self.unheard.iter().position(|text| *text == said) {
            self.unheard.remove(place);
            // The message begins another turn, and only the end of that turn counts.
            self.result = None;
        }
    }

    /// Answers a request of Claude's, which waits for the reply.
    fn asked(&self, event: &Value) -> (Vec<AgentEvent>, Value) {
        let (request, id) = (&event["request"], &event["request_id"]);
        if request["subtype"] != "can_use_tool" {
            let text = format!("Claude Code sent an unknown request: {}", request["subtype"]);
            let error = json!({ "subtype": "error", "request_id": id, "error": "not supported" });
            let reply = json!({ "type": "control_response", "response": error });
            return (vec![AgentEvent::notice(&text)], reply);
        }
        let tool = text_of(&request["tool_name"]).to_owned();
        let what = tool_summary(&request["input"]);
        let (granted, reason, answer) = match permission::refusal(&self.launch, request) {
            None => {
                let answer = json!({ "behavior": "allow", "updatedInput": request["input"] });
                (true, what, answer)
            }
            Some(reason) => {
                let answer = json!({ "behavior": "deny", "message": reason });
                (false, format!("{reason} ({what})"), answer)
            }
        };
        let success = json!({ "subtype": "success", "request_id": id, "response": answer });
        let reply = json!({ "type": "control_response", "response": success });
        (vec![AgentEvent::Permission { tool, granted, reason: event::summary(&reason) }], reply)
    }

    /// Any event may carry the session's id: `init` need not be the first.
    fn session(&mut self, event: &Value) -> Vec<AgentEvent> {
        let Some(id) = event["session_id"].as_str() else { return Vec::new() };
        if self.session.as_deref() == Some(id) {
            return Vec::new();
        }
        let mut events = vec![AgentEvent::Session { id: id.to_owned() }];
        self.session = Some(id.to_owned());
        let asked = self.launch.session.as_deref();
        if let Some(asked) = asked.filter(|asked| *asked != id) {
            let text = format!("the agent answered in session {id} instead of resuming {asked}");
            events.push(AgentEvent::Notice { text: text.clone() });
            self.stranger.get_or_insert(text);
        }
        events
    }

    fn system(&mut self, event: &Value) -> Vec<AgentEvent> {
        match event["subtype"].as_str() {
            Some("init") => {
                self.has_begun = true;
                failed_servers(event)
            }
            Some("api_retry") => {
                let word = event["error"].as_str();
                let status = event["error_status"].as_u64();
                let text = retry_text(event);
                let facts = ErrorFacts { word, http_status: status, text: "" };
                // Without a status the connection itself was lost.
                let trouble = classify(facts).unwrap_or(AgentTrouble::Outage);
                self.retrying = Some((trouble, text.clone()));
                vec![AgentEvent::Notice { text }]
            }
            Some("permission_denied") => vec![AgentEvent::Permission {
                tool: text_of(&event["tool_name"]).to_owned(),
                granted: false,
                reason: event::summary(text_of(&event["message"])),
            }],
            Some("informational") => vec![AgentEvent::notice(&texts(&event["content"]))],
            Some(
                "status"
                | "thinking_tokens"
                | "hook_started"
                | "hook_response"
                | "ui_invalidate"
                | "model_refusal_no_fallback"
                | "task_started"
                | "task_notification"
                | "task_progress"
                | "task_updated",
            ) => Vec::new(),
            Some(_) | None => self.lines.unknown(),
        }
    }

    fn assistant(&mut self, event: &Value) -> Vec<AgentEvent> {
        if event["is_api_error_message"] == true {
            let info = &event["api_error_params"]["rate_limit_info"];
            self.resets_at_unix = info["resetsAt"].as_i64().or(self.resets_at_unix);
            return vec![AgentEvent::notice(&texts(&event["message"]["content"]))];
        }
        self.retrying = None;
        let of_subagent = event["parent_tool_use_id"].is_string();
        let mut events = Vec::new();
        for block in items_of(&event["message"]["content"]) {
            self.has_acted |= matches!(block["type"].as_str(), Some("text" | "tool_use"));
            match block["type"].as_str() {
                Some("text") => {
                    let text = text_of(&block["text"]);
                    if !of_subagent {
                        self.last_text = text.to_owned();
                    }
                    events.push(AgentEvent::text(text));
                }
                Some("thinking") => events.push(AgentEvent::thought(text_of(&block["thinking"]))),
                Some("tool_use") => events.push(AgentEvent::ToolCall {
                    id: text_of(&block["id"]).to_owned(),
                    name: text_of(&block["name"]).to_owned(),
                    summary: tool_summary(&block["input"]),
                }),
                Some(_) | None => self.lines.odd.unknown += 1,
            }
        }
        events
    }

    fn result(&mut self, event: &Value) -> Vec<AgentEvent> {
        let mut result = RunResult::read(event);
        // Without a count by model the tokens are those of the turn alone.
        if result.usage.tokens_scope == Scope::Run {
            result.usage.tokens = self.tokens.plus(result.usage.tokens);
            self.tokens = result.usage.tokens;
        }
        let events = vec![
            AgentEvent::Usage(result.usage.clone()),
            AgentEvent::result(result.ok(), &result.text),
        ];
        // Every turn has a result; the last one is that of the launch.
        self.result = Some(result);
        events
    }

    /// A result after the last turn, as of a sub-agent that worked on: it changes nothing but the
    /// usage.
    fn later(&mut self, event: &Value) -> Vec<AgentEvent> {
        let usage = RunResult::read(event).usage;
        match &mut self.result {
            Some(result) if usage.tokens_scope == Scope::Session => {
                result.usage = usage.clone();
                vec![AgentEvent::Usage(usage)]
            }
            Some(_) | None => self.lines.unknown(),
        }
    }

    fn rate_limit(&mut self, info: &Value) -> Vec<AgentEvent> {
        let status = match info["status"].as_str() {
            Some("rejected") => RateStatus::Rejected,
            Some("allowed_warning") => RateStatus::Warning,
            Some("allowed") => RateStatus::Allowed,
            Some(_) | None => return self.lines.unknown(),
        };
        let resets_at_unix = info["resetsAt"].as_i64();
        if status == RateStatus::Rejected {
            self.resets_at_unix = resets_at_unix;
        }
        vec![AgentEvent::RateLimit { status, resets_at_unix }]
    }

    fn outcome(&self, exit: &ExitFacts) -> AgentOutcome {
        match &self.result {
            Some(result) if result.ok() && self.stranger.is_some() => {
                AgentOutcome::broke(Cause::Session, self.stranger.clone().unwrap_or_default())
            }
            Some(result) if result.ok() && !(self.has_begun && self.session.is_some()) => {
                let why = "the agent reported success without an `init` event or a session id";
                AgentOutcome::broke(Cause::Startup, why)
            }
            Some(result) if result.ok() && !self.has_acted && result.is_empty() => no_answer(),
            Some(result) if result.ok() => self.lines.said_success(exit),
            Some(result) => {
                let outcome = result.trouble(self.resets_at_unix);
                // Claude was stopped because its time was over; the trouble before that counts.
                let is_late = outcome == AgentOutcome::Interrupted && exit.timed_out;
                if is_late { self.without_result(exit) } else { outcome }
            }
            None => self.without_result(exit),
        }
    }

    fn without_result(&self, exit: &ExitFacts) -> AgentOutcome {
        let waiting = exit.timed_out || exit.stuck;
        if let Some((trouble, why)) = self.retrying.as_ref().filter(|_| waiting) {
            return trouble.outcome(why.clone(), self.resets_at_unix);
        }
        self.lines.silent_end(exit, self.session.is_some())
    }
}

impl Conversation for ClaudeConversation {
    fn begin(&mut self) -> HeardLine {
        let hello = json!({
            "type": "control_request",
            "request_id": "hello",
            "request": { "subtype": "initialize", "hooks": null },
        });
        let acts = vec![Act::Say(hello.to_string()), Act::Say(user_line(&self.launch.prompt))];
        HeardLine { events: Vec::new(), acts }
    }

    fn line(&mut self, stream: OutputStream, line: &str, truncated: bool) -> HeardLine {
        let event = self.lines.read(stream, line, truncated);
        event.map_or_else(HeardLine::from, |event| self.event(&event))
    }

    fn wish(&mut self, wish: AgentMessage) -> Result<HeardLine, Deaf> {
        if self.is_closed {
            return Err(Deaf::Over);
        }
        let (line, event) = match wish {
            AgentMessage::Message(text) => {
                self.unheard.push(text.clone());
                (user_line(&text), AgentEvent::Steer { text })
            }
            AgentMessage::Interrupt => {
                let interrupt = json!({
                    "type": "control_request",
                    "request_id": "interrupt",
                    "request": { "subtype": "interrupt" },
                });
                let text = "the agent was asked to stop its current work".to_owned();
                (interrupt.to_string(), AgentEvent::Notice { text })
            }
        };
        Ok(HeardLine { events: vec![event], acts: vec![Act::Say(line)] })
    }

    fn finish(self: Box<Self>, exit: ExitFacts) -> AgentEnding {
        let outcome = self.outcome(&exit);
        let (answer, structured, usage) = match self.result {
            Some(result) => {
                let text = if result.ok() { result.text } else { self.last_text };
                (text, result.structured, Some(result.usage))
            }
            None => (self.last_text, None, None),
        };
        AgentEnding {
            outcome,
            answer,
            structured,
            session: self.session,
            usage,
            odd: self.lines.odd,
        }
    }
}

fn user_line(text: &str) -> String {
    json!({ "type": "user", "message": { "role": "user", "content": text } }).to_string()
}

fn user(event: &Value) -> Vec<AgentEvent> {
    let blocks = items_of(&event["message"]["content"]).iter();
    let results = blocks.filter(|block| block["type"] == "tool_result");
    let mut events: Vec<AgentEvent> = results
        .map(|block| AgentEvent::ToolResult {
            id: text_of(&block["tool_use_id"]).to_owned(),
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
        // An edit has no type; its patch distinguishes it from a read.
        _ if result["structuredPatch"].is_array() => ChangeKind::Modified,
        _ => return None,
    };
    Some(AgentEvent::FileChange { path, kind })
}

/// Notices of MCP servers that failed to start, which does not fail the launch.
fn failed_servers(init: &Value) -> Vec<AgentEvent> {
    let servers = items_of(&init["mcp_servers"]).iter();
    let failed = servers.filter(|server| server["status"] == "failed");
    let text = |server: &Value| format!("MCP server {} did not start", text_of(&server["name"]));
    failed.map(|server| AgentEvent::notice(&text(server))).collect()
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

/// The part of a call that a person wants to see: the command, the file, or the whole input.
fn tool_summary(input: &Value) -> String {
    let telling = ["command", "file_path", "path", "pattern", "url", "query", "skill", "prompt"];
    let word = telling.iter().find_map(|key| input[*key].as_str());
    word.map_or_else(|| event::summary(&input.to_string()), event::summary)
}

/// The text of a content, which is a string or a list of blocks.
fn texts(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let blocks = items_of(content).iter();
    blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
