//! The first hour of a new user: agents that are there or not, commands that can't be run, and a
//! doctor that only looks.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, BUILDS, Stage};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
/// The programs of the machine that a stage of its own PATH keeps.
const TOOLS: [&str; 12] =
    ["sh", "git", "cat", "grep", "env", "true", "sleep", "touch", "mkdir", "ls", "rm", "echo"];
const CLAUDE_LOGIN: &str = r#"{"claudeAiOauth":{"accessToken":"t","refreshToken":"r"}}"#;

/// A stage whose PATH has only the tools of a plain machine, and what a test adds.
fn machine() -> Stage {
    let mut stage = Stage::new(BINARY);
    let bin = stage.folder().join("bin");
    fs::create_dir(&bin).unwrap();
    let path = std::env::var("PATH").unwrap();
    for tool in TOOLS {
        let found = path.split(':').map(|dir| PathBuf::from(dir).join(tool)).find(|p| p.is_file());
        symlink(found.unwrap(), bin.join(tool)).unwrap();
    }
    stage.set("PATH", bin.to_str().unwrap());
    stage
}

/// A program of a vendor that says this version and writes to its home whenever it is called.
fn install(stage: &Stage, name: &str, version: &str) {
    let file = stage.folder().join("bin").join(name);
    let text = format!(
        "#!/bin/sh\nmkdir -p \"$HOME/.cache/{name}\" 2>/dev/null\ntouch \"$HOME/.{name}-was-here\" \
         2>/dev/null\necho '{version}'\n"
    );
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

fn at_home(stage: &Stage, name: &str, text: &str) {
    let path = stage.folder().join("home").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn modes(stage: &Stage, args: &[&str]) -> Value {
    fs::remove_dir_all(stage.path(".autopilot")).unwrap();
    let said = stage.run(&[&["init", "--json"], args].concat()).expect(0);
    let told: Value = serde_json::from_str(&said.out).unwrap();
    let text = stage.read(".autopilot/config.yml");
    for role in ["builder", "reviewer", "planner"] {
        let line = format!("{role}:\n  mode: {}\n", told["agents"][role].as_str().unwrap());
        assert!(text.contains(&line), "{line} in\n{text}");
    }
    told["agents"].clone()
}

fn all(mode: &str) -> Value {
    json!({ "builder": mode, "reviewer": mode, "planner": mode })
}

#[test]
fn init_takes_the_agents_that_are_installed_and_logged_in() {
    let stage = machine();
    let usual =
        json!({ "builder": "claude_code_cli", "reviewer": "codex_cli", "planner": "codex_cli" });
    assert_eq!(modes(&stage, &[]), all("claude_code_cli"), "without any, one is to be installed");
    fs::remove_dir_all(stage.path(".autopilot")).unwrap();
    stage.run(&["init"]).expect(0).says(&["no agent was found", "claude_code_cli for all roles"]);
    install(&stage, "codex", "codex-cli 0.166.0");
    assert_eq!(modes(&stage, &[]), all("codex_cli"), "one alone takes all roles");
    install(&stage, "claude", "2.1.325 (Claude Code)");
    assert_eq!(modes(&stage, &[]), usual, "neither is logged in");
    at_home(&stage, ".claude/.credentials.json", CLAUDE_LOGIN);
    assert_eq!(modes(&stage, &[]), all("claude_code_cli"), "codex is not logged in");
    fs::remove_dir_all(stage.path(".autopilot")).unwrap();
    stage
        .run(&["init"])
        .expect(0)
        .says(&["claude_code_cli for all roles (codex is not logged in)"]);
    at_home(&stage, ".codex/auth.json", r#"{"OPENAI_API_KEY":"k"}"#);
    assert_eq!(modes(&stage, &[]), usual);
    assert_eq!(modes(&stage, &["--agent", "codex"]), all("codex_cli"), "a person chooses");
    stage.run(&["init", "--agent", "claude"]).expect(0).says(&["ignored  --agent"]);
    assert!(stage.read(".autopilot/config.yml").contains("builder:\n  mode: codex_cli\n"));
    stage.run(&["init", "--agent", "nobody"]).expect(64).says(&["claude, codex"]);
}

#[test]
fn a_goal_without_a_configuration_asks_the_agent_that_is_there() {
    let stage = machine();
    fs::remove_dir_all(stage.path(".autopilot")).unwrap();
    stage.write("Makefile", "test:\n\ttrue\n");
    stage.commit("a project");
    install(&stage, "codex", "codex-cli 0.166.0");
    at_home(&stage, ".codex/auth.json", r#"{"OPENAI_API_KEY":"k"}"#);
    let said = stage.run(&["goal", "Say done", "--dry-run"]).expect(0);
    let said = said
        .says(&["no .autopilot/config.yml: codex_cli for all roles", "claude is not installed"]);
    assert!(said.said().contains("make test"), "{}", said.said());
    assert!(!stage.has(".autopilot"), "nothing is written down");
    // With no agent at all it says which is missing; other flows need a configuration.
    fs::remove_file(stage.folder().join("bin/codex")).unwrap();
    stage.run(&["goal", "Say done", "--dry-run"]).expect(78).says(&["`claude`", "install it"]);
    stage.run_task().expect(78).says(&["autopilot init"]);
}

fn checks(stage: &Stage, code: i32) -> Value {
    let said = stage.run(&["doctor", "--json"]).expect(code);
    let told: Value = serde_json::from_str(&said.out).unwrap();
    told["checks"].clone()
}

#[track_caller]
fn check(checks: &Value, name: &str, level: &str, texts: &[&str]) {
    let found = checks.as_array().unwrap().iter().find(|check| check["check"] == name);
    let found = found.cloned().unwrap_or_default();
    assert_eq!(found["level"], level, "{name}: {checks:#}");
    for text in texts {
        assert!(found["text"].as_str().unwrap().contains(text), "{text}: {found}");
    }
}

#[test]
fn doctor_tells_who_is_logged_in_and_what_is_too_old() {
    let mut stage = machine();
    install(&stage, "claude", "2.1.325 (Claude Code)");
    install(&stage, "codex", "codex-cli 0.9.0");
    stage.write(
        ".autopilot/config.yml",
        "commands: { tests: sh test.sh }\nrepo: { base_branch: main }\n",
    );
    let found = checks(&stage, 78);
    check(&found, "builder", "warning", &["2.1.325", "not logged in", "claude, then /login"]);
    check(&found, "reviewer", "missing", &["version 0.9.0 is too old", "install 0.132.0 or newer"]);
    at_home(&stage, ".claude/.credentials.json", CLAUDE_LOGIN);
    install(&stage, "codex", "codex-cli 0.166.0");
    stage.set("CODEX_API_KEY", "k");
    let found = checks(&stage, 0);
    check(&found, "builder", "ok", &["logged in (", ".claude/.credentials.json"]);
    check(&found, "reviewer", "ok", &["logged in (CODEX_API_KEY)"]);
}

#[test]
fn doctor_looks_for_the_programs_of_every_command() {
    let stage = machine();
    stage.config(
        "commands: { tests: 'grep -q x app.txt | pytest -q', lint: 'cd src && ruff check . || true', \
         format: './fmt.sh', uat: 'true && cat app.txt' }\n",
    );
    let found = checks(&stage, 78);
    check(&found, "commands.tests", "missing", &["`pytest` was not found in PATH", "install it"]);
    check(&found, "commands.format", "missing", &["`./fmt.sh` does not exist"]);
    check(&found, "commands.uat", "ok", &["`cat` ("]);
    assert!(!found.to_string().contains("ruff"), "a command that may be missing: {found}");
    stage.config("commands: { tests: ./made.sh }\nworktrees: { setup: 'touch made.sh' }\n");
    check(&checks(&stage, 0), "commands.tests", "warning", &["`worktrees.setup` has to make it"]);
}

#[test]
fn doctor_writes_nothing_anywhere() {
    let stage = machine();
    stage.run_task().expect(0);
    install(&stage, "claude", "2.1.325 (Claude Code)");
    install(&stage, "codex", "codex-cli 0.166.0");
    stage.write(".autopilot/config.yml", "commands: { tests: sh test.sh }\n");
    at_home(&stage, ".claude/.credentials.json", CLAUDE_LOGIN);
    let before = stage.digest_of_everything();

    stage.run(&["doctor"]).expect(0).says(&["logged in", "journal"]);
    stage.run(&["doctor", "--json"]).expect(0);
    assert_eq!(stage.digest_of_everything(), before);
}

#[test]
fn a_command_that_is_not_there_is_a_fault_of_the_configuration_and_never_excused() {
    let stage = Stage::new(BINARY);
    stage.write_program("there.sh", "#!/bin/sh\nexec no-such-tool-at-all\n");
    stage.write("plain.sh", "exit 0\n");
    stage.commit("scripts");
    for (command, words) in [
        ("no-such-tests -q", "no-such-tests"),
        ("./there.sh", "no-such-tool-at-all"),
        ("./plain.sh", "not executable"),
    ] {
        stage.config(&format!("commands: {{ tests: {command} }}\n"));
        for allowed in [&[][..], &["--allow-red-base"]] {
            let args = [&["run", "tasks/say-done.md"], allowed].concat();
            let said = stage.run(&args).expect(78);
            let said = said.says(&["`commands.tests` can't be run on the untouched base", words]);
            let said = said.says(&[command, "exit code 12", "autopilot doctor"]);
            assert!(!said.said().contains("run with --allow-red-base"), "{}", said.said());
        }
    }
    assert_eq!(stage.state_json()["current_state"], "FAILED");
    assert_eq!(stage.first_task()["state"], "TASK_INIT", "nobody was paid");
    stage.config("commands: { tests: sh test.sh }\nworktrees: { setup: no-such-setup }\n");
    stage.run_task().expect(78).says(&["`worktrees.setup` can't be run", "no-such-setup"]);
    // What was missing is installed, and the same run goes on.
    let stage = Stage::new(BINARY);
    let tool = stage.folder().join("tool.sh");
    stage.config(&format!("commands: {{ tests: '{}' }}\n", tool.display()));
    stage.run_task().expect(78);
    fs::write(&tool, "#!/bin/sh\nexit 0\n").unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    stage.run(&["retry"]).expect(0);
    assert_eq!(stage.run(&["runs", "--json"]).expect(0).out.matches("\"done\"").count(), 1);
}

#[test]
fn a_command_that_the_change_removed_is_the_task_s_failure_and_says_so() {
    let stage = Stage::new(BINARY);
    stage.write_program("check.sh", "#!/bin/sh\nexit 0\n");
    stage.commit("a script that checks");
    stage.write(
        "tasks/say-done.md",
        &stage.read("tasks/say-done.md").replace("- test.sh", "- check.sh"),
    );
    stage.config("commands: { tests: ./check.sh }\nloop: { max_iterations: 1 }\n");
    let removes = "
- step: build
  do: [{ run: \"rm check.sh; echo done >> app.txt\" }, { answer: { changed_files: [x], notes: x } }]
";
    stage.agents(&[removes, APPROVES]);
    for allowed in [&[][..], &["--allow-red-base"]] {
        let args = [&["run", "tasks/say-done.md", "--fresh"], allowed].concat();
        stage.run(&args).expect(11);
        let state = stage.texts_of("STATUS.md");
        assert!(state.contains("tests could not be run (not found)"), "{state}");
        assert!(state.contains("the change removed or broke something it needs"), "{state}");
    }
    stage.agents(&[BUILDS, APPROVES]);
    stage.run(&["run", "tasks/say-done.md", "--fresh"]).expect(0);
}

#[test]
fn changes_that_are_in_no_commit_are_told_to_be_left_out() {
    let stage = Stage::new(BINARY);
    let said = stage.run(&["run", "tasks/say-done.md", "--dry-run"]).expect(0).said();
    assert!(!said.contains("uncommitted"), "{said}");
    stage.write("app.txt", "start\nmine\n");
    let told = "uncommitted changes (1 file) are not in the run, which starts from main at";
    stage.run(&["run", "tasks/say-done.md", "--dry-run"]).expect(0).says(&[told]);
    stage.run_task().expect(0).says(&[told]);
    assert_eq!(stage.git(&["show", "autopilot/say-done:app.txt"]), "start\ndone");
    assert_eq!(stage.read("app.txt"), "start\nmine\n");
}
