//! Autopilot's own repository that somebody removed: it is made again from the user's, as far as
//! that has what was done, and what is lost is told.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::stage::{APPROVES, BUILDS, Ended, Stage, files};
use std::fs;
use std::path::PathBuf;

fn hub(stage: &Stage) -> PathBuf {
    stage.state().join(stage.read(".git/autopilot/id").trim()).join("hub.git")
}

/// A builder that makes a file named like the task; of task `two` it never ends where `hangs`.
fn builds(stage: &Stage, hangs: bool) {
    let then = if hangs { "; test $AUTOPILOT_TASK_ID = one || sleep 600" } else { "" };
    let build = format!(
        "- step: [build, fix]\n  do:\n    - run: \"echo made > $AUTOPILOT_TASK_ID.txt{then}\"\n    - \
         answer: {{ changed_files: [], notes: x }}\n"
    );
    stage.agents(&[&build, APPROVES]);
}

/// A run of two tasks, one on top of the other, that was stopped while the second was built.
fn stopped_at_the_second() -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    for name in ["one", "two"] {
        stage.task(name, &format!("Make {name}"));
        let text = stage.read(&format!("tasks/{name}.md"));
        fs::remove_file(stage.path(&format!("tasks/{name}.md"))).unwrap();
        let text = text.replace("- app.txt\n", &format!("- {name}.txt\n"));
        stage.write(&format!("queue/{name}.md"), &text);
    }
    builds(&stage, true);
    let run = stage.start(&["run", "--queue", "queue/"]);
    stage.wait_until("the second is built", |stage| {
        files(&stage.state()).iter().any(|path| path.ends_with("two.txt"))
    });
    stage.run(&["stop", "--now"]).expect(0);
    run.wait().expect(2);
    builds(&stage, false);
    stage
}

fn has_both(stage: &Stage, ended: &Ended) {
    let run = stage.git(&["branch", "--list", "autopilot/run-*", "--format=%(refname)"]);
    for name in ["one.txt", "two.txt"] {
        assert_eq!(stage.git(&["show", &format!("{run}:{name}")]), "made", "{}", ended.said());
    }
}

#[test]
fn a_run_goes_on_in_a_new_repository_of_ours_with_the_work_that_is_still_in_its_worktree() {
    let stage = stopped_at_the_second();
    fs::remove_dir_all(hub(&stage)).unwrap();
    let ended = stage.run(&["resume"]).expect(0);
    let ended =
        ended.says(&["was missing and was made again", "is kept at refs/autopilot/salvage/two/"]);
    assert!(!ended.said().contains("work of two is lost"), "{}", ended.said());
    has_both(&stage, &ended);
}

#[test]
fn unfinished_work_that_was_nowhere_but_in_our_repository_is_told_to_be_lost() {
    let stage = stopped_at_the_second();
    let hub = hub(&stage);
    for dir in ["slots", "own"] {
        fs::remove_dir_all(hub.with_file_name(dir)).unwrap();
    }
    fs::remove_dir_all(&hub).unwrap();
    let ended = stage.run(&["resume"]).expect(0);
    let ended =
        ended.says(&["was missing and was made again", "the unfinished work of two is lost"]);
    has_both(&stage, &ended);
}

#[test]
fn work_that_is_being_judged_and_is_lost_is_named_and_nothing_is_done() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    let hangs = "- step: review\n  do: [{ run: \"sleep 600\" }]\n";
    stage.agents(&[BUILDS, hangs, APPROVES]);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_for_step("REVIEW");
    stage.run(&["stop", "--now"]).expect(0);
    run.wait().expect(2);
    stage.agents(&[BUILDS, APPROVES]);
    fs::remove_dir_all(hub(&stage)).unwrap();
    let refused = stage.run(&["resume"]).expect(10);
    refused.says(&["the unfinished work of say-done (", "autopilot recover", "--fresh"]);
    let again = stage.run(&["resume"]).expect(10);
    again.says(&["the unfinished work of say-done ("]);
    stage.run(&["run", "--fresh", "tasks/say-done.md"]).expect(0);
}

#[test]
fn the_next_run_after_a_done_one_needs_nothing_of_its_lost_repository() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    stage.agents(&[BUILDS, APPROVES]);
    stage.run_task().expect(0);
    fs::remove_dir_all(hub(&stage)).unwrap();
    stage.task("again", "Again");
    let ended = stage.run(&["run", "tasks/again.md"]).expect(0);
    let ended = ended.says(&["was missing and was made again"]);
    assert!(!ended.said().contains("unfinished work of an earlier"), "{}", ended.said());
    for command in [&["diff"][..], &["show"], &["status"], &["recover"]] {
        let ended = stage.run(command).expect(0);
        assert!(!ended.said().contains("fatal:"), "{command:?}: {}", ended.said());
    }
}
