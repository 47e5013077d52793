//! A thorough check of a journal: every page, every record, every blob.

use camino::Utf8Path;
use rusqlite::{Row, params};

use super::reader::open_damaged;
use super::{Store, file, log_mark, query, schema, wal};
use crate::entry::{JournalRecord, sha256_hex};
use crate::error::{Error, Reach, StorageTrouble};

/// The most findings of one kind in a report, which is for a person.
const FINDINGS_MAX: usize = 100;

/// How many numbers in a row may be missing before the search behind damage ends, when not even the
/// last number of a run can be read.
const MISSES_MAX: u64 = 10_000;

/// The findings of a thorough check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Damage of the file itself; at most 100 lines, some in SQLite's words.
    pub structure: Vec<String>,
    /// The state of each run.
    pub runs: Vec<RunHealth>,
    /// The hashes of blobs with wrong bytes, or `row <n>` where not even the hash can be read.
    pub blobs_lost: Vec<String>,
}

/// The records of a run that can be read and those that cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunHealth {
    /// The id of the run, or `nameless-<key>` when its row cannot be read.
    pub run: String,
    /// The end of the unbroken sequence from record 1.
    pub last_good_seq: u64,
    /// The number of the highest record that can be read, which may lie behind a gap.
    pub last_seen_seq: u64,
    /// The numbers of the records that are missing or damaged, in order.
    pub lost: Vec<SeqSpan>,
}

/// A range of record numbers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeqSpan {
    /// The lowest number.
    pub first: u64,
    /// The highest number.
    pub last: u64,
}

impl Health {
    /// Returns whether the check found no damage at all.
    pub fn is_sound(&self) -> bool {
        self.structure.is_empty()
            && self.blobs_lost.is_empty()
            && self.runs.iter().all(|run| run.lost.is_empty())
    }
}

/// Reads the whole journal without changing it. The check takes as long as the file is large.
pub fn check(path: &Utf8Path) -> Result<Health, Error> {
    file::check_present(path)?;
    let mut health = Health::default();
    let last = log_mark::LastRecord::read(path);
    health.structure.extend(log_mark::missing_log(path)?);
    health.structure.extend(wal::damage(path)?);
    let store = match open_damaged(path).and_then(|store| {
        schema::check_readable(&store)?;
        Ok(store)
    }) {
        Ok(store) => store,
        Err(error) if error.trouble() == Some(StorageTrouble::Damaged) => {
            health.structure.push(words(&error));
            return Ok(health);
        }
        Err(error) => return Err(error),
    };
    let is_whole = health.structure.is_empty();
    if let Some(last) = last.filter(|_| is_whole) {
        health.structure.extend(last.missed_in(&store)?);
    }
    health.structure.extend(structure(&store));
    for (key, run) in runs(&store) {
        health.runs.push(walk(&store, key, &run, &mut |_sound| Ok(()))?);
    }
    health.blobs_lost = walk_blobs(&store, &mut |_sound| Ok(()))?;
    Ok(health)
}

/// Turns the discovery of damage into an error that says what is left.
pub(super) fn survey(path: &Utf8Path, cause: Error) -> Error {
    let what = words(&cause);
    let readable = open_damaged(path).map(|store| reach(&store)).unwrap_or_default();
    Error::Damaged { path: path.to_owned(), what, readable }
}

pub(super) fn reach(store: &Store) -> Vec<Reach> {
    let walked = runs(store).into_iter().map(|(key, run)| {
        let end = walk(store, key, &run, &mut |_sound| Ok(())).map(|health| health.last_good_seq);
        Reach { run, last_good_seq: end.unwrap_or(0) }
    });
    walked.collect()
}

fn words(error: &Error) -> String {
    if let Error::Damaged { what, .. } = error {
        return what.clone();
    }
    if let Error::Storage { source, .. } = error {
        return source.to_string();
    }
    error.to_string()
}

