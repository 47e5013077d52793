//! Turns of a real agent of the Agent Client Protocol, and the events and ending of each.
//!
//! A transcript is the agent's stdout: opencode 1.18.33 and a scripted model, recorded by the tests
//! of the testkit (`AUTOPILOT_TRANSCRIPTS`), with long lists of models and commands shortened.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "tests fail by panicking, and what is not named is printed as it is"
)]

use autopilot_agents::{
    Access, Act, Agent, AgentEnding, AgentEvent, AgentMessage, AgentOutcome, AgentSettings,
    Conversation, ExitFacts, HeardLine, LaunchRequest, OutputStream, Scope,
};
use autopilot_core::config::Mode;
use proptest::prelude::*;

macro_rules! transcript {
    ($name:literal) => {
        include_str!(concat!("transcripts/acp-", $name, ".jsonl"))
    };
}

const ALL: &[&str] = &[
    transcript!("auth"),
    transcript!("cancelled"),
    transcript!("forked"),
    transcript!("gone"),
    transcript!("loaded"),
    transcript!("no-model"),
    transcript!("priced"),
    transcript!("refused"),
    transcript!("steered"),
    transcript!("unknown-session"),
    transcript!("unpriced"),
];

fn ask() -> LaunchRequest {
    LaunchRequest::new("do it", "/slot".into())
}

fn conversation(ask: &LaunchRequest) -> Box<dyn Conversation> {
    let settings =
        AgentSettings { mode: Mode::Acp, command: Some("x"), ..AgentSettings::default() };
    Agent::new(settings).unwrap().conversation(ask.clone())
}

/// The events and our replies, with `wish` sent before the line of that number.
fn play(
    ask: &LaunchRequest,
    transcript: &str,
    wish: Option<(usize, AgentMessage)>,
) -> (String, AgentEnding) {
    let mut turn = conversation(ask);
    let mut seen = Vec::new();
    let mut note = |heard: HeardLine| {
        seen.extend(heard.events.iter().map(|event| match event {
            AgentEvent::Session { .. } => "session".to_owned(),
            event => serde_json::to_string(event).unwrap(),
        }));
        seen.extend(heard.acts.iter().map(|act| match act {
            Act::Say(line) => {
                let said: serde_json::Value = serde_json::from_str(line).unwrap();
                let what = said["method"].as_str().map_or(said["result"].to_string(), String::from);
                format!("> {what}")
            }
            other => format!("> {other:?}"),
        }));
    };
    note(turn.begin());
    for (number, line) in transcript.lines().enumerate() {
        if let Some((_, wish)) = wish.as_ref().filter(|(at, _)| *at == number) {
            note(turn.wish(wish.clone()).unwrap());
        }
        note(turn.line(OutputStream::Out, line, false));
    }
    (seen.join("\n"), turn.finish(ExitFacts::code(0)))
}

fn outcome(ask: &LaunchRequest, transcript: &str) -> AgentOutcome {
    play(ask, transcript, None).1.outcome
}

