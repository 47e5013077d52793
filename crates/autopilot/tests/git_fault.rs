//! The controller killed at every git command of merging and publishing, and git that hinders a start.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::faulty_git::FaultyGit;
use autopilot_testkit::stage::{APPROVES, BUILDS, Ended, Stage};
use std::collections::BTreeSet;

fn stage() -> (Stage, FaultyGit) {
    let mut stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    let git = FaultyGit::on(&mut stage);
    stage.agents(&[BUILDS, APPROVES]);
    (stage, git)
}

/// What is wrong, unless the task is done, published and paid for nothing.
fn fault(stage: &Stage, ended: &Ended) -> Option<String> {
    let task = stage.first_task();
    let paid = (&task["retries"], &task["iteration"]);
    if ended.code != 0 || paid != (&0.into(), &1.into()) {
        return Some(format!("exit {}, {paid:?}: {}", ended.code, ended.said()));
    }
    let branches =
        stage.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/autopilot"]);
    for branch in branches.lines() {
        if stage.git(&["show", &format!("{branch}:app.txt")]) != "start\ndone" {
            return Some(format!("{branch} lacks the work"));
        }
    }
    if branches.lines().count() != 2 {
        return Some(format!("published: {branches:?}"));
    }
    (!stage.survivors().is_empty()).then(|| format!("left behind: {:?}", stage.survivors()))
}

#[test]
fn a_merge_that_was_published_and_is_on_no_record_is_made_again_as_the_same_commit() {
    for damage in ["removed", "set back"] {
        let mut stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
        stage.agents(&[BUILDS, APPROVES]);
        stage.set("AUTOPILOT_FAILPOINT", "merge.published:1");
        assert_ne!(stage.run_task().code, 0);
        stage.unset("AUTOPILOT_FAILPOINT");
        let hub = stage.state().join(stage.read(".git/autopilot/id").trim()).join("hub.git");
        let listing = ["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/autopilot"];
        let published = stage.git(&listing);
        assert_eq!(published, stage.git_in(&hub, &listing).trim());
        let base = stage.git(&["rev-parse", "main"]);
        for line in published.lines() {
            let name = line.split(' ').next().unwrap();
            match damage {
                "removed" => stage.git_in(&hub, &["update-ref", "-d", name]),
                // Its merge is still on the run's branch.
                _ if name.contains("/run-") => String::new(),
                _ => stage.git_in(&hub, &["update-ref", name, &base]),
            };
        }
        // Commits have whole seconds.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        let ended = stage.run(&["resume"]);
        assert_eq!(fault(&stage, &ended), None, "{damage}");
        assert_eq!(stage.git(&listing), published, "{damage}");
        assert_eq!(stage.git_in(&hub, &listing).trim(), published, "{damage}");
    }
}

#[test]
fn a_controller_killed_at_any_git_command_of_merging_and_publishing_ends_done_when_resumed() {
    let (calm, git) = stage();
    calm.run_task().expect(0);
    let verbs = git.lines("verbs");
    // Merging begins after the last worktree was filled; notes are written afterwards.
    let merge = verbs.iter().rposition(|verb| verb == "merge-tree").unwrap();
    let first = verbs[..merge].iter().rposition(|verb| verb == "read-tree").unwrap() + 2;
    for verb in ["commit-tree", "merge-tree", "update-ref", "pack-objects", "index-pack"] {
        assert!(verbs[first - 1..].iter().any(|other| other == verb), "{verb}: {verbs:?}");
    }
    let numbers: Vec<usize> = (first..=verbs.len()).collect();
    let one = |number: usize| {
        let (stage, git) = stage();
        // Git's parent is the controller.
        git.does("kill -9 $PPID; kill -9 $$");
        git.strike_at(number);
        let killed = stage.run_task();
        let what = format!("command {number}, {:?}", git.lines("struck"));
        if git.lines("struck").is_empty() || killed.code == 0 {
            return Some(format!("{what}: the controller was not killed: {}", killed.said()));
        }
        let mut ended = stage.run(&["resume"]);
        // The last commands only describe a run that is done already.
        if stage.state_json()["current_state"] == "DONE"
            && ended.said().contains("nothing to resume")
        {
            ended.code = 0;
        }
        fault(&stage, &ended).map(|fault| format!("{what}: {fault}"))
    };
    let (left, right) = numbers.split_at(numbers.len() / 2);
    let faults = std::thread::scope(|scope| {
        let other = scope.spawn(|| right.iter().copied().filter_map(one).collect::<Vec<_>>());
        [left.iter().copied().filter_map(one).collect(), other.join().unwrap()].concat()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

/// A run that was stopped while its builder worked.
fn stopped() -> (Stage, FaultyGit) {
    let (stage, git) = stage();
    let endless = "- step: build\n  attempt: 1\n  do: [{ run: \"sleep 600\" }]\n";
    stage.agents(&[endless, BUILDS, APPROVES]);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_for_step("BUILD");
    stage.run(&["stop", "--now"]).expect(0);
    run.wait().expect(2);
    (stage, git)
}

#[test]
fn a_start_that_git_hinders_once_goes_on_and_one_that_it_hinders_always_rests() {
    let (calm, git) = stopped();
    let before = git.lines("verbs").len();
    calm.run(&["resume"]).expect(0);
    let verbs = git.lines("verbs");
    // A start is over when its first worktree is filled.
    let boot = verbs[before..].iter().take_while(|verb| *verb != "read-tree");
    let boot: BTreeSet<String> = boot.cloned().collect();
    assert!(boot.len() > 3, "{boot:?}");
    let mut rested = 0;
    for verb in &boot {
        let (hindered, git) = stopped();
        git.strike_once(verb);
        let ended = hindered.run(&["resume"]);
        assert_eq!(fault(&hindered, &ended), None, "{verb} once");
        let (stage, git) = stopped();
        // A `git add` that refuses may be the fault of the agent's files; one that is killed never is.
        git.does(if verb == "add" { "kill -9 $$" } else { "exit 128" });
        git.strike_always(verb);
        let ended = stage.run(&["resume"]);
        // Some of its uses are a matter of convenience, and the run is done without them.
        if ended.code != 0 {
            assert_eq!(ended.code, 2, "{verb} always: {}", ended.said());
            let said = ended.said();
            assert!(
                said.contains("autopilot doctor") || said.contains("autopilot resume"),
                "{said}"
            );
            git.heal(verb);
            let ended = stage.run(&["resume"]);
            assert_eq!(fault(&stage, &ended), None, "{verb} always, then mended");
            rested += 1;
        }
    }
    assert!(rested > 2, "only {rested} of {boot:?} rested");
}