fn structure(store: &Store) -> Vec<String> {
    let found = || -> rusqlite::Result<Vec<String>> {
        let mut statement =
            store.conn.prepare(&format!("PRAGMA integrity_check({FINDINGS_MAX})"))?;
        statement.query_map([], |row| row.get(0))?.collect()
    };
    match found() {
        Ok(lines) if lines == ["ok"] => Vec::new(),
        Ok(lines) => lines,
        Err(error) => vec![error.to_string()],
    }
}

/// Returns all runs that can be found, also those of which only records are left.
pub(super) fn runs(store: &Store) -> Vec<(i64, String)> {
    let mut found = Vec::new();
    gather(store, "SELECT key, id FROM run ORDER BY key", &mut found, |row| {
        Ok((row.get(0)?, row.get(1)?))
    });
    let mut keys = Vec::new();
    let sql = "WITH RECURSIVE k(n) AS (SELECT min(run) FROM record UNION ALL
        SELECT (SELECT min(run) FROM record WHERE run > n) FROM k WHERE n IS NOT NULL)
        SELECT n FROM k WHERE n IS NOT NULL";
    gather(store, sql, &mut keys, |row| row.get::<_, i64>(0));
    for key in keys {
        if !found.iter().any(|(known, _)| *known == key) {
            found.push((key, format!("nameless-{key}")));
        }
    }
    found
}

/// Collects rows up to the first that the database cannot read; a row of the wrong types is left
/// out.
pub(super) fn gather<T>(
    store: &Store,
    sql: &str,
    into: &mut Vec<T>,
    of: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) {
    let Ok(mut statement) = store.conn.prepare(sql) else { return };
    let Ok(mut rows) = statement.query([]) else { return };
    while let Ok(Some(row)) = rows.next() {
        if let Ok(value) = of(row) {
            into.push(value);
        }
    }
}

/// Visits every sound record of a run in order, stepping over pages that cannot be read.
pub(super) fn walk(
    store: &Store,
    key: i64,
    run: &str,
    visit: &mut dyn FnMut(JournalRecord) -> Result<(), Error>,
) -> Result<RunHealth, Error> {
    let top = highest(store, key);
    let (last_good, lost) = (None, Vec::new());
    let mut walk = Walk { store, key, run, visit, next: 1, last_good, last_seen: 0, lost };
    while walk.scan()? == Scan::Broken && walk.step_over(top)? {}
    if let Some(top) = top {
        walk.lose_up_to(top);
    }
    let last_good_seq = walk.last_good.unwrap_or(walk.last_seen);
    let (run, last_seen_seq) = (run.to_owned(), walk.last_seen);
    Ok(RunHealth { run, last_good_seq, last_seen_seq, lost: walk.lost })
}

fn highest(store: &Store, key: i64) -> Option<u64> {
    let sql = "SELECT max(seq) FROM record WHERE run = ?1";
    store.conn.query_row(sql, [key], |row| query::unsigned(row, 0)).ok()
}

/// A walk over the records of one run.
struct Walk<'a> {
    store: &'a Store,
    key: i64,
    run: &'a str,
    visit: &'a mut dyn FnMut(JournalRecord) -> Result<(), Error>,
    next: u64,
    /// The number at which the unbroken sequence ends; `None` while it goes on.
    last_good: Option<u64>,
    last_seen: u64,
    lost: Vec<SeqSpan>,
}

#[derive(PartialEq, Eq)]
enum Scan {
    Ended,
    Broken,
}

