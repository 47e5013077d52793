//! The seam: what the engine asks of a database, and nothing more.

use crate::entry::{Entry, Record, Snapshot};
use crate::error::Error;
use crate::run::{Claim, Lease, NewRun, Run};

/// The reading half. Every method is one short transaction.
pub trait History {
    /// The newest runs first, at most `runs_max`.
    fn runs(&self, runs_max: usize) -> Result<Vec<Run>, Error>;

    fn run(&self, id: &str) -> Result<Option<Run>, Error>;

    /// Up to `records_max` records from `from_seq` on, in order and without gaps; fewer than
    /// `records_max` means the end was reached. A record whose checksum does not hold, or a
    /// missing number, is an error that names it.
    fn read(&self, run: &str, from_seq: u64, records_max: usize) -> Result<Vec<Record>, Error>;

    /// The newest sound snapshot this version of the core has made. One that is damaged, or newer
    /// than the records, is passed over.
    fn snapshot(&self, run: &str, core_version: &str) -> Result<Option<Snapshot>, Error>;

    /// The bytes with this SHA-256, checked against it.
    fn blob(&self, hash: &str) -> Result<Option<Vec<u8>>, Error>;
}

/// The whole of it: a history that can be written.
pub trait Journal: History {
    fn create_run(&mut self, run: &NewRun) -> Result<(), Error>;

    /// Takes the run's lease under a new epoch. Every older epoch is refused from then on.
    fn take_lease(
        &mut self,
        run: &str,
        holder: &str,
        claim: Claim,
        now_ms: i64,
        expires_ms: i64,
    ) -> Result<Lease, Error>;

    /// Commits all entries as one transaction and returns when they are durable. Each record,
    /// snapshot, renewal and end must carry the run's current epoch, and each record the number
    /// that follows its run's last; otherwise nothing at all is written.
    fn commit(&mut self, entries: &[Entry]) -> Result<(), Error>;

    fn append(&mut self, records: Vec<Record>) -> Result<(), Error> {
        let entries: Vec<Entry> = records.into_iter().map(Entry::Record).collect();
        self.commit(&entries)
    }
}
