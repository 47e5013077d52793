//! One look at a process tree, taken only when somebody asks.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::proc::{self, Process};

/// The place and the extent of a look.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// The agent's process; its descendants are included.
    pub root: i32,
    /// The directory whose newest write counts.
    pub dir: Option<&'a Path>,
    /// How many entries of the directory may be looked at.
    pub entries_max: usize,
    /// A time in clock ticks after boot. A child that began later is a tool at work; earlier ones
    /// are servers that an agent keeps for its whole life.
    pub tools_since: u64,
}

/// The activity of a process tree at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LifeSample {
    /// The time of the look on a monotonic clock, from any origin.
    pub at_ms: u64,
    /// The CPU time that all living processes have used.
    pub cpu_ms: u64,
    /// The bytes that all living processes have read and written.
    pub io_bytes: u64,
    /// How many processes are alive.
    pub processes: usize,
    /// Whether a tool is at work.
    pub tool_child: bool,
    /// How many TCP connections are established.
    pub connections: usize,
    /// Whether the agent itself is stopped by a signal.
    pub stopped: bool,
    /// When something below the directory was last changed.
    pub newest_write: Option<SystemTime>,
}

impl LifeSample {
    /// Looks at the process tree and the directory. `at_ms` is the time of the look.
    pub fn take(look: Look<'_>, at_ms: u64) -> LifeSample {
        let table = proc::all();
        let root = table.iter().find(|process| process.id.pid == look.root).copied();
        let below = proc::below(&table, look.root);
        let living: Vec<Process> =
            root.into_iter().chain(below.iter().copied()).filter(|one| !one.is_zombie()).collect();
        let is_tool = |one: &Process| !one.is_zombie() && one.id.start_time >= look.tools_since;
        let ticks: u64 = living.iter().map(|one| one.cpu_ticks).sum();
        LifeSample {
            at_ms,
            cpu_ms: ticks.saturating_mul(1000) / ticks_per_second(),
            io_bytes: living.iter().map(|one| io_bytes(one.id.pid)).sum(),
            processes: living.len(),
            tool_child: below.iter().any(is_tool),
            connections: connections(&living),
            stopped: root.is_some_and(|root| root.state == b'T'),
            newest_write: look.dir.and_then(|dir| newest_write(dir, look.entries_max)),
        }
    }

    /// Returns one line for a person.
    pub fn words(&self) -> String {
        let LifeSample { processes, cpu_ms, io_bytes, connections, .. } = self;
        let processes_word = if *processes == 1 { "process" } else { "processes" };
        let connections_word = if *connections == 1 { "connection" } else { "connections" };
        format!(
            "{processes} {processes_word}, {cpu_ms} ms of CPU, {io_bytes} bytes read and written, \
             {connections} {connections_word}"
        )
    }
}

/// Returns the start time, in clock ticks after boot, of a process that began `ago`.
pub fn ticks_before(ago: Duration) -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME);
    let Ok(now) = now else { return u64::MAX };
    let then = Duration::from(now).saturating_sub(ago);
    u64::try_from(then.as_millis()).unwrap_or(u64::MAX).saturating_mul(ticks_per_second()) / 1000
}

fn ticks_per_second() -> u64 {
    let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten();
    ticks.and_then(|ticks| u64::try_from(ticks).ok()).filter(|ticks| *ticks > 0).unwrap_or(100)
}

/// Returns the bytes through read and write calls, pipes and sockets included.
fn io_bytes(pid: i32) -> u64 {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/io")) else { return 0 };
    let field = |name: &str| -> u64 {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
            .unwrap_or_default()
    };
    field("rchar:") + field("wchar:")
}

/// Counts the established TCP connections that a process of the tree holds.
fn connections(processes: &[Process]) -> usize {
    let Some(first) = processes.first() else { return 0 };
    let established = established(first.id.pid);
    if established.is_empty() {
        return 0;
    }
    let held: BTreeSet<u64> =
        processes.iter().flat_map(|process| sockets(process.id.pid)).collect();
    held.intersection(&established).count()
}

