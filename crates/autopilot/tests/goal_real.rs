//! A goal by the real `claude` and by the real `codex`, against the scripted model, cut off from the
//! network: whoever works on it, the same is left behind.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::goal::{GOAL, dir, manifest, run_state, step, workflow};
use autopilot_testkit::model::{Call, Rule, Script, Turn};
use autopilot_testkit::plan::branch;
use autopilot_testkit::real::Real;
use autopilot_testkit::stage::Stage;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
const TESTS: &str = "commands: { tests: sh test.sh }\n";
const GENERATOR: &str = "use the workflow-generator skill.";
const REVIEWER: &str = "use the reviewer skill.";

fn works(name: &str) -> Rule {
    let file = format!("{name}.txt");
    let write = Turn::call(Call::write(&file, &format!("{name}\n"))).using(1000, 500, 80);
    let said = Turn::say(&format!("Done: wrote {file}. No risks.")).using(1200, 900, 60);
    Rule::when(&format!("Do {name}.")).and("Overall task:").turns([write, said])
}

/// Every member of the schema is there, as vendors want it: what is left out is null.
fn full(id: &str, steps: &[Value]) -> Value {
    let mut workflow = workflow(id, steps);
    for step in workflow["steps"].as_array_mut().unwrap() {
        for member in ["type", "adapter", "model", "timeoutSec"] {
            step[member] = Value::Null;
        }
    }
    workflow
}

/// Two workflows: the first is generated, the reviewer proposes the second.
fn two_iterations() -> Script {
    let first = full("first", &[step("one", &[]), step("two", &["one"])]);
    let next = full("second", &[step("three", &[])]);
    let reason = "three is missing";
    let not_yet = json!({ "done": false, "summary": null, "reason": reason, "nextWorkflow": next, "accepted_tests": [] });
    let all = json!({ "done": true, "summary": "all three", "reason": null, "nextWorkflow": null, "accepted_tests": [] });
    Script::new()
        .rule(Rule::when(REVIEWER).and("--- three (succeeded) ---").turns([Turn::answer(all)]))
        .rule(Rule::when(REVIEWER).turns([Turn::answer(not_yet)]))
        .rule(Rule::when(GENERATOR).turns([Turn::answer(first)]))
        .rule(works("one"))
        .rule(works("two"))
        .rule(works("three"))
}

/// What differs between two runs, or between two agents, and says nothing: ids, times, costs.
fn plain(mut value: Value, run: &str) -> Value {
    strip(&mut value);
    serde_json::from_str(&value.to_string().replace(run, "RUN")).unwrap()
}

