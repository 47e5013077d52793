//! One turn with an agent: initialize, a session, its settings, the prompt, the result.
//!
//! Exactly one request of ours waits for its reply at any time, until the turn is over. The
//! turn is judged by the reply to its prompt; how the process ends afterwards means nothing.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::count::Count;
use super::fault::{self, At};
use super::file::{self, Files};
use super::offer::{self, Setting};
use super::permit::{self, Wanted};
use super::rpc::{self, Message, RpcError};
use super::told::Told;
use crate::agent::{Expected, Stream};
use crate::conversation::{Act, Conversation, Deaf, Heard, Wish};
use crate::ending::{Cause, Ending, ExitFacts, Odd, Outcome};
use crate::event::{self, AgentEvent};
use crate::jsonl::{Line, json_line, silent_end};
use crate::launch::{McpServer, Transport};
use crate::tail::Tail;

const PROTOCOL_VERSION: u64 = 1;
/// Messages that wait for the turn they interrupt to stop.
const MESSAGES_MAX: usize = 16;

#[derive(Debug)]
pub(crate) struct AcpConversation {
    expected: Expected,
    stage: Stage,
    last_id: u64,
    session: Option<String>,
    settings: VecDeque<Setting>,
    /// What a person has said and the agent has not heard yet.
    messages: Vec<String>,
    /// Why the running prompt was cancelled, if it was.
    cancelled: Option<Cancelled>,
    told: Told,
    count: Count,
    files: Files,
    words: Tail,
    odd: Odd,
}

#[derive(Debug)]
enum Stage {
    Silent,
    Asked(u64, Question),
    Over(Outcome),
}

#[derive(Debug, Clone, PartialEq)]
enum Question {
    Initialize,
    /// The session that is to be taken up, if any.
    Session(Option<String>),
    Set(Setting),
    Prompt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cancelled {
    ToStop,
    ToGoOn,
}

impl AcpConversation {
    pub(crate) fn new(expected: Expected) -> Self {
        AcpConversation {
            expected,
            stage: Stage::Silent,
            last_id: 0,
            session: None,
            settings: VecDeque::new(),
            messages: Vec::new(),
            cancelled: None,
            told: Told::default(),
            count: Count::default(),
            files: Files::default(),
            words: Tail::default(),
            odd: Odd::default(),
        }
    }

    fn ask(&mut self, question: Question, method: &str, params: &Value) -> Heard {
        self.last_id += 1;
        self.stage = Stage::Asked(self.last_id, question);
        Heard::say(rpc::request(self.last_id, method, params))
    }

    fn end(&mut self, outcome: Outcome) -> Heard {
        let mut events = self.told.flush();
        events.extend(self.count.usage().map(AgentEvent::Usage));
        let (ok, text) = match &outcome {
            Outcome::Success => (true, self.told.answer()),
            Outcome::Broke { why, .. }
            | Outcome::Quota { why, .. }
            | Outcome::Auth { why }
            | Outcome::Outage { why } => (false, why.as_str()),
            Outcome::Interrupted => (false, "it was interrupted"),
        };
        events.push(AgentEvent::Result { ok, text: event::text(text) });
        self.stage = Stage::Over(outcome);
        Heard { events, acts: vec![Act::Close] }
    }

    fn message(&mut self, message: Message) -> Heard {
        match message {
            Message::Reply { id, result } => self.reply(id, result),
            Message::Request { id, method, params } => self.request(&id, &method, &params),
            Message::Notification { method, params } => match method.as_str() {
                "session/update" => self.updated(&params).into(),
                // Extensions; nobody who does not know them need heed them.
                method if method.starts_with('_') || method.starts_with("$/") => Heard::default(),
                _ => {
                    self.odd.unknown += 1;
                    Heard::default()
                }
            },
        }
    }

    fn reply(&mut self, id: Option<u64>, result: Result<Value, RpcError>) -> Heard {
        let question = match &self.stage {
            Stage::Asked(asked, question) if id == Some(*asked) => question.clone(),
            Stage::Silent | Stage::Asked(..) | Stage::Over(_) => {
                self.odd.unknown += 1;
                return Heard::default();
            }
        };
        match (question, result) {
            (Question::Initialize, Ok(result)) => self.initialized(&result),
            (Question::Initialize, Err(error)) => self.end(fault::outcome(At::Start, &error)),
            (Question::Session(loaded), Ok(result)) => self.begun(loaded, &result),
            (Question::Session(None), Err(error)) => self.end(fault::outcome(At::Start, &error)),
            (Question::Session(Some(_)), Err(error)) => {
                self.end(fault::outcome(At::Session, &error))
            }
            (Question::Set(_), Ok(_)) => self.next(),
            (Question::Set(setting), Err(error)) => self.not_set(&setting, &error),
            (Question::Prompt, result) => self.answered(result),
        }
    }

