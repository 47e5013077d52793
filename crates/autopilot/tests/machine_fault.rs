//! Faults of the machine and of Autopilot's own tools, injected for real: git that is killed or
//! fails, a supervisor that is killed, a disk that is full, read-only or out of inodes. No task may
//! pay for them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::faulty_git::FaultyGit;
use autopilot_testkit::small_disk::{Fill, SmallDisk};
use autopilot_testkit::stage::{APPROVES, BUILDS, Ended, Stage};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_autopilot"))
}

/// A builder that does the task, and something else the first time. Not before the run is under
/// way: what is refused then has cost nothing yet.
fn builds_and(stage: &Stage, command: &str) {
    let build = |first: &str, run: &str| {
        format!(
            "- step: [build, fix]\n  {first}do:\n    - run: \"{run}; printf 'start\\ndone\\n' > \
             app.txt\"\n    - answer: {{ changed_files: [app.txt], notes: x }}\n"
        )
    };
    stage.agents(&[&build("attempt: 1\n  ", command), &build("", "true"), APPROVES]);
    stage.config("commands: { tests: sh test.sh }\nsandbox: { mode: off }\n");
}

/// What is wrong, unless the task is done, its commit is on the branch, and it paid for nothing.
fn fault(stage: &Stage, ended: &Ended) -> Option<String> {
    let (state, task) = (stage.state_json(), stage.first_task());
    let paid = (&task["retries"], &task["iteration"]);
    if ended.code != 0 || state["current_state"] != "DONE" || paid != (&0.into(), &1.into()) {
        return Some(format!("exit {}, {paid:?}: {}", ended.code, ended.said()));
    }
    let branches =
        stage.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/autopilot"]);
    let run = branches.lines().find(|name| name.contains("/run-")).unwrap();
    let made = stage.git(&["show", &format!("{run}:app.txt")]);
    if made != "start\ndone" {
        return Some(format!("it made {made:?}"));
    }
    (!stage.survivors().is_empty()).then(|| format!("left behind: {:?}", stage.survivors()))
}

/// Autopilot reads and writes no object and no ref itself.
const GIT_ALONE: &[(&str, &str)] = &[("AUTOPILOT_GIT_ALONE", "1")];

/// The git commands of a run that nothing disturbs.
fn verbs_of(variables: &[(&str, &str)]) -> BTreeSet<String> {
    let mut calm = stage();
    variables.iter().for_each(|(name, value)| calm.set(name, value));
    let git = FaultyGit::on(&mut calm);
    calm.run_task().expect(0);
    git.lines("verbs").into_iter().collect()
}

