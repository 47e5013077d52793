//! Commands over runs that scripted agents really made, by the real binary.
#![allow(clippy::unwrap_used, reason = "a test file")]

#[path = "cli/repo.rs"]
mod repo;

use repo::{Repo, Said};
use serde_json::Value;

const CONFIG: &str = "\
commands: { tests: \"sh test.sh\" }
builder: { mode: script, script: agents.yml }
reviewer: { mode: script, script: agents.yml }
planner: { mode: script, script: agents.yml }
";
const TASK: &str =
    "# Task: Say hello\n\nGoal:\n- Write hello.txt.\n\nAcceptance Criteria:\n- It is there.\n";
const REVIEW: &str = "
- step: review
  do:
    - cost_usd: 0.01
    - answer: { verdict: APPROVE, summary: Fine., issues: [] }
- step: uat_generate
  do:
    - answer: \"1. cat hello.txt\"
";

/// A repository whose scripted builder does this before it writes the file.
fn project(before: &str) -> Repo {
    let repo = Repo::with("main", &[("test.sh", "echo all tests passed\n")]);
    let build = format!(
        "- step: build\n  do:\n{before}    - write: {{ hello.txt: \"hello\\n\" }}\n    - cost_usd: 0.05\n    \
         - answer: {{ changed_files: [hello.txt], tests_ran: true, tests_passed: true, notes: ok }}\n"
    );
    repo.write("agents.yml", &format!("{build}{REVIEW}"));
    repo.write(".autopilot/config.yml", CONFIG);
    repo.write("tasks/say-hello.md", TASK);
    repo
}

fn finished() -> Repo {
    let repo = project("");
    repo.autopilot(&["run", "tasks/say-hello.md", "--quiet"]).ok();
    repo
}

