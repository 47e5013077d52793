//! The process table as `/proc` shows it, and signals that cannot reach a stranger.
//!
//! A process is named by (pid, start time): a pid alone may belong to somebody else a moment later.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

/// A process that cannot be confused with a later one of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The process number.
    pub pid: i32,
    /// The start in clock ticks after boot, as in field 22 of `/proc/<pid>/stat`.
    pub start_time: u64,
}

/// A row of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// The process itself.
    pub id: ProcessIdentity,
    /// The number of the parent process.
    pub parent: i32,
    /// The number of the session (`setsid`).
    pub session: i32,
    /// The letter of field 3: `R`, `S`, `D`, `T`, `Z`, …
    pub state: u8,
    /// User and system time of the process and of the children it has waited for.
    pub cpu_ticks: u64,
}

impl Process {
    /// Returns whether the process has ended and only its entry is left.
    pub fn is_zombie(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// Returns the process of that number, if there is one.
pub fn read(pid: i32) -> Option<Process> {
    parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Returns every process that can be seen. One that ends during the scan is left out.
pub fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(read)
        .collect()
}

/// Returns the children of `root`, their children and so on, without `root`; parents come before
/// children.
pub fn descendants(root: i32) -> Vec<Process> {
    below(&all(), root)
}

/// Returns the part of `table` that descends from `root`.
pub fn below(table: &[Process], root: i32) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in table {
        children.entry(process.parent).or_default().push(*process);
    }
    let mut seen = BTreeSet::from([root]);
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            // The table is no snapshot: a reused pid may close a circle in it.
            if seen.insert(child.id.pid) {
                found.push(*child);
                parents.push(child.id.pid);
            }
        }
    }
    found
}

/// Sends `signal` to exactly that process; `false` when it is gone.
pub fn signal(target: ProcessIdentity, signal: Signal) -> io::Result<bool> {
    let pidfd = match open_pidfd(target.pid) {
        Ok(fd) => fd,
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(false),
        Err(error) => return Err(error),
    };
    // The descriptor is bound to whoever has the number now; only after this check is it the target.
    if read(target.pid).map(|found| found.id) != Some(target) {
        return Ok(false);
    }
    signal_pidfd(&pidfd, signal)
}

/// Returns a descriptor that becomes readable when the process ends.
pub fn open_pidfd(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: a system call without pointers; the result is checked before it is owned.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given this descriptor to us, close-on-exec, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn signal_pidfd(pidfd: &OwnedFd, signal: Signal) -> io::Result<bool> {
    // SAFETY: the info pointer may be null by contract of the call.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal as i32,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    if sent == 0 {
        return Ok(true);
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
        error => Err(error),
    }
}

/// Returns whether the environment the process was started with holds exactly `entry`
/// (`NAME=value`).
pub fn has_entry(pid: i32, entry: &str) -> bool {
    let is_it = |found: &[u8]| found == entry.as_bytes();
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(is_it))
}

/// Returns the name of the program that the process runs, cut to 15 bytes by the kernel.
pub fn name(pid: i32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned())
}

/// Returns the name of the process table that numbers belong to: of this boot, and of this PID
/// namespace.
pub fn table_name() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), namespace.display())
}

/// Returns the mark that the process was started with or inherited, see
/// [`crate::register::new_mark`].
pub fn mark(pid: i32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    // The hard limit: an unprivileged process can't raise it again.
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn parse(pid: i32, stat: &[u8]) -> Option<Process> {
    // The name in parentheses may itself hold spaces and parentheses.
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 2..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<i64>().ok();
    let ticks = |index: usize| number(index).and_then(|value| u64::try_from(value).ok());
    Some(Process {
        id: ProcessIdentity { pid, start_time: ticks(19)? },
        parent: i32::try_from(number(1)?).ok()?,
        session: i32::try_from(number(3)?).ok()?,
        state: *fields.first()?.as_bytes().first()?,
        cpu_ticks: ticks(11)? + ticks(12)? + ticks(13).unwrap_or(0) + ticks(14).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn sleeper() -> std::process::Child {
        Command::new("sleep").arg("100").stdin(Stdio::null()).spawn().unwrap()
    }

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let stat = b"7 (a) R 1 (b) S 4 7 3 0 -1 0 0 0 0 0 10 20 1 2 20 0 1 0 999 0 0";
        let found = parse(7, stat).unwrap();
        assert_eq!((found.id.start_time, found.parent), (999, 4));
        assert_eq!(found.session, 3);
        assert_eq!((found.state, found.cpu_ticks), (b'S', 33));
    }

    #[test]
    fn our_child_is_among_our_descendants() {
        let mut child = sleeper();
        let pid = i32::try_from(child.id()).unwrap();
        let us = i32::try_from(std::process::id()).unwrap();
        assert!(descendants(us).iter().any(|process| process.id.pid == pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn p14_a_signal_meant_for_an_earlier_process_reaches_nobody() {
        let mut child = sleeper();
        let pid = i32::try_from(child.id()).unwrap();
        let real = read(pid).unwrap().id;
        let earlier = ProcessIdentity { start_time: real.start_time - 1, ..real };
        assert!(!signal(earlier, Signal::SIGKILL).unwrap());
        assert!(child.try_wait().unwrap().is_none());
        assert!(signal(real, Signal::SIGKILL).unwrap());
        child.wait().unwrap();
        assert!(!signal(real, Signal::SIGKILL).unwrap());
    }

    #[test]
    fn an_environment_entry_is_matched_whole() {
        let mut child = Command::new("sleep").arg("100").env("MARK", "run-1").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        // The environment is the old one until the exec is over.
        while fs::read(format!("/proc/{pid}/comm")).unwrap() != b"sleep\n" {
            std::thread::yield_now();
        }
        // The environment is empty until the new program's memory is set up.
        while fs::read(format!("/proc/{pid}/environ")).unwrap().is_empty() {
            std::thread::yield_now();
        }
        assert!(has_entry(pid, "MARK=run-1"));
        assert!(!has_entry(pid, "MARK=run-"));
        assert!(!has_entry(pid, "MARK=run-11"));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_circle_in_the_table_ends() {
        let process = |pid, parent| Process {
            id: ProcessIdentity { pid, start_time: 1 },
            parent,
            session: 1,
            state: b'S',
            cpu_ticks: 0,
        };
        let table = [process(2, 1), process(3, 2), process(2, 3)];
        assert_eq!(below(&table, 1).len(), 2);
    }
}
