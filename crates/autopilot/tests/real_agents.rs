//! The real `claude` and `codex` by the real binary, against the scripted model, cut off from the
//! network: what their own tools do to files, and what is made of their ends.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::agents;
use autopilot_testkit::model::{Call, Fault, Request, Rule, Script, Times, Turn};
use autopilot_testkit::plan::{PLAN_MD, RUN, branch, merged_once_each, plan, task};
use autopilot_testkit::real::Real;
use autopilot_testkit::stage::{Stage, files_with, text};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
const BUILDER: &str = "You implement one task";
const REVIEWER: &str = "You review one change";
const WHOLE_REVIEWER: &str = "You review the result of a plan as a whole";
const ACCEPTANCE: &str = "You write user acceptance test cases";
const PLANNER: &str = "You turn a plan into tasks";

fn summary(file: &str) -> String {
    json!({ "changed_files": [file], "tests_ran": false, "tests_passed": false, "notes": "written" })
        .to_string()
}

/// Approves everything, and writes acceptance cases.
fn reviews(script: Script) -> Script {
    let verdict =
        json!({ "verdict": "APPROVE", "summary": "fine", "issues": [], "accepted_tests": [] });
    script
        .when(REVIEWER, [Turn::answer(verdict.clone())])
        .when(WHOLE_REVIEWER, [Turn::answer(verdict)])
        .when(ACCEPTANCE, [Turn::say("# Cases\n\n## 1. It is there\n\nLook at it.\n")])
}

/// A builder that writes the file of its task with its own tool.
fn builds(script: Script, name: &str) -> Script {
    let file = format!("{name}.txt");
    let write = Turn::call(Call::write(&file, &format!("{name}\n"))).using(1000, 500, 80);
    let rule = Rule::when(BUILDER).and(&format!("Write {name}"));
    script.rule(rule.turns([write, Turn::say(&summary(&file)).using(1200, 900, 60)]))
}

/// What a builder does to the task of the stage: its own tool writes the line.
fn builds_the_task() -> Rule {
    let edit = Turn::call(Call::edit("app.txt", "start", "start\ndone")).using(1000, 500, 80);
    // It may only edit what it has read.
    let read = Turn::call(Call::read("app.txt"));
    Rule::when(BUILDER).turns([read, edit, Turn::say(&summary("app.txt")).using(1200, 900, 60)])
}

/// A task by `claude`, reviewed by `codex`.
const TASK: [&str; 2] = ["run", "tasks/say-done.md"];

fn real(script: Script, more: &str) -> Real {
    Real::new(BINARY, script, &format!("commands: {{ tests: sh test.sh }}\n{more}"))
}

