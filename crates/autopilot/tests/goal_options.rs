//! Options of `autopilot goal`, and what a step of a workflow may choose for itself. The real binary,
//! real git, scripted agents and programs that stand in for others.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::plan::{Stamps, branch, configure, outside, waits_for};
use autopilot_testkit::stage::{Stage, text};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
const GOAL: [&str; 2] = ["goal", "Make app.txt say done"];
const TESTS: &str = "commands: { tests: sh test.sh }\n";
const STATUS: [&str; 3] = ["status", "--porcelain", "--untracked-files=all"];
/// An agent of the user's own beside those of the roles.
const FAST: &str =
    "agents:\n  fast: { mode: script, script: fast.yml, model: small, env: { WHO: fast } }\n";

fn step(id: &str, more: &Value) -> Value {
    let mut step = json!({ "id": id, "goal": format!("use the task-executor skill. Do {id}.") });
    let members = more.as_object().unwrap().clone();
    step.as_object_mut().unwrap().extend(members);
    step
}

fn workflow(steps: &[Value]) -> Value {
    json!({ "version": 1, "id": "w", "steps": steps })
}

fn answers(step: &str, answer: &Value) -> String {
    format!("\n- step: {step}\n  do: [{{ answer: {answer} }}]\n")
}

fn done() -> String {
    answers("completion", &json!({ "done": true, "summary": "it is done" }))
}

/// A step that leaves behind who did it.
const WORKS: &str = "
- step: step
  do:
    - run: 'echo \"${WHO:-builder}\" > \"$AUTOPILOT_TASK_ID.txt\"'
    - answer: Done
";

fn stage(made: &Value, config: &str) -> Stage {
    let stage = Stage::new(BINARY);
    stage.agents(&[&answers("workflow", made), WORKS, &done()]);
    stage.write("fast.yml", WORKS);
    stage.config(&format!("{TESTS}{config}"));
    stage
}

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&GOAL[..], more].concat()
}

#[track_caller]
fn on_branch(stage: &Stage, file: &str) -> String {
    stage.git(&["show", &format!("{}:{file}", branch(stage))]).trim().to_owned()
}

#[track_caller]
fn only_dir(runs: &Path) -> PathBuf {
    let entries = fs::read_dir(runs).unwrap_or_else(|error| panic!("{}: {error}", runs.display()));
    let dirs: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    assert_eq!(dirs.len(), 1, "{dirs:?}");
    dirs[0].clone()
}

