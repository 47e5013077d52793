//! Saving the readable part of a damaged journal into a new file. The old file is left as it is.

use camino::Utf8Path;
use rusqlite::params;

use super::append::{Table, put_blob, put_record, put_snapshot};
use super::check::{RunHealth, gather, runs, survey, walk, walk_blobs};
use super::reader::open_damaged;
use super::{Store, file, log_mark, wal};
use crate::entry::{Blob, JournalRecord, Snapshot};
use crate::error::{Error, StorageTrouble};

/// The result of a salvage: what was saved and what was lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvage {
    /// The state of each run in the damaged journal.
    pub runs: Vec<RunHealth>,
    /// How many records were copied that follow on from record 1, or from a snapshot that reaches
    /// across the gap.
    pub records_saved: u64,
    /// How many sound records lie behind a gap that no snapshot reaches across: kept in the new
    /// file for a person to look at, but no part of the run's history any more.
    pub records_stray: u64,
    /// How many blobs were copied.
    pub blobs_saved: u64,
    /// The hashes of blobs that could not be saved; at most 100 names.
    pub blobs_lost: Vec<String>,
    /// A description of the damage, when commits in the write-ahead log lie behind it and could not
    /// be read.
    pub log_lost: Option<String>,
}

/// Copies every readable record, snapshot and blob of the journal at `from` into a new one at
/// `into`.
pub fn salvage(from: &Utf8Path, into: &Utf8Path) -> Result<Salvage, Error> {
    file::check_present(from)?;
    let missing = log_mark::missing_log(from)?;
    let log_lost = missing.map_or_else(|| wal::damage(from), |what| Ok(Some(what)))?;
    let mut salvage = Salvage { log_lost, ..Salvage::default() };
    let last = log_mark::LastRecord::read(from);
    let old = open_damaged(from).map_err(|error| match error.trouble() {
        Some(StorageTrouble::Damaged) => survey(from, error),
        _ => error,
    })?;
    if let Some(last) = last.filter(|_| salvage.log_lost.is_none()) {
        salvage.log_lost = last.missed_in(&old)?;
    }
    file::create_filled(into, |new| {
        let fail = |source| super::storage_error(into, "save records", source);
        let tx = new.conn.transaction().map_err(fail)?;
        for (key, run) in runs(&old) {
            Rescue { old: &old, tx: &tx, into, key, run: &run }.run(&mut salvage)?;
        }
        let mut saved = 0;
        salvage.blobs_lost = walk_blobs(&old, &mut |body| {
            saved += 1;
            put_blob(&tx, &Blob::new(body)).map_err(fail)
        })?;
        salvage.blobs_saved = saved;
        tx.commit().map_err(fail)
    })?;
    Ok(salvage)
}

/// The salvage of one run.
struct Rescue<'a> {
    old: &'a Store,
    tx: &'a rusqlite::Transaction<'a>,
    into: &'a Utf8Path,
    key: i64,
    run: &'a str,
}

impl Rescue<'_> {
    fn run(&self, salvage: &mut Salvage) -> Result<(), Error> {
        self.row()?;
        // The first walk finds the gaps, the second sorts the records: which still belong to a
        // history.
        let health = walk(self.old, self.key, self.run, &mut |_sound| Ok(()))?;
        let snapshots = self.snapshots();
        let bridged = health.lost.last().is_some_and(|gap| {
            snapshots.iter().any(|s| s.seq >= gap.last && s.seq <= health.last_seen_seq)
        });
        let end = if bridged { health.last_seen_seq } else { health.last_good_seq };
        walk(self.old, self.key, self.run, &mut |record| {
            if record.seq <= end {
                salvage.records_saved += 1;
                self.put(Table::Record, &record)
            } else {
                salvage.records_stray += 1;
                self.put(Table::Stray, &record)
            }
        })?;
        for snapshot in snapshots.iter().filter(|snapshot| snapshot.seq <= end) {
            put_snapshot(self.tx, self.key, snapshot).map_err(|source| self.error(source))?;
        }
        salvage.runs.push(health);
        Ok(())
    }

    /// Copies the run's row, or makes one up if it cannot be read. A made-up epoch only has to be
    /// no smaller than any that was given out; the next lease raises it.
    fn row(&self) -> Result<(), Error> {
        let insert = "INSERT INTO run (key, id, mode, title, created_at, ended, epoch)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        type Row = (String, String, i64, Option<String>, i64);
        let sql = "SELECT mode, title, created_at, ended, epoch FROM run WHERE key = ?1";
        let known: rusqlite::Result<Row> = self.old.conn.query_row(sql, [self.key], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
        });
        let (mode, title, created, ended, epoch) = known.unwrap_or_else(|_unreadable| {
            ("unknown".into(), "salvaged".into(), 0, None, i64::from(u32::MAX))
        });
        let values = params![self.key, self.run, mode, title, created, ended, epoch];
        self.tx.execute(insert, values).map(drop).map_err(|source| self.error(source))
    }

    fn snapshots(&self) -> Vec<Snapshot> {
        let mut keys: Vec<(String, i64)> = Vec::new();
        let sql = format!("SELECT core, seq FROM snapshot WHERE run = {}", self.key);
        gather(self.old, &sql, &mut keys, |row| Ok((row.get(0)?, row.get(1)?)));
        keys.into_iter()
            .filter_map(|(core, seq)| self.old.sound_snapshot(self.key, self.run, &core, seq))
            .collect()
    }

    fn put(&self, table: Table, record: &JournalRecord) -> Result<(), Error> {
        put_record(self.tx, table, self.key, record).map_err(|source| self.error(source))
    }

    fn error(&self, source: rusqlite::Error) -> Error {
        super::storage_error(self.into, "save records", source)
    }
}
