//! Goals for the [`stage`](crate::stage): workflows, words on completion, and the files of a run.
#![allow(
    clippy::unwrap_used,
    reason = "test support: what can't be set up must fail the test at once"
)]

use crate::stage::Stage;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

pub const GOAL: [&str; 2] = ["goal", "Make app.txt say done"];

pub fn step(id: &str, depends_on: &[&str]) -> Value {
    let goal = format!("use the task-executor skill. Do {id}.");
    json!({ "id": id, "goal": goal, "dependsOn": depends_on })
}

pub fn workflow(id: &str, steps: &[Value]) -> Value {
    json!({ "version": 1, "id": id, "steps": steps })
}

pub fn done(summary: &str) -> Value {
    json!({ "done": true, "summary": summary })
}

/// What is said at a step in an iteration, without doing anything. JSON is YAML.
pub fn answers(step: &str, iteration: u32, answer: &Value) -> String {
    format!("\n- step: {step}\n  iteration: {iteration}\n  do: [{{ answer: {answer} }}]\n")
}

/// A goal of the steps `one`, which is done as `works` says, and then `two`, which is not done before
/// the file there is: enough time to kill the run between the two.
pub fn gated(binary: &str, works: &str) -> (Stage, PathBuf) {
    let stage = Stage::new(binary);
    let gate = stage.folder().join("gate");
    let waits = format!(
        "\n- step: step\n  task: two\n  do:\n    - run: 'while [ ! -e {} ]; do sleep 0.1; done'\n    - answer: Done\n",
        gate.display()
    );
    stage.agents(&[
        &answers("workflow", 1, &workflow("w", &[step("one", &[]), step("two", &["one"])])),
        &waits,
        works,
        &answers("completion", 1, &done("fine")),
    ]);
    stage.config("commands: { tests: sh test.sh }\n");
    (stage, gate)
}

/// The directory of the only run in `runs/autopilot`.
pub fn dir(stage: &Stage) -> PathBuf {
    let runs = fs::read_dir(stage.path("runs/autopilot")).unwrap();
    let dirs: Vec<PathBuf> =
        runs.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    assert_eq!(dirs.len(), 1, "{dirs:?}");
    dirs[0].clone()
}

pub fn manifest(stage: &Stage) -> Value {
    json_at(dir(stage).join("manifest.json"))
}

/// `<run-id>.json`.
pub fn run_state(stage: &Stage) -> Value {
    let dir = dir(stage);
    json_at(dir.join(format!("{}.json", dir.file_name().unwrap().to_string_lossy())))
}

/// What the manifest tells while the run goes on; nothing before there is one.
pub fn told_so_far(stage: &Stage) -> Option<Value> {
    let mut found = fs::read_dir(stage.path("runs/autopilot")).ok()?;
    let text = found
        .find_map(|entry| fs::read_to_string(entry.ok()?.path().join("manifest.json")).ok())?;
    serde_json::from_str(&text).ok()
}

fn json_at(path: PathBuf) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}