    fn initialized(&mut self, result: &Value) -> Heard {
        let version = result["protocolVersion"].as_u64().unwrap_or(PROTOCOL_VERSION);
        if version != PROTOCOL_VERSION {
            let why = format!(
                "it speaks version {version} of the Agent Client Protocol, and version \
                 {PROTOCOL_VERSION} is needed"
            );
            return self.end(Outcome::broke(Cause::Startup, why));
        }
        let can = &result["agentCapabilities"];
        let servers = servers(&self.expected.mcp_servers, can);
        let notices = servers.left_out.into_iter().map(notice);
        let fresh = json!({ "cwd": self.expected.cwd, "mcpServers": servers.given });
        let Some(session) = self.expected.session.clone() else {
            return self.ask(Question::Session(None), "session/new", &fresh).after(notices);
        };
        let mut taken_up = fresh.clone();
        taken_up["sessionId"] = Value::from(session.as_str());
        if can["loadSession"] == true {
            let question = Question::Session(Some(session));
            return self.ask(question, "session/load", &taken_up).after(notices);
        }
        let lost = format!(
            "the agent can't take up its session {session}: a new one begins, and what was said in \
             the old one is lost"
        );
        let begun = self.ask(Question::Session(None), "session/new", &fresh);
        begun.after([notice(lost)]).after(notices)
    }

    fn begun(&mut self, loaded: Option<String>, result: &Value) -> Heard {
        let named = result["sessionId"].as_str();
        let id = match (named, &loaded) {
            (Some(id), Some(asked)) if id != asked => {
                let why = format!("session {asked} was to be taken up and {id} answers");
                return self.end(Outcome::broke(Cause::Session, why));
            }
            (Some(id), _) => id.to_owned(),
            (None, Some(asked)) => asked.clone(),
            (None, None) => {
                let why = "it began a session without an id";
                return self.end(Outcome::broke(Cause::Startup, why));
            }
        };
        // What came so far was the old conversation said once more.
        self.told = Told::default();
        self.count = Count::default();
        let wanted = offer::wanted(result, &id, &self.expected);
        self.session = Some(id.clone());
        let mut events = vec![AgentEvent::Session { id }];
        let vain = wanted.not_offered.iter();
        events
            .extend(vain.map(|what| notice(format!("{what} was asked for; it offers no choice"))));
        if let Some(why) = wanted.unknown_model {
            return self.end(Outcome::broke(Cause::Model, why)).after(events);
        }
        self.settings = wanted.settings.into();
        if loaded.is_none()
            && let Some(more) = &self.expected.system_prompt
        {
            self.expected.prompt = format!("{more}\n\n{}", self.expected.prompt);
        }
        self.next().after(events)
    }

    /// The next setting, or the prompt when all are made.
    fn next(&mut self) -> Heard {
        if let Some(setting) = self.settings.pop_front() {
            let (method, params) = (setting.method, setting.params.clone());
            return self.ask(Question::Set(setting), method, &params);
        }
        let mut texts = vec![std::mem::take(&mut self.expected.prompt)];
        texts.append(&mut self.messages);
        self.prompt(&texts)
    }

    fn not_set(&mut self, setting: &Setting, error: &RpcError) -> Heard {
        let why =
            format!("cannot set the {} to {}: {}", setting.what, setting.value, fault::said(error));
        if setting.what == "model" {
            return self.end(Outcome::broke(Cause::Model, why));
        }
        self.next().after([notice(why)])
    }

    fn prompt(&mut self, texts: &[String]) -> Heard {
        let blocks: Vec<Value> =
            texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
        let params = json!({ "sessionId": self.session, "prompt": blocks });
        self.cancelled = None;
        self.ask(Question::Prompt, "session/prompt", &params)
    }

