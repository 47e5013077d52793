//! Writing: one transaction, with the lease and the sequence checked inside it.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::query::{KEY, record_sum, snapshot_sum, unsigned};
use super::{SNAPSHOTS_KEPT_MAX, SqliteJournal, storage_error};
use crate::entry::{Blob, JournalEntry, JournalRecord, Snapshot};
use crate::error::Error;
use crate::journal::Journal;
use crate::run::{LeaseClaim, NewRun, RunLease};

impl Journal for SqliteJournal {
    fn create_run(&mut self, run: &NewRun) -> Result<(), Error> {
        let inserted = self.store.conn.execute(
            "INSERT INTO run (id, mode, title, created_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (id) DO NOTHING",
            params![run.id, run.mode, run.title, run.created_at_ms],
        );
        match inserted.map_err(|source| self.store.error("create a run", source))? {
            0 => Err(Error::RunExists { run: run.id.clone() }),
            _ => Ok(()),
        }
    }

    fn take_lease(
        &mut self,
        run: &str,
        holder: &str,
        claim: LeaseClaim,
        now_ms: i64,
        expires_ms: i64,
    ) -> Result<RunLease, Error> {
        let path = self.store.path.clone();
        let fail = |source| storage_error(&path, "take a lease", source);
        let tx = self
            .store
            .conn
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        type Row = (i64, Option<String>, i64, i64);
        let sql = "SELECT key, holder, epoch, expires FROM run WHERE id = ?1";
        let row: Option<Row> = tx
            .query_row(sql, [run], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .optional()
            .map_err(fail)?;
        let Some((key, holder_now, epoch_now, expires_now)) = row else {
            return Err(Error::NoRun { run: run.to_owned() });
        };
        if let Some(other) = holder_now
            && other != holder
            && expires_now > now_ms
            && claim == LeaseClaim::WhenFree
        {
            let run = run.to_owned();
            return Err(Error::LeaseHeld { run, holder: other, expires_ms: expires_now });
        }
        let epoch = epoch_now + 1;
        let sql = "UPDATE run SET holder = ?2, epoch = ?3, expires = ?4 WHERE key = ?1";
        tx.execute(sql, params![key, holder, epoch, expires_ms]).map_err(fail)?;
        tx.commit().map_err(fail)?;
        Ok(RunLease { holder: holder.to_owned(), epoch: epoch.unsigned_abs(), expires_ms })
    }

    fn commit(&mut self, entries: &[JournalEntry]) -> Result<(), Error> {
        entries.iter().try_for_each(JournalEntry::check_size)?;
        let path = self.store.path.clone();
        let fail = |source| storage_error(&path, "append", source);
        let tx = self
            .store
            .conn
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        let mut batch = Batch { tx: &tx, heads: BTreeMap::new() };
        for entry in entries {
            match batch.add(entry) {
                Ok(()) => {}
                Err(AppendRefusal::Storage(source)) => return Err(fail(source)),
                Err(AppendRefusal::Rule(error)) => return Err(error),
            }
        }
        let written =
            batch.heads.iter().next_back().map(|(run, head)| ((*run).to_owned(), head.last));
        tx.commit().map_err(fail)?;
        if let Some((run, seq)) = written.filter(|(_, seq)| *seq > 0) {
            self.mark.note(&run, seq);
        }
        Ok(())
    }
}

/// The state of a run inside the open transaction.
struct RunHead {
    key: i64,
    epoch: u64,
    last: u64,
}

/// The entries of one transaction and the runs they have touched so far.
struct Batch<'a> {
    tx: &'a Transaction<'a>,
    heads: BTreeMap<&'a str, RunHead>,
}

/// The reason why an entry was not written: the database failed, or a rule of the journal forbids
/// it.
enum AppendRefusal {
    Storage(rusqlite::Error),
    Rule(Error),
}

impl From<rusqlite::Error> for AppendRefusal {
    fn from(source: rusqlite::Error) -> Self {
        Self::Storage(source)
    }
}

impl<'a> Batch<'a> {
    fn add(&mut self, entry: &'a JournalEntry) -> Result<(), AppendRefusal> {
        match entry {
            JournalEntry::Record(record) => self.record(record),
            JournalEntry::Blob(blob) => Ok(put_blob(self.tx, blob)?),
            JournalEntry::Snapshot(snapshot) => self.snapshot(snapshot),
            JournalEntry::Renew { run, epoch, expires_ms } => {
                let key = self.head(run, *epoch)?.key;
                let sql = "UPDATE run SET expires = ?2 WHERE key = ?1";
                self.tx.prepare_cached(sql)?.execute(params![key, expires_ms])?;
                Ok(())
            }
            JournalEntry::End { run, epoch, outcome } => {
                let key = self.head(run, *epoch)?.key;
                let sql = "UPDATE run SET ended = ?2 WHERE key = ?1";
                self.tx.prepare_cached(sql)?.execute(params![key, outcome])?;
                Ok(())
            }
        }
    }

