//! The sweep at startup: it ends the processes that an earlier controller left behind, and nobody
//! else's.
//!
//! A process is ours by the exact environment entry it was started with.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::exec::kill_round;
use crate::proc::{self, Process, ProcessIdentity};

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

/// Kills the processes that were started with one of these environment entries (`NAME=value`), with
/// all descendants, until two passes find nothing.
pub fn sweep(markers: &[String]) -> Swept {
    let started = Instant::now();
    let mut swept = Swept::default();
    let mut empty_passes = 0;
    while empty_passes < 2 {
        let found = find(markers);
        if found.is_empty() {
            empty_passes += 1;
        } else if started.elapsed() > SWEEP_TIME_MAX {
            swept.left = found.iter().map(|process| process.id).collect();
            swept.killed.retain(|id| !swept.left.contains(id));
            break;
        } else {
            empty_passes = 0;
            swept.killed.extend(kill_round(|| find(markers)));
        }
        std::thread::sleep(PAUSE);
    }
    swept
}

fn find(markers: &[String]) -> Vec<Process> {
    let table = proc::all();
    let spared = spared(&table);
    let is_ours = |process: &Process| {
        markers.iter().any(|marker| proc::has_marker(process.id.pid, marker.as_bytes()))
    };
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let candidates = table.iter().filter(|process| !process.is_zombie());
    for root in candidates.filter(|process| !spared.contains(&process.id.pid) && is_ours(process)) {
        let tree = proc::below(&table, root.id.pid);
        for process in std::iter::once(*root).chain(tree) {
            if !process.is_zombie() && !spared.contains(&process.id.pid) && seen.insert(process.id)
            {
                found.push(process);
            }
        }
    }
    found
}

/// Returns this process and those it descends from, which are never killed: an agent may well have
/// started autopilot itself.
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
    use std::process::{Child, Command, Stdio};

    fn unique(name: &str) -> String {
        format!("AUTOPILOT_RUN_ID={name}-{}", std::process::id())
    }

    /// A shell that says when it is ready.
    fn start(marker: &str, script: &str) -> Child {
        let (name, value) = marker.split_once('=').unwrap();
        let mut child = Command::new("sh")
            .args(["-c", script])
            .env(name, value)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        child
    }

    #[test]
    fn a_marked_tree_is_ended_also_where_it_lost_the_marker() {
        let marker = unique("tree");
        let script = "trap '' TERM; env -i sleep 100 & echo ready; while :; do sleep 1; done";
        let mut child = start(&marker, script);
        let swept = sweep(&[marker]);
        assert!(swept.killed.len() >= 2 && swept.left.is_empty(), "{swept:?}");
        assert_eq!(child.wait().unwrap().code(), None);
    }

    #[test]
    fn p14_only_the_exact_marker_counts() {
        let marker = unique("exact");
        let mut child = start(&format!("{marker}1"), "echo ready; sleep 100; :");
        let id = proc::read(i32::try_from(child.id()).unwrap()).unwrap().id;
        assert_eq!(sweep(std::slice::from_ref(&marker)), Swept::default());
        assert!(child.try_wait().unwrap().is_none());
        let swept = sweep(&[format!("{marker}1")]);
        assert!(swept.killed.contains(&id));
        child.wait().unwrap();
    }

    #[test]
    fn this_process_and_its_ancestors_are_spared() {
        let us = nix::unistd::getpid().as_raw();
        let parent = nix::unistd::getppid().as_raw();
        let spared = spared(&proc::all());
        assert!([us, parent, 1].iter().all(|pid| spared.contains(pid)));
        // This process has every entry of its own environment.
        let (name, value) = std::env::vars().next().unwrap();
        let found = find(&[format!("{name}={value}")]);
        assert!(found.iter().all(|process| !spared.contains(&process.id.pid)), "{found:?}");
    }
}
