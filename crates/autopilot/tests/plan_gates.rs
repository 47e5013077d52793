//! Where a person has a word: the plan before it is worked on, and the result before it leaves.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::plan::{
    RUN, Stamps, TESTS, branch, builds, configure, merged, outside, plan, planner_prompts, says,
    stage, statuses_are, task,
};
use autopilot_testkit::stage::{APPROVES, Stage, text};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
const PLAN_ONLY: [&str; 3] = ["run", "plan.md", "--plan-only"];
const THREE: &str = "gates: { human: three }\n";
const WAITS: &str = "waits: for a person to approve the plan";

fn two() -> Value {
    plan(&[task("one", &[]), task("two", &["one"])])
}

fn gated() -> Stage {
    let stage = stage(BINARY, &two());
    configure(&stage, &format!("{TESTS}{THREE}"));
    stage
}

#[track_caller]
fn planned(stage: &Stage) -> Vec<String> {
    let plan: Value = serde_json::from_str(&stage.read(".autopilot/plan/plan.json")).unwrap();
    let id = |task: &Value| task["id"].as_str().unwrap().to_owned();
    plan["tasks"].as_array().unwrap().iter().map(id).collect()
}

#[track_caller]
fn nothing_is_built(stage: &Stage) {
    assert_eq!(stage.state_json()["tasks"], json!([]));
    assert!(Stamps::of(stage).lines.is_empty());
    assert_eq!(stage.git(&["branch", "--list", "autopilot/*"]), "");
}

#[test]
fn a_plan_only_is_made_and_kept_and_nothing_is_built() {
    let stage = stage(BINARY, &two());
    let before = stage.digest();
    stage.run(&PLAN_ONLY).expect(0).says(&["the plan is ready", "autopilot approve"]);
    assert_eq!(planned(&stage), ["one", "two"]);
    nothing_is_built(&stage);
    assert_eq!(stage.digest(), before);
    let status = stage.status();
    assert_eq!(status["current_state"], "PAUSED", "{status:#}");
    let graph = stage.run(&["graph", "--plan", ".autopilot/plan/plan.json"]).expect(0);
    graph.says(&["one", "two"]);
}

#[test]
fn a_plan_that_was_only_made_goes_on_by_run_or_by_approve() {
    for next in [&RUN[..], &["approve"]] {
        let stage = stage(BINARY, &two());
        stage.run(&PLAN_ONLY).expect(0);
        stage.run(&PLAN_ONLY).expect(0).says(&["the plan is ready"]);
        stage.run(next).expect(0);
        assert_eq!(merged(&stage), ["one", "two"]);
        assert_eq!(planner_prompts(&stage).len(), 1, "planned once");
    }
}

#[test]
fn where_gates_ask_for_people_the_run_waits_at_the_plan_and_before_anything_leaves() {
    let stage = gated();
    let remote = text(stage.folder().join("remote.git"));
    stage.git(&["init", "-q", "--bare", &remote]);
    stage.git(&["remote", "add", "origin", &remote]);
    let pushed = || stage.git(&["ls-remote", &remote]);
    stage.run(&["run", "plan.md", "--push"]).expect(2).says(&[WAITS, "autopilot reject"]);
    nothing_is_built(&stage);
    stage.run(&RUN).expect(2).says(&[WAITS]);
    nothing_is_built(&stage);
    stage.run(&["approve"]).expect(2).says(&["approve the result", "autopilot diff"]);
    assert_eq!(merged(&stage), ["one", "two"]);
    assert_eq!(pushed(), "", "nothing has left");
    stage.run(&["resume"]).expect(2).says(&["approve the result"]);
    stage.run(&["approve"]).expect(0);
    assert!(pushed().contains(&branch(&stage)), "{}", pushed());
    stage.run(&["approve"]).expect(64).says(&["nothing waits", "autopilot status"]);
}

#[test]
fn a_result_that_is_rejected_does_not_leave() {
    let stage = gated();
    stage.run(&RUN).expect(2);
    stage.run(&["approve"]).expect(2);
    stage.run(&["reject", "not what I meant"]).expect(10).says(&["not what I meant"]);
    assert_eq!(stage.state_json()["current_state"], "FAILED");
}

#[test]
fn deferred_gates_wait_only_at_the_end() {
    let stage = stage(BINARY, &two());
    configure(&stage, &format!("{TESTS}gates: {{ human: deferred }}\n"));
    stage.run(&RUN).expect(2).says(&["approve the result"]);
    assert_eq!(merged(&stage), ["one", "two"]);
    stage.run(&["approve"]).expect(0);
}

