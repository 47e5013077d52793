//! Git of the controller's own: a stop, a second signal and the step's time limit end it as they end
//! an agent, and a worktree is measured before git reads it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::stage::{APPROVES, BUILDS, Ended, Stage, Started, files};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A worktree of any size is taken: git is at work for half an hour.
const UNCAPPED: &str =
    "commands: { tests: sh test.sh }\nworktrees: { bytes_max: 1000000000000000 }\n";

fn stage(first_build: &str, config: &str) -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    let build = format!(
        "- step: build\n  attempt: 1\n  do:\n    - run: \"{first_build}\"\n    - append: {{ app.txt: \
         \"done\\n\" }}\n    - answer: {{ changed_files: [app.txt], notes: x }}\n"
    );
    let fix = "- step: fix\n  do:\n    - answer: { changed_files: [], notes: x }\n";
    stage.agents(&[&build, fix, BUILDS, APPROVES]);
    stage.config(config);
    stage
}

/// The processes that have the hub of this stage as their git directory, by their command lines.
fn gits(stage: &Stage) -> Vec<String> {
    let marker = format!("GIT_DIR={}", stage.state().display());
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let with_marker = processes.filter(|process| {
        let environ = fs::read(process.join("environ")).unwrap_or_default();
        environ.split(|b| *b == 0).any(|pair| pair.starts_with(marker.as_bytes()))
    });
    let line = |process: PathBuf| {
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ")
    };
    with_marker.map(line).collect()
}

/// Lock files, and temporary files that are not git's own objects.
fn left_behind(stage: &Stage) -> Vec<PathBuf> {
    let mut found = files(&stage.state());
    found.extend(files(&stage.path(".autopilot")));
    found.retain(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        // The controller's own lock is a file that stays, and nobody holds it.
        name != "autopilot.lock" && (name.ends_with(".lock") || name.ends_with(".tmp"))
    });
    found
}

/// Waits until git reads the large file.
fn reading(stage: &Stage) -> Started {
    let run = stage.start(&["run", "tasks/say-done.md"]);
    // Not before the file is there: worktrees of the preflight are captured too.
    let is_there =
        |stage: &Stage| files(&stage.state()).iter().any(|path| path.ends_with("data.bin"));
    stage.wait_until("the file is there", is_there);
    stage.wait_until("git reads the file", |stage| {
        gits(stage).iter().any(|line| line.contains(" add -A"))
    });
    run
}

fn rests_at_once(stage: &Stage, run: Started, asked: Instant) -> Ended {
    let ended = run.wait().expect(2);
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(3), "it took {took:?}");
    assert!(gits(stage).is_empty(), "{:?}", gits(stage));
    assert!(stage.survivors().is_empty(), "{:?}", stage.survivors());
    assert_eq!(left_behind(stage), Vec::<PathBuf>::new());
    ended
}

fn is_done(stage: &Stage, ended: &Ended, rounds: u32) {
    assert_eq!(ended.code, 0, "{}", ended.said());
    let task = stage.first_task();
    assert_eq!((&task["retries"], &task["iteration"]), (&0.into(), &rounds.into()));
    assert_eq!(stage.git(&["show", "autopilot/say-done:app.txt"]), "start\ndone");
}

/// The directory of the only thing that was set aside.
fn kept(stage: &Stage) -> PathBuf {
    let id = stage.read(".git/autopilot/id");
    let folder = stage.state().join(id.trim()).join("oversize/say-done");
    let kept: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [only] = kept.as_slice() else { panic!("{kept:?}") };
    only.clone()
}

#[test]
fn stop_now_and_a_second_signal_end_a_git_that_would_take_half_an_hour() {
    let mut stopped = stage("truncate -s 100G data.bin", UNCAPPED);
    let run = reading(&stopped);
    let asked = Instant::now();
    stopped.run(&["stop", "--now"]).expect(0);
    rests_at_once(&stopped, run, asked);
    // The file is still in the worktree; what can't be saved in time does not keep the run from
    // going on.
    stopped.set("AUTOPILOT_SAVE_MS", "1500");
    let ended = stopped.run(&["resume"]);
    is_done(&stopped, &ended, 1);
    let kept = kept(&stopped);
    assert!(ended.said().contains(&kept.display().to_string()), "{}", ended.said());
    assert_eq!(fs::metadata(kept.join("data.bin")).unwrap().len(), 100 << 30);

    let signalled = stage("truncate -s 100G data.bin", UNCAPPED);
    let run = reading(&signalled);
    run.signal("TERM");
    signalled.wait_until("the first is heard", |_| run.err().contains("stopping"));
    let asked = Instant::now();
    run.signal("TERM");
    rests_at_once(&signalled, run, asked);
}

