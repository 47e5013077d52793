//! Decodes Codex's thread events, and judges the launch at its end.

use serde_json::Value;

use crate::agent::OutputStream;
use crate::classify::{AgentTrouble, ErrorFacts, classify};
use crate::conversation::{Conversation, HeardLine};
use crate::ending::{AgentEnding, AgentOutcome, Cause, ExitFacts, Odd};
use crate::event::{self, AgentEvent, AgentUsage, ChangeKind, Scope, TokenCount};
use crate::jsonl::{JsonLine, json_line, no_answer, said_success, silent_end};
use crate::launch::LaunchRequest;
use crate::tail::LastLines;

#[derive(Debug, Default)]
pub(crate) struct CodexConversation {
    launch: LaunchRequest,
    thread: Option<String>,
    turn: CodexTurn,
    /// Whether Codex has said something or used a tool.
    has_acted: bool,
    /// The text of the last message, which is the answer.
    answer: String,
    usage: Option<AgentUsage>,
    /// The last top-level error, until work continues: "waiting for network" is repeated for ever.
    waiting: Option<String>,
    words: LastLines,
    odd: Odd,
}

/// The state of the turn. Only these events end a turn; an `error` event does not.
#[derive(Debug, Default)]
enum CodexTurn {
    #[default]
    Open,
    Completed,
    Failed(String),
}

impl CodexConversation {
    pub(crate) fn new(launch: LaunchRequest) -> Self {
        CodexConversation { launch, ..Self::default() }
    }

    fn event(&mut self, event: &Value) -> Vec<AgentEvent> {
        match event["type"].as_str() {
            Some("thread.started") => {
                let id = string(&event["thread_id"]);
                self.thread = Some(id.clone());
                vec![AgentEvent::Session { id }]
            }
            Some("turn.started" | "item.updated") => Vec::new(),
            Some("item.started") => self.started(&event["item"]),
            Some("item.completed") => {
                self.waiting = None;
                self.completed(&event["item"])
            }
            Some("turn.completed") => self.turn_completed(&event["usage"]),
            Some("turn.failed") => {
                let why = string(&event["error"]["message"]);
                self.turn = CodexTurn::Failed(why.clone());
                vec![AgentEvent::Result { ok: false, text: event::text(&why) }]
            }
            Some("error") => {
                let message = string(&event["message"]);
                self.waiting = Some(message.clone());
                vec![AgentEvent::Notice { text: event::text(&message) }]
            }
            Some(_) | None => self.unknown(),
        }
    }

    fn unknown(&mut self) -> Vec<AgentEvent> {
        self.odd.unknown += 1;
        Vec::new()
    }

    fn started(&mut self, item: &Value) -> Vec<AgentEvent> {
        self.waiting = None;
        let (name, summary) = match item["type"].as_str() {
            Some("command_execution") => ("shell".to_owned(), string(&item["command"])),
            Some("mcp_tool_call") => (
                format!("{}.{}", string(&item["server"]), string(&item["tool"])),
                item["arguments"].to_string(),
            ),
            Some("file_change") => ("edit".to_owned(), paths(item)),
            Some("web_search") => ("web_search".to_owned(), string(&item["query"])),
            Some("agent_message" | "reasoning" | "todo_list" | "error") => return Vec::new(),
            Some(_) | None => return self.unknown(),
        };
        self.has_acted = true;
        let summary = event::summary(&summary);
        vec![AgentEvent::ToolCall { id: string(&item["id"]), name, summary }]
    }

    fn completed(&mut self, item: &Value) -> Vec<AgentEvent> {
        match item["type"].as_str() {
            Some("agent_message") => {
                self.has_acted = true;
                self.answer = string(&item["text"]);
                vec![AgentEvent::Text { text: event::text(&self.answer) }]
            }
            Some("reasoning") => {
                vec![AgentEvent::Thought { text: event::text(item["text"].as_str().unwrap_or("")) }]
            }
            Some("error") => {
                let text = event::text(item["message"].as_str().unwrap_or(""));
                vec![AgentEvent::Notice { text }]
            }
            Some("command_execution") => {
                vec![tool_result(item, &string(&item["aggregated_output"]))]
            }
            Some("mcp_tool_call") => {
                let error = item["error"]["message"].as_str();
                let said = error.map_or_else(|| item["result"].to_string(), str::to_owned);
                vec![tool_result(item, &said)]
            }
            Some("web_search") => vec![tool_result(item, &string(&item["query"]))],
            Some("file_change") => {
                let mut events = vec![tool_result(item, &paths(item))];
                if item["status"] == "completed" {
                    events.extend(changes(item).iter().map(file_change));
                }
                events
            }
            Some("todo_list") => Vec::new(),
            Some(_) | None => self.unknown(),
        }
    }

