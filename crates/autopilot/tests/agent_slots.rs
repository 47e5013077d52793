//! Agents see their slots at the path at which gates see their rooms, wherever the slots really are.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::plan::{self, PLAN_MD, outside, says, task, waits_for};
use autopilot_testkit::stage::{APPROVES, Stage, text};
use std::fs;
use std::path::PathBuf;

#[path = "warm/ground.rs"]
mod ground;

use ground::{agents, run, shell_stage};

/// What a builder may write besides its slot.
fn stamps(stage: &Stage) -> String {
    let dir = outside(stage, "");
    fs::create_dir_all(&dir).unwrap();
    format!("sandbox: {{ write: [\"{}\"] }}\ncommands: {{ tests: sh test.sh }}\n", text(dir))
}

/// The state directory of the repository.
fn state(stage: &Stage) -> PathBuf {
    let entries = fs::read_dir(stage.state()).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<PathBuf> = entries.filter(|path| path.join("slots").is_dir()).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap()
}

/// The path at which programs in jails of this repository see their worktrees.
fn seen(stage: &Stage) -> String {
    text(state(stage).join("work/tree"))
}

/// A stage whose gates say where they are, and a builder that says so too before it does `more`.
fn telling_stage(more: &str, config: &str) -> Stage {
    let stage = shell_stage("echo \"gate at $(pwd -P)\"\n", "");
    stage.config(&format!("{}{config}", stamps(&stage)));
    let told = text(outside(&stage, "agent"));
    let build = format!(
        "(pwd -P; echo $PWD; git rev-parse --show-toplevel) >> {told}; echo done >> app.txt; {more}"
    );
    agents(&stage, &build, "true");
    stage
}

fn told(stage: &Stage) -> Vec<String> {
    let text = fs::read_to_string(outside(stage, "agent")).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn an_agent_and_a_gate_work_at_the_same_path() {
    let stage = telling_stage("echo in $PWD/src/x", "");
    run(&stage).expect(0).says(&["DONE"]);
    let place = seen(&stage);
    assert_eq!(told(&stage), [place.clone(), place.clone(), place.clone()]);
    let logs = stage.texts_of("logs/validation_tests");
    assert!(logs.contains(&format!("gate at {place}\n")), "{logs}");
    assert!(!logs.contains("/slots/"), "{logs}");
    // The files are in the slot, and nothing is at the path outside.
    assert!(state(&stage).join("slots/s0/app.txt").exists());
    assert_eq!(fs::read_dir(place).unwrap().count(), 0);
    // A person has nothing at that path, so what the agent said of it is told as the person knows it.
    let events = stage.texts_of("build/events.jsonl");
    assert!(events.contains("in src/x") && !events.contains("/work/tree"), "{events}");
    let shown = stage.run(&["show", "say-done"]).expect(0).out;
    assert!(!shown.contains("/work/tree"), "{shown}");
}

#[test]
fn without_a_place_of_their_own_agents_work_in_their_slots_as_they_are() {
    for config in ["gates: { warm: off }\n", "worktrees: { keep: always }\n", "poor"] {
        let poor = config == "poor";
        let mut stage = telling_stage("true", if poor { "" } else { config });
        if poor {
            stage.without_namespaces();
        }
        run(&stage).expect(0).says(&["DONE"]);
        let slot = text(state(&stage).join("slots/s0"));
        assert_eq!(told(&stage), [slot.clone(), slot.clone(), slot], "{config}");
    }
}

#[test]
fn without_our_jail_agents_work_in_their_slots_as_they_are() {
    for mode in ["off", "bwrap"] {
        let stage = telling_stage("true", "");
        let dir = text(outside(&stage, ""));
        stage.config(&format!(
            "sandbox: {{ mode: {mode}, write: [\"{dir}\"] }}\ncommands: {{ tests: sh test.sh }}\n"
        ));
        run(&stage).expect(0).says(&["DONE"]);
        let slot = text(state(&stage).join("slots/s0"));
        assert_eq!(told(&stage), [slot.clone(), slot.clone(), slot], "{mode}");
    }
}

#[test]
fn a_directory_of_the_base_is_renamed_by_git_and_by_hand() {
    let stage =
        telling_stage("git mv lib kit && mv kit tools && git add -A && git mv tools lib2", "");
    run(&stage).expect(0).says(&["DONE"]);
    let branch = plan::branch(&stage);
    assert_eq!(stage.git(&["show", &format!("{branch}:lib2/one.sh")]), "echo one");
}

#[test]
fn the_preparation_of_a_slot_runs_where_its_agent_will() {
    let stage = telling_stage("true", "");
    let config = stamps(&stage);
    stage.config(&format!("{config}worktrees: {{ setup: \"pwd -P > left-prepared\" }}\n"));
    let build =
        format!("cat left-prepared > {}; echo done >> app.txt", text(outside(&stage, "agent")));
    agents(&stage, &build, "true");
    run(&stage).expect(0).says(&["DONE"]);
    assert_eq!(told(&stage), [seen(&stage)]);
}

#[test]
fn two_agents_at_once_see_each_its_own_slot_at_the_path() {
    let wanted = plan::plan(&["a", "b"].map(|name| task(name, &[])));
    let stage = shell_stage("true\n", "");
    stage.config(&format!("{}orchestrator: {{ max_workers: 2 }}\n", stamps(&stage)));
    stage.write("plan.md", PLAN_MD);
    let (log, told) = (text(outside(&stage, "log")), text(outside(&stage, "agent")));
    fs::write(outside(&stage, "log"), "").unwrap();
    let wait = waits_for(&stage, "began", 2);
    let look = format!(
        "echo $AUTOPILOT_TASK_ID > $AUTOPILOT_TASK_ID.txt; echo began >> {log}; {wait}; \
         echo $(pwd -P) $(ls | grep -x -e a.txt -e b.txt) >> {told}"
    );
    let builds = format!(
        "
- step: build
  do: [{{ run: {look:?} }}, {{ answer: {{ changed_files: [x], notes: x }} }}]
"
    );
    stage.agents(&[&says(&wanted), &builds, APPROVES]);
    stage.run(&["run", "plan.md"]).expect(0);
    let mut lines = self::told(&stage);
    lines.sort();
    let place = seen(&stage);
    assert_eq!(lines, [format!("{place} a.txt"), format!("{place} b.txt")]);
    plan::merged_once_each(&stage, &["a", "b"]);
}

#[test]
fn a_killed_controller_leaves_neither_mount_nor_process_and_its_work_is_taken_up() {
    let stage = telling_stage("true", "");
    let (go, began) = (text(outside(&stage, "go")), text(outside(&stage, "began")));
    let build = format!(
        "[ -e half.txt ] || echo half > half.txt; pwd -P > {began}; \
         n=0; while [ ! -e {go} ] && [ $n -lt 1200 ]; do n=$((n+1)); sleep 0.1; done; \
         cat half.txt >> app.txt; echo done >> app.txt"
    );
    agents(&stage, &build, "true");
    let started = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_until("the agent is at work", |stage| outside(stage, "began").exists());
    started.signal("KILL");
    started.wait();
    stage.wait_until("nobody is left", |stage| stage.survivors().is_empty());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&seen(&stage)), "{mounts}");
    assert_eq!(fs::read_dir(seen(&stage)).unwrap().count(), 0);
    fs::write(outside(&stage, "go"), "").unwrap();
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    assert_eq!(fs::read_to_string(outside(&stage, "began")).unwrap().trim(), seen(&stage));
    let branch = plan::branch(&stage);
    assert_eq!(stage.git(&["show", &format!("{branch}:half.txt")]), "half");
}
