//! What is left when controller and supervisor are killed in the same instant, and who finds it.

use crate::world::{
    Fence, block_on, daemon, end, fence, mark, marked, ready, said, shell, show, start_registering,
    supervisor_of, until,
};
use autopilot_host::exec::{self, SpawnError};
use autopilot_host::proc;
use autopilot_host::register::ProcessRegister;
use autopilot_host::sweep::{OwnProcesses, sweep};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::Path;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn registered(dir: &Path) -> OwnProcesses {
    OwnProcesses { trees: ProcessRegister::at(dir).trees(), ..OwnProcesses::default() }
}

pub fn both_killed() {
    for _ in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        let mark = mark();
        let script = format!("{}; sleep {mark} & echo ready; sleep {mark}", daemon(&mark));
        let mut controller = start_registering(&script, None, Some(dir.path()));
        until("the daemon", 5 * SECOND, || marked(&mark).len() >= 5);
        let trees = ProcessRegister::at(dir.path()).trees();
        assert_eq!(trees.len(), 1, "{trees:?}");
        // The supervisor is stopped first, so that it can't notice the death of the controller.
        let supervisor = Pid::from_raw(trees[0].supervisor.pid);
        kill(supervisor, Signal::SIGSTOP).unwrap();
        controller.kill().unwrap();
        kill(supervisor, Signal::SIGKILL).unwrap();
        controller.wait().unwrap();
        until("the program dies with its supervisor", SECOND, || {
            proc::read(trees[0].program.pid).is_none_or(|found| found.is_zombie())
        });
        if fence() == Fence::Jail {
            // A PID namespace ends with its init, which dies with its supervisor.
            until("the namespace ended", SECOND, || marked(&mark).is_empty());
            assert_eq!(sweep(&registered(dir.path())).left.len(), 0);
            continue;
        }
        let daemons = marked(&mark);
        assert!(!daemons.is_empty(), "they left session, environment and parent: {daemons:?}");
        let swept = sweep(&registered(dir.path()));
        assert!(swept.killed.len() >= daemons.len() && swept.left.is_empty(), "{swept:?}");
        assert_eq!(marked(&mark), [0; 0]);
    }
}

pub fn registered_first() {
    let dir = tempfile::tempdir().unwrap();
    let entries = dir.path().join("processes");
    let mut launch = shell(&format!("ls {} && echo ready; sleep 100", entries.display()));
    launch.register = Some(ProcessRegister::at(&entries));
    std::fs::create_dir(&entries).unwrap();
    show(&mut launch, &entries);
    block_on(async {
        // The first thing that the program does is to look for its own entry.
        let (control, child) = ready(launch).await;
        let tree = ProcessRegister::at(&entries).trees().remove(0);
        let agent = proc::read(child.agent().pid).unwrap();
        let supervisor = supervisor_of(agent.id.pid);
        assert_eq!(tree.supervisor, proc::read(supervisor).unwrap().id);
        // The end of a jail's init is the end of the whole jail.
        let root = if fence() == Fence::Jail { agent.parent } else { agent.id.pid };
        assert_eq!(tree.program, proc::read(root).unwrap().id);
        assert_eq!(tree.mark, proc::mark(child.agent().pid));
        control.kill();
        let seen = end(child).await.output.stdout.text.clone();
        assert!(seen.starts_with(&format!("{supervisor}-")), "{seen}");
    });
}

pub fn unregistered() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("processes"), "a file").unwrap();
    let ran = dir.path().join("ran");
    let mark = mark();
    let mut launch = shell(&format!("touch {}; sleep {mark}", ran.display()));
    launch.register = Some(ProcessRegister::at(dir.path().join("processes")));
    block_on(async {
        let error = exec::spawn(launch).await.err().unwrap();
        assert!(matches!(error, SpawnError::Register { .. }), "{error}");
    });
    assert!(!ran.exists() && marked(&mark).is_empty());
}

pub fn mark_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut launch =
        shell("prlimit --locks=7 true && echo shed; grep 'Max file locks' /proc/self/limits");
    launch.register = Some(ProcessRegister::at(dir.path()));
    let said = said(launch);
    assert!(!said.contains("shed"), "{said}");
    let hard = said.split_ascii_whitespace().nth(4).and_then(|mark| mark.parse::<u64>().ok());
    assert!(hard.is_some_and(|mark| mark > 1 << 60), "{said}");
}

pub fn struck_out() {
    let dir = tempfile::tempdir().unwrap();
    let register = ProcessRegister::at(dir.path());
    block_on(async {
        for script in ["exit 3", "kill -9 $$", "kill -9 $PPID; sleep 1"] {
            let mut launch = shell(script);
            launch.register = Some(register.clone());
            // A supervisor that is killed at once has not even told that its program runs.
            if let Ok((_, child)) = exec::spawn(launch).await {
                end(child).await;
            }
            assert_eq!(register.trees(), [], "{script}");
        }
        let mut missing = crate::world::launch("/no/such/program", &[]);
        missing.register = Some(register.clone());
        assert!(exec::spawn(missing).await.is_err());
        assert_eq!(register.trees(), []);
    });
}
