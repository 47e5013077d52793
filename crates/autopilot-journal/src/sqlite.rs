//! The embedded journal: one SQLite file in WAL mode, every commit fsynced.

use camino::{Utf8Path, Utf8PathBuf};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use rusqlite_migration::Migrations;

use crate::entry::{JournalRecord, Snapshot};
use crate::error::Error;
use crate::journal::JournalHistory;
use crate::run::JournalRun;

mod append;
pub mod check;
mod file;
pub mod log_mark;
mod query;
pub mod reader;
pub mod salvage;
mod schema;
#[cfg(test)]
mod tests;
mod wal;

/// How many snapshots of a run are kept. A damaged newest one falls back to the one before it; more
/// are of no use.
pub const SNAPSHOTS_KEPT_MAX: usize = 2;

/// How long a writer waits for the database. Another process's commit on a slow disk may take
/// seconds; that is not a failure.
const WRITE_WAIT_MS_MAX: u64 = 60_000;
/// How long a reader waits for the database.
const READ_WAIT_MS_MAX: u64 = 10_000;

/// The length to which a log that a burst has made larger is cut at the next checkpoint.
const WAL_BYTES_KEPT_MAX: i64 = 64 << 20;

/// A journal in an SQLite file, open for reading and writing.
pub struct SqliteJournal {
    store: Store,
    mark: log_mark::LogMark,
    /// Dropped last.
    _closes: OpenMark,
}

/// An open database, with its path for messages.
pub struct Store {
    conn: Connection,
    path: Utf8PathBuf,
}

impl SqliteJournal {
    /// Opens a journal that exists and upgrades its tables if they are older. A damaged journal is
    /// refused and its file left as it is.
    pub fn open(path: &Utf8Path) -> Result<Self, Error> {
        Self::open_as(path, &schema::MIGRATIONS)
    }

    /// Makes a new journal: the whole file under a temporary name first, then at `path`.
    pub fn create(path: &Utf8Path) -> Result<Self, Error> {
        file::create(path)?;
        Self::open(path)
    }

    /// Opens the journal at `path`, after making an empty one if there is none.
    pub fn open_or_create(path: &Utf8Path) -> Result<Self, Error> {
        match file::create(path) {
            Ok(()) | Err(Error::Exists { .. }) => Self::open(path),
            Err(error) => Err(error),
        }
    }

    fn open_as(path: &Utf8Path, migrations: &Migrations<'_>) -> Result<Self, Error> {
        match Self::open_checked(path, migrations) {
            Err(error) if error.trouble() == Some(crate::StorageTrouble::Damaged) => {
                Err(check::survey(path, error))
            }
            other => other,
        }
    }

    fn open_checked(path: &Utf8Path, migrations: &Migrations<'_>) -> Result<Self, Error> {
        file::check_present(path)?;
        let last = log_mark::LastRecord::read(path);
        let missing = log_mark::missing_log(path)?;
        if let Some(what) = missing.map_or_else(|| wal::damage(path), |what| Ok(Some(what)))? {
            return Err(Error::Damaged { path: path.to_owned(), what, readable: Vec::new() });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut store = Store::open(path, path.as_str(), flags, WRITE_WAIT_MS_MAX)?;
        schema::bring_up_to_date(&mut store, migrations)?;
        if let Some(what) = last.map(|last| last.missed_in(&store)).transpose()?.flatten() {
            let readable = check::reach(&store);
            return Err(Error::Damaged { path: path.to_owned(), what, readable });
        }
        store.check_tails()?;
        store.set_durable()?;
        let mark = log_mark::LogMark::set(path)?;
        Ok(Self { store, mark, _closes: OpenMark(path.to_owned()) })
    }
}

impl Drop for SqliteJournal {
    fn drop(&mut self) {
        log_mark::closing(&self.store.path);
        // A reader may keep the log, but nothing has to stay in it. If a reader is in the way, the
        // next writer moves the commits into the file.
        let _stays_in_the_log =
            self.store.conn.pragma_query(None, "wal_checkpoint(TRUNCATE)", |_| Ok(()));
    }
}

/// Takes the mark away after the connection, the field before it, was closed.
struct OpenMark(Utf8PathBuf);

impl Drop for OpenMark {
    fn drop(&mut self) {
        log_mark::closed(&self.0);
    }
}

impl Store {
    /// Nothing is written when this connection closes, until [`Self::set_durable`] has been
    /// called: a file that turns out to be damaged must stay as it was found.
    fn open(path: &Utf8Path, name: &str, flags: OpenFlags, wait_ms: u64) -> Result<Self, Error> {
        let fail = |source| storage_error(path, "open the file", source);
        let conn = Connection::open_with_flags(name, flags).map_err(fail)?;
        conn.busy_timeout(std::time::Duration::from_millis(wait_ms)).map_err(fail)?;
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(fail)?;
        Ok(Self { conn, path: path.to_owned() })
    }