fn run_id(repo: &Repo) -> String {
    repo.autopilot(&["status", "--json"]).json()["run_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_finished_run_can_be_looked_at_from_every_side() {
    let repo = finished();
    let run = run_id(&repo);
    let status = repo.autopilot(&["status", "--json"]).json();
    assert_eq!(status["current_state"], "DONE");
    assert_eq!(status["cost_usd"], 0.06);
    assert_eq!(status["pid"], Value::Null);
    let text = repo.autopilot(&["status"]).ok();
    assert!(text.contains("say-hello") && text.contains("STATUS.md"), "{text}");

    let runs = repo.autopilot(&["runs", "--json"]).json();
    assert_eq!(
        (&runs[0]["run_id"], &runs[0]["tasks_done"]),
        (&Value::from(run.as_str()), &Value::from(1))
    );
    assert!(repo.autopilot(&["runs"]).ok().contains(&run));

    let shown = repo.autopilot(&["show", "say-hello", "--json"]).json();
    let steps: Vec<&str> =
        shown["attempts"].as_array().unwrap().iter().map(|a| a["step"].as_str().unwrap()).collect();
    assert_eq!(steps[..3], ["build", "validate", "review"], "{steps:?}");
    assert_eq!(shown["attempts"][1]["exit_code"], 0);
    assert_eq!(shown["attempts"][2]["verdict"], "APPROVE");
    assert!(repo.autopilot(&["show", &run[..12]]).ok().contains("APPROVE, 0 issues"));

    assert!(repo.autopilot(&["diff"]).ok().contains("+hello"));
    assert!(repo.autopilot(&["diff", "say-hello", "--stat"]).ok().contains("hello.txt | 1 +"));
}

#[test]
fn logs_are_told_apart_by_task_and_stream() {
    let repo = finished();
    assert!(repo.autopilot(&["logs"]).ok().contains("say-hello: DONE"));
    assert_eq!(repo.autopilot(&["logs", "-n", "1"]).ok().lines().count(), 1);
    let all = repo.autopilot(&["logs", "say-hello"]).ok();
    let (build, validate) = (all.find("==> say-hello: build"), all.find("==> say-hello: validate"));
    assert!(build.is_some() && build < validate, "{all}");
    let only = repo.autopilot(&["logs", "say-hello", "--stream", "validation"]).ok();
    assert!(only.contains("all tests passed") && !only.contains("build"), "{only}");
    let said = repo.autopilot(&["logs", "say-helo"]).refused(64);
    assert!(said.contains("did you mean `say-hello`?"), "{said}");
    // Nobody works on it any more, so there is nothing to wait for.
    repo.autopilot(&["logs", "-f"]).ok();
}

#[test]
fn undo_takes_the_branches_out_and_recover_brings_them_back() {
    let repo = finished();
    let branch = format!("autopilot/run-{}", run_id(&repo));
    let tip = repo.git(&["rev-parse", &branch]);
    let gone = repo.autopilot(&["undo", "--json"]).json();
    assert_eq!(repo.git(&["branch", "--list", "autopilot/*"]), "");
    assert_eq!(repo.autopilot(&["undo", "--json"]).json()["removed"], Value::Array(vec![]));
    let id = gone["removed"][0]["recover"].as_str().unwrap();
    assert!(repo.autopilot(&["recover"]).ok().contains(id));
    let back = repo.autopilot(&["recover", id, "--json"]).json();
    assert_eq!(repo.git(&["rev-parse", back["branch"].as_str().unwrap()]), tip);
    assert!(repo.autopilot(&["diff"]).ok().contains("+hello"), "the hub still has it");
}

#[test]
fn undo_leaves_what_the_user_has_made_of_a_branch() {
    let repo = finished();
    let branch = format!("autopilot/run-{}", run_id(&repo));
    let before = repo.git(&["for-each-ref", "refs/heads"]);
    repo.git(&["worktree", "add", "-q", "../other", &branch]);
    let said = repo.autopilot(&["undo"]).refused(10);
    assert!(said.contains("is checked out in"), "{said}");
    assert_eq!(repo.git(&["for-each-ref", "refs/heads"]), before);

    repo.git(&["-C", "../other", "commit", "-q", "--allow-empty", "-m", "mine"]);
    repo.git(&["-C", "../other", "switch", "-q", "--detach"]);
    let before = repo.git(&["for-each-ref", "refs/heads"]);
    let said = repo.autopilot(&["undo"]).refused(10);
    assert!(said.contains("not of this run"), "{said}");
    assert_eq!(repo.git(&["for-each-ref", "refs/heads"]), before, "all or nothing");
}

#[test]
fn gc_says_what_would_go_and_then_removes_it() {
    let repo = finished();
    let slots = repo.state().join("slots");
    // Left by a process that was killed: no ref holds it.
    std::fs::write(slots.join("s0/unsaved.txt"), "precious\n").unwrap();
    let would = repo.autopilot(&["gc", "--dry-run", "--json"]).json();
    assert!(would["bytes"].as_u64().unwrap() > 0 && slots.join("s0").exists());
    assert!(slots.join("j0").exists(), "the reviewer's");
    let did = repo.autopilot(&["gc", "--json"]).json();
    assert!(!slots.join("s0").exists() && !slots.join("j0").exists());
    let rescued = did["rescued"][0].as_str().unwrap();
    let hub = repo.state().join("hub.git");
    let kept = format!("{rescued}:unsaved.txt");
    assert_eq!(repo.git(&["--git-dir", hub.to_str().unwrap(), "show", &kept]), "precious");
}

#[test]
fn gc_removes_what_dead_gates_left_and_with_the_caches_what_the_base_built() {
    let repo = finished();
    let (layers, seeds) = (repo.state().join("layers"), repo.state().join("seeds"));
    // Left by a process that was killed while a gate ran, and by one that was sealing.
    let left = |dir: &std::path::Path| {
        std::fs::create_dir_all(dir.join("0/work/work")).unwrap();
        std::fs::write(dir.join("0/work/work/file"), "x").unwrap();
        std::fs::write(dir.join("0.lock"), "").unwrap();
    };
    left(&layers);
    let would = repo.autopilot(&["gc", "--dry-run"]).ok();
    assert!(would.contains("would remove gate") && layers.join("0").exists(), "{would}");
    assert!(repo.autopilot(&["gc"]).ok().contains("removed gate"));
    assert_eq!(std::fs::read_dir(&layers).unwrap().count(), 0);
    left(&seeds);
    repo.autopilot(&["gc"]).ok();
    assert!(seeds.join("0").exists());
    assert!(repo.autopilot(&["gc", "--caches"]).ok().contains("removed build of the base"));
    assert_eq!(std::fs::read_dir(&seeds).unwrap().count(), 0);
    let checks = repo.autopilot(&["doctor", "--json"]).json();
    let gates = checks["checks"].as_array().unwrap().iter().find(|check| check["check"] == "gates");
    assert!(gates.unwrap()["text"].as_str().unwrap().contains("overlay"), "{checks}");
    assert_eq!(std::fs::read_dir(&layers).unwrap().count(), 0);
    // The next process that takes up a run sweeps both before it begins.
    left(&layers);
    left(&seeds);
    repo.autopilot(&["run", "tasks/say-hello.md", "--quiet"]).ok();
    assert!(!layers.join("0").exists() && !seeds.join("0").exists());
}

#[test]
fn without_the_state_directory_branches_and_trailers_still_tell() {
    let repo = finished();
    let run = run_id(&repo);
    std::fs::remove_dir_all(repo.state()).unwrap();
    let told = repo.autopilot(&["recover", "--json"]).json();
    let of_task = told.as_array().unwrap().iter().find(|t| t["branch"] == "autopilot/say-hello");
    assert_eq!(of_task.unwrap()["run"], run.as_str(), "{told}");
    assert_eq!(of_task.unwrap()["task"], "say-hello");
    let status = repo.autopilot(&["status"]);
    assert_eq!(status.code, Some(10), "{}", status.err);
    assert!(status.err.contains("is missing") && status.err.contains("autopilot recover"));
}

#[test]
fn a_damaged_journal_is_rebuilt_and_the_damaged_one_kept() {
    let repo = finished();
    assert!(repo.autopilot(&["recover", "--journal"]).ok().contains("is sound"));
    let journal = repo.state().join("autopilot.db");
    // Everything into the file itself, so that the damage is not taken for a torn end of the log.
    let connection = rusqlite::Connection::open(&journal).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let mut bytes = std::fs::read(&journal).unwrap();
    // The last record of the run, found by its own words.
    let place = bytes.windows(12).rposition(|w| w == b"task_settled").unwrap();
    bytes[place] = b'X';
    std::fs::write(&journal, &bytes).unwrap();
    let said = repo.autopilot(&["doctor"]);
    assert_eq!(said.code, Some(78), "{}", said.out);
    assert!(said.out.contains("recover --journal"), "{}", said.out);
    let did = repo.autopilot(&["recover", "--journal", "--json"]).json();
    assert!(did["records_saved"].as_u64().unwrap() > 0, "{did}");
    assert_eq!(std::fs::read(did["damaged"].as_str().unwrap()).unwrap(), bytes);
    assert!(repo.autopilot(&["recover", "--journal"]).ok().contains("is sound"));
    repo.autopilot(&["status"]).ok();

    // Killed between the renames, with the log of the damaged file still in its place.
    std::fs::rename(&journal, repo.state().join("autopilot.db.rebuilt")).unwrap();
    std::fs::write(repo.state().join("autopilot.db-wal"), "of the damaged file").unwrap();
    assert!(repo.autopilot(&["recover", "--journal"]).ok().contains("now complete"));
    assert!(repo.autopilot(&["recover", "--journal"]).ok().contains("is sound"));
}

#[test]
fn a_live_run_is_named_followed_and_when_killed_called_interrupted() {
    let repo = project("    - say: working\n    - sleep_ms: 60000\n");
    let mut run = repo.start(&["run", "tasks/say-hello.md", "--quiet"]);
    let live = wait_for(|| {
        let status = repo.autopilot(&["status", "--json"]).json();
        (status["tasks"][0]["state"] == "BUILD" && status["pid"].is_u64()).then_some(status)
    });
    assert_eq!(live["pid"].as_u64(), Some(u64::from(run.id())));
    for args in [&["undo"][..], &["gc"], &["recover", "--journal"]] {
        repo.autopilot(args).refused(10);
    }
    let follower = repo.start(&["logs", "-f"]);
    let watcher = repo.start(&["status", "--watch"]);
    run.kill().unwrap();
    run.wait().unwrap();
    let followed = Said::of(follower.wait_with_output().unwrap()).ok();
    assert!(followed.contains("say-hello: building"), "{followed}");
    assert!(Said::of(watcher.wait_with_output().unwrap()).ok().contains("autopilot resume"));
    let said = repo.autopilot(&["status"]).ok();
    assert!(said.starts_with("INTERRUPTED") && said.contains("autopilot resume"), "{said}");
}

#[test]
fn a_hundred_who_ask_at_once_hinder_nobody() {
    let repo = project("    - sleep_ms: 1500\n");
    let run = repo.start(&["run", "tasks/say-hello.md", "--quiet"]);
    wait_for(|| repo.autopilot(&["status", "--json"]).json()["pid"].is_u64().then_some(()));
    let asked: Vec<_> = (0..100)
        .map(|n| repo.start(if n % 2 == 0 { &["status", "--json"] } else { &["logs"] }))
        .collect();
    for child in asked {
        Said::of(child.wait_with_output().unwrap()).ok();
    }
    Said::of(run.wait_with_output().unwrap()).ok();
    assert_eq!(repo.autopilot(&["status", "--json"]).json()["current_state"], "DONE");
}

#[track_caller]
fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let began = std::time::Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed().as_secs() < 60, "it did not happen within a minute");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
