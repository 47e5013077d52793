//! Stopping, pausing and going on: by file, by command and by signal.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::faulty_git::FaultyGit;
use autopilot_testkit::stage::{APPROVES, BUILDS, Stage, Started};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

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
    stage.run(&["stop"]).expect(0).says(&["stopping the run after the current steps"]);
    rests(&stage, run);
    assert!(!stage.has(".autopilot/AUTOPILOT_STOP"), "a stop that was answered leaves no file");
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
    stage.run(&["stop", "--now"]).expect(0).says(&["stopping the run now"]);
    rests(&stage, run);
    ends_done(&stage);
    assert_eq!(stage.git(&["show", "autopilot/say-done:app.txt"]), "start\nhalf\ndone");
}

#[test]
fn a_second_stop_says_that_the_run_is_stopping_and_stop_now_is_heard_after_it() {
    let stage = stage(ENDLESS);
    let run = started(&stage);
    stage.run(&["stop"]).expect(0).says(&["stopping the run after the current steps"]);
    let again = stage.run(&["stop"]).expect(0).said();
    assert!(again.contains("the run is already stopping or over"), "{again}");
    let again = stage.run(&["pause"]).expect(0).said();
    assert!(again.contains("already paused, stopping or over"), "{again}");
    let unpaused = stage.run(&["unpause"]).expect(0).said();
    assert!(unpaused.contains("the run is not paused"), "it keeps stopping: {unpaused}");
    stage.run(&["stop", "--now"]).expect(0).says(&["stopping the run now"]);
    rests(&stage, run);
    stage.run(&["stop"]).expect(0).says(&["no run is under way"]);
    assert!(!stage.has(".autopilot/AUTOPILOT_STOP"));
    ends_done(&stage);
}

/// A process that is frozen hears nothing; the file is there when it goes on.
#[test]
fn a_stop_that_nobody_answers_is_left_in_the_file_and_heard_later() {
    let stage = stage(ENDLESS);
    let run = started(&stage);
    run.signal("STOP");
    let told = stage.run(&["stop", "--now", "--json"]).expect(0);
    let told: serde_json::Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(told["path"], ".autopilot/AUTOPILOT_STOP", "{told}");
    assert!(told["answer"].as_str().unwrap().contains("did not answer within 15 s"), "{told}");
    assert_eq!(stage.read(".autopilot/AUTOPILOT_STOP"), "now");
    run.signal("CONT");
    rests(&stage, run);
    ends_done(&stage);
    assert!(!stage.has(".autopilot/AUTOPILOT_STOP"), "resume removes it");
}

#[test]
fn a_stop_is_not_lost_when_the_process_dies_before_it_answers() {
    let stage = stage(ENDLESS);
    let run = started(&stage);
    run.signal("STOP");
    let asked = stage.start(&["stop"]);
    stage.wait_until("the request is in the inbox", |stage| {
        !autopilot_testkit::stage::files_with(&stage.state(), "\"halt\"").is_empty()
    });
    run.signal("KILL");
    let told = asked.wait().expect(0);
    told.says(&["ended before it answered", "AUTOPILOT_STOP"]);
    assert!(stage.has(".autopilot/AUTOPILOT_STOP"));
    stage.run_task().expect(2).says(&["AUTOPILOT_STOP", "autopilot resume"]);
    run.wait();
    stage.run(&["resume"]).expect(0);
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
    stage.run(&["pause"]).expect(0).says(&["pausing the run before its next step"]);
    rests(&stage, run);
    stage.run(&["unpause"]).expect(0).says(&["there was no pause", "autopilot resume"]);
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
    stage.run(&["unpause"]).expect(0).says(&["the pause is cancelled"]);
    run.wait().expect(0);
}

#[test]
fn a_waiting_run_that_a_file_paused_goes_on_when_the_file_is_gone_and_not_before() {
    let stage = stage(SLOW);
    let mut run = stage.start(&["run", "tasks/say-done.md", "--wait"]);
    stage.wait_for_step("BUILD");
    stage.write("AUTOPILOT_PAUSE", "");
    stage.wait_until("it rests", |stage| stage.state_json()["current_state"] == "PAUSED");
    assert!(run.is_running());
    std::fs::remove_file(stage.path("AUTOPILOT_PAUSE")).unwrap();
    run.wait().expect(0);
}

