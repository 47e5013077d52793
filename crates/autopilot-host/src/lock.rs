//! The lock that allows one run per state directory. The kernel's lock decides; the content of the
//! file is for people.
//!
//! Two things are locked: the directory itself, which cannot be deleted and made again unnoticed
//! while somebody looks at it, and the file that names the holder. Deleting the file therefore
//! frees nothing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::proc::{self, ProcessIdentity};

/// The name of the lock file in a state directory.
pub const NAME: &str = "autopilot.lock";

/// The largest file that is read; more than any holder writes.
const HOLDER_BYTES_MAX: u64 = 64 * 1024;

/// How long a holder may take to write its name.
const NAME_WAIT_MAX: Duration = Duration::from_millis(500);

/// How often locking is tried when the directory or the file is replaced meanwhile.
const TRIES_MAX: usize = 10;

/// The process that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process, by its number and start time.
    pub process: ProcessIdentity,
    /// The name of the machine.
    pub host: String,
    /// The run for which the lock is held.
    pub run: String,
}

impl Holder {
    /// Returns this process as the holder for a run.
    pub fn us(run: &str) -> Holder {
        let pid = nix::unistd::getpid().as_raw();
        let start_time = proc::read(pid).map_or(0, |process| process.id.start_time);
        let host = nix::unistd::gethostname().unwrap_or_default();
        let host = host.to_string_lossy().into_owned();
        Holder { process: ProcessIdentity { pid, start_time }, host, run: run.into() }
    }

    /// Returns whether the process still runs. A process of another machine can't be seen and
    /// counts as living.
    pub fn is_living(&self) -> bool {
        let us = nix::unistd::gethostname().unwrap_or_default();
        let is_it = |found: proc::Process| found.id == self.process && !found.is_zombie();
        us.to_string_lossy() != self.host || proc::read(self.process.pid).is_some_and(is_it)
    }
}

/// The reason why a lock could not be taken or asked about.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("another process is working in this repository: {} (state directory `{dir}`)", name(holder.as_ref()))]
    Held { dir: PathBuf, holder: Option<Holder> },
    /// The operating system refused to open, lock or write the directory or its file.
    #[error("cannot lock `{path}`")]
    Failed { path: PathBuf, source: io::Error },
    /// The path named another file after each locking.
    #[error("cannot lock `{path}`: it keeps being replaced")]
    Restless { path: PathBuf },
    /// The file system has no locks, as some network file systems.
    #[error(
        "cannot lock `{path}`: its file system does not support locks; put the state directory on a local disk"
    )]
    Unsupported { path: PathBuf },
}

fn name(holder: Option<&Holder>) -> String {
    match holder {
        // A process that is starting does not know its run yet.
        Some(Holder { process, host, run }) if run.is_empty() => {
            format!("process {} on {host}", process.pid)
        }
        Some(Holder { process, host, run }) => {
            format!("process {} on {host}, run {run}", process.pid)
        }
        None => String::from("a process that has not written its name yet"),
    }
}

/// A lock that is held until it is dropped, or until this process ends in any way.
#[derive(Debug)]
pub struct Lock {
    _directory: File,
    file: File,
    path: PathBuf,
}

/// Takes the lock of `dir`, or returns who has it.
pub fn acquire(dir: &Path, holder: &Holder) -> Result<Lock, LockError> {
    let directory = take(dir, dir, || File::open(dir))?;
    let path = dir.join(NAME);
    let mut file = take(dir, &path, || open_holder(&path))?;
    write(&mut file, holder).map_err(|source| LockError::Failed { path: path.clone(), source })?;
    Ok(Lock { _directory: directory, file, path })
}

/// Returns who holds the lock of `dir` now, if anybody. The file that a dead holder left is not
/// believed.
pub fn holder(dir: &Path) -> Result<Option<Holder>, LockError> {
    let failed = |source| LockError::Failed { path: dir.into(), source };
    let directory = match File::open(dir) {
        Ok(directory) => directory,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    // A shared lock hinders only a start in this very moment, which tries again.
    match directory.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(read(dir)),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

impl Lock {
    /// Writes the holder into the file again, into a new file if somebody has removed or replaced
    /// it.
    pub fn refresh(&mut self, holder: &Holder) -> Result<(), LockError> {
        let path = &self.path;
        if !is_at(&self.file, path) {
            self.file = take(path.parent().unwrap_or(path), path, || open_holder(path))?;
        }
        write(&mut self.file, holder)
            .map_err(|source| LockError::Failed { path: path.clone(), source })
    }
}

fn open_holder(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).custom_flags(flags).open(path)
}

/// Locks the file that `open` returns and makes sure it is still the one at the path.
fn take(dir: &Path, path: &Path, open: impl Fn() -> io::Result<File>) -> Result<File, LockError> {
    let failed = |source| LockError::Failed { path: path.into(), source };
    for attempt in 0..TRIES_MAX {
        let file = open().map_err(failed)?;
        match file.try_lock() {
            Ok(()) if is_at(&file, path) => return Ok(file),
            Ok(()) => {}
            // A reader who asks for the holder has the lock for a moment and never keeps it.
            Err(TryLockError::WouldBlock) if attempt < 3 => {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held { dir: dir.into(), holder: read_living(dir) });
            }
            Err(TryLockError::Error(error)) if is_unsupported(&error) => {
                return Err(LockError::Unsupported { path: path.into() });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    Err(LockError::Restless { path: path.into() })
}

/// Returns whether the error says that the file system has no locks.
pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    const CODES: [i32; 3] = [libc::ENOLCK, libc::EOPNOTSUPP, libc::ENOSYS];
    error.raw_os_error().is_some_and(|code| CODES.contains(&code))
}

/// Returns whether the open file is still the one at the path.
fn is_at(file: &File, path: &Path) -> bool {
    let Ok(held) = file.metadata() else { return false };
    std::fs::symlink_metadata(path)
        .is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino()))
}

