//! Watching an agent at work and speaking to it, from another process.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, Stage, text};
use std::fs;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");

/// An agent that speaks like Claude Code, works until it is told something, and does as told.
const LISTENS: &str = r#"#!/bin/sh
say() { echo "$1"; }
read hello
read prompt
say '{"type":"system","subtype":"init","session_id":"s-1","model":"m"}'
say '{"type":"assistant","session_id":"s-1","message":{"content":[{"type":"text","text":"I begin."}]}}'
read told
echo "$told" > "$TMPDIR/told.json"
case "$told" in
  *interrupt*) say '{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools","session_id":"s-1","errors":["stopped"]}'; exit 1 ;;
esac
say '{"type":"user","session_id":"s-1","message":{"role":"user","content":"add a line"}}'
echo done >> app.txt
say '{"type":"result","subtype":"success","is_error":false,"session_id":"s-1","total_cost_usd":0.01,"usage":{"input_tokens":1,"output_tokens":1},"result":"{\"changed_files\":[\"app.txt\"],\"notes\":\"as told\"}"}'
"#;

fn listening() -> Stage {
    let stage = Stage::new(BINARY);
    stage.write_program("listens", LISTENS);
    stage.agents(&[APPROVES]);
    let config = stage.read(".autopilot/config.yml");
    let builder = "builder: { mode: script, script: agents.yml }";
    assert!(config.contains(builder));
    let ours = "builder: { mode: claude_code_cli, executable: ./listens }";
    stage.write(".autopilot/config.yml", &config.replace(builder, ours));
    stage
}

fn begins(stage: &Stage) {
    stage
        .wait_until("the agent begins", |stage| stage.texts_of("events.jsonl").contains("I begin"));
}

#[test]
fn a_message_reaches_the_agent_that_works_and_is_kept_with_what_it_did() {
    let stage = listening();
    let run = stage.start(&["run", "tasks/say-done.md"]);
    begins(&stage);
    stage.run(&["attach", "say-done", "--message", "add a line"]).expect(0).says(&["it was told"]);
    run.wait().expect(0);
    let events = stage.texts_of("build/events.jsonl");
    assert!(events.contains(r#"{"event":"steer","text":"add a line"}"#), "{events}");
    let shown = stage.run(&["show", "say-done"]).expect(0);
    shown.says(&["a person spoke to its agent while it worked"]);
    // It is over: nobody is there to be told.
    let late = stage.run(&["attach", "say-done", "--message", "and more"]).expect(64);
    late.says(&["no process works on run"]);
}

#[test]
fn whoever_watches_sees_it_live_and_may_type() {
    let stage = listening();
    let run = stage.start(&["run", "tasks/say-done.md"]);
    begins(&stage);
    let typed = stage.folder().join("typed");
    fs::write(&typed, "add a line\n").unwrap();
    let mut attach = stage.command(&["attach", "say-done"]);
    attach.stdin(fs::File::open(&typed).unwrap());
    let watching = stage.start_command(attach);
    run.wait().expect(0);
    let ended = watching.wait().expect(0);
    ended.says(&["I begin.", "was told: add a line", "it was told", "say-done: DONE"]);
}

#[test]
fn an_interrupt_ends_the_turn_and_nothing_is_done() {
    let stage = listening();
    let run = stage.start(&["run", "tasks/say-done.md"]);
    begins(&stage);
    stage.run(&["attach", "say-done", "--interrupt"]).expect(0);
    stage.wait_until("it ended", |stage| {
        stage.texts_of("build/metadata.json").contains("interrupted")
    });
    stage.run(&["stop", "--now"]);
    run.wait();
}

#[test]
fn an_agent_that_listens_to_nobody_and_a_task_that_is_not_there_are_said() {
    let stage = Stage::new(BINARY);
    let gate = stage.folder().join("gate");
    let waits = format!(
        "
- step: build
  do:
    - say: I begin.
    - run: \"while [ ! -e {} ]; do sleep 0.1; done\"
    - append: {{ app.txt: \"done\\n\" }}
    - answer: {{ changed_files: [app.txt], notes: wrote it }}
",
        text(&gate)
    );
    stage.agents(&[&waits, APPROVES]);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    begins(&stage);
    let deaf = stage.run(&["attach", "say-done", "-m", "hello"]).expect(10);
    deaf.says(&["can't be spoken to while it works"]);
    stage
        .run(&["attach", "say-nothing", "-m", "hello"])
        .expect(64)
        .says(&["no task `say-nothing`"]);
    stage.run(&["attach", "say-done", "-m", " "]).expect(64);
    fs::write(&gate, "").unwrap();
    run.wait().expect(0);
}
