//! What is told of a goal is true at the moment it is told, and tells no secret. The real binary, real
//! git, scripted agents.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::goal::{GOAL, dir, done, run_state, step, workflow};
use autopilot_testkit::stage::{Stage, files_with};
use serde_json::Value;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::{fs, path::Path};

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
const TOKEN: &str = "Zq8vN3xKp1LmW2rTy7";

fn answers(step: &str, answer: &Value) -> String {
    format!("\n- step: {step}\n  do: [{{ answer: {answer} }}]\n")
}

fn stage(steps: &str) -> Stage {
    let stage = Stage::new(BINARY);
    stage.agents(&[
        &answers("workflow", &workflow("w", &[step("one", &[])])),
        steps,
        &answers("completion", &done("it is done")),
    ]);
    stage.config("commands: { tests: sh test.sh }\n");
    stage
}

const WORKS: &str =
    "\n- step: step\n  do: [{ append: { app.txt: \"done\\n\" } }, { answer: Done }]\n";

fn page(stage: &Stage) -> String {
    fs::read_to_string(dir(stage).join("report.html")).unwrap()
}

fn session_of(stage: &Stage, task: &str) -> String {
    let told = stage.run(&["sessions", "--json"]).expect(0).out;
    let told: Value = serde_json::from_str(&told).unwrap();
    let found = told["sessions"].as_array().unwrap().iter().find(|one| one["task"] == task);
    found.unwrap()["session"].as_str().unwrap().to_owned()
}

#[test]
fn what_was_proven_before_a_step_changed_is_not_told_as_proven() {
    let breaks = "\n- step: step\n  iteration: 2\n  do: [{ append: { app.txt: \"broken\\n\" } }, { answer: Done }]\n";
    let stage = stage(&format!("{breaks}{WORKS}"));
    stage.run(&GOAL).expect(0);
    assert!(page(&stage).contains("and it passed"), "it was proven");
    let session = session_of(&stage, "one");
    stage.run(&["resume", &session, "--prompt", "Once more"]).expect(0);
    let page = page(&stage);
    assert!(page.contains("The result has changed since the controller validated it"), "{page}");
    assert!(!page.contains("and it passed") && !page.contains("The goal was met"), "{page}");
    let shown = stage.run(&["show"]).expect(0).out;
    assert!(
        shown.contains("before the result changed") && !shown.contains("reviewer: done"),
        "{shown}"
    );
    assert_eq!(run_state(&stage)["iterations"][0]["completion"], Value::Null);
    // It is found out when the run goes on.
    let told = stage.run(&["resume", "--max-iterations", "1"]);
    assert_ne!(told.code, 0, "{}", told.said());
}

#[test]
fn what_was_undone_is_not_offered_to_be_merged() {
    let stage = stage(WORKS);
    stage.run(&GOAL).expect(0);
    stage.run(&["show"]).expect(0).says(&["git merge autopilot/run-"]);
    stage.run(&["undo"]).expect(0);
    let shown = stage.run(&["show"]).expect(0).says(&["next    autopilot recover"]).out;
    assert!(!shown.contains("git merge") && !shown.contains("git diff"), "{shown}");
    let told: Value = serde_json::from_str(&stage.run(&["show", "--json"]).expect(0).out).unwrap();
    assert_eq!(told["next"], serde_json::json!(["autopilot recover"]));
    stage.run(&["report"]).expect(0);
    assert!(!page(&stage).contains("git merge"));
}

#[test]
fn of_a_goal_that_needed_no_change_nothing_is_offered() {
    let stage = stage("\n- step: step\n  do: [{ answer: Done }]\n");
    stage.config("");
    stage.run(&GOAL).expect(0);
    stage.run(&["show"]).expect(0).says(&["next    nothing: no file was changed"]);
    let told: Value = serde_json::from_str(&stage.run(&["show", "--json"]).expect(0).out).unwrap();
    assert_eq!(told["next"], serde_json::json!([]));
}

#[test]
fn a_secret_in_the_goal_is_kept_nowhere() {
    let mut stage = stage(WORKS);
    stage.set("MY_API_TOKEN", TOKEN);
    let filler =
        "Make app.txt say done, and then look at all of it once more, slowly, with care, and use ";
    let goal = format!("{filler}{TOKEN} for it");
    assert!((80..100).contains(&filler.len()), "the title ends inside of it: {}", filler.len());
    stage.run(&["goal", &goal]).expect(0);
    stage.unset("MY_API_TOKEN");
    stage.run(&["report"]).expect(0);
    let shown = stage.run(&["show", "--json"]).expect(0).out;
    assert!(!shown.contains(TOKEN), "{shown}");
    let listed = stage.run(&["runs", "--json"]).expect(0).out;
    assert!(!listed.contains(&TOKEN[..8]), "{listed}");
    for folder in [stage.path(".autopilot"), stage.path("runs")] {
        let found = files_with(&folder, &TOKEN[..8]);
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn a_secret_that_is_cut_in_two_does_not_come_together_on_the_page() {
    let says = format!(
        "\n- step: step\n  do: [{{ answer: \"it is {}\\e[0m{} here\" }}]\n",
        &TOKEN[..8],
        &TOKEN[8..]
    );
    let mut stage = stage(&says);
    stage.set("MY_API_TOKEN", TOKEN);
    stage.run(&GOAL).expect(0);
    let page = page(&stage);
    assert!(page.contains(" here") && !page.contains(TOKEN), "{page}");
}

#[test]
fn a_page_is_its_owners_alone_and_replaces_no_device() {
    let stage = stage(WORKS);
    stage.run(&GOAL).expect(0);
    let file = stage.folder().join("page.html");
    stage.run(&["report", "--out", file.to_str().unwrap()]).expect(0);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let link = stage.folder().join("null");
    symlink("/dev/null", &link).unwrap();
    stage.run(&["report", "--out", link.to_str().unwrap()]).expect(0);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "the link is there");
    assert!(fs::metadata(Path::new("/dev/null")).unwrap().file_type().is_char_device());
}

#[test]
fn a_goal_may_speak_of_skills() {
    let stage = stage(WORKS);
    stage.run(&["goal", "Improve how we use the deploy skill here"]).expect(0).says(&["DONE"]);
}

#[test]
fn what_a_step_said_at_length_is_cut_in_the_state_and_whole_in_its_own_file() {
    let says = "\n- step: step\n  do: [{ answer: \"LONG\" }]\n"
        .replace("LONG", &"a long word ".repeat(20_000));
    let stage = stage(&says);
    stage.run(&GOAL).expect(0);
    let said = run_state(&stage)["iterations"][0]["steps"][0]["outputText"].as_str().unwrap().len();
    assert!((32 << 10..=65 << 10).contains(&said), "{said}");
    assert!(stage.texts_of("one-step/output.txt").len() >= 240_000);
}