fn write(file: &mut File, holder: &Holder) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&serde_json::to_vec(holder)?)?;
    file.sync_all()
}

/// Reads the name of a living holder. Between taking the lock and writing its name the holder is
/// nameless, and the file may still name one that is dead.
fn read_living(dir: &Path) -> Option<Holder> {
    let started = Instant::now();
    loop {
        let found = read(dir).filter(Holder::is_living);
        if found.is_some() || started.elapsed() > NAME_WAIT_MAX {
            return found;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn read(dir: &Path) -> Option<Holder> {
    let mut text = Vec::new();
    let file = File::open(dir.join(NAME)).ok()?;
    file.take(HOLDER_BYTES_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder_of(error: LockError) -> Option<Holder> {
        let LockError::Held { holder, .. } = error else { panic!("not held: {error}") };
        holder
    }

    #[test]
    fn h01_the_second_is_refused_and_told_who_the_first_is() {
        let dir = tempfile::tempdir().unwrap();
        let us = Holder::us("run-1");
        let lock = acquire(dir.path(), &us).unwrap();
        let error = acquire(dir.path(), &Holder::us("run-2")).unwrap_err();
        assert!(error.to_string().contains(&format!("process {} on", us.process.pid)), "{error}");
        assert_eq!(holder_of(error).unwrap(), us);
        assert_eq!(holder(dir.path()).unwrap(), Some(us));
        drop(lock);
        assert_eq!(holder(dir.path()).unwrap(), None);
        acquire(dir.path(), &Holder::us("run-2")).unwrap();
    }

    #[test]
    fn h01_of_many_at_once_exactly_one_gets_it() {
        for _ in 0..50 {
            let dir = tempfile::tempdir().unwrap();
            let barrier = std::sync::Barrier::new(8);
            let won = std::thread::scope(|scope| {
                let tries: Vec<_> = (0..8)
                    .map(|_| {
                        scope.spawn(|| {
                            barrier.wait();
                            acquire(dir.path(), &Holder::us("run")).ok()
                        })
                    })
                    .collect();
                // All results are kept until all have tried.
                let locks: Vec<_> = tries.into_iter().map(|one| one.join().unwrap()).collect();
                locks.iter().flatten().count()
            });
            assert_eq!(won, 1);
        }
    }

    #[test]
    fn h02_deleting_the_file_frees_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let us = Holder::us("run-1");
        let mut lock = acquire(dir.path(), &us).unwrap();
        std::fs::remove_file(dir.path().join(NAME)).unwrap();
        assert_eq!(holder_of(acquire(dir.path(), &us).unwrap_err()), None);
        lock.refresh(&us).unwrap();
        assert_eq!(holder_of(acquire(dir.path(), &us).unwrap_err()), Some(us));
        let made_anew = File::open(dir.path().join(NAME)).unwrap();
        assert!(matches!(made_anew.try_lock(), Err(TryLockError::WouldBlock)));
    }

    #[test]
    fn h02_a_file_without_a_living_holder_locks_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let old = Holder { host: "elsewhere".into(), ..Holder::us("run-0") };
        std::fs::write(dir.path().join(NAME), serde_json::to_vec(&old).unwrap()).unwrap();
        assert_eq!(holder(dir.path()).unwrap(), None);
        acquire(dir.path(), &Holder::us("run-1")).unwrap();
    }

    #[test]
    fn a_directory_that_does_not_exist_has_no_holder_and_cannot_be_locked() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing");
        assert_eq!(holder(&missing).unwrap(), None);
        assert!(matches!(
            acquire(&missing, &Holder::us("run")).unwrap_err(),
            LockError::Failed { .. }
        ));
    }
}
