//! `autopilot goal`: workflow, steps, completion, and again until it is reached. The real binary,
//! real git, scripted agents.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::Stage;
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
const GOAL: [&str; 2] = ["goal", "Make app.txt say done"];

fn step(id: &str, depends_on: &[&str]) -> Value {
    json!({ "id": id, "goal": format!("use the task-executor skill. Do {id}."), "dependsOn": depends_on })
}

fn workflow(id: &str, steps: &[Value]) -> Value {
    json!({ "version": 1, "id": id, "steps": steps })
}

/// The rule of an agent that answers so.
fn answers(step: &str, more: &str, answer: &Value) -> String {
    format!("\n- step: {step}\n{more}  do: [{{ answer: {answer} }}]\n")
}

fn in_iteration(n: u32) -> String {
    format!("  iteration: {n}\n")
}

/// A step that writes a file of its name and says so.
const WORKS: &str = "
- step: step
  do:
    - sh: 'echo \"$AUTOPILOT_TASK_ID\" > \"$AUTOPILOT_TASK_ID.txt\"; echo done >> app.txt'
    - cost_usd: 0.01
    - answer: \"Done: wrote it\"
";

fn done(summary: &str) -> Value {
    json!({ "done": true, "summary": summary })
}

fn stage(rules: &[&str]) -> Stage {
    let stage = Stage::new(BINARY);
    stage.agents(rules);
    stage.config("commands: { tests: sh test.sh }\n");
    stage
}

fn branch(stage: &Stage) -> String {
    stage.status()["branch"].as_str().unwrap().to_owned()
}

fn on_branch(stage: &Stage, file: &str) -> String {
    stage.git(&["show", &format!("{}:{file}", branch(stage))]).trim().to_owned()
}

#[test]
fn a_goal_is_reached_in_one_iteration() {
    let made = workflow("w1", &[step("look", &[]), step("write", &["look"])]);
    let stage = stage(&[
        &answers("workflow", "", &made),
        WORKS,
        &answers("completion", "", &done("it is done")),
    ]);
    stage.run(&GOAL).expect(0).says(&["DONE"]);
    assert_eq!(on_branch(&stage, "look.txt"), "look");
    assert_eq!(on_branch(&stage, "write.txt"), "write");
    let asked = stage.texts_of("write-step/prompt.txt");
    let parts = [
        "Do write.",
        "Overall task: Make app.txt say done",
        "Dependency outputs:",
        "--- look (succeeded) ---",
        "Done: wrote it",
        "If you make code changes, run the most relevant checks/tests and report results.",
    ];
    let places = parts.map(|part| asked.find(part).unwrap_or_else(|| panic!("{part}: {asked}")));
    assert!(places.is_sorted(), "{asked}");
    assert_eq!(stage.survivors(), [""; 0]);
}
