//! Reading a journal without a writer ever waiting: a read-only connection of short transactions.
//! SQLite lets readers and the writer of a WAL file pass each other.

use camino::Utf8Path;
use rusqlite::OpenFlags;

use super::{READ_WAIT_MS_MAX, Store, file, log_mark, schema};
use crate::error::Error;

/// A read-only view of a journal, with or without a live writer beside it.
pub struct SqliteReader {
    store: Store,
}

impl SqliteReader {
    /// Opens a journal to read it. Opening is cheap: it scans nothing and checks only the file's
    /// version.
    pub fn open(path: &Utf8Path) -> Result<Self, Error> {
        file::check_present(path)?;
        if let Some(what) = log_mark::missing_log(path)? {
            let readable = open_without_log(path).map(|store| super::check::reach(&store));
            let (path, readable) = (path.to_owned(), readable.unwrap_or_default());
            return Err(Error::Damaged { path, what, readable });
        }
        let last = log_mark::LastRecord::read(path);
        let store = open_read_only(path)?;
        schema::check_readable(&store)?;
        if let Some(what) = last.map(|last| last.missed_in(&store)).transpose()?.flatten() {
            let readable = super::check::reach(&store);
            return Err(Error::Damaged { path: path.to_owned(), what, readable });
        }
        Ok(Self { store })
    }
}

/// Opens a database read-only, also a file that may be damaged: nothing is written, now or on
/// closing.
pub(super) fn open_read_only(path: &Utf8Path) -> Result<Store, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let store = Store::open(path, path.as_str(), flags, READ_WAIT_MS_MAX)?;
    let Err(source) = touch(&store) else { return Ok(store) };
    let no_index = [rusqlite::ErrorCode::CannotOpen, rusqlite::ErrorCode::ReadOnly];
    if !source.sqlite_error_code().is_some_and(|code| no_index.contains(&code)) {
        return Err(store.error("read", source));
    }
    // In a directory we may not write, SQLite cannot make the log's index. Without a log there is
    // nothing to index, and nobody here who could write one while we look.
    let log = std::fs::metadata(format!("{path}-wal"));
    if log.is_ok_and(|log| log.len() > 0) {
        return Err(Error::LogUnreadable { path: path.to_owned() });
    }
    open_without_log(path)
}

/// Opens a database read-only as if it never had a log, so that none is made.
pub(super) fn open_without_log(path: &Utf8Path) -> Result<Store, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let store = Store::open(path, &immutable(path), flags, READ_WAIT_MS_MAX)?;
    touch(&store).map_err(|source| store.error("read", source))?;
    Ok(store)
}

/// Opens a database read-only, also one whose log is missing. Opening it in the usual way would make
/// an empty log, and nobody would miss the other one any more.
pub(super) fn open_damaged(path: &Utf8Path) -> Result<Store, Error> {
    match log_mark::missing_log(path)? {
        Some(_) => open_without_log(path),
        None => open_read_only(path),
    }
}

/// Reads something, because only the first read opens the log.
fn touch(store: &Store) -> rusqlite::Result<()> {
    store.conn.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0)).map(drop)
}

/// Returns the URI by which SQLite opens a file without a log and without locks.
fn immutable(path: &Utf8Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_str().bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(byte));
            }
            other => uri.push_str(&format!("%{other:02x}")),
        }
    }
    uri + "?immutable=1"
}

impl AsRef<Store> for SqliteReader {
    fn as_ref(&self) -> &Store {
        &self.store
    }
}
