//! `runs/autopilot/<run-id>/`: what a run towards a goal leaves in the checkout to be read. The real
//! binary, real git, scripted agents.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::goal::{
    GOAL, answers, dir, gated, manifest, run_state, step, told_so_far, workflow,
};
use autopilot_testkit::stage::{Stage, files_with};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");

const WORKS: &str = "
- step: step
  do:
    - run: 'echo \"$AUTOPILOT_TASK_ID\" > \"$AUTOPILOT_TASK_ID.txt\"; echo done >> app.txt'
    - cost_usd: 0.01
    - answer: \"Done: wrote it with the bearer abc123\"
";
const FAILS: &str = "
- step: step
  task: bad
  do: [{ say: it could not be done }, { exit: 1 }]
";

fn picked(values: &Value, keys: &[&str]) -> Value {
    let pick = |value: &Value| keys.iter().map(|key| value[key].clone()).collect::<Value>();
    values.as_array().unwrap().iter().map(pick).collect()
}

fn two_iterations() -> Stage {
    let mut first =
        workflow("w1", &[step("good", &[]), step("bad", &[]), step("after", &["good", "bad"])]);
    first["colour"] = "red".into();
    let stage = Stage::new(BINARY);
    stage.agents(&[
        &answers("workflow", 1, &first),
        &answers("workflow", 2, &workflow("w2", &[step("bad", &[]), step("good", &[])])),
        FAILS,
        WORKS,
        &answers("completion", 1, &json!({ "done": false, "reason": "bad is missing" })),
        &answers("completion", 2, &json!({ "done": true, "summary": "it is done" })),
    ]);
    stage.config("commands: { tests: sh test.sh }\n");
    stage.commit("settings");
    stage
}

#[test]
fn a_run_is_told_with_its_graph_its_iterations_and_its_questions() {
    let stage = two_iterations();
    stage.run(&GOAL).expect(0);
    let told = manifest(&stage);
    assert_eq!(
        picked(&told["graph"]["nodes"], &["id", "iteration", "stepId", "status"]),
        json!([
            ["good", 1, "good", "succeeded"],
            ["bad", 1, "bad", "failed"],
            ["after", 1, "after", "succeeded"],
            ["bad-i2", 2, "bad", "succeeded"],
            ["good-i2", 2, "good", "succeeded"],
        ])
    );
    assert_eq!(
        told["graph"]["edges"],
        json!([{ "from": "good", "to": "after" }, { "from": "bad", "to": "after" }])
    );
    assert_eq!(
        told["graph"]["warnings"],
        json!([
            "iteration 1: `colour` of the workflow is unknown and ignored",
            "iteration 1: not done: bad is missing",
        ])
    );
    assert_eq!(told["cwd"], stage.root().canonicalize().unwrap().to_str().unwrap());
    assert_eq!(told["options"]["maxIterations"], 4);
    assert!(told["startedAt"].as_str() <= told["finishedAt"].as_str(), "{told}");
    let execs = picked(&told["execs"], &["kind", "stepId", "iteration", "status"]);
    let asked: Vec<String> = execs.as_array().unwrap().iter().map(Value::to_string).collect();
    assert_eq!(asked.len(), 9, "questions to agents and nothing else: {asked:?}");
    for one in [
        r#"["workflow",null,1,"succeeded"]"#,
        r#"["step","bad",1,"failed"]"#,
        r#"["step","bad",2,"succeeded"]"#,
        r#"["completion",null,2,"succeeded"]"#,
    ] {
        assert!(asked.contains(&one.to_owned()), "{one}: {asked:?}");
    }
    agrees_with_sessions(&stage, &told);
    for (place, exec) in told["execs"].as_array().unwrap().iter().enumerate() {
        assert_eq!(exec["number"], place + 1);
        let name = format!("exec-{:03}-{}", place + 1, exec["label"].as_str().unwrap());
        for at in [dir(&stage).join(name), stage.path(exec["path"].as_str().unwrap())] {
            assert!(
                at.join("prompt.txt").is_file() && at.join("metadata.json").is_file(),
                "{at:?}"
            );
        }
    }
}

/// An agent without sessions of its own has one by the name it is listed under.
fn agrees_with_sessions(stage: &Stage, told: &Value) {
    let listed = stage.run(&["sessions", "--json"]).expect(0).out;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let names = |of: &Value, key: &str| -> BTreeSet<String> {
        let of = of.as_array().unwrap().iter();
        of.map(|one| one[key].as_str().unwrap().to_owned()).collect()
    };
    let known = names(&listed["sessions"], "session");
    assert_eq!(names(&told["execs"], "sessionId"), known);
    for node in told["graph"]["nodes"].as_array().unwrap() {
        let all = listed["sessions"].as_array().unwrap();
        let last = all.iter().rfind(|session| session["task"] == node["id"]).unwrap();
        assert_eq!(node["sessionId"], last["session"]);
    }
}

