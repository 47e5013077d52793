//! Stopping, pausing and going on: by file, by command and by signal.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, BUILDS, Stage, Started};

/// A builder that takes a moment, so that there is something to stop.
const SLOW: &str = "
- step: build
  do:
    - append: { app.txt: \"done\\n\" }
    - sleep_ms: 1500
    - answer: { changed_files: [app.txt], notes: x }
";
/// A builder that never ends by itself the first time.
const ENDLESS: &str = "
- step: build
  attempt: 1
  do: [{ append: { app.txt: \"half\\n\" } }, { run: \"sleep 600\" }]
";

fn stage(builder: &str) -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    stage.agents(&[builder, BUILDS, APPROVES]);
    stage
}

fn started(stage: &Stage) -> Started {
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_for_step("BUILD");
    run
}

fn rests(stage: &Stage, run: Started) {
    run.wait().expect(2).says(&["autopilot resume"]);
    assert_eq!(stage.state_json()["current_state"], "PAUSED");
    assert!(stage.survivors().is_empty(), "{:?}", stage.survivors());
}

fn ends_done(stage: &Stage) {
    stage.run(&["resume"]).expect(0);
    assert_eq!(stage.state_json()["current_state"], "DONE");
    assert_eq!(stage.first_task()["retries"], 0, "a stop costs no retry");
    assert_eq!(stage.first_task()["iteration"], 1, "a stop costs no round");
}

#[test]
fn a_stop_file_in_the_autopilot_folder_stops_at_the_step_boundary_and_resume_removes_it() {
    let stage = stage(SLOW);
    let run = started(&stage);
    stage.write(".autopilot/AUTOPILOT_STOP", "");
    rests(&stage, run);
    assert!(
        stage.read(".autopilot/logs/controller.log").contains("build passed"),
        "at the boundary"
    );
    let refused = stage.run_task().expect(2).says(&["AUTOPILOT_STOP", "autopilot resume"]);
    assert!(!refused.said().contains("validating"));
    ends_done(&stage);
    assert!(!stage.has(".autopilot/AUTOPILOT_STOP"));
}

#[test]
fn a_stop_file_in_the_root_of_the_repository_is_honoured_too() {
    let stage = stage(SLOW);
    let run = started(&stage);
    stage.write("AUTOPILOT_STOP", "");
    rests(&stage, run);
    stage.run_task().expect(2).says(&["AUTOPILOT_STOP"]);
    ends_done(&stage);
    assert!(!stage.has("AUTOPILOT_STOP"));
}

#[test]
fn run_of_the_same_file_goes_on_where_it_was_stopped() {
    let stage = stage(SLOW);
    let run = started(&stage);
    stage.run(&["stop"]).expect(0);
    rests(&stage, run);
    std::fs::remove_file(stage.path(".autopilot/AUTOPILOT_STOP")).unwrap();
    stage.run_task().expect(0);
    let runs = stage.run(&["runs"]).expect(0).out;
    assert_eq!(runs.matches("Say done").count(), 1, "{runs}");
}

#[test]
fn stop_now_ends_what_runs_at_once_and_its_work_is_kept() {
    let stage = stage(ENDLESS);
    let run = started(&stage);
    stage.wait_until("the agent wrote", |stage| {
        autopilot_testkit::stage::files_with(&stage.state(), "half\n")
            .iter()
            .any(|path| path.ends_with("app.txt"))
    });
    stage.run(&["stop", "--now"]).expect(0);
    rests(&stage, run);
    ends_done(&stage);
    assert_eq!(stage.git(&["show", "autopilot/say-done:app.txt"]), "start\nhalf\ndone");
}

#[test]
fn one_interrupt_stops_at_the_step_boundary() {
    let stage = stage(SLOW);
    let run = started(&stage);
    run.signal("INT");
    rests(&stage, run);
    assert!(stage.read(".autopilot/logs/controller.log").contains("build passed"));
    ends_done(&stage);
}

#[test]
fn two_interrupts_end_everything_at_once() {
    let stage = stage(ENDLESS);
    let run = started(&stage);
    run.signal("INT");
    stage.wait_until("the first was heard", |_| run.err().contains("again to stop now"));
    run.signal("INT");
    rests(&stage, run);
    ends_done(&stage);
}

#[test]
fn a_closed_terminal_stops_like_an_interrupt() {
    let stage = stage(SLOW);
    let run = started(&stage);
    run.signal("HUP");
    rests(&stage, run);
    ends_done(&stage);
}

#[test]
fn a_pause_rests_before_the_next_step_and_unpause_and_resume_go_on() {
    let stage = stage(SLOW);
    let run = started(&stage);
    stage.run(&["pause"]).expect(0);
    rests(&stage, run);
    stage.run(&["unpause"]).expect(0).says(&["autopilot resume"]);
    ends_done(&stage);
}

#[test]
fn a_waiting_run_stays_while_paused_and_goes_on_by_itself() {
    let stage = stage(SLOW);
    let mut run = stage.start(&["run", "tasks/say-done.md", "--wait"]);
    stage.wait_for_step("BUILD");
    stage.run(&["pause"]).expect(0);
    stage.wait_until("it rests", |stage| stage.state_json()["current_state"] == "PAUSED");
    assert!(run.is_running());
    stage.run(&["unpause"]).expect(0);
    run.wait().expect(0);
}

#[test]
fn stop_without_a_run_leaves_no_file() {
    let stage = stage(SLOW);
    stage.run_task().expect(0);
    stage.run(&["stop"]).expect(0);
    assert!(!stage.has(".autopilot/AUTOPILOT_STOP"));
    stage.run(&["resume"]).expect(64).says(&["nothing to resume", "autopilot run"]);
}
