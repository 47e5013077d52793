//! `autopilot sessions` and going on with one, on runs that scripted agents really made.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, Stage};
use serde_json::Value;

const BUILDS_IN_A_SESSION: &str = "
- step: build
  do:
    - session: 0199aaaa-1111
    - append: { app.txt: \"done\\n\" }
    - cost_usd: 0.05
    - answer: { changed_files: [app.txt], notes: x }
";

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_autopilot"))
}

fn sessions(stage: &Stage, more: &[&str]) -> Value {
    let args = [&["sessions", "--json"], more].concat();
    serde_json::from_str(&stage.run(&args).expect(0).out).unwrap()
}

#[test]
fn every_session_of_a_run_is_listed_with_the_command_to_go_on() {
    let stage = stage();
    stage.agents(&[BUILDS_IN_A_SESSION, APPROVES]);
    stage.run_task().expect(0);
    let told = sessions(&stage, &[]);
    let run = told["run_id"].as_str().unwrap();
    let list = told["sessions"].as_array().unwrap();
    assert_eq!(list.len(), 3, "build, review, acceptance cases: {told}");
    let build = &list[0];
    assert_eq!(build["session"], "0199aaaa-1111");
    assert_eq!((&build["is_the_agents_own"], &build["agent"]), (&true.into(), &"script".into()));
    assert_eq!((&build["task"], &build["step"]), (&"say-done".into(), &"build".into()));
    assert_eq!((&build["iteration"], &build["state"]), (&1.into(), &"passed".into()));
    assert_eq!((&build["cost_usd"], &build["cost_complete"]), (&0.05.into(), &true.into()));
    assert_eq!(build["resume"], "autopilot resume 0199aaaa-1111 --prompt \"…\"");
    let review = &list[1];
    let named = format!("{run}-{}", review["attempt"].as_str().unwrap());
    assert_eq!((review["session"].as_str(), &review["step"]), (Some(&*named), &"review".into()));
    assert_eq!(review["is_the_agents_own"], false);
    // The acceptance cases told no cost.
    assert_eq!((&list[2]["cost_usd"], &list[2]["cost_complete"]), (&Value::Null, &false.into()));

    assert_eq!(sessions(&stage, &[&run[..12]])["sessions"].as_array().unwrap().len(), 3);
    let text = stage.run(&["sessions"]).expect(0);
    text.says(&[run, "0199aaaa-1111", "say-done", "build", "$0.0500", "passed", "unknown"]);
    stage.run(&["sessions", "nothing-like-it"]).expect(64).says(&["nothing-like-it"]);
}

#[test]
fn a_session_under_way_runs_and_one_whose_process_died_is_interrupted() {
    let stage = stage();
    let slow = "\n- step: build\n  do: [{ session: s-1 }, { run: \"sleep 30\" }]\n";
    stage.agents(&[slow, APPROVES]);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_for_step("BUILD");
    assert_eq!(sessions(&stage, &[])["sessions"][0]["state"], "running");
    run.signal("KILL");
    run.wait();
    let told = sessions(&stage, &[]);
    assert_eq!(told["sessions"][0]["state"], "interrupted", "{told}");
}

#[test]
fn without_a_run_there_is_a_next_step() {
    stage().run(&["sessions"]).expect(64).says(&["no run", "autopilot run"]);
}
