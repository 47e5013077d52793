//! The processes that a killed supervisor leaves behind: this process inherits them and ends them.
//!
//! Agents always begin in a session of their own, and nothing can enter ours from there; the
//! programs we start ourselves stay in ours. So a direct child in a foreign session was not started
//! by us but inherited. It must also be younger than the lost supervisor, which spares children
//! that this process already had when it was executed.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use nix::sys::prctl;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use super::tree;
use crate::proc::{self, Process};

/// How long the inherited processes may take to disappear.
const SWEEP_TIME_MAX: Duration = Duration::from_secs(10);

const PAUSE: Duration = Duration::from_millis(5);

/// Makes orphans below this process its children. [`super::spawn`] does it too.
pub fn become_subreaper() {
    // The call fails only on kernels before 3.4.
    let _ = prctl::set_child_subreaper(true);
}

/// Runs [`sweep`] on a thread that may block.
pub(super) async fn sweep_later(since: u64) -> u32 {
    tokio::task::spawn_blocking(move || sweep(since)).await.unwrap_or(u32::MAX)
}

/// Ends every inherited process tree that began at `since` (clock ticks after boot) or later.
/// Returns how many processes could not be ended.
pub fn sweep(since: u64) -> u32 {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let started = Instant::now();
    let mut empty_passes = 0;
    while empty_passes < 2 {
        let strays = inherited(since);
        if strays.is_empty() {
            empty_passes += 1;
        } else if started.elapsed() > SWEEP_TIME_MAX {
            return u32::try_from(strays.len()).unwrap_or(u32::MAX);
        } else {
            empty_passes = 0;
            tree::kill_round(|| inherited(since));
            reap(&strays);
        }
        std::thread::sleep(PAUSE);
    }
    0
}

fn inherited(since: u64) -> Vec<Process> {
    let us = nix::unistd::getpid().as_raw();
    let Some(session) = proc::read(us).map(|process| process.session) else { return Vec::new() };
    let table = proc::all();
    let is_root = |process: &&Process| {
        process.parent == us && process.session != session && process.id.start_time >= since
    };
    let mut found = Vec::new();
    for root in table.iter().filter(is_root) {
        found.push(*root);
        found.extend(proc::below(&table, root.id.pid));
    }
    found
}

/// Waits for the strays one by one: `waitpid(-1)` would steal the status of children that others
/// wait for.
fn reap(strays: &[Process]) {
    let us = nix::unistd::getpid().as_raw();
    for stray in strays.iter().filter(|stray| stray.parent == us) {
        let _ = waitpid(Pid::from_raw(stray.id.pid), Some(WaitPidFlag::WNOHANG));
    }
}
