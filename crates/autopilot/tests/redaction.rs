//! Redaction hides secrets and nothing else: answers, bills and views stay readable.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::stage::{APPROVES, BUILDS, Stage, files, files_with};
use serde_json::Value;
use std::path::PathBuf;

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_autopilot"))
}

fn approves_with(summary: &str) -> String {
    let answer = format!("{{ verdict: APPROVE, summary: {summary}, issues: [] }}");
    format!("\n- step: review\n  do: [{{ answer: {answer} }}]\n")
}

/// Every file of that name's end below `.autopilot` is JSON.
#[track_caller]
fn json_of(stage: &Stage, part: &str) -> Value {
    let views = stage.views(part);
    let text = std::fs::read_to_string(views.last().unwrap()).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn an_answer_that_a_pattern_matches_is_still_an_answer() {
    let stage = stage();
    stage.agents(&[BUILDS, &approves_with("Checks the bearer token"), APPROVES]);
    let ended = stage.run(&["run", "tasks/say-done.md", "--verbose"]).expect(0);
    assert!(!ended.said().contains("bearer token"), "{}", ended.said());
    let review = json_of(&stage, "_review.json");
    assert_eq!(
        (&review["verdict"], &review["summary"]),
        (&"APPROVE".into(), &"Checks the [redacted]".into())
    );
    assert_eq!(files_with(&stage.path(".autopilot"), "bearer token"), Vec::<PathBuf>::new());
}

#[test]
fn a_request_for_changes_is_given_to_the_builder_without_what_is_hidden() {
    let stage = stage();
    let asks = "
- step: review
  iteration: 1
  do:
    - answer:
        verdict: REQUEST_CHANGES
        summary: The bearer token
        issues: [{ severity: blocker, message: \"the bearer abc123 fails the test\", fix: \"none\" }]
";
    let second = "- step: fix\n  do: [{ append: { app.txt: \"more\\n\" } }, { answer: { changed_files: [app.txt], notes: x } }]\n";
    stage.agents(&[second, BUILDS, asks, APPROVES]);
    let ended = stage.run(&["run", "tasks/say-done.md"]).expect(0);
    assert_eq!(stage.first_task()["iteration"], 2, "{}", ended.said());
    let prompts = stage.texts_of("-fix/");
    assert!(prompts.contains("the [redacted] fails the test"), "{prompts}");
    assert_eq!(files_with(stage.folder(), "abc123"), [stage.path("agents.yml")]);
}

#[test]
fn the_bill_of_a_result_that_a_pattern_matches_is_kept() {
    let stage = stage();
    let session = "5e551000-0000-4000-8000-0000000000a1";
    let script = format!(
        r#"#!/bin/sh
read hello; read prompt
echo done >> app.txt
echo '{{"type":"system","subtype":"init","session_id":"{session}","model":"m"}}'
echo '{{"type":"assistant","message":{{"id":"m1","role":"assistant","content":[{{"type":"text","text":"a bearer token"}}]}},"session_id":"{session}"}}'
echo '{{"type":"result","subtype":"success","is_error":false,"session_id":"{session}","num_turns":1,"total_cost_usd":0.5,"usage":{{"input_tokens":120,"output_tokens":30}},"terminal_reason":"completed","stop_reason":"end_turn","result":"{{\"changed_files\":[\"app.txt\"],\"notes\":\"the bearer token\"}}"}}'
"#
    );
    stage.write_program("fake-claude", &script);
    let config = stage.read(".autopilot/config.yml");
    let ours = "builder: { mode: script, script: agents.yml }";
    let theirs = "builder: { mode: claude_code_cli, executable: ./fake-claude }";
    assert!(config.contains(ours));
    stage.write(".autopilot/config.yml", &config.replace(ours, theirs));
    let ended = stage.run(&["run", "tasks/say-done.md", "--verbose"]).expect(0);
    assert!(!ended.said().contains("bearer token"), "{}", ended.said());
    let cost = stage.first_task()["cost_usd"].as_f64().unwrap();
    assert!((0.5..0.52).contains(&cost), "{cost}");
    assert_eq!(json_of(&stage, "_summary.json")["notes"], "the [redacted]");
}

#[test]
fn a_title_that_a_pattern_matches_leaves_every_view_readable_and_alike() {
    let stage = stage();
    stage.task("say-done", "Accept bearer tokens");
    let ended = stage.run(&["run", "tasks/say-done.md", "--json"]).expect(0);
    let text = stage.read(".autopilot/state.json");
    let state: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!(state["title"], "Accept [redacted]");
    let account: Value = serde_json::from_str(&ended.out).unwrap();
    let shown = stage.run(&["show", "--json"]).expect(0);
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    for told in [&stage.status(), &account, &shown["run"]] {
        assert_eq!(told["title"], state["title"]);
        assert_eq!(told["tasks"][0]["title"], state["tasks"][0]["title"]);
    }
    for args in [&["status"][..], &["show"], &["runs"], &["runs", "--json"]] {
        let said = stage.run(args).expect(0).out;
        assert!(said.contains("Accept [redacted]") && !said.contains("bearer"), "{said}");
    }
}

#[test]
fn a_setting_in_a_copied_file_is_no_secret_and_a_token_beside_it_is_one() {
    const TOKEN: &str = "cnry-token-of-dotenv-4411";
    let stage = stage();
    stage.write(".gitignore", ".env\n");
    stage.commit("an ignored file");
    stage.write(".env", &format!("APP_MODE=APPROVE\nNODE_ENV=production\nAPI_TOKEN={TOKEN}\n"));
    stage.config(
        "commands: { tests: 'cat .env; sh test.sh', uat: cat .env }\nworktrees: { copy: [.env] }\n",
    );
    let leaks = format!(
        "
- step: build
  do:
    - run: cat .env
    - say: the token is {TOKEN}
    - session: s-{TOKEN}
    - append: {{ app.txt: \"done\\n\" }}
    - answer: {{ changed_files: [app.txt], notes: the token is {TOKEN} in production }}
"
    );
    let agents = [&leaks, &approves_with(&format!("it uses {TOKEN}")), APPROVES].concat();
    stage.agents(&[&agents]);
    let ended = stage.run(&["run", "tasks/say-done.md", "--verbose"]).expect(0);
    assert!(!ended.said().contains(TOKEN), "{}", ended.said());
    assert!(ended.said().contains("APP_MODE=APPROVE"), "{}", ended.said());
    let notes = json_of(&stage, "_summary.json")["notes"].clone();
    assert_eq!(notes, "the token is [redacted] in production");
    let planted = |path: &PathBuf| path.ends_with(".env") || path.ends_with("agents.yml");
    let hits: Vec<PathBuf> =
        files_with(stage.folder(), TOKEN).into_iter().filter(|path| !planted(path)).collect();
    assert_eq!(hits, Vec::<PathBuf>::new());
}

#[test]
fn a_password_in_a_remote_url_stays_in_the_users_own_configuration() {
    const PASSWORD: &str = "cnry-pw-of-the-remote-73";
    let stage = stage();
    stage.config("commands: { tests: sh test.sh }\nloop: { retries: { push: 0 } }\n");
    let url = format!("http://ada:{PASSWORD}@127.0.0.1:9/x.git");
    stage.git(&["remote", "add", "origin", &url]);
    let config = stage.path(".git/config").display().to_string();
    let looks = format!(
        "
- step: build
  do:
    - run: \"git remote -v; cat .git/config {config}\"
    - append: {{ app.txt: \"done\\n\" }}
    - answer: {{ changed_files: [app.txt], notes: pushes to {url} }}
"
    );
    stage.agents(&[&looks, APPROVES]);
    let ended = stage.run(&["run", "tasks/say-done.md", "--push", "--verbose"]).expect(12);
    assert!(!ended.said().contains(PASSWORD), "{}", ended.said());
    assert!(ended.said().contains("origin\thttp://127.0.0.1:9/x.git"), "{}", ended.said());
    let theirs = [stage.path(".git/config"), stage.path("agents.yml")];
    assert_eq!(files_with(stage.folder(), PASSWORD), theirs);
    let slots: Vec<PathBuf> =
        files(&stage.state()).into_iter().filter(|path| path.ends_with(".git/config")).collect();
    assert!(!slots.is_empty(), "the slots were looked at");
}
