//! What commands say to programs.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, BUILDS, Stage};
use serde_json::{Value, json};

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_autopilot"))
}

#[track_caller]
fn told(stage: &Stage, args: &[&str]) -> Value {
    let ended = stage.run(&[args, &["--json"]].concat()).expect(0);
    serde_json::from_str(&ended.out).unwrap()
}

#[test]
fn stopping_and_pausing_tell_what_they_did() {
    let stage = stage();
    let nothing = json!({
        "stopping": false, "pid": null, "now": false, "path": null, "changed": false,
        "answer": "no run is under way; nothing was changed",
    });
    assert_eq!(told(&stage, &["stop"]), nothing);
    let endless = "
- step: build
  attempt: 1
  do: [{ run: \"sleep 600\" }]
";
    stage.agents(&[endless, BUILDS, APPROVES]);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_for_step("BUILD");
    let pausing = json!({
        "paused": true, "path": null, "changed": true,
        "answer": "pausing the run before its next step",
    });
    assert_eq!(told(&stage, &["pause"]), pausing);
    let taken_back = json!({
        "paused": false, "removed": [], "resumable": false, "changed": true,
        "answer": "the pause is cancelled",
    });
    assert_eq!(told(&stage, &["unpause"]), taken_back);
    let stopping = json!({
        "stopping": true, "pid": run.pid(), "now": true, "path": null, "changed": true,
        "answer": "stopping the run now",
    });
    assert_eq!(told(&stage, &["stop", "--now"]), stopping);
    run.wait().expect(2);
    let rests = json!({
        "paused": false, "removed": [], "resumable": true, "changed": false,
        "answer": "there was no pause",
    });
    assert_eq!(told(&stage, &["unpause"]), rests);
    // Without a process, the file holds the pause for the next one.
    let path = ".autopilot/AUTOPILOT_PAUSE";
    let left = told(&stage, &["pause"]);
    assert_eq!((&left["paused"], &left["path"]), (&json!(true), &json!(path)));
    let removed = told(&stage, &["unpause"]);
    assert_eq!((&removed["removed"], &removed["changed"]), (&json!([path]), &json!(true)));
}

#[test]
fn logs_are_listed_by_paths_from_the_top_of_the_repository() {
    let stage = stage();
    stage.run_task().expect(0);
    let state = stage.state_json();
    let path = state["last_build"]["log_path"].as_str().unwrap();
    assert!(path.starts_with(".autopilot/logs/") && stage.has(path), "{path}");
    let logs = told(&stage, &["logs", "say-done"]);
    let logs = logs["logs"].as_array().unwrap();
    let build = logs.iter().find(|log| log["path"] == path).unwrap_or_else(|| panic!("{logs:?}"));
    assert_eq!((build["task"].as_str(), build["step"].as_str()), (Some("say-done"), Some("build")));
    assert!(build["bytes"].as_u64().unwrap() > 0);
    let controller = told(&stage, &["logs"]);
    assert_eq!(controller["logs"][0]["path"], ".autopilot/logs/controller.log");
    let shown = told(&stage, &["show"]);
    let attempts = shown["attempts"].as_array().unwrap();
    assert!(attempts.iter().any(|attempt| attempt["log_path"] == path), "{attempts:?}");
    stage.run(&["logs", "--json", "--follow"]).expect(64);
}

#[test]
fn a_diff_is_files_with_counted_lines() {
    let stage = stage();
    stage.run_task().expect(0);
    let file = json!([{ "path": "app.txt", "insertions": 1, "deletions": 0 }]);
    assert_eq!(told(&stage, &["diff"])["files"], file);
    assert_eq!(told(&stage, &["diff", "say-done"])["files"], file);
}

#[test]
fn the_time_of_a_task_is_a_number_of_seconds() {
    let stage = stage();
    stage.run_task().expect(0);
    let seconds = stage.first_task()["duration"].as_f64().unwrap();
    assert!(seconds > 0.0 && seconds < 600.0, "{seconds}");
}

#[test]
fn the_release_notes_say_what_a_green_result_was_not_asked_to_show() {
    let stage = stage();
    stage.write("app.txt", "start\nbroken before\n");
    stage.commit("broken");
    stage.write(".autopilot/AUTOPILOT_SKIP_REVIEW", "");
    stage.run(&["run", "tasks/say-done.md", "--allow-red-base"]).expect(0);
    let notes = stage.read(".autopilot/RELEASE_NOTES_RUNNING.md");
    let done = notes.lines().find(|line| line.contains("**say-done** DONE")).unwrap();
    for part in ["(1 iteration,", "waived: ", "review skipped", "UAT skipped", "red base"] {
        assert!(done.contains(part), "`{part}` is not in {done}");
    }
    let log = stage.read(".autopilot/logs/controller.log");
    assert!(log.contains("/.autopilot/AUTOPILOT_SKIP_REVIEW)"), "{log}");
}

#[test]
fn the_release_notes_name_a_verdict_that_was_overruled() {
    let stage = stage();
    stage.config("commands: { tests: sh test.sh }\ngates: { review: advisory }\n");
    let asks = "
- step: review
  do:
    - answer: { verdict: REQUEST_CHANGES, summary: almost, issues: [{ severity: major,
        message: the line needs a friend, fix: add a second line, file: app.txt, line: 2 }] }
";
    stage.agents(&[asks, BUILDS, APPROVES]);
    stage.run_task().expect(0);
    let notes = stage.read(".autopilot/RELEASE_NOTES_RUNNING.md");
    let done = notes.lines().find(|line| line.contains("**say-done** DONE")).unwrap();
    assert!(done.contains("verdict REQUEST_CHANGES overruled (gates.review: advisory)"), "{done}");
    assert!(!done.contains("review skipped") && !done.contains("red base"), "{done}");
}
