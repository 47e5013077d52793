//! `autopilot cost` and the limits on money, on runs that scripted agents really made.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::agents;
use autopilot_testkit::model::{Call, Rule, Script, Server, Turn};
use autopilot_testkit::netns;
use autopilot_testkit::plan;
use autopilot_testkit::stage::{APPROVES, BUILDS, Stage};
use serde_json::{Value, json};
use std::time::Duration;

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

#[test]
fn a_limit_on_money_stops_the_run_before_the_second_dispatch() {
    let stage = stage();
    stage.config("commands: { tests: sh test.sh }\nbudget: { max_usd: 0.01 }\n");
    let rest = stage.run_task().expect(2);
    rest.says(&["has spent $0.01 of its limit of $0.01", "autopilot resume"]);
    let told = cost(&stage, &["--by", "step"]);
    let part = &told["parts"][0];
    let steps: Vec<String> = rows(part).into_iter().map(|(step, _)| step).collect();
    assert_eq!(steps, ["build"], "nothing else was asked of anybody: {told}");
    // More money takes it further, and what was spent before stays spent.
    stage.run(&["resume", "--max-usd", "1"]).expect(0);
    let builds = row(&cost(&stage, &[])["parts"][1], "build");
    assert_eq!((&builds["attempts"], &builds["cost_usd"]), (&2.into(), &0.02.into()));
}

#[test]
fn a_limit_on_money_ends_an_agent_while_it_works() {
    let stage = stage();
    let spender = "
- step: build
  do: [{ cost_usd: 0.005 }, { cost_usd: 0.02 }, { hang: true }]
";
    stage.agents(&[spender, APPROVES]);
    stage.config("commands: { tests: sh test.sh }\nbudget: { max_usd_per_task: 0.01 }\n");
    let spent = "task say-done has spent $0.02 of its limit of $0.01";
    let more = "autopilot retry <task> --max-usd-per-task <USD>";
    stage.run_task().expect(10).says(&[spent, more]);
    assert!(stage.survivors().is_empty());
    let build = row(&cost(&stage, &[])["parts"][1], "build");
    assert_eq!((&build["cost_usd"], &build["attempts"]), (&0.02.into(), &1.into()), "{build}");
    // Without more money nobody is asked again.
    let refused = spent.replace("say-done", "`say-done`");
    stage.run(&["retry", "say-done"]).expect(10).says(&[&refused, "--max-usd-per-task"]);
    let build = row(&cost(&stage, &[])["parts"][1], "build");
    assert_eq!(build["attempts"], 1, "{build}");
    stage.agents(&[BUILDS, APPROVES]);
    stage.run(&["retry", "say-done", "--max-usd-per-task", "1"]).expect(0);
}

#[test]
fn the_limit_of_a_run_ends_all_who_work_on_it_while_they_work() {
    let tasks = ["a", "b"].map(|name| plan::task(name, &[]));
    let all = plan::plan(&tasks);
    let stage = plan::stage(env!("CARGO_BIN_EXE_autopilot"), &all);
    // Each alone stays below the limit; together they are above it.
    let spender = "\n- step: build\n  do: [{ cost_usd: 0.3 }, { hang: true }]\n";
    stage.agents(&[&plan::says(&all), spender, APPROVES]);
    let more = "orchestrator: { max_workers: 2 }\nbudget: { max_usd: 0.5 }\n";
    plan::configure(&stage, &format!("{}{more}", plan::TESTS));
    let began = std::time::Instant::now();
    let rest = stage.run(&plan::RUN).expect(2).says(&["has spent $0.60 of its limit of $0.50"]);
    assert!(began.elapsed() < Duration::from_secs(60), "nobody waited for a time limit");
    assert!(stage.survivors().is_empty());
    let build = row(&cost(&stage, &["--by", "step"])["parts"][0], "build");
    assert_eq!(build["cost_usd"], 0.6, "{build}");
    // Whoever began once more waited for what the other had not spent, and was asked nothing.
    let asked = stage.views("-build/prompt.txt");
    assert_eq!(asked.len(), 2, "{asked:?} {}", rest.said());
}

