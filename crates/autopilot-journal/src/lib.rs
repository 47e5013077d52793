//! The journal: the only truth about runs, as numbered records of opaque bytes.
//!
//! [`Journal`] is the seam between the engine and a database; [`SqliteJournal`] is the embedded
//! one. [`Writer`] puts a journal on its own thread and commits in groups. [`SqliteReader`] reads a
//! journal without a writer ever waiting for it. This crate knows nothing of the contents of a
//! record: bodies are bytes.

mod entry;
mod error;
mod foreign;
mod journal;
mod run;
mod sqlite;
mod writer;

pub use entry::{
    BLOB_BYTES_MAX, Blob, JournalEntry, JournalRecord, RECORD_BYTES_MAX, SNAPSHOT_BYTES_MAX,
    Snapshot,
};
pub use error::{Error, Reach, StorageTrouble};
pub use foreign::foreign_figures;
pub use journal::{Journal, JournalHistory};
pub use run::{JournalRun, LeaseClaim, NewRun, RunLease};
pub use sqlite::check::{Health, RunHealth, SeqSpan, check};
pub use sqlite::log_mark;
pub use sqlite::reader::SqliteReader;
pub use sqlite::salvage::{Salvage, salvage};
pub use sqlite::{SNAPSHOTS_KEPT_MAX, SqliteJournal};
pub use writer::{Appender, Writer, WriterNotice};
