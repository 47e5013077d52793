//! Turns, line by line: `<` marks the agent's lines, `>` our replies, the rest are events.

use super::*;
use crate::{Access, Network, OddLines};

struct Play {
    turn: Box<AcpConversation>,
    seen: Vec<String>,
}

const NEW: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}"#;
const CAN_LOAD: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}"#;

impl Play {
    fn begin(ask: &LaunchRequest) -> Play {
        let mut play = Play { turn: Box::new(AcpConversation::new(ask.clone())), seen: Vec::new() };
        let heard = play.turn.begin();
        play.note(heard);
        play.seen.clear();
        play
    }

    /// A turn whose prompt was sent, as request 3.
    fn prompted(ask: &LaunchRequest) -> Play {
        let mut play = Play::begin(ask);
        play.hear(CAN_LOAD).hear(NEW);
        play.seen.clear();
        play
    }

    fn note(&mut self, heard: HeardLine) {
        let events = heard.events.iter().map(|event| serde_json::to_string(event).unwrap());
        self.seen.extend(events);
        self.seen.extend(heard.acts.into_iter().map(|act| match act {
            Act::Say(line) => format!("> {}", line.replace(r#""jsonrpc":"2.0","#, "")),
            other @ (Act::Close | Act::ReadFile { .. } | Act::WriteFile { .. }) => {
                format!("> {other:?}")
            }
        }));
    }

    fn hear(&mut self, line: &str) -> &mut Play {
        let heard = self.turn.line(OutputStream::Out, line, false);
        self.note(heard);
        self
    }

    fn update(&mut self, update: Value) -> &mut Play {
        let params = json!({ "sessionId": "s1", "update": update });
        self.hear(&rpc::notification("session/update", &params))
    }

    fn says(&mut self, text: &str) -> &mut Play {
        self.update(json!({ "sessionUpdate": "agent_message_chunk", "content": { "text": text } }))
    }

    fn stops(&mut self, id: u64, reason: &str) -> &mut Play {
        self.hear(&rpc::result(&json!(id), &json!({ "stopReason": reason })))
    }

    fn fails(&mut self, id: u64, code: i64, message: &str) -> &mut Play {
        self.hear(&rpc::error(&json!(id), code, message))
    }

    fn wish(&mut self, wish: AgentMessage) -> &mut Play {
        let heard = self.turn.wish(wish).unwrap();
        self.note(heard);
        self
    }

    fn seen(&mut self) -> String {
        std::mem::take(&mut self.seen).join("\n")
    }

    fn finish(self, exit: ExitFacts) -> AgentEnding {
        self.turn.finish(exit)
    }
}

fn ask() -> LaunchRequest {
    LaunchRequest::new("do it", "/slot".into())
}

fn permission(kind: &str) -> String {
    let params = json!({ "sessionId": "s1",
        "toolCall": { "toolCallId": "c", "title": "/slot/a", "kind": kind,
            "locations": [{ "path": "/slot/a" }] },
        "options": [{ "optionId": "yes", "kind": "allow_once" },
            { "optionId": "no", "kind": "reject_once" }] });
    rpc::request(3, "session/request_permission", &params)
}

#[test]
fn a_turn_from_hello_to_good_bye() {
    let mut play = Play::begin(&ask());
    play.hear(CAN_LOAD).hear(NEW).says("Do").says("ne.").stops(3, "end_turn");
    insta::assert_snapshot!(play.seen(), @r#"
    > {"id":2,"method":"session/new","params":{"cwd":"/slot","mcpServers":[]}}
    {"event":"session","id":"s1"}
    > {"id":3,"method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":"do it"}]}}
    {"event":"text","text":"Done."}
    {"event":"result","ok":true,"text":"Done."}
    > Close
    "#);
    // The process may have to be killed afterwards: the result stands.
    let ending = play.finish(ExitFacts::signal(15));
    assert_eq!(ending.outcome, AgentOutcome::Success);
    assert_eq!((ending.answer.as_str(), ending.session.as_deref()), ("Done.", Some("s1")));
    assert_eq!(ending.odd, OddLines::default());
}

