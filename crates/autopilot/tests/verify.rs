//! The evidence of merged commits: notes that anybody can check, and that nobody's notes are lost for.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{Ended, Stage, text};
use serde_json::Value;
use std::path::{Path, PathBuf};

const NOTES: &str = "refs/notes/autopilot";

/// What is said to differ, and the change of a predicate.
type Forgery<'a> = (&'a str, &'a dyn Fn(&mut Value));

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_autopilot"))
}

/// A stage with a run that is done.
fn done() -> Stage {
    let stage = stage();
    stage.run_task().expect(0);
    stage
}

fn branch(stage: &Stage) -> String {
    stage.state_json()["branch_name"].as_str().unwrap().to_owned()
}

fn tip(stage: &Stage) -> String {
    stage.git(&["rev-parse", &branch(stage)])
}

fn note(stage: &Stage, commit: &str) -> Value {
    let text = stage.git(&["notes", "--ref", NOTES, "show", commit]);
    let mut values = serde_json::Deserializer::from_str(&text).into_iter();
    values.next().unwrap().unwrap()
}

/// Puts a text in the place of a note.
fn forge(stage: &Stage, commit: &str, text: &str) {
    stage.write("forged.json", text);
    stage.git(&["notes", "--ref", NOTES, "add", "-f", "-F", "forged.json", commit]);
}

fn verify(stage: &Stage, what: &[&str]) -> Ended {
    stage.run(&[&["verify"], what].concat())
}

/// A clone with the branches and notes, on a machine that knows of no run.
fn clone_of(stage: &Stage, more: &[&str]) -> PathBuf {
    let clone = stage.folder().join("clone");
    let url = format!("file://{}", text(stage.root()));
    let branch = branch(stage);
    let args = ["clone", "-q", "--branch", &branch];
    stage.git(&[&args, more, &[&url, &text(&clone)]].concat());
    let refs = format!("{NOTES}:{NOTES}");
    stage.git_in(&clone, &["fetch", "-q", "origin", &refs]);
    clone
}

fn verify_in(stage: &Stage, dir: &Path, what: &[&str]) -> Ended {
    stage.run(&[&["-C", &text(dir), "verify"], what].concat())
}

#[test]
fn the_merge_of_a_done_run_carries_its_evidence_and_the_evidence_holds() {
    let stage = done();
    let tip = tip(&stage);
    let told = note(&stage, &tip);
    let digest = &told["subject"][0]["digest"];
    assert_eq!(digest["gitCommit"], tip.as_str());
    assert_eq!(digest["gitTree"], stage.git(&["rev-parse", &format!("{tip}^{{tree}}")]).as_str());
    assert_eq!(told["_type"], "https://in-toto.io/Statement/v1");
    let predicate = &told["predicate"];
    let gate = &predicate["gates"][0];
    assert_eq!((&gate["kind"], &gate["outcome"]), (&"task".into(), &"passed".into()));
    assert_eq!(gate["tree"], digest["gitTree"]);
    let command = &gate["commands"][0];
    assert_eq!((&command["command"], &command["exitCode"]), (&"sh test.sh".into(), &0.into()));
    let log = stage.views("validation_tests").pop().unwrap();
    let sum = std::process::Command::new("sha256sum").arg(&log).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    assert!(sum.starts_with(command["logSha256"].as_str().unwrap()), "{sum}");
    assert_eq!(predicate["reviews"][0]["verdict"], "APPROVE");
    assert_eq!(predicate["reviews"][0]["agent"], "script");
    assert_eq!(predicate["acceptance"]["outcome"], "skipped");
    assert!(predicate["whole"]["proof"].is_string(), "{told}");

    let ended = verify(&stage, &[]).expect(0).says(&["the evidence holds, also by the journal"]);
    assert!(ended.out.contains("say-done"), "{}", ended.out);
    let run = predicate["run"]["id"].as_str().unwrap();
    for what in [run, &branch(&stage), &tip] {
        verify(&stage, &[what]).expect(0);
    }
    let ended = verify(&stage, &["--json"]).expect(0);
    let told: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((&told["verdict"], &told["against"]), (&"holds".into(), &"journal".into()));
    assert_eq!(told["commits"][0]["task"], "say-done");
}

#[test]
fn what_is_not_there_is_a_usage_error_and_a_commit_without_a_note_can_not_be_checked() {
    let stage = done();
    verify(&stage, &["no-such-thing"]).expect(64);
    verify(&stage, &["main"]).expect(2).says(&["no note"]);
    stage.git(&["notes", "--ref", NOTES, "remove", &tip(&stage)]);
    verify(&stage, &[]).expect(2).says(&["no note"]);
    stage.run(&["undo"]).expect(0);
    stage.git(&["reflog", "expire", "--expire=now", "--all"]);
    stage.git(&["gc", "-q", "--prune=now"]);
    verify(&stage, &[]).expect(2).says(&["is not in this repository"]);
    let fresh = self::stage();
    verify(&fresh, &[]).expect(2).says(&["no note"]);
}

