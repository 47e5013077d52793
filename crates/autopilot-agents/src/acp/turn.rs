//! One turn with an agent: initialize, a session, its settings, the prompt, the result.
//!
//! Exactly one request of ours waits for its reply at any time, until the turn is over. The turn is
//! judged by the reply to its prompt; how the process ends afterwards means nothing.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::count::Count;
use super::fault::{self, At};
use super::file::{self, Files};
use super::offer::{self, AcpSetting};
use super::permit;
use super::rpc::{self, RpcError, RpcMessage};
use super::told::ToldUpdates;
use crate::agent::OutputStream;
use crate::conversation::{Act, AgentMessage, Conversation, Deaf, HeardLine};
use crate::ending::{AgentEnding, AgentOutcome, Cause, ExitFacts};
use crate::event::{self, AgentEvent};
use crate::jsonl::JsonLines;
use crate::launch::{LaunchRequest, LaunchServer, Transport};

const PROTOCOL_VERSION: u64 = 1;
/// The number of messages that may wait for the interrupted turn to stop.
const MESSAGES_MAX: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct AcpConversation {
    launch: LaunchRequest,
    stage: TurnStage,
    last_id: u64,
    session: Option<String>,
    settings: VecDeque<AcpSetting>,
    /// The messages from a person that the agent has not received yet.
    messages: Vec<String>,
    /// The reason for which the running prompt was cancelled, if it was.
    cancelled: Option<Cancelled>,
    told: ToldUpdates,
    count: Count,
    files: Files,
    lines: JsonLines,
}

#[derive(Debug, Default)]
enum TurnStage {
    /// Nothing was sent yet.
    #[default]
    Silent,
    /// The request with this id waits for its reply.
    Asked(u64, AcpQuestion),
    /// The turn is judged, and stdin is closed.
    Over(AgentOutcome),
}

/// The requests of ours, in the order in which they are sent.
#[derive(Debug, Clone, PartialEq)]
enum AcpQuestion {
    Initialize,
    /// The id of the session to resume; `None` for a new or forked one.
    Session(Option<String>),
    Set(AcpSetting),
    Prompt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cancelled {
    /// A person wants the agent to stop.
    ToStop,
    /// A person's message waits to be the next prompt.
    ToGoOn,
}

impl AcpConversation {
    pub(crate) fn new(launch: LaunchRequest) -> Self {
        AcpConversation { launch, ..Self::default() }
    }

    fn ask(&mut self, question: AcpQuestion, method: &str, params: &Value) -> HeardLine {
        self.last_id += 1;
        self.stage = TurnStage::Asked(self.last_id, question);
        HeardLine::say(rpc::request(self.last_id, method, params))
    }

    fn end(&mut self, outcome: AgentOutcome) -> HeardLine {
        let mut events = self.told.flush();
        events.extend(self.count.usage().map(AgentEvent::Usage));
        let (ok, text) = match &outcome {
            AgentOutcome::Success => (true, self.told.answer()),
            AgentOutcome::Broke { why, .. }
            | AgentOutcome::Quota { why, .. }
            | AgentOutcome::Auth { why }
            | AgentOutcome::Outage { why } => (false, why.as_str()),
            AgentOutcome::Interrupted => (false, "the agent was interrupted"),
        };
        events.push(AgentEvent::result(ok, text));
        self.stage = TurnStage::Over(outcome);
        HeardLine { events, acts: vec![Act::Close] }
    }

    fn message(&mut self, message: RpcMessage) -> HeardLine {
        match message {
            RpcMessage::Reply { id, result } => self.reply(id, result),
            RpcMessage::Request { id, method, params } => self.request(&id, &method, &params),
            RpcMessage::Notification { method, params } => match method.as_str() {
                "session/update" => self.updated(&params).into(),
                // The notification is an extension, which a client may ignore.
                method if method.starts_with('_') || method.starts_with("$/") => {
                    HeardLine::default()
                }
                _ => self.lines.unknown().into(),
            },
        }
    }

    fn reply(&mut self, id: Option<u64>, result: Result<Value, RpcError>) -> HeardLine {
        let question = match &self.stage {
            TurnStage::Asked(asked, question) if id == Some(*asked) => question.clone(),
            TurnStage::Silent | TurnStage::Asked(..) | TurnStage::Over(_) => {
                return self.lines.unknown().into();
            }
        };
        match (question, result) {
            (AcpQuestion::Initialize, Ok(result)) => self.initialized(&result),
            (AcpQuestion::Initialize, Err(error)) => self.end(fault::outcome(At::Start, &error)),
            (AcpQuestion::Session(loaded), Ok(result)) => self.begun(loaded, &result),
            (AcpQuestion::Session(None), Err(error)) => self.end(fault::outcome(At::Start, &error)),
            (AcpQuestion::Session(Some(_)), Err(error)) => {
                self.end(fault::outcome(At::Session, &error))
            }
            (AcpQuestion::Set(_), Ok(_)) => self.next(),
            (AcpQuestion::Set(setting), Err(error)) => self.not_set(&setting, &error),
            (AcpQuestion::Prompt, result) => self.answered(result),
        }
    }

