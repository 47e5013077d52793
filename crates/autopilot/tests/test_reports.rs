//! The tests of a gate by name: the runners' own reports, and what they can't make green.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, BUILDS, Stage};
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");

/// The report of the tests in the first evidence of the run that a text of the state has, by the word
/// that it must contain.
fn reports(stage: &Stage) -> Vec<Value> {
    let mut found = Vec::new();
    let shown = stage.run(&["show", "say-done", "--json"]).said();
    panic_free(&shown, &mut found);
    found
}

fn panic_free(shown: &str, found: &mut Vec<Value>) {
    println!("{shown}");
    let _ = found;
}

#[test]
fn tests_of_pytest_are_known_by_name() {
    let mut stage = Stage::new(BINARY);
    stage.set("AUTOPILOT_SEED_MS", "0");
    stage.config("commands: { tests: 'pytest -q' }\n");
    stage.write("test_a.py", "import pytest\ndef test_one(): pass\n@pytest.mark.skip\ndef test_two(): pass\n");
    stage.commit("tests");
    stage.agents(&[BUILDS, APPROVES]);
    let ended = stage.run_task().expect(0);
    println!("{}", ended.said());
    reports(&stage);
    panic!("look");
}
