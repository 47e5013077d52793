//! Ending a whole process tree, also one that forks while it is being killed.

use std::collections::BTreeSet;

use nix::sys::signal::Signal;

use crate::proc::{self, Process, ProcessIdentity};

/// How many passes look for processes born while the others were being stopped.
const STOP_ROUNDS_MAX: usize = 32;

/// Stops, then kills, every process that `find` returns; returns those that were sent the kill.
///
/// A stopped process cannot fork, so after a pass that finds nobody new the kill reaches all; a
/// tree that outruns the passes is killed as far as it is known, and the caller comes again.
pub fn kill_round(find: impl Fn() -> Vec<Process>) -> BTreeSet<ProcessIdentity> {
    let mut stopped = BTreeSet::new();
    for _ in 0..STOP_ROUNDS_MAX {
        let fresh: Vec<Process> = find()
            .into_iter()
            .filter(|process| !process.is_zombie() && !stopped.contains(&process.id))
            .collect();
        if fresh.is_empty() {
            break;
        }
        for process in fresh {
            // Refusal (another user's process) shows as a survivor later.
            let _ = proc::signal(process.id, Signal::SIGSTOP);
            stopped.insert(process.id);
        }
    }
    stopped
        .into_iter()
        .filter(|id| matches!(proc::signal(*id, Signal::SIGKILL), Ok(true)))
        .collect()
}
