//! Decodes Codex's thread events, and judges the launch at its end.

use serde_json::Value;

use crate::agent::OutputStream;
use crate::classify::{AgentTrouble, ErrorFacts, classify};
use crate::conversation::{Conversation, HeardLine};
use crate::ending::{AgentEnding, AgentOutcome, Cause, ExitFacts};
use crate::event::{self, AgentEvent, AgentUsage, ChangeKind, Scope, TokenCount};
use crate::jsonl::{JsonLines, items_of, no_answer, text_of};
use crate::launch::LaunchRequest;

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
    lines: JsonLines,
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
                vec![AgentEvent::result(false, &why)]
            }
            Some("error") => {
                let message = string(&event["message"]);
                self.waiting = Some(message.clone());
                vec![AgentEvent::notice(&message)]
            }
            Some(_) | None => self.lines.unknown(),
        }
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
            Some(_) | None => return self.lines.unknown(),
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
                vec![AgentEvent::text(&self.answer)]
            }
            Some("reasoning") => vec![AgentEvent::thought(text_of(&item["text"]))],
            Some("error") => vec![AgentEvent::notice(text_of(&item["message"]))],
            Some("command_execution") => {
                vec![tool_result(item, text_of(&item["aggregated_output"]))]
            }
            Some("mcp_tool_call") => {
                let error = item["error"]["message"].as_str();
                let said = error.map_or_else(|| item["result"].to_string(), str::to_owned);
                vec![tool_result(item, &said)]
            }
            Some("web_search") => vec![tool_result(item, text_of(&item["query"]))],
            Some("file_change") => {
                let mut events = vec![tool_result(item, &paths(item))];
                if item["status"] == "completed" {
                    events.extend(items_of(&item["changes"]).iter().map(file_change));
                }
                events
            }
            Some("todo_list") => Vec::new(),
            Some(_) | None => self.lines.unknown(),
        }
    }

    /// Reads the usage, which counts the whole thread with all its resumes. Codex reports no cost
    /// anywhere.
    fn turn_completed(&mut self, usage: &Value) -> Vec<AgentEvent> {
        self.turn = CodexTurn::Completed;
        let usage = AgentUsage::new(Scope::Session, tokens(usage), None);
        self.usage = Some(usage.clone());
        vec![AgentEvent::Usage(usage), AgentEvent::result(true, &self.answer)]
    }

    fn outcome(&self, exit: &ExitFacts) -> AgentOutcome {
        if let Some(outcome) = self.other_thread() {
            return outcome;
        }
        match &self.turn {
            CodexTurn::Completed if !self.has_acted => no_answer(),
            CodexTurn::Completed => self.lines.said_success(exit),
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
        self.lines.silent_end(exit, self.thread.is_some())
    }
}

impl Conversation for CodexConversation {
    fn line(&mut self, stream: OutputStream, line: &str, truncated: bool) -> HeardLine {
        let event = self.lines.read(stream, line, truncated);
        event.map_or_else(|shown| shown, |event| self.event(&event)).into()
    }

    fn finish(self: Box<Self>, exit: ExitFacts) -> AgentEnding {
        let outcome = self.outcome(&exit);
        AgentEnding {
            answer: self.answer,
            session: self.thread,
            usage: self.usage,
            odd: self.lines.odd,
            ..AgentEnding::new(outcome)
        }
    }
}

/// The usage of a whole thread, in a line of the file that Codex keeps of it.
pub(crate) fn thread_total(line: &Value) -> Option<TokenCount> {
    let payload = &line["payload"];
    let total = payload["info"].get("total_token_usage").filter(|total| total.is_object())?;
    (payload["type"] == "token_count").then(|| tokens(total))
}

fn tokens(usage: &Value) -> TokenCount {
    let count = |key: &str| usage[key].as_u64().unwrap_or(0);
    TokenCount {
        input: count("input_tokens"),
        output: count("output_tokens"),
        cached: count("cached_input_tokens"),
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

fn paths(item: &Value) -> String {
    let changes = items_of(&item["changes"]).iter();
    changes.filter_map(|change| change["path"].as_str()).collect::<Vec<_>>().join(", ")
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
    text_of(value).to_owned()
}
