//! Several tasks one after the other, each on top of the last.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, Stage};

/// Every task writes a line of its own.
const LINES: &str = "
- step: [build, fix]
  do:
    - run: \"echo $AUTOPILOT_TASK_ID >> app.txt\"
    - answer: { changed_files: [app.txt], notes: x }
";

fn stage(before: &str) -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    std::fs::remove_file(stage.path("tasks/say-done.md")).unwrap();
    for (name, title) in
        [("2026-01-02_two", "Second"), ("2026-01-01_one", "First"), ("2026-01-03_three", "Third")]
    {
        stage.task(name, title);
    }
    stage.agents(&[before, LINES, APPROVES]);
    stage
}

fn statuses(stage: &Stage) -> Vec<String> {
    let state = stage.state_json();
    let tasks = state["tasks"].as_array().unwrap();
    tasks
        .iter()
        .map(|t| format!("{} {}", t["id"].as_str().unwrap(), t["status"].as_str().unwrap()))
        .collect()
}

fn on_the_branch(stage: &Stage) -> String {
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    stage.git(&["show", &format!("{branch}:app.txt")])
}

#[test]
fn a_queue_is_worked_in_order_of_name_each_on_top_of_the_last() {
    let stage = stage("");
    stage.run(&["run", "--queue", "tasks"]).expect(0);
    assert_eq!(statuses(&stage), ["one DONE", "two DONE", "three DONE"]);
    assert_eq!(on_the_branch(&stage), "start\none\ntwo\nthree");
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    let count = stage.git(&["rev-list", "--count", &format!("main..{branch}")]);
    assert_eq!(count, "6", "a commit and a merge for each");
    let notes = stage.read(".autopilot/RELEASE_NOTES_RUNNING.md");
    let at = |text: &str| notes.find(text).unwrap_or_else(|| panic!("{text} is not in {notes}"));
    assert!(at("**one** DONE: First") < at("**two** DONE: Second"), "{notes}");
    assert!(at("**two** DONE: Second") < at("**three** DONE: Third"), "{notes}");
}

#[test]
fn a_pattern_takes_only_the_files_it_matches() {
    let stage = stage("");
    stage.run(&["run", "--queue", "tasks", "--pattern", "*t*o.md"]).expect(0);
    assert_eq!(statuses(&stage), ["two DONE"]);
}

#[test]
fn a_task_that_fails_in_the_middle_does_not_hold_up_the_others_and_can_be_retried() {
    let stage = stage(
        "
- step: build
  task: two
  do: [{ run: \"test -e /nowhere || exit 1\" }, { exit: 1 }]
",
    );
    stage.run(&["run", "--queue", "tasks"]).expect(10).says(&["two", "autopilot retry"]);
    assert_eq!(statuses(&stage), ["one DONE", "two FAILED", "three DONE"]);
    assert_eq!(stage.state_json()["current_state"], "FAILED");
    assert_eq!(on_the_branch(&stage), "start\none\nthree");
    let notes = stage.read(".autopilot/RELEASE_NOTES_RUNNING.md");
    assert!(notes.contains("**two** FAILED") && notes.contains("**three** DONE"), "{notes}");
    stage.agents(&[LINES, APPROVES]);
    stage.run(&["retry", "two"]).expect(0);
    assert_eq!(stage.state_json()["current_state"], "DONE");
    assert_eq!(on_the_branch(&stage), "start\none\nthree\ntwo");
}

#[test]
fn a_task_that_is_left_out_while_the_queue_runs_does_not_keep_it_from_being_done() {
    let stage = stage(
        "
- step: build
  task: one
  do:
    - run: \"echo one >> app.txt; sleep 1.5\"
    - answer: { changed_files: [app.txt], notes: x }
",
    );
    let run = stage.start(&["run", "--queue", "tasks"]);
    stage.wait_for_step("BUILD");
    stage.run(&["skip", "tow"]).expect(64).says(&["tow", "`two`"]);
    stage.run(&["skip", "two"]).expect(0);
    run.wait().expect(0);
    assert_eq!(statuses(&stage), ["one DONE", "two SKIPPED", "three DONE"]);
    assert_eq!(on_the_branch(&stage), "start\none\nthree");
}

#[test]
fn a_failed_task_that_is_left_out_afterwards_closes_the_run() {
    let stage = stage(
        "
- step: build
  task: two
  do: [{ exit: 1 }]
",
    );
    stage.run(&["run", "--queue", "tasks"]).expect(10);
    assert_eq!(statuses(&stage), ["one DONE", "two FAILED", "three DONE"]);
    stage.run(&["skip", "two"]).expect(0);
    assert_eq!(statuses(&stage), ["one DONE", "two SKIPPED", "three DONE"]);
    assert_eq!(stage.state_json()["current_state"], "DONE");
    assert_eq!(on_the_branch(&stage), "start\none\nthree");
}
