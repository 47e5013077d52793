//! The database file as a whole: made under a temporary name, put in place without replacing
//! anything, and copied only by SQLite itself. Opening the file by any other means would, on
//! closing, drop the locks that this process holds on it.

use std::fs;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU32, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use rusqlite::{Connection, MAIN_DB, OpenFlags};

use super::{Store, WRITE_WAIT_MS_MAX, schema};
use crate::error::Error;

/// The most backups of one format version; more mean that somebody goes back and forth between
/// versions of the program.
const BACKUPS_MAX: u32 = 100;

/// Refuses a path where there is no file, or an empty one.
pub(super) fn check_present(path: &Utf8Path) -> Result<(), Error> {
    match fs::metadata(path) {
        Ok(meta) if meta.len() == 0 => {
            // SQLite would take an empty file for a new database.
            let (path, what) = (path.to_owned(), "the file is empty".to_owned());
            Err(Error::Damaged { path, what, readable: Vec::new() })
        }
        Ok(meta) if meta.is_dir() => Err(file_error("open", path, ErrorKind::IsADirectory.into())),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(Error::Missing { path: path.to_owned() })
        }
        Err(source) => Err(file_error("inspect", path, source)),
    }
}

/// Makes an empty journal at a path where there is no file yet.
pub(super) fn create(path: &Utf8Path) -> Result<(), Error> {
    create_filled(path, |_empty| Ok(()))
}

/// Makes a journal, lets `fill` write into it, and puts it in place only when that succeeded.
pub(super) fn create_filled(
    path: &Utf8Path,
    fill: impl FnOnce(&mut Store) -> Result<(), Error>,
) -> Result<(), Error> {
    if path.exists() {
        return Err(Error::Exists { path: path.to_owned() });
    }
    // A mark of a journal that is gone says nothing about the new one.
    let _not_there = fs::remove_file(super::log_mark::path_of(path));
    let temporary = temporary_beside(path);
    let made = make(&temporary, fill).and_then(|()| put_in_place(&temporary, path));
    for suffix in ["", "-wal", "-shm"] {
        // After a success the temporary files are already gone; after a failure they are of no use.
        let _gone = fs::remove_file(format!("{temporary}{suffix}"));
    }
    made
}

fn make(
    temporary: &Utf8Path,
    fill: impl FnOnce(&mut Store) -> Result<(), Error>,
) -> Result<(), Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut store = Store::open(temporary, temporary.as_str(), flags, WRITE_WAIT_MS_MAX)?;
    schema::create(&mut store)?;
    store.set_durable()?;
    fill(&mut store)?;
    let Store { conn, path } = store;
    close(conn, &path)
}

/// Copies an older file to `<name>.v<version>.bak` before it is changed.
pub(super) fn back_up(store: &Store, version: u32) -> Result<Utf8PathBuf, Error> {
    let temporary = temporary_beside(&store.path);
    let copied = store.conn.backup(MAIN_DB, temporary.as_std_path(), None);
    let placed = copied.map_err(|source| store.error("make a backup", source)).and_then(|()| {
        let names = (1..=BACKUPS_MAX).map(|nth| match nth {
            1 => format!("{}.v{version}.bak", store.path),
            _ => format!("{}.v{version}.bak.{nth}", store.path),
        });
        let mut last = Error::Exists { path: store.path.clone() };
        for name in names {
            match put_in_place(&temporary, Utf8Path::new(&name)) {
                Err(taken @ Error::Exists { .. }) => last = taken,
                Ok(()) => return Ok(Utf8PathBuf::from(name)),
                Err(error) => return Err(error),
            }
        }
        Err(last)
    });
    let _gone = fs::remove_file(&temporary);
    placed
}

/// Closes the last connection, which moves the log into the file; an error in that must not be
/// lost.
fn close(conn: Connection, path: &Utf8Path) -> Result<(), Error> {
    conn.close().map_err(|(_conn, source)| super::storage_error(path, "close the file", source))
}

/// Gives the finished file its name. A link, unlike a rename, fails when the name is taken: of two
/// that create a journal at the same time one wins, and no journal is ever replaced by an empty
/// one.
fn put_in_place(temporary: &Utf8Path, path: &Utf8Path) -> Result<(), Error> {
    fs::File::open(temporary)
        .and_then(|file| file.sync_all())
        .map_err(|source| file_error("sync", temporary, source))?;
    match fs::hard_link(temporary, path) {
        Ok(()) => {}
        Err(_taken) if path.exists() => return Err(Error::Exists { path: path.to_owned() }),
        // Some file systems have no links.
        Err(_no_links) => {
            fs::rename(temporary, path).map_err(|source| file_error("create", path, source))?
        }
    }
    sync_directory_of(path)
}

fn sync_directory_of(path: &Utf8Path) -> Result<(), Error> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_str().is_empty() => parent,
        _ => Utf8Path::new("."),
    };
    fs::File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(|source| file_error("sync", directory, source))
}

fn temporary_beside(path: &Utf8Path) -> Utf8PathBuf {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let nth = MADE.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    let name = Utf8PathBuf::from(format!("{path}.{process}-{nth}.tmp"));
    // A dead process that had our process number may have left a file of this name.
    let _gone = fs::remove_file(&name);
    name
}

fn file_error(operation: &'static str, path: &Utf8Path, source: std::io::Error) -> Error {
    Error::File { operation, path: path.to_owned(), source }
}
