//! The builder's conversation: kept from the moment it opens, continued by whoever tries again or
//! repairs, and replaced when it can't be. The real binary, git, `claude` and `codex`, against the
//! scripted model.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::model::{Call, Fault, Rule, Script, Times, Turn};
use autopilot_testkit::real::Real;
use autopilot_testkit::stage::{Stage, files, text};
use serde_json::{Value, json};
use std::fs;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
const TASK: [&str; 2] = ["run", "tasks/say-done.md"];
const BUILD: &str = "You implement one task";
const WHOLE_FIX: &str = "Your work on one task was checked and is not done";
const CONTINUED_FIX: &str = "Your work on this task was checked and is not done";
const CONTINUED_BUILD: &str = "ended before the task was done";
const WAITS: &str = "timeout 600 tail -f /dev/null";

fn summary() -> Turn {
    let said = json!({ "changed_files": ["app.txt"], "tests_ran": false, "notes": "written" });
    Turn::say(&said.to_string())
}

fn shell(command: &str) -> Turn {
    Turn::call(Call::shell(command))
}

/// A reviewer that approves, and writes acceptance cases.
fn reviewed(script: Script) -> Script {
    let verdict = json!({ "verdict": "APPROVE", "summary": "looks fine to me", "issues": [], "accepted_tests": [] });
    script
        .when("You review one change", [Turn::answer(verdict)])
        .when("You write user acceptance test cases", [Turn::say("# Cases\n\nLook at it.\n")])
}

fn mends() -> [Turn; 2] {
    [shell("printf 'start\\ndone\\n' > app.txt"), summary()]
}

/// A build that breaks the tests, and a repair in the same or in another session.
fn breaks_then_mends() -> Script {
    let script = Script::new()
        .when(CONTINUED_FIX, mends())
        .when(WHOLE_FIX, mends())
        .when(BUILD, [shell("echo broken >> app.txt"), summary()]);
    reviewed(script)
}

/// A build that does its work and then waits, and goes on when it is asked to.
fn works_then_waits() -> Script {
    let script = Script::new()
        .when("what did you do", [Turn::say("I wrote a line.")])
        .when(CONTINUED_BUILD, [summary()])
        .when(BUILD, [shell("echo done >> app.txt"), shell(WAITS), summary()]);
    reviewed(script)
}

fn real(script: Script, more: &str) -> Real {
    Real::new(BINARY, script, &format!("commands: {{ tests: sh test.sh }}\n{more}"))
}

/// The same with `codex` as the builder.
fn real_codex(script: Script) -> Real {
    let real = real(script, "");
    let config = real.stage.read(".autopilot/config.yml");
    let line = |start: &str| config.lines().find(|line| line.starts_with(start)).unwrap();
    let codex = line("reviewer:").replace("reviewer:", "builder:");
    real.stage.write(".autopilot/config.yml", &config.replace(line("builder:"), &codex));
    real
}

