//! Watching an agent at work and speaking to it, from another process.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::plan;
use autopilot_testkit::stage::{APPROVES, Stage, files, text};
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
    stage
        .run(&["attach", "say-done", "--message", "add a line"])
        .expect(0)
        .says(&["the message was delivered"]);
    run.wait().expect(0);
    let events = stage.texts_of("build/events.jsonl");
    assert!(events.contains(r#"{"event":"steer","text":"add a line"}"#), "{events}");
    let shown = stage.run(&["show", "say-done"]).expect(0);
    shown.says(&["a person sent its agent a message"]);
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
    ended.says(&[
        "I begin.",
        "received a message: add a line",
        "the message was delivered",
        "say-done: DONE",
    ]);
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
    deaf.says(&["doesn't accept messages while it works"]);
    stage
        .run(&["attach", "say-nothing", "-m", "hello"])
        .expect(64)
        .says(&["no task `say-nothing`"]);
    stage.run(&["attach", "say-done", "-m", " "]).expect(64);
    // Whoever only watches is told before anything is typed.
    let watching = stage.start_command(stage.command(&["attach", "say-done"]));
    stage.wait_until("it is said", |_| {
        watching.err().contains("(script: it can't receive messages")
    });
    fs::write(&gate, "").unwrap();
    run.wait().expect(0);
    watching.wait().expect(0).says(&["say-done: DONE"]);
}

/// Its turn hears its prompt and nothing after it.
const CODEX: &str = r#"#!/bin/sh
cat > /dev/null
echo '{"type":"thread.started","thread_id":"0199bbbb-2222-7000-8000-000000000000"}'
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":"I begin."}}'
while [ ! -e GATE ]; do sleep 0.1; done
echo done >> app.txt
echo '{"type":"item.completed","item":{"id":"i2","type":"agent_message","text":"{\"changed_files\":[\"app.txt\"],\"notes\":\"x\"}"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'
"#;

#[test]
fn codex_can_not_be_spoken_to_and_whoever_tries_hears_so_at_once() {
    let stage = listening();
    let gate = stage.folder().join("gate");
    stage.write_program("codex", &CODEX.replace("GATE", &text(&gate)));
    let config = stage.read(".autopilot/config.yml");
    let claude = "mode: claude_code_cli, executable: ./listens";
    stage.write(
        ".autopilot/config.yml",
        &config.replace(claude, "mode: codex_cli, executable: ./codex"),
    );
    let run = stage.start(&["run", "tasks/say-done.md"]);
    begins(&stage);
    for asked in [&["-m", "add a line"][..], &["--interrupt"]] {
        let deaf = stage.run(&[&["attach", "say-done"], asked].concat()).expect(10);
        deaf.says(&[
            "the message was not delivered",
            "this agent doesn't accept messages while it works",
        ]);
    }
    // Whoever only watches learns which kind it is.
    let watching = stage.start_command(stage.command(&["attach", "say-done"]));
    stage.wait_until("it is said", |_| watching.err().contains("(codex_cli: it can't receive"));
    fs::write(&gate, "").unwrap();
    run.wait().expect(0).says(&["DONE"]);
    watching.wait().expect(0);
    assert!(!stage.texts_of("build/events.jsonl").contains("steer"), "nothing was told");
}

#[test]
fn the_run_itself_is_watched_only_while_it_has_a_planner() {
    let stage = Stage::new(BINARY);
    let gate = stage.folder().join("gate");
    let waits = format!("run: \"while [ ! -e {} ]; do sleep 0.1; done\"", text(&gate));
    let builds = format!("\n- step: build\n  do: [{{ say: I begin. }}, {{ {waits} }}]\n");
    stage.agents(&[&builds, APPROVES]);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    begins(&stage);
    let none = stage.run(&["attach", "run"]).expect(64);
    none.says(&["has no planner: it is a task run", "autopilot attach <task>"]);
    stage.run(&["stop", "--now"]);
    run.wait();

    let one = plan::plan(&[plan::task("one", &[])]);
    let stage = plan::stage(BINARY, &one);
    let (thinks, works) = (stage.folder().join("thinks"), stage.folder().join("works"));
    let until = |path: &std::path::Path| {
        format!("run: \"while [ ! -e {} ]; do sleep 0.1; done\"", text(path))
    };
    let planner =
        plan::says(&one).replacen("do: [", &format!("do: [{{ {} }}, ", until(&thinks)), 1);
    assert!(planner.contains("thinks"), "{planner}");
    let builder =
        format!("\n- step: build\n  do: [{{ say: I begin. }}, {{ {} }}]\n", until(&works));
    stage.agents(&[&planner, &builder, APPROVES]);
    let run = stage.start(&plan::RUN);
    stage.wait_until("the planner is asked", |stage| !stage.texts_of("-plan/prompt").is_empty());
    let watching = stage.start_command(stage.command(&["attach", "run"]));
    stage.wait_until("it is watched", |_| watching.err().contains("-plan (script:"));
    fs::write(&thinks, "").unwrap();
    watching.wait().expect(0).says(&["the planner of run", "has done its work"]);
    begins(&stage);
    stage.run(&["attach", "run"]).expect(64).says(&["has done its work"]);
    stage.run(&["stop", "--now"]);
    run.wait();
}

/// Messages and answers that were left behind.
fn left_in_inbox(stage: &Stage) -> Vec<String> {
    let files = files(&stage.state()).into_iter();
    let files = files.filter(|path| path.parent().is_some_and(|dir| dir.ends_with("inbox")));
    files.map(text).collect()
}

#[test]
fn what_is_asked_of_a_running_process_is_answered_when_it_is_heard() {
    let mut stage = listening();
    // Whatever is answered was heard when it came: the next look would be too late.
    stage.set("AUTOPILOT_LOOK_MS", "600000");
    let run = stage.start(&["run", "tasks/say-done.md"]);
    begins(&stage);
    let at_work = stage.run(&["retry", "say-done"]).expect(64);
    at_work.says(&["task `say-done` has not failed; there is nothing to retry"]);
    let unknown = stage.run(&["skip", "say-dont"]).expect(64);
    unknown.says(&["there is no task `say-dont`", "did you mean `say-done`?", "its tasks are"]);
    stage.run(&["approve"]).expect(64).says(&["nothing is waiting", "autopilot status"]);
    stage.run(&["skip", ""]).expect(64).says(&["the run itself can't be skipped"]);
    assert_eq!(left_in_inbox(&stage), [""; 0]);
    let skipped = stage.run(&["skip", "say-done", "--json"]).expect(0);
    let answer: serde_json::Value = serde_json::from_str(&skipped.out).unwrap();
    assert_eq!(answer["changed"], true, "{answer}");
    assert_eq!(answer["answer"], "skipped task `say-done`");
    run.wait().expect(0);
    // With nobody at work it is said by whoever asks, and nothing is begun.
    stage.run(&["skip", "say-done"]).expect(0).says(&["task `say-done` is already skipped"]);
    stage.run(&["retry", "nobody"]).expect(64).says(&["there is no task `nobody`"]);
    assert_eq!(left_in_inbox(&stage), [""; 0]);
}

#[test]
fn a_message_that_is_not_for_this_run_or_can_not_be_read_is_answered_with_what_is_wrong() {
    let stage = listening();
    let run = stage.start(&["run", "tasks/say-done.md"]);
    begins(&stage);
    let inbox = || {
        files(&stage.state()).iter().find_map(|path| {
            let dir = path.parent()?;
            dir.join("inbox").is_dir().then(|| dir.join("inbox"))
        })
    };
    let inbox = inbox().unwrap();
    let answer_to = |name: &str, message: &str| {
        let put = inbox.join(format!("{name}.put"));
        fs::write(&put, message).unwrap();
        fs::rename(&put, inbox.join(format!("{name}.json"))).unwrap();
        let answer = inbox.join(format!("{name}.answer"));
        stage.wait_until("it is answered", |_| answer.exists());
        assert!(!inbox.join(format!("{name}.json")).exists());
        fs::read_to_string(answer).unwrap()
    };
    let answer = answer_to("1", r#"{"run":"other","request":{"interrupt":{"task":"run"}}}"#);
    assert!(answer.contains(r#""asked":"other""#), "{answer}");
    let answer = answer_to("2", "{ not json");
    assert!(answer.contains("unreadable"), "{answer}");
    stage.run(&["stop", "--now"]).expect(0);
    run.wait().expect(2);
}
