//! Pushing what is done, and what is left when it can't be pushed.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{Stage, text};
use std::io::{Read, Write};
use std::net::TcpListener;

fn stage() -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    stage.config("commands: { tests: sh test.sh }\nloop: { retries: { push: 0 } }\n");
    stage
}

/// A server that wants a password nobody has.
fn unauthorised() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut request = [0; 4096];
            let _whatever_it_asks = stream.read(&mut request);
            let _gone = stream.write_all(
                b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            );
        }
    });
    port
}

#[test]
fn a_finished_branch_is_pushed_to_the_remote() {
    let stage = stage();
    let remote = stage.folder().join("remote.git");
    stage.git(&["init", "-q", "--bare", &text(&remote)]);
    stage.git(&["remote", "add", "origin", &text(&remote)]);
    stage.run(&["run", "tasks/say-done.md", "--push"]).expect(0);
    let state = stage.state_json();
    assert_eq!(state["git"]["pushed"], true);
    let branch = state["branch_name"].as_str().unwrap();
    let there = stage.git_in(&remote, &["rev-parse", branch]);
    assert_eq!(there, stage.git(&["rev-parse", branch]));
}

#[test]
fn a_refused_login_ends_with_12_and_with_a_patch_and_a_bundle_that_apply() {
    let stage = stage();
    let url = format!("http://127.0.0.1:{}/x.git", unauthorised());
    stage.git(&["remote", "add", "origin", &url]);
    let ended = stage.run(&["run", "tasks/say-done.md", "--push"]).expect(12);
    let state = stage.state_json();
    assert_eq!(
        (state["current_state"].as_str(), state["git"]["pushed"].as_bool()),
        (Some("FAILED"), Some(false))
    );
    let (patch, bundle) = (stage.views(".patch"), stage.views(".bundle"));
    assert_eq!((patch.len(), bundle.len()), (1, 1), "{:?}", stage.views("artifacts"));
    for path in [&patch[0], &bundle[0]] {
        assert!(
            ended.said().contains(&text(path)),
            "{} is not named in {}",
            text(path),
            ended.said()
        );
    }
    let branch = state["branch_name"].as_str().unwrap();
    let clone = stage.folder().join("clone");
    stage.git(&["clone", "-q", "--single-branch", "-b", "main", ".", &text(&clone)]);
    stage.git_in(&clone, &["apply", "--check", &text(&patch[0])]);
    stage.git_in(&clone, &["apply", "--index", &text(&patch[0])]);
    let tree = stage.git_in(&clone, &["write-tree"]);
    assert_eq!(tree, stage.git(&["rev-parse", &format!("{branch}^{{tree}}")]));
    stage.git_in(&clone, &["fetch", "-q", &text(&bundle[0]), &format!("{branch}:from-bundle")]);
    assert_eq!(
        stage.git_in(&clone, &["rev-parse", "from-bundle"]),
        stage.git(&["rev-parse", branch])
    );
}

#[test]
fn a_missing_remote_is_refused_before_any_agent_is_paid() {
    let stage = stage();
    let push = ["run", "tasks/say-done.md", "--push"];
    stage.run(&push).expect(64).says(&["`origin`", "git remote add"]);
    assert!(stage.views("prompt").is_empty());
    stage.config("commands: { tests: sh test.sh }\ngithub: { enabled: true }\n");
    stage.run_task().expect(64).says(&["`origin`"]);
}

#[test]
fn a_branch_the_remote_refuses_by_policy_ends_with_12_and_names_the_log() {
    let stage = stage();
    let remote = stage.folder().join("remote.git");
    stage.git(&["init", "-q", "--bare", &text(&remote)]);
    let hook = remote.join("hooks/pre-receive");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\necho file is larger than 100 MB >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    stage.git(&["remote", "add", "origin", &text(&remote)]);
    let ended = stage.run(&["run", "tasks/say-done.md", "--push"]).expect(12);
    assert!(stage.texts_of("logs/push").contains("larger than 100 MB"), "{}", ended.said());
    assert_eq!(stage.views(".patch").len(), 1);
}

#[test]
fn a_push_that_failed_can_be_made_again_by_a_retry_of_nothing_but_itself() {
    let stage = stage();
    stage.git(&["remote", "add", "origin", &text(stage.folder().join("later.git"))]);
    stage.run(&["run", "tasks/say-done.md", "--push"]).expect(12);
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    // The command the account names is all that is left to do.
    stage.git(&["init", "-q", "--bare", &text(stage.folder().join("later.git"))]);
    stage.git(&["push", "-q", "origin", &branch]);
}