#[test]
fn the_time_limit_of_the_step_ends_git_and_the_round_has_failed() {
    let limits = "loop: { step_timeouts_sec: { build: 3 } }\n";
    let mut stage = stage("truncate -s 100G data.bin", &format!("{UNCAPPED}{limits}"));
    stage.set("AUTOPILOT_SAVE_MS", "1500");
    stage.agents(&[
        "- step: build\n  do:\n    - run: \"truncate -s 100G data.bin\"\n    - answer: { \
         changed_files: [app.txt], notes: x }\n",
        "- step: fix\n  do:\n    - append: { app.txt: \"done\\n\" }\n    - answer: { \
         changed_files: [app.txt], notes: x }\n",
        APPROVES,
    ]);
    let ended = stage.run_task();
    is_done(&stage, &ended, 2);
    assert!(gits(&stage).is_empty(), "{:?}", gits(&stage));
    assert_eq!(fs::metadata(kept(&stage).join("data.bin")).unwrap().len(), 100 << 30);
    let told = stage.texts_of("fix");
    assert!(told.contains("could not be read in the time there was"), "{told}");
}

#[test]
fn files_that_are_too_large_are_left_out_and_kept_and_the_builder_is_told() {
    let config = "commands: { tests: sh test.sh }\n";
    let made = "mkdir -p out && truncate -s 100G out/data.bin && truncate -s 3G test.sh && \
                truncate -s 90G ignored.log && echo '*.bin' > .git/info/exclude";
    let stage = stage(made, config);
    stage.write(".gitignore", "*.log\n");
    stage.commit("ignore logs");
    let began = Instant::now();
    let ended = stage.run_task();
    assert!(began.elapsed() < Duration::from_secs(60), "nothing of it is read");
    is_done(&stage, &ended, 2);
    let kept = kept(&stage);
    for (name, bytes) in [("out/data.bin", 100 << 30), ("test.sh", 3 << 30)] {
        assert_eq!(fs::metadata(kept.join(name)).unwrap().len(), bytes, "{name}");
    }
    assert!(!kept.join("ignored.log").exists(), "what git ignores is not measured");
    let base = stage.git(&["show", "main:test.sh"]);
    assert_eq!(stage.git(&["show", "autopilot/say-done:test.sh"]), base, "as it was");
    let told = stage.texts_of("fix");
    for text in ["out/data.bin (107.4 GB)", "worktrees.bytes_max", ".gitignore"] {
        assert!(told.contains(text), "{text} is not in {told}");
    }
    let listed = stage.run(&["recover"]).expect(0).said();
    assert!(listed.contains(&kept.display().to_string()), "{listed}");
    stage.run(&["gc", "--oversize"]).expect(0);
    assert!(!kept.exists());
}

#[test]
fn a_worktree_with_too_many_files_is_kept_as_a_whole_and_the_builder_is_told() {
    let config = "commands: { tests: sh test.sh }\nworktrees: { files_max: 100 }\n";
    let stage = stage("true", config);
    let fix = "- step: fix\n  do:\n    - append: { app.txt: \"done\\n\" }\n    - answer: { \
               changed_files: [app.txt], notes: x }\n";
    stage.agents(&[
        "- step: build\n  do:\n    - run: \"mkdir many; touch $(seq -f many/%g 200)\"\n    - append: \
         { app.txt: \"done\\n\" }\n    - answer: { changed_files: [app.txt], notes: x }\n",
        fix,
        APPROVES,
    ]);
    let ended = stage.run_task();
    is_done(&stage, &ended, 2);
    let kept = kept(&stage);
    assert!(kept.join("many/200").exists() && kept.join("app.txt").exists());
    let told = stage.texts_of("fix");
    for text in ["201 new and changed files", "many (200 files)", "worktrees.files_max"] {
        assert!(told.contains(text), "{text} is not in {told}");
    }
    assert!(told.contains(&kept.display().to_string()), "{told}");
}
