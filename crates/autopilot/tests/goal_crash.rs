//! A goal that is killed between any two of its records and gone on with: nothing that is finished
//! is done again, and everything is merged once.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::goal::{GOAL, done, manifest, run_state, step, workflow};
use autopilot_testkit::plan::merged_once_each;
use autopilot_testkit::stage::Stage;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
/// Records of the run that is played here, from its first to its end; more are no fault.
const RECORDS_MIN: u64 = 10;
/// What a run that never ends would be told by.
const RECORDS_MAX: u64 = 60;
/// What the stage says of a process that a signal ended.
const KILLED: i32 = -1;

fn answers(step: &str, iteration: u32, answer: &Value) -> String {
    format!("\n- step: {step}\n  iteration: {iteration}\n  do: [{{ answer: {answer} }}]\n")
}

const WORKS: &str = "
- step: step
  do:
    - run: 'echo \"$AUTOPILOT_TASK_ID\" > \"$AUTOPILOT_TASK_ID.txt\"'
    - answer: \"Done: wrote it\"
";

/// One after the other, so that whatever has ended is on record before anything else begins.
fn stage() -> Stage {
    let first = workflow("first", &[step("one", &[]), step("two", &["one"])]);
    let next = workflow("second", &[step("three", &[])]);
    let not_yet = json!({ "done": false, "reason": "three is missing", "nextWorkflow": next });
    let stage = Stage::new(BINARY);
    stage.agents(&[
        &answers("workflow", 1, &first),
        WORKS,
        &answers("completion", 1, &not_yet),
        &answers("completion", 2, &done("all three")),
    ]);
    stage.config("commands: { tests: sh test.sh }\n");
    stage
}

/// Killed when that many records are on the disk, then gone on with; whether it was killed.
fn killed_after(records: u64) -> bool {
    let stage = stage();
    let mut command = stage.command(&GOAL);
    command.env("AUTOPILOT_FAILPOINT", format!("journal.durable:{records}"));
    let ended = stage.start_command(command).wait();
    let was_killed = ended.code == KILLED;
    if was_killed {
        stage.run(&["resume"]).expect(0).says(&["DONE"]);
    } else {
        ended.expect(0);
    }
    merged_once_each(&stage, &["one", "two", "three-i2"]);
    let told = manifest(&stage);
    let mut succeeded = BTreeMap::new();
    let mut others = Vec::new();
    for exec in told["execs"].as_array().unwrap() {
        let label = exec["label"].as_str().unwrap().to_owned();
        if exec["status"] == "succeeded" {
            *succeeded.entry(label).or_insert(0) += 1;
        } else {
            others.push((label, exec["status"].clone()));
        }
    }
    let once = [("one-step", 1), ("run-completion", 2), ("run-workflow", 1), ("three-i2-step", 1)];
    let mut wanted = BTreeMap::from(once.map(|(label, count)| (label.to_owned(), count)));
    wanted.insert("two-step".to_owned(), 1);
    assert_eq!(succeeded, wanted, "killed after {records} records: {told:#}");
    assert!(others.len() <= 1, "killed after {records} records: {others:?}");
    let state = run_state(&stage);
    let ids = |part: &str| -> Vec<Value> {
        let iterations = state["iterations"].as_array().unwrap();
        iterations.iter().map(|iteration| iteration[part]["id"].clone()).collect()
    };
    assert_eq!(ids("workflow"), ["first", "second"], "killed after {records} records");
    assert_eq!(state["iterations"][1]["completion"]["done"], true);
    assert_eq!(stage.survivors(), [""; 0]);
    was_killed
}

/// Every second one, so that two of these share the work.
fn campaign(first: u64) {
    let all = (first..RECORDS_MAX).step_by(2);
    let records = all.take_while(|records| killed_after(*records)).last().unwrap();
    assert!(records + 2 >= RECORDS_MIN, "{records}");
    assert!(records + 2 < RECORDS_MAX, "it never came to an end");
}

#[test]
fn killed_after_any_odd_record() {
    campaign(1);
}

#[test]
fn killed_after_any_even_record() {
    campaign(2);
}
