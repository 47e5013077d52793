//! The room on this machine: disk, descriptors, memory. For `doctor` and for admission.

use std::io;
use std::path::Path;

use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, faccessat};

/// The descriptors this process needs for itself: journal, sockets, terminal, runtime.
const OWN_DESCRIPTORS: u64 = 40;

/// The descriptors per running agent: control, output, input and end pipes, logs, supervisor.
const DESCRIPTORS_PER_AGENT: u64 = 12;

/// The free space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    /// The bytes that we may still write.
    pub bytes_free: u64,
    /// The files that we may still create; `None` where the file system has no fixed number.
    pub inodes_free: Option<u64>,
}

/// Returns the space that is free for us on the file system that holds `path`.
pub fn disk(path: &Path) -> io::Result<Disk> {
    let stat = statvfs(path)?;
    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_cast,
        reason = "the fields are narrower on other systems"
    )]
    let (blocks, size, inodes, free) = (
        u64::from(stat.blocks_available()),
        stat.fragment_size() as u64,
        u64::from(stat.files()),
        u64::from(stat.files_available()),
    );
    let inodes_free = (inodes > 0).then_some(free);
    Ok(Disk { bytes_free: blocks.saturating_mul(size), inodes_free })
}

/// Fails unless this user may write the file, or make files in the directory. Nothing is written.
pub fn writable(path: &Path) -> io::Result<()> {
    let flags =
        if path.is_dir() { AccessFlags::W_OK | AccessFlags::X_OK } else { AccessFlags::W_OK };
    Ok(faccessat(AT_FDCWD, path, flags, AtFlags::AT_EACCESS)?)
}

/// Returns the part of a path that has to be made writable: of what exists of it, the innermost that
/// this user may not write.
pub fn unwritable_part(path: &Path) -> Option<&Path> {
    let there = path.ancestors().find(|path| path.symlink_metadata().is_ok())?;
    let parts = [Some(there), there.parent()];
    parts.into_iter().flatten().find(|part| writable(part).is_err())
}

/// The limits on open descriptors of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors {
    /// The limit in force.
    pub limit: u64,
    /// The highest limit this process may set.
    pub hard_limit: u64,
}

/// Returns the limits on open descriptors of this process.
pub fn descriptors() -> io::Result<Descriptors> {
    let (limit, hard_limit) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(Descriptors { limit, hard_limit })
}

impl Descriptors {
    /// Returns how many agents may run at once, so that no descriptor is ever missing.
    pub fn agents_max(&self) -> u64 {
        self.limit.saturating_sub(OWN_DESCRIPTORS) / DESCRIPTORS_PER_AGENT
    }
}

/// Raises the soft limit of descriptors to the hard one. Agents have limits of their own.
pub fn raise_descriptors() -> io::Result<Descriptors> {
    let Descriptors { hard_limit, .. } = descriptors()?;
    nix::sys::resource::setrlimit(Resource::RLIMIT_NOFILE, hard_limit, hard_limit)?;
    descriptors()
}

/// The memory of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// All of it, without swap.
    pub bytes_total: u64,
    /// The memory that can be had without swapping, as the kernel estimates it.
    pub bytes_available: u64,
}

/// Returns the memory of this machine; `None` where the system does not tell.
pub fn memory() -> Option<Memory> {
    parse_memory(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse_memory(text: &str) -> Option<Memory> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kib.checked_mul(1024)
    };
    Some(Memory { bytes_total: field("MemTotal")?, bytes_available: field("MemAvailable")? })
}

/// Asks the kernel to kill agents before us when memory runs out; needs a privilege to succeed.
pub fn protect_from_oom() -> io::Result<()> {
    std::fs::write("/proc/self/oom_score_adj", "-500")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_of_a_directory_is_measured_and_a_missing_one_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(disk(dir.path()).unwrap().bytes_free > 0);
        assert!(disk(&dir.path().join("missing")).is_err());
    }

    #[test]
    fn the_part_of_a_path_that_is_not_writable_is_named() {
        let dir = tempfile::tempdir().unwrap();
        assert!(writable(dir.path()).is_ok());
        assert_eq!(unwritable_part(&dir.path().join("a/b")), None);
        assert!(writable(Path::new("/proc/version")).is_err(), "not even root may write it");
        assert_eq!(unwritable_part(Path::new("/proc/version")), Some(Path::new("/proc/version")));
    }

    #[test]
    fn r01_few_descriptors_allow_few_agents() {
        let agents = |limit| Descriptors { limit, hard_limit: limit }.agents_max();
        assert_eq!([agents(0), agents(40), agents(64), agents(1024)], [0, 0, 2, 82]);
        assert!(descriptors().unwrap().limit > 0);
    }

    #[test]
    fn memory_is_read_from_the_kernels_words() {
        let text = "MemTotal:       2048 kB\nMemFree: 1 kB\nMemAvailable:    1024 kB\n";
        let expected = Memory { bytes_total: 2 << 20, bytes_available: 1 << 20 };
        assert_eq!(parse_memory(text), Some(expected));
        assert_eq!(parse_memory("MemTotal: many\n"), None);
        let here = memory().unwrap();
        assert!(here.bytes_available <= here.bytes_total);
    }
}