#[track_caller]
fn manifest_in(runs: &Path) -> Value {
    let text = fs::read_to_string(only_dir(runs).join("manifest.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[track_caller]
fn manifest(stage: &Stage) -> Value {
    manifest_in(&stage.path("runs/autopilot"))
}

/// The newest question about a step, as the manifest tells it.
#[track_caller]
fn asked(stage: &Stage, id: &str) -> Value {
    let told = manifest(stage);
    let execs = told["execs"].as_array().unwrap();
    execs
        .iter()
        .rfind(|exec| exec["stepId"] == id)
        .unwrap_or_else(|| panic!("{id}: {told}"))
        .clone()
}

#[test]
fn a_step_is_done_by_the_agent_and_the_model_it_names() {
    let made = workflow(&[
        step("usual", &json!({})),
        step("quick", &json!({ "adapter": "fast" })),
        step("chosen", &json!({ "adapter": "fast", "model": "big" })),
        step("larger", &json!({ "model": "huge" })),
    ]);
    let stage = stage(&made, FAST);
    stage.run(&GOAL).expect(0).says(&["DONE"]);
    let by =
        ["usual", "quick", "chosen", "larger"].map(|id| on_branch(&stage, &format!("{id}.txt")));
    assert_eq!(by, ["builder", "fast", "fast", "builder"]);
    let models =
        ["usual", "quick", "chosen", "larger"].map(|id| asked(&stage, id)["model"].clone());
    assert_eq!(models, [json!(null), json!("small"), json!("big"), json!("huge")]);
    // What is summed up later knows it too.
    let told: Value =
        serde_json::from_str(&stage.run(&["sessions", "--json"]).expect(0).out).unwrap();
    let of = |task: &str| {
        let all = told["sessions"].as_array().unwrap();
        all.iter().find(|session| session["task"] == task).map(|session| session["model"].clone())
    };
    assert_eq!((of("quick"), of("chosen")), (Some(json!("small")), Some(json!("big"))));
}

#[test]
fn what_one_agent_is_refused_does_not_hold_a_step_of_another() {
    let quota =
        "\n- step: step\n  do: [{ fail: { kind: quota, why: used up, until_unix: 4102444800 } }]\n";
    for (used_up, other) in [("usual", "quick"), ("quick", "usual")] {
        let made = workflow(&[
            step("usual", &json!({})),
            step("quick", &json!({ "adapter": "fast" })),
            // Begins when the other account is known to be used up.
            step(
                "later",
                &json!({ "adapter": if other == "quick" { "fast" } else { "builder" },
                                   "dependsOn": [other] }),
            ),
        ]);
        let stage = stage(&made, &format!("{FAST}budget: {{ max_wait_quota: 1s }}\n"));
        match used_up {
            "usual" => stage.agents(&[&answers("workflow", &made), quota, &done()]),
            _ => stage.write("fast.yml", quota),
        }
        stage.run(&GOAL).expect(2).says(&["quota"]);
        let told = manifest(&stage);
        let status = |id: &str| {
            let nodes = told["graph"]["nodes"].as_array().unwrap();
            nodes.iter().find(|node| node["id"] == id).unwrap()["status"].clone()
        };
        assert_eq!((status(other), status("later")), (json!("succeeded"), json!("succeeded")));
        assert_ne!(status(used_up), json!("succeeded"), "{used_up}");
        // With the account back, it goes on with the same agent.
        stage.agents(&[&answers("workflow", &made), WORKS, &done()]);
        stage.write("fast.yml", WORKS);
        stage.run(&["resume"]).expect(0).says(&["DONE"]);
        assert_eq!(on_branch(&stage, "usual.txt"), "builder");
        assert_eq!(on_branch(&stage, "quick.txt"), "fast");
    }
}

#[test]
fn whoever_stands_in_for_a_named_agent_does_its_step() {
    let made = workflow(&[step("quick", &json!({ "adapter": "fast" }))]);
    let config = "agents:\n  fast:\n    mode: script\n    script: fast.yml\n    \
                  fallback: [{ script: second.yml, env: { WHO: second } }]\n";
    let stage = stage(&made, config);
    stage.write(
        "fast.yml",
        "\n- step: step\n  do: [{ fail: { kind: quota, why: used up, until_unix: 4102444800 } }]\n",
    );
    stage.write("second.yml", WORKS);
    stage.run(&GOAL).expect(0).says(&["DONE"]);
    assert_eq!(on_branch(&stage, "quick.txt"), "second");
}

#[test]
fn what_was_in_conflict_is_put_right_by_the_agent_of_the_step() {
    let by_fast = json!({ "adapter": "fast" });
    let made = workflow(&[step("one", &by_fast), step("two", &by_fast)]);
    let stage = stage(&made, FAST);
    configure(&stage, &format!("{TESTS}{FAST}"));
    // Both are asked before either is done, so that both change the same line of the same commit.
    let both = text(outside(&stage, "begun"));
    fs::create_dir_all(&both).unwrap();
    let rules = format!(
        "
- step: step
  do:
    - run: 'touch {both}/$AUTOPILOT_TASK_ID; while [ $(ls {both} | wc -l) -lt 2 ]; do sleep 0.1; done'
    - run: 'echo \"$AUTOPILOT_TASK_ID\" > app.txt'
    - answer: Done
- step: fix
  do:
    - run: 'printf \"both, says %s\\n\" \"$WHO\" > app.txt'
    - answer: {{ changed_files: [app.txt], tests_ran: false, tests_passed: false, notes: joined }}
"
    );
    stage.write("fast.yml", &rules);
    // The iterations of the run are not those of a step.
    stage.run(&with(&["--max-iterations", "1"])).expect(0).says(&["DONE"]);
    assert_eq!(on_branch(&stage, "app.txt"), "both, says fast");
}

/// A first answer, and the one after it was asked to repair it.
fn repaired(first: &Value, second: &Value) -> String {
    let second =
        format!("\n- step: workflow\n  prompt: JSON only\n  do: [{{ answer: {second} }}]\n");
    format!("{second}{}", answers("workflow", first))
}

#[test]
fn an_agent_that_is_not_installed_is_a_fault_of_the_workflow_that_names_it() {
    let first = workflow(&[
        step("one", &json!({ "adapter": "gone" })),
        step("two", &json!({ "adapter": "gnoe" })),
    ]);
    let second = workflow(&[step("one", &json!({}))]);
    let stage = Stage::new(BINARY);
    stage.agents(&[&repaired(&first, &second), WORKS, &done()]);
    stage.config(&format!("{TESTS}agents: {{ gone: {{ mode: command, command: ./gone.sh }} }}\n"));
    stage.run(&GOAL).expect(0).says(&["DONE"]);
    let prompts = stage.texts_of("run-workflow/prompt.txt");
    assert_eq!(stage.views("run-workflow/prompt.txt").len(), 2, "asked for once more");
    let faults = [
        "/steps/0/adapter: the adapter `gone` can't be used here: the executable `./gone.sh` of \
         mode command was not found",
        "/steps/1/adapter: there is no adapter `gnoe`",
    ];
    for fault in faults {
        assert!(prompts.contains(fault), "{fault}: {prompts}");
    }
    let offered = prompts.lines().find(|line| line.contains("choose its agent with")).unwrap();
    assert!(offered.contains("`builder`") && !offered.contains("gone"), "{offered}");
    // It is told by doctor as well, and hinders nothing else.
    stage.run(&["doctor"]).says(&["agents.gone", "./gone.sh"]);
}

#[test]
fn limited_money_is_not_spent_by_a_step_nobody_knows_the_price_of() {
    let first = workflow(&[
        step("one", &json!({ "adapter": "free" })),
        step("two", &json!({ "adapter": "tokens", "model": "dear" })),
    ]);
    let second = workflow(&[step("one", &json!({}))]);
    let stage = Stage::new(BINARY);
    stage.agents(&[&repaired(&first, &second), WORKS, &done()]);
    stage.write_program("free.sh", "#!/bin/sh\ncat > /dev/null\necho Done\n");
    stage.config(&format!(
        "{TESTS}agents:\n  free: {{ mode: command, command: ./free.sh }}\n  \
         tokens: {{ mode: codex_cli, executable: ./free.sh, model: cheap }}\n\
         prices: {{ cheap: {{ input: 1, output: 2 }} }}\n"
    ));
    stage.run(&with(&["--max-usd", "5"])).expect(0);
    let prompts = stage.texts_of("run-workflow/prompt.txt");
    for fault in [
        "the adapter `free` can't be used here: mode command reports no cost",
        "/steps/1/model: money is limited here and the model `dear` has no price; leave \
         it out or choose one of `cheap`",
    ] {
        assert!(prompts.contains(fault), "{fault}: {prompts}");
    }
}

#[test]
fn the_limit_of_an_agent_is_kept_without_one_of_the_run() {
    let first = workflow(&[step("one", &json!({ "adapter": "tokens" }))]);
    let second = workflow(&[step("one", &json!({}))]);
    let stage = Stage::new(BINARY);
    stage.agents(&[&repaired(&first, &second), WORKS, &done()]);
    stage.write_program("free.sh", "#!/bin/sh\ncat > /dev/null\ntouch free-was-here\necho Done\n");
    stage.config(&format!(
        "{TESTS}agents:\n  tokens: {{ mode: codex_cli, executable: ./free.sh, max_usd: 0.01 }}\n"
    ));
    stage.run(&GOAL).expect(0);
    let prompts = stage.texts_of("run-workflow/prompt.txt");
    let fault = "/steps/0/adapter: money is limited here and the cost of this agent is unknown";
    assert!(prompts.contains(fault), "{prompts}");
    assert_eq!(stage.views("one-step/prompt.txt").len(), 1);
}

#[test]
fn a_model_that_only_the_workflow_names_and_nobody_knows_fails_its_step_and_not_the_run() {
    let made = workflow(&[step("one", &json!({ "model": "nosuch" })), step("two", &json!({}))]);
    let stage = stage(&made, "");
    let unknown =
        "\n- step: step\n  task: one\n  do: [{ fail: { kind: model, why: no such model } }]\n";
    stage.agents(&[&answers("workflow", &made), unknown, WORKS, &done()]);
    stage.run(&GOAL).expect(0).says(&["DONE"]);
    let weighed = stage.texts_of("run-completion/prompt.txt");
    assert!(weighed.contains("--- one (failed) ---"), "{weighed}");
    assert!(weighed.contains("does not know the model `nosuch` of this step"), "{weighed}");
    assert!(weighed.contains("--- two (succeeded) ---"), "{weighed}");
}

#[test]
fn the_time_limit_is_that_of_the_agent_that_does_the_step() {
    let made = workflow(&[step("slow", &json!({ "adapter": "fast" }))]);
    let stage =
        stage(&made, "agents: { fast: { mode: script, script: fast.yml, timeout_sec: 1 } }\n");
    stage.write("fast.yml", "\n- step: step\n  do: [{ hang: true }]\n");
    stage.run(&GOAL).expect(0);
    let weighed = stage.texts_of("run-completion/prompt.txt");
    assert!(weighed.contains("--- slow (failed) ---"), "{weighed}");
}

#[test]
fn the_adapter_of_the_command_line_does_all_and_steps_may_still_name_others() {
    let made = workflow(&[step("one", &json!({})), step("two", &json!({ "adapter": "other" }))]);
    let stage = Stage::new(BINARY);
    // Of these nobody is asked anything.
    stage.agents(&[]);
    let all = [&answers("workflow", &made), WORKS, &done()].concat();
    stage.write("fast.yml", &all);
    stage.write("other.yml", WORKS);
    let other = "  other: { mode: script, script: other.yml, env: { WHO: other } }\n";
    stage.config(&format!("{TESTS}{FAST}{other}"));
    stage.run(&with(&["--adapter", "fast"])).expect(0).says(&["DONE"]);
    assert_eq!(on_branch(&stage, "one.txt"), "fast");
    assert_eq!(on_branch(&stage, "two.txt"), "other");
    assert_eq!(manifest(&stage)["options"]["adapter"], "fast");
}

#[test]
fn a_name_nobody_has_is_refused_with_those_there_are_and_the_nearest() {
    let stage = stage(&workflow(&[]), FAST);
    let told = stage.run(&with(&["--adapter", "fats"])).expect(64);
    let told = told.says(&["there is no adapter `fats`", "did you mean `fast`?"]);
    told.says(&["builder, claude, codex, fast, planner, reviewer"]);
    assert!(!stage.has(".autopilot/state.json"));
}

/// A program that stands in for `claude` or `codex`: it writes its arguments down and answers by
/// what it is asked.
fn stands_in(stage: &Stage, name: &str, made: &Value) -> PathBuf {
    let log = stage.folder().join(format!("{name}.args"));
    let answer = |text: &str| match name {
        "claude" => format!(
            "printf '%s\\n' '{}' '{}'",
            json!({ "type": "system", "subtype": "init", "session_id": "s-1", "model": "m" }),
            json!({ "type": "result", "subtype": "success", "is_error": false, "result": text,
                    "session_id": "s-1", "total_cost_usd": 0.01 }),
        ),
        _ => format!(
            "printf '%s\\n' '{}' '{}' '{}' '{}'",
            json!({ "type": "thread.started", "thread_id": "t-1" }),
            json!({ "type": "turn.started" }),
            json!({ "type": "item.completed",
                    "item": { "id": "i", "type": "agent_message", "text": text } }),
            json!({ "type": "turn.completed", "usage": { "input_tokens": 1, "output_tokens": 1 } }),
        ),
    };
    let done = json!({ "done": true, "summary": "it is done" });
    let program = format!(
        "#!/bin/sh\necho \"$AUTOPILOT_STEP $*\" >> {}\n[ {name} = codex ] && cat > /dev/null\n\
         [ {name} = claude ] && read -r said\n\
         case $AUTOPILOT_STEP in\nworkflow) {};;\ncompletion) {};;\n*) {};;\nesac\n",
        log.display(),
        answer(&made.to_string()),
        answer(&done.to_string()),
        answer("Done"),
    );
    stage.write_program(&format!("{name}.sh"), &program);
    log
}

#[test]
fn model_and_unsafe_reach_the_command_line_of_every_agent() {
    let steps = [
        step("one", &json!({})),
        step("two", &json!({ "adapter": "codex" })),
        step("three", &json!({ "adapter": "claude", "model": "sonnet" })),
    ];
    // Quotes of one kind are the shell's.
    let made = workflow(&steps);
    for is_unsafe in [false, true] {
        let stage = Stage::new(BINARY);
        let (claude, codex) =
            (stands_in(&stage, "claude", &made), stands_in(&stage, "codex", &made));
        let config = "repo: { base_branch: main }\n\
                      builder: { mode: claude_code_cli, executable: ./claude.sh }\n\
                      reviewer: { mode: codex_cli, executable: ./codex.sh }\n\
                      sandbox: { mode: off }\n";
        stage.write(".autopilot/config.yml", &format!("{config}{TESTS}"));
        let flag: &[&str] = if is_unsafe { &["--unsafe"] } else { &[] };
        let args = [&with(&["--adapter", "claude", "--model", "opus"])[..], flag].concat();
        stage.run(&args).expect(0).says(&["DONE"]);
        let lines = |path: &Path| fs::read_to_string(path).unwrap();
        let (by_claude, by_codex) = (lines(&claude), lines(&codex));
        let at = |text: &str, step: &str, has: &str| {
            text.lines().filter(|line| line.starts_with(step) && line.contains(has)).count()
        };
        assert_eq!(at(&by_claude, "workflow", "--model opus"), 1, "{by_claude}");
        assert_eq!(at(&by_claude, "completion", "--model opus"), 1, "{by_claude}");
        assert_eq!(at(&by_claude, "step", "--model opus"), 1, "{by_claude}");
        assert_eq!(at(&by_claude, "step", "--model sonnet"), 1, "{by_claude}");
        // Another kind keeps its own settings, and does not know that model.
        assert_eq!((at(&by_codex, "", ""), at(&by_codex, "step", "opus")), (1, 0), "{by_codex}");
        let mode = if is_unsafe { "bypassPermissions" } else { "acceptEdits" };
        assert_eq!(at(&by_claude, "step", mode), 2, "{by_claude}");
        let sandbox = if is_unsafe { "danger-full-access" } else { "workspace-write" };
        assert_eq!(at(&by_codex, "step", sandbox), 1, "{by_codex}");
        // Whoever only looks is not given more by it.
        assert_eq!(at(&by_claude, "completion", "bypassPermissions"), 0, "{by_claude}");
        assert_eq!(manifest(&stage)["options"]["unsafe"], is_unsafe);
    }
}

/// Steps that stamp when they begin and end.
fn stamping(stage: &Stage, between: &str) -> String {
    fs::create_dir_all(outside(stage, "")).unwrap();
    let log = text(outside(stage, "log"));
    format!(
        "
- step: step
  do:
    - run: \"echo \\\"+ $AUTOPILOT_TASK_ID\\\" >> {log}\"
    - run: \"{between}\"
    - run: \"echo \\\"- $AUTOPILOT_TASK_ID\\\" >> {log}\"
    - answer: Done
"
    )
}

#[test]
fn no_more_steps_than_asked_for_are_worked_on_at_once() {
    let made = workflow(&["a", "b", "c"].map(|id| step(id, &json!({}))));
    let stage = stage(&made, "");
    configure(&stage, TESTS);
    stage.agents(&[&answers("workflow", &made), &stamping(&stage, "true"), &done()]);
    stage.run(&with(&["--concurrency", "1"])).expect(0);
    let stamps = Stamps::of(&stage);
    assert_eq!((stamps.lines.len(), stamps.most_at_once()), (6, 1), "{:?}", stamps.lines);
    assert_eq!(manifest(&stage)["options"]["concurrency"], 1);

    let stage = self::stage(&made, "");
    configure(&stage, TESTS);
    // None goes on before a second has begun, so two are needed at once.
    let between = waits_for(&stage, "^+", 2).replace('\\', "\\\\").replace('"', "\\\"");
    stage.agents(&[&answers("workflow", &made), &stamping(&stage, &between), &done()]);
    stage.run(&with(&["--concurrency", "2"])).expect(0);
    assert_eq!(Stamps::of(&stage).most_at_once(), 2);
}

fn options(stage: &Stage) -> Value {
    manifest(stage)["options"].clone()
}

#[test]
fn the_options_of_a_run_are_in_its_manifest_also_after_other_limits() {
    let made = workflow(&[step("one", &json!({}))]);
    let stage = stage(&made, FAST);
    stage.run(&GOAL).expect(0);
    let mut told = options(&stage);
    let object = told.as_object_mut().unwrap();
    for (key, value) in [("branch", branch(&stage)), ("base", stage.git(&["rev-parse", "main"]))] {
        assert_eq!(object.remove(key).unwrap(), value.trim(), "{key}");
    }
    assert_eq!(
        told,
        json!({
            "adapter": "script", "model": null, "maxIterations": 4, "concurrency": 3,
            "unsafe": false, "failFast": false, "out": "runs/autopilot", "maxUsd": null,
            "maxUsdPerStep": null, "maxWallMs": null, "push": false, "pullRequest": false,
            "baseBranch": "main",
        })
    );

    let stage = self::stage(&made, FAST);
    let quota =
        "\n- step: step\n  do: [{ fail: { kind: quota, why: used up, until_unix: 4102444800 } }]\n";
    let all = |step: &str| [&answers("workflow", &made), step, &done()].concat();
    stage.write("fast.yml", &all(quota));
    stage.config(&format!("{TESTS}{FAST}budget: {{ max_wait_quota: 1s }}\n"));
    let asked = [
        "--adapter",
        "fast",
        "--model",
        "big",
        "--max-iterations",
        "7",
        "--concurrency",
        "2",
        "--unsafe",
        "--fail-fast",
        "--max-usd",
        "3",
        "--max-wall",
        "1h",
    ];
    stage.run(&with(&asked)).expect(2);
    let picked = |stage: &Stage, keys: &[&str]| {
        let told = options(stage);
        keys.iter().map(|key| told[key].clone()).collect::<Vec<Value>>()
    };
    let kept = ["adapter", "model", "unsafe", "failFast", "out"];
    let as_asked = [json!("fast"), json!("big"), json!(true), json!(true), json!("runs/autopilot")];
    let limits = ["maxIterations", "concurrency", "maxUsd", "maxWallMs"];
    assert_eq!(picked(&stage, &kept), as_asked);
    assert_eq!(picked(&stage, &limits), [json!(7), json!(2), json!(3.0), json!(3_600_000)]);
    // Options that would make it another run are refused, and nothing is changed.
    for (flag, value) in [("--adapter", "builder"), ("--model", "small"), ("--out", "elsewhere")] {
        stage.run(&with(&[flag, value])).expect(64).says(&[flag]);
    }
    stage.write("fast.yml", &all(WORKS));
    let told = stage.run(&["resume", "--max-iterations", "9", "--max-workers", "1"]).expect(0);
    let said = told.said();
    assert!(!said.contains("has changed") && !said.contains("from here on"), "{said}");
    assert_eq!(picked(&stage, &kept), as_asked);
    assert_eq!(picked(&stage, &limits), [json!(9), json!(1), json!(3.0), json!(3_600_000)]);
    assert_eq!(asked_by(&stage, "one"), [json!("fast"), json!("big")]);
}

/// Who did a step, as it left behind, and with which model.
#[track_caller]
fn asked_by(stage: &Stage, id: &str) -> [Value; 2] {
    [json!(on_branch(stage, &format!("{id}.txt"))), asked(stage, id)["model"].clone()]
}

#[test]
fn a_step_asks_for_the_skills_of_the_agent_that_does_it() {
    let asks = |id: &str, skill: &str, adapter: &Value| {
        let goal = format!("use the {skill} skill. Do {id}.");
        json!({ "id": id, "goal": goal, "adapter": adapter })
    };
    let with_its_own = workflow(&[asks("one", "its-own", &json!("fast"))]);
    let stage = stage(&with_its_own, "");
    let skill = |home: &Path, name: &str| {
        let dir = home.join(".claude/skills").join(name);
        fs::create_dir_all(&dir).unwrap();
        let text = format!("---\nname: {name}\ndescription: Does it\n---\nBODY OF {name}\n");
        fs::write(dir.join("SKILL.md"), text).unwrap();
    };
    let its_home = stage.folder().join("its-home");
    skill(&its_home, "its-own");
    skill(&stage.folder().join("home"), "users-own");
    let its = format!("HOME: '{}', WHO: fast", its_home.display());
    stage.config(&format!("{TESTS}{}", FAST.replace("WHO: fast", &its)));
    stage.run(&GOAL).expect(0).says(&["DONE"]);
    assert_eq!(on_branch(&stage, "one.txt"), "fast");
    assert!(stage.texts_of("one-step/prompt.txt").contains("BODY OF its-own"));

    // Neither has what only the other has, and it is found out before anybody is asked.
    let wrong = [("its-own", json!(null)), ("users-own", json!("fast"))];
    for (skill, adapter) in wrong {
        let made = workflow(&[asks("two", skill, &adapter)]);
        stage.agents(&[&answers("workflow", &made), WORKS, &done()]);
        let args = with(&["--fresh", "--max-iterations", "1"]);
        let said = stage.run(&args);
        let told = said.said();
        assert!(
            told.contains(&format!(
                "two: FAILED: step broke: the task asks for a skill: there is no skill `{skill}`"
            )),
            "{told}"
        );
        assert!(!stage.texts_of("two-step/prompt.txt").contains("Do two."), "{skill}");
    }
}

#[test]
fn a_corrected_model_of_a_named_agent_is_used_when_the_run_goes_on() {
    let made = workflow(&[step("one", &json!({ "adapter": "fast" }))]);
    let stage = stage(&made, FAST);
    let unknown = "\n- step: step\n  do: [{ fail: { kind: model, why: no such model } }]\n";
    stage.write("fast.yml", unknown);
    stage.run(&GOAL).expect(2).says(&["unknown model", "script:2/small"]);
    stage.write("fast.yml", WORKS);
    stage.config(&format!("{TESTS}{}", FAST.replace("small", "good")));
    let told = stage.run(&["resume"]).expect(0);
    told.says(&["agents.fast.model was small, is good from here on", "DONE"]);
    assert_eq!(asked_by(&stage, "one"), [json!("fast"), json!("good")]);
}

#[test]
fn a_model_of_the_command_line_that_nobody_knows_is_named_anew() {
    let made = workflow(&[step("one", &json!({}))]);
    let stage = stage(&made, "");
    let unknown = "\n- step: step\n  do: [{ fail: { kind: model, why: no such model } }]\n";
    let rules = |step: &str| [&answers("workflow", &made), step, &done()].concat();
    stage.agents(&[&rules(unknown)]);
    stage.run(&with(&["--model", "opsu"])).expect(2).says(&["unknown model", "script/opsu"]);
    // The file says nothing of it, so it can't put it right.
    stage.run(&["resume"]).expect(2).says(&["script/opsu"]);
    stage.agents(&[&rules(WORKS)]);
    let told = stage.run(&["resume", "--model", "opus"]).expect(0);
    told.says(&["builder.model was opsu, is opus from here on, as requested", "DONE"]);
    assert_eq!(asked(&stage, "one")["model"], "opus");
    assert_eq!(manifest(&stage)["options"]["model"], "opus");
}

#[test]
fn the_files_of_a_run_go_where_they_were_asked_to() {
    let made = workflow(&[step("one", &json!({})), step("two", &json!({ "dependsOn": ["one"] }))]);
    let quota = "\n- step: step\n  task: two\n  do: [{ fail: { kind: quota, why: used up, \
                 until_unix: 4102444800 } }]\n";
    for inside in [true, false] {
        let stage = stage(&made, "budget: { max_wait_quota: 1s }\n");
        stage.commit("settings");
        stage.agents(&[&answers("workflow", &made), quota, WORKS, &done()]);
        stage.write(".autopilot/.gitignore", "*\n");
        let before = stage.git(&STATUS);
        let out = match inside {
            true => stage.path("reports/of goals"),
            false => stage.folder().join("elsewhere/runs"),
        };
        let given = if inside { "reports/of goals".to_owned() } else { text(&out) };
        stage.run(&with(&["--out", &given])).expect(2);
        assert!(!stage.has("runs"), "not also at the usual place");
        let told = manifest_in(&out);
        assert_eq!(told["options"]["out"], given.as_str());
        assert_eq!(stage.git(&STATUS), before);
        // From another directory, and by a later process: the same place.
        stage.agents(&[&answers("workflow", &made), WORKS, &done()]);
        stage.run(&["resume"]).expect(0).says(&["DONE"]);
        let dir = only_dir(&out);
        let told = manifest_in(&out);
        assert!(told["finishedAt"].is_string(), "{told}");
        let nodes: Vec<&Value> =
            told["graph"]["nodes"].as_array().unwrap().iter().map(|node| &node["status"]).collect();
        assert_eq!(nodes, ["succeeded", "succeeded"]);
        assert!(dir.join(format!("{}.json", told["runId"].as_str().unwrap())).is_file());
        // What was asked and answered is reached from there.
        let execs = told["execs"].as_array().unwrap();
        assert!(execs.len() >= 4, "{told}");
        for exec in execs {
            let name = Path::new(exec["path"].as_str().unwrap()).file_name().unwrap();
            assert!(dir.join(name).join("prompt.txt").is_file(), "{}", dir.join(name).display());
        }
        let told_before = fs::read(dir.join("manifest.json")).unwrap();
        stage.run(&["replay"]);
        assert_eq!(fs::read(dir.join("manifest.json")).unwrap(), told_before);
        assert_eq!(only_dir(&out), dir, "what is played again writes nothing there");
        let files = stage.git(&["ls-tree", "-r", "--name-only", &branch(&stage)]);
        assert!(!files.contains("manifest.json") && !files.contains("reports"), "{files}");
        assert_eq!(stage.git(&STATUS), before);
    }
}

#[test]
fn what_is_beside_the_files_of_a_run_stays_visible_to_git() {
    let stage = stage(&workflow(&[step("one", &json!({}))]), "");
    stage.write("docs/notes.md", "mine\n");
    stage.commit("settings");
    stage.run(&with(&["--out", "docs"])).expect(0);
    stage.write("docs/new.md", "mine too\n");
    let seen = stage.git(&STATUS);
    let docs: Vec<&str> = seen.lines().filter(|line| line.contains("docs")).collect();
    assert_eq!(docs, ["?? docs/new.md"]);
}

#[test]
fn a_place_where_nothing_can_be_written_is_refused_before_anything_begins() {
    let stage = stage(&workflow(&[step("one", &json!({}))]), "");
    stage.write("a-file", "");
    std::os::unix::fs::symlink("nowhere", stage.path("dangling")).unwrap();
    for (out, why) in [
        ("a-file", "it is not a directory"),
        ("a-file/below", "is not a directory"),
        ("dangling", "broken symbolic link"),
        (".git/runs", "it belongs to git"),
        ("new/../../other", "has no `..`"),
        ("", "it is empty"),
        ("/proc/nothing", "cannot write there"),
    ] {
        let told = stage.run(&with(&["--out", out])).expect(64);
        told.says(&["--out `", why]);
        assert!(!stage.has(".autopilot/state.json"), "{out}: something has begun");
    }
    assert!(!stage.has("new") && !stage.has("nowhere"));
    // What would be done is told without making anything.
    stage.run(&with(&["--out", "later", "--dry-run"])).expect(0);
    assert!(!stage.has("later"));
}

#[test]
fn a_run_that_goes_on_is_refused_where_its_files_can_not_be_written_any_more() {
    for out in [None, Some("kept")] {
        let stage = stage(&workflow(&[step("one", &json!({}))]), "");
        let away = "\n- step: workflow\n  attempt: [1, 2]\n  do: [{ fail: { kind: auth, why: not now } }]\n";
        let made = answers("workflow", &workflow(&[step("one", &json!({}))]));
        stage.agents(&[away, &made, WORKS, &done()]);
        let given = out.map_or(vec![], |out| vec!["--out", out]);
        stage.run(&with(&given)).expect(2);
        let at = stage.path(out.unwrap_or("runs/autopilot"));
        let run = only_dir(&at);
        // As a directory that can't be written to is for whoever is not root.
        fs::remove_dir_all(&run).unwrap();
        fs::write(&run, "").unwrap();
        let told = stage.run(&["resume"]).expect(64);
        told.says(&["--out `", "cannot write there", text(&run).as_str()]);
        assert!(stage.views("one-step/prompt.txt").is_empty(), "nothing was begun");
        fs::remove_file(&run).unwrap();
        stage.run(&["resume"]).expect(0).says(&["DONE"]);
        assert!(run.join("manifest.json").is_file());
        assert!(!run.join(".autopilot-writable").exists());
    }
}

#[test]
fn bare_text_is_a_goal_with_all_its_options() {
    let made = workflow(&[step("one", &json!({}))]);
    let stage = stage(&made, FAST);
    stage.write("fast.yml", &[&answers("workflow", &made), WORKS, &done()].concat());
    let told = stage.run(&["--no-ui", "Make app.txt say done", "--adapter", "fast"]).expect(0);
    told.says(&["DONE"]);
    assert_eq!(on_branch(&stage, "one.txt"), "fast");
    let root = text(stage.root());
    let mut command = stage.command(&["-C", &root, "-q", "Make it say more", "--concurrency", "1"]);
    command.current_dir(stage.folder());
    stage.start_command(command).wait().expect(0).says(&["DONE"]);
    stage.run(&["stauts"]).expect(64).says(&["'status'"]);
    stage.run(&["Fix"]).expect(64).says(&["unrecognized", "autopilot goal"]);
    stage.run(&["run "]).expect(64);
    assert!(stage.run(&[]).said().contains("autopilot \"Fix the login\""));
    for shell in ["zsh", "fish"] {
        stage.run(&["completions", shell]).expect(0).says(&["text of several words"]);
    }
}
