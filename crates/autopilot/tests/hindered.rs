//! A machine that hinders a start: paths that can't be written, something in the place of a file, a bad
//! temporary directory, a damaged hub, a branch that is gone. It rests the run or is told with the next
//! step, which works; `doctor` sees it and writes nothing.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::faulty_git::FaultyGit;
use autopilot_testkit::stage::{APPROVES, BUILDS, Stage, digest_of, text};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const RUN: [&str; 2] = ["run", "tasks/say-done.md"];

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_autopilot"))
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The state directory of the stage's repository.
fn own_state(stage: &Stage) -> PathBuf {
    fs::read_dir(stage.state()).unwrap().next().unwrap().unwrap().path()
}

/// What doctor says of a check, in a stage that it leaves as it was.
#[track_caller]
fn doctor(stage: &Stage, name: &str, level: &str) -> String {
    // Who owns the files is not part of the digest, nor is the executable of the plain user.
    let digest = || digest_of(stage.folder(), &["said", "autopilot"]);
    let before = digest();
    let code = if level == "missing" { 78 } else { 0 };
    let said = stage.run_plainly(&["doctor", "--json"]).expect(code);
    assert_eq!(digest(), before, "doctor wrote something");
    let told: Value = serde_json::from_str(&said.out).unwrap();
    let all = told["checks"].as_array().unwrap().iter();
    let found: Vec<&Value> =
        all.filter(|check| check["check"] == name && check["level"] == level).collect();
    assert!(!found.is_empty(), "no {level} {name} in {told:#}");
    found.iter().map(|check| check["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn contains(said: &str, texts: &[&str]) {
    for text in texts {
        assert!(said.contains(text), "`{text}` is not in: {said}");
    }
}

#[test]
fn a_state_root_that_cannot_be_written_rests_the_run_and_doctor_names_it() {
    let stage = stage();
    fs::create_dir(stage.state()).unwrap();
    allow(&stage.state(), 0o555);
    let root = text(stage.state());
    let hint = format!("make `{root}` writable, then try again");
    stage.run_plainly(&RUN).expect(2).says(&[&hint]);
    stage.run_plainly(&["goal", "Say done"]).expect(2).says(&[&hint]);
    // Nothing was lost, because nothing was there.
    stage.run_plainly(&["status"]).expect(0).says(&["no run yet"]);
    contains(&doctor(&stage, "state root", "missing"), &[&root, "AUTOPILOT_STATE_DIR"]);
    allow(&stage.state(), 0o755);
    stage.run_plainly(&RUN).expect(0);
    let own = own_state(&stage);
    allow(&own, 0o500);
    stage.run_plainly(&RUN).expect(2).says(&[&format!("make `{}` writable", text(&own))]);
    contains(&doctor(&stage, "state", "missing"), &[&text(&own), "make it writable"]);
}

#[test]
fn a_git_directory_that_cannot_be_written_rests_the_run_and_doctor_names_it() {
    let stage = stage();
    let git = stage.path(".git");
    allow(&git, 0o555);
    let hint = format!("make `{}` writable, then try again", text(&git));
    stage.run_plainly(&RUN).expect(2).says(&["cannot create", &hint]);
    contains(&doctor(&stage, "repository", "missing"), &[&text(&git), "make it writable"]);
    allow(&git, 0o755);
    let objects = git.join("objects");
    allow(&objects, 0o555);
    contains(&doctor(&stage, "repository", "missing"), &[&text(&objects)]);
    allow(&objects, 0o755);
    stage.run_plainly(&RUN).expect(0);
}

#[test]
fn a_directory_in_the_place_of_the_lock_or_the_journal_is_to_be_moved_away() {
    let stage = stage();
    stage.run_task().expect(0);
    for name in ["autopilot.lock", "autopilot.db"] {
        let (path, aside) = (own_state(&stage).join(name), own_state(&stage).join("aside"));
        fs::rename(&path, &aside).unwrap();
        fs::create_dir(&path).unwrap();
        stage.run_plainly(&RUN).expect(2).says(&[&text(&path), "move it away, then try again"]);
        contains(
            &doctor(&stage, "state", "missing"),
            &[&text(&path), "is a directory; move it away"],
        );
        if name == "autopilot.db" {
            stage.run_plainly(&["status"]).expect(78).says(&[&text(&path), "move it away"]);
        }
        fs::remove_dir(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
        stage.run_plainly(&RUN).expect(0);
    }
}

#[test]
fn a_journal_that_may_not_be_opened_is_named() {
    let stage = stage();
    stage.run_plainly(&RUN).expect(0);
    let journal = own_state(&stage).join("autopilot.db");
    let hint = format!("make `{}` writable, then try again", text(&journal));
    for mode in [0o000, 0o444] {
        allow(&journal, mode);
        stage.run_plainly(&RUN).expect(2).says(&[&hint]);
        contains(&doctor(&stage, "state", "missing"), &[&text(&journal)]);
    }
    allow(&journal, 0o000);
    stage.run_plainly(&["status"]).expect(78).says(&[&hint]);
    allow(&journal, 0o644);
    stage.run_plainly(&RUN).expect(0);
}

#[test]
fn a_pause_that_cannot_be_written_down_says_what_to_change() {
    let stage = stage();
    allow(&stage.path(".autopilot"), 0o555);
    let path = text(stage.path(".autopilot/AUTOPILOT_PAUSE"));
    stage.run_plainly(&["pause"]).expect(78).says(&[&path, "make the path writable"]);
    contains(&doctor(&stage, "repository", "missing"), &[&text(stage.path(".autopilot"))]);
}

#[test]
fn a_stop_that_cannot_be_written_down_still_reaches_the_process() {
    let stage = stage();
    stage.agents(&["- step: build\n  do: [{ run: \"sleep 600\" }]\n"]);
    let run = stage.start(&RUN);
    stage.wait_for_step("BUILD");
    allow(&stage.path(".autopilot"), 0o555);
    stage.run(&["stop", "--now"]).expect(0);
    run.wait().expect(2);
    allow(&stage.path(".autopilot"), 0o755);
}

#[test]
fn a_bad_temporary_directory_hinders_no_run_and_doctor_names_it() {
    let mut stage = stage();
    let file = stage.folder().join("a-file");
    fs::write(&file, "").unwrap();
    for bad in ["/no/such/directory".to_owned(), "/proc".to_owned(), text(&file)] {
        stage.set("TMPDIR", &bad);
        stage.run_plainly(&["run", "tasks/say-done.md", "--fresh"]).expect(0);
        let said = doctor(&stage, "temporary files", "warning");
        contains(&said, &[&bad, "set TMPDIR to a directory"]);
        stage.run_plainly(&["demo"]).expect(78).says(&[&bad, "set TMPDIR to a directory"]);
    }
}

#[test]
fn a_relative_state_directory_is_refused_by_name() {
    let mut stage = stage();
    stage.set("AUTOPILOT_STATE_DIR", "state");
    for args in [&RUN[..], &["status"], &["goal", "Say done"], &["resume"]] {
        stage.run(args).expect(78).says(&["AUTOPILOT_STATE_DIR is `state`", "absolute path"]);
    }
    let said = stage.run(&["doctor"]).expect(78);
    said.says(&[
        "missing   state root      AUTOPILOT_STATE_DIR is `state`",
        "ok        repository",
    ]);
    assert!(!stage.has("state") && !stage.folder().join("home/.local").exists());
    stage.set("AUTOPILOT_STATE_DIR", "");
    stage.run(&["status"]).expect(0);
}

#[test]
fn a_new_run_that_git_hinders_rests_as_a_resumed_one_does() {
    let mut stage = stage();
    let git = FaultyGit::on(&mut stage);
    git.does("exit 128");
    git.strike_always("init");
    stage.run_task().expect(2).says(&["create the hub", "autopilot doctor", "then try again"]);
    git.heal("init");
    stage.run_task().expect(0);
    stage.unset("PATH");
    stage.set("PATH", "/nowhere");
    stage.run_task().expect(78).says(&["git is not on PATH; install git"]);
}

/// A run that was stopped while its builder worked.
fn stopped() -> Stage {
    let stage = stage();
    let endless = "- step: build\n  attempt: 1\n  do: [{ run: \"sleep 600\" }]\n";
    stage.agents(&[endless, BUILDS, APPROVES]);
    let run = stage.start(&RUN);
    stage.wait_for_step("BUILD");
    stage.run(&["stop", "--now"]).expect(0);
    run.wait().expect(2);
    stage
}

#[test]
fn doctor_tells_a_lost_or_damaged_hub_and_resume_does_what_it_says() {
    let name = "own repository";
    for part in ["", "HEAD", "config", "refs", "objects"] {
        let stage = stopped();
        contains(&doctor(&stage, name, "ok"), &["sound"]);
        let path = own_state(&stage).join("hub.git").join(part);
        let path = if part.is_empty() { own_state(&stage).join("hub.git") } else { path };
        let gone = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        gone.unwrap();
        let said = doctor(&stage, name, "warning");
        contains(
            &said,
            &[&format!("`{}` is missing", text(&path)), "`autopilot resume` makes it again"],
        );
        stage.run_plainly(&["resume"]).expect(0);
        assert_eq!(stage.first_task()["status"], "DONE", "{part}");
        contains(&doctor(&stage, name, "ok"), &["sound"]);
    }
}

#[test]
fn doctor_tells_a_hub_without_its_objects_and_one_that_was_changed() {
    let name = "own repository";
    let stage = stopped();
    let hub = own_state(&stage).join("hub.git");
    for entry in fs::read_dir(hub.join("objects")).unwrap().flatten() {
        fs::remove_dir_all(entry.path()).unwrap();
    }
    let said = doctor(&stage, name, "warning");
    contains(
        &said,
        &["git can't read", "brings back what your repository has", "autopilot recover"],
    );
    stage.run_plainly(&["resume"]).expect(0);
    contains(&doctor(&stage, name, "ok"), &["sound"]);
    let config = fs::read_to_string(hub.join("config")).unwrap();
    fs::write(hub.join("config"), format!("{config}[alias]\n\tx = !true\n")).unwrap();
    let said = doctor(&stage, name, "missing");
    contains(&said, &["is not as autopilot wrote it", &format!("move `{}` away", text(&hub))]);
    stage
        .run_plainly(&["run", "tasks/say-done.md", "--fresh"])
        .expect(2)
        .says(&["autopilot doctor"]);
    fs::rename(&hub, stage.folder().join("aside")).unwrap();
    stage.agents(&[BUILDS, APPROVES]);
    stage.run_plainly(&["run", "tasks/say-done.md", "--fresh"]).expect(0);
}

#[test]
fn the_advice_for_a_base_branch_that_is_gone_works() {
    let stage = stopped();
    stage.git(&["checkout", "-q", "-b", "trunk"]);
    stage.git(&["branch", "-D", "main"]);
    let said = stage.run(&["resume"]).expect(64).says(&["there is no branch `main` any more"]);
    let (_, advice) = said.err.split_once("bring it back with `").unwrap();
    let (command, _) = advice.split_once('`').unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    let done = Command::new(words[0]).args(&words[1..]).current_dir(stage.root()).status();
    assert!(done.unwrap().success(), "{command}");
    stage.run(&["resume"]).expect(0);
    // The other way out works too.
    let stage = stopped();
    stage.git(&["checkout", "-q", "-b", "trunk"]);
    stage.git(&["branch", "-D", "main"]);
    stage.agents(&[BUILDS, APPROVES]);
    let config = stage.read(".autopilot/config.yml").replace("main", "trunk");
    stage.write(".autopilot/config.yml", &config);
    stage.run(&["resume"]).expect(64).says(&["start anew with `autopilot run --fresh`"]);
    stage.run(&["run", "tasks/say-done.md", "--fresh"]).expect(0);
}

#[test]
fn a_journal_of_which_nothing_can_be_read_is_told_as_recover_treats_it() {
    let stage = stage();
    stage.run_task().expect(0);
    let journal = own_state(&stage).join("autopilot.db");
    for log in ["-wal", "-shm", "-open"] {
        let _not_there = fs::remove_file(format!("{}{log}", journal.display()));
    }
    fs::write(&journal, vec![b'x'; 8192]).unwrap();
    stage.run(&["status"]).expect(10).says(&["its content is damaged", "recover --journal"]);
    let said = stage.run_task().expect(10);
    let said = said.says(&["none of it can be read", "put it back from a backup", "aside"]);
    assert!(!said.said().contains("what can still be read"), "{}", said.said());
    let help = stage.run(&["recover", "--help"]).expect(0);
    let help: Vec<&str> = help.out.split_whitespace().collect();
    contains(&help.join(" "), &["or empty if nothing can; the damaged file is kept"]);
    stage.run(&["recover", "--journal"]).expect(0).says(&["nothing of", "an empty journal"]);
    stage.run_task().expect(0);
}

const ASSERTS: &str = "#!/bin/sh\nif grep -q CONDITION app.txt; then\n  echo 'FAILED tests/test_sum.py::test_sum'\n  \
echo 'AssertionError: expected 3 got 4'\n  echo '1 failed, 2 passed'\n  exit 1\nfi\n";

#[test]
fn a_red_base_is_told_with_its_output_and_a_command_that_shows_more() {
    let stage = stage();
    stage.write("test.sh", &ASSERTS.replace("CONDITION", "start"));
    stage.commit("red");
    let said = stage.run_task().expect(10);
    let said = said.says(&[
        "AssertionError: expected 3 got 4",
        "`autopilot logs run`",
        "`autopilot retry`",
    ]);
    assert!(!said.said().contains("<task>"), "{}", said.said());
    stage.run(&["logs", "run"]).expect(0).says(&["preflight", "AssertionError: expected 3 got 4"]);
    stage
        .run(&["status"])
        .expect(0)
        .says(&["preflight of the run", "AssertionError: expected 3 got 4"]);
}

#[test]
fn the_assertion_that_failed_is_in_the_outcome_and_in_the_status() {
    let stage = stage();
    stage.write("test.sh", &ASSERTS.replace("CONDITION", "done"));
    stage.commit("red with the change");
    stage.config("commands: { tests: sh test.sh }\nloop: { max_iterations: 1 }\n");
    let told =
        ["validate of say-done", "test_sum.py::test_sum", "AssertionError: expected 3 got 4"];
    let said = stage.run_task().expect(11).says(&told);
    said.says(&["`autopilot logs say-done`", "`autopilot retry say-done`"]);
    stage.run(&["status"]).expect(0).says(&told);
    let failure = &stage.status()["last_failure"];
    assert_eq!((&failure["task"], &failure["step"]), (&"say-done".into(), &"validate".into()));
    assert!(failure["log"].as_str().unwrap().starts_with(".autopilot/logs/"), "{failure}");
    contains(&failure["lines"].to_string(), &told[1..]);
    let ended = stage.run(&["retry", "say-done", "--json"]).expect(11);
    let ended: Value = serde_json::from_str(&ended.out).unwrap();
    contains(&ended["last_failure"]["lines"].to_string(), &told[1..]);
}

#[test]
fn doctor_says_of_a_script_that_it_is_not_executable() {
    let stage = stage();
    stage.write("check.sh", "#!/bin/sh\nexit 0\n");
    stage.commit("a script");
    stage.config("commands: { tests: ./check.sh }\n");
    let said = doctor(&stage, "commands.tests", "missing");
    contains(&said, &["`./check.sh` is not executable", "chmod +x ./check.sh"]);
    assert!(!said.contains("does not exist"), "{said}");
    allow(&stage.path("check.sh"), 0o755);
    doctor(&stage, "commands.tests", "ok");
}
