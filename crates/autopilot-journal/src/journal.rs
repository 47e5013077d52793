//! The seam between the engine and a database: the operations the engine needs, and nothing more.

use crate::entry::{JournalEntry, JournalRecord, Snapshot};
use crate::error::Error;
use crate::run::{JournalRun, LeaseClaim, NewRun, RunLease};

/// The reading half of a journal. Every method is one short transaction.
pub trait JournalHistory {
    /// Returns the newest runs first, at most `runs_max`.
    fn runs(&self, runs_max: usize) -> Result<Vec<JournalRun>, Error>;

    /// Returns the row of the run with this id, or `None` if there is no such run.
    fn run(&self, id: &str) -> Result<Option<JournalRun>, Error>;

    /// Returns up to `records_max` records from `from_seq` on, in order and without gaps; fewer
    /// than `records_max` means the end was reached. A record with a wrong checksum, or a missing
    /// number, is an error that names it.
    fn read(
        &self,
        run: &str,
        from_seq: u64,
        records_max: usize,
    ) -> Result<Vec<JournalRecord>, Error>;

    /// Returns the newest sound snapshot that this version of the core has made. A snapshot that is
    /// damaged, or newer than the records, is passed over.
    fn snapshot(&self, run: &str, core_version: &str) -> Result<Option<Snapshot>, Error>;

    /// Returns the bytes with this SHA-256, after checking that they have it.
    fn blob(&self, hash: &str) -> Result<Option<Vec<u8>>, Error>;
}

/// A history that can also be written.
pub trait Journal: JournalHistory {
    /// Adds the row of a new run, which has no lease and no records yet.
    fn create_run(&mut self, run: &NewRun) -> Result<(), Error>;

    /// Takes the run's lease under a new epoch. Every older epoch is refused from then on.
    fn take_lease(
        &mut self,
        run: &str,
        holder: &str,
        claim: LeaseClaim,
        now_ms: i64,
        expires_ms: i64,
    ) -> Result<RunLease, Error>;

    /// Commits all entries as one transaction and returns when they are durable. Each record,
    /// snapshot, renewal and end must carry the run's current epoch, and each record the number
    /// that follows its run's last; otherwise nothing at all is written.
    fn commit(&mut self, entries: &[JournalEntry]) -> Result<(), Error>;

    /// Commits records alone, as [`Self::commit`] does.
    fn append(&mut self, records: Vec<JournalRecord>) -> Result<(), Error> {
        let entries: Vec<JournalEntry> = records.into_iter().map(JournalEntry::Record).collect();
        self.commit(&entries)
    }
}
