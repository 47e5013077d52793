//! The things that are written into a journal, and how large each may be.

use sha2::{Digest, Sha256};

use crate::error::Error;

/// The largest body of a record. A decision is a few hundred bytes; anything long belongs in a
/// blob.
pub const RECORD_BYTES_MAX: usize = 16 << 20;
/// The largest blob, such as a prompt or the output of a command.
pub const BLOB_BYTES_MAX: usize = 64 << 20;
/// The largest body of a snapshot, which holds the whole state of a run.
pub const SNAPSHOT_BYTES_MAX: usize = 256 << 20;

/// One numbered record of a run. Numbers start at 1 and have no gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalRecord {
    /// The id of the run.
    pub run: String,
    /// The number of the record in its run.
    pub seq: u64,
    /// The epoch of the lease under which the record was decided; a journal refuses any but the
    /// current one.
    pub epoch: u64,
    /// When the record was decided, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// The content, which only the core can read.
    pub body: Vec<u8>,
}

/// Bytes named by their SHA-256. The hash is computed on the caller's thread, not on the writer's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    hash: String,
    body: Vec<u8>,
}

impl Blob {
    /// Hashes the bytes and makes a blob of them.
    pub fn new(body: Vec<u8>) -> Self {
        Self { hash: sha256_hex(&body), body }
    }

    /// Returns the SHA-256 of the body in lower-case hexadecimal.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Returns the bytes themselves.
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

/// A folded state, kept so that a replay need not start at record 1. A snapshot is a cache: it may
/// be missing, and it counts only for the version of the core that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The id of the run.
    pub run: String,
    /// The version of the core that made the snapshot and can read it.
    pub core_version: String,
    /// The epoch of the lease under which the snapshot was made.
    pub epoch: u64,
    /// The number of the last record folded into the snapshot.
    pub seq: u64,
    /// The state, as bytes that only the core can read.
    pub body: Vec<u8>,
}

/// One thing to commit. Entries given together are durable together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalEntry {
    /// Appends a record to its run.
    Record(JournalRecord),
    /// Stores bytes under their hash.
    Blob(Blob),
    /// Stores a snapshot and drops those it makes useless.
    Snapshot(Snapshot),
    /// Moves the end of a held lease; an end in the past gives the lease up.
    Renew {
        /// The id of the run.
        run: String,
        /// The epoch of the held lease.
        epoch: u64,
        /// The new end of the lease, in milliseconds since the Unix epoch.
        expires_ms: i64,
    },
    /// Sets the outcome shown for the run; `None` reopens a run that had ended.
    End {
        /// The id of the run.
        run: String,
        /// The epoch of the held lease.
        epoch: u64,
        /// The outcome in words.
        outcome: Option<String>,
    },
}

impl JournalEntry {
    /// Refuses an entry that is too long before it is queued or a transaction is begun.
    pub(crate) fn check_size(&self) -> Result<(), Error> {
        let (what, bytes, bytes_max) = match self {
            Self::Record(r) => {
                (format!("record {} of run `{}`", r.seq, r.run), r.body.len(), RECORD_BYTES_MAX)
            }
            Self::Blob(b) => (format!("blob `{}`", b.hash), b.body.len(), BLOB_BYTES_MAX),
            Self::Snapshot(s) => (
                format!("snapshot at record {} of run `{}`", s.seq, s.run),
                s.body.len(),
                SNAPSHOT_BYTES_MAX,
            ),
            Self::Renew { .. } | Self::End { .. } => return Ok(()),
        };
        if bytes > bytes_max {
            return Err(Error::TooLarge { what, bytes, bytes_max });
        }
        Ok(())
    }
}

pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_is_named_by_the_sha256_of_its_body() {
        let blob = Blob::new(b"abc".to_vec());
        assert_eq!(blob.hash(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn a_record_over_its_limit_is_refused_with_both_sizes() {
        let body = vec![0; RECORD_BYTES_MAX + 1];
        let entry = JournalEntry::Record(JournalRecord {
            run: "r".into(),
            seq: 7,
            epoch: 1,
            at_ms: 0,
            body,
        });
        let said = entry.check_size().unwrap_err().to_string();
        assert_eq!(said, "record 7 of run `r` has 16777217 bytes, more than the 16777216 allowed");
    }

    #[test]
    fn a_blob_over_its_limit_is_refused() {
        let entry =
            JournalEntry::Blob(Blob { hash: "h".into(), body: vec![0; BLOB_BYTES_MAX + 1] });
        assert!(matches!(entry.check_size(), Err(Error::TooLarge { .. })));
        let entry = JournalEntry::Blob(Blob { hash: "h".into(), body: vec![0; BLOB_BYTES_MAX] });
        assert!(entry.check_size().is_ok());
    }
}