    fn initialized(&mut self, result: &Value) -> HeardLine {
        let version = result["protocolVersion"].as_u64().unwrap_or(PROTOCOL_VERSION);
        if version != PROTOCOL_VERSION {
            let why = format!(
                "the agent speaks version {version} of the Agent Client Protocol; version \
                 {PROTOCOL_VERSION} is required"
            );
            return self.end(AgentOutcome::broke(Cause::Startup, why));
        }
        let can = &result["agentCapabilities"];
        let servers = servers(&self.launch.mcp_servers, can);
        let notices = servers.left_out.iter().map(|text| AgentEvent::notice(text));
        let fresh = json!({ "cwd": self.launch.cwd, "mcpServers": servers.given });
        let Some(session) = self.launch.session.clone() else {
            return self.ask(AcpQuestion::Session(None), "session/new", &fresh).after(notices);
        };
        let mut taken_up = fresh.clone();
        taken_up["sessionId"] = Value::from(session.as_str());
        if can["loadSession"] == true {
            let question = AcpQuestion::Session(Some(session));
            return self.ask(question, "session/load", &taken_up).after(notices);
        }
        // A question that builds on the old conversation makes no sense in a new one.
        let why = format!("the agent can't resume session {session}: it has no `session/load`");
        self.end(AgentOutcome::broke(Cause::Session, why)).after(notices)
    }

    fn begun(&mut self, loaded: Option<String>, result: &Value) -> HeardLine {
        let named = result["sessionId"].as_str();
        let id = match (named, &loaded) {
            (Some(id), Some(asked)) if id != asked => {
                let why = format!("the agent answered in session {id} instead of resuming {asked}");
                return self.end(AgentOutcome::broke(Cause::Session, why));
            }
            (Some(id), _) => id.to_owned(),
            (None, Some(asked)) => asked.clone(),
            (None, None) => {
                let why = "the agent started a session without an id";
                return self.end(AgentOutcome::broke(Cause::Startup, why));
            }
        };
        // The updates so far repeated the old conversation.
        self.told = ToldUpdates::default();
        self.count = Count::default();
        let wanted = offer::wanted(result, &id, &self.launch);
        self.session = Some(id.clone());
        let mut events = vec![AgentEvent::Session { id }];
        let vain = wanted.not_offered.iter();
        let text = |what: &String| format!("not offered by the agent: {what}");
        events.extend(vain.map(|what| AgentEvent::notice(&text(what))));
        if let Some(why) = wanted.unknown_model {
            return self.end(AgentOutcome::broke(Cause::Model, why)).after(events);
        }
        self.settings = wanted.settings.into();
        if loaded.is_none()
            && let Some(more) = &self.launch.system_prompt
        {
            self.launch.prompt = format!("{more}\n\n{}", self.launch.prompt);
        }
        self.next().after(events)
    }

    /// Sends the next setting, or the prompt once all settings are made.
    fn next(&mut self) -> HeardLine {
        if let Some(setting) = self.settings.pop_front() {
            let (method, params) = (setting.method, setting.params.clone());
            return self.ask(AcpQuestion::Set(setting), method, &params);
        }
        let mut texts = vec![std::mem::take(&mut self.launch.prompt)];
        texts.append(&mut self.messages);
        self.prompt(&texts)
    }

    fn not_set(&mut self, setting: &AcpSetting, error: &RpcError) -> HeardLine {
        let why =
            format!("cannot set the {} to {}: {}", setting.what, setting.value, fault::said(error));
        if setting.what == "model" {
            return self.end(AgentOutcome::broke(Cause::Model, why));
        }
        self.next().after([AgentEvent::notice(&why)])
    }

    fn prompt(&mut self, texts: &[String]) -> HeardLine {
        let blocks: Vec<Value> =
            texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
        let params = json!({ "sessionId": self.session, "prompt": blocks });
        self.cancelled = None;
        self.ask(AcpQuestion::Prompt, "session/prompt", &params)
    }

    fn answered(&mut self, result: Result<Value, RpcError>) -> HeardLine {
        let shown = self.told.flush();
        if let Ok(result) = &result {
            self.count.prompted(result);
        }
        let outcome = match (&result, self.cancelled) {
            // Whatever the reply to the cancelled prompt is, the waiting message comes next.
            (_, Some(Cancelled::ToGoOn)) => {
                self.told.go_on();
                let messages = std::mem::take(&mut self.messages);
                return self.prompt(&messages).after(shown);
            }
            (Err(_), Some(Cancelled::ToStop)) => AgentOutcome::Interrupted,
            (Err(error), None) => fault::outcome(At::Prompt, error),
            (Ok(result), _) => self.stopped(result["stopReason"].as_str()),
        };
        self.end(outcome).after(shown)
    }