    fn set_durable(&self) -> Result<(), Error> {
        let set = || -> rusqlite::Result<()> {
            let ignore = |_: &rusqlite::Row<'_>| Ok(());
            self.conn.pragma_update_and_check(None, "journal_mode", "WAL", ignore)?;
            self.conn.pragma_update(None, "synchronous", "FULL")?;
            self.conn.pragma_update(None, "fullfsync", true)?;
            self.conn.pragma_update_and_check(None, "wal_autocheckpoint", 1000, ignore)?;
            let kept_max = WAL_BYTES_KEPT_MAX;
            self.conn.pragma_update_and_check(None, "journal_size_limit", kept_max, ignore)?;
            self.conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
            Ok(())
        };
        set().map_err(|source| self.error("set up durable writing", source))
    }

    fn error(&self, operation: &'static str, source: rusqlite::Error) -> Error {
        storage_error(&self.path, operation, source)
    }
}

fn storage_error(path: &Utf8Path, operation: &'static str, source: rusqlite::Error) -> Error {
    use crate::StorageTrouble;
    use rusqlite::ErrorCode as Code;
    let trouble = match source.sqlite_error_code() {
        Some(Code::DiskFull) => StorageTrouble::Full,
        Some(Code::SystemIoFailure) => StorageTrouble::Io,
        Some(Code::ReadOnly) => StorageTrouble::ReadOnly,
        Some(Code::CannotOpen | Code::PermissionDenied) => StorageTrouble::Denied,
        Some(Code::DatabaseBusy | Code::DatabaseLocked) => StorageTrouble::Busy,
        Some(Code::DatabaseCorrupt | Code::NotADatabase) => StorageTrouble::Damaged,
        Some(_) | None => StorageTrouble::Other,
    };
    let source = Box::new(StorageCause { trouble, raw: source });
    Error::Storage { operation, journal: path.to_string(), trouble, source }
}

/// A failure of the database, told in words for people. The database's own are in its debug form.
#[derive(Debug)]
struct StorageCause {
    trouble: crate::StorageTrouble,
    raw: rusqlite::Error,
}

impl std::error::Error for StorageCause {}

impl std::fmt::Display for StorageCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use crate::StorageTrouble;
        f.write_str(match self.trouble {
            StorageTrouble::Full => "the disk is full",
            StorageTrouble::Io => "the disk failed to read or write it",
            StorageTrouble::ReadOnly => "the file or its directory can't be written",
            StorageTrouble::Denied => "it can't be opened",
            StorageTrouble::Busy => "another process holds it",
            StorageTrouble::Damaged => "its content is damaged",
            StorageTrouble::Other => match self.raw.sqlite_error().map(|error| error.code) {
                Some(rusqlite::ErrorCode::OutOfMemory) => "there is not enough memory",
                Some(code) => return write!(f, "the database refused it ({code:?})"),
                None => "the database gave an answer that was not expected",
            },
        })
    }
}

impl AsRef<Store> for SqliteJournal {
    fn as_ref(&self) -> &Store {
        &self.store
    }
}

/// Whoever has a database open reads it in the same way, whether it may also write or not.
impl<T: AsRef<Store>> JournalHistory for T {
    fn runs(&self, runs_max: usize) -> Result<Vec<JournalRun>, Error> {
        self.as_ref().runs(runs_max)
    }

    fn run(&self, id: &str) -> Result<Option<JournalRun>, Error> {
        self.as_ref().run(id)
    }

    fn read(
        &self,
        run: &str,
        from_seq: u64,
        records_max: usize,
    ) -> Result<Vec<JournalRecord>, Error> {
        self.as_ref().read(run, from_seq, records_max)
    }

    fn snapshot(&self, run: &str, core_version: &str) -> Result<Option<Snapshot>, Error> {
        self.as_ref().snapshot(run, core_version)
    }

    fn blob(&self, hash: &str) -> Result<Option<Vec<u8>>, Error> {
        self.as_ref().blob(hash)
    }
}