#[test]
fn a_git_command_that_is_killed_or_fails_once_costs_the_task_nothing() {
    // Once with git alone, once with what autopilot does by itself where it can.
    let (alone, helped) = (verbs_of(GIT_ALONE), verbs_of(&[]));
    for verb in
        ["pack-objects", "index-pack", "merge-tree", "commit-tree", "update-ref", "read-tree"]
    {
        assert!(alone.contains(verb), "{verb} is not in {alone:?}");
    }
    for verb in ["pack-objects", "index-pack", "add", "update-ref", "read-tree"] {
        assert!(helped.contains(verb), "{verb} is not in {helped:?}");
    }
    assert!(!helped.contains("commit-tree"), "{helped:?}");
    let try_all = |how: &str, variables: &[(&str, &str)], verbs: &BTreeSet<String>| {
        let one = |verb: &String| {
            let mut stage = stage();
            variables.iter().for_each(|(name, value)| stage.set(name, value));
            let git = FaultyGit::on(&mut stage);
            git.does(how);
            builds_and(&stage, &format!("touch '{}/{verb}.once'", git.dir().display()));
            let ended = stage.run_task();
            let what = format!("{verb} {how}, struck: {:?}", git.lines("struck"));
            fault(&stage, &ended).map(|fault| format!("{what}: {fault}"))
        };
        verbs.iter().filter_map(one).collect::<Vec<String>>()
    };
    let faults = std::thread::scope(|scope| {
        let other = scope.spawn(|| try_all("exit 128", GIT_ALONE, &alone));
        let killed = "kill -9 $$";
        let here = [try_all(killed, GIT_ALONE, &alone), try_all(killed, &[], &helped)].concat();
        [here, other.join().unwrap()].concat()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn a_publication_that_always_fails_rests_the_run_and_the_task_is_done_when_git_is_mended() {
    let mut stage = stage();
    let git = FaultyGit::on(&mut stage);
    // Published is what is packed for the user's repository, after the merge.
    builds_and(&stage, &format!("touch '{}/index-pack.always'", git.dir().display()));
    let rested = stage.run_task().expect(2);
    let rested = rested.says(&["git failed in Autopilot's own repository", "autopilot resume"]);
    assert_eq!(stage.state_json()["current_state"], "PAUSED", "{}", rested.said());
    assert_eq!(stage.first_task()["retries"], 0);
    git.heal("index-pack");
    let ended = stage.run(&["resume"]);
    assert_eq!(fault(&stage, &ended), None);
}

/// A command that kills its supervisor the first time: the nearest ancestor that is one.
fn kills_its_supervisor(stage: &Stage) -> String {
    let mark = stage.folder().join("killed").display().to_string();
    let script = stage.folder().join("kill.sh");
    let text = format!(
        "[ -e '{mark}' ] && exit 0\ntouch '{mark}'\npid=$$\nwhile [ \"$pid\" -gt 1 ]; do\n  \
         if tr '\\0' ' ' < /proc/$pid/cmdline | grep -q __exec; then kill -9 $pid; sleep 60; fi\n  \
         pid=$(grep PPid /proc/$pid/status | cut -f2)\ndone\nexit 3\n"
    );
    fs::write(&script, text).unwrap();
    format!("sh '{}'", script.display())
}

#[test]
fn a_killed_supervisor_costs_the_task_nothing() {
    // Of a builder.
    let built = stage();
    builds_and(&built, &kills_its_supervisor(&built));
    let ended = built.run_task();
    assert_eq!(fault(&built, &ended), None);
    assert!(ended.said().contains("supervisor"), "{}", ended.said());
    // Of the tests, in the clean checkout: not the base's, which have no line that says done.
    let tested = stage();
    builds_and(&tested, "true");
    let tests = format!(
        "commands: {{ tests: \"grep -q done app.txt && {}; sh test.sh\" }}\nsandbox: {{ mode: off \
         }}\n",
        kills_its_supervisor(&tested)
    );
    tested.config(&tests);
    let ended = tested.run_task();
    assert_eq!(fault(&tested, &ended), None);
    assert!(ended.said().contains("supervisor"), "{}", ended.said());
}

fn small_disk(stage: &Stage, options: &str) -> SmallDisk {
    SmallDisk::at(&stage.state(), options)
}

/// The binary with these arguments, on this disk.
fn on_disk(disk: &SmallDisk, stage: &Stage, args: &[&str]) -> Command {
    let plain = stage.command(args);
    let mut command = disk.inside(env!("CARGO_BIN_EXE_autopilot"));
    // Whoever enters a mount namespace starts at its root.
    command.arg("-C").arg(stage.root()).args(args).env_clear().stdin(Stdio::null());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// A builder that waits for a sign while the test does something to the machine.
fn builds_after_a_sign(stage: &Stage) -> (PathBuf, PathBuf) {
    let (here, go) = (stage.folder().join("here"), stage.folder().join("go"));
    let wait = format!(
        "touch '{}'; while [ ! -e '{}' ]; do sleep 0.05; done",
        here.display(),
        go.display()
    );
    builds_and(stage, &wait);
    (here, go)
}

#[test]
fn a_disk_that_is_full_or_out_of_inodes_for_a_while_costs_the_task_nothing() {
    let fills = [("size=192m", Fill::Bytes), ("size=192m,nr_inodes=3000", Fill::Inodes)];
    for (options, fill) in fills {
        let stage = stage();
        let disk = small_disk(&stage, options);
        let (here, go) = builds_after_a_sign(&stage);
        let run = stage.start_command(on_disk(&disk, &stage, &["run", "tasks/say-done.md"]));
        stage.wait_until("the builder is at work", |_| here.exists());
        disk.fill(fill);
        fs::write(&go, "").unwrap();
        // The journal is on that disk too: where it can't be written, the run rests at once.
        stage.wait_until("it is noticed", |_| {
            let err = run.err();
            err.contains("next try") || err.contains("autopilot resume")
        });
        disk.empty();
        let mut ended = run.wait();
        if ended.code == 2 {
            ended = stage.start_command(on_disk(&disk, &stage, &["resume"])).wait();
        }
        assert_eq!(fault(&stage, &ended), None, "{options}");
    }
}

#[test]
fn a_builder_that_fails_when_a_full_disk_has_room_again_costs_the_task_nothing() {
    let stage = stage();
    let disk = small_disk(&stage, "size=192m,nr_inodes=3000");
    let (here, go) = (stage.folder().join("here"), stage.folder().join("go"));
    let (sign, wait) = (here.display(), go.display());
    let breaks = format!(
        "- step: build\n  attempt: 1\n  do:\n    - run: \"touch '{sign}'; while [ ! -e '{wait}' ]; do sleep \
         0.05; done\"\n    - exit: 1\n"
    );
    stage.agents(&[&breaks, BUILDS, APPROVES]);
    stage.config("commands: { tests: sh test.sh }\nsandbox: { mode: off }\n");
    let run = stage.start_command(on_disk(&disk, &stage, &["run", "tasks/say-done.md"]));
    stage.wait_until("the builder is at work", |_| here.exists());
    disk.fill(Fill::Inodes);
    // The disk is looked at many times a second.
    std::thread::sleep(std::time::Duration::from_millis(700));
    disk.empty();
    fs::write(&go, "").unwrap();
    let ended = run.wait();
    assert_eq!(fault(&stage, &ended), None);
    assert!(ended.said().contains("no inodes left"), "{}", ended.said());
}

#[test]
fn a_read_only_disk_refuses_a_resume_and_costs_nothing() {
    let stage = stage();
    let disk = small_disk(&stage, "size=192m");
    let (here, go) = builds_after_a_sign(&stage);
    let run = stage.start_command(on_disk(&disk, &stage, &["run", "tasks/say-done.md"]));
    stage.wait_until("the builder is at work", |_| here.exists());
    stage.start_command(on_disk(&disk, &stage, &["stop"])).wait().expect(0);
    fs::write(&go, "").unwrap();
    run.wait().expect(2);
    let remount = |how: &str| assert!(disk.remount(how), "{how}");
    remount("ro");
    let refused = stage.start_command(on_disk(&disk, &stage, &["resume"])).wait();
    refused.expect(2).says(&["Read-only file system", "autopilot resume"]);
    remount("rw");
    let ended = stage.start_command(on_disk(&disk, &stage, &["resume"])).wait();
    assert_eq!(fault(&stage, &ended), None);
}

#[test]
fn too_many_open_files_for_a_while_cost_the_task_nothing() {
    let stage = stage();
    let (here, go) = builds_after_a_sign(&stage);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_until("the builder is at work", |_| here.exists());
    let open_files_max = |count: &str| {
        let pid = run.pid().to_string();
        let status = Command::new("prlimit")
            .args(["--pid", &pid, &format!("--nofile={count}:")])
            .status()
            .unwrap();
        assert!(status.success(), "prlimit {count}");
    };
    open_files_max("8");
    fs::write(&go, "").unwrap();
    stage.wait_until("it is noticed", |_| run.err().contains("too many files are open"));
    open_files_max("1024");
    let ended = run.wait();
    assert_eq!(fault(&stage, &ended), None);
}

/// A run of two tasks, one on top of the other, that was stopped between them.
fn stopped_between_two_tasks() -> (Stage, PathBuf) {
    let stage = stage();
    for name in ["one", "two"] {
        stage.task(name, &format!("Make {name}"));
        fs::rename(stage.path(&format!("tasks/{name}.md")), stage.path(&format!("{name}.md")))
            .unwrap();
        let text =
            stage.read(&format!("{name}.md")).replace("- app.txt\n", &format!("- {name}.txt\n"));
        stage.write(&format!("queue/{name}.md"), &text);
    }
    let build = "
- step: [build, fix]
  do:
    - run: \"echo made > $AUTOPILOT_TASK_ID.txt; test $AUTOPILOT_TASK_ID = one || sleep 600\"
    - answer: { changed_files: [], notes: x }
";
    stage.agents(&[build, APPROVES]);
    let run = stage.start(&["run", "--queue", "queue/"]);
    stage.wait_until("the second is built", |stage| {
        stage.state_json()["tasks"][1]["state"] == "BUILD"
    });
    stage.run(&["stop", "--now"]).expect(0);
    run.wait().expect(2);
    let build = "
- step: [build, fix]
  do:
    - run: \"echo made > $AUTOPILOT_TASK_ID.txt\"
    - answer: { changed_files: [], notes: x }
";
    stage.agents(&[build, APPROVES]);
    let id = stage.read(".git/autopilot/id");
    let hub = stage.state().join(id.trim()).join("hub.git");
    (stage, hub)
}

#[test]
fn a_branch_that_vanished_or_is_damaged_is_restored_before_anything_is_built_on_it() {
    for damage in ["gone", "empty", "garbage", "zeros", "behind"] {
        let (stage, hub) = stopped_between_two_tasks();
        let list =
            stage.git_in(&hub, &["for-each-ref", "--format=%(refname)", "refs/heads/autopilot"]);
        let run = list.lines().find(|name| name.contains("/run-")).unwrap().to_owned();
        let file = hub.join(&run);
        match damage {
            "gone" => {
                stage.git_in(&hub, &["update-ref", "-d", &run]);
            }
            "empty" => fs::write(&file, "").unwrap(),
            "garbage" => fs::write(&file, "not a commit\n").unwrap(),
            "zeros" => fs::write(&file, format!("{}\n", "1".repeat(40))).unwrap(),
            _ => {
                stage.git_in(&hub, &["update-ref", &run, &format!("{run}~1")]);
            }
        }
        let ended = stage.run(&["resume"]);
        assert_eq!(ended.code, 0, "{damage}: {}", ended.said());
        assert!(ended.said().contains("was restored at"), "{damage}: {}", ended.said());
        let short = run.trim_start_matches("refs/heads/");
        for name in ["one.txt", "two.txt"] {
            assert_eq!(stage.git(&["show", &format!("{short}:{name}")]), "made", "{damage}");
        }
    }
}

/// A run one of whose branches vanishes from the hub while the merge is published, after which only
/// the end is left.
fn loses_its_branch_at_the_end() -> Stage {
    let mut stage = stage();
    let git = FaultyGit::on(&mut stage);
    builds_and(&stage, "true");
    let branch = "refs/heads/autopilot/say-done";
    // Once: what is said of the whole is published later, when the branches were looked at.
    git.does(&format!(
        "for f in '{}'/*/hub.git/{branch}; do [ ! -e \"$f\" ] || [ -e '{gone}' ] || {{ rm \"$f\"; touch '{gone}'; }}; done",
        stage.state().display(),
        gone = git.dir().join("gone").display(),
    ));
    git.strike_always("index-pack");
    stage
}

fn branch_in_hub(stage: &Stage) -> String {
    let hub = stage.state().join(stage.read(".git/autopilot/id").trim()).join("hub.git");
    let branch = ["for-each-ref", "--format=%(refname)", "refs/heads/autopilot/say-done"];
    stage.git_in(&hub, &branch)
}

#[test]
fn a_branch_that_vanishes_at_the_very_end_is_restored_before_done_is_said_and_that_is_told() {
    let stage = loses_its_branch_at_the_end();
    let ended = stage.run_task().expect(0).says(&["was restored at"]);
    assert!(!branch_in_hub(&stage).is_empty(), "{}", ended.said());
}

#[test]
fn whoever_is_killed_when_done_is_on_record_has_checked_the_branch_before() {
    let mut stage = loses_its_branch_at_the_end();
    stage.set("AUTOPILOT_FAILPOINT", "end.durable:1");
    let killed = stage.run_task();
    assert!(!branch_in_hub(&stage).is_empty(), "{}", killed.said());
    stage.unset("AUTOPILOT_FAILPOINT");
    stage.run(&["resume"]).expect(0);
    assert_eq!(stage.state_json()["current_state"], "DONE");
}

#[test]
fn a_branch_that_cannot_be_checked_at_the_end_rests_the_run_and_a_resume_calls_it_done() {
    let mut stage = stage();
    let git = FaultyGit::on(&mut stage);
    builds_and(&stage, "true");
    // After the transfer only the last look at the branches lists commits.
    git.does(&format!(
        "[ $verb = rev-list ] && kill -9 $$; touch '{}/rev-list.always'",
        git.dir().display()
    ));
    git.strike_always("index-pack");
    let rested = stage.run_task().expect(2).says(&["autopilot resume"]);
    assert_ne!(stage.state_json()["current_state"], "DONE", "{}", rested.said());
    assert!(rested.said().contains("the run is not called done"), "{}", rested.said());
    git.heal("index-pack");
    git.heal("rev-list");
    stage.run(&["resume"]).expect(0);
    assert_eq!(stage.state_json()["current_state"], "DONE");
}

#[test]
fn a_branch_that_somebody_moved_elsewhere_stops_the_run_and_is_named() {
    let (stage, hub) = stopped_between_two_tasks();
    let list = stage.git_in(&hub, &["for-each-ref", "--format=%(refname)", "refs/heads/autopilot"]);
    let run = list.lines().find(|name| name.contains("/run-")).unwrap().to_owned();
    let tree = stage.git_in(&hub, &["rev-parse", &format!("{run}^{{tree}}")]);
    let other = stage.git_in(&hub, &["commit-tree", "-m", "another", &tree]);
    stage.git_in(&hub, &["update-ref", &run, &other]);
    let refused = stage.run(&["resume"]);
    assert_ne!(refused.code, 0, "{}", refused.said());
    assert!(refused.said().contains(&run), "{}", refused.said());
    assert_eq!(stage.git_in(&hub, &["rev-parse", &run]), other, "it is left as it is");
}

/// A reviewer that is gone when its turn comes waits for its program, and nobody pays for it.
#[track_caller]
fn waits_for_its_program(takes_away: &str) {
    let stage = stage();
    let (agent, shell) = (stage.folder().join("reviewer"), stage.folder().join("shell"));
    std::os::unix::fs::symlink("/bin/sh", &shell).unwrap();
    let answer = r#"{"verdict":"APPROVE","summary":"fine","issues":[]}"#;
    let text = format!("#!{}\ncat >/dev/null\necho '{answer}'\n", shell.display());
    fs::write(&agent, text).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let here = stage.folder().display();
    builds_and(&stage, &format!("cd {here} && {takes_away}; cd - >/dev/null"));
    stage.write(
        ".autopilot/config.yml",
        &format!(
            "repo: {{ base_branch: main }}\nbuilder: {{ mode: script, script: agents.yml }}\n\
             reviewer: {{ mode: command, command: '{}' }}\nplanner: {{ mode: script, script: \
             agents.yml }}\ncommands: {{ tests: sh test.sh }}\nsandbox: {{ mode: off }}\nuat: {{ \
             generate: auto }}\n",
            agent.display()
        ),
    );
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_until("the reviewer is missed", |stage| {
        stage.texts_of("logs/controller.log").contains("not installed")
    });
    for name in ["reviewer", "shell"] {
        let away = stage.folder().join(format!("{name}.away"));
        if away.symlink_metadata().is_ok() {
            fs::rename(away, stage.folder().join(name)).unwrap();
        }
    }
    let ended = run.wait();
    assert_eq!(fault(&stage, &ended), None);
}

#[test]
fn an_agent_whose_program_is_gone_for_a_moment_is_waited_for() {
    waits_for_its_program("mv reviewer reviewer.away");
}

#[test]
fn an_agent_whose_interpreter_is_gone_for_a_moment_is_waited_for() {
    waits_for_its_program("mv shell shell.away");
}
