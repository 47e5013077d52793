//! The controller killed at every git command of merging and publishing, and git that hinders a start.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::faulty_git::FaultyGit;
use autopilot_testkit::stage::{APPROVES, BUILDS, Ended, Stage};
use std::collections::BTreeSet;

/// A builder whose work is the same when it goes on with what an attempt left that was cut short.
const WRITES: &str = "
- step: [build, fix]
  do:
    - run: \"printf 'start\\\\ndone\\\\n' > app.txt\"
    - answer: { changed_files: [app.txt], notes: wrote it }
";

fn stage() -> (Stage, FaultyGit) {
    let mut stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    let git = FaultyGit::on(&mut stage);
    stage.agents(&[WRITES, APPROVES]);
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
        let made = stage.git(&["show", &format!("{branch}:app.txt")]);
        if made != "start\ndone" {
            return Some(format!("{branch} does not have the work but {made:?}"));
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
    // Here git does everything; where autopilot writes by itself, the next test kills it.
    let stage = || {
        let (mut stage, git) = stage();
        stage.set("AUTOPILOT_GIT_ALONE", "1");
        (stage, git)
    };
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

/// How many objects and refs the run of a task may write; beyond that something loops.
const WRITES_MAX: usize = 60;

#[test]
fn a_controller_killed_at_any_write_of_its_own_ends_done_when_resumed() {
    // An object that has no name yet, a ref that is locked, and one that was just moved.
    let at_all = |point: &str| {
        let mut faults = Vec::new();
        for number in 1..WRITES_MAX {
            let (mut stage, _git) = stage();
            stage.set("AUTOPILOT_FAILPOINT", &format!("{point}:{number}"));
            let ended = stage.run_task();
            if ended.code == 0 {
                let count = number - 1;
                return (count, faults);
            }
            stage.unset("AUTOPILOT_FAILPOINT");
            // The hub itself is made before there is a run.
            let has_begun = ended.said().contains("started on branch");
            let resumed = if has_begun { stage.run(&["resume"]) } else { stage.run_task() };
            let hub = stage.state().join(stage.read(".git/autopilot/id").trim()).join("hub.git");
            stage.git_in(&hub, &["fsck", "--strict", "--no-dangling"]);
            let locks = ["locks", "tmp_obj_"].map(|name| left_in(&hub, name)).concat();
            let left = (!locks.is_empty()).then(|| format!("left in the hub: {locks:?}"));
            faults.extend(
                fault(&stage, &resumed).or(left).map(|fault| format!("{point} {number}: {fault}")),
            );
        }
        (WRITES_MAX, faults)
    };
    let points = ["object.written", "ref.locked", "ref.moved"];
    let ends = std::thread::scope(|scope| {
        let threads = points.map(|point| scope.spawn(move || at_all(point)));
        threads.map(|thread| thread.join().unwrap())
    });
    for (point, (count, faults)) in points.iter().zip(ends) {
        assert!(faults.is_empty(), "{}", faults.join("\n\n"));
        assert!((4..WRITES_MAX).contains(&count), "{point} was passed {count} times");
    }
}

/// The files of a hub that a dead process left: temporary ones, and locks of refs.
fn left_in(hub: &std::path::Path, name: &str) -> Vec<std::path::PathBuf> {
    let is_left = |path: &std::path::PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        file.starts_with(name) || (name == "locks" && file.ends_with(".lock"))
    };
    autopilot_testkit::stage::files(hub).into_iter().filter(is_left).collect()
}

/// A run that was stopped while its builder worked.
fn stopped() -> (Stage, FaultyGit) {
    let (stage, git) = stage();
    let endless = "- step: build\n  attempt: 1\n  do: [{ run: \"sleep 600\" }]\n";
    stage.agents(&[endless, WRITES, APPROVES]);
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
    // A start is over when its first worktree is filled, or captured where it needed no filling.
    let is_boot = |verb: &&String| !matches!(verb.as_str(), "read-tree" | "ls-files");
    let boot = verbs[before..].iter().take_while(is_boot);
    let boot: BTreeSet<String> = boot.cloned().collect();
    assert!(boot.len() > 3, "{boot:?}");
    let mut rested = 0;
    for verb in &boot {
        let (hindered, git) = stopped();
        git.strike_once(verb);
        let ended = hindered.run(&["resume"]);
        assert_eq!(fault(&hindered, &ended), None, "{verb} once");
        let (stage, git) = stopped();
        git.does("exit 128");
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
