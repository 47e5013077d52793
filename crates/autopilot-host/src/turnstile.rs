//! A lock over all processes of the machine, for programs that must not be started twice at the
//! same moment.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// A lock that is held until it is dropped, or its process has ended in whatever way.
#[derive(Debug)]
pub struct Turnstile {
    _locked: File,
}

/// Takes the lock; `None` while another process holds it.
pub fn try_enter(path: &Path) -> io::Result<Option<Turnstile>> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(Turnstile { _locked: file })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_the_next_when_it_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("starts/claude.lock");
        let first = try_enter(&path).unwrap();
        assert!(first.is_some());
        assert!(try_enter(&path).unwrap().is_none());
        assert!(try_enter(&dir.path().join("starts/codex.lock")).unwrap().is_some());
        drop(first);
        assert!(try_enter(&path).unwrap().is_some());
    }
}
