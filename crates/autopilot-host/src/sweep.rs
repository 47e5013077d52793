//! The sweep at startup: it ends the processes that an earlier controller left behind, and nobody
//! else's.
//!
//! [`OwnProcesses`] is the one place that says which processes are ours.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::exec::kill_round;
use crate::proc::{self, Process, ProcessIdentity};
use crate::register::RegisteredTree;

/// How long killed processes may take to disappear.
const SWEEP_TIME_MAX: Duration = Duration::from_secs(10);

const PAUSE: Duration = Duration::from_millis(5);

/// The result of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// The processes that were ended.
    pub killed: BTreeSet<ProcessIdentity>,
    /// The processes that did not end in time, to be named to a person.
    pub left: BTreeSet<ProcessIdentity>,
}

/// The rule by which a process is one of ours, while no controller is at work.
#[derive(Debug, Clone, Default)]
pub struct OwnProcesses {
    /// The registered trees. A process is ours by its number and start time, by the mark that it
    /// inherited, or by a session that is led by a registered program.
    pub trees: Vec<RegisteredTree>,
    /// Our own repository: a git process that outlived its controller would write beside ours, and
    /// nobody else works in it.
    pub git_dir: Option<PathBuf>,
    /// The environment entry (`NAME=value`) of programs that a version without a register started.
    pub entry: Option<String>,
}

impl OwnProcesses {
    /// Returns our processes with all their descendants, but not this process and those it
    /// descends from: an agent may well have started autopilot itself.
    pub fn find(&self) -> Vec<Process> {
        let table = proc::all();
        let spared = spared(&table);
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        let candidates = table.iter().filter(|process| !process.is_zombie());
        let is_root =
            |process: &&Process| !spared.contains(&process.id.pid) && self.is_ours(&table, process);
        for root in candidates.filter(is_root) {
            let tree = proc::below(&table, root.id.pid);
            for process in std::iter::once(*root).chain(tree) {
                let is_live = !process.is_zombie() && !spared.contains(&process.id.pid);
                if is_live && seen.insert(process.id) {
                    found.push(process);
                }
            }
        }
        found
    }

    fn is_ours(&self, table: &[Process], process: &Process) -> bool {
        let mark = proc::mark(process.id.pid);
        self.trees.iter().any(|tree| belongs(tree, table, process, mark))
            || self.is_our_git(process.id.pid)
            || self.entry.as_ref().is_some_and(|entry| proc::has_entry(process.id.pid, entry))
    }

    fn is_our_git(&self, pid: i32) -> bool {
        // A shell in which a person looks at the repository is not git.
        let has_dir = |dir: &PathBuf| proc::has_entry(pid, &format!("GIT_DIR={}", dir.display()));
        self.git_dir.as_ref().is_some_and(has_dir)
            && proc::name(pid).is_some_and(|name| name.starts_with("git"))
    }
}

fn belongs(tree: &RegisteredTree, table: &[Process], process: &Process, mark: Option<u64>) -> bool {
    if process.id == tree.supervisor || process.id == tree.program {
        return true;
    }
    if mark.is_some() && mark == tree.mark {
        return true;
    }
    // The number of a session whose leader is gone may have been given to somebody else's.
    let is_led = || table.iter().any(|leader| leader.id == tree.program);
    process.session == tree.program.pid && is_led()
}

/// Kills our processes until two passes find none.
pub fn sweep(ours: &OwnProcesses) -> Swept {
    let started = Instant::now();
    let mut swept = Swept::default();
    let mut empty_passes = 0;
    while empty_passes < 2 {
        let found = ours.find();
        if found.is_empty() {
            empty_passes += 1;
        } else if started.elapsed() > SWEEP_TIME_MAX {
            swept.left = found.iter().map(|process| process.id).collect();
            swept.killed.retain(|id| !swept.left.contains(id));
            break;
        } else {
            empty_passes = 0;
            swept.killed.extend(kill_round(|| ours.find()));
        }
        std::thread::sleep(PAUSE);
    }
    swept
}