    /// Reads the usage, which counts the whole thread with all its resumes. Codex reports no cost
    /// anywhere.
    fn turn_completed(&mut self, usage: &Value) -> Vec<AgentEvent> {
        self.turn = CodexTurn::Completed;
        let count = |key: &str| usage[key].as_u64().unwrap_or(0);
        let usage = AgentUsage {
            tokens: TokenCount {
                input: count("input_tokens"),
                output: count("output_tokens"),
                cached: count("cached_input_tokens"),
            },
            tokens_scope: Scope::Session,
            cost_usd: None,
            cost_scope: Scope::Session,
        };
        self.usage = Some(usage);
        let text = event::text(&self.answer);
        vec![AgentEvent::Usage(usage), AgentEvent::Result { ok: true, text }]
    }

    fn outcome(&self, exit: &ExitFacts) -> AgentOutcome {
        if let Some(outcome) = self.other_thread() {
            return outcome;
        }
        match &self.turn {
            CodexTurn::Completed if !self.has_acted => no_answer(),
            CodexTurn::Completed => said_success(exit, &self.words),
            CodexTurn::Failed(why) => failed(why),
            CodexTurn::Open => self.unfinished(exit),
        }
    }

    /// The outcome if Codex answers in another thread: for an unknown id it starts a new thread
    /// without saying so.
    fn other_thread(&self) -> Option<AgentOutcome> {
        let asked = self.launch.session.as_deref()?;
        let got = self.thread.as_deref()?;
        (asked != got).then(|| {
            let why = format!("Codex started a new thread ({got}) instead of resuming {asked}");
            AgentOutcome::broke(Cause::Session, why)
        })
    }

    fn unfinished(&self, exit: &ExitFacts) -> AgentOutcome {
        let ended_by_us = exit.timed_out || exit.stuck;
        if let Some(why) = self.waiting.as_ref().filter(|_| ended_by_us) {
            let facts = ErrorFacts { text: why, ..ErrorFacts::default() };
            return classify(facts).unwrap_or(AgentTrouble::Outage).outcome(event::text(why), None);
        }
        exit.forced().unwrap_or_else(|| silent_end(exit, &self.words, self.thread.is_some()))
    }
}

impl Conversation for CodexConversation {
    fn line(&mut self, stream: OutputStream, line: &str, truncated: bool) -> HeardLine {
        match json_line(stream, line, truncated, &mut self.odd, &mut self.words) {
            JsonLine::Event(event) => self.event(&event).into(),
            JsonLine::Words(events) => events.into(),
        }
    }

    fn finish(self: Box<Self>, exit: ExitFacts) -> AgentEnding {
        AgentEnding {
            outcome: self.outcome(&exit),
            answer: self.answer,
            structured: None,
            session: self.thread,
            usage: self.usage,
            odd: self.odd,
        }
    }
}

/// The outcome of a failed turn. Codex's errors are text only; the reset time in them has no date
/// or zone, so it is not believed.
fn failed(why: &str) -> AgentOutcome {
    let shown = if why.is_empty() { "the turn failed, and Codex gave no reason" } else { why };
    match classify(ErrorFacts { text: why, ..ErrorFacts::default() }) {
        Some(trouble) => trouble.outcome(event::text(shown), None),
        None => AgentOutcome::broke(Cause::Other, event::text(shown)),
    }
}

fn tool_result(item: &Value, said: &str) -> AgentEvent {
    AgentEvent::ToolResult {
        id: string(&item["id"]),
        ok: item["status"].as_str().is_none_or(|status| status == "completed"),
        summary: event::summary(said),
    }
}

fn changes(item: &Value) -> &[Value] {
    item["changes"].as_array().map_or(&[], Vec::as_slice)
}

fn paths(item: &Value) -> String {
    changes(item).iter().filter_map(|change| change["path"].as_str()).collect::<Vec<_>>().join(", ")
}

fn file_change(change: &Value) -> AgentEvent {
    let kind = match change["kind"].as_str() {
        Some("add") => ChangeKind::Added,
        Some("delete") => ChangeKind::Deleted,
        Some(_) | None => ChangeKind::Modified,
    };
    AgentEvent::FileChange { path: string(&change["path"]), kind }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or("").to_owned()
}
