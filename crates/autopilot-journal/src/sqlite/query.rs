//! Reading rows: each value is checked before it is handed out.

use rusqlite::{OptionalExtension, Row, params};

use super::Store;
use crate::entry::{JournalRecord, Snapshot, sha256_hex};
use crate::error::Error;
use crate::run::{JournalRun, RunLease};

/// The columns of a run's row and the number of its last record, as [`run_of`] reads them.
const RUN: &str = "SELECT id, mode, title, created_at, ended, holder, epoch, expires,
    (SELECT max(seq) FROM record WHERE record.run = run.key) FROM run";

/// The query for the small number by which other tables name a run.
pub(super) const KEY: &str = "SELECT key FROM run WHERE id = ?1";

impl Store {
    pub(super) fn runs(&self, runs_max: usize) -> Result<Vec<JournalRun>, Error> {
        let list = || -> rusqlite::Result<Vec<JournalRun>> {
            let sql = format!("{RUN} ORDER BY created_at DESC, key DESC LIMIT ?1");
            let mut statement = self.conn.prepare_cached(&sql)?;
            statement.query_map([limit(runs_max)], run_of)?.collect()
        };
        list().map_err(|source| self.error("list the runs", source))
    }

    pub(super) fn run(&self, id: &str) -> Result<Option<JournalRun>, Error> {
        let find = || {
            let mut statement = self.conn.prepare_cached(&format!("{RUN} WHERE id = ?1"))?;
            statement.query_row([id], run_of).optional()
        };
        find().map_err(|source| self.error("find a run", source))
    }

    pub(super) fn read(
        &self,
        run: &str,
        from_seq: u64,
        records_max: usize,
    ) -> Result<Vec<JournalRecord>, Error> {
        let fail = |source| self.error("read records", source);
        let Some(key) = self.key(run).map_err(fail)? else {
            return Err(Error::NoRun { run: run.to_owned() });
        };
        let mut expected = from_seq.max(1);
        let mut records = Vec::new();
        let mut statement = self
            .conn
            .prepare_cached(
                "SELECT seq, epoch, at, sum, body FROM record
                 WHERE run = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3",
            )
            .map_err(fail)?;
        let from = i64::try_from(expected).unwrap_or(i64::MAX);
        let mut rows = statement.query(params![key, from, limit(records_max)]).map_err(fail)?;
        while let Some(row) = rows.next().map_err(fail)? {
            let Some(record) = sound_record(row, key, run).map_err(fail)? else {
                return Err(Error::DamagedRecord { run: run.to_owned(), seq: expected });
            };
            if record.seq != expected {
                let run = run.to_owned();
                return Err(Error::OutOfSequence { run, expected, got: record.seq });
            }
            expected += 1;
            records.push(record);
        }
        Ok(records)
    }

    pub(super) fn snapshot(&self, run: &str, core: &str) -> Result<Option<Snapshot>, Error> {
        let fail = |source| self.error("read a snapshot", source);
        let Some(key) = self.key(run).map_err(fail)? else {
            return Err(Error::NoRun { run: run.to_owned() });
        };
        let mut statement = self
            .conn
            .prepare_cached(
                "SELECT seq FROM snapshot WHERE run = ?1 AND core = ?2 AND seq <=
                     (SELECT max(seq) FROM record WHERE record.run = ?1) ORDER BY seq DESC",
            )
            .map_err(fail)?;
        let seqs: Vec<i64> = statement
            .query_map(params![key, core], |row| row.get(0))
            .and_then(Iterator::collect)
            .map_err(fail)?;
        // Falling back from a damaged snapshot to an older one, or to none at all, only costs time.
        Ok(seqs.into_iter().find_map(|seq| self.sound_snapshot(key, run, core, seq)))
    }