    fn record(&mut self, record: &'a JournalRecord) -> Result<(), AppendRefusal> {
        let head = self.head(&record.run, record.epoch)?;
        let expected = head.last + 1;
        if record.seq != expected {
            let (run, got) = (record.run.clone(), record.seq);
            return Err(AppendRefusal::Rule(Error::OutOfSequence { run, expected, got }));
        }
        head.last = record.seq;
        let key = head.key;
        Ok(put_record(self.tx, Table::Record, key, record)?)
    }

    fn snapshot(&mut self, snapshot: &'a Snapshot) -> Result<(), AppendRefusal> {
        let head = self.head(&snapshot.run, snapshot.epoch)?;
        if snapshot.seq > head.last {
            let (run, seq, last) = (snapshot.run.clone(), snapshot.seq, head.last);
            return Err(AppendRefusal::Rule(Error::SnapshotAhead { run, seq, last }));
        }
        let key = head.key;
        put_snapshot(self.tx, key, snapshot)?;
        // The snapshots of other versions are of no use to this core, and a replay rebuilds them.
        let sql = "DELETE FROM snapshot WHERE run = ?1 AND (core <> ?2 OR seq NOT IN
            (SELECT seq FROM snapshot WHERE run = ?1 AND core = ?2 ORDER BY seq DESC LIMIT ?3))";
        let kept_max = i64::try_from(SNAPSHOTS_KEPT_MAX).unwrap_or(i64::MAX);
        self.tx.prepare_cached(sql)?.execute(params![key, snapshot.core_version, kept_max])?;
        Ok(())
    }

    /// Returns the run's head, if `epoch` is its current lease.
    fn head(&mut self, run: &'a str, epoch: u64) -> Result<&mut RunHead, AppendRefusal> {
        let head = match self.heads.entry(run) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => new.insert(head_of(self.tx, run)?),
        };
        if head.epoch != epoch {
            let (run, given, current) = (run.to_owned(), epoch, head.epoch);
            return Err(AppendRefusal::Rule(Error::LostLease { run, given, current }));
        }
        Ok(head)
    }
}

fn head_of(tx: &Connection, run: &str) -> Result<RunHead, AppendRefusal> {
    let Some(key) = tx.prepare_cached(KEY)?.query_row([run], |row| row.get(0)).optional()? else {
        return Err(AppendRefusal::Rule(Error::NoRun { run: run.to_owned() }));
    };
    let sql = "SELECT epoch, (SELECT max(seq) FROM record WHERE run = ?1) FROM run WHERE key = ?1";
    let head = tx.prepare_cached(sql)?.query_row([key], |row| {
        Ok(RunHead { key, epoch: unsigned(row, 0)?, last: unsigned(row, 1)? })
    })?;
    Ok(head)
}

/// The table that takes a record: the unbroken sequence, or the records that a salvage found beyond
/// a gap.
#[derive(Clone, Copy)]
pub(super) enum Table {
    Record,
    Stray,
}

pub(super) fn put_record(
    tx: &Connection,
    table: Table,
    key: i64,
    record: &JournalRecord,
) -> rusqlite::Result<()> {
    let sql = match table {
        Table::Record => "INSERT INTO record VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        Table::Stray => "INSERT INTO stray VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    };
    let (seq, epoch) = (stored(record.seq)?, stored(record.epoch)?);
    let sum = record_sum(key, seq, epoch, record.at_ms, &record.body);
    let values = params![key, seq, epoch, record.at_ms, sum, record.body];
    tx.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

pub(super) fn put_snapshot(tx: &Connection, key: i64, snapshot: &Snapshot) -> rusqlite::Result<()> {
    let (seq, epoch) = (stored(snapshot.seq)?, stored(snapshot.epoch)?);
    let core = &snapshot.core_version;
    let sum = snapshot_sum(key, core, seq, epoch, &snapshot.body);
    tx.prepare_cached("INSERT OR REPLACE INTO snapshot VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
        .execute(params![key, core, seq, epoch, sum, snapshot.body])?;
    Ok(())
}

/// Stores a blob. The same bytes again change nothing, but they do replace bytes that have gone
/// bad.
pub(super) fn put_blob(tx: &Connection, blob: &Blob) -> rusqlite::Result<()> {
    let sql = "INSERT INTO blob (hash, body) VALUES (?1, ?2) ON CONFLICT (hash)
        DO UPDATE SET body = excluded.body WHERE body <> excluded.body";
    tx.prepare_cached(sql)?.execute(params![blob.hash(), blob.body()])?;
    Ok(())
}

/// Converts a number to SQLite's signed integers; a sequence or epoch never comes near the limit.
fn stored(number: u64) -> rusqlite::Result<i64> {
    i64::try_from(number).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}
