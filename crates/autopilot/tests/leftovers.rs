//! Nothing is left that misleads: no half-written file after a kill, no stop file after the last step,
//! and files that could not be written are called out of date.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::stage::{APPROVES, BUILDS, Stage, files};
use std::fs;
use std::path::PathBuf;

fn stage() -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    stage.agents(&[BUILDS, APPROVES]);
    stage
}

fn half_written(stage: &Stage) -> Vec<PathBuf> {
    let places = [stage.state(), stage.path(".autopilot"), stage.path(".git/autopilot")];
    let mut found: Vec<PathBuf> = places.iter().flat_map(|place| files(place)).collect();
    found.retain(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.contains(".tmp") || name.starts_with("tmp_")
    });
    found
}

#[test]
fn no_half_written_file_is_left_after_a_kill_and_a_resume() {
    let mut crashes = 0;
    for passing in [1, 2, 4, 8, 16, 24] {
        let mut stage = stage();
        stage.set("AUTOPILOT_FAILPOINT", &format!("file.written:{passing}"));
        let killed = stage.run_task();
        stage.unset("AUTOPILOT_FAILPOINT");
        crashes += usize::from(killed.code != 0);
        // A kill before the run had begun leaves nothing to resume.
        if stage.run(&["resume"]).code != 0 && stage.first_task()["state"] != "DONE" {
            stage.run_task().expect(0);
        }
        assert_eq!(half_written(&stage), Vec::<PathBuf>::new(), "after kill {passing}");
    }
    assert!(crashes > 3, "only {crashes} kills");
}

#[test]
fn what_a_dead_process_was_writing_is_removed_wherever_it_was() {
    let stage = stage();
    stage.run_task().expect(0);
    let state = stage.state().join(stage.read(".git/autopilot/id").trim());
    let deep =
        ["own/s0", "inbox", "schemas", "sessions/a/b", "cache/agent/cargo", "cache/proof/r/npm"];
    for dir in [".", "hub.git", "hub.git/info", "tmp"].into_iter().chain(deep) {
        fs::create_dir_all(state.join(dir)).unwrap();
        // No process has this number.
        fs::write(state.join(dir).join(".a.json.4294967295.18e905e804b502fe.3.tmp"), "x").unwrap();
    }
    assert_eq!(half_written(&stage).len(), 10);
    stage.task("again", "Again");
    stage.run(&["run", "tasks/again.md"]).expect(0);
    assert_eq!(half_written(&stage), Vec::<PathBuf>::new());
}

#[test]
fn objects_that_a_killed_git_was_writing_are_removed_at_the_next_start() {
    let stage = stage();
    stage.run_task().expect(0);
    let hub = stage.state().join(stage.read(".git/autopilot/id").trim()).join("hub.git");
    for name in ["objects/pack/tmp_pack_abc", "objects/ab/tmp_obj_abc"] {
        fs::create_dir_all(hub.join(name).parent().unwrap()).unwrap();
        fs::write(hub.join(name), "x").unwrap();
    }
    stage.task("again", "Again");
    stage.run(&["run", "tasks/again.md"]).expect(0);
    assert_eq!(half_written(&stage), Vec::<PathBuf>::new());
}

#[test]
fn a_stop_that_comes_during_the_last_step_leaves_no_file() {
    for place in [".autopilot/AUTOPILOT_STOP", "AUTOPILOT_STOP"] {
        let mut stage = stage();
        // The files are looked at once a minute: the run is over before.
        stage.set("AUTOPILOT_LOOK_MS", "60000");
        let review = format!(
            "- step: uat_generate\n  do: [{{ run: \"touch '{}'\" }}, {{ answer: \"# Cases\\n1. x\\n\" }}]\n",
            stage.path(place).display()
        );
        stage.agents(&[&review, BUILDS, APPROVES]);
        stage.config("commands: { tests: sh test.sh }\nsandbox: { mode: off }\n");
        stage.run_task().expect(0);
        assert!(!stage.has(place), "{place} is left");
        stage.task("again", "Again");
        stage.unset("AUTOPILOT_LOOK_MS");
        stage.agents(&[BUILDS, APPROVES]);
        stage.run(&["run", "tasks/again.md"]).expect(0);
    }
}

#[test]
fn files_that_could_not_be_written_are_called_out_of_date() {
    let stage = stage();
    let blocks = format!(
        "- step: build\n  attempt: 1\n  do:\n    - run: \"cd '{}' && rm -f state.json && mkdir -p \
         state.json/x && sleep 4\"\n    - append: {{ app.txt: \"done\\n\" }}\n    - answer: {{ \
         changed_files: [app.txt], notes: x }}\n",
        stage.path(".autopilot").display()
    );
    stage.agents(&[&blocks, BUILDS, APPROVES]);
    stage.config("commands: { tests: sh test.sh }\nsandbox: { mode: off }\n");
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_until("status says so", |stage| {
        stage.run(&["status"]).expect(0).out.contains("is missing or can't be read")
    });
    let json = stage.status();
    assert!(json["stale_files"].as_str().unwrap().contains("state.json"), "{json}");
    let ended = run.wait().expect(0);
    let said = ended.said();
    assert!(said.contains("can't be written and are out of date"), "{said}");
    fs::remove_dir_all(stage.path(".autopilot/state.json")).unwrap();
    fs::write(stage.path(".autopilot/state.json"), "{\"run_id\": \"other\"}").unwrap();
    stage.wait_until("status says so", |stage| {
        stage.run(&["status"]).expect(0).out.contains("are out of date")
    });
}
