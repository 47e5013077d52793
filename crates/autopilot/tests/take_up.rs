//! Which run a command goes on with, and what a run keeps of what it began with.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, BUILDS, Stage, Started, TASK, text};

const RUN: [&str; 2] = ["run", "tasks/say-done.md"];
/// A builder that never ends by itself the first time.
const ENDLESS: &str = "
- step: build
  attempt: 1
  do: [{ run: \"sleep 600\" }]
";

fn stage() -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    stage.agents(&[ENDLESS, BUILDS, APPROVES]);
    stage
}

fn started(stage: &Stage, args: &[&str]) -> Started {
    let run = stage.start(args);
    stage.wait_for_step("BUILD");
    run
}

/// A run that was begun like this and stopped while it built.
fn resting(args: &[&str]) -> Stage {
    let stage = stage();
    stop(&stage, started(&stage, args));
    stage
}

fn stop(stage: &Stage, run: Started) {
    stage.run(&["stop", "--now"]).expect(0);
    run.wait().expect(2);
}

#[track_caller]
fn runs(stage: &Stage) -> usize {
    let out = stage.run(&["runs", "--json"]).expect(0).out;
    out.matches("\"run_id\"").count().max(out.matches("\"id\"").count())
}

#[test]
fn the_same_file_by_any_name_is_the_same_run() {
    for spelling in 0..3 {
        let stage = resting(&RUN);
        let ended = match spelling {
            0 => stage.run(&["run", "./tasks/../tasks/say-done.md"]),
            1 => stage.run(&["run", &text(stage.path("tasks/say-done.md"))]),
            _ => {
                let mut command = stage.command(&["run", "say-done.md"]);
                command.current_dir(stage.path("tasks"));
                stage.start_command(command).wait()
            }
        };
        ended.expect(0);
        assert_eq!(runs(&stage), 1, "spelling {spelling}");
        assert_eq!(stage.state_json()["task_path"], "tasks/say-done.md");
    }
}

#[test]
fn another_file_of_the_same_name_is_another_run() {
    let stage = resting(&RUN);
    stage.write("more/tasks/say-done.md", TASK);
    let mut command = stage.command(&RUN);
    command.current_dir(stage.path("more"));
    stage.start_command(command).wait().expect(10).says(&["is not finished", "--fresh"]);
}

#[test]
fn a_queue_is_known_by_its_folder_and_its_pattern() {
    let queue = |stage: &Stage, more: &[&str]| {
        stage.run(&[&["run", "--queue", "./tasks/"][..], more].concat())
    };
    let stage = resting(&["run", "--queue", "tasks", "--pattern", "say*"]);
    queue(&stage, &[]).expect(10).says(&["is not finished"]);
    queue(&stage, &["--pattern", "*done*"]).expect(10).says(&["is not finished"]);
    stage.run(&RUN).expect(10).says(&["is not finished"]);
    queue(&stage, &["--pattern", "say*"]).expect(0);
    assert_eq!(runs(&stage), 1);
}

#[test]
fn what_a_run_under_way_can_not_take_up_is_refused_not_ignored() {
    let stage = resting(&RUN);
    stage.git(&["remote", "add", "origin", "/nowhere"]);
    for flag in ["--push", "--allow-red-base"] {
        let ended = stage.run(&[RUN[0], RUN[1], flag]).expect(64);
        ended.says(&[&format!("was started without {flag}"), "--fresh"]);
    }
    stage.run(&RUN).expect(0);
}

#[test]
fn a_flag_the_run_began_with_may_be_given_again() {
    let stage = resting(&[RUN[0], RUN[1], "--allow-red-base"]);
    stage.run(&[RUN[0], RUN[1], "--allow-red-base"]).expect(0);
}

#[test]
fn a_task_file_that_was_edited_is_told_and_the_run_keeps_its_own() {
    let said = "`tasks/say-done.md` has changed since the run started; the run keeps the earlier";
    for again in [&RUN[..], &["resume"]] {
        let stage = resting(&RUN);
        let as_it_was = stage.run(&["resume", "--dry-run"]).expect(0);
        assert!(!as_it_was.said().contains(said));
        stage.write("tasks/say-done.md", &TASK.replace("says done", "says something else"));
        stage.run(again).expect(0).says(&[said]);
        assert!(!stage.texts_of("prompt").contains("something else"));
    }
    let stage = resting(&RUN);
    let unchanged = stage.run(&RUN).expect(0);
    assert!(!unchanged.said().contains("has changed"), "{}", unchanged.said());
}

#[test]
fn a_run_is_resumed_after_its_autopilot_folder_was_deleted() {
    let stage = resting(&RUN);
    std::fs::remove_dir_all(stage.path(".autopilot")).unwrap();
    stage.run(&["resume"]).expect(0).says(&["config.yml does not exist"]);
    assert_eq!(stage.state_json()["current_state"], "DONE");
    assert!(stage.has(".autopilot/STATUS.md") && stage.has(".autopilot/.gitignore"));
    stage.run(&["resume"]).expect(64).says(&["nothing to resume"]);
}

#[test]
fn a_broken_configuration_does_not_keep_a_run_from_going_on() {
    let stage = resting(&RUN);
    stage.write(".autopilot/config.yml", "commands: [\n");
    stage.run(&["resume"]).expect(0).says(&["config.yml can't be used"]);
}

#[test]
fn resume_beside_a_live_run_leaves_its_flags_alone() {
    let stage = stage();
    let run = started(&stage, &RUN);
    for flag in ["AUTOPILOT_PAUSE", "AUTOPILOT_STOP"] {
        stage.write(flag, "");
        stage.run(&["resume"]).expect(10).says(&[&run.pid().to_string()]);
        assert!(stage.has(flag), "{flag}");
    }
    stage.run(&["stop", "--now"]).expect(0);
    run.wait().expect(2);
    stage.run(&["resume"]).expect(0);
    assert!(!stage.has("AUTOPILOT_PAUSE") && !stage.has("AUTOPILOT_STOP"));
}

#[test]
fn a_limit_that_could_not_hold_is_refused_when_resuming_too() {
    let stage = stage();
    let config = stage.read(".autopilot/config.yml").replace(
        "builder: { mode: script, script: agents.yml }",
        "builder: { mode: command, command: sleep 600 }",
    );
    stage.write(".autopilot/config.yml", &config);
    stop(&stage, started(&stage, &RUN));
    let ended = stage.run(&["resume", "--max-usd", "1"]).expect(78);
    ended.says(&["mode command reports no cost"]);
}

#[test]
fn a_state_directory_that_is_removed_ends_the_run_at_once_with_its_name() {
    let stage = stage();
    let run = started(&stage, &RUN);
    // Whoever writes there at the same time can make a removal fail in the middle.
    while stage.state().exists() {
        let _in_the_middle = std::fs::remove_dir_all(stage.state());
    }
    let ended = run.wait().expect(10);
    assert_eq!(ended.err.matches("error:").count(), 1, "{}", ended.err);
    ended.says(&[&text(stage.state()), "was removed", "autopilot recover"]);
    assert!(stage.survivors().is_empty(), "{:?}", stage.survivors());
    assert!(!stage.has(".autopilot/AUTOPILOT_STOP"));
    stage.agents(&[BUILDS, APPROVES]);
    stage.run(&RUN).expect(0);
}