fn metadata(stage: &Stage, part: &str) -> Value {
    let path = &stage.views(&format!("{part}/metadata.json"))[0];
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_plan_by_codex_is_built_by_claude_reviewed_by_codex_and_ends_done() {
    let wanted = plan(&[task("one", &[]), task("two", &["one"])]);
    let script = Script::new().when(PLANNER, [Turn::answer(wanted)]);
    let script = reviews(builds(builds(script, "one"), "two"));
    let Real { stage, server } = real(script, "");
    stage.write("plan.md", PLAN_MD);
    stage.run(&RUN).expect(0).says(&["DONE", "git merge autopilot/run-"]);
    merged_once_each(&stage, &["one", "two"]);
    for name in ["one", "two"] {
        let shown = stage.git(&["show", &format!("{}:{name}.txt", branch(&stage))]);
        assert_eq!(shown.trim(), name, "written by the agent's own tool");
    }
    assert_eq!(stage.survivors(), [""; 0]);
    let built = metadata(&stage, "one-build");
    assert_eq!(
        (&built["agent"], &built["status"]),
        (&json!("claude_code_cli"), &json!("succeeded"))
    );
    assert!(built["session"].is_string() && built["cost_usd"].as_f64().unwrap() > 0.0, "{built:#}");
    let events = stage.texts_of("one-build/events.jsonl");
    for word in ["\"event\":\"session\"", "\"event\":\"tool_call\"", "\"event\":\"file_change\""] {
        assert!(events.contains(word), "{word}: {events}");
    }
    let reviewed = metadata(&stage, "one-review");
    assert_eq!(reviewed["agent"], "codex_cli");
    assert!(reviewed["usage"]["inputTokens"].as_u64().unwrap() > 0, "{reviewed:#}");
    assert!(stage.status()["cost_usd"].as_f64().unwrap() > 0.0);
    assert!(server.requests().len() >= 8, "{}", server.requests().len());
    // Played again without any of them.
    stage.run(&["replay"]).expect(0).says(&["all the same"]);
}

#[test]
fn codex_as_a_builder_inside_our_sandbox_really_uses_its_tools() {
    for mode in ["landlock", "bwrap"] {
        codex_builds_inside(&format!("sandbox: {{ mode: {mode} }}\n"));
    }
}

fn codex_builds_inside(sandbox: &str) {
    let shell = Turn::call(Call::shell("echo done >> app.txt && echo ran > ran.txt"));
    let patch = Turn::call(Call::write("patched.txt", "patched\n"));
    let said = Turn::say(&summary("app.txt"));
    let rule = Rule::when(BUILDER).turns([shell, patch, said]);
    let Real { stage, server: _server } = real(reviews(Script::new().rule(rule)), sandbox);
    let config = stage.read(".autopilot/config.yml");
    let (builder, reviewer) = (line(&config, "builder:"), line(&config, "reviewer:"));
    let codex = reviewer.replace("reviewer:", "builder:");
    stage.write(".autopilot/config.yml", &config.replace(&builder, &codex));
    let allowed = "Allowed Paths:\n- app.txt\n- ran.txt\n- patched.txt\n";
    let task = stage.read("tasks/say-done.md").replace("Allowed Paths:\n", allowed);
    stage.write("tasks/say-done.md", &task);
    stage.run(&TASK).expect(0);
    let on_branch = |file: &str| stage.git(&["show", &format!("autopilot/say-done:{file}")]);
    assert_eq!(on_branch("app.txt").trim(), "start\ndone");
    assert_eq!((on_branch("ran.txt").trim(), on_branch("patched.txt").trim()), ("ran", "patched"));
    // It did not write its settings for the user's later runs.
    let settings = fs::read_to_string(stage.folder().join("home/.codex/config.toml")).unwrap();
    assert!(!settings.contains("trust_level"), "{settings}");
}

fn line(text: &str, start: &str) -> String {
    text.lines().find(|line| line.starts_with(start)).unwrap().to_owned()
}

#[test]
fn the_users_own_settings_of_claude_are_used_and_left_whole() {
    let script = reviews(Script::new().rule(builds_the_task()));
    let Real { mut stage, server } = real(script, "");
    // As on a machine where nothing says where the settings are.
    stage.unset("CLAUDE_CONFIG_DIR");
    let home = stage.folder().join("home");
    fs::write(home.join(".claude.json"), r#"{"numStartups":7,"kept":"mine"}"#).unwrap();
    fs::write(home.join(".claude/CLAUDE.md"), "ALWAYS SPEAK OF THE HERON\n").unwrap();
    stage.run(&TASK).expect(0);
    let settings = fs::read_to_string(home.join(".claude.json")).unwrap();
    let settings: Value = serde_json::from_str(&settings).unwrap();
    assert_eq!(settings["kept"], "mine");
    let asked = server.requests().iter().any(|r| r.body.to_string().contains("THE HERON"));
    assert!(asked, "the user's own instructions are read");
}

#[test]
fn real_agents_at_work_at_once_leave_the_users_settings_as_they_were() {
    let names = ["one", "two", "three"];
    let wanted = plan(&names.map(|name| task(name, &[])));
    let gate = Gate::new();
    let builds = |script: Script, name: &str| {
        let file = format!("{name}.txt");
        let waits = Turn::call(Call::shell(&gate.then(&format!("echo {name} > {file}"))));
        let rule = Rule::when(BUILDER).and(&format!("Write {name}"));
        script.rule(rule.turns([waits, Turn::say(&summary(&file))]))
    };
    let script = Script::new().when(PLANNER, [Turn::answer(wanted)]);
    let script = names.into_iter().fold(script, builds);
    let Real { mut stage, server } = real(reviews(script), "orchestrator: { max_workers: 3 }\n");
    stage.unset("CLAUDE_CONFIG_DIR");
    let settings = stage.folder().join("home/.claude.json");
    let before = r#"{"numStartups":7,"kept":"mine"}"#;
    fs::write(&settings, before).unwrap();
    stage.write("plan.md", PLAN_MD);
    let run = stage.start(&RUN);
    stage.wait_until("all three are at work", |_| {
        let asked = server.requests();
        let is_asked = |name: &&str| {
            let task = format!("Write {name}");
            let is_its = |body: String| body.contains(BUILDER) && body.contains(&task);
            asked.iter().any(|request| is_its(request.body.to_string()))
        };
        names.iter().all(is_asked)
    });
    gate.open();
    run.wait().expect(0).says(&["DONE"]);
    merged_once_each(&stage, &names);
    assert_eq!(fs::read_to_string(&settings).unwrap(), before);
}

/// What an agent waits for, in a place it may read.
struct Gate(tempfile::TempDir);

impl Gate {
    fn new() -> Gate {
        // Not in `/tmp`, where an agent sees its own files only.
        Gate(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    fn then(&self, command: &str) -> String {
        let gate = self.0.path().join("gate");
        format!("until [ -e {} ]; do sleep 0.1; done; {command}", gate.display())
    }

    fn open(&self) {
        fs::write(self.0.path().join("gate"), "").unwrap();
    }
}

#[test]
fn an_agent_that_is_killed_leaves_none_of_the_children_that_escaped_it() {
    let escape = "setsid sh -c 'exec setsid tail -f /dev/null' > /dev/null 2>&1 & \
                  timeout 600 tail -f /dev/null";
    let rule = Rule::when(BUILDER).turns([Turn::call(Call::shell(escape))]);
    let Real { stage, server: _server } = real(reviews(Script::new().rule(rule)), "");
    let run = stage.start(&TASK);
    let tails =
        |stage: &Stage| stage.survivors().iter().filter(|line| line.contains("tail\0-f")).count();
    stage.wait_until("its children run", |stage| tails(stage) >= 2);
    let agent = stage.survivors().into_iter().find(|line| line.contains("--input-format")).unwrap();
    let pid = agent.split(':').next().unwrap().to_owned();
    stage.write(".autopilot/AUTOPILOT_STOP", "");
    assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    run.wait().expect(2);
    assert_eq!(stage.survivors(), [""; 0]);
}

#[test]
fn a_usage_limit_is_waited_for_and_spends_neither_a_round_nor_a_retry() {
    let body = json!({ "type": "error", "error": {
        "type": "rate_limit_error", "message": "This request would exceed your limit." } });
    let limited = Fault::status(429, body)
        .header("anthropic-ratelimit-unified-status", "rejected")
        .header("anthropic-ratelimit-unified-reset", "now+3")
        .header("anthropic-ratelimit-unified-representative-claim", "five_hour");
    let rule = builds_the_task().fails(Times::First(1), limited);
    let Real { mut stage, server } = real(reviews(Script::new().rule(rule)), "");
    stage.unset("ANTHROPIC_API_KEY");
    let home = stage.folder().join("home");
    for (name, value) in agents::claude_subscription(&home, &server).unwrap() {
        stage.set(&name, &value);
    }
    let told = stage.run(&TASK).expect(0);
    told.says(&["quota", "DONE"]);
    let task = stage.first_task();
    assert_eq!(task["iteration"], 1, "{task:#}");
    let shown = stage.run(&["show", "say-done", "--json"]).expect(0);
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    assert!(shown.to_string().contains("quota"), "{shown:#}");
    assert_eq!(stage.views("build/metadata.json").len(), 2, "asked once more");
}

#[test]
fn a_limit_of_a_cent_stops_the_run_before_the_second_dispatch() {
    let script = reviews(Script::new().rule(builds_the_task()));
    let prices = format!(
        "budget: {{ max_usd: 0.01 }}\nprices: {{ \"{}\": {{ input: 1, output: 1 }} }}\n",
        agents::CODEX_MODEL
    );
    let Real { stage, server } = real(script, &prices);
    // The first is dear enough.
    stage.run(&TASK).expect(2).says(&["limit"]);
    let of_builder = |path: &str| path.contains("/messages");
    assert!(server.requests().iter().all(|request| of_builder(&request.path)), "no review");
    assert_eq!(stage.views("metadata.json").len(), 1);
    assert!(stage.status()["cost_usd"].as_f64().unwrap() >= 0.01, "{:#}", stage.status());
}

#[test]
fn secrets_of_the_environment_reach_no_file_and_no_prompt() {
    let env = Turn::call(Call::shell("env | sort > seen.txt; cat seen.txt; rm seen.txt"));
    let edit = Turn::call(Call::shell("echo done >> app.txt"));
    let said = Turn::say(&summary("app.txt"));
    let rule = Rule::when(BUILDER).turns([env, edit, said]);
    let Real { mut stage, server } = real(reviews(Script::new().rule(rule)), "");
    let planted = [
        ("GITHUB_TOKEN", "ghp_plantedsecret0001"),
        ("DATABASE_URL", "postgres://u:plantedsecret0002@h/d"),
        ("AWS_SECRET_ACCESS_KEY", "plantedsecret0003"),
        ("AUTOPILOT_TOKEN", "plantedsecret0004"),
    ];
    for (name, value) in planted {
        stage.set(name, value);
    }
    stage.run(&TASK).expect(0);
    for (name, value) in planted {
        let found: Vec<_> = files_with(stage.folder(), value);
        assert_eq!(found, [""; 0].map(std::path::PathBuf::from), "{name}");
        let asked = server.requests().iter().any(|r| r.body.to_string().contains(value));
        assert!(!asked, "{name} was sent to the model");
    }
    // The agent's own key is its to use, and is written down nowhere.
    let (_, key) = agents::claude_home(&stage.folder().join("home"), &server)
        .unwrap()
        .into_iter()
        .find(|(name, _)| name == "ANTHROPIC_API_KEY")
        .unwrap();
    // But in what it keeps of its own session.
    let ours = |path: &Path| !text(path).contains("/home/") && !text(path).contains("/sessions/");
    let found: Vec<_> = files_with(stage.folder(), &key).into_iter().filter(|p| ours(p)).collect();
    assert_eq!(found, [""; 0].map(std::path::PathBuf::from), "the key");
}

#[test]
fn a_person_speaks_to_real_claude_while_its_tool_runs() {
    let gate =
        "while [ ! -e go ]; do timeout 1 tail -f /dev/null; done; rm go; echo done >> app.txt";
    let rule = Rule::when(BUILDER)
        .unless("PLEASE ALSO")
        .turns([Turn::call(Call::shell(gate)), Turn::say(&summary("app.txt"))]);
    let told = Rule::when("PLEASE ALSO")
        .turns([Turn::call(Call::shell("echo told >> app.txt")), Turn::say(&summary("app.txt"))]);
    let script = reviews(Script::new().rule(told).rule(rule));
    let Real { stage, server: _server } = real(script, "");
    let run = stage.start(&TASK);
    stage.wait_until("its tool runs", |stage| {
        stage.texts_of("build/events.jsonl").contains("\"name\":\"Bash\"")
    });
    stage.run(&["attach", "say-done", "-m", "PLEASE ALSO say told"]).expect(0);
    let slot = files_with(&stage.state(), "start")
        .into_iter()
        .find(|path| path.ends_with("app.txt") && text(path).contains("/slots/"))
        .unwrap();
    fs::write(slot.with_file_name("go"), "").unwrap();
    run.wait().expect(0);
    assert_eq!(
        stage.git(&["show", "autopilot/say-done:app.txt"]).trim(),
        "start\ndone\ntold",
        "{}",
        stage.texts_of("build/events.jsonl")
    );
}

#[test]
fn agents_at_another_address_are_given_its_key_and_none_of_the_users_own() {
    let script = reviews(Script::new().rule(builds_the_task()));
    let Real { mut stage, server } = real(script, "");
    let at = |config: &str, mode: &str, base_url: &str| {
        let (old, new) = (
            format!("mode: {mode},"),
            format!("mode: {mode}, base_url: '{base_url}', api_key_env: GATE_KEY,"),
        );
        assert!(config.contains(&old), "{config}");
        config.replace(&old, &new)
    };
    let config = stage.read(".autopilot/config.yml");
    let config = at(&config, "claude_code_cli", &server.url());
    let config = at(&config, "codex_cli", &server.url_v1());
    stage.write(".autopilot/config.yml", &config);
    // The user's own way leads nowhere.
    stage.set("ANTHROPIC_BASE_URL", "http://127.0.0.1:9");
    let codex = stage.folder().join("home/.codex/config.toml");
    fs::write(&codex, "check_for_update_on_startup = false\n[analytics]\nenabled = false\n")
        .unwrap();
    stage.run(&TASK).expect(78).says(&["GATE_KEY", "not set"]);
    assert_eq!(server.requests().len(), 0);
    stage.set("GATE_KEY", "the-gate-is-open");
    stage.run(&TASK).expect(0).says(&["DONE"]);
    let keys = |request: &Request| {
        let sent = ["x-api-key", "authorization"].map(|name| request.header(name));
        sent.into_iter().flatten().map(str::to_owned).collect::<Vec<_>>()
    };
    let requests = server.requests();
    let asked = requests.iter().filter(|request| request.method == "POST").collect::<Vec<_>>();
    for path in ["/messages", "/responses"] {
        assert!(asked.iter().any(|request| request.path.contains(path)), "{path}");
    }
    for request in asked {
        let keys = keys(request);
        let is_gate = |key: &String| key.ends_with("the-gate-is-open");
        assert!(!keys.is_empty() && keys.iter().all(is_gate), "{} {keys:?}", request.path);
    }
}
