//! Requests to a run that meet something in their way: other requests, a sender that is gone, an
//! inbox that is moved. Each is answered, and the answer is true.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::plan::{RUN, TESTS, configure, merged, plan, stage as planned_stage, task};
use autopilot_testkit::stage::{APPROVES, BUILDS, Stage, Started, files};
use serde_json::Value;
use std::path::PathBuf;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
const ENDLESS: &str = "
- step: build
  attempt: 1
  do: [{ run: \"sleep 600\" }]
";

/// A run whose first build never ends by itself, and that looks around only when it is told to.
fn building() -> (Stage, Started) {
    let mut stage = Stage::new(BINARY);
    stage.agents(&[ENDLESS, BUILDS, APPROVES]);
    stage.set("AUTOPILOT_LOOK_MS", "600000");
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_for_step("BUILD");
    (stage, run)
}

fn end(stage: &Stage, run: Started) {
    stage.run(&["stop", "--now"]).expect(0);
    run.wait().expect(2);
}

fn inbox(stage: &Stage) -> PathBuf {
    let state = files(&stage.state());
    let dirs = state.iter().filter_map(|path| Some(path.parent()?.join("inbox")));
    dirs.into_iter().find(|dir| dir.is_dir()).unwrap()
}

/// The messages that wait in the inbox.
fn messages(stage: &Stage) -> Vec<PathBuf> {
    let all = files(&inbox(stage)).into_iter();
    all.filter(|path| path.extension().is_some_and(|end| end == "json")).collect()
}

#[test]
fn of_many_requests_with_nobody_at_work_one_takes_the_run_up_and_all_are_answered() {
    let stage = planned_stage(BINARY, &plan(&[task("one", &[]), task("two", &["one"])]));
    stage.run(&["run", "plan.md", "--plan-only"]).expect(0);
    let approvals: Vec<Started> = (0..4).map(|_| stage.start(&["approve"])).collect();
    let ended: Vec<_> = approvals.into_iter().map(Started::wait).collect();
    let (won, lost): (Vec<_>, Vec<_>) = ended.into_iter().partition(|ended| ended.code == 0);
    assert_eq!(won.len(), 1, "{lost:?}");
    for ended in lost {
        ended.expect(64).says(&["nothing is waiting for approval"]);
    }
    assert_eq!(merged(&stage), ["one", "two"]);
}

#[test]
fn a_request_whose_sender_is_gone_is_not_carried_out() {
    let (stage, run) = building();
    run.signal("STOP");
    let skip = stage.start(&["skip", "say-done"]);
    stage.wait_until("it is sent", |stage| !messages(stage).is_empty());
    skip.signal("INT");
    skip.wait();
    run.signal("CONT");
    // The answer to a later request shows that the earlier one was seen.
    stage.run(&["approve"]).expect(64).says(&["nothing is waiting"]);
    assert_eq!(messages(&stage), Vec::<PathBuf>::new());
    assert_eq!(stage.first_task()["state"], "BUILD");
    end(&stage, run);
}

#[test]
fn a_request_that_was_taken_and_not_answered_is_said_to_be_possible_still() {
    let (stage, run) = building();
    run.signal("STOP");
    let skip = stage.start(&["skip", "say-done"]);
    let message = stage.start(&["attach", "say-done", "--message", "look again"]);
    stage.wait_until("both are sent", |stage| messages(stage).len() == 2);
    // As the process does when it takes a message.
    messages(&stage).iter().for_each(|path| std::fs::remove_file(path).unwrap());
    let unsent = stage.start(&["skip", "say-done"]);
    skip.wait().expect(10).says(&["did not answer", "may still carry it out"]);
    let ended = message.wait().expect(10).says(&["may still carry it out"]);
    assert!(!ended.said().contains("not delivered"), "{}", ended.said());
    unsent.wait().expect(10).says(&["did not answer", "nothing was changed"]);
    run.signal("CONT");
    end(&stage, run);
}

#[test]
fn an_inbox_that_is_moved_away_is_made_again() {
    let (stage, run) = building();
    let inbox = inbox(&stage);
    std::fs::rename(&inbox, inbox.with_extension("x")).unwrap();
    for _ in 0..2 {
        stage.run(&["approve"]).expect(64).says(&["nothing is waiting"]);
    }
    end(&stage, run);
}

#[test]
fn a_run_that_is_worked_on_is_not_resumed_and_not_called_another_run() {
    let (stage, run) = building();
    let ended = stage.run(&["resume"]).expect(10);
    assert!(!ended.said().contains("another run"), "{}", ended.said());
    let pid = format!("process {} on ", run.pid());
    ended.says(&["another process is working in this repository", &pid, "`autopilot stop`"]);
    end(&stage, run);
}

#[test]
fn after_a_failure_of_the_run_itself_the_run_is_retried_and_not_a_task() {
    let stage = planned_stage(BINARY, &plan(&[task("one", &[])]));
    configure(&stage, &format!("{TESTS}gates: {{ human: deferred }}\n"));
    stage.run(&RUN).expect(2);
    stage.run(&["reject", "not what I meant"]).expect(10);
    stage.run(&["status"]).expect(0).says(&["`autopilot retry` tries again"]);
    for args in [&["resume"][..], &["resume", "--dry-run"]] {
        let ended = stage.run(args).expect(64);
        ended.says(&["nothing to resume in this repository", "`autopilot retry` tries again"]);
    }
}

#[test]
fn a_refusal_is_json_where_that_is_asked_for() {
    let stage = Stage::new(BINARY);
    stage.run_task().expect(0);
    let ended = stage.run(&["skip", "nobody", "--json"]).expect(64);
    assert_eq!(ended.out, "");
    let told: Value = serde_json::from_str(ended.err.lines().last().unwrap()).unwrap();
    assert!(told["error"].as_str().unwrap().starts_with("there is no task `nobody`"), "{told}");
    assert_eq!(told["help"][0], "its tasks are: say-done");
    ended.says(&["error: there is no task `nobody`", "help: its tasks are"]);
}

#[test]
fn advice_names_only_commands_that_help() {
    let stage = Stage::new(BINARY);
    stage.write("AUTOPILOT_STOP", "");
    let ended = stage.run_task().expect(2);
    assert!(!ended.said().contains("autopilot resume"), "{}", ended.said());
    std::fs::remove_file(stage.path("AUTOPILOT_STOP")).unwrap();
    stage.run_task().expect(0);
    stage.run(&["attach", "run"]).expect(64).says(&["`autopilot logs` has what was said"]);
    stage.run(&["logs"]).expect(0);
}

#[test]
fn a_beginning_that_two_runs_share_undoes_neither() {
    let stage = Stage::new(BINARY);
    stage.run_task().expect(0);
    stage.task("say-more", "Say more");
    stage.run(&["run", "tasks/say-more.md"]).expect(0);
    let run = stage.status()["run_id"].as_str().unwrap().to_owned();
    let before = stage.git(&["branch", "--list", "autopilot/*"]);
    let ended = stage.run(&["undo", &run[..4]]).expect(64);
    ended.says(&["is the beginning of more than one run", &run]);
    assert_eq!(stage.git(&["branch", "--list", "autopilot/*"]), before);
    stage.run(&["undo", &run]).expect(0);
}