    fn stopped(&self, reason: Option<&str>) -> AgentOutcome {
        let (cause, why) = match reason {
            Some("end_turn") if self.told.did_nothing() => {
                (Cause::Empty, "the agent ended its turn without an answer")
            }
            Some("end_turn") => return AgentOutcome::Success,
            Some("max_tokens") => {
                (Cause::OutputLimit, "the answer reached the model's length limit")
            }
            Some("max_turn_requests") => {
                (Cause::Turns, "the agent hit its limit of requests per turn")
            }
            Some("refusal") => (Cause::Refusal, "the model refused to answer"),
            Some("cancelled") => return AgentOutcome::Interrupted,
            Some(other) => {
                return AgentOutcome::broke(Cause::Other, format!("the agent stopped: {other}"));
            }
            None => (Cause::Other, "the agent stopped without a reason"),
        };
        AgentOutcome::broke(cause, why)
    }

    fn updated(&mut self, params: &Value) -> Vec<AgentEvent> {
        let of = params["sessionId"].as_str();
        if of.is_some() && self.session.is_some() && of != self.session.as_deref() {
            // A helper of the agent sent the update, which is for the agent and not for us.
            return self.lines.unknown();
        }
        let update = &params["update"];
        if update["sessionUpdate"] == "usage_update" {
            let has_risen = self.count.updated(update);
            let usage = self.count.usage().filter(|_| has_risen && self.session.is_some());
            return usage.map(AgentEvent::Usage).into_iter().collect();
        }
        if let TurnStage::Over(_) = self.stage {
            // The answer is given; later updates do not change it.
            return Vec::new();
        }
        let is_asked = matches!(self.stage, TurnStage::Asked(_, AcpQuestion::Prompt));
        if is_asked && update["sessionUpdate"] == "tool_call" {
            self.count.used_tool();
        }
        let events = self.told.updated(update, &mut self.lines);
        match self.stage {
            // Before the session has begun all updates are replay.
            TurnStage::Silent
            | TurnStage::Asked(_, AcpQuestion::Initialize | AcpQuestion::Session(_)) => Vec::new(),
            TurnStage::Asked(_, AcpQuestion::Set(_) | AcpQuestion::Prompt) | TurnStage::Over(_) => {
                events
            }
        }
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value) -> HeardLine {
        if let TurnStage::Over(_) = self.stage {
            // The agent's stdin is closed, so the request cannot be answered.
            let text = format!("the agent requested {method} after its turn was over");
            return vec![AgentEvent::notice(&text)].into();
        }
        match method {
            "session/request_permission" => self.permission(id, params),
            "fs/read_text_file" | "fs/write_text_file" => {
                let act = self.files.asked(&self.launch, id, method, params);
                HeardLine { events: Vec::new(), acts: vec![act] }
            }
            _ => {
                let what = event::summary(method);
                let text = format!("the agent requested {what}, which is not supported");
                let line = rpc::error(id, rpc::METHOD_NOT_FOUND, "Method not found");
                HeardLine::say(line).after([AgentEvent::notice(&text)])
            }
        }
    }

    fn permission(&mut self, id: &Value, params: &Value) -> HeardLine {
        let (asked, mut events) = self.told.asked(&params["toolCall"]);
        let refusal = permit::refusal(&self.launch, &asked);
        let option = permit::option(&params["options"], refusal.is_none());
        let (outcome, granted, reason) = match (self.cancelled, option, refusal) {
            (Some(_), _, _) => (None, false, "the turn is being cancelled".to_owned()),
            (None, None, None) => (None, false, "the agent offers no way to allow it".to_owned()),
            (None, option, Some(reason)) => (option, false, format!("{reason} ({})", asked.what)),
            (None, Some(option), None) => (Some(option), true, asked.what),
        };
        let outcome = match outcome {
            Some(option) => json!({ "outcome": "selected", "optionId": option }),
            None => json!({ "outcome": "cancelled" }),
        };
        let reason = event::summary(&reason);
        events.push(AgentEvent::Permission { tool: asked.name, granted, reason });
        HeardLine::say(rpc::result(id, &json!({ "outcome": outcome }))).after(events)
    }

