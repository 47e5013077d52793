//! `autopilot cost` and the limits on money, on runs that scripted agents really made.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, BUILDS, Stage};
use serde_json::{Value, json};

/// Breaks the tests in the first round and repairs them in the second; tells tokens too.
const TWO_ROUNDS: &str = "
- step: build
  do:
    - append: { app.txt: \"broken\\n\" }
    - tokens: { input: 1000, output: 50, cached: 400 }
    - cost_usd: 0.05
    - answer: { changed_files: [app.txt], notes: x }
- step: fix
  do:
    - write: { app.txt: \"start\\ndone\\n\" }
    - tokens: { input: 500, output: 25 }
    - cost_usd: 0.0225
    - answer: { changed_files: [app.txt], notes: x }
";

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_autopilot"))
}

fn cost(stage: &Stage, more: &[&str]) -> Value {
    let args = [&["cost", "--json"], more].concat();
    serde_json::from_str(&stage.run(&args).expect(0).out).unwrap()
}

/// The rows of a part, by their key.
fn rows(part: &Value) -> Vec<(String, Value)> {
    let by = part["by"].as_str().unwrap();
    let rows = part["rows"].as_array().unwrap().iter();
    rows.map(|row| (row[by].as_str().unwrap().to_owned(), row.clone())).collect()
}

fn row(part: &Value, key: &str) -> Value {
    let found = rows(part).into_iter().find(|(name, _)| name == key);
    found.unwrap_or_else(|| panic!("no {key} in {part}")).1
}

#[test]
fn money_and_tokens_add_up_by_step_task_run_and_day() {
    let stage = stage();
    stage.run_task().expect(0);
    stage.agents(&[TWO_ROUNDS, APPROVES]);
    stage.task("second", "Second");
    stage.run(&["run", "tasks/second.md"]).expect(0);

    let told = cost(&stage, &[]);
    assert_eq!(told["days"], "UTC");
    let parts = told["parts"].as_array().unwrap();
    let ways: Vec<&str> = parts.iter().map(|part| part["by"].as_str().unwrap()).collect();
    assert_eq!(ways, ["task", "step", "run", "day"]);
    let (task, step) = (&parts[0], &parts[1]);
    let build = row(step, "build");
    assert_eq!((&build["cost_usd"], &build["attempts"]), (&0.05.into(), &1.into()), "{told}");
    assert_eq!((&build["tokens_in"], &build["tokens_cached"]), (&1000.into(), &400.into()));
    assert_eq!(row(step, "fix")["cost_usd"], 0.0225);
    assert_eq!(row(step, "review")["cost_usd"], 0.02, "once in each round");
    // What told no cost is unknown and not nothing.
    let cases = row(step, "uat_generate");
    assert_eq!((&cases["cost_usd"], &cases["cost_complete"]), (&Value::Null, &false.into()));
    let whole = row(task, "second");
    assert!((whole["cost_usd"].as_f64().unwrap() - 0.0925).abs() < 1e-9, "{told}");
    assert_eq!((&whole["tokens_in"], &whole["tokens_out"]), (&1500.into(), &75.into()));
    assert_eq!(whole["cost_complete"], false);
    assert_eq!(task["total"], step["total"]);

    let runs = &cost(&stage, &["--by", "run"])["parts"][0];
    assert_eq!(rows(runs).len(), 2);
    let status = stage.run(&["status", "--json"]).expect(0).out;
    let status: Value = serde_json::from_str(&status).unwrap();
    let newest = rows(runs).remove(0);
    assert_eq!(status["run_id"], newest.0, "the newest comes first");
    assert_eq!(status["cost_usd"], newest.1["cost_usd"]);
    assert!((runs["total"]["cost_usd"].as_f64().unwrap() - 0.1125).abs() < 1e-9, "{runs}");
    for by in ["day", "step", "task", "agent", "model"] {
        let part = &cost(&stage, &["--by", by])["parts"][0];
        assert_eq!(part["total"], runs["total"], "{by}");
    }
    assert_eq!(rows(&cost(&stage, &["--by", "agent"])["parts"][0])[0].0, "script");
    let first = rows(runs).remove(1).0;
    let one = &cost(&stage, &[&first, "--by", "step"])["parts"][0];
    assert_eq!(one["total"]["cost_usd"], 0.02, "{one}");
    assert_eq!(cost(&stage, &["--since", "1h"])["parts"][0]["total"], runs["total"]);
    let none = &cost(&stage, &["--since", "2999-01-01"])["parts"][0];
    assert_eq!((&none["rows"], &none["total"]["attempts"]), (&json!([]), &0.into()));

    let text = stage.run(&["cost"]).expect(0);
    text.says(&["by task", "by step", "today by run", "last 7 days by day (UTC)", "$0.0500"])
        .says(&["unknown", "1,000", "total", "$0.0925 + unknown"]);
}

#[test]
fn questions_that_make_no_sense_are_refused() {
    let stage = stage();
    stage.run(&["cost"]).expect(0).says(&["no runs yet"]);
    assert_eq!(cost(&stage, &[])["parts"], json!([]));
    stage.run(&["cost", "some-run"]).expect(64);
    stage.run_task().expect(0);
    stage.run(&["cost", "no-such-run"]).expect(64).says(&["no-such-run"]);
    stage.run(&["cost", "--by", "moon"]).expect(64).says(&["moon", "step"]);
    stage.run(&["cost", "--since", "soon"]).expect(64).says(&["soon", "--since 7d"]);
}

#[test]
fn an_agent_that_died_has_an_unknown_cost() {
    let stage = stage();
    let slow = "\n- step: build\n  do: [{ run: \"sleep 30\" }]\n";
    stage.agents(&[slow, APPROVES]);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_for_step("BUILD");
    run.signal("KILL");
    run.wait();
    stage.agents(&[BUILDS, APPROVES]);
    stage.run(&["resume"]).expect(0);
    let build = row(&cost(&stage, &[])["parts"][1], "build");
    assert_eq!((&build["cost_usd"], &build["attempts"]), (&0.01.into(), &2.into()), "{build}");
    assert_eq!(build["attempts_of_unknown_cost"], 1, "{build}");
}
