//! A mark beside the journal that says its write-ahead log holds commits, and the last of them.
//!
//! SQLite takes a database without a log for a complete one, and of a log that was cut off or
//! overwritten what is still whole. If that happens to the log of a process that was killed, its
//! commits would be gone without a word; with the mark they are missed.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;

use camino::{Utf8Path, Utf8PathBuf};

use super::Store;
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

/// The last record that a process has written, by the mark that it left.
pub(super) struct LastRecord {
    run: String,
    seq: u64,
}

impl LastRecord {
    /// Reads the mark. It is read before the journal: a writer writes it after the record.
    pub fn read(journal: &Utf8Path) -> Option<LastRecord> {
        let text = fs::read_to_string(path_of(journal)).ok()?;
        let (seq, run) = text.strip_prefix("open ")?.trim_end().split_once(' ')?;
        Some(LastRecord { run: run.to_owned(), seq: seq.parse().ok()? })
    }

    /// Says what is wrong if the journal does not have the record.
    pub fn missed_in(&self, store: &Store) -> Result<Option<String>, Error> {
        let LastRecord { run, seq } = self;
        let sql = "SELECT max(record.seq) FROM record JOIN run ON run.key = record.run
                   WHERE run.id = ?1";
        let found = store.conn.query_row(sql, [run], |row| row.get::<_, Option<i64>>(0));
        let found = found.map_err(|source| store.error("read", source))?.map(i64::unsigned_abs);
        let is_missed = found.is_none_or(|found| found < *seq);
        Ok(is_missed.then(|| {
            let end = match found {
                Some(found) => format!("ends at record {found}"),
                None => "has no record".to_owned(),
            };
            format!(
                "its write-ahead log was cut off or overwritten: it {end} of run {run}, but record \
                 {seq} was written"
            )
        }))
    }
}

/// The mark of a journal that is open for writing.
pub(super) struct LogMark(File);

impl LogMark {
    /// Marks the journal as open.
    pub fn set(journal: &Utf8Path) -> Result<LogMark, Error> {
        let mark = path_of(journal);
        let made = fs::write(&mark, OPEN).and_then(|()| File::options().write(true).open(&mark));
        made.map(LogMark).map_err(|source| Error::File { operation: "write", path: mark, source })
    }

    /// Notes the last record of a run that is on the disk.
    pub fn note(&self, run: &str, seq: u64) {
        let text = format!("open {seq:020} {run}\n");
        // Without the note only the loss of the whole log is missed.
        let _not_noted = self
            .0
            .write_all_at(text.as_bytes(), 0)
            .and_then(|()| self.0.set_len(text.len().try_into().unwrap_or(0)));
    }
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
