//! What the real agents cost: all calls of a turn, their sub-agents, models without a price, and
//! turns that were cut before the agent told anything.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::agents;
use autopilot_testkit::model::{Call, Rule, Script, Server, Turn};
use autopilot_testkit::netns;
use autopilot_testkit::stage::{APPROVES, Stage, Started};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Longer than any test.
const FOREVER: Duration = Duration::from_secs(600);
const ASKED_MAX: Duration = Duration::from_secs(120);

fn summary() -> Value {
    json!({ "changed_files": ["app.txt"], "tests_ran": true, "tests_passed": true, "notes": "ok" })
}

/// Three calls of 10,000 tokens each, 4,000 of them from a cache.
fn builds() -> Rule {
    Rule::when("Say done").turns([
        Turn::call(Call::read("app.txt")).using(6_000, 4_000, 100),
        Turn::call(Call::edit("app.txt", "start", "start\ndone")).using(6_000, 4_000, 100),
        Turn::answer(summary()).using(6_000, 4_000, 100),
    ])
}

/// One call, and then a model that does not answer.
fn hangs() -> Rule {
    Rule::when("Say done").turns([
        Turn::call(Call::read("app.txt")).using(6_000, 4_000, 100),
        Turn::say("too late").after(FOREVER),
    ])
}

/// A repository whose builder is a real agent.
fn stage(script: Script, agent: &str, more: &str) -> (Stage, Server) {
    eprintln!("network: {}", netns::enter());
    let mut stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    let server = Server::start(script).unwrap();
    let home = stage.folder().join("home");
    let (variables, builder) = match agent {
        "claude" => {
            let mode = format!("mode: claude_code_cli, executable: {}", agents::claude().display());
            (agents::claude_home(&home, &server), mode)
        }
        "codex" => {
            let mode = format!("mode: codex_cli, executable: {}", agents::codex().display());
            (agents::codex_home(&home, &server), format!("{mode}, model: {}", agents::CODEX_MODEL))
        }
        "opencode" => {
            let mode = format!("mode: acp, command: \"{} acp\"", agents::opencode().display());
            (agents::opencode_home(&home, &server), mode)
        }
        other => panic!("no agent is called {other}"),
    };
    let mut passed = Vec::new();
    for (name, value) in variables.unwrap() {
        if !["HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"].contains(&name.as_str()) {
            stage.set(&name, &value);
            passed.push(name);
        }
    }
    stage.agents(&[APPROVES]);
    let config = format!(
        "repo: {{ base_branch: main }}\ncommands: {{ tests: sh test.sh }}\n\
         builder: {{ {builder}, env_pass: [{}]MORE }}\n\
         reviewer: {{ mode: script, script: agents.yml }}\n",
        passed.join(", ")
    );
    let (of_agent, of_run) = more.split_once('\n').unwrap_or((more, ""));
    let config = config.replace("MORE", of_agent);
    stage.write(".autopilot/config.yml", &format!("{config}{of_run}"));
    (stage, server)
}

/// The cost of all builds.
fn build(stage: &Stage) -> Value {
    let told = stage.run(&["cost", "--by", "step", "--json"]).expect(0).out;
    let told: Value = serde_json::from_str(&told).unwrap();
    let rows = told["parts"][0]["rows"].as_array().unwrap().clone();
    rows.into_iter().find(|row| row["step"] == "build").unwrap_or_else(|| panic!("{told}"))
}

fn tokens(row: &Value) -> [u64; 3] {
    ["tokens_in", "tokens_cached", "tokens_out"].map(|key| row[key].as_u64().unwrap_or(0))
}

fn usd(row: &Value) -> f64 {
    row["cost_usd"].as_f64().unwrap_or_else(|| panic!("{row}"))
}