fn metadata(stage: &Stage, part: &str) -> Vec<Value> {
    let read = |path: &std::path::PathBuf| {
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    stage.views(&format!("{part}/metadata.json")).iter().map(read).collect()
}

fn prompts(stage: &Stage, part: &str) -> Vec<String> {
    let paths = stage.views(&format!("{part}/prompt.txt"));
    paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

fn sessions(stage: &Stage) -> Value {
    serde_json::from_str(&stage.run(&["sessions", "--json"]).expect(0).out).unwrap()
}

fn result(stage: &Stage) -> String {
    stage.git(&["show", "autopilot/say-done:app.txt"]).trim().to_owned()
}

/// The repair is in the session of the build, and is sent only what is new.
fn repairs_in_its_session(real: &Real) {
    let stage = &real.stage;
    stage.run(&TASK).expect(0).says(&["DONE"]);
    assert_eq!(result(stage), "start\ndone");
    let (built, fixed) = (metadata(stage, "-build"), metadata(stage, "-fix"));
    assert_eq!((built.len(), fixed.len()), (1, 1));
    let session = built[0]["session"].as_str().unwrap();
    assert_eq!((&fixed[0]["resumed"], &fixed[0]["session"]), (&json!(session), &json!(session)));
    let asked = prompts(stage, "-fix").remove(0);
    for part in [
        "Since your last turn",
        "as you left them",
        "Checks that failed",
        "sh test.sh",
        "Last review",
        "looks fine to me",
        "State of the repository",
    ] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    assert!(!asked.contains("app.txt says done"), "the task is known: {asked}");
    assert!(asked.len() < prompts(stage, "-build")[0].len(), "{asked}");
    // The model sees the whole conversation.
    let of_fix = |body: &str| body.contains(CONTINUED_FIX);
    let sent = real.server.requests().into_iter().map(|request| request.body.to_string());
    let sent: Vec<String> = sent.filter(|body| of_fix(body)).collect();
    assert!(!sent.is_empty() && sent.iter().all(|body| body.contains(BUILD)), "{}", sent.len());
    // Whoever judges never continues anything.
    assert!(metadata(stage, "-review").iter().all(|review| review["resumed"].is_null()));
    stage.run(&["show", "say-done"]).expect(0).says(&[&format!("continued session {session}")]);
    stage.run(&["logs", "say-done"]).expect(0).says(&["continued session"]);
    stage.run(&["runs", "--stats"]).expect(0).says(&["continued"]);
    stage.run(&["replay"]).expect(0).says(&["all the same"]);
}

#[test]
fn a_repair_by_the_real_claude_continues_its_session_with_only_what_is_new() {
    repairs_in_its_session(&real(breaks_then_mends(), ""));
}

#[test]
fn a_repair_by_the_real_codex_continues_its_session_with_only_what_is_new() {
    repairs_in_its_session(&real_codex(breaks_then_mends()));
}

#[test]
fn who_wants_fresh_sessions_has_the_real_claude_asked_with_the_whole_prompt() {
    let Real { stage, server: _server } = real(breaks_then_mends(), "");
    let config = stage.read(".autopilot/config.yml");
    let fresh = config.replace("mode: claude_code_cli,", "mode: claude_code_cli, session: fresh,");
    stage.write(".autopilot/config.yml", &fresh);
    stage.run(&TASK).expect(0);
    let fixed = metadata(&stage, "-fix");
    assert_eq!((fixed.len(), &fixed[0]["resumed"]), (1, &Value::Null));
    assert!(prompts(&stage, "-fix")[0].contains("app.txt says done"));
    stage.run(&["show", "say-done"]).expect(0).says(&["started a new session: `builder.session`"]);
}

#[test]
fn a_session_of_the_real_claude_without_room_is_replaced_within_the_try() {
    let body = json!({ "type": "error", "error": { "type": "invalid_request_error",
        "message": "prompt is too long: 250000 tokens > 200000 maximum" } });
    let full = Rule::when(CONTINUED_FIX).fails(Times::Always, Fault::status(400, body));
    let script = Script::new()
        .rule(full)
        .when(WHOLE_FIX, mends())
        .when(BUILD, [shell("echo broken >> app.txt"), summary()]);
    let Real { stage, server: _server } = real(reviewed(script), "");
    stage.run(&TASK).expect(0).says(&["DONE"]);
    let fixed = metadata(&stage, "-fix");
    assert_eq!(fixed.len(), 2, "{fixed:#?}");
    assert!(fixed[0]["resumed"].is_string() && fixed[1]["resumed"].is_null(), "{fixed:#?}");
    assert!(prompts(&stage, "-fix")[1].contains("app.txt says done"));
    let shown = stage.run(&["show", "say-done"]).expect(0);
    shown.says(&["started a new session: the last one has no room left"]);
    assert_eq!(stage.first_task()["iteration"], 2, "no further round, and no retry");
    stage.run(&["replay"]).expect(0).says(&["all the same"]);
}

/// Starts a run, and returns when the builder's tool waits.
fn at_work(stage: &Stage) -> autopilot_testkit::stage::Started {
    let run = stage.start(&TASK);
    stage.wait_until("its tool waits", |stage| {
        stage.texts_of("-build/events.jsonl").contains(WAITS)
    });
    run
}

/// After the run was cut short: its session is offered, answers, and the build continues in it.
fn is_taken_up(stage: &Stage) {
    let told = sessions(stage);
    let session = told["sessions"][0]["session"].as_str().unwrap().to_owned();
    assert_eq!(told["sessions"][0]["is_the_agents_own"], true, "{told}");
    assert_eq!(told["sessions"][0]["not_resumable_because"], Value::Null, "{told}");
    assert!(told["sessions"][0]["resume"].is_string(), "{told}");
    let said = stage.run(&["resume", &session, "--prompt", "what did you do?"]).expect(0);
    said.says(&["I wrote a line."]);
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    assert_eq!(result(stage), "start\ndone", "the work was kept");
    let built = metadata(stage, "-build");
    let last = built.last().unwrap();
    assert_eq!((&last["resumed"], &last["session"]), (&json!(session), &json!(session)));
    let asked = prompts(stage, "-build").pop().unwrap();
    assert!(
        asked.contains("`it was interrupted`") && !asked.contains("app.txt says done"),
        "{asked}"
    );
    let told = stage.run(&["replay", "--json"]).expect(0);
    let told: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!((&told["same"], &told["outcome"]), (&json!(true), &json!("DONE")), "{told:#}");
}

#[test]
fn after_a_kill_of_the_controller_the_session_of_the_real_claude_is_there_and_continues() {
    let Real { stage, server: _server } = real(works_then_waits(), "");
    let run = at_work(&stage);
    run.signal("KILL");
    run.wait();
    is_taken_up(&stage);
}

#[test]
fn after_a_kill_of_the_controller_the_session_of_the_real_codex_is_there_and_continues() {
    let Real { stage, server: _server } = real_codex(works_then_waits());
    let run = at_work(&stage);
    run.signal("KILL");
    run.wait();
    // Room is made without losing it.
    stage.run(&["gc"]).expect(0);
    is_taken_up(&stage);
}

#[test]
fn after_a_stop_at_once_the_session_of_the_real_claude_is_there_and_continues() {
    let Real { stage, server: _server } = real(works_then_waits(), "");
    let run = at_work(&stage);
    stage.run(&["stop", "--now"]).expect(0);
    run.wait().expect(2);
    is_taken_up(&stage);
}

#[test]
fn after_a_lost_login_the_session_of_the_real_claude_is_there_and_continues() {
    let body = json!({ "type": "error", "error": {
        "type": "authentication_error", "message": "invalid x-api-key" } });
    let mut lost = Turn::fail(Fault::status(401, body));
    lost.delay = None;
    let script = Script::new()
        .when("what did you do", [Turn::say("I wrote a line.")])
        .when(CONTINUED_BUILD, [summary()])
        .when(BUILD, [shell("echo done >> app.txt"), lost]);
    let Real { stage, server: _server } = real(reviewed(script), "");
    let run = stage.start(&TASK);
    stage.wait_until("the login is lost", |stage| {
        metadata(stage, "-build").iter().any(|built| built["status"] == "failed")
    });
    stage.run(&["stop", "--now"]).expect(0);
    run.wait();
    is_taken_up(&stage);
}

#[test]
fn a_session_whose_files_were_deleted_is_not_offered_and_the_whole_prompt_is_sent_again() {
    let again = Rule::when(BUILD).and("continued the work of an interrupted attempt");
    let script = Script::new()
        .rule(again.turns([summary()]))
        .when(BUILD, [shell("echo done >> app.txt"), shell(WAITS), summary()]);
    let Real { stage, server: _server } = real(reviewed(script), "");
    let run = at_work(&stage);
    stage.run(&["stop", "--now"]).expect(0);
    run.wait().expect(2);
    let session = sessions(&stage)["sessions"][0]["session"].as_str().unwrap().to_owned();
    let kept = files(&stage.state())
        .into_iter()
        .filter(|path| text(path).contains("/sessions/") && text(path).contains(&session));
    assert!(kept.map(|path| fs::remove_file(path).unwrap()).count() > 0);
    let told = sessions(&stage);
    assert_eq!(told["sessions"][0]["not_resumable_because"], "its files are gone", "{told}");
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    let built = metadata(&stage, "-build");
    assert_eq!((built.len(), &built[1]["resumed"]), (2, &Value::Null));
    assert!(prompts(&stage, "-build")[1].contains("app.txt says done"));
    stage
        .run(&["show", "say-done"])
        .expect(0)
        .says(&["started a new session: the last one is gone"]);
}
