//! The proofs of untouched bases, kept across runs: the next run on the same base, with the same
//! commands, tools and environment, need not prove it again. Only green ones are kept, so a base that
//! was red is looked at again.

use crate::place::StatePaths;
use autopilot_core::evidence::RoundEvidence;
use autopilot_core::id::Time;
use autopilot_host::file::{self, FileError};
use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

/// The directory of the proofs below the state directory.
pub const BASES: &str = "bases";
/// The proofs that are kept; the oldest go first.
const PROOFS_MAX: usize = 32;
/// The largest proof that is read.
const PROOF_BYTES_MAX: u64 = 4 << 20;

/// The proof of a base.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BaseProof {
    /// The run that proved it.
    pub run: String,
    pub at: Time,
    pub evidence: RoundEvidence,
}

/// The proof with this key. One that can't be read is none: the base is proven again.
pub fn find(place: &StatePaths, key: &str) -> Option<BaseProof> {
    let bytes = file::read_capped(path_of(place, key).as_std_path(), PROOF_BYTES_MAX).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Keeps a proof, and forgets the oldest ones.
pub fn keep(place: &StatePaths, key: &str, proof: &BaseProof) -> Result<(), FileError> {
    let path = path_of(place, key);
    if let Some(dir) = path.parent() {
        autopilot_host::dir::create_private(dir.as_std_path())
            .map_err(|source| FileError::Failed { what: "create", path: dir.into(), source })?;
    }
    let text = serde_json::to_vec(proof).unwrap_or_default();
    file::write_atomic(path.as_std_path(), &text)?;
    forget_old(place);
    Ok(())
}

fn path_of(place: &StatePaths, key: &str) -> Utf8PathBuf {
    place.state.join(BASES).join(format!("{key}.json"))
}

fn forget_old(place: &StatePaths) {
    let Ok(entries) = place.state.join(BASES).read_dir_utf8() else { return };
    let mut known: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.into_path())))
        .collect();
    known.sort();
    let too_many = known.len().saturating_sub(PROOFS_MAX);
    for (_, path) in known.into_iter().take(too_many) {
        let _next_time = std::fs::remove_file(path);
    }
}