/// Starts the task, and ends it as asked once the model was asked a second time.
fn cut(stage: &Stage, server: &Server, how: impl FnOnce(&Stage, &Started)) {
    let run = stage.start(&["run", "tasks/say-done.md"]);
    assert!(server.wait_for(2, ASKED_MAX), "the agent called its model twice");
    // It asks again before its file has the answer, and nobody can read what it has not written.
    stage.wait_until("its session file has the first call", |stage| told_tokens(&stage.state()));
    how(stage, &run);
    run.wait();
}

/// Whether a session file below the directory tells the tokens of a call.
fn told_tokens(dir: &Path) -> bool {
    let Ok(entries) = fs::read_dir(dir) else { return false };
    entries.flatten().any(|entry| {
        let (path, kind) = (entry.path(), entry.file_type());
        let is_session = path.extension().is_some_and(|end| end == "jsonl");
        match kind.is_ok_and(|kind| kind.is_dir()) {
            true => told_tokens(&path),
            false => {
                is_session
                    && fs::read_to_string(&path).is_ok_and(|text| text.contains("output_tokens"))
            }
        }
    })
}

/// A dollar for a million fresh tokens, a tenth for cached ones, ten for written ones.
const PRICE: &str = "{ input: 1, cached: 0.1, output: 10 }";
/// What a call of 6,000 fresh and 4,000 cached tokens costs that writes 100.
const CALL_USD: f64 = 0.006 + 0.0004 + 0.001;

#[test]
fn the_real_opencode_is_billed_for_every_call_of_its_turn() {
    let more = format!(", model: scripted/model\nprices: {{ scripted/model: {PRICE} }}\n");
    let (stage, _server) = stage(Script::new().rule(builds()), "opencode", &more);
    stage.run_task().expect(0);
    let build = build(&stage);
    assert_eq!(tokens(&build), [30_000, 12_000, 300], "three calls: {build}");
    assert!((usd(&build) - 3.0 * CALL_USD).abs() < 1e-6, "{build}");
    assert_eq!(build["cost_complete"], true, "{build}");
}

#[test]
fn the_real_opencode_without_a_price_costs_something_unknown() {
    let (stage, _server) = stage(Script::new().rule(builds()), "opencode", "\n");
    stage.run_task().expect(0).says(&["unknown"]);
    let build = build(&stage);
    assert_eq!((&build["cost_usd"], &build["cost_complete"]), (&Value::Null, &false.into()));
    assert_eq!(tokens(&build), [30_000, 12_000, 300], "{build}");
}

#[test]
fn the_real_claude_that_is_stopped_at_once_is_billed_by_its_session_file() {
    let more = format!("\nprices: {{ claude-opus-5-5: {PRICE} }}\nbudget: {{ max_usd: 2 }}\n");
    let (stage, server) = stage(Script::new().rule(hangs()), "claude", &more);
    cut(&stage, &server, |stage, _| {
        stage.run(&["stop", "--now"]).expect(0);
    });
    let build = build(&stage);
    assert_eq!(build["cost_estimated_usd"], 0.0, "its file tells: {build}");
    assert!((usd(&build) - CALL_USD).abs() < 1e-6, "one call was answered: {build}");
    assert_eq!((tokens(&build)[0], &build["cost_reserved_usd"]), (10_000, &0.0.into()));
}

#[test]
fn the_real_claude_of_a_killed_controller_is_billed_by_its_session_file() {
    let more = format!("\nprices: {{ claude-opus-5-5: {PRICE} }}\nbudget: {{ max_usd: 2 }}\n");
    let (stage, server) = stage(Script::new().rule(hangs()), "claude", &more);
    cut(&stage, &server, |_, run| run.signal("KILL"));
    assert_eq!(build(&stage)["cost_reserved_usd"], 2.0, "nobody has settled it yet");
    let run = stage.start(&["resume"]);
    stage.wait_until("it is settled", |stage| {
        (build(stage)["cost_usd"].as_f64().unwrap_or(0.0) - CALL_USD).abs() < 1e-6
    });
    assert_eq!(build(&stage)["cost_estimated_usd"], 0.0);
    stage.run(&["stop", "--now"]).expect(0);
    run.wait();
}