impl Walk<'_> {
    fn scan(&mut self) -> Result<Scan, Error> {
        let sql = "SELECT seq, epoch, at, sum, body FROM record
            WHERE run = ?1 AND seq >= ?2 ORDER BY seq";
        let store = self.store;
        let Ok(mut statement) = store.conn.prepare_cached(sql) else { return Ok(Scan::Broken) };
        let from = i64::try_from(self.next).unwrap_or(i64::MAX);
        let Ok(mut rows) = statement.query(params![self.key, from]) else {
            return Ok(Scan::Broken);
        };
        loop {
            match rows.next() {
                Ok(Some(row)) => self.take(row)?,
                Ok(None) => return Ok(Scan::Ended),
                Err(_unreadable) => return Ok(Scan::Broken),
            }
        }
    }

    fn take(&mut self, row: &Row<'_>) -> Result<(), Error> {
        match query::sound_record(row, self.key, self.run) {
            Ok(Some(record)) if record.seq >= self.next => {
                if record.seq > self.next {
                    self.lose_up_to(record.seq - 1);
                }
                self.last_seen = record.seq;
                self.next = record.seq + 1;
                (self.visit)(record)
            }
            // The number of a damaged row may itself be wrong: only the number we wait for counts.
            Ok(Some(_)) | Ok(None) | Err(_) => {
                if query::unsigned(row, 0).is_ok_and(|seq| seq == self.next) {
                    self.lose_up_to(self.next);
                }
                Ok(())
            }
        }
    }

    /// Asks for the following numbers one by one until a record answers; false if none does.
    fn step_over(&mut self, top: Option<u64>) -> Result<bool, Error> {
        let store = self.store;
        let end = top.unwrap_or(self.next.saturating_add(MISSES_MAX));
        for seq in self.next..=end {
            let sql = "SELECT seq, epoch, at, sum, body FROM record WHERE run = ?1 AND seq = ?2";
            let Ok(mut statement) = store.conn.prepare_cached(sql) else { return Ok(false) };
            let wanted = i64::try_from(seq).unwrap_or(i64::MAX);
            let Ok(mut rows) = statement.query(params![self.key, wanted]) else { continue };
            let before = self.last_seen;
            if let Ok(Some(row)) = rows.next() {
                self.take(row)?;
            }
            if self.last_seen != before {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn lose_up_to(&mut self, last: u64) {
        if last < self.next {
            return;
        }
        self.last_good.get_or_insert(self.next - 1);
        match self.lost.last_mut() {
            Some(span) if span.last + 1 == self.next => span.last = last,
            _ => self.lost.push(SeqSpan { first: self.next, last }),
        }
        self.next = last + 1;
    }
}

/// Visits every sound blob and returns the names of the others.
pub(super) fn walk_blobs(
    store: &Store,
    visit: &mut dyn FnMut(Vec<u8>) -> Result<(), Error>,
) -> Result<Vec<String>, Error> {
    let mut lost = Vec::new();
    let highest =
        store.conn.query_row("SELECT max(rowid) FROM blob", [], |row| row.get::<_, Option<i64>>(0));
    let highest = match highest {
        Ok(highest) => highest.unwrap_or(0),
        Err(_unreadable) => {
            lost.push("an unknown number of blobs at the end".into());
            i64::try_from(MISSES_MAX).unwrap_or(i64::MAX)
        }
    };
    for rowid in 1..=highest {
        let found = blob_at(store, rowid);
        match found {
            Ok(Some((hash, body))) if sha256_hex(&body) == hash => visit(body)?,
            Ok(Some((hash, _wrong))) => name(&mut lost, hash),
            Ok(None) => {}
            Err(_unreadable) => name(&mut lost, format!("row {rowid}")),
        }
    }
    Ok(lost)
}

fn blob_at(store: &Store, rowid: i64) -> rusqlite::Result<Option<(String, Vec<u8>)>> {
    use rusqlite::OptionalExtension;
    let mut statement =
        store.conn.prepare_cached("SELECT hash, body FROM blob WHERE rowid = ?1")?;
    statement.query_row([rowid], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

/// Adds a name, unless the list is already long enough for a person.
fn name(list: &mut Vec<String>, name: String) {
    if list.len() < FINDINGS_MAX {
        list.push(name);
    }
}
