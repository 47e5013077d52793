//! The journal as records and states instead of bytes.

use autopilot_core::event::Record;
use autopilot_core::state::State;
use autopilot_journal as journal;
use autopilot_journal::{Blob, JournalEntry, JournalHistory};
use camino::{Utf8Path, Utf8PathBuf};

/// The version of the fold: a snapshot of another version is ignored.
pub const CORE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Records read from the journal at a time.
const READ_MAX: usize = 4096;

/// Records between two snapshots.
pub const SNAPSHOT_EVERY: u64 = 2_000;

/// Why the journal can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(transparent)]
    Journal(#[from] journal::Error),
    #[error("record {seq} of run `{run}` can't be decoded: {source}")]
    Record { run: String, seq: u64, source: serde_json::Error },
    #[error("record {seq} of run `{run}` can't be written: {source}")]
    Encode { run: String, seq: u64, source: serde_json::Error },
    #[error("the journal can't be written")]
    Stopped(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("text `{hash}` is missing from the journal")]
    NoBlob { hash: String },
}

/// The path of the journal in a state directory.
pub fn journal_path(state_dir: &Utf8Path) -> Utf8PathBuf {
    state_dir.join("autopilot.db")
}

/// Loads the state of a run: the newest snapshot and the records after it.
pub fn load(history: &dyn JournalHistory, run: &str) -> Result<State, StoreError> {
    let mut state = match history.snapshot(run, CORE_VERSION)? {
        // An unreadable snapshot is ignored: it is only a cache.
        Some(snapshot) => serde_json::from_slice(&snapshot.body).unwrap_or_default(),
        None => State::default(),
    };
    each(history, run, state.seq + 1, |record| state.apply_record(&record))?;
    Ok(state)
}

/// Every record of a run, oldest first.
pub fn records(history: &dyn JournalHistory, run: &str) -> Result<Vec<Record>, StoreError> {
    let mut all = Vec::new();
    each(history, run, 1, |record| all.push(record))?;
    Ok(all)
}

/// Reads the records of a run from a number on, in order.
fn each(
    history: &dyn JournalHistory,
    run: &str,
    mut from: u64,
    mut take: impl FnMut(Record),
) -> Result<(), StoreError> {
    loop {
        let batch = history.read(run, from, READ_MAX)?;
        for record in &batch {
            from = record.seq + 1;
            take(decode(record)?);
        }
        if batch.len() < READ_MAX {
            return Ok(());
        }
    }
}

/// Reads a text by its hash.
pub fn text(history: &dyn JournalHistory, hash: &str) -> Result<String, StoreError> {
    let missing = || StoreError::NoBlob { hash: hash.to_owned() };
    let bytes = history.blob(hash)?.ok_or_else(missing)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Decodes a record from the journal.
pub fn decode(record: &journal::JournalRecord) -> Result<Record, StoreError> {
    serde_json::from_slice(&record.body).map_err(|source| StoreError::Record {
        run: record.run.clone(),
        seq: record.seq,
        source,
    })
}

/// Encodes a record for the journal.
pub fn encode(run: &str, epoch: u64, record: &Record) -> Result<JournalEntry, StoreError> {
    let body = serde_json::to_vec(record).map_err(|source| StoreError::Encode {
        run: run.to_owned(),
        seq: record.seq,
        source,
    })?;
    let run = run.to_owned();
    Ok(JournalEntry::Record(journal::JournalRecord {
        run,
        seq: record.seq,
        epoch,
        at_ms: record.at.0,
        body,
    }))
}

/// A snapshot of a state, unless it can't be encoded.
pub fn snapshot(state: &State, epoch: u64) -> Option<JournalEntry> {
    let body = serde_json::to_vec(state).ok()?;
    Some(JournalEntry::Snapshot(journal::Snapshot {
        run: state.run.id.clone(),
        core_version: CORE_VERSION.to_owned(),
        epoch,
        seq: state.seq,
        body,
    }))
}

/// The store for texts that facts name. A text is queued before the record that names it, so it is
/// durable no later.
#[derive(Clone)]
pub struct Texts {
    appender: journal::Appender,
}

impl Texts {
    /// A store that writes through the journal's writer.
    pub fn new(appender: journal::Appender) -> Texts {
        Texts { appender }
    }

    /// Waits until the texts that were put so far can be read.
    pub fn settle(&self) -> Result<(), StoreError> {
        Ok(self.appender.append_now(Vec::new())?)
    }

    /// Stores a text and returns its hash.
    pub fn put(&self, text: &str) -> Result<String, StoreError> {
        let blob = Blob::new(text.as_bytes().to_vec());
        let hash = blob.hash().to_owned();
        self.appender.submit(JournalEntry::Blob(blob))?;
        Ok(hash)
    }
}
