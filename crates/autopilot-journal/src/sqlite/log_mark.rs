//! A mark beside the journal that says its write-ahead log holds commits.
//!
//! SQLite takes a database without a log for a complete one. If somebody removes the log of a process
//! that was killed, its commits would be gone without a word; with the mark they are missed.

use std::fs;
use std::io::ErrorKind;

use camino::{Utf8Path, Utf8PathBuf};

use crate::error::Error;

/// The content of a mark while the journal is being closed: from here on nothing is committed, and
/// SQLite removes the log once everything is in the file.
const CLOSING: &[u8] = b"closing\n";
const OPEN: &[u8] = b"open\n";

/// Returns the path of the mark.
pub fn path_of(journal: &Utf8Path) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("{journal}-open"))
}

fn log_of(journal: &Utf8Path) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("{journal}-wal"))
}

/// Says what is wrong if the log should be there and is not.
pub(super) fn missing_log(journal: &Utf8Path) -> Result<Option<String>, Error> {
    let mark = path_of(journal);
    let found = match fs::read(&mark) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::File { operation: "read", path: mark, source }),
    };
    let log = log_of(journal);
    // Looked at after the mark: whoever closes the journal changes the mark before the log goes.
    let is_missed = found != CLOSING && !log.exists();
    // A writer may have closed it in between, and then the mark is another one by now.
    let is_missed = is_missed && fs::read(&mark).is_ok_and(|again| again == found);
    Ok(is_missed.then(|| {
        format!(
            "its write-ahead log `{log}` is missing, and with it the commits of the last process"
        )
    }))
}

/// Marks the journal as open for writing.
pub(super) fn set(journal: &Utf8Path) -> Result<(), Error> {
    let mark = path_of(journal);
    fs::write(&mark, OPEN).map_err(|source| Error::File { operation: "write", path: mark, source })
}

/// Marks the journal as about to be closed.
pub(super) fn closing(journal: &Utf8Path) {
    // At worst a mark stays that says open; then the log is missed although nothing is lost.
    let _stays = fs::write(path_of(journal), CLOSING);
}

/// Removes the mark, unless commits are left in the log.
pub(super) fn closed(journal: &Utf8Path) {
    if fs::metadata(log_of(journal)).is_ok_and(|log| log.len() > 0) {
        let _stays = fs::write(path_of(journal), OPEN);
    } else {
        let _stays = fs::remove_file(path_of(journal));
    }
}
