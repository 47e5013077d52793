//! The lock of a layer or a seed: a file beside its directory, locked while somebody uses it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How often locking is tried when the file is removed meanwhile.
const TRIES_MAX: usize = 10;

/// A lock that is held until it is dropped, or until this process ends in any way.
#[derive(Debug)]
pub(super) struct RoomLock {
    _file: File,
    path: PathBuf,
}

/// The company that a lock allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockSharing {
    /// Nobody else.
    Alone,
    /// Others who share it.
    Shared,
}

impl RoomLock {
    /// Takes the lock of a directory, which need not exist; `None` if somebody has it.
    pub fn take(dir: &Path, sharing: LockSharing) -> io::Result<Option<RoomLock>> {
        let path = lock_path(dir);
        for _ in 0..TRIES_MAX {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            let file = options.mode(0o600).custom_flags(libc::O_NOFOLLOW).open(&path)?;
            let locked = match sharing {
                LockSharing::Alone => file.try_lock(),
                LockSharing::Shared => file.try_lock_shared(),
            };
            match locked {
                // Whoever had it may have removed the file between our two calls.
                Ok(()) if is_at(&file, &path) => return Ok(Some(RoomLock { _file: file, path })),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Removes the file of the lock, which is held alone; the directory is gone or has moved.
    pub fn end(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Returns the path of a directory's lock.
pub(super) fn lock_path(dir: &Path) -> PathBuf {
    let mut name = dir.file_name().unwrap_or_default().to_owned();
    name.push(LOCK_ENDING);
    dir.with_file_name(name)
}

/// The ending of the names of locks.
pub(super) const LOCK_ENDING: &str = ".lock";

fn is_at(file: &File, path: &Path) -> bool {
    let Ok(held) = file.metadata() else { return false };
    fs::symlink_metadata(path)
        .is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_it_alone_or_several_share_it() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("seed");
        let take = |sharing| RoomLock::take(&dir, sharing).unwrap();
        let one = take(LockSharing::Shared).unwrap();
        let other = take(LockSharing::Shared).unwrap();
        assert!(take(LockSharing::Alone).is_none());
        drop((one, other));
        let alone = take(LockSharing::Alone).unwrap();
        assert!(take(LockSharing::Alone).is_none() && take(LockSharing::Shared).is_none());
        alone.end().unwrap();
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
        assert!(take(LockSharing::Alone).is_some());
    }
}
