//! Work that is done is where the account says it is, and a run never hangs on what it talks to: a
//! remote that is silent, a terminal that takes nothing.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, Stage, text};
use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_autopilot"))
}

#[test]
fn work_whose_branch_is_checked_out_is_on_the_next_free_branch_and_the_account_says_so() {
    let stage = stage();
    // The person looks at the task's branch while the run is under way.
    stage.git(&["checkout", "-q", "-b", "autopilot/say-done"]);
    let ended = stage.run_task().expect(0);
    let run = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    ended.says(&["is checked out", "git merge autopilot/say-done-2"]);
    assert_eq!(stage.git(&["show", "autopilot/say-done-2:app.txt"]), "start\ndone");
    assert_eq!(stage.git(&["show", &format!("{run}:app.txt")]), "start\ndone");
    assert_eq!(stage.git(&["show", "autopilot/say-done:app.txt"]), "start");
    assert_eq!(stage.read("app.txt"), "start\n");
}

#[test]
fn a_run_whose_own_branch_was_taken_meanwhile_leaves_it_and_names_the_other() {
    let stage = stage();
    let agents = "
- step: [build, fix]
  do:
    - append: { app.txt: \"done\\n\" }
    - sleep_ms: 1500
    - answer: { changed_files: [app.txt], notes: x }
";
    stage.agents(&[agents, APPROVES]);
    let started = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_for_step("BUILD");
    let run = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    stage.git(&["checkout", "-q", "-b", &run]);
    stage.git(&["commit", "-q", "--allow-empty", "-m", "mine"]);
    stage.git(&["checkout", "-q", "main"]);
    let mine = stage.git(&["rev-parse", &run]);
    started.wait().expect(0).says(&["not this run's", &format!("git merge {run}-2")]);
    assert_eq!(stage.git(&["rev-parse", &run]), mine);
    assert_eq!(stage.git(&["show", &format!("{run}-2:app.txt")]), "start\ndone");
}

#[test]
fn a_branch_called_like_the_folder_of_ours_is_refused_before_any_agent_is_paid() {
    let stage = stage();
    stage.git(&["branch", "autopilot"]);
    let refused = stage.run_task();
    assert_ne!(refused.code, 0);
    refused.says(&["`autopilot`", "git branch -m autopilot autopilot-old"]);
    assert!(stage.views("prompt").is_empty());
    stage.git(&["branch", "-m", "autopilot", "autopilot-old"]);
    stage.run_task().expect(0);
}

#[test]
fn stop_now_ends_a_push_to_a_remote_that_says_nothing() {
    let stage = stage();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("git://{}/x.git", silent.local_addr().unwrap());
    stage.git(&["remote", "add", "origin", &url]);
    let run = stage.start(&["run", "tasks/say-done.md", "--push"]);
    let _silent_for_ever = silent.accept().unwrap();
    let asked = Instant::now();
    stage.run(&["stop", "--now"]).expect(0);
    run.wait().expect(2).says(&["autopilot resume"]);
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert!(stage.survivors().is_empty(), "{:?}", stage.survivors());
    // It goes on with nothing but the push.
    let remote = stage.folder().join("remote.git");
    stage.git(&["init", "-q", "--bare", &text(&remote)]);
    stage.git(&["remote", "set-url", "origin", &text(&remote)]);
    stage.run(&["resume"]).expect(0);
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    assert_eq!(stage.git_in(&remote, &["rev-parse", &branch]), stage.git(&["rev-parse", &branch]));
}

#[test]
fn a_branch_that_has_other_commits_at_the_remote_is_not_mixed_with_them_unseen() {
    let stage = stage();
    let remote = stage.folder().join("remote.git");
    stage.git(&["init", "-q", "--bare", &text(&remote)]);
    stage.git(&["remote", "add", "origin", &text(&remote)]);
    let agents = "
- step: [build, fix]
  do:
    - append: { app.txt: \"done\\n\" }
    - sleep_ms: 1500
    - answer: { changed_files: [app.txt], notes: x }
";
    stage.agents(&[agents, APPROVES]);
    let started = stage.start(&["run", "tasks/say-done.md", "--push"]);
    stage.wait_for_step("BUILD");
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    let clone = stage.folder().join("colleague");
    stage.git(&["clone", "-q", ".", &text(&clone)]);
    std::fs::write(clone.join("other.txt"), "theirs\n").unwrap();
    stage.git_in(&clone, &["add", "other.txt"]);
    stage.git_in(&clone, &["commit", "-q", "-m", "theirs"]);
    stage.git_in(&clone, &["push", "-q", &text(&remote), &format!("HEAD:refs/heads/{branch}")]);
    let theirs = stage.git_in(&clone, &["rev-parse", "HEAD"]);
    started.wait().expect(12).says(&["never validated", "merge by hand"]);
    assert_eq!(stage.git_in(&remote, &["rev-parse", &branch]), theirs);
    assert_eq!(stage.views(".patch").len(), 1);
}

#[test]
fn a_terminal_that_takes_nothing_does_not_hold_up_a_run() {
    let stage = stage();
    let agents = "
- step: [build, fix]
  do:
    - append: { app.txt: \"done\\n\" }
    - run: \"seq 100000\"
    - answer: { changed_files: [app.txt], notes: x }
";
    stage.agents(&[agents, APPROVES]);
    stage.config("commands: { tests: seq 100000 && sh test.sh }\n");
    let mut command = stage.command(&["run", "tasks/say-done.md", "-v"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > Duration::from_secs(40) {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(status.code(), Some(0), "{:?}", stage.state_json()["current_state"]);
}

#[test]
fn a_file_committed_without_its_attributes_does_not_stop_a_run_nor_get_into_the_change() {
    let stage = stage();
    stage.write("run.bat", "echo a\r\n");
    stage.commit("a script for another system");
    stage.write(".gitattributes", "*.bat text eol=crlf\n");
    stage.git(&["add", ".gitattributes"]);
    stage.git(&["commit", "-q", "-m", "attributes"]);
    assert!(stage.git(&["ls-files", "--eol", "run.bat"]).starts_with("i/crlf"));
    stage.run_task().expect(0);
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    assert_eq!(stage.git(&["diff", "--name-only", "main", &branch]), "app.txt");
}

#[test]
fn undo_takes_the_branch_beside_the_users_own() {
    let stage = stage();
    stage.git(&["checkout", "-q", "-b", "autopilot/say-done"]);
    stage.write("mine.txt", "mine\n");
    stage.commit("mine");
    let mine = stage.git(&["rev-parse", "HEAD"]);
    stage.git(&["checkout", "-q", "main"]);
    stage.run_task().expect(0);
    let names = stage.git(&["branch", "--list", "autopilot/*"]);
    assert!(names.contains("autopilot/say-done-2"), "{names}");
    stage.run(&["undo"]).expect(0);
    assert_eq!(stage.git(&["branch", "--list", "autopilot/*"]).trim(), "autopilot/say-done");
    assert_eq!(stage.git(&["rev-parse", "autopilot/say-done"]), mine);
}
