//! Commands in a repository where nothing has run yet, by the real binary.
#![allow(clippy::unwrap_used, reason = "a test file")]

#[path = "cli/repo.rs"]
mod repo;

use repo::Repo;
use serde_json::{Value, json};

const CARGO: (&str, &str) = ("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\n");

#[test]
fn init_sets_a_repository_up_and_says_what_it_found() {
    let repo = Repo::with("main", &[CARGO]);
    let said = repo.autopilot(&["init"]).ok();
    for part in
        ["wrote    .autopilot/config.yml", "cargo test", "base     main", "`claude` was not found"]
    {
        assert!(said.contains(part), "{part} not in:\n{said}");
    }
    for folder in ["logs", "uat", "plan", "artifacts"] {
        assert!(repo.dir.join(".autopilot").join(folder).is_dir(), "{folder}");
    }
    for schema in ["review_schema.json", "plan_schema.json"] {
        let text = repo.read(&format!(".autopilot/{schema}"));
        assert!(serde_json::from_str::<Value>(&text).unwrap().is_object());
    }
    assert!(repo.read("tasks/TEMPLATE.md").starts_with("# Task:"));
    assert!(repo.read("AGENTS.md").contains("`cargo test"));
    let tracked = repo.git(&["status", "--short", "-uall", "--", ".autopilot"]);
    assert_eq!(tracked.lines().count(), 4, "config, schemas and the ignore file: {tracked}");
}

#[test]
fn a_second_init_changes_nothing_and_says_so() {
    let repo = Repo::with("main", &[CARGO, ("AGENTS.md", "mine\n")]);
    repo.autopilot(&["init"]).ok();
    repo.write(".autopilot/config.yml", "commands: { tests: \"true\" }\n");
    let before = repo.picture();
    let said = repo.autopilot(&["init"]).ok();
    assert_eq!(repo.picture(), before);
    assert!(said.contains("kept     .autopilot/config.yml") && !said.contains("wrote"), "{said}");
    assert_eq!(repo.read("AGENTS.md"), "mine\n");
}

#[test]
fn init_without_a_test_command_succeeds_and_names_the_gap() {
    let repo = Repo::with("main", &[]);
    let said = repo.autopilot(&["init"]).ok();
    assert!(said.contains("fill in `commands.tests`"), "{said}");
    assert!(said.contains("config.yml: line "), "the fault has its line: {said}");
    let given = Repo::with("main", &[]);
    let object = given.autopilot(&["init", "--json", "--tests", "make check"]).json();
    assert_eq!(object["commands"]["tests"]["value"], "make check");
    assert_eq!(object["config_fault"], Value::Null);
    assert!(given.read(".autopilot/config.yml").contains("\"make check\""));
}

#[test]
fn the_base_branch_is_main_or_master_or_where_the_user_is() {
    for (branch, wanted) in [("master", "master"), ("trunk", "trunk"), ("main", "main")] {
        let repo = Repo::with(branch, &[]);
        let object = repo.autopilot(&["init", "--json"]).json();
        assert_eq!(object["base_branch"], wanted);
        assert!(repo.read(".autopilot/config.yml").contains(&format!("base_branch: {wanted}\n")));
    }
    let repo = Repo::with("main", &[]);
    repo.git(&["switch", "-q", "-c", "feature"]);
    assert_eq!(repo.autopilot(&["init", "--json"]).json()["base_branch"], "main");
}

#[test]
fn init_writes_nothing_where_there_is_no_repository_to_work_in() {
    let bare = Repo::nothing();
    bare.git(&["init", "-q", "--bare"]);
    for (repo, reason) in [
        (Repo::nothing(), "not inside a git repository"),
        (Repo::unborn("main"), "no commits yet"),
        (bare, "bare"),
    ] {
        let before = repo.picture();
        let said = repo.autopilot(&["init"]).refused(64);
        assert!(said.contains(reason), "{reason}: {said}");
        assert_eq!(repo.picture(), before);
    }
}

#[test]
fn init_from_below_sets_up_the_top_level() {
    let repo = Repo::with("main", &[("a/b/c.txt", "")]);
    repo.autopilot_in(&repo.dir.join("a/b"), &["init"]).ok();
    assert!(repo.dir.join(".autopilot/config.yml").is_file());
    assert!(!repo.dir.join("a/b/.autopilot").exists());
}

#[test]
fn status_without_a_run_is_no_error() {
    let repo = Repo::with("main", &[]);
    assert!(repo.autopilot(&["status"]).ok().contains("no run yet"));
    let object = repo.autopilot(&["status", "--json"]).json();
    assert_eq!((&object["current_state"], &object["cost_usd"]), (&Value::Null, &json!(0.0)));
    assert_eq!(repo.autopilot(&["runs", "--json"]).json(), json!([]));
    repo.autopilot(&["status", "--watch"]).ok();
}

