//! The tables, their format version, and the migrations from an older version to this one.

use rusqlite_migration::{M, Migrations};

use super::{Store, file};
use crate::error::Error;

/// The mark of a file as ours, so that another program's database is never taken for a journal: the
/// letters `APJL`, set by the first migration.
pub(super) const APPLICATION_ID: u32 = 0x4150_4a4c;

/// The migrations, one per format version; those already released are never edited.
pub(super) const MIGRATIONS: Migrations<'static> = Migrations::from_slice(STEPS);

/// The format version that this program writes.
pub(super) const VERSION: u32 = STEPS.len() as u32;

pub(super) const STEPS: &[M<'static>] = &[M::up(
    // A record names its run by a small number: the run's own id would be a quarter of each row.
    // `sum` is a CRC-32 over key, numbers, time and body.
    // `stray` holds records that a salvage could read but that no longer follow their predecessor.
    "PRAGMA application_id = 0x41504a4c;
     CREATE TABLE run (
         key INTEGER PRIMARY KEY,
         id TEXT NOT NULL UNIQUE,
         mode TEXT NOT NULL,
         title TEXT NOT NULL,
         created_at INTEGER NOT NULL,
         ended TEXT,
         holder TEXT,
         epoch INTEGER NOT NULL DEFAULT 0,
         expires INTEGER NOT NULL DEFAULT 0
     );
     CREATE TABLE record (
         run INTEGER NOT NULL,
         seq INTEGER NOT NULL,
         epoch INTEGER NOT NULL,
         at INTEGER NOT NULL,
         sum INTEGER NOT NULL,
         body BLOB NOT NULL,
         PRIMARY KEY (run, seq)
     ) WITHOUT ROWID;
     CREATE TABLE stray (
         run INTEGER NOT NULL,
         seq INTEGER NOT NULL,
         epoch INTEGER NOT NULL,
         at INTEGER NOT NULL,
         sum INTEGER NOT NULL,
         body BLOB NOT NULL,
         PRIMARY KEY (run, seq)
     ) WITHOUT ROWID;
     CREATE TABLE snapshot (
         run INTEGER NOT NULL,
         core TEXT NOT NULL,
         seq INTEGER NOT NULL,
         epoch INTEGER NOT NULL,
         sum INTEGER NOT NULL,
         body BLOB NOT NULL,
         PRIMARY KEY (run, core, seq)
     );
     CREATE TABLE blob (
         hash TEXT PRIMARY KEY NOT NULL,
         body BLOB NOT NULL
     );",
)];

/// Creates the tables in a new, empty file.
pub(super) fn create(store: &mut Store) -> Result<(), Error> {
    let made = MIGRATIONS.to_latest(&mut store.conn);
    made.map_err(|source| migration_error(store, source))
}

/// Refuses a file that is not ours or too new; migrates an older one after copying it.
pub(super) fn bring_up_to_date(
    store: &mut Store,
    migrations: &Migrations<'_>,
) -> Result<(), Error> {
    let found = version(store)?;
    let known = match migrations.pending_migrations(&store.conn) {
        Ok(pending) => u32::try_from(i64::from(found) + i64::from(pending)).unwrap_or(0),
        Err(source) => return Err(migration_error(store, source)),
    };
    if found > known {
        return Err(Error::Newer { path: store.path.clone(), found, known });
    }
    if found < known {
        file::back_up(store, found)?;
        let done = migrations.to_latest(&mut store.conn);
        done.map_err(|source| migration_error(store, source))?;
    }
    Ok(())
}

/// Refuses a file that is not ours or not of this version, for a reader, which may not migrate it.
pub(super) fn check_readable(store: &Store) -> Result<(), Error> {
    let (path, found, known) = (store.path.clone(), version(store)?, VERSION);
    match found.cmp(&known) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(Error::Newer { path, found, known }),
        std::cmp::Ordering::Less => Err(Error::Older { path, found, known }),
    }
}

fn version(store: &Store) -> Result<u32, Error> {
    let pragma = |name| {
        let value = store.conn.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
        value.map_err(|source| store.error("read the format version", source))
    };
    if pragma("application_id")? != APPLICATION_ID {
        return Err(Error::NotAJournal { path: store.path.clone() });
    }
    pragma("user_version")
}

fn migration_error(store: &Store, source: rusqlite_migration::Error) -> Error {
    let operation = "upgrade the tables";
    if let rusqlite_migration::Error::RusqliteError { err, .. } = source {
        return store.error(operation, err);
    }
    let (journal, trouble) = (store.path.to_string(), crate::StorageTrouble::Other);
    Error::Storage { operation, journal, trouble, source: source.into() }
}