#[test]
fn a_commit_that_was_amended_has_no_evidence_and_its_run_does_not_hold() {
    let stage = done();
    stage.git(&["checkout", "-q", &branch(&stage)]);
    stage.write("app.txt", "start\ndone\nand more\n");
    stage.git(&["add", "app.txt"]);
    stage.git(&["commit", "-q", "--amend", "--no-edit"]);
    verify(&stage, &["HEAD"]).expect(1).says(&["no note", "its branch never had it"]);
    verify(&stage, &[]).expect(1).says(&["the run left it at"]);
}

#[test]
fn a_note_that_was_copied_to_another_commit_does_not_hold() {
    let stage = done();
    let tip = tip(&stage);
    let other = stage.git(&["commit-tree", "-m", "mine", "-p", &tip, &format!("{tip}^{{tree}}")]);
    stage.git(&["notes", "--ref", NOTES, "copy", &tip, &other]);
    verify(&stage, &[&other]).expect(1).says(&["the note is about another commit"]);
}

#[test]
fn a_forged_note_does_not_hold() {
    let stage = done();
    let (tip, honest) = (tip(&stage), note(&stage, &branch(&stage)));
    let forged = |change: &dyn Fn(&mut Value)| {
        let mut told = honest.clone();
        change(&mut told);
        serde_json::to_string_pretty(&told).unwrap()
    };
    let base = stage.git(&["rev-parse", "main^{tree}"]);
    let other_tree = forged(&|told| told["subject"][0]["digest"]["gitTree"] = base.clone().into());
    forge(&stage, &tip, &other_tree);
    verify(&stage, &[]).expect(1).says(&["the tree in the note is not that of the commit"]);
    let predicate: [Forgery<'_>; 4] = [
        ("the gates", &|told| told["gates"][0]["commands"][0]["command"] = "true".into()),
        ("the gates", &|told| told["gates"][0]["commands"][0]["exitCode"] = 3.into()),
        ("the reviews", &|told| told["reviews"][0]["agent"] = "claude_code_cli".into()),
        ("the whole result", &|told| told["whole"] = Value::Null),
    ];
    for (part, change) in predicate {
        let text = forged(&|told| change(&mut told["predicate"]));
        forge(&stage, &tip, &text);
        let said = format!("the journal says otherwise about {part}");
        verify(&stage, &[]).expect(1).says(&[&said]);
        verify(&stage, &[&tip]).expect(1).says(&[&said]);
    }
    forge(&stage, &tip, &forged(&|told| told["predicate"]["run"]["id"] = "another".into()));
    verify(&stage, &[&tip]).expect(1).says(&["names another run"]);
    forge(&stage, &tip, &forged(&|_| {}));
    verify(&stage, &[]).expect(0);
}

#[test]
fn a_clone_without_the_journal_says_that_the_evidence_is_consistent_and_no_more() {
    let stage = done();
    let clone = clone_of(&stage, &[]);
    verify_in(&stage, &clone, &["HEAD"]).expect(0).says(&["consistent"]);
    let ended = verify_in(&stage, &clone, &["--json"]).expect(0);
    let told: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(told["against"], "objects");
    let mut forged = note(&stage, &tip(&stage));
    forged["predicate"]["gates"][0]["commands"][0]["exitCode"] = 1.into();
    forge(&stage, &tip(&stage), &forged.to_string());
    stage.git_in(&clone, &["fetch", "-q", "origin", &format!("+{NOTES}:{NOTES}")]);
    verify_in(&stage, &clone, &["HEAD"]).expect(1).says(&["called passed, and a command"]);
}

#[test]
fn a_shallow_clone_can_not_be_checked() {
    let stage = done();
    let clone = clone_of(&stage, &["--depth", "1"]);
    verify_in(&stage, &clone, &["HEAD"]).expect(2).says(&["--unshallow"]);
}

#[test]
fn notes_of_the_user_and_of_earlier_runs_are_kept() {
    let stage = stage();
    stage.git(&["notes", "--ref", NOTES, "add", "-m", "mine", "main"]);
    stage.run_task().expect(0);
    let (first, mine) = (tip(&stage), "on the merge, by hand");
    stage.git(&["notes", "--ref", NOTES, "append", "-m", mine, &first]);
    verify(&stage, &[]).expect(0);
    // A ref that somebody has replaced: the run's notes are put beside theirs.
    let theirs = stage.git(&["rev-parse", &format!("{NOTES}~1")]);
    let lone = stage.git(&["commit-tree", "-m", "new", &format!("{theirs}^{{tree}}")]);
    stage.git(&["update-ref", NOTES, &lone]);
    stage.git(&["notes", "--ref", NOTES, "add", "-f", "-m", "theirs", "main"]);
    stage.task("again", "Say it again");
    stage.run(&["run", "tasks/again.md"]).expect(0);
    verify(&stage, &[]).expect(0);
    assert_eq!(stage.git(&["notes", "--ref", NOTES, "show", "main"]), "theirs");
    let told = stage.git(&["notes", "--ref", NOTES, "show", &first]);
    assert!(told.starts_with('{'), "the evidence of the first run is gone: {told}");
    verify(&stage, &[&first]).expect(0);
}