    fn answered(&mut self, result: Result<Value, RpcError>) -> Heard {
        let shown = self.told.flush();
        if let Ok(result) = &result {
            self.count.prompted(result);
        }
        let outcome = match (&result, self.cancelled) {
            // Whatever became of what was cancelled, the message comes next.
            (_, Some(Cancelled::ToGoOn)) => {
                self.told.go_on();
                let messages = std::mem::take(&mut self.messages);
                return self.prompt(&messages).after(shown);
            }
            (Err(_), Some(Cancelled::ToStop)) => Outcome::Interrupted,
            (Err(error), None) => fault::outcome(At::Prompt, error),
            (Ok(result), _) => self.stopped(result["stopReason"].as_str()),
        };
        self.end(outcome).after(shown)
    }

    fn stopped(&mut self, reason: Option<&str>) -> Outcome {
        match reason {
            Some("end_turn") if self.told.did_nothing() => {
                Outcome::broke(Cause::Empty, "it ended its turn without a word")
            }
            Some("end_turn") => Outcome::Success,
            Some("max_tokens") => {
                Outcome::broke(Cause::OutputLimit, "its answer ran into the limit of its length")
            }
            Some("max_turn_requests") => {
                Outcome::broke(Cause::Turns, "it ran into its limit of requests in one turn")
            }
            Some("refusal") => Outcome::broke(Cause::Refusal, "the model refused"),
            Some("cancelled") => Outcome::Interrupted,
            Some(other) => Outcome::broke(Cause::Other, format!("it stopped: {other}")),
            None => Outcome::broke(Cause::Other, "it stopped and did not say why"),
        }
    }

    fn updated(&mut self, params: &Value) -> Vec<AgentEvent> {
        let of = params["sessionId"].as_str();
        if of.is_some() && self.session.is_some() && of != self.session.as_deref() {
            // A helper of its own, which tells its user and not us.
            self.odd.unknown += 1;
            return Vec::new();
        }
        let update = &params["update"];
        if update["sessionUpdate"] == "usage_update" {
            let has_risen = self.count.updated(update);
            let usage = self.count.usage().filter(|_| has_risen && self.session.is_some());
            return usage.map(AgentEvent::Usage).into_iter().collect();
        }
        if let Stage::Over(_) = self.stage {
            // The answer is given; what is said behind it does not change it.
            return Vec::new();
        }
        let events = self.told.updated(update, &mut self.odd);
        match self.stage {
            // Before the session has begun all is replay.
            Stage::Silent | Stage::Asked(_, Question::Initialize | Question::Session(_)) => {
                Vec::new()
            }
            Stage::Asked(_, Question::Set(_) | Question::Prompt) | Stage::Over(_) => events,
        }
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value) -> Heard {
        if let Stage::Over(_) = self.stage {
            // Nothing can be said any more.
            let text = format!("it asked for {method} after its turn was over");
            return vec![notice(text)].into();
        }
        match method {
            "session/request_permission" => self.permission(id, params),
            "fs/read_text_file" | "fs/write_text_file" => {
                let act = self.files.asked(&self.expected, id, method, params);
                Heard { events: Vec::new(), acts: vec![act] }
            }
            _ => {
                let text = format!("it asked for {}, which is not offered", event::summary(method));
                let line = rpc::error(id, rpc::METHOD_NOT_FOUND, "Method not found");
                Heard::say(line).after([notice(text)])
            }
        }
    }

    fn permission(&mut self, id: &Value, params: &Value) -> Heard {
        let (asked, mut events) = self.told.asked(&params["toolCall"]);
        let refusal = permit::refusal(
            &self.expected,
            Wanted {
                name: &asked.name,
                kind: &asked.kind,
                what: &asked.what,
                paths: &asked.places,
                named: Some(&asked.named),
            },
        );
        let option = permit::option(&params["options"], refusal.is_none());
        let (outcome, granted, reason) = match (self.cancelled, option, refusal) {
            (Some(_), _, _) => (None, false, "the turn is being cancelled".to_owned()),
            (None, None, None) => (None, false, "it offers no way to allow it".to_owned()),
            (None, option, Some(reason)) => (option, false, format!("{reason} ({})", asked.what)),
            (None, Some(option), None) => (Some(option), true, asked.what),
        };
        let outcome = match outcome {
            Some(option) => json!({ "outcome": "selected", "optionId": option }),
            None => json!({ "outcome": "cancelled" }),
        };
        let reason = event::summary(&reason);
        events.push(AgentEvent::Permission { tool: asked.name, granted, reason });
        Heard::say(rpc::result(id, &json!({ "outcome": outcome }))).after(events)
    }