fn strip(value: &mut Value) {
    /// The vendor's: Codex tells no price, and Claude Code was given no model.
    const OF_THE_AGENT: [&str; 4] = ["adapter", "agent", "model", "costUsd"];
    const OF_THE_RUN: [&str; 7] =
        ["startedAt", "finishedAt", "endedAt", "cwd", "base", "usage", "attempt"];
    match value {
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                let is_session = name == "sessionId" || name == "session";
                if is_session && member.as_str().is_some_and(|id| !id.is_empty()) {
                    *member = "a session".into();
                } else if OF_THE_AGENT.contains(&name.as_str()) {
                    *member = Value::Null;
                } else if OF_THE_RUN.contains(&name.as_str()) {
                    *member = Value::from(!member.is_null());
                } else {
                    strip(member);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

struct Left {
    manifest: Value,
    run_state: Value,
    /// With what is in them.
    execs: BTreeSet<String>,
    tree: String,
}

fn left_by(adapter: &str) -> (Stage, Left) {
    let Real { stage, server } = Real::new(BINARY, two_iterations(), TESTS);
    let goal = [&GOAL[..], &["--adapter", adapter]].concat();
    stage.run(&goal).expect(0).says(&["DONE"]);
    drop(server);
    let dir = dir(&stage);
    let run = dir.file_name().unwrap().to_string_lossy().into_owned();
    let mut execs = BTreeSet::new();
    for exec in fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()) {
        let name = exec.file_name().unwrap().to_string_lossy().into_owned();
        if !exec.is_dir() {
            continue;
        }
        for file in fs::read_dir(&exec).unwrap().map(|entry| entry.unwrap().path()) {
            let file = file.file_name().unwrap().to_string_lossy().into_owned();
            // What a vendor's program wrote itself has a name of its own.
            if ["prompt.txt", "output.txt", "events.jsonl", "metadata.json"].contains(&&*file) {
                execs.insert(format!("{name}/{file}"));
            }
        }
    }
    let left = Left {
        manifest: plain(manifest(&stage), &run),
        run_state: plain(run_state(&stage), &run),
        execs,
        tree: stage.git(&["rev-parse", &format!("{}^{{tree}}", branch(&stage))]),
    };
    (stage, left)
}

#[test]
fn claude_and_codex_leave_the_same_behind() {
    let (stage, by_claude) = left_by("claude");
    let (_other, by_codex) = left_by("codex");
    assert_eq!(by_claude.manifest, by_codex.manifest);
    assert_eq!(by_claude.run_state, by_codex.run_state);
    assert_eq!(by_claude.execs, by_codex.execs);
    assert_eq!(by_claude.tree, by_codex.tree, "written by their own tools");

    let left = by_claude;
    let statuses = |steps: &Value| {
        let of = |step: &Value| [step["stepId"].clone(), step["status"].clone()];
        steps.as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    let iterations = left.run_state["iterations"].as_array().unwrap();
    let all = iterations.iter().flat_map(|one| statuses(&one["steps"])).collect::<Vec<_>>();
    let passed = |name: &str| [json!(name), json!("succeeded")];
    assert_eq!(all, [passed("one"), passed("two"), passed("three")]);
    assert_eq!(iterations[1]["workflow"]["id"], "second", "as proposed, not generated");
    assert_eq!(iterations[1]["completion"]["done"], true);
    let calls: Vec<&str> = left.manifest["execs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["label"].as_str().unwrap())
        .collect();
    let asked = [
        "run-workflow",
        "one-step",
        "two-step",
        "run-completion",
        "three-i2-step",
        "run-completion",
    ];
    assert_eq!(calls, asked);
    assert_eq!(left.execs.len(), asked.len() * 4, "{:?}", left.execs);
    let after = stage.texts_of("two-step/prompt.txt");
    assert!(after.contains("--- one (succeeded) ---\nDone: wrote one.txt. No risks."), "{after}");
    stage.run(&["replay"]).expect(0).says(&["all the same"]);
}

#[test]
fn the_real_agents_go_on_with_a_step_in_the_session_it_had() {
    for adapter in ["claude", "codex"] {
        let first = full("first", &[step("one", &[])]);
        let all = json!({ "done": true, "summary": "it is", "reason": null, "nextWorkflow": null, "accepted_tests": [] });
        let script = Script::new()
            .rule(Rule::when(REVIEWER).turns([Turn::answer(all)]))
            .rule(Rule::when(GENERATOR).turns([Turn::answer(first)]))
            .rule(Rule::when("What was that file?").turns([Turn::say("It was one.txt.")]))
            .rule(works("one"));
        let Real { stage, server } = Real::new(BINARY, script, TESTS);
        stage.run(&[&GOAL[..], &["--adapter", adapter]].concat()).expect(0).says(&["DONE"]);
        let told: Value =
            serde_json::from_str(&stage.run(&["sessions", "--json"]).expect(0).out).unwrap();
        let list = told["sessions"].as_array().unwrap();
        let of_step = list.iter().find(|session| session["step"] == "step").unwrap();
        let id = of_step["session"].as_str().unwrap();
        // Twice: what the first of them said is part of it too.
        for _ in 0..2 {
            let said = stage.run(&["resume", id, "--prompt", "What was that file?"]).expect(0);
            let said = said.says(&["It was one.txt.", &format!("session {id}")]);
            assert!(!said.said().contains("its session was gone"), "{}", said.said());
        }
        let heard = server.requests().last().unwrap().body.to_string();
        assert!(heard.contains("Done: wrote one.txt."), "{adapter} remembers: {heard}");
        assert!(heard.contains("It was one.txt."), "{adapter} remembers: {heard}");
    }
}

/// What is recorded of each try of a step, oldest first.
fn tries(stage: &Stage, name: &str) -> Vec<(Value, String)> {
    let read = |file: &str| {
        let paths = stage.views(&format!("{name}-step/{file}"));
        paths.into_iter().map(|path| fs::read_to_string(path).unwrap()).collect::<Vec<_>>()
    };
    let metadata =
        read("metadata.json").into_iter().map(|text| serde_json::from_str(&text).unwrap());
    metadata.zip(read("prompt.txt")).collect()
}

#[test]
fn a_step_that_was_cut_short_goes_on_in_the_session_of_the_real_agent() {
    const WAITS: &str = "timeout 600 tail -f /dev/null";
    for adapter in ["claude", "codex"] {
        let first = full("first", &[step("one", &[])]);
        let all = json!({ "done": true, "summary": "it is", "reason": null, "nextWorkflow": null, "accepted_tests": [] });
        let write = Turn::call(Call::write("one.txt", "one\n"));
        let again = "on this step ended before the step was done";
        let script = Script::new()
            .rule(Rule::when(REVIEWER).turns([Turn::answer(all)]))
            .rule(Rule::when(GENERATOR).turns([Turn::answer(first)]))
            .rule(Rule::when(again).turns([Turn::say("Done: wrote one.txt. No risks.")]))
            .rule(Rule::when("Do one.").turns([write, Turn::call(Call::shell(WAITS))]));
        let Real { stage, server } = Real::new(BINARY, script, TESTS);
        let run = stage.start(&[&GOAL[..], &["--adapter", adapter]].concat());
        stage.wait_until("its tool waits", |stage| {
            stage.texts_of("one-step/events.jsonl").contains(WAITS)
        });
        run.signal("KILL");
        run.wait();
        stage.run(&["resume"]).expect(0).says(&["DONE"]);
        let tries = tries(&stage, "one");
        assert_eq!(tries.len(), 2, "{adapter}: {tries:#?}");
        let (session, resumed) = (&tries[0].0["session"], &tries[1].0["resumed"]);
        let session = session.as_str().or(tries[1].0["session"].as_str());
        assert_eq!(resumed.as_str(), session, "{adapter}: {tries:#?}");
        let asked = &tries[1].1;
        assert!(asked.contains("`it was interrupted`") && !asked.contains("Do one."), "{asked}");
        let heard = server.requests().into_iter().map(|request| request.body.to_string());
        let mut heard = heard.filter(|body| body.contains(again));
        assert!(heard.any(|body| body.contains("Do one.")), "{adapter} remembers");
        let made = format!("{}:one.txt", branch(&stage));
        assert_eq!(stage.git(&["show", &made]).trim(), "one", "its work was kept");
        stage.run(&["show", "one"]).expect(0).says(&["continued session"]);
        stage.run(&["replay"]).expect(0).says(&["all the same"]);
    }
}