#[test]
fn a_process_that_dies_between_a_merge_and_its_note_leaves_both_in_the_end() {
    for point in ["merge.done", "merge.published", "notes.written", "notes.published"] {
        let mut stage = stage();
        stage.set("AUTOPILOT_FAILPOINT", &format!("{point}:1"));
        let ended = stage.run_task();
        assert_ne!(ended.code, 0, "{point} was not reached");
        stage.unset("AUTOPILOT_FAILPOINT");
        stage.run(&["resume"]).expect(0);
        verify(&stage, &[]).expect(0).says(&["also by the journal"]);
        let all = stage.git(&["notes", "--ref", NOTES, "list"]);
        assert_eq!(all.lines().count(), 1, "{point}: {all}");
    }
}

#[test]
fn a_note_that_can_not_be_written_fails_nothing_and_is_told() {
    let stage = stage();
    // Git keeps refs like files: nothing can be named `refs/notes/autopilot` beside this.
    stage.git(&["update-ref", &format!("{NOTES}/mine"), "main"]);
    stage.run_task().expect(0).says(&["the evidence of the result is not in"]);
    verify(&stage, &[]).expect(2).says(&["no note"]);
    assert_eq!(
        stage.git(&["rev-parse", &format!("{NOTES}/mine")]),
        stage.git(&["rev-parse", "main"])
    );
}

#[test]
fn every_merge_of_a_queue_has_evidence_and_a_missing_one_is_named() {
    let stage = stage();
    for name in ["a", "b", "c"] {
        stage.task(name, name);
    }
    std::fs::remove_file(stage.path("tasks/say-done.md")).unwrap();
    stage.run(&["run", "--queue", "tasks"]).expect(0);
    let ended = verify(&stage, &["--json"]).expect(0);
    let told: Value = serde_json::from_str(&ended.out).unwrap();
    let tasks = told["commits"].as_array().unwrap().iter().map(|commit| &commit["task"]);
    assert_eq!(tasks.collect::<Vec<_>>(), ["a", "b", "c"]);
    let second = stage.git(&["rev-parse", &format!("{}~1", branch(&stage))]);
    stage.git(&["notes", "--ref", NOTES, "remove", &second]);
    verify(&stage, &[]).expect(2).says(&[&second[..12], "it has no note"]);
    verify(&stage, &[&branch(&stage)]).expect(2).says(&[&second[..12]]);
}

#[test]
fn a_rerun_proves_the_commit_again_in_a_fresh_checkout() {
    let stage = done();
    let ended =
        verify(&stage, &["--rerun"]).expect(0).says(&["again   tests (exit 0): sh test.sh"]);
    assert!(ended.out.contains("the evidence holds"), "{}", ended.out);
    // What is in the user's checkout has no part in it.
    stage.write("test.sh", "exit 1\n");
    verify(&stage, &["--rerun", &branch(&stage)]).expect(0);
    verify(&stage, &["--rerun", "main"]).expect(2).says(&["was not proven again"]);
}

#[test]
fn a_rerun_is_red_where_the_tests_of_the_commit_fail() {
    let mut stage = stage();
    stage.write("test.sh", "echo looking\ntest \"$WEATHER\" != bad\n");
    stage.commit("Tests that need the machine");
    stage.run_task().expect(0);
    let clone = clone_of(&stage, &[]);
    stage.set("WEATHER", "bad");
    verify_in(&stage, &clone, &["HEAD"]).expect(0).says(&["consistent"]);
    let said = ["(exit 1): sh test.sh", "looking", "a command ended otherwise here"];
    verify_in(&stage, &clone, &["--rerun", "HEAD"]).expect(1).says(&said);
    verify(&stage, &["--rerun", "--json"]).expect(1).says(&["\"told\": 0", "\"exit_code\": 1"]);
}

#[test]
fn a_secret_is_in_no_note_and_the_evidence_holds_without_knowing_it() {
    let mut stage = stage();
    let value = "zq81-Wm55-kT20-hidden";
    stage.set("SHOP_API_TOKEN", value);
    stage.config(&format!("commands: {{ tests: \"PASS={value} sh test.sh\" }}\n"));
    stage.run_task().expect(0);
    let told = stage.git(&["notes", "--ref", NOTES, "show", &tip(&stage)]);
    assert!(!told.contains(value) && told.contains("sh test.sh"), "{told}");
    verify(&stage, &[]).expect(0);
    stage.unset("SHOP_API_TOKEN");
    verify(&stage, &[]).expect(0);
}