/// Prints what the real one does, with a thread whose usage is told over all of its turns.
const CODEX: &str = r#"#!/bin/sh
cat > /dev/null
printf '%s\n' "$*" >> "$HOME/.codex/asked"
echo done >> app.txt
echo '{"type":"thread.started","thread_id":"0199bbbb-2222-7000-8000-000000000000"}'
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":"{\"changed_files\":[\"app.txt\"],\"notes\":\"x\"}"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":10000,"cached_input_tokens":4000,"output_tokens":1000}}'
"#;

fn codex_stage(more: &str) -> Stage {
    let stage = stage();
    std::fs::create_dir_all(stage.folder().join("home/.codex")).unwrap();
    stage.write_program("../codex", CODEX);
    let config = "repo: { base_branch: main }\ncommands: { tests: sh test.sh }\n\
        builder: { mode: codex_cli, executable: ../codex, model: gpt-5.5 }\n\
        reviewer: { mode: script, script: agents.yml }\n";
    stage.write(".autopilot/config.yml", &format!("{config}{more}"));
    stage
}

#[test]
fn an_agent_that_tells_tokens_is_billed_by_the_price_of_its_model() {
    let prices = "prices: { gpt-5.5: { input: 1, output: 10, cached: 0.1 } }\n";
    let stage = codex_stage(&format!("{prices}budget: {{ max_usd: 5 }}\n"));
    stage.run_task().expect(0);
    let told = cost(&stage, &["--by", "model"]);
    let model = row(&told["parts"][0], "gpt-5.5");
    // 6000 fresh for 0.006, 4000 cached for 0.0004, 1000 out for 0.01.
    assert_eq!((&model["cost_usd"], &model["cost_complete"]), (&0.0164.into(), &true.into()));
    assert_eq!((&model["tokens_in"], &model["tokens_cached"]), (&10_000.into(), &4_000.into()));
    assert_eq!(model["tokens_out"], 1_000);
    assert_eq!(
        rows(&cost(&stage, &["--by", "agent"])["parts"][0])[0].0,
        "codex_cli",
        "dearest first"
    );
}

#[test]
fn a_limit_on_money_without_a_price_is_refused_and_the_key_named() {
    let stage = codex_stage("budget: { max_usd: 5 }\n");
    let said = stage.run_task().expect(78);
    said.says(&["builder", "codex_cli", "prices.\"gpt-5.5\"", "`max_usd`"]);
    assert!(!stage.folder().join("home/.codex/asked").exists(), "nothing was started");
    // Without a limit it runs, its tokens are counted and its cost is unknown.
    let stage = codex_stage("");
    stage.run_task().expect(0).says(&["unknown (builder: codex_cli)"]);
    let build = row(&cost(&stage, &[])["parts"][1], "build");
    assert_eq!((&build["cost_usd"], &build["tokens_in"]), (&Value::Null, &10_000.into()));
    stage.task("more", "More");
    for more in [&[][..], &["--dry-run"]] {
        let args = [&["run", "tasks/more.md", "--max-usd", "1"], more].concat();
        stage.run(&args).expect(78).says(&["prices"]);
    }
}

#[test]
fn a_limit_that_is_checked_only_after_a_turn_is_said_before_it_starts() {
    let late = "builder: codex_cli reports its usage at the end of a turn";
    let prices = "prices: { gpt-5.5: { input: 1, output: 10, cached: 0.1 } }\n";
    let stage = codex_stage(&format!("{prices}budget: {{ max_usd: 5 }}\n"));
    stage.run(&["run", "tasks/say-done.md", "--dry-run"]).expect(0).says(&[late]);
    assert!(!stage.folder().join("home/.codex/asked").exists(), "nothing was started");
    assert!(stage.run(&["doctor"]).said().contains(late));
    stage.run_task().expect(0).says(&[late]);
}

/// Where a program that stands in for an agent writes down how it was started.
fn may_write(stage: &Stage) -> String {
    format!("sandbox: {{ write: ['{}'] }}\n", stage.folder().join("home/own").display())
}

/// Prints what the real one does: its cost is told over the whole session.
const CLAUDE: &str = r#"#!/bin/sh
read -r asked
printf '%s\n' "$*" >> "$HOME/own/asked"
number=$(wc -l < "$HOME/own/asked")
if [ "$number" = 1 ]; then echo broken >> app.txt; else printf 'start\ndone\n' > app.txt; fi
session=0199cccc-3333-7000-8000-00000000000$number
echo "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"$session\",\"model\":\"m\"}"
echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"{\\\"changed_files\\\":[\\\"app.txt\\\"],\\\"notes\\\":\\\"x\\\"}\",\"session_id\":\"$session\",\"num_turns\":1,\"total_cost_usd\":0.2,\"terminal_reason\":\"completed\",\"usage\":{\"input_tokens\":100,\"output_tokens\":9},\"permission_denials\":[]}"
"#;

#[test]
fn an_agent_is_told_what_is_left_to_spend() {
    let stage = stage();
    std::fs::create_dir_all(stage.folder().join("home/own")).unwrap();
    stage.write_program("../claude", CLAUDE);
    let config = "repo: { base_branch: main }\ncommands: { tests: sh test.sh }\n\
        builder: { mode: claude_code_cli, executable: ../claude, max_usd: 0.45 }\n\
        reviewer: { mode: script, script: agents.yml }\nbudget: { max_usd: 0.5 }\n";
    stage.write(".autopilot/config.yml", &format!("{config}{}", may_write(&stage)));
    stage.run_task().expect(0);
    let asked = std::fs::read_to_string(stage.folder().join("home/own/asked")).unwrap();
    let budgets: Vec<f64> = asked
        .lines()
        .map(|line| line.split("--max-budget-usd ").nth(1).unwrap())
        .map(|rest| rest.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(budgets.len(), 2, "{asked}");
    assert_eq!(budgets[0], 0.45, "its own limit is the smaller one");
    // The build cost 0.20 and its review 0.01.
    assert_eq!(budgets[1], 0.29, "what the run has left is the smaller one");
}

/// The real one before a scripted model, which says what each request has used.
fn real_claude(stage: &mut Stage, script: Script, agent: &str, more: &str) -> Server {
    eprintln!("network: {}", netns::enter());
    let server = Server::start(script).unwrap();
    for (name, value) in agents::claude_home(&stage.folder().join("home"), &server).unwrap() {
        if name != "HOME" {
            stage.set(&name, &value);
        }
    }
    let config = format!(
        "repo: {{ base_branch: main }}\ncommands: {{ tests: sh test.sh }}\n\
         builder: {{ mode: claude_code_cli, executable: {}{agent} }}\n\
         reviewer: {{ mode: script, script: agents.yml }}\n{more}",
        agents::claude().display()
    );
    stage.write(".autopilot/config.yml", &config);
    server
}

#[test]
fn the_real_claude_is_stopped_by_a_cent_and_goes_on_with_more() {
    let mut stage = stage();
    let summary = json!({ "changed_files": ["app.txt"], "notes": "ok" });
    let script = Script::new().rule(Rule::when("Say done").turns([
        Turn::call(Call::read("app.txt")).using(20_000, 0, 500),
        Turn::call(Call::edit("app.txt", "start", "start\ndone")).using(20_000, 0, 500),
        Turn::answer(summary).using(20_000, 0, 500),
    ]));
    let _server = real_claude(&mut stage, script, "", "budget: { max_usd: 0.01 }\n");
    let rest = stage.run_task().expect(2);
    rest.says(&["of its limit of $0.01", "autopilot resume"]);
    let part = &cost(&stage, &["--by", "step"])["parts"][0];
    assert_eq!(rows(part).len(), 1, "nothing but the build was begun: {part}");
    let build = row(part, "build");
    assert!(build["cost_usd"].as_f64().unwrap() >= 0.01, "{build}");
    assert_eq!((&build["attempts"], &build["cost_complete"]), (&1.into(), &true.into()), "{build}");
    // It kept to what it was given; that was no fault of its own.
    let shown = stage.run(&["show", "--json"]).expect(0).out;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let tried = shown["attempts"].as_array().unwrap().iter().find(|tried| tried["step"] == "build");
    assert_eq!(tried.unwrap()["outcome"], "ended", "{shown}");
    stage.run(&["resume", "--max-usd", "50"]).expect(0).says(&["DONE"]);
}

/// A builder that speaks like Claude Code and runs `script`, in a repository with this `config`.
fn claude_stage(script: &str, agent: &str, more: &str) -> Stage {
    let stage = stage();
    with_claude(&stage, script, agent, more);
    stage
}

fn with_claude(stage: &Stage, script: &str, agent: &str, more: &str) {
    std::fs::create_dir_all(stage.folder().join("home/own")).unwrap();
    let lines = "#!/bin/sh\nread -r asked\nprintf '%s\\n' \"$*\" >> \"$HOME/own/asked\"\n\
        echo '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s-1\",\"model\":\"m\"}'\n";
    stage.write_program("../claude", &format!("{lines}{script}\n"));
    let config = format!(
        "repo: {{ base_branch: main }}\ncommands: {{ tests: sh test.sh }}\n\
         builder: {{ mode: claude_code_cli, executable: ../claude{agent} }}\n\
         reviewer: {{ mode: script, script: agents.yml }}\n\
         planner: {{ mode: script, script: agents.yml }}\n{}{more}",
        may_write(stage)
    );
    stage.write(".autopilot/config.yml", &config);
}

/// What it was told it may spend, each time it was asked.
fn budgets(stage: &Stage) -> Vec<f64> {
    let asked = std::fs::read_to_string(stage.folder().join("home/own/asked")).unwrap();
    let budget = |line: &str| {
        let rest = line.split("--max-budget-usd ").nth(1)?;
        rest.split(' ').next()?.parse().ok()
    };
    asked.lines().map(|line| budget(line).unwrap_or(0.0)).collect()
}

#[test]
fn an_agent_that_ends_without_telling_its_cost_is_charged_an_estimate() {
    let says = r#"echo '{"type":"assistant","session_id":"s-1","message":{"content":[{"type":"text","text":"hm"}]}}'; exit 1"#;
    let stage = claude_stage(says, "", "budget: { max_usd: 0.01 }\n");
    let rest = stage.run_task().expect(2);
    rest.says(&["has spent $0.00 and an estimated $0.01 of its limit of $0.01"])
        .says(&["cost: $0.00 + $0.01 estimated"])
        .says(&["`autopilot resume --max-usd N` with N above 0.01"]);
    assert_eq!(budgets(&stage), [0.01], "the same money is not given twice");
    let build = row(&cost(&stage, &[])["parts"][1], "build");
    assert_eq!((&build["cost_usd"], &build["cost_estimated_usd"]), (&0.0.into(), &0.01.into()));
    assert_eq!(
        (&build["cost_complete"], &build["attempts_of_unknown_cost"]),
        (&false.into(), &1.into())
    );
    stage
        .run(&["show", "say-done"])
        .expect(0)
        .says(&["an estimated $0.01 counts against the limit"]);
    for command in [&["status"][..], &["runs"], &["runs", "--stats"], &["cost"]] {
        stage.run(command).expect(0).says(&["estimated"]);
    }
    assert!(stage.read(".autopilot/STATUS.md").contains("$0.00 + $0.01 estimated"));
    // A plain `resume` rests at once.
    stage.run(&["resume"]).expect(2);
    assert_eq!(budgets(&stage).len(), 1);
}

#[test]
fn an_agent_that_runs_out_of_time_is_charged_by_its_time() {
    let more = "budget: { max_usd: 0.04 }\nloop: { retries: { build: 3 } }\n";
    let stage = claude_stage("sleep 60", ", timeout_sec: 2", more);
    stage.run_task().expect(2).says(&["estimated $0.04 of its limit of $0.04"]);
    let told = budgets(&stage);
    let rest = told[1..].iter().all(|told| *told <= 0.01);
    assert!(told[0] == 0.04 && rest, "each has what is left: {told:?}");
}

/// The figures of a run's money: told, estimated, reserved.
fn figures(stage: &Stage) -> (f64, f64, f64) {
    let status = stage.run(&["status", "--json"]).expect(0).out;
    let status: Value = serde_json::from_str(&status).unwrap();
    let figure = |key: &str| status[key].as_f64().unwrap_or_else(|| panic!("{key}: {status}"));
    (figure("cost_usd"), figure("cost_estimated_usd"), figure("cost_reserved_usd"))
}

#[test]
fn a_run_that_is_stopped_at_once_goes_on_with_the_money_it_has_not_spent() {
    let script = format!("[ $(wc -l < \"$HOME/own/asked\") != 1 ] || sleep 60\n{SPENDS_A_FIFTH}");
    let stage = claude_stage(&script, "", "");
    let run = stage.start(&["run", "tasks/say-done.md", "--max-usd", "2"]);
    stage.wait_until("it works", has_asked);
    // What is reserved for it is not spent.
    stage.wait_until("its money is reserved", |stage| figures(stage) == (0.0, 0.0, 2.0));
    stage.run(&["status"]).expect(0).says(&["$0.00, $2.00 reserved"]);
    stage.run(&["cost"]).expect(0).says(&["unknown, $2.0000 reserved"]);
    stage.run(&["runs"]).expect(0).says(&["$0.00, $2.00 reserved"]);
    stage.run(&["stop", "--now"]).expect(0);
    let rest = run.wait();
    assert!(rest.said().contains("estimated"), "{}", rest.said());
    let (told, estimated, reserved) = figures(&stage);
    assert_eq!((told, reserved), (0.0, 0.0), "the reservation is settled");
    assert!(estimated > 0.0 && estimated < 1.0, "by its time: {estimated}");
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    let given = budgets(&stage);
    assert!((given[1] - (2.0 - estimated)).abs() < 1e-9, "{given:?}, {estimated}");
    let (told, still, _) = figures(&stage);
    assert_eq!(still, estimated, "an estimate stays one");
    assert!(told >= 0.2, "{told}");
}

/// Tells what it has cost when it is asked to stop.
const STOPS_WHEN_ASKED: &str = r#"
while read -r line; do
  case "$line" in *'"interrupt"'*) break ;; esac
done
echo '{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"s-1","terminal_reason":"aborted_streaming","total_cost_usd":0.2,"usage":{"input_tokens":7,"output_tokens":1}}'"#;

/// The outcomes of all builds, in words.
fn builds(stage: &Stage) -> Vec<String> {
    let shown = stage.run(&["show", "say-done", "--json"]).expect(0).out;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let tried = shown["attempts"].as_array().unwrap().iter();
    tried.filter(|tried| tried["step"] == "build").map(ToString::to_string).collect()
}

#[test]
fn an_agent_whose_time_is_over_is_asked_to_stop_and_tells_its_cost() {
    let stage = claude_stage(STOPS_WHEN_ASKED, ", timeout_sec: 4", "budget: { max_usd: 0.5 }\n");
    stage.run_task().expect(10).says(&["the agent hit the step's time limit"]);
    assert_eq!(budgets(&stage)[..2], [0.5, 0.3], "it is charged what it told");
    let build = row(&cost(&stage, &[])["parts"][1], "build");
    assert_eq!(build["cost_complete"], true, "{build}");
    assert!(builds(&stage).iter().all(|build| build.contains("time limit")));
    let told = stage.texts_of("metadata.json");
    assert!(told.contains("\"timed_out\": true"), "{told}");
}

#[test]
fn the_real_claude_is_asked_to_stop_when_its_time_is_over() {
    let mut stage = stage();
    let script = Script::new().rule(Rule::when("Say done").turns([
        Turn::call(Call::read("app.txt")).using(20_000, 0, 500),
        Turn::say("too late").after(Duration::from_secs(300)).using(1, 0, 1),
    ]));
    let more = "budget: { max_usd: 5 }\nloop: { retries: { build: 0 } }\n";
    let _server = real_claude(&mut stage, script, ", timeout_sec: 20", more);
    stage.run_task().expect(10).says(&["the agent hit the step's time limit"]);
    let build = row(&cost(&stage, &[])["parts"][1], "build");
    assert_eq!(build["cost_complete"], true, "{build}");
    let usd = build["cost_usd"].as_f64().unwrap();
    assert!(usd > 0.0 && usd < 1.0, "what it used and not what it was given: {build}");
}

#[test]
fn an_agent_that_spends_more_than_it_may_is_ended_by_its_own_limit() {
    let stage = stage();
    let spender = "
- step: build
  do: [{ cost_usd: 0.005 }, { cost_usd: 0.02 }, { hang: true }]
";
    stage.agents(&[spender, APPROVES]);
    let config = stage.read(".autopilot/config.yml");
    let builder = "builder: { mode: script, script: agents.yml";
    assert!(config.contains(builder), "{config}");
    let limited = format!("{builder}, max_usd: 0.01");
    stage.write(".autopilot/config.yml", &config.replace(builder, &limited));
    stage.run_task().expect(10).says(&["it was allowed $0.01 and has spent $0.02"]);
    assert!(stage.survivors().is_empty());
}

#[test]
fn the_second_turn_of_an_attempt_gets_what_the_first_has_left() {
    // Its answer can't be read, so it is asked for once more.
    let says = r#"
n=$(wc -l < "$HOME/own/asked")
echo done >> app.txt
echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"session_id\":\"s-1\",\"total_cost_usd\":0.$((n * 3)),\"usage\":{\"input_tokens\":1,\"output_tokens\":1},\"result\":\"no JSON\"}""#;
    let stage = claude_stage(says, ", max_usd: 0.45", "");
    stage.run_task();
    let budgets = budgets(&stage);
    assert_eq!(budgets[..2], [0.45, 0.15], "{budgets:?}");
}

#[test]
fn workers_at_once_share_what_the_run_has_left() {
    let all = plan::plan(&[plan::task("a", &[]), plan::task("b", &[])]);
    let stage = plan::stage(env!("CARGO_BIN_EXE_autopilot"), &all);
    stage.agents(&[&plan::says(&all), APPROVES]);
    let more = "orchestrator: { max_workers: 2 }\nbudget: { max_usd: 0.5 }\n";
    with_claude(&stage, "sleep 60", "", more);
    let run = stage.start(&plan::RUN);
    stage.wait_until("both work", |stage| {
        std::fs::read_to_string(stage.folder().join("home/own/asked"))
            .is_ok_and(|asked| asked.lines().count() == 2)
    });
    assert_eq!(budgets(&stage), [0.25, 0.25]);
    stage.run(&["stop", "--now"]);
    run.wait();
}

/// Kills the run once its agent has said what is looked for.
fn kill_when(stage: &Stage, what: &str, holds: impl Fn(&Stage) -> bool) {
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_until(what, holds);
    run.signal("KILL");
    run.wait();
}

fn has_asked(stage: &Stage) -> bool {
    std::fs::read_to_string(stage.folder().join("home/own/asked"))
        .is_ok_and(|asked| !asked.is_empty())
}

#[test]
fn what_an_attempt_was_given_is_settled_when_the_controller_is_killed_in_its_middle() {
    let script = format!("[ $(wc -l < \"$HOME/own/asked\") != 1 ] || sleep 60\n{SPENDS_A_FIFTH}");
    let stage = claude_stage(&script, "", "budget: { max_usd: 5 }\n");
    kill_when(&stage, "it works", has_asked);
    assert_eq!(figures(&stage), (0.0, 0.0, 5.0), "nobody has settled it yet");
    stage.run(&["status"]).expect(0).says(&["$5.00 reserved"]);
    stage.run(&["resume"]).expect(0).says(&["DONE", "estimated"]);
    let (_, estimated, reserved) = figures(&stage);
    assert!(estimated > 0.0 && estimated < 2.0 && reserved == 0.0, "{estimated} {reserved}");
    let given = budgets(&stage);
    assert!((given[1] - (5.0 - estimated)).abs() < 1e-9, "not the same money twice: {given:?}");
    stage.run(&["show", "say-done"]).expect(0).says(&["without reporting its cost; an estimated"]);
}

#[test]
fn a_limit_that_an_estimate_uses_up_is_not_exceeded_after_a_kill() {
    let stage = claude_stage("sleep 60", "", "budget: { max_usd: 0.01 }\n");
    kill_when(&stage, "it works", has_asked);
    let rest = stage.run(&["resume"]).expect(2);
    rest.says(&["has spent $0.00 and an estimated $0.01 of its limit of $0.01"]);
    assert_eq!(budgets(&stage), [0.01], "the same money is not given twice");
    // Neither is it charged again.
    stage.run(&["resume"]).expect(2).says(&["an estimated $0.01 of its limit"]);
}

#[test]
fn without_a_limit_a_killed_controller_charges_nothing() {
    let stage = claude_stage("sleep 60", "", "");
    kill_when(&stage, "it works", has_asked);
    std::fs::remove_dir_all(stage.folder().join("home/own")).unwrap();
    with_claude(&stage, SPENDS_A_FIFTH, "", "");
    stage.run(&["resume"]).expect(0);
    let build = row(&cost(&stage, &[])["parts"][1], "build");
    assert_eq!((&build["cost_usd"], &build["attempts"]), (&0.2.into(), &2.into()), "{build}");
    assert_eq!(build["attempts_of_unknown_cost"], 1, "{build}");
}

/// Tells a result; what it is asked first does not end by itself.
const SPENDS_A_FIFTH: &str = r#"
printf 'start\ndone\n' > app.txt
echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"session_id\":\"s-1\",\"total_cost_usd\":0.2,\"terminal_reason\":\"completed\",\"usage\":{\"input_tokens\":100,\"output_tokens\":9},\"result\":\"{\\\"changed_files\\\":[\\\"app.txt\\\"],\\\"notes\\\":\\\"x\\\"}\"}""#;

#[test]
fn a_cost_that_was_told_before_the_controller_was_killed_counts_as_told() {
    let lingers = format!("{SPENDS_A_FIFTH}\n[ $(wc -l < \"$HOME/own/asked\") != 1 ] || sleep 60");
    let stage = claude_stage(&lingers, "", "budget: { max_usd: 0.5 }\n");
    kill_when(&stage, "its cost was told", |stage| {
        stage.texts_of("events.jsonl").contains("\"event\":\"usage\"")
    });
    stage.run(&["resume"]).expect(0);
    assert_eq!(budgets(&stage), [0.5, 0.3], "the rest is there to be spent");
    // The session goes on counting where it was.
    let build = row(&cost(&stage, &[])["parts"][1], "build");
    assert_eq!((&build["attempts"], &build["cost_complete"]), (&2.into(), &true.into()), "{build}");
}