/// Returns this process and those it descends from.
fn spared(table: &[Process]) -> BTreeSet<i32> {
    let mut spared = BTreeSet::from([1]);
    let mut pid = nix::unistd::getpid().as_raw();
    while spared.insert(pid) {
        match table.iter().find(|process| process.id.pid == pid) {
            Some(process) => pid = process.parent,
            None => break,
        }
    }
    spared
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    /// The daemon itself says that it is ready, so that it is in its own session by then.
    const DAEMON: &str = "setsid env -i setsid sh -c 'echo ready; exec sleep 100' & exec sleep 100";

    /// A shell that says when it is ready, started as a program is.
    fn start(script: &str, env: (&str, &str), mark: Option<u64>) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env(env.0, env.1).stdout(Stdio::piped());
        let prepare = move || {
            nix::unistd::setsid()?;
            match mark.map(crate::exec::limit::mark) {
                Some(None) => Err(std::io::Error::other("the mark is refused")),
                Some(Some(_)) | None => Ok(()),
            }
        };
        // SAFETY: two system calls.
        unsafe { command.pre_exec(prepare) };
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        child
    }

    fn id(child: &Child) -> ProcessIdentity {
        proc::read(i32::try_from(child.id()).unwrap()).unwrap().id
    }

    fn tree(program: ProcessIdentity, mark: Option<u64>) -> OwnProcesses {
        let supervisor = ProcessIdentity { pid: i32::MAX, start_time: 1 };
        let table = proc::table_name();
        let tree = RegisteredTree { table, supervisor, program, mark };
        OwnProcesses { trees: vec![tree], ..OwnProcesses::default() }
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_registered_tree_is_ended_with_all_it_started() {
        let script = "trap '' TERM; sleep 100 & echo ready; while :; do sleep 1; done";
        let mut child = start(script, ("A", "b"), None);
        let swept = sweep(&tree(id(&child), None));
        assert!(swept.killed.len() >= 2 && swept.left.is_empty(), "{swept:?}");
        assert_eq!(child.wait().unwrap().code(), None);
    }

    #[test]
    fn p22_a_daemon_without_session_parent_and_environment_is_found_by_its_mark() {
        let mark = crate::register::new_mark();
        let child = start(DAEMON, ("A", "b"), Some(mark));
        let program = id(&child);
        end(child);
        let unmarked = tree(program, None);
        assert_eq!(unmarked.find(), [], "its number, parent and session tell nothing");
        let swept = sweep(&tree(program, Some(mark)));
        // The second `setsid` forks, and may not have ended yet.
        assert!(matches!(swept.killed.len(), 1 | 2) && swept.left.is_empty(), "{swept:?}");
        assert_eq!(tree(program, Some(mark)).find(), []);
    }

    #[test]
    fn p14_a_process_of_the_same_number_but_another_start_is_a_stranger() {
        let child = start("sleep 100 & echo ready; sleep 100; :", ("A", "b"), None);
        let real = id(&child);
        let earlier = ProcessIdentity { start_time: real.start_time - 1, ..real };
        let mark = Some(crate::register::new_mark());
        assert_eq!(sweep(&tree(earlier, mark)), Swept::default());
        assert_eq!(id(&child), real, "it still lives");
        assert!(sweep(&tree(real, mark)).killed.len() >= 2);
        end(child);
    }

    #[test]
    fn programs_of_a_version_without_a_register_are_found_by_their_exact_entry() {
        let entry = format!("AUTOPILOT_RUN_ID=exact-{}", std::process::id());
        let (name, value) = entry.split_once('=').unwrap();
        let child = start("echo ready; sleep 100; :", (name, &format!("{value}1")), None);
        let of = |entry: &str| OwnProcesses { entry: Some(entry.into()), ..Default::default() };
        assert_eq!(sweep(&of(&entry)), Swept::default());
        assert!(sweep(&of(&format!("{entry}1"))).killed.contains(&id(&child)));
        end(child);
    }

    #[test]
    fn a_shell_that_names_our_repository_is_not_our_git() {
        let dir = tempfile::tempdir().unwrap();
        let hub = dir.path().to_str().unwrap();
        let child = start("echo ready; exec sleep 100", ("GIT_DIR", hub), None);
        let git =
            |git_dir: &str| OwnProcesses { git_dir: Some(git_dir.into()), ..Default::default() };
        assert_eq!(git(hub).find(), []);
        end(child);
        let mut git_child = Command::new("git")
            .args(["hash-object", "--stdin"])
            .env("GIT_DIR", hub)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = i32::try_from(git_child.id()).unwrap();
        while !proc::has_entry(pid, &format!("GIT_DIR={hub}"))
            || proc::name(pid).as_deref() != Some("git")
        {
            std::thread::yield_now();
        }
        assert_eq!(sweep(&git(hub)).killed.len(), 1);
        git_child.wait().unwrap();
    }

    #[test]
    fn this_process_and_its_ancestors_are_spared() {
        let us = nix::unistd::getpid().as_raw();
        let parent = nix::unistd::getppid().as_raw();
        let spared = spared(&proc::all());
        assert!([us, parent, 1].iter().all(|pid| spared.contains(pid)));
        let found = tree(proc::read(us).unwrap().id, None).find();
        assert!(found.iter().all(|process| !spared.contains(&process.id.pid)), "{found:?}");
    }
}