#[test]
fn where_no_run_was_begun_lists_are_empty_and_what_is_about_a_run_is_a_usage_error() {
    let repo = Repo::with("main", &[]);
    // Lists, sums, and asking for what already is.
    for args in [
        &["status"][..],
        &["runs"],
        &["runs", "--stats"],
        &["cost"],
        &["logs"],
        &["recover"],
        &["gc"],
        &["stop"],
        &["stop", "--now"],
        &["pause"],
        &["unpause"],
    ] {
        let said = repo.autopilot(args);
        assert_eq!(said.code, Some(0), "{args:?}: {}{}", said.out, said.err);
        let json = repo.autopilot(&[args, &["--json"]].concat());
        assert_eq!(json.code, Some(0), "{args:?} --json: {}{}", json.out, json.err);
        assert!(serde_json::from_str::<Value>(&json.out).is_ok(), "{args:?}: {}", json.out);
    }
    // What needs a run or a task, by name or not.
    for args in [
        &["show"][..],
        &["show", "a"],
        &["logs", "a"],
        &["sessions"],
        &["sessions", "a"],
        &["attach", "a"],
        &["attach", "run"],
        &["diff"],
        &["diff", "a"],
        &["graph"],
        &["replay"],
        &["undo"],
        &["retry"],
        &["retry", "a"],
        &["skip", "a"],
        &["approve"],
        &["reject", "no"],
        &["resume"],
        &["resume", "abcd", "--prompt", "go on"],
    ] {
        for json in [&[][..], &["--json"]] {
            let said = repo.autopilot(&[args, json].concat());
            let text = format!("{args:?} {json:?}: {}{}", said.out, said.err);
            assert_eq!((said.code, said.out.as_str()), (Some(64), ""), "{text}");
            assert!(said.err.contains("help: "), "no next step: {text}");
        }
    }
    assert!(repo.autopilot(&["--help"]).ok().contains("In a repository without runs"));
}

#[test]
fn objects_that_do_not_exist_are_usage_errors() {
    let repo = Repo::with("main", &[]);
    for args in [
        &["show", "nope"][..],
        &["diff", "nope"],
        &["logs", "nope"],
        &["undo", "nope"],
        &["recover", "nope/1.0"],
        &["recover", "--journal"],
        &["bogus"],
        &["completions", "tcsh-like"],
    ] {
        repo.autopilot(args).refused(64);
    }
    let outside = Repo::nothing();
    for args in [&["status"][..], &["runs"], &["logs"], &["gc"], &["recover"]] {
        outside.autopilot(args).refused(64);
    }
}

#[test]
fn doctor_names_what_is_missing_and_how_to_get_it() {
    let repo = Repo::with("main", &[]);
    let said = repo.autopilot(&["doctor", "--json"]);
    assert_eq!(said.code, Some(78));
    let object: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(object["ok"], false);
    let of = |name: &str| {
        let checks = object["checks"].as_array().unwrap();
        checks.iter().find(|check| check["check"] == name).unwrap().clone()
    };
    assert_eq!(of("git")["level"], "ok");
    assert_eq!(of("repository")["level"], "ok");
    assert_eq!(of("configuration")["level"], "missing");
    assert!(of("configuration")["text"].as_str().unwrap().contains("autopilot init"));
    let sandbox = of("sandbox")["text"].as_str().unwrap().to_owned();
    assert!(sandbox.contains("Landlock") && sandbox.contains("and namespaces"), "{sandbox}");
}

#[test]
fn doctor_asks_agents_for_their_version_and_does_not_wait_for_a_silent_one() {
    use std::os::unix::fs::PermissionsExt;
    let repo = Repo::with("main", &[]);
    for (name, line) in [("good", "echo 2.2.3 good"), ("mute", "sleep 60")] {
        repo.write(name, &format!("#!/bin/sh\n{line}\n"));
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(repo.dir.join(name), mode).unwrap();
    }
    repo.write(
        ".autopilot/config.yml",
        "commands: { tests: \"true\" }\nbuilder: { mode: claude_code_cli, executable: ./good }\n\
         reviewer: { mode: codex_cli, executable: ./mute }\n",
    );
    let began = std::time::Instant::now();
    let said = repo.autopilot(&["doctor"]).ok();
    assert!(began.elapsed().as_secs() < 30, "it waited for the silent one");
    assert!(said.contains("2.2.3 good"), "{said}");
    assert!(said.contains("no answer within 5 s"), "{said}");
}

#[test]
fn doctor_looks_at_those_who_stand_in_and_at_the_keys_they_need() {
    let repo = Repo::with("main", &[]);
    repo.write(
        ".autopilot/config.yml",
        "commands: { tests: \"true\" }\n\
         builder: { mode: command, command: sh, fallback: [{ command: nobody-has-this }] }\n\
         reviewer: { mode: claude_code_cli, executable: sh, base_url: 'https://gate.example', \
         api_key_env: NOT_SET_ANYWHERE }\n",
    );
    let said = repo.autopilot(&["doctor", "--json"]);
    assert_eq!(said.code, Some(78));
    let object: Value = serde_json::from_str(&said.out).unwrap();
    let of = |name: &str| {
        let checks = object["checks"].as_array().unwrap();
        checks.iter().find(|check| check["check"] == name).unwrap().clone()
    };
    assert_eq!(of("builder")["level"], "ok");
    let missing = [("builder.fallback[0]", "nobody-has-this"), ("reviewer", "NOT_SET_ANYWHERE")];
    for (name, word) in missing {
        let found = of(name);
        assert_eq!(found["level"], "missing", "{found}");
        assert!(found["text"].as_str().unwrap().contains(word), "{found}");
    }
}

#[test]
fn completions_are_scripts_of_the_shell() {
    let repo = Repo::nothing();
    for (shell, part) in
        [("bash", "complete -F"), ("zsh", "#compdef autopilot"), ("fish", "complete -c autopilot")]
    {
        let script = repo.autopilot(&["completions", shell]).ok();
        assert!(script.contains(part) && script.contains("recover"), "{shell}");
    }
}