fn sockets(pid: i32) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    entries
        .filter_map(|entry| {
            let target = fs::read_link(entry.ok()?.path()).ok()?;
            target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
        })
        .collect()
}

fn established(pid: i32) -> BTreeSet<u64> {
    let tables = ["tcp", "tcp6"].map(|name| format!("/proc/{pid}/net/{name}"));
    tables
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|text| text.lines().skip(1).filter_map(established_inode).collect::<Vec<_>>())
        .collect()
}

/// Returns the socket of a line of `/proc/net/tcp`, if its state is 01, established.
fn established_inode(line: &str) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace();
    (fields.nth(3)? == "01").then_some(())?;
    fields.nth(5)?.parse().ok()
}

/// Returns the time of the newest change below `dir`, level by level, after at most `entries_max`
/// entries.
fn newest_write(dir: &Path, entries_max: usize) -> Option<SystemTime> {
    let mut newest = fs::symlink_metadata(dir).and_then(|found| found.modified()).ok();
    let mut left = entries_max;
    let mut dirs = VecDeque::from([dir.to_path_buf()]);
    while let Some(dir) = dirs.pop_front() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            if left == 0 {
                return newest;
            }
            left -= 1;
            let Ok(found) = entry.metadata() else { continue };
            newest = newest.max(found.modified().ok());
            if found.is_dir() {
                dirs.push_back(entry.path());
            }
        }
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn look(root: &Child) -> Look<'static> {
        let root = i32::try_from(root.id()).unwrap();
        Look { root, dir: None, entries_max: 0, tools_since: u64::MAX }
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_busy_process_burns_and_an_idle_one_does_not() {
        let busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let idle = Command::new("sleep").arg("100").spawn().unwrap();
        let first = [&busy, &idle].map(|child| LifeSample::take(look(child), 0).cpu_ms);
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while LifeSample::take(look(&busy), 0).cpu_ms < first[0] + 50 {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        assert!(LifeSample::take(look(&idle), 0).cpu_ms < first[1] + 20);
        end(busy);
        end(idle);
    }

    #[test]
    fn a_child_begun_after_the_last_word_is_a_tool() {
        let before = ticks_before(Duration::ZERO);
        let shell = Command::new("sh").args(["-c", "sleep 100; :"]).spawn().unwrap();
        let root = i32::try_from(shell.id()).unwrap();
        while proc::descendants(root).is_empty() {
            std::thread::yield_now();
        }
        let since = |tools_since| LifeSample::take(Look { tools_since, ..look(&shell) }, 0);
        assert!(since(before).tool_child && since(before).processes == 2);
        assert!(!since(ticks_before(Duration::ZERO) + 10).tool_child);
        for process in proc::descendants(root) {
            proc::signal(process.id, nix::sys::signal::Signal::SIGKILL).unwrap();
        }
        end(shell);
    }

    #[test]
    fn an_established_connection_is_seen_and_a_listening_socket_is_none() {
        let us = i32::try_from(std::process::id()).unwrap();
        let look = Look { root: us, dir: None, entries_max: 0, tools_since: u64::MAX };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let before = LifeSample::take(look, 0).connections;
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        assert_eq!(LifeSample::take(look, 0).connections, before + 2);
        drop((client, server));
    }

    #[test]
    fn the_newest_write_is_found_within_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        let before = newest_write(dir.path(), 100).unwrap();
        let file = fs::File::create(deep.join("file")).unwrap();
        let later = before + Duration::from_secs(60);
        file.set_modified(later).unwrap();
        assert_eq!(newest_write(dir.path(), 100), Some(later));
        assert!(newest_write(dir.path(), 1).unwrap() < later);
        assert_eq!(newest_write(&dir.path().join("missing"), 100), None);
    }
}