#[test]
fn a_rejected_plan_is_made_anew_with_the_reason() {
    let stage = gated();
    let other = plan(&[task("only", &[])]);
    let second = says(&other).replace("- step: plan\n", "- step: plan\n  prompt: far too coarse\n");
    stage.agents(&[&second, &says(&two()), &builds(&stage), APPROVES]);
    stage.run(&RUN).expect(2);
    stage.run(&["reject", ""]).expect(64).says(&["why"]);
    stage.run(&["reject", "far too coarse"]).expect(2).says(&[WAITS]);
    let prompts = planner_prompts(&stage);
    assert_eq!(prompts.len(), 2);
    assert!(prompts[1].contains("far too coarse") && !prompts[0].contains("far too coarse"));
    assert_eq!(planned(&stage), ["only"]);
    stage.run(&["approve"]).expect(2);
    statuses_are(&stage, &[("only", "DONE")]);
    stage.run(&["approve"]).expect(0);
}

#[test]
fn a_plan_that_is_rejected_again_and_again_ends_at_the_limit_of_rounds() {
    let stage = stage(BINARY, &two());
    configure(&stage, &format!("{TESTS}{THREE}loop: {{ max_iterations: 2 }}\n"));
    stage.run(&RUN).expect(2);
    stage.run(&["reject", "no"]).expect(2);
    let ended = stage.run(&["reject", "no, really"]);
    assert!([10, 11].contains(&ended.code), "{}", ended.said());
    nothing_is_built(&stage);
}

#[test]
fn where_nothing_waits_nothing_can_be_approved() {
    let stage = stage(BINARY, &two());
    for said in [&["approve"][..], &["reject", "x"], &["approve", "--edit"]] {
        stage.run(said).expect(64).says(&["nothing waits", "autopilot status"]);
    }
    stage.run(&RUN).expect(0);
    stage.run(&["approve"]).expect(64).says(&["nothing waits"]);
}

#[test]
fn at_a_gate_resume_says_what_is_awaited() {
    let stage = gated();
    stage.run(&RUN).expect(2);
    stage.run(&["resume"]).expect(2).says(&[WAITS, "autopilot approve"]);
    stage.run(&["status"]).expect(0).says(&["approve the plan", "autopilot approve"]);
    assert!(stage.state_json()["reason"].as_str().unwrap().contains("approve the plan"));
    let status = stage.read(".autopilot/STATUS.md");
    assert!(status.contains("autopilot approve"), "{status}");
    assert_eq!(planner_prompts(&stage).len(), 1);
}

/// An editor that puts this plan in the place of the one it is given.
fn editor(stage: &mut Stage, text_of_plan: &str) {
    let edited = outside(stage, "edited.json");
    std::fs::write(&edited, text_of_plan).unwrap();
    stage.write_program("editor.sh", &format!("#!/bin/sh\ncp {} \"$1\"\n", text(&edited)));
    let editor = text(stage.path("editor.sh"));
    stage.set("EDITOR", &editor);
}

fn edited_plan() -> Value {
    plan(&[task("one", &[]), task("three", &["one"])])
}

#[test]
fn an_edited_plan_is_the_one_that_is_worked_on() {
    let mut stage = stage(BINARY, &two());
    editor(&mut stage, &edited_plan().to_string());
    let ended = stage.run(&["run", "plan.md", "--edit"]).expect(0);
    ended.says(&["- two is gone", "+ three is new"]);
    assert_eq!(merged(&stage), ["one", "three"]);
    assert_eq!(planned(&stage), ["one", "three"]);
}

#[test]
fn a_plan_can_be_edited_when_it_is_approved() {
    let mut stage = gated();
    stage.run(&RUN).expect(2);
    editor(&mut stage, &edited_plan().to_string());
    stage.run(&["approve", "--edit"]).expect(2).says(&["+ three is new", "approve the result"]);
    assert_eq!(merged(&stage), ["one", "three"]);
}

#[test]
fn a_plan_left_as_it_is_in_the_editor_is_approved_as_it_is() {
    let mut stage = stage(BINARY, &two());
    stage.set("EDITOR", "true");
    stage.run(&["run", "plan.md", "--edit"]).expect(0);
    assert_eq!(merged(&stage), ["one", "two"]);
}