#[test]
fn the_real_codex_that_is_stopped_at_once_is_billed_by_its_session_file() {
    let more = format!("\nprices: {{ gpt-5.5: {PRICE} }}\nbudget: {{ max_usd: 2 }}\n");
    let (stage, server) = stage(Script::new().rule(hangs()), "codex", &more);
    cut(&stage, &server, |stage, _| {
        stage.run(&["stop", "--now"]).expect(0);
    });
    let build = build(&stage);
    assert_eq!(build["cost_estimated_usd"], 0.0, "its file tells: {build}");
    assert!((usd(&build) - CALL_USD).abs() < 1e-6, "one call was answered: {build}");
}

#[test]
fn the_tokens_of_the_real_claudes_subagents_are_counted() {
    let helper = json!({ "description": "look", "prompt": "SUBTASK: look at it",
        "subagent_type": "general-purpose" });
    let script = Script::new()
        .rule(Rule::when("SUBTASK").unless("Say done").turns([
            Turn::call(Call::read("app.txt")).using(50_000, 0, 100),
            Turn::say("I looked.").using(50_000, 0, 100),
        ]))
        .rule(Rule::when("task-notification").turns([Turn::answer(summary()).using(1_000, 0, 10)]))
        .rule(Rule::when("Say done").turns([
            Turn::call(Call::tool("Agent", helper)).using(1_000, 0, 10),
            Turn::call(Call::read("app.txt")).using(1_000, 0, 10),
            Turn::call(Call::edit("app.txt", "start", "start\ndone")).using(1_000, 0, 10),
            Turn::answer(summary()).using(1_000, 0, 10),
        ]));
    let (stage, _server) = stage(script, "claude", "\n");
    stage.run_task().expect(0);
    let build = build(&stage);
    assert!(tokens(&build)[0] >= 104_000, "those of the helper too: {build}");
    assert_eq!(build["cost_complete"], true, "{build}");
}

#[test]
fn the_real_claude_with_a_model_it_does_not_know_costs_something_unknown() {
    let (unpriced, _server) = stage(Script::new().rule(builds()), "claude", ", model: qwen3\n");
    unpriced.run_task().expect(0).says(&["unknown (builder: claude_code_cli)"]);
    let told = build(&unpriced);
    assert_eq!((&told["cost_usd"], tokens(&told)[0]), (&Value::Null, 30_000), "{told}");
    unpriced.task("more", "More");
    let refused = unpriced.run(&["run", "tasks/more.md", "--max-usd", "1"]).expect(78);
    refused.says(&["reports no cost of model `qwen3`", "`prices.\"qwen3\"`"]);
}

#[test]
fn the_real_claude_with_a_model_it_does_not_know_is_priced_by_the_configuration() {
    let more = format!(", model: qwen3\nprices: {{ qwen3: {PRICE} }}\nbudget: {{ max_usd: 2 }}\n");
    let (priced, _server) = stage(Script::new().rule(builds()), "claude", &more);
    priced.run_task().expect(0).says(&["checked only there"]);
    let told = build(&priced);
    assert!((usd(&told) - 3.0 * CALL_USD).abs() < 1e-6, "{told}");
    assert_eq!(told["cost_complete"], true, "{told}");
}

/// What the pinned Claude Code says that such a call costs.
const CLAUDES_CALL_USD: f64 = 0.0268;
const CONTINUED_FIX: &str = "Your work on this task was checked and is not done";
const CONTINUED_BUILD: &str = "ended before the task was done";

/// The rows of `cost` for the steps of the builder: name, fresh and cached tokens, dollars.
fn costs(stage: &Stage) -> Vec<(String, u64, f64)> {
    let told = stage.run(&["cost", "--by", "step", "--json"]).expect(0).out;
    let told: Value = serde_json::from_str(&told).unwrap();
    let rows = told["parts"][0]["rows"].as_array().unwrap().clone();
    let of_builder = rows.iter().filter(|row| row["step"] == "build" || row["step"] == "fix");
    of_builder
        .map(|row| (row["step"].as_str().unwrap().to_owned(), tokens(row)[0], usd(row)))
        .collect()
}

