//! What can go wrong with a journal, in words for the person who must deal with it.

use std::sync::Arc;

use camino::Utf8PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {operation} in journal `{journal}`")]
    Storage {
        operation: &'static str,
        journal: String,
        trouble: Trouble,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("cannot {operation} `{path}`")]
    File { operation: &'static str, path: Utf8PathBuf, source: std::io::Error },
    #[error("there is no journal at `{path}`")]
    Missing { path: Utf8PathBuf },
    #[error("there is already a file at `{path}`")]
    Exists { path: Utf8PathBuf },
    #[error("`{path}` is a database, but not a journal")]
    NotAJournal { path: Utf8PathBuf },
    #[error(
        "journal `{path}` has format version {found}, this program knows up to {known}; \
         use a newer program"
    )]
    Newer { path: Utf8PathBuf, found: u32, known: u32 },
    #[error(
        "journal `{path}` has format version {found}, this program reads {known}; \
         the next writer to open it will bring it up to date"
    )]
    Older { path: Utf8PathBuf, found: u32, known: u32 },
    #[error(
        "journal `{path}` cannot be read here: its write-ahead log holds commits, and its \
         directory cannot be written; copy the directory to another place and read it there"
    )]
    LogUnreadable { path: Utf8PathBuf },
    #[error("journal `{path}` is damaged: {what}; {}", describe(.readable))]
    Damaged { path: Utf8PathBuf, what: String, readable: Vec<Reach> },
    #[error("record {seq} of run `{run}` is damaged: its checksum does not hold")]
    DamagedRecord { run: String, seq: u64 },
    #[error("blob `{hash}` is damaged: its bytes do not have that hash")]
    DamagedBlob { hash: String },
    #[error("records of run `{run}` are not in sequence: expected {expected}, got {got}")]
    OutOfSequence { run: String, expected: u64, got: u64 },
    #[error("a snapshot of run `{run}` at record {seq} is ahead of its last record {last}")]
    SnapshotAhead { run: String, seq: u64, last: u64 },
    #[error("the lease of run `{run}` is lost: epoch {given} was given, {current} is current")]
    LostLease { run: String, given: u64, current: u64 },
    #[error("the lease of run `{run}` is held by {holder} until {expires_ms} ms")]
    LeaseHeld { run: String, holder: String, expires_ms: i64 },
    #[error("there is no run `{run}`")]
    NoRun { run: String },
    #[error("there is already a run `{run}`")]
    RunExists { run: String },
    #[error("{what} has {bytes} bytes, more than the {bytes_max} allowed")]
    TooLarge { what: String, bytes: usize, bytes_max: usize },
    #[error("the journal takes no more entries since a commit failed; open it again")]
    Refused { source: Arc<Error> },
    #[error("the journal's writer has been closed")]
    Closed,
    #[error("the journal's writer thread stopped unexpectedly")]
    WriterDied,
    #[error("cannot start the journal's writer thread")]
    WriterStart { source: std::io::Error },
}

/// How far a damaged journal can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    pub run: String,
    /// The end of the unbroken sequence from record 1; 0 when there is none.
    pub last_good_seq: u64,
}

/// What a storage failure is about, for callers that react differently to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No space; goes away when somebody frees some.
    Full,
    /// The device failed a read, a write or an fsync.
    Io,
    ReadOnly,
    Busy,
    Damaged,
    Other,
}

impl Error {
    /// The storage trouble behind this error, also through [`Error::Refused`].
    pub fn trouble(&self) -> Option<Trouble> {
        match self {
            Self::Storage { trouble, .. } => Some(*trouble),
            Self::Refused { source } => source.trouble(),
            Self::Damaged { .. } | Self::DamagedRecord { .. } | Self::DamagedBlob { .. } => {
                Some(Trouble::Damaged)
            }
            Self::File { .. } => Some(Trouble::Io),
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

/// A list of runs in a message must not fill a screen.
const RUNS_NAMED_MAX: usize = 8;

fn describe(readable: &[Reach]) -> String {
    if readable.is_empty() {
        return "nothing in it can be read".into();
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
