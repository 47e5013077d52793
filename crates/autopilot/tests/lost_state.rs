//! Parts of the state that somebody removed or damaged: every command says what is missing in plain
//! words, and `recover` brings back what is left.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::stage::{APPROVES, BUILDS, Ended, Stage, files, files_with};
use std::fs;
use std::path::{Path, PathBuf};

/// Commands that look at runs or change them.
const COMMANDS: [&[&str]; 12] = [
    &["resume"],
    &["status"],
    &["runs"],
    &["logs"],
    &["show"],
    &["diff"],
    &["cost"],
    &["graph"],
    &["sessions"],
    &["report"],
    &["undo"],
    &["retry", "say-done"],
];
/// Words of SQLite, of git and of Rust.
const RAW: [&str; 10] = [
    "SQL",
    "sqlite",
    "not a database",
    "malformed",
    "disk image",
    "no such table",
    "fatal:",
    "error: object",
    "bad object",
    "panicked",
];

/// A run whose controller was killed while its builder worked, and its state directory.
fn killed() -> (Stage, PathBuf) {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    let endless = "- step: build\n  attempt: 1\n  do: [{ append: { app.txt: \"half\\n\" } }, { run: \
                   \"sleep 600\" }]\n";
    stage.agents(&[endless, BUILDS, APPROVES]);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_until("the agent wrote", |stage| {
        files_with(&stage.state(), "half\n").iter().any(|path| path.ends_with("app.txt"))
    });
    run.signal("KILL");
    run.wait();
    stage.wait_until("its agents are gone", |stage| stage.survivors().is_empty());
    let state = stage.state().join(stage.read(".git/autopilot/id").trim());
    (stage, state)
}

fn remove(journal: &Path, ends: &[&str]) {
    for end in ends {
        fs::remove_file(format!("{}{end}", journal.display())).unwrap();
    }
}

#[track_caller]
fn in_plain_words(ended: &Ended, of: &str) {
    for raw in RAW {
        assert!(!ended.said().contains(raw), "{of}: {raw}: {}", ended.said());
    }
}

/// Every command fails and says these texts, and nothing that a database or git would say.
fn all_say(stage: &Stage, texts: &[&str]) {
    for command in COMMANDS {
        let ended = stage.run(command);
        // The controller's log is a file of its own.
        let code = if command == ["logs"] { 0 } else { 10 };
        assert_eq!(ended.code, code, "{command:?}: {}", ended.said());
        for text in texts {
            assert!(ended.said().contains(text), "{command:?}: {text}: {}", ended.said());
        }
        in_plain_words(&ended, &format!("{command:?}"));
    }
}

/// The unfinished work can be had as a branch.
fn brings_back_the_work(stage: &Stage) {
    let listed = stage.run(&["recover"]).expect(0);
    let lines: Vec<&str> = listed.out.lines().collect();
    let id =
        lines.iter().find_map(|line| line.split(' ').find(|word| word.starts_with("say-done/")));
    let id = id.unwrap_or_else(|| panic!("{}", listed.said()));
    stage.run(&["recover", id]).expect(0);
    let branches =
        stage.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/autopilot"]);
    let branch = branches.lines().find(|name| name.contains("/salvage/")).unwrap();
    assert_eq!(stage.git(&["show", &format!("{branch}:app.txt")]), "start\nhalf");
}

#[test]
fn a_missing_journal_is_missed_and_the_work_is_brought_back() {
    let (stage, state) = killed();
    remove(&state.join("autopilot.db"), &["", "-wal"]);
    stage.run(&["doctor"]).expect(78).says(&["the journal", "is missing", "autopilot recover"]);
    all_say(&stage, &["autopilot.db` is missing", "autopilot recover"]);
    let refused = stage.run(&["recover", "--journal"]).expect(10);
    in_plain_words(&refused, "recover --journal");
    brings_back_the_work(&stage);
    stage.agents(&[BUILDS, APPROVES]);
    stage.run_task().expect(0).says(&["autopilot.db` is missing"]);
}

#[test]
fn a_missing_write_ahead_log_is_missed_and_not_taken_for_an_empty_journal() {
    let (stage, state) = killed();
    remove(&state.join("autopilot.db"), &["-wal"]);
    all_say(&stage, &["autopilot.db-wal` is missing", "autopilot recover --journal"]);
    let recovered = stage.run(&["recover", "--journal"]).expect(0);
    in_plain_words(&recovered, "recover --journal");
    assert!(recovered.said().contains("are lost"), "{}", recovered.said());
    brings_back_the_work(&stage);
    stage.agents(&[BUILDS, APPROVES]);
    stage.run_task().expect(0);
}

#[test]
fn a_missing_id_is_missed_and_given_back() {
    let (stage, state) = killed();
    fs::remove_file(stage.path(".git/autopilot/id")).unwrap();
    let path = state.display().to_string();
    all_say(&stage, &["autopilot/id` is missing", "autopilot recover --state", &path]);
    assert!(stage.run(&["recover"]).expect(0).said().contains("autopilot recover --state"));
    stage.run(&["recover", "--state"]).expect(0);
    stage.run(&["recover", "--state"]).expect(64);
    stage.run(&["resume"]).expect(0);
    assert_eq!(stage.git(&["show", "autopilot/say-done:app.txt"]), "start\nhalf\ndone");
}