/// Claude counts a session over its resumes, but forgets what it told before it was killed.
#[test]
fn the_real_claude_that_was_killed_after_its_result_is_billed_for_all_of_the_next_turn() {
    let mends = [
        Turn::call(Call::read("app.txt")).using(6_000, 4_000, 100),
        Turn::call(Call::edit("app.txt", "broken", "done")).using(6_000, 4_000, 100),
        Turn::answer(summary()).using(6_000, 4_000, 100),
    ];
    let breaks = [
        Turn::call(Call::shell("echo broken >> app.txt")).using(6_000, 4_000, 100),
        Turn::answer(summary()).using(6_000, 4_000, 100),
    ];
    let script = Script::new().when(CONTINUED_FIX, mends).when("Say done", breaks);
    let (stage, _server) = stage(script, "claude", "\n");
    let claude = agents::claude();
    let killed = stage.folder().join("killed-claude").display().to_string();
    stage.write_program(
        &killed,
        &format!(
            "#!/bin/sh\ndir=$(mktemp -d); mkfifo $dir/out; exec 3<&0\n\
             case \"$*\" in *--resume*) exec {claude} \"$@\";; esac\n\
             {claude} \"$@\" <&3 > $dir/out & pid=$!\n\
             while IFS= read -r line; do printf '%s\\n' \"$line\"\n\
             case $line in *'\"type\":\"result\"'*) kill -9 $pid;; esac; done < $dir/out\n",
            claude = claude.display()
        ),
    );
    let config = stage.read(".autopilot/config.yml");
    let with = config.replace(&claude.display().to_string(), &killed);
    stage.write(".autopilot/config.yml", &with);
    stage.run_task().expect(0).says(&["DONE"]);
    let costs = costs(&stage);
    for (step, calls) in [("build", 2), ("fix", 3)] {
        let (_, tokens, usd) = costs.iter().find(|row| row.0 == step).unwrap();
        assert_eq!(*tokens, calls * 10_000, "{step}: {costs:?}");
        assert!((usd - calls as f64 * CLAUDES_CALL_USD).abs() < 1e-6, "{step}: {costs:?}");
    }
}

#[test]
fn the_real_claude_that_goes_on_after_a_kill_of_the_controller_is_billed_for_each_call_once() {
    let done = [
        Turn::call(Call::edit("app.txt", "start", "start\ndone")).using(6_000, 4_000, 100),
        Turn::answer(summary()).using(6_000, 4_000, 100),
    ];
    let asked = Turn::say("I read a file.").using(6_000, 4_000, 100);
    let script =
        Script::new().when(CONTINUED_BUILD, done).when("what did you do", [asked]).rule(hangs());
    let more = format!("\nprices: {{ claude-opus-5-5: {PRICE} }}\nbudget: {{ max_usd: 2 }}\n");
    let (stage, server) = stage(script, "claude", &more);
    cut(&stage, &server, |_, run| run.signal("KILL"));
    // A person continues the session while nobody works on the run.
    let told = stage.run(&["sessions", "--json"]).expect(0).out;
    let told: Value = serde_json::from_str(&told).unwrap();
    let session = told["sessions"][0]["session"].as_str().unwrap().to_owned();
    stage.run(&["resume", &session, "--prompt", "what did you do?"]).expect(0);
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    let costs = costs(&stage);
    assert_eq!((costs.len(), costs[0].1), (1, 40_000), "four calls in all: {costs:?}");
    let expected = CALL_USD + 3.0 * CLAUDES_CALL_USD;
    assert!((costs[0].2 - expected).abs() < 1e-6, "{costs:?}, not {expected}");
}