#[test]
fn a_reader_that_wants_to_write() {
    let reader = LaunchRequest { access: Access::Read, ..ask() };
    let (seen, ending) = play(&reader, transcript!("refused"), None);
    insta::assert_snapshot!(seen, @r#"
    > initialize
    > session/new
    session
    > session/prompt
    {"event":"tool_call","id":"call_t0_6605d18afc21702_0","name":"write","summary":"new.txt"}
    {"event":"permission","tool":"write","granted":false,"reason":"this step is read-only; write is not allowed (/slot/new.txt)"}
    > {"outcome":{"outcome":"selected","optionId":"reject"}}
    {"event":"tool_result","id":"call_t0_6605d18afc21702_0","ok":false,"summary":"The user rejected permission to use this specific tool call."}
    {"event":"usage","tokens":{"input":100,"output":20,"cached":0},"tokens_scope":"run","cost_usd":null,"cost_scope":"session","is_partial":true}
    {"event":"result","ok":true,"text":""}
    > Close
    "#);
    assert_eq!(ending.outcome, AgentOutcome::Success);
}

/// A turn of four calls that read 1,000, 2,000, 3,000 and 4,000 tokens, 500 of each from a cache, and
/// write 100: at 1, 0.1 and 10 dollars for a million of each that is 0.0122 dollars.
#[test]
fn a_turn_of_several_calls_costs_what_all_of_them_cost() {
    let usage = play(&ask(), transcript!("priced"), None).1.usage.unwrap();
    assert_eq!((usage.cost_usd, usage.cost_scope), (Some(0.0122), Scope::Session));
    assert!(usage.is_partial, "the tokens that it tells are those of the last call: {usage:?}");
    let usage = play(&ask(), transcript!("unpriced"), None).1.usage.unwrap();
    assert_eq!(usage.cost_usd, None, "an agent that knows no price says that it costs nothing");
    assert!(usage.is_partial && usage.tokens.input == 4000, "{usage:?}");
}

#[test]
fn a_turn_that_is_cancelled() {
    let (seen, ending) = play(&ask(), transcript!("cancelled"), Some((3, AgentMessage::Interrupt)));
    insta::assert_snapshot!(seen, @r#"
    > initialize
    > session/new
    session
    > session/prompt
    > session/cancel
    {"event":"result","ok":false,"text":"the agent was interrupted"}
    > Close
    "#);
    assert_eq!(ending.outcome, AgentOutcome::Interrupted);
}

#[test]
fn a_turn_that_a_message_leads_elsewhere() {
    let message = AgentMessage::Message("the other thing".into());
    let (seen, ending) = play(&ask(), transcript!("steered"), Some((3, message)));
    insta::assert_snapshot!(seen, @r#"
    > initialize
    > session/new
    session
    > session/prompt
    {"event":"steer","text":"the other thing"}
    > session/cancel
    > session/prompt
    {"event":"tool_call","id":"call_t0_6605d15eee43305_0","name":"write","summary":"instead.txt"}
    {"event":"tool_result","id":"call_t0_6605d15eee43305_0","ok":true,"summary":"Wrote file successfully."}
    {"event":"file_change","path":"instead.txt","kind":"added"}
    {"event":"text","text":"All done."}
    {"event":"usage","tokens":{"input":100,"output":20,"cached":0},"tokens_scope":"run","cost_usd":null,"cost_scope":"session","is_partial":true}
    {"event":"result","ok":true,"text":"All done."}
    > Close
    "#);
    assert_eq!((ending.outcome, ending.answer.as_str()), (AgentOutcome::Success, "All done."));
}

#[test]
fn a_session_that_is_taken_up() {
    let text = transcript!("loaded");
    let (_, rest) = text.split_once("\"sessionId\":\"").unwrap();
    let (session, _) = rest.split_once('"').unwrap();
    let again = LaunchRequest { session: Some(session.into()), ..ask() };
    let (seen, ending) = play(&again, text, None);
    insta::assert_snapshot!(seen, @r#"
    > initialize
    > session/load
    session
    > session/prompt
    {"event":"text","text":"It was a banana."}
    {"event":"usage","tokens":{"input":100,"output":20,"cached":0},"tokens_scope":"run","cost_usd":null,"cost_scope":"session"}
    {"event":"result","ok":true,"text":"It was a banana."}
    > Close
    "#);
    assert_eq!(ending.session.as_deref(), Some(session));
}

#[test]
fn what_goes_wrong() {
    let gone = LaunchRequest { session: Some("ses_gone".into()), ..ask() };
    let other = LaunchRequest { model: Some("scripted/none".into()), ..ask() };
    let outcomes = [
        outcome(&gone, transcript!("unknown-session")),
        outcome(&other, transcript!("no-model")),
        outcome(&ask(), transcript!("auth")),
        outcome(&ask(), transcript!("gone")),
    ];
    insta::assert_snapshot!(outcomes.map(|outcome| format!("{outcome:?}")).join("\n"), @r#"
    Broke { cause: Session, why: "Internal error: OpenCode service failure" }
    Broke { cause: Model, why: "the agent does not offer the model scripted/none; it offers scripted/model, opencode/big-pickle" }
    Auth { why: "Internal error: Incorrect API key provided: x." }
    Broke { cause: Model, why: "Internal error: The model `x` does not exist or you do not have access to it." }
    "#);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_said_the_turn_ends_and_nothing_panics(
        picks in prop::collection::vec((0..ALL.len(), 0..20_usize, 0..4_u8, any::<u16>()), 0..40),
    ) {
        let mut turn = conversation(&LaunchRequest { fs: true, session: Some("s".into()), ..ask() });
        turn.begin();
        for (file, line, how, at) in picks {
            let lines: Vec<&str> = ALL[file].lines().collect();
            let line = lines[line % lines.len()];
            let cut = line.floor_char_boundary(usize::from(at) % (line.len() + 1));
            match how {
                0 => drop(turn.line(OutputStream::Out, line, false)),
                1 => drop(turn.line(OutputStream::Out, &line[..cut], true)),
                2 => drop(turn.line(OutputStream::Out, &line[cut..], false)),
                _ => drop(turn.wish(AgentMessage::Message("m".into()))),
            }
        }
        let ending = turn.finish(ExitFacts::code(0));
        prop_assert!(ending.answer.len() < 1 << 20);
    }
}