#[test]
fn a_missing_state_directory_is_missed_and_branches_are_listed() {
    let (stage, state) = killed();
    stage.run(&["resume"]).expect(0);
    fs::remove_dir_all(&state).unwrap();
    let path = state.display().to_string();
    all_say(&stage, &["the state directory", &path, "is missing", "autopilot recover"]);
    let listed = stage.run(&["recover"]).expect(0).said();
    assert!(listed.contains("autopilot/say-done"), "{listed}");
    stage.agents(&[BUILDS, APPROVES]);
    stage.task("again", "Again");
    stage.run(&["run", "tasks/again.md"]).says(&["is missing"]);
}

#[test]
fn a_log_that_was_emptied_cut_off_or_overwritten_is_missed() {
    for damage in ["emptied", "cut off", "overwritten"] {
        let (stage, state) = killed();
        let log = state.join("autopilot.db-wal");
        let mut bytes = fs::read(&log).unwrap();
        match damage {
            "emptied" => bytes.clear(),
            "cut off" => bytes.truncate(bytes.len() / 2),
            _ => bytes[4096..].fill(7),
        }
        fs::write(&log, bytes).unwrap();
        all_say(&stage, &["autopilot.db", "autopilot recover --journal"]);
        let looked = stage.run(&["doctor"]);
        assert!(looked.said().contains("is damaged"), "{damage}: {}", looked.said());
        let recovered = stage.run(&["recover", "--journal"]).expect(0);
        in_plain_words(&recovered, "recover --journal");
        assert!(recovered.said().contains(".damaged-"), "{damage}: {}", recovered.said());
        stage.agents(&[BUILDS, APPROVES]);
        stage.task("again", "Again");
        stage.run(&["run", "--fresh", "tasks/again.md"]).expect(0);
    }
}

#[test]
fn a_damaged_header_is_told_in_plain_words_and_rebuilt_as_far_as_it_can_be() {
    let (stage, state) = killed();
    stage.run(&["resume"]).expect(0);
    let journal = state.join("autopilot.db");
    // As after a checkpoint: a log would have a copy of the header.
    for end in ["-wal", "-shm", "-open"] {
        let _not_there = fs::remove_file(format!("{}{end}", journal.display()));
    }
    let mut bytes = fs::read(&journal).unwrap();
    bytes[..100].fill(7);
    fs::write(&journal, bytes).unwrap();
    all_say(&stage, &["autopilot.db", "damaged", "autopilot recover --journal"]);
    let recovered = stage.run(&["recover", "--journal"]).expect(0);
    in_plain_words(&recovered, "recover --journal");
    assert!(recovered.said().contains(".damaged-"), "{}", recovered.said());
    stage.run(&["runs"]).expect(0);
    stage.agents(&[BUILDS, APPROVES]);
    stage.task("again", "Again");
    stage.run(&["run", "tasks/again.md"]).expect(0);
}

#[test]
fn objects_that_the_hub_lost_come_back_from_the_repository_and_the_run_goes_on() {
    let (stage, state) = killed();
    for file in files(&state.join("hub.git/objects")) {
        fs::remove_file(file).unwrap();
    }
    let ended = stage.run(&["resume"]).expect(0);
    in_plain_words(&ended, "resume");
    assert!(ended.said().contains("came back from your repository"), "{}", ended.said());
    assert_eq!(stage.git(&["show", "autopilot/say-done:app.txt"]), "start\nhalf\ndone");
}

#[test]
fn merged_work_that_the_hub_lost_is_named_where_nobody_has_it() {
    let (stage, state) = killed();
    let hub = state.join("hub.git");
    let one = "- step: [build, fix]\n  do:\n    - run: \"echo made > $AUTOPILOT_TASK_ID.txt; test \
               $AUTOPILOT_TASK_ID = a || sleep 600\"\n    - answer: { changed_files: [], notes: x }\n";
    stage.agents(&[one, APPROVES]);
    for name in ["a", "b"] {
        stage.task(name, name);
        let text = stage.read(&format!("tasks/{name}.md"));
        let allowed = text.replace("- app.txt\n", &format!("- {name}.txt\n"));
        stage.write(&format!("queue/{name}.md"), &allowed);
    }
    let run = stage.start(&["run", "--fresh", "--queue", "queue/"]);
    stage.wait_until("the second is built", |stage| {
        stage.state_json()["tasks"][1]["state"] == "BUILD"
    });
    stage.run(&["stop", "--now"]).expect(0);
    run.wait().expect(2);
    let before = stage.git(&["rev-parse", "main"]);
    // Neither the hub nor the user has the merge any more.
    let branches = stage.git(&["for-each-ref", "--format=%(refname)", "refs/heads/autopilot"]);
    for name in branches.lines() {
        stage.git(&["update-ref", "-d", name]);
    }
    stage.git(&["reflog", "expire", "--expire=now", "--all"]);
    stage.git(&["repack", "-adq"]);
    stage.git(&["prune", "--expire=now"]);
    for file in files(&hub.join("objects")) {
        fs::remove_file(file).unwrap();
    }
    let ended = stage.run(&["resume"]);
    assert_eq!(ended.code, 10, "{}", ended.said());
    for text in ["hub.git` has lost", "autopilot recover"] {
        assert!(ended.said().contains(text), "{text}: {}", ended.said());
    }
    in_plain_words(&ended, "resume");
    assert_eq!(stage.git(&["rev-parse", "main"]), before);
    in_plain_words(&stage.run(&["recover"]).expect(0), "recover");
}
