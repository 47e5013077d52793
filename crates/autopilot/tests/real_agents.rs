//! The real `claude` and `codex` by the real binary, against the scripted model, cut off from the
//! network: what their own tools do to files, and what is made of their ends.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::agents;
use autopilot_testkit::model::{Call, Rule, Script, Server, Turn};
use autopilot_testkit::netns;
use autopilot_testkit::plan::{PLAN_MD, RUN, branch, merged_once_each, plan, task};
use autopilot_testkit::stage::Stage;
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
const BUILDER: &str = "You implement one task";
const REVIEWER: &str = "You review one change";
const ACCEPTANCE: &str = "You write user acceptance test cases";
const PLANNER: &str = "You turn a plan into tasks";

fn summary(file: &str) -> String {
    json!({ "changed_files": [file], "tests_ran": false, "tests_passed": false, "notes": "written" })
        .to_string()
}

/// Approves everything, and writes acceptance cases.
fn reviews(script: Script) -> Script {
    let verdict = json!({ "verdict": "APPROVE", "summary": "fine", "issues": [] });
    script
        .when(REVIEWER, [Turn::answer(verdict)])
        .when(ACCEPTANCE, [Turn::say("# Cases\n\n## 1. It is there\n\nLook at it.\n")])
}

/// A builder that writes the file of its task with its own tool.
fn builds(script: Script, name: &str) -> Script {
    let file = format!("{name}.txt");
    let write = Turn::call(Call::write(&file, &format!("{name}\n"))).using(1000, 500, 80);
    let rule = Rule::when(BUILDER).and(&format!("Write {name}"));
    script.rule(rule.turns([write, Turn::say(&summary(&file)).using(1200, 900, 60)]))
}

struct Real {
    stage: Stage,
    server: Server,
}

/// A stage whose builder is `claude` and whose planner and reviewer are `codex`.
fn real(script: Script, more: &str) -> Real {
    netns::enter();
    let server = Server::start(script).unwrap();
    let mut stage = Stage::new(BINARY);
    let home = stage.folder().join("home");
    let claude = agents::claude_home(&home, &server).unwrap();
    let codex = agents::codex_home(&home, &server).unwrap();
    for (name, value) in claude.into_iter().chain(codex) {
        if name != "TMPDIR" {
            stage.set(&name, &value);
        }
    }
    let (claude, codex) = (agents::claude(), agents::codex());
    let (claude, codex) = (claude.display(), codex.display());
    stage.write(
        ".autopilot/config.yml",
        &format!(
            "repo: {{ base_branch: main }}\ncommands: {{ tests: sh test.sh }}\n\
             builder: {{ mode: claude_code_cli, executable: {claude} }}\n\
             reviewer: {{ mode: codex_cli, executable: {codex}, model: {model} }}\n\
             planner: {{ mode: codex_cli, executable: {codex}, model: {model} }}\n{more}",
            model = agents::CODEX_MODEL,
        ),
    );
    Real { stage, server }
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