    /// Handles a line that is too long to read; a request in it still gets an answer.
    fn cut(&mut self, line: &str) -> HeardLine {
        let head = rpc::head(line);
        match (head.method, head.id) {
            (Some(method), id) if !id.is_null() && !matches!(self.stage, TurnStage::Over(_)) => {
                let what = event::summary(&method);
                let text = format!("the agent requested {what} in a line that is too long");
                let line = rpc::error(&id, rpc::INTERNAL_ERROR, "the request is too long");
                HeardLine::say(line).after([AgentEvent::notice(&text)])
            }
            (None, id) if matches!(&self.stage, TurnStage::Asked(asked, _) if id.as_u64() == Some(*asked)) =>
            {
                let why = "the reply was too long to read";
                self.end(AgentOutcome::broke(Cause::Other, why))
            }
            (Some(_) | None, _) => HeardLine::default(),
        }
    }

    fn cancel(&mut self, why: Cancelled) -> HeardLine {
        let is_cancelled = self.cancelled.replace(why).is_some();
        match is_cancelled {
            true => HeardLine::default(),
            false => HeardLine::say(rpc::notification(
                "session/cancel",
                &json!({ "sessionId": self.session }),
            )),
        }
    }
}

impl Conversation for AcpConversation {
    fn begin(&mut self) -> HeardLine {
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": { "fs": file::offered(&self.launch), "terminal": false },
            "clientInfo": {
                "name": "autopilot", "title": "Autopilot", "version": env!("CARGO_PKG_VERSION"),
            },
        });
        self.ask(AcpQuestion::Initialize, "initialize", &params)
    }

    fn line(&mut self, stream: OutputStream, line: &str, truncated: bool) -> HeardLine {
        let is_cut = truncated && stream == OutputStream::Out;
        match self.lines.read(stream, line, truncated).map(rpc::read) {
            Err(_) if is_cut => self.cut(line),
            Err(shown) => shown.into(),
            Ok(Some(message)) => self.message(message),
            Ok(None) => {
                self.lines.odd.malformed += 1;
                HeardLine::default()
            }
        }
    }

    fn file(&mut self, id: u64, done: Result<String, String>) -> HeardLine {
        let line = self.files.done(id, done);
        match (&self.stage, line) {
            (TurnStage::Silent | TurnStage::Asked(..), Some(line)) => HeardLine::say(line),
            (TurnStage::Over(_), _) | (_, None) => HeardLine::default(),
        }
    }

    fn wish(&mut self, wish: AgentMessage) -> Result<HeardLine, Deaf> {
        let is_prompted = match &self.stage {
            TurnStage::Over(_) => return Err(Deaf::Over),
            TurnStage::Silent => false,
            TurnStage::Asked(_, question) => *question == AcpQuestion::Prompt,
        };
        match wish {
            AgentMessage::Message(_) if self.messages.len() == MESSAGES_MAX => Err(Deaf::Full),
            AgentMessage::Message(text) => {
                let said = [AgentEvent::Steer { text: event::text(&text) }];
                self.messages.push(text);
                let heard =
                    if is_prompted { self.cancel(Cancelled::ToGoOn) } else { HeardLine::default() };
                Ok(heard.after(said))
            }
            AgentMessage::Interrupt if is_prompted => {
                self.messages.clear();
                Ok(self.cancel(Cancelled::ToStop))
            }
            AgentMessage::Interrupt => Ok(self.end(AgentOutcome::Interrupted)),
        }
    }

    fn finish(self: Box<Self>, exit: ExitFacts) -> AgentEnding {
        let outcome = match self.stage {
            TurnStage::Over(outcome) => outcome,
            TurnStage::Asked(..) if self.cancelled == Some(Cancelled::ToStop) => {
                AgentOutcome::Interrupted
            }
            TurnStage::Silent | TurnStage::Asked(..) => {
                self.lines.silent_end(&exit, self.session.is_some())
            }
        };
        AgentEnding {
            answer: self.told.answer().to_owned(),
            session: self.session,
            usage: self.count.usage(),
            odd: self.lines.odd,
            ..AgentEnding::new(outcome)
        }
    }
}

struct Servers {
    given: Vec<Value>,
    left_out: Vec<String>,
}

/// Sorts the MCP servers: every agent can start one; only some can reach one that runs elsewhere.
fn servers(servers: &[LaunchServer], can: &Value) -> Servers {
    let (mut given, mut left_out) = (Vec::new(), Vec::new());
    for LaunchServer { name, transport } in servers {
        match transport {
            Transport::Stdio { command, args, env } => {
                let env: Vec<Value> = env
                    .iter()
                    .map(|(name, value)| json!({ "name": name, "value": value }))
                    .collect();
                given.push(json!({ "name": name, "command": command, "args": args, "env": env }));
            }
            Transport::Http { url } if can["mcpCapabilities"]["http"] == true => {
                given.push(json!({ "type": "http", "name": name, "url": url, "headers": [] }));
            }
            Transport::Http { .. } => left_out
                .push(format!("MCP server {name} is left out: the agent can't reach it by HTTP")),
        }
    }
    Servers { given, left_out }
}

#[cfg(test)]
mod tests;
