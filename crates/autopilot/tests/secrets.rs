//! Secrets planted in the environment, in copied files and in output: none is written anywhere.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, Stage, files_with};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const CANARY: &str = "cnry-5up3r-s3cr3t-value-91x";
const COPIED: &str = "cnry-from-dotenv-77aa21";

/// Files that hold the text, but for where it was planted and where a copy was asked for.
fn found(stage: &Stage, canary: &str) -> Vec<PathBuf> {
    let planted = |path: &PathBuf| path.ends_with(".env") || path.ends_with("agents.yml");
    files_with(stage.folder(), canary).into_iter().filter(|path| !planted(path)).collect()
}

#[test]
fn a_secret_of_the_environment_is_nowhere_to_be_read() {
    let mut stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    stage.set("SERVICE_API_KEY", CANARY);
    let leaks = "
- step: build
  do:
    - run: \"echo the key is $SERVICE_API_KEY; echo again $SERVICE_API_KEY >&2\"
    - run: \"printf %s \\\"$SERVICE_API_KEY\\\" | cut -c1-9 | tr -d '\\\\n'; sleep 0.2; printf %s \\\"$SERVICE_API_KEY\\\" | cut -c10-\"
    - say: I found cnry-5up3r-s3cr3t-value-91x
    - append: { app.txt: \"done\\n\" }
    - answer: { changed_files: [app.txt], notes: used cnry-5up3r-s3cr3t-value-91x }
- step: review
  do: [{ answer: { verdict: APPROVE, summary: the key cnry-5up3r-s3cr3t-value-91x is fine, issues: [] } }]
";
    stage.agents(&[leaks, APPROVES]);
    let config = stage.read(".autopilot/config.yml");
    let passes = config.replace(
        "builder: { mode: script,",
        "builder: { mode: script, env_pass: [SERVICE_API_KEY],",
    );
    stage.write(".autopilot/config.yml", &passes);
    let ended = stage.run(&["run", "tasks/say-done.md", "--verbose"]).expect(0);
    assert!(!ended.said().contains(CANARY), "{}", ended.said());
    assert!(ended.said().contains("I found"), "the word around it is told: {}", ended.said());
    assert_eq!(found(&stage, CANARY), Vec::<PathBuf>::new());
}

#[test]
fn a_secret_given_to_the_tests_is_withheld() {
    let mut stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    stage.set("SERVICE_API_KEY", CANARY);
    stage.config("commands: { tests: 'echo key=$SERVICE_API_KEY; env; sh test.sh' }\n");
    stage.run_task().expect(0);
    let logs = stage.texts_of("logs/validation");
    assert!(logs.lines().any(|line| line == "key="), "not even redacted: {logs}");
    assert_eq!(found(&stage, CANARY), Vec::<PathBuf>::new());
}

#[test]
fn values_of_copied_files_are_redacted_in_logs_prompts_and_the_journal() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    stage.write(".gitignore", ".env\n");
    stage.commit("an ignored file");
    stage.write(".env", &format!("# local\nexport TOKEN=\"{COPIED}\"\n"));
    stage.config("commands: { tests: 'cat .env; sh test.sh' }\nworktrees: { copy: [.env] }\n");
    let reads = "
- step: build
  do: [{ run: \"cat .env; echo broken >> app.txt\" }, { answer: { changed_files: [app.txt], notes: x } }]
- step: fix
  do:
    - run: cat .env
    - write: { app.txt: \"start\\ndone\\n\" }
    - answer: { changed_files: [app.txt], notes: x }
";
    stage.agents(&[reads, APPROVES]);
    let ended = stage.run(&["run", "tasks/say-done.md", "--verbose"]).expect(0);
    assert_eq!(stage.first_task()["iteration"], 2);
    assert!(!ended.said().contains(COPIED), "{}", ended.said());
    assert_eq!(found(&stage, COPIED), Vec::<PathBuf>::new());
}

#[test]
fn a_configured_pattern_is_redacted_too() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    stage.config("commands: { tests: 'echo Bearer abcdef123456; sh test.sh' }\n");
    stage.run_task().expect(0);
    let hits: Vec<PathBuf> =
        found(&stage, "abcdef123456").into_iter().filter(|p| !p.ends_with("config.yml")).collect();
    // The command itself is the user's own configuration and is pinned to the run.
    let logs: Vec<&PathBuf> =
        hits.iter().filter(|p| p.to_string_lossy().contains("/logs/")).collect();
    assert!(logs.is_empty(), "{logs:?}");
}

#[test]
fn a_secret_in_the_reason_of_a_failure_is_nowhere_to_be_read() {
    let mut stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    stage.set("SERVICE_API_KEY", CANARY);
    let fails = "
- step: build
  attempt: 1
  do: [{ fail: { kind: broke, why: the key cnry-5up3r-s3cr3t-value-91x is wrong } }, { exit: 1 }]
- step: build
  do: [{ run: \"echo rejected cnry-5up3r-s3cr3t-value-91x >&2\" }, { session: s-cnry-5up3r-s3cr3t-value-91x }, { exit: 1 }]
";
    stage.agents(&[fails]);
    let ended = stage.run_task().expect(10);
    assert!(!ended.said().contains(CANARY), "{}", ended.said());
    assert_eq!(found(&stage, CANARY), Vec::<PathBuf>::new());
}

/// Directories that hold what was asked and answered.
fn private(stage: &Stage) -> Vec<PathBuf> {
    let state = fs::read_dir(stage.state()).unwrap().map(|entry| entry.unwrap().path());
    let views = ["artifacts", "logs", "uat"].map(|name| stage.path(".autopilot").join(name));
    let found: Vec<PathBuf> = state.chain(views).collect();
    assert_eq!(found.len(), 4, "{found:?}");
    found
}

#[test]
fn what_was_asked_and_answered_is_its_owners_alone_and_an_open_directory_is_closed() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    stage.run_task().expect(0);
    let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for path in private(&stage) {
        assert_eq!(mode(&path), 0o700, "{}", path.display());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let above = [stage.path(".autopilot"), stage.state()];
    for path in &above {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    stage.run_task().expect(0);
    for path in private(&stage) {
        assert_eq!(mode(&path), 0o700, "{}", path.display());
    }
    // Those above are shared, or of the person's own choice.
    assert_eq!(above.each_ref().map(mode), [0o755, 0o755]);
}