#[test]
fn the_state_of_a_run_has_every_iteration_with_its_results() {
    let stage = two_iterations();
    stage.run(&GOAL).expect(0);
    let state = run_state(&stage);
    assert_eq!(state["task"], GOAL[1]);
    assert_eq!(state["adapter"], "script");
    let iterations = &state["iterations"];
    assert_eq!(picked(iterations, &["index"]), json!([[1], [2]]));
    assert_eq!(iterations[0]["workflow"]["id"], "w1");
    assert_eq!(iterations[0]["workflow"]["steps"][2], step("after", &["good", "bad"]));
    assert_eq!(
        picked(&iterations[0]["steps"], &["stepId", "status"]),
        json!([["good", "succeeded"], ["bad", "failed"], ["after", "succeeded"]])
    );
    assert!(iterations[0]["steps"][1]["error"].is_string(), "{iterations}");
    assert_eq!(iterations[0]["completion"], json!({ "done": false, "reason": "bad is missing" }));
    assert_eq!(iterations[1]["completion"], json!({ "done": true, "summary": "it is done" }));
    // What the next iteration was told is what the files say of the one before.
    let carried = stage.texts_of("run-workflow/prompt.txt");
    for result in iterations[0]["steps"].as_array().unwrap() {
        let part = |key: &str| result[key].as_str().unwrap().to_owned();
        let (id, status, session) = (part("stepId"), part("status"), part("sessionId"));
        assert!(!session.is_empty(), "{result}");
        let line = format!("- {id}: {status} (session {session})");
        assert!(carried.contains(&line), "{line}: {carried}");
    }
    assert!(carried.contains("Reviewer: not done (bad is missing)"), "{carried}");
}

#[test]
fn the_checkout_stays_clean_and_secrets_stay_out() {
    let stage = two_iterations();
    let before = stage.git(&["status", "--porcelain"]);
    stage.run(&["goal", "Make app.txt say done with the bearer abc123"]).expect(0);
    assert_eq!(stage.git(&["status", "--porcelain"]), before);
    assert_eq!(stage.read("runs/autopilot/.gitignore"), "*\n");
    assert_eq!(files_with(&stage.path("runs"), "abc123"), Vec::<PathBuf>::new());
    let said = &run_state(&stage)["iterations"][0]["steps"][0]["outputText"];
    assert_eq!(said, "Done: wrote it with the [redacted]");
}

#[test]
fn nothing_is_written_through_a_link() {
    let stage = two_iterations();
    let outside = stage.folder().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, stage.path("runs")).unwrap();
    stage.run(&GOAL).expect(64).says(&["runs/autopilot", "--out", "symbolic link"]);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    assert!(!stage.has(".autopilot/state.json"), "nothing was begun");
}

#[test]
fn a_kill_leaves_a_run_that_can_be_read_and_gone_on_with() {
    let (stage, gate) = gated(BINARY, WORKS);
    let run = stage.start(&GOAL);
    stage.wait_until("the files tell that the second step works", |stage| {
        let told = told_so_far(stage).unwrap_or_default();
        let is_told = told["graph"]["nodes"][1]["status"] == "running";
        is_told && !stage.views("two-step/metadata.json").is_empty()
    });
    run.signal("KILL");
    run.wait();
    let (told, state) = (manifest(&stage), run_state(&stage));
    assert_eq!(told["finishedAt"], Value::Null);
    assert_eq!(told["graph"]["nodes"][0]["status"], "succeeded", "{told}");
    assert_ne!(told["graph"]["nodes"][1]["status"], "succeeded", "{told}");
    assert_eq!(
        picked(&state["iterations"][0]["steps"], &["stepId", "status"]),
        json!([["one", "succeeded"]])
    );
    std::fs::write(gate, "").unwrap();
    stage.run(&["resume"]).expect(0);
    let (told, state) = (manifest(&stage), run_state(&stage));
    assert!(told["finishedAt"].is_string());
    assert_eq!(
        picked(&told["graph"]["nodes"], &["id", "status"]),
        json!([["one", "succeeded"], ["two", "succeeded"]])
    );
    let asked = picked(&told["execs"], &["label", "status"]);
    let cut_short = json!(["two-step", "interrupted"]);
    assert!(asked.as_array().unwrap().contains(&cut_short), "{asked}");
    assert_eq!(state["iterations"][0]["completion"]["done"], true);
}