#[test]
fn a_waiting_run_that_is_paused_can_be_stopped() {
    let stage = stage(SLOW);
    let mut run = stage.start(&["run", "tasks/say-done.md", "--wait"]);
    stage.wait_for_step("BUILD");
    stage.run(&["pause"]).expect(0);
    stage.wait_until("it rests", |stage| stage.state_json()["current_state"] == "PAUSED");
    assert!(run.is_running());
    stage.run(&["stop"]).expect(0).says(&["stopping the run after the current steps"]);
    rests(&stage, run);
    ends_done(&stage);
}

#[test]
fn stop_without_a_run_leaves_no_file() {
    let stage = stage(SLOW);
    stage.run_task().expect(0);
    stage.run(&["stop"]).expect(0).says(&["no run is under way; nothing was changed"]);
    assert!(!stage.has(".autopilot/AUTOPILOT_STOP"));
    stage.run(&["resume"]).expect(64).says(&["nothing to resume", "autopilot run"]);
}

#[test]
fn a_finished_run_whose_output_nobody_reads_is_ended_by_a_signal() {
    let stage = stage(BUILDS);
    let (_unread, mut full) = std::io::pipe().unwrap();
    // A pipe holds so much until somebody reads.
    full.write_all(&[b'x'; 64 * 1024]).unwrap();
    let mut command = stage.command(&["run", "tasks/say-done.md"]);
    let mut run = command.stdin(Stdio::null()).stdout(full).stderr(Stdio::null()).spawn().unwrap();
    stage.wait_until("it is done", |stage| stage.state_json()["current_state"] == "DONE");
    let pid = run.id().to_string();
    // The first signals may still ask the run to stop, which is about to end anyway.
    let ended = (0..100).find_map(|_| {
        assert!(Command::new("kill").arg(&pid).status().unwrap().success());
        std::thread::sleep(Duration::from_millis(100));
        run.try_wait().unwrap()
    });
    let ended = ended.or_else(|| run.kill().ok().and_then(|()| run.wait().ok()));
    assert_eq!(ended.unwrap().signal(), Some(15));
    assert_eq!(stage.state_json()["current_state"], "DONE");
}

#[test]
fn a_run_whose_only_task_is_skipped_says_that_nothing_was_built() {
    let stage = stage(SLOW);
    let run = started(&stage);
    stage.run(&["skip", "say-done"]).expect(0);
    let nothing = "none; every task was skipped, so nothing was built";
    run.wait().expect(0).says(&["DONE", &format!("proof: {nothing}")]);
    stage.run(&["status"]).expect(0).says(&[nothing, "autopilot retry"]);
    assert!(stage.read(".autopilot/STATUS.md").contains(nothing));
    assert_eq!(stage.state_json()["unproven"], "every task was skipped, so nothing was built");
    stage.run(&["report", "--out", "page.html"]).expect(0);
    let page = stage.read("page.html");
    assert!(page.contains("Nothing is proven: every task was skipped"), "{page}");
}

#[test]
fn a_signal_before_the_run_has_begun_ends_git_with_the_process() {
    for signal in ["TERM", "INT", "HUP"] {
        let mut stage = stage(BUILDS);
        let git = FaultyGit::on(&mut stage);
        let hung = git.dir().join("hung");
        // A child of git's too, as a fetch has one.
        git.does(&format!("sleep 600 & echo $$ $! > '{}'; exec sleep 600", hung.display()));
        // The hub is made.
        git.strike_once("init");
        let run = stage.start(&["run", "tasks/say-done.md"]);
        let pids = || std::fs::read_to_string(&hung).unwrap_or_default();
        stage.wait_until("git hangs", |_| pids().ends_with('\n'));
        run.signal(signal);
        run.wait();
        for pid in pids().split_whitespace() {
            // A zombie has no command line.
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            assert!(line.is_empty(), "{signal}: {pid} {}", String::from_utf8_lossy(&line));
        }
        stage.run_task().expect(0);
    }
}
