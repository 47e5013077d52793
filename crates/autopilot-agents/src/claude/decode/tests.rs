//! Tests of the decoder of Claude Code.

use super::*;
use crate::launch::LaunchRequest;

fn conversation() -> ClaudeConversation {
    ClaudeConversation::new(LaunchRequest::new("build it", "/slot".into()))
}

fn say(conversation: &mut ClaudeConversation, event: Value) -> HeardLine {
    conversation.line(OutputStream::Out, &event.to_string(), false)
}

fn said(heard: &HeardLine) -> Vec<Value> {
    let line = |act: &Act| match act {
        Act::Say(line) => Some(serde_json::from_str(line).unwrap()),
        Act::Close | Act::ReadFile { .. } | Act::WriteFile { .. } => None,
    };
    heard.acts.iter().filter_map(line).collect()
}

fn result(tokens: u64) -> Value {
    json!({
        "type": "result", "subtype": "success", "is_error": false, "result": "done",
        "session_id": "s", "usage": { "input_tokens": tokens },
    })
}

#[test]
fn the_prompt_is_a_line_and_the_result_closes_the_talk() {
    let mut talk = conversation();
    let first = said(&talk.begin());
    assert_eq!(first[0]["request"]["subtype"], "initialize");
    assert_eq!(first[1]["message"]["content"], "build it");
    assert_eq!(say(&mut talk, result(5)).acts, [Act::Close]);
    assert_eq!(talk.wish(AgentMessage::Message("too late".into())), Err(Deaf::Over));
}

#[test]
fn it_is_answered_when_it_asks_for_a_tool() {
    let mut talk = conversation();
    let ask = |tool: &str| {
        json!({
            "type": "control_request", "request_id": "r1",
            "request": { "subtype": "can_use_tool", "tool_name": tool, "input": { "a": 1 } },
        })
    };
    let heard = say(&mut talk, ask("Grep"));
    let answer = &said(&heard)[0]["response"];
    assert_eq!(answer["request_id"], "r1");
    assert_eq!(answer["response"], json!({ "behavior": "allow", "updatedInput": { "a": 1 } }));
    assert!(matches!(&heard.events[..], [AgentEvent::Permission { granted: true, .. }]));
    let heard = say(&mut talk, ask("AskUserQuestion"));
    assert_eq!(said(&heard)[0]["response"]["response"]["behavior"], "deny");
    let other = json!({
        "type": "control_request", "request_id": "r2", "request": { "subtype": "hook" },
    });
    assert_eq!(said(&say(&mut talk, other))[0]["response"]["subtype"], "error");
}

#[test]
fn the_talk_stays_open_until_what_a_person_said_was_taken_up() {
    let mut talk = conversation();
    let told = talk.wish(AgentMessage::Message("tests too".into())).unwrap();
    assert_eq!(said(&told)[0]["message"]["content"], "tests too");
    assert_eq!(told.events, [AgentEvent::Steer { text: "tests too".into() }]);
    assert_eq!(say(&mut talk, result(5)).acts, []);
    let echo = json!({ "type": "user", "message": { "content": "tests too" } });
    say(&mut talk, echo);
    assert_eq!(say(&mut talk, result(7)).acts, [Act::Close]);
    // Each turn counts its own tokens.
    let usage = Box::new(talk).finish(ExitFacts::code(0)).usage.unwrap();
    assert_eq!(usage.tokens.input, 12);
}

#[test]
fn an_interrupt_is_a_request_of_its_own() {
    let heard = conversation().wish(AgentMessage::Interrupt).unwrap();
    assert_eq!(said(&heard)[0]["request"]["subtype"], "interrupt");
}

#[test]
fn who_is_asked_to_stop_when_its_time_is_over_has_timed_out_and_tells_its_cost() {
    let aborted = json!({
        "type": "result", "subtype": "error_during_execution", "is_error": true,
        "session_id": "s", "terminal_reason": "aborted_streaming", "total_cost_usd": 0.5,
    });
    let ended = |exit: ExitFacts, retries: bool| {
        let mut talk = conversation();
        say(&mut talk, init());
        if retries {
            say(&mut talk, json!({ "type": "system", "subtype": "api_retry", "attempt": 1 }));
        }
        say(&mut talk, aborted.clone());
        Box::new(talk).finish(exit)
    };
    let late = ExitFacts { timed_out: true, ..ExitFacts::code(0) };
    let ending = ended(late, false);
    assert!(matches!(ending.outcome, AgentOutcome::Broke { cause: Cause::TimedOut, .. }));
    assert_eq!(ending.usage.unwrap().cost_usd, Some(0.5));
    assert!(matches!(ended(late, true).outcome, AgentOutcome::Outage { .. }));
    assert_eq!(ended(ExitFacts::code(0), false).outcome, AgentOutcome::Interrupted);
}

fn init() -> Value {
    json!({ "type": "system", "subtype": "init", "session_id": "s" })
}

#[test]
fn a_turn_that_a_person_began_and_that_dies_is_no_success_of_the_one_before() {
    let mut talk = conversation();
    say(&mut talk, init());
    talk.wish(AgentMessage::Message("and X".into())).unwrap();
    say(&mut talk, result(5));
    say(&mut talk, json!({ "type": "user", "message": { "content": "and X" } }));
    let ending = Box::new(talk).finish(ExitFacts::signal(9));
    assert!(matches!(ending.outcome, AgentOutcome::Broke { cause: Cause::Crash, .. }));
}

#[test]
fn a_success_in_the_name_of_a_process_that_was_killed_is_none() {
    let ended = |exit: ExitFacts, with_init: bool| {
        let mut talk = conversation();
        if with_init {
            say(&mut talk, init());
        }
        say(&mut talk, result(5));
        Box::new(talk).finish(exit).outcome
    };
    assert_eq!(ended(ExitFacts::code(0), true), AgentOutcome::Success);
    let lingered = ExitFacts { lingered: true, ..ExitFacts::signal(15) };
    assert_eq!(ended(lingered, true), AgentOutcome::Success);
    for exit in [ExitFacts::signal(9), ExitFacts::code(139), ExitFacts::signal(15)] {
        assert!(matches!(ended(exit, true), AgentOutcome::Broke { .. }), "{exit:?}");
    }
    assert!(matches!(ended(ExitFacts::code(0), false), AgentOutcome::Broke { .. }));
}

#[test]
fn what_comes_after_the_result_changes_nothing() {
    let mut talk = conversation();
    say(&mut talk, init());
    let failed = json!({
        "type": "result", "subtype": "error_during_execution", "is_error": true,
        "session_id": "s", "errors": ["no"],
    });
    say(&mut talk, failed);
    say(&mut talk, result(5));
    let ending = Box::new(talk).finish(ExitFacts::code(0));
    assert!(matches!(ending.outcome, AgentOutcome::Broke { .. }), "{:?}", ending.outcome);
}

#[test]
fn a_stranger_that_takes_the_old_name_again_is_still_one() {
    let ask = LaunchRequest {
        session: Some("old".into()),
        ..LaunchRequest::new("go on", "/slot".into())
    };
    let mut talk = ClaudeConversation::new(ask);
    say(&mut talk, init());
    let mut last = result(5);
    last["session_id"] = json!("old");
    say(&mut talk, last);
    let ending = Box::new(talk).finish(ExitFacts::code(0));
    assert!(matches!(ending.outcome, AgentOutcome::Broke { cause: Cause::Session, .. }));
}