#[test]
fn a_plan_that_an_edit_breaks_is_not_worked_on_kept_and_can_be_repaired() {
    for broken in ["{ no JSON".to_owned(), plan(&[task("a", &["a"])]).to_string()] {
        let mut stage = stage(BINARY, &two());
        editor(&mut stage, &broken);
        let ended = stage.run(&["run", "plan.md", "--edit"]).expect(10);
        let said = ended.says(&["the plan can't be worked on", "the run still waits"]).said();
        let kept = said.split_whitespace().find(|word| word.contains("-plan.json")).unwrap();
        let kept = kept.trim_end_matches(';');
        assert_eq!(std::fs::read_to_string(kept).unwrap(), broken, "{kept}");
        nothing_is_built(&stage);
        stage.run(&["resume"]).expect(2).says(&[WAITS]);
        stage.set("EDITOR", "true");
        stage.run(&["approve", "--edit"]).expect(10);
        assert_eq!(std::fs::read_to_string(kept).unwrap(), broken, "nobody's work is lost");
        editor(&mut stage, &edited_plan().to_string());
        stage.run(&["approve", "--edit"]).expect(0);
        assert_eq!(merged(&stage), ["one", "three"]);
    }
}

#[test]
fn an_editor_that_fails_or_is_missing_approves_nothing() {
    for editor in ["false", "/nowhere/editor"] {
        let mut stage = gated();
        stage.run(&RUN).expect(2);
        stage.set("EDITOR", editor);
        stage.run(&["approve", "--edit"]).expect(2).says(&[editor]);
        nothing_is_built(&stage);
        stage.run(&["resume"]).expect(2).says(&[WAITS]);
    }
}

#[test]
fn a_plan_that_is_brought_along_needs_no_planner() {
    for args in [&["run", "--from", "given.json"][..], &["run", "plan.md", "--from", "given.json"]]
    {
        let stage = stage(BINARY, &two());
        stage.agents(&[&builds(&stage), APPROVES]);
        stage.write("given.json", &edited_plan().to_string());
        stage.run(args).expect(0);
        assert_eq!(merged(&stage), ["one", "three"]);
        assert!(planner_prompts(&stage).is_empty());
        assert_eq!(planned(&stage), ["one", "three"]);
    }
}

#[test]
fn a_plan_that_is_brought_along_waits_and_can_be_edited_too() {
    let mut stage = gated();
    stage.write("given.json", &two().to_string());
    stage.run(&["run", "--from", "given.json"]).expect(2).says(&[WAITS]);
    editor(&mut stage, &edited_plan().to_string());
    stage.run(&["approve", "--edit"]).expect(2).says(&["+ three is new"]);
    stage.run(&["approve"]).expect(0);
    assert_eq!(merged(&stage), ["one", "three"]);
}

#[test]
fn a_gate_outlives_the_process_that_waits_at_it() {
    let stage = gated();
    let run = stage.start(&["run", "plan.md", "--wait"]);
    stage.wait_until("it waits", |stage| stage.state_json()["current_state"] == "PAUSED");
    run.signal("KILL");
    run.wait().expect(-1);
    stage.run(&["resume"]).expect(2).says(&[WAITS]);
    assert_eq!(planner_prompts(&stage).len(), 1, "not planned again");
    stage.run(&["approve"]).expect(2);
    assert_eq!(merged(&stage), ["one", "two"]);
    stage.run(&["approve"]).expect(0);
}

#[test]
fn a_process_that_waits_at_a_gate_hears_of_the_approval() {
    let stage = gated();
    let run = stage.start(&["run", "plan.md", "--wait"]);
    stage.wait_until("it waits", |stage| stage.state_json()["current_state"] == "PAUSED");
    nothing_is_built(&stage);
    let told = format!("told the running process {}", run.pid());
    stage.run(&["approve", "--edit"]).expect(10).says(&[&run.pid().to_string()]);
    stage.run(&["reject", "once more"]).expect(0).says(&[&told]);
    stage.wait_until("it waits again", |stage| {
        let log = stage.read(".autopilot/logs/controller.log");
        log.matches("waiting for you to approve the plan").count() == 2
    });
    assert_eq!(planner_prompts(&stage).len(), 2);
    stage.run(&["approve"]).expect(0).says(&[&told]);
    stage.wait_until("it is built and waits", |stage| {
        let state = stage.state_json();
        state["current_state"] == "PAUSED"
            && state["tasks"].as_array().is_some_and(|tasks| tasks.len() == 2)
            && state["tasks"][1]["status"] == "DONE"
    });
    stage.run(&["approve"]).expect(0).says(&[&told]);
    run.wait().expect(0);
    assert_eq!(merged(&stage), ["one", "two"]);
}
