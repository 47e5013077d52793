//! The errors of a journal, in words for the person who must deal with them.

use std::sync::Arc;

use camino::Utf8PathBuf;

/// An error of a journal: of the database, its file, its lease or its writer thread.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database refused or failed an operation.
    #[error("journal `{journal}`: cannot {operation}")]
    Storage {
        /// The operation in words that complete "cannot …".
        operation: &'static str,
        /// The path of the journal.
        journal: String,
        /// The kind of failure, for callers that react differently to each.
        trouble: StorageTrouble,
        /// The error of the database.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An operation on the journal's file, its log or its directory failed.
    #[error("cannot {operation} `{path}`")]
    File { operation: &'static str, path: Utf8PathBuf, source: std::io::Error },
    /// The file that should be opened does not exist.
    #[error("there is no journal at `{path}`")]
    Missing { path: Utf8PathBuf },
    /// The file that should be created is already there.
    #[error("there is already a file at `{path}`")]
    Exists { path: Utf8PathBuf },
    /// The file is another program's database.
    #[error("`{path}` is a database, but not a journal")]
    NotAJournal { path: Utf8PathBuf },
    /// A newer version of the program has written the file.
    #[error(
        "journal `{path}` has format version {found}, but this version of autopilot supports only \
         versions up to {known}; upgrade autopilot"
    )]
    Newer { path: Utf8PathBuf, found: u32, known: u32 },
    /// An older version of the program has written the file, and a reader must not upgrade it.
    #[error(
        "journal `{path}` has format version {found}, but this version of autopilot reads {known}; \
         the next command that writes to it will upgrade it"
    )]
    Older { path: Utf8PathBuf, found: u32, known: u32 },
    /// The log needs an index beside it, which cannot be made in a directory that is not writable.
    #[error(
        "cannot read journal `{path}`: its write-ahead log holds commits and its directory is not \
         writable; copy the directory to a writable place and read it there"
    )]
    LogUnreadable { path: Utf8PathBuf },
    /// Opening the journal found damage. `readable` says how far each run can still be read.
    #[error("journal `{path}` is damaged: {what}; {}", describe(.readable))]
    Damaged { path: Utf8PathBuf, what: String, readable: Vec<Reach> },
    /// A record does not have the checksum that was stored with it.
    #[error("record {seq} of run `{run}` is damaged: its checksum does not match")]
    DamagedRecord { run: String, seq: u64 },
    /// The bytes of a blob are not those it was named for.
    #[error("blob `{hash}` is damaged: its content does not match its hash")]
    DamagedBlob { hash: String },
    /// A record does not carry the number that follows its run's last.
    #[error("records of run `{run}` are not in sequence: expected record {expected}, got {got}")]
    OutOfSequence { run: String, expected: u64, got: u64 },
    /// A snapshot claims to contain records that the run does not have.
    #[error("a snapshot of run `{run}` at record {seq} is ahead of its last record {last}")]
    SnapshotAhead { run: String, seq: u64, last: u64 },
    /// Another process has taken the lease since; the entry was not written.
    #[error(
        "the lease of run `{run}` is lost: it was taken at epoch {given}, and {current} is current"
    )]
    LostLease { run: String, given: u64, current: u64 },
    /// Another holder's lease has not expired yet.
    #[error("the lease of run `{run}` is held by {holder} until {expires_ms} ms")]
    LeaseHeld { run: String, holder: String, expires_ms: i64 },
    /// The journal has no run of that id.
    #[error("there is no run `{run}`")]
    NoRun { run: String },
    /// A new run was given an id that is taken.
    #[error("run `{run}` already exists")]
    RunExists { run: String },
    /// An entry is longer than its kind may be.
    #[error("{what} has {bytes} bytes, more than the {bytes_max} allowed")]
    TooLarge { what: String, bytes: usize, bytes_max: usize },
    /// The writer has stopped for good; the source says why the commit failed.
    #[error("the journal accepts no more entries because a commit failed; open it again")]
    Refused { source: Arc<Error> },
    /// An entry came after the writer was closed.
    #[error("the journal's writer has been closed")]
    Closed,
    /// The writer thread panicked.
    #[error("the journal's writer thread stopped unexpectedly")]
    WriterDied,
    /// The operating system would not start the writer thread.
    #[error("cannot start the journal's writer thread")]
    WriterStart { source: std::io::Error },
}

/// How far a damaged journal can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The id of the run.
    pub run: String,
    /// The end of the unbroken sequence from record 1; 0 when there is none.
    pub last_good_seq: u64,
}

/// The kind of a storage failure, for callers that react differently to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageTrouble {
    /// There is no space left; goes away when somebody frees some.
    Full,
    /// The device failed a read, a write or an fsync.
    Io,
    /// The file or its file system cannot be written.
    ReadOnly,
    /// The file may not be opened.
    Denied,
    /// Another process held the database longer than we waited.
    Busy,
    /// The content of the file is not what was written.
    Damaged,
    /// A failure of a kind that no caller treats specially.
    Other,
}

impl Error {
    /// Returns the storage trouble behind this error, also through [`Error::Refused`].
    pub fn trouble(&self) -> Option<StorageTrouble> {
        match self {
            Self::Storage { trouble, .. } => Some(*trouble),
            Self::Refused { source } => source.trouble(),
            Self::Damaged { .. } | Self::DamagedRecord { .. } | Self::DamagedBlob { .. } => {
                Some(StorageTrouble::Damaged)
            }
            Self::File { .. } => Some(StorageTrouble::Io),
            Self::Missing { .. }
            | Self::Exists { .. }
            | Self::NotAJournal { .. }
            | Self::Newer { .. }
            | Self::Older { .. }
            | Self::LogUnreadable { .. }
            | Self::OutOfSequence { .. }
            | Self::SnapshotAhead { .. }
            | Self::LostLease { .. }
            | Self::LeaseHeld { .. }
            | Self::NoRun { .. }
            | Self::RunExists { .. }
            | Self::TooLarge { .. }
            | Self::Closed
            | Self::WriterDied
            | Self::WriterStart { .. } => None,
        }
    }
}

/// The most runs named in a message, so that a list does not fill the screen.
const RUNS_NAMED_MAX: usize = 8;

fn describe(readable: &[Reach]) -> String {
    if readable.is_empty() {
        return "none of it can be read".into();
    }
    let named: Vec<String> = readable
        .iter()
        .take(RUNS_NAMED_MAX)
        .map(|reach| format!("run `{}` up to record {}", reach.run, reach.last_good_seq))
        .collect();
    let more = match readable.len().saturating_sub(RUNS_NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more runs"),
    };
    format!("readable: {}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_of_readable_runs_is_cut() {
        let readable: Vec<Reach> = (0..RUNS_NAMED_MAX + 3)
            .map(|n| Reach { run: n.to_string(), last_good_seq: 1 })
            .collect();
        let said = describe(&readable);
        assert!(said.ends_with("run `7` up to record 1 and 3 more runs"), "{said}");
    }
}
