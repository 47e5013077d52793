//! The disk use of a repository's state, and the removal of slots.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::GitError;
use super::hub::Hub;
use super::slot::Slots;

/// The disk use of a repository's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskUse {
    /// The bytes of the hub that are not shared with the user's repository by hard links.
    pub hub: u64,
    /// Each slot (agent and proof) with its bytes.
    pub slots: Vec<(PathBuf, u64)>,
}

impl DiskUse {
    /// Returns the bytes of the hub and all slots.
    pub fn total(&self) -> u64 {
        self.hub + self.slots.iter().map(|(_, bytes)| bytes).sum::<u64>()
    }
}

/// Measures the hub and all slots.
pub fn disk_use(hub: &Hub) -> DiskUse {
    let mut slots = Vec::new();
    for pool in ["slots", "proof"] {
        let Ok(entries) = std::fs::read_dir(hub.state().join(pool)) else { continue };
        slots.extend(entries.flatten().map(|entry| (entry.path(), bytes_below(&entry.path(), 0))));
    }
    slots.sort();
    DiskUse { hub: bytes_below(hub.dir(), 1), slots }
}

/// Removes agent slots that are not in use, each after its content has been rescued; returns their
/// directories with the salvage refs.
pub fn remove_slots(
    slots: &Slots,
    in_use: &[PathBuf],
    now: i64,
) -> Result<Vec<(PathBuf, Option<String>)>, GitError> {
    let mut removed = Vec::new();
    for slot in slots.existing()? {
        if !in_use.iter().any(|dir| dir == slot.dir()) {
            let rescued = slot.remove(now)?;
            removed.push((slot.dir().to_owned(), rescued));
        }
    }
    Ok(removed)
}

/// Returns the allocated bytes. A file with more than `links_free` names is counted elsewhere; with
/// 0 every file is counted.
fn bytes_below(root: &Path, links_free: u64) -> u64 {
    let mut seen = HashSet::new();
    let mut bytes = 0;
    let mut pending = vec![root.to_owned()];
    while let Some(path) = pending.pop() {
        let Ok(meta) = path.symlink_metadata() else { continue };
        if meta.is_dir()
            && let Ok(entries) = std::fs::read_dir(&path)
        {
            pending.extend(entries.flatten().map(|entry| entry.path()));
        }
        let shared = links_free > 0 && !meta.is_dir() && meta.nlink() > links_free;
        if !shared && seen.insert((meta.dev(), meta.ino())) {
            bytes += meta.blocks() * 512;
        }
    }
    bytes
}
