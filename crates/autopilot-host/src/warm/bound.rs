//! The bounds on what seeds take of the disk.

use std::path::Path;
use std::time::SystemTime;

use super::error::{OnPath, WarmError};
use super::lock::{LockSharing, RoomLock};
use super::seed::{SeedSeal, last_use};
use super::store::SEEDS;
use super::sweep::{clear_room, rooms};

/// The most that seeds may take of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeedBounds {
    /// The most seeds.
    pub seeds_max: usize,
    /// The most bytes of all seeds together.
    pub bytes_max: u64,
}

/// A seed that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedSeed {
    /// The name by which it was found.
    pub key: String,
    /// The size of its files, in bytes.
    pub bytes: u64,
}

/// Removes the seeds of a state directory that were not used for the longest time, until the rest is
/// within the bounds. One that is in use stays, and counts. Returns what was removed.
pub fn bound(state: &Path, bounds: &SeedBounds) -> Result<Vec<RemovedSeed>, WarmError> {
    let mut seeds = Vec::new();
    for dir in rooms(&state.join(SEEDS))? {
        if let Some(seal) = SeedSeal::read(&dir) {
            seeds.push((last_use(&dir), dir, seal));
        }
    }
    seeds.sort_by_key(|(used, ..)| std::cmp::Reverse::<SystemTime>(*used));
    let (mut kept, mut bytes, mut removed) = (0, 0_u64, Vec::new());
    for (_, dir, seal) in seeds {
        let fits = kept < bounds.seeds_max && bytes.saturating_add(seal.bytes) <= bounds.bytes_max;
        let lock =
            if fits { None } else { RoomLock::take(&dir, LockSharing::Alone).at("lock", &dir)? };
        match lock {
            Some(lock) => {
                clear_room(&dir, lock)?;
                removed.push(RemovedSeed { key: seal.key, bytes: seal.bytes });
            }
            None => {
                kept += 1;
                bytes = bytes.saturating_add(seal.bytes);
            }
        }
    }
    Ok(removed)
}