    /// A line longer than can be read; whoever waits for an answer to it gets one.
    fn cut(&mut self, line: &str) -> Heard {
        let head = rpc::head(line);
        match (head.method, head.id) {
            (Some(method), id) if !id.is_null() && !matches!(self.stage, Stage::Over(_)) => {
                let text =
                    format!("it asked for {} in a line that is too long", event::summary(&method));
                let line = rpc::error(&id, rpc::INTERNAL_ERROR, "the request is too long");
                Heard::say(line).after([notice(text)])
            }
            (None, id) if matches!(&self.stage, Stage::Asked(asked, _) if id.as_u64() == Some(*asked)) =>
            {
                let why = "its reply was too long to be read";
                self.end(Outcome::broke(Cause::Other, why))
            }
            (Some(_) | None, _) => Heard::default(),
        }
    }

    fn cancel(&mut self, why: Cancelled) -> Heard {
        let is_cancelled = self.cancelled.replace(why).is_some();
        match is_cancelled {
            true => Heard::default(),
            false => Heard::say(rpc::notification(
                "session/cancel",
                &json!({ "sessionId": self.session }),
            )),
        }
    }
}

impl Conversation for AcpConversation {
    fn begin(&mut self) -> Heard {
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": { "fs": file::offered(&self.expected), "terminal": false },
            "clientInfo": {
                "name": "autopilot", "title": "Autopilot", "version": env!("CARGO_PKG_VERSION"),
            },
        });
        self.ask(Question::Initialize, "initialize", &params)
    }

    fn line(&mut self, stream: Stream, line: &str, truncated: bool) -> Heard {
        let is_cut = truncated && stream == Stream::Out;
        match json_line(stream, line, truncated, &mut self.odd, &mut self.words) {
            Line::Words(_) if is_cut => self.cut(line),
            Line::Words(events) => events.into(),
            Line::Event(object) => match rpc::read(object) {
                Some(message) => self.message(message),
                None => {
                    self.odd.malformed += 1;
                    Heard::default()
                }
            },
        }
    }

    fn file(&mut self, id: u64, done: Result<String, String>) -> Heard {
        let line = self.files.done(id, done);
        match (&self.stage, line) {
            (Stage::Silent | Stage::Asked(..), Some(line)) => Heard::say(line),
            (Stage::Over(_), _) | (_, None) => Heard::default(),
        }
    }

    fn wish(&mut self, wish: Wish) -> Result<Heard, Deaf> {
        let is_prompted = match &self.stage {
            Stage::Over(_) => return Err(Deaf::Over),
            Stage::Silent => false,
            Stage::Asked(_, question) => *question == Question::Prompt,
        };
        match wish {
            Wish::Message(_) if self.messages.len() == MESSAGES_MAX => Err(Deaf::Full),
            Wish::Message(text) => {
                let said = [AgentEvent::Steer { text: event::text(&text) }];
                self.messages.push(text);
                let heard =
                    if is_prompted { self.cancel(Cancelled::ToGoOn) } else { Heard::default() };
                Ok(heard.after(said))
            }
            Wish::Interrupt if is_prompted => {
                self.messages.clear();
                Ok(self.cancel(Cancelled::ToStop))
            }
            Wish::Interrupt => Ok(self.end(Outcome::Interrupted)),
        }
    }

    fn finish(self: Box<Self>, exit: ExitFacts) -> Ending {
        let outcome = match self.stage {
            Stage::Over(outcome) => outcome,
            Stage::Asked(..) if self.cancelled == Some(Cancelled::ToStop) => Outcome::Interrupted,
            Stage::Silent | Stage::Asked(..) => exit
                .forced()
                .unwrap_or_else(|| silent_end(&exit, &self.words, self.session.is_some())),
        };
        Ending {
            outcome,
            answer: self.told.answer().to_owned(),
            structured: None,
            session: self.session,
            usage: self.count.usage(),
            odd: self.odd,
        }
    }
}

struct Servers {
    given: Vec<Value>,
    left_out: Vec<String>,
}

/// Every agent starts servers; only some reach those that run elsewhere.
fn servers(servers: &[McpServer], can: &Value) -> Servers {
    let (mut given, mut left_out) = (Vec::new(), Vec::new());
    for McpServer { name, transport } in servers {
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
                .push(format!("the agent can't reach MCP servers over HTTP: {name} is left out")),
        }
    }
    Servers { given, left_out }
}

fn notice(text: String) -> AgentEvent {
    AgentEvent::Notice { text: event::text(&text) }
}

#[cfg(test)]
mod tests;