#[test]
fn the_first_word_offers_files_only_when_configured() {
    let offers = |ask: &LaunchRequest| {
        let heard = AcpConversation::new(ask.clone()).begin();
        let Act::Say(line) = &heard.acts[0] else { panic!("{heard:?}") };
        serde_json::from_str::<Value>(line).unwrap()["params"]["clientCapabilities"].take()
    };
    let none =
        json!({ "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false });
    assert_eq!(offers(&ask()), none);
    let both = json!({ "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": false });
    assert_eq!(offers(&LaunchRequest { fs: true, ..ask() }), both);
}

#[test]
fn every_way_to_stop_has_its_outcome() {
    let outcome = |reason: &str| {
        let mut play = Play::prompted(&ask());
        play.says("Words.").stops(3, reason);
        play.finish(ExitFacts::code(0)).outcome
    };
    let broke = |reason: &str| match outcome(reason) {
        AgentOutcome::Broke { cause, .. } => cause,
        other @ (AgentOutcome::Success
        | AgentOutcome::Quota { .. }
        | AgentOutcome::Auth { .. }
        | AgentOutcome::Outage { .. }
        | AgentOutcome::Interrupted) => panic!("{other:?}"),
    };
    assert_eq!(outcome("end_turn"), AgentOutcome::Success);
    assert_eq!(outcome("cancelled"), AgentOutcome::Interrupted);
    assert_eq!(broke("max_tokens"), Cause::OutputLimit);
    assert_eq!(broke("max_turn_requests"), Cause::Turns);
    assert_eq!(broke("refusal"), Cause::Refusal);
    assert_eq!(broke("tired"), Cause::Other);
    let mut silent = Play::prompted(&ask());
    silent.stops(3, "end_turn");
    let outcome = silent.finish(ExitFacts::code(0)).outcome;
    assert_eq!(
        outcome,
        AgentOutcome::broke(Cause::Empty, "the agent ended its turn without an answer")
    );
}

#[test]
fn a_request_with_the_id_of_ours_is_a_request() {
    let mut play = Play::prompted(&ask());
    play.hear(&permission("edit"));
    insta::assert_snapshot!(play.seen(), @r#"
    {"event":"tool_call","id":"c","name":"edit","summary":"/slot/a"}
    {"event":"permission","tool":"edit","granted":true,"reason":"/slot/a"}
    > {"id":3,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}
    "#);
    // A reply that nobody waits for changes nothing.
    play.stops(2, "end_turn").stops(9, "end_turn");
    assert_eq!(play.seen(), "");
    play.says("ok").stops(3, "end_turn");
    let ending = play.finish(ExitFacts::code(0));
    assert_eq!((ending.outcome, ending.odd.unknown), (AgentOutcome::Success, 2));
}

#[test]
fn a_reader_that_wants_to_write_is_refused_and_goes_on() {
    let reader = LaunchRequest { access: Access::Read, ..ask() };
    let mut play = Play::prompted(&reader);
    play.hear(&permission("edit")).says("I may not.").stops(3, "end_turn");
    insta::assert_snapshot!(play.seen(), @r#"
    {"event":"tool_call","id":"c","name":"edit","summary":"/slot/a"}
    {"event":"permission","tool":"edit","granted":false,"reason":"this step is read-only; edit is not allowed (/slot/a)"}
    > {"id":3,"result":{"outcome":{"outcome":"selected","optionId":"no"}}}
    {"event":"text","text":"I may not."}
    {"event":"result","ok":true,"text":"I may not."}
    > Close
    "#);
    assert_eq!(play.finish(ExitFacts::code(0)).outcome, AgentOutcome::Success);
}

#[test]
fn a_change_outside_is_refused_wherever_the_call_names_it() {
    let granted = |early: Value, late: Value| {
        let mut play = Play::prompted(&ask());
        let update = json!({ "sessionId": "s1", "update": {
            "sessionUpdate": "tool_call", "toolCallId": "c", "kind": "edit", "rawInput": early } });
        play.hear(&rpc::notification("session/update", &update));
        let mut call = json!({ "toolCallId": "c", "kind": "edit",
            "locations": [{ "path": "/slot/a" }] });
        call.as_object_mut().unwrap().extend(late.as_object().unwrap().clone());
        let params = json!({ "sessionId": "s1", "toolCall": call, "options": [
            { "optionId": "yes", "kind": "allow_once" },
            { "optionId": "no", "kind": "reject_once" }] });
        play.hear(&rpc::request(3, "session/request_permission", &params));
        play.seen().contains(r#""optionId":"yes""#)
    };
    let (none, inside) = (json!({}), json!({ "rawInput": { "file_path": "/slot/a" } }));
    assert!(granted(none.clone(), inside.clone()));
    let outside = "/slot/../etc/cron.d/x";
    assert!(!granted(none.clone(), json!({ "rawInput": { "filePath": outside } })));
    // The earlier updates of the call are not forgotten.
    assert!(!granted(json!({ "file_path": "/etc/x" }), inside.clone()));
    let diff = json!([{ "type": "diff", "path": "/etc/x", "oldText": "", "newText": "y" }]);
    assert!(!granted(none.clone(), json!({ "content": diff })));
    assert!(!granted(none, json!({ "kind": "read", "content": diff })));
}

#[test]
fn without_a_fitting_option_the_request_is_cancelled() {
    let offline = LaunchRequest { network: Network::Off, ..ask() };
    let mut play = Play::prompted(&offline);
    let params = json!({ "toolCall": { "toolCallId": "c", "kind": "fetch" },
        "options": [{ "optionId": "yes", "kind": "allow_once" }] });
    play.hear(&rpc::request(0, "session/request_permission", &params));
    assert!(play.seen().ends_with(r#"> {"id":0,"result":{"outcome":{"outcome":"cancelled"}}}"#));
}

#[test]
fn a_session_is_taken_up_and_its_old_words_are_not_new_ones() {
    let again = LaunchRequest { session: Some("s1".into()), ..ask() };
    let mut play = Play::begin(&again);
    play.hear(CAN_LOAD).says("old words");
    play.update(json!({ "sessionUpdate": "usage_update", "used": 900, "size": 1000 }));
    play.hear(r#"{"jsonrpc":"2.0","id":2,"result":null}"#);
    play.says("new words").stops(3, "end_turn");
    insta::assert_snapshot!(play.seen(), @r#"
    > {"id":2,"method":"session/load","params":{"cwd":"/slot","mcpServers":[],"sessionId":"s1"}}
    {"event":"session","id":"s1"}
    > {"id":3,"method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":"do it"}]}}
    {"event":"text","text":"new words"}
    {"event":"result","ok":true,"text":"new words"}
    > Close
    "#);
    let ending = play.finish(ExitFacts::code(0));
    assert_eq!((ending.answer.as_str(), ending.usage), ("new words", None));
}

#[test]
fn a_session_that_is_gone_is_noticed_before_anything_is_asked() {
    let again = LaunchRequest { session: Some("s1".into()), ..ask() };
    let lost = |line: &str| {
        let mut play = Play::begin(&again);
        play.hear(CAN_LOAD).hear(line);
        assert!(play.seen().ends_with("> Close"));
        play.finish(ExitFacts::code(0)).outcome
    };
    let other = lost(r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s2"}}"#);
    let why = "the agent answered in session s2 instead of resuming s1";
    assert_eq!(other, AgentOutcome::broke(Cause::Session, why));
    let gone = lost(&rpc::error(&json!(2), -32002, "Resource not found"));
    assert_eq!(gone, AgentOutcome::broke(Cause::Session, "Resource not found"));
    let unsaid = lost(&rpc::error(&json!(2), -32603, "Internal error"));
    assert_eq!(unsaid, AgentOutcome::broke(Cause::Session, "Internal error"));
    let auth = lost(&rpc::error(&json!(2), -32000, "Authentication required"));
    assert!(matches!(auth, AgentOutcome::Auth { .. }));
}

#[test]
fn an_agent_that_cannot_load_is_not_asked_in_another_session() {
    let again = LaunchRequest { session: Some("s1".into()), ..ask() };
    let mut play = Play::begin(&again);
    play.hear(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#);
    let seen = play.seen();
    assert!(!seen.contains("\"method\"") && seen.ends_with("> Close"), "{seen}");
    let why = "the agent can't resume session s1: it has no `session/load`";
    assert_eq!(play.finish(ExitFacts::code(0)).outcome, AgentOutcome::broke(Cause::Session, why));
}

#[test]
fn the_model_is_set_before_the_prompt_and_never_replaced_by_another() {
    let with = |reply: &str, settled: Option<&str>| {
        let asked = LaunchRequest { model: Some("big".into()), ..ask() };
        let mut play = Play::begin(&asked);
        play.hear(CAN_LOAD);
        play.seen.clear();
        play.hear(reply);
        settled.map(|line| play.hear(line).seen.len());
        play.seen()
    };
    let offers = r#"{"id":2,"result":{"sessionId":"s1","models":{"currentModelId":"small",
        "availableModels":[{"modelId":"small"},{"modelId":"big"}]}}}"#;
    let offers = offers.replace('\n', "");
    insta::assert_snapshot!(with(&offers, Some(r#"{"id":3,"result":{}}"#)), @r#"
    {"event":"session","id":"s1"}
    > {"id":3,"method":"session/set_model","params":{"sessionId":"s1","modelId":"big"}}
    > {"id":4,"method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":"do it"}]}}
    "#);
    let refused = r#"{"id":3,"error":{"code":-32602,"message":"not yours"}}"#;
    insta::assert_snapshot!(with(&offers, Some(refused)), @r#"
    {"event":"session","id":"s1"}
    > {"id":3,"method":"session/set_model","params":{"sessionId":"s1","modelId":"big"}}
    {"event":"result","ok":false,"text":"cannot set the model to big: not yours"}
    > Close
    "#);
    let other = offers.replace("\"big\"", "\"large\"");
    insta::assert_snapshot!(with(&other, None), @r#"
    {"event":"session","id":"s1"}
    {"event":"result","ok":false,"text":"the agent does not offer the model big; it offers small, large"}
    > Close
    "#);
    assert!(with(NEW, None).contains("not offered by the agent: the model big"));
}

#[test]
fn servers_are_given_as_the_protocol_has_them() {
    let servers = [
        LaunchServer {
            name: "docs".into(),
            transport: Transport::Stdio {
                command: "docs-server".into(),
                args: vec!["-v".into()],
                env: vec![("TAG".into(), "x".into())],
            },
        },
        LaunchServer { name: "web".into(), transport: Transport::Http { url: "http://h/".into() } },
    ];
    let asked = LaunchRequest { mcp_servers: servers.to_vec(), ..ask() };
    let mut play = Play::begin(&asked);
    play.hear(CAN_LOAD);
    insta::assert_snapshot!(play.seen(), @r#"
    {"event":"notice","text":"MCP server web is left out: the agent can't reach it by HTTP"}
    > {"id":2,"method":"session/new","params":{"cwd":"/slot","mcpServers":[{"name":"docs","command":"docs-server","args":["-v"],"env":[{"name":"TAG","value":"x"}]}]}}
    "#);
    let mut play = Play::begin(&asked);
    play.hear(r#"{"id":1,"result":{"agentCapabilities":{"mcpCapabilities":{"http":true}}}}"#);
    assert!(play.seen().contains(r#"{"type":"http","name":"web","url":"http://h/","headers":[]}"#));
}

#[test]
fn an_interrupt_cancels_the_prompt_and_the_turn_is_interrupted() {
    let mut play = Play::prompted(&ask());
    play.says("half")
        .wish(AgentMessage::Interrupt)
        .wish(AgentMessage::Interrupt)
        .stops(3, "cancelled");
    insta::assert_snapshot!(play.seen(), @r#"
    > {"method":"session/cancel","params":{"sessionId":"s1"}}
    {"event":"text","text":"half"}
    {"event":"result","ok":false,"text":"the agent was interrupted"}
    > Close
    "#);
    assert_eq!(play.turn.wish(AgentMessage::Interrupt), Err(Deaf::Over));
    assert_eq!(play.finish(ExitFacts::code(0)).outcome, AgentOutcome::Interrupted);
    // An agent that does not even answer is stopped from outside.
    let mut deaf = Play::prompted(&ask());
    deaf.wish(AgentMessage::Interrupt);
    assert_eq!(deaf.finish(ExitFacts::signal(9)).outcome, AgentOutcome::Interrupted);
    let mut early = Play::begin(&ask());
    early.wish(AgentMessage::Interrupt);
    assert!(early.seen().ends_with("> Close"));
    assert_eq!(early.finish(ExitFacts::code(0)).outcome, AgentOutcome::Interrupted);
}

#[test]
fn a_message_stops_the_turn_and_begins_the_next_with_itself() {
    let mut play = Play::prompted(&ask());
    play.says("half")
        .wish(AgentMessage::Message("use b".into()))
        .wish(AgentMessage::Message("and c".into()));
    play.hear(&permission("edit")).stops(3, "cancelled").says("whole").stops(4, "end_turn");
    insta::assert_snapshot!(play.seen(), @r#"
    {"event":"steer","text":"use b"}
    > {"method":"session/cancel","params":{"sessionId":"s1"}}
    {"event":"steer","text":"and c"}
    {"event":"text","text":"half"}
    {"event":"tool_call","id":"c","name":"edit","summary":"/slot/a"}
    {"event":"permission","tool":"edit","granted":false,"reason":"the turn is being cancelled"}
    > {"id":3,"result":{"outcome":{"outcome":"cancelled"}}}
    > {"id":4,"method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":"use b"},{"type":"text","text":"and c"}]}}
    {"event":"text","text":"whole"}
    {"event":"result","ok":true,"text":"whole"}
    > Close
    "#);
    let ending = play.finish(ExitFacts::code(0));
    assert_eq!((ending.outcome, ending.answer.as_str()), (AgentOutcome::Success, "whole"));
}

#[test]
fn a_message_before_the_prompt_goes_with_it_and_only_so_many_wait() {
    let mut play = Play::begin(&ask());
    for n in 0..MESSAGES_MAX {
        play.wish(AgentMessage::Message(n.to_string()));
    }
    assert_eq!(play.turn.wish(AgentMessage::Message("more".into())), Err(Deaf::Full));
    play.hear(CAN_LOAD).hear(NEW);
    assert!(play.seen().contains(r#"[{"type":"text","text":"do it"},{"type":"text","text":"0"}"#));
}

#[test]
fn a_message_after_an_interrupt_takes_it_back() {
    let mut play = Play::prompted(&ask());
    play.wish(AgentMessage::Interrupt).wish(AgentMessage::Message("no, go on".into()));
    play.fails(3, -32603, "aborted").says("ok").stops(4, "end_turn");
    assert_eq!(play.finish(ExitFacts::code(0)).outcome, AgentOutcome::Success);
}

#[test]
fn files_are_read_and_written_through_us_where_that_is_offered() {
    let offered = LaunchRequest { fs: true, ..ask() };
    let mut play = Play::prompted(&offered);
    play.hear(r#"{"id":0,"method":"fs/read_text_file","params":{"path":"/slot/a","line":2}}"#);
    play.hear(
        r#"{"id":1,"method":"fs/write_text_file","params":{"path":"/slot/b","content":"x"}}"#,
    );
    for (id, done) in [(1, Err("No such file or directory".to_owned())), (2, Ok(String::new()))] {
        let heard = play.turn.file(id, done);
        play.note(heard);
    }
    insta::assert_snapshot!(play.seen(), @r#"
    > ReadFile { id: 1, path: "/slot/a", first_line: Some(2), lines_max: None }
    > WriteFile { id: 2, path: "/slot/b", text: "x" }
    > {"id":0,"error":{"code":-32002,"message":"Resource not found: No such file or directory"}}
    > {"id":1,"result":null}
    "#);
}

#[test]
fn what_is_not_known_is_answered_or_counted_and_never_fatal() {
    let mut play = Play::prompted(&ask());
    play.hear(r#"{"id":7,"method":"terminal/create","params":{}}"#);
    play.hear(r#"{"method":"_auth/status_update","params":{"x":1}}"#);
    play.hear(r#"{"method":"news","params":{}}"#);
    play.hear(r#"{"jsonrpc":"2.0"}"#).hear("garbage").hear("[1]").hear("");
    play.update(json!({ "sessionUpdate": "dance" }));
    play.hear(r#"{"method":"session/update","params":{"sessionId":"other","update":{}}}"#);
    insta::assert_snapshot!(play.seen(), @r#"
    {"event":"notice","text":"the agent requested terminal/create, which is not supported"}
    > {"id":7,"error":{"code":-32601,"message":"Method not found"}}
    {"event":"notice","text":"garbage"}
    {"event":"notice","text":"[1]"}
    "#);
    play.says("ok").stops(3, "end_turn");
    play.hear(&permission("edit"));
    assert!(play.seen().ends_with("after its turn was over\"}"));
    let ending = play.finish(ExitFacts::code(0));
    assert_eq!(ending.odd, OddLines { malformed: 3, unknown: 3, cut: 0 });
}

#[test]
fn a_line_that_was_cut_is_answered_if_somebody_waits() {
    let mut play = Play::prompted(&ask());
    let long =
        format!(r#"{{"id":5,"method":"fs/write_text_file","params":{{"x":"{}"#, "a".repeat(99));
    let heard = play.turn.line(OutputStream::Out, &long, true);
    play.note(heard);
    insta::assert_snapshot!(play.seen(), @r#"
    {"event":"notice","text":"the agent requested fs/write_text_file in a line that is too long"}
    > {"id":5,"error":{"code":-32603,"message":"the request is too long"}}
    "#);
    let update = r#"{"method":"session/update","params":{"update":{"content":{"text":"aaaa"#;
    assert_eq!(play.turn.line(OutputStream::Out, update, true), HeardLine::default());
    let heard = play.turn.line(OutputStream::Out, r#"{"id":3,"result":{"_meta":"aaaa"#, true);
    play.note(heard);
    assert!(play.seen().ends_with("> Close"));
    let ending = play.finish(ExitFacts::code(0));
    assert_eq!(ending.outcome, AgentOutcome::broke(Cause::Other, "the reply was too long to read"));
    assert_eq!(ending.odd.cut, 3);
}

#[test]
fn an_end_without_a_result_is_judged_by_the_process() {
    let ended = |exit: ExitFacts, words: &str| {
        let mut play = Play::prompted(&ask());
        play.turn.line(OutputStream::Err, words, false);
        play.finish(exit).outcome
    };
    let crash = ended(ExitFacts::code(1), "TypeError: x");
    assert_eq!(
        crash,
        AgentOutcome::broke(Cause::Crash, "the agent exited with code 1: TypeError: x")
    );
    assert!(matches!(
        ended(ExitFacts::code(0), ""),
        AgentOutcome::Broke { cause: Cause::Empty, .. }
    ));
    let timed_out = ExitFacts { timed_out: true, ..ExitFacts::signal(9) };
    assert!(matches!(ended(timed_out, ""), AgentOutcome::Broke { cause: Cause::TimedOut, .. }));
    assert!(matches!(ended(ExitFacts::code(1), "401 Unauthorized"), AgentOutcome::Auth { .. }));
    let mut unknown = Play::begin(&ask());
    unknown.turn.line(OutputStream::Err, "unknown option --acp", false);
    let outcome = unknown.finish(ExitFacts::code(2)).outcome;
    assert!(matches!(outcome, AgentOutcome::Broke { cause: Cause::Startup, .. }));
}

#[test]
fn another_version_of_the_protocol_is_refused() {
    let mut play = Play::begin(&ask());
    play.hear(r#"{"id":1,"result":{"protocolVersion":2}}"#);
    assert!(play.seen().contains("the agent speaks version 2"));
}

#[test]
fn a_cost_is_told_when_it_rises() {
    let mut play = Play::prompted(&ask());
    let cost = |amount: f64| {
        json!({ "sessionUpdate": "usage_update", "used": 120, "size": 1000,
            "cost": { "amount": amount, "currency": "USD" } })
    };
    play.update(cost(0.01)).update(cost(0.01)).update(cost(0.02)).says("ok").stops(3, "end_turn");
    insta::assert_snapshot!(play.seen(), @r#"
    {"event":"usage","tokens":{"input":120,"output":0,"cached":0},"tokens_scope":"run","cost_usd":0.01,"cost_scope":"session","is_partial":true}
    {"event":"usage","tokens":{"input":120,"output":0,"cached":0},"tokens_scope":"run","cost_usd":0.02,"cost_scope":"session","is_partial":true}
    {"event":"text","text":"ok"}
    {"event":"usage","tokens":{"input":120,"output":0,"cached":0},"tokens_scope":"run","cost_usd":0.02,"cost_scope":"session","is_partial":true}
    {"event":"result","ok":true,"text":"ok"}
    > Close
    "#);
}

#[test]
fn an_addition_to_the_system_prompt_is_said_once_at_the_start_of_a_session() {
    let first = LaunchRequest { system_prompt: Some("Be brief.".into()), ..ask() };
    let mut play = Play::begin(&first);
    play.hear(CAN_LOAD).hear(NEW);
    assert!(play.seen().contains(r#""text":"Be brief.\n\ndo it""#));
    let again = LaunchRequest { session: Some("s1".into()), ..first };
    let mut play = Play::begin(&again);
    play.hear(CAN_LOAD).hear(r#"{"id":2,"result":null}"#);
    assert!(!play.seen().contains("Be brief."));
}
