//! What a run leaves when its controller and its supervisors are killed in the same instant, and
//! what the next process makes of it.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_host::proc::{self, ProcessIdentity};
use autopilot_testkit::plan::outside;
use autopilot_testkit::stage::{APPROVES, BUILDS, Stage, Started, text};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
const RUN: [&str; 2] = ["run", "tasks/say-done.md"];

/// A project whose tests start a daemon that leaves its session, its parents and its environment,
/// and then wait for a file. `line` is an argument by which the test knows the daemon.
fn stage(mode: &str) -> (Stage, String) {
    let stage = Stage::new(BINARY);
    fs::create_dir(stage.folder().join("stamps")).unwrap();
    let go = text(outside(&stage, "go"));
    let line = format!("9{}.{}", std::process::id(), mode.len());
    let daemon = format!("(setsid env -i setsid sleep {line} >/dev/null 2>&1 &)");
    let tests = format!("[ -e {go} ] || {{ {daemon}; echo waiting; sleep {line}; }}\n");
    stage.write("test.sh", &tests);
    stage.commit("tests that leave a daemon");
    stage.agents(&[BUILDS, APPROVES]);
    stage.config(&format!("commands: {{ tests: sh test.sh }}\nsandbox: {{ mode: {mode} }}\n"));
    (stage, line)
}

fn with_argument(line: &str) -> Vec<i32> {
    let has = |pid: &i32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == line.as_bytes())
    };
    let alive = proc::all().into_iter().filter(|process| !process.is_zombie());
    alive.map(|process| process.id.pid).filter(has).collect()
}

/// The entries of the register, with their paths.
fn entries(stage: &Stage) -> Vec<(PathBuf, Value)> {
    let state = fs::read_dir(stage.state()).unwrap().flatten().map(|entry| entry.path());
    let register = state.map(|repo| repo.join("processes")).find(|path| path.is_dir());
    let files = fs::read_dir(register.unwrap()).unwrap().flatten().map(|entry| entry.path());
    let read = |path: PathBuf| {
        let value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        (path, value)
    };
    files.map(read).collect()
}

/// Starts the run and kills everything that could clean up once the daemon is there.
fn killed(stage: &Stage, line: &str) {
    let run: Started = stage.start(&RUN);
    stage.wait_until("the tests started their daemon", |_| with_argument(line).len() >= 2);
    let supervisors: Vec<String> =
        entries(stage).iter().map(|(_, tree)| tree["supervisor"]["pid"].to_string()).collect();
    assert!(!supervisors.is_empty());
    // Stopped first, so that no supervisor notices the death of the controller.
    let signal = |name: &str, pids: &[String]| {
        assert!(Command::new("kill").args(["-s", name]).args(pids).status().unwrap().success());
    };
    signal("STOP", &supervisors);
    run.signal("KILL");
    signal("KILL", &supervisors);
    run.wait();
}

#[test]
fn p22_after_a_kill_of_controller_and_supervisors_nothing_is_left_in_any_sandbox() {
    for (mode, namespaces) in [("auto", true), ("landlock", false), ("bwrap", true), ("off", true)]
    {
        let (mut stage, line) = stage(mode);
        if !namespaces {
            stage.without_namespaces();
        }
        killed(&stage, &line);
        let ends_itself = namespaces && mode != "off";
        if ends_itself {
            // A PID namespace ends with its init, which dies with its supervisor.
            stage.wait_until("the namespace ended", |_| with_argument(&line).is_empty());
        } else {
            let left = with_argument(&line);
            assert!(!left.is_empty(), "{mode}: the daemon outlives them");
            let doctor = stage.run(&["doctor"]);
            assert!(doctor.out.contains("left over from an earlier run"), "{}", doctor.out);
            assert!(left.iter().all(|pid| doctor.out.contains(&pid.to_string())), "{mode}");
        }
        fs::write(outside(&stage, "go"), "").unwrap();
        let resumed = stage.run(&["resume"]).expect(0).says(&["DONE"]);
        assert_eq!(with_argument(&line), [0; 0], "{mode}: {}", resumed.said());
        assert_eq!(entries(&stage), [], "{mode}: nothing runs any more");
        if !ends_itself {
            resumed.says(&["ended processes of an interrupted attempt"]);
        }
    }
}

/// A process that has nothing to do with us.
struct Stranger(Child);

impl Stranger {
    fn new() -> Stranger {
        Stranger(Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn id(&self) -> ProcessIdentity {
        proc::read(i32::try_from(self.0.id()).unwrap()).unwrap().id
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// Puts numbers of a stranger where those of our own were, as if they had been given to it since.
fn forge(stage: &Stage, forged: &Value) {
    for (path, mut tree) in entries(stage) {
        for (name, value) in forged.as_object().unwrap() {
            tree[name] = value.clone();
        }
        fs::write(path, tree.to_string()).unwrap();
    }
}

#[test]
fn p14_c16_nobody_is_ended_for_having_a_number_that_was_ours() {
    let mut stranger = Stranger::new();
    let ProcessIdentity { pid, start_time } = stranger.id();
    let later = json!({ "pid": pid, "start_time": start_time - 1 });
    let same = json!({ "pid": pid, "start_time": start_time });
    // A number given again, and after a reboot even with the same start.
    let reused = json!({ "supervisor": later, "program": later });
    let rebooted = json!({ "supervisor": same, "program": same, "table": "another boot" });
    for forged in [reused, rebooted] {
        let (stage, line) = stage("landlock");
        killed(&stage, &line);
        let daemons: Vec<String> = with_argument(&line).iter().map(i32::to_string).collect();
        forge(&stage, &forged);
        fs::write(outside(&stage, "go"), "").unwrap();
        stage.run(&["resume"]).expect(0);
        assert!(stranger.0.try_wait().unwrap().is_none(), "{forged}");
        // What the forged table hides was ours, and the test started it.
        if !with_argument(&line).is_empty() {
            Command::new("kill").arg("-9").args(&daemons).status().unwrap();
        }
    }
}

#[test]
fn what_a_version_without_a_register_left_is_found_by_its_environment() {
    let (stage, line) = stage("off");
    killed(&stage, &line);
    let (register, _) = entries(&stage).remove(0);
    fs::remove_dir_all(register.parent().unwrap()).unwrap();
    let run = stage.status()["run_id"].as_str().unwrap().to_owned();
    let mut old = Command::new("sleep");
    let mut old = old.arg("600").env("AUTOPILOT_RUN_ID", &run).spawn().unwrap();
    let left: Vec<String> = with_argument(&line).iter().map(i32::to_string).collect();
    fs::write(outside(&stage, "go"), "").unwrap();
    stage.run(&["resume"]).expect(0).says(&["ended processes of an interrupted attempt"]);
    assert_eq!(old.wait().unwrap().code(), None, "it was killed");
    if !left.is_empty() {
        Command::new("kill").arg("-9").args(&left).status().unwrap();
    }
}
