//! `autopilot runs --stats`: figures of runs that scripted agents really made.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, BUILDS, Stage};
use serde_json::{Value, json};

/// The agent crashes once, then breaks the tests, and repairs them in the second round.
const SLOW_START: &str = "
- step: build
  attempt: 1
  do: [{ exit: 1 }]
- step: build
  do:
    - append: { app.txt: \"broken\\n\" }
    - cost_usd: 0.05
    - answer: { changed_files: [app.txt], notes: x }
- step: fix
  do:
    - write: { app.txt: \"start\\ndone\\n\" }
    - cost_usd: 0.02
    - answer: { changed_files: [app.txt], notes: x }
";

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_autopilot"))
}

fn stats(stage: &Stage, more: &[&str]) -> Value {
    let args = [&["runs", "--stats", "--json"], more].concat();
    serde_json::from_str(&stage.run(&args).expect(0).out).unwrap()
}

#[test]
fn figures_add_up_over_runs() {
    let stage = stage();
    stage.run_task().expect(0);
    stage.agents(&[SLOW_START, APPROVES]);
    stage.task("second", "Second");
    stage.run(&["run", "tasks/second.md"]).expect(0);
    stage.agents(&["\n- step: build\n  do: [{ exit: 1 }]\n", APPROVES]);
    stage.task("third", "Third");
    stage.run(&["run", "tasks/third.md"]).expect(10);

    let all = stats(&stage, &[]);
    assert_eq!(all["runs"], json!({ "total": 3, "by_state": { "DONE": 2, "FAILED": 1 } }));
    assert_eq!(all["tasks"], json!({ "total": 3, "by_status": { "DONE": 2, "FAILED": 1 } }));
    let rounds = &all["iterations_per_task"];
    assert_eq!((&rounds["count"], &rounds["max"]), (&3.into(), &2.0.into()), "{all}");
    assert_eq!(rounds["median"], 1.0);
    let runs: Value = serde_json::from_str(&stage.run(&["runs", "--json"]).expect(0).out).unwrap();
    let cost: f64 = runs.as_array().unwrap().iter().map(|r| r["cost_usd"].as_f64().unwrap()).sum();
    assert!(cost > 0.09 && (all["cost_usd"].as_f64().unwrap() - cost).abs() < 1e-9, "{all}");
    assert!(all["broken_attempts"].as_u64().unwrap() >= 2, "{all}");
    assert_eq!(all["interruptions"], 0);
    assert_eq!(all["steps"]["fix"]["attempts"], 1, "{all}");
    let shares = all["steps"].as_object().unwrap().values();
    let shares: f64 = shares.map(|step| step["share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{all}");
    assert_eq!(all["older_runs_exist"], false);

    let newest = stats(&stage, &["-n", "1"]);
    assert_eq!((&newest["runs"]["total"], &newest["older_runs_exist"]), (&1.into(), &true.into()));
    assert_eq!(stats(&stage, &["--since", "1h"])["runs"]["total"], 3);
    assert_eq!(stats(&stage, &["--since", "2999-01-01"])["runs"]["total"], 0);
    let text = stage.run(&["runs", "--stats", "-n", "2"]).expect(0);
    text.says(&["2 runs", "1 DONE, 1 FAILED", "iterations per task", "p90", "share", "older runs"]);
    stage.run(&["runs", "--since", "2999-01-01"]).expect(0).says(&["no runs since then"]);
    stage.run(&["runs", "--since", "soon"]).expect(64).says(&["soon", "--since 7d"]);
}

#[test]
fn an_interruption_is_counted_and_the_run_is_told_to_rest() {
    let stage = stage();
    let slow = "\n- step: build\n  do: [{ run: \"sleep 30\" }]\n";
    stage.agents(&[slow, APPROVES]);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_for_step("BUILD");
    assert_eq!(stats(&stage, &[])["runs"]["by_state"], json!({ "RUNNING": 1 }));
    run.signal("KILL");
    run.wait();
    assert_eq!(stats(&stage, &[])["runs"]["by_state"], json!({ "INTERRUPTED": 1 }));
    stage.agents(&[BUILDS, APPROVES]);
    stage.run(&["resume"]).expect(0);
    let all = stats(&stage, &[]);
    assert_eq!(
        (&all["interruptions"], &all["runs"]["by_state"]),
        (&1.into(), &json!({ "DONE": 1 }))
    );
}

#[test]
fn without_runs_there_is_a_next_step() {
    let stage = stage();
    stage.run(&["runs", "--stats"]).expect(0).says(&["no runs yet", "autopilot run"]);
    assert_eq!(stats(&stage, &[])["runs"]["total"], 0);
}
