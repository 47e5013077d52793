//! The git commands of this process that run now, so that none outlives the process.

use std::collections::BTreeSet;
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::pump::END_GRACE;

/// The process groups, each named by its git.
static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn groups() -> MutexGuard<'static, BTreeSet<i32>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command that is on the list until this is dropped, which is to happen after it was waited for.
pub(super) struct ListedGit(i32);

impl Drop for ListedGit {
    fn drop(&mut self) {
        groups().remove(&self.0);
    }
}

/// Starts a command that leads a process group of its own. It is on the list from its first moment.
pub(super) fn spawn(command: &mut Command) -> io::Result<(Child, ListedGit)> {
    let mut groups = groups();
    let child = command.spawn()?;
    let group = i32::try_from(child.id()).unwrap_or(i32::MAX);
    groups.insert(group);
    drop(groups);
    Ok((child, ListedGit(group)))
}

/// Ends all git commands: asked first, so that they take their lock files with them, then killed.
/// While the returned guard lives, no other starts, and whoever waited for one waits on.
pub(crate) fn end_all() -> MutexGuard<'static, BTreeSet<i32>> {
    let groups = groups();
    let all = |signal: Option<Signal>| {
        groups
            .iter()
            .filter(|group| killpg(Pid::from_raw(**group), signal) != Err(Errno::ESRCH))
            .count()
    };
    let asked = Instant::now();
    all(Some(Signal::SIGTERM));
    while all(None) > 0 && asked.elapsed() < END_GRACE {
        std::thread::sleep(Duration::from_millis(5));
    }
    all(Some(Signal::SIGKILL));
    groups
}