    pub(super) fn sound_snapshot(
        &self,
        key: i64,
        run: &str,
        core: &str,
        seq: i64,
    ) -> Option<Snapshot> {
        let sql = "SELECT epoch, sum, body FROM snapshot WHERE run = ?1 AND core = ?2 AND seq = ?3";
        let mut statement = self.conn.prepare_cached(sql).ok()?;
        let (epoch, sum, body): (i64, i64, Vec<u8>) = statement
            .query_row(params![key, core, seq], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .ok()?;
        let holds = snapshot_sum(key, core, seq, epoch, &body) == sum;
        let (seq, epoch) = (u64::try_from(seq).ok()?, u64::try_from(epoch).ok()?);
        let (run, core_version) = (run.to_owned(), core.to_owned());
        holds.then_some(Snapshot { run, core_version, epoch, seq, body })
    }

    pub(super) fn blob(&self, hash: &str) -> Result<Option<Vec<u8>>, Error> {
        let find = || {
            let mut statement =
                self.conn.prepare_cached("SELECT body FROM blob WHERE hash = ?1")?;
            statement.query_row([hash], |row| row.get::<_, Vec<u8>>(0)).optional()
        };
        match find().map_err(|source| self.error("read a blob", source))? {
            Some(body) if sha256_hex(&body) != hash => {
                Err(Error::DamagedBlob { hash: hash.to_owned() })
            }
            found => Ok(found),
        }
    }

    /// Checks the newest record of each run that has not ended; cheap enough for every opening.
    pub(super) fn check_tails(&self) -> Result<(), Error> {
        let fail = |source| self.error("check the newest records", source);
        let unended = || -> rusqlite::Result<Vec<(i64, String)>> {
            let mut statement = self.conn.prepare("SELECT key, id FROM run WHERE ended IS NULL")?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        let mut statement = self
            .conn
            .prepare_cached(
                "SELECT seq, epoch, at, sum, body FROM record
                 WHERE run = ?1 ORDER BY seq DESC LIMIT 1",
            )
            .map_err(fail)?;
        for (key, run) in unended().map_err(fail)? {
            let mut rows = statement.query([key]).map_err(fail)?;
            let Some(row) = rows.next().map_err(fail)? else { continue };
            if sound_record(row, key, &run).map_err(fail)?.is_none() {
                let seq = unsigned(row, 0).unwrap_or(0);
                return Err(Error::DamagedRecord { run, seq });
            }
        }
        Ok(())
    }

    pub(super) fn key(&self, run: &str) -> rusqlite::Result<Option<i64>> {
        self.conn.prepare_cached(KEY)?.query_row([run], |row| row.get(0)).optional()
    }
}

/// Reads a record; `None` when a value has the wrong type or the checksum does not match.
pub(super) fn sound_record(
    row: &Row<'_>,
    key: i64,
    run: &str,
) -> rusqlite::Result<Option<JournalRecord>> {
    let number = |at: usize| row.get_ref(at).map(|value| value.as_i64().ok());
    let (seq, epoch, at_ms, sum) = (number(0)?, number(1)?, number(2)?, number(3)?);
    let (Some(seq), Some(epoch), Some(at_ms), Some(sum)) = (seq, epoch, at_ms, sum) else {
        return Ok(None);
    };
    let Ok(body) = row.get_ref(4)?.as_blob() else { return Ok(None) };
    let (Ok(seq_u), Ok(epoch_u)) = (u64::try_from(seq), u64::try_from(epoch)) else {
        return Ok(None);
    };
    if record_sum(key, seq, epoch, at_ms, body) != sum {
        return Ok(None);
    }
    let (run, body) = (run.to_owned(), body.to_vec());
    Ok(Some(JournalRecord { run, seq: seq_u, epoch: epoch_u, at_ms, body }))
}

/// Computes the checksum of a record. It covers the numbers too: a record that moved to another
/// place is as wrong as a changed body.
pub(super) fn record_sum(key: i64, seq: i64, epoch: i64, at_ms: i64, body: &[u8]) -> i64 {
    checksum([key, seq, epoch, at_ms], &[body])
}

pub(super) fn snapshot_sum(key: i64, core: &str, seq: i64, epoch: i64, body: &[u8]) -> i64 {
    checksum([key, seq, epoch, 0], &[core.as_bytes(), body])
}

fn checksum(numbers: [i64; 4], parts: &[&[u8]]) -> i64 {
    let mut head = [0; 32];
    for (bytes, number) in head.chunks_exact_mut(8).zip(numbers) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&head);
    parts.iter().for_each(|part| hasher.update(part));
    i64::from(hasher.finalize())
}

fn run_of(row: &Row<'_>) -> rusqlite::Result<JournalRun> {
    let holder: Option<String> = row.get(5)?;
    let (epoch, expires_ms) = (unsigned(row, 6)?, row.get(7)?);
    Ok(JournalRun {
        id: row.get(0)?,
        mode: row.get(1)?,
        title: row.get(2)?,
        created_at_ms: row.get(3)?,
        ended: row.get(4)?,
        lease: holder.map(|holder| RunLease { holder, epoch, expires_ms }),
        last_seq: unsigned(row, 8)?,
    })
}

/// Reads a number; a missing one counts as 0, which no record and no lease has.
pub(super) fn unsigned(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    let value = row.get::<_, Option<i64>>(at)?.unwrap_or(0);
    u64::try_from(value).map_err(|_negative| rusqlite::Error::IntegralValueOutOfRange(at, value))
}

fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
