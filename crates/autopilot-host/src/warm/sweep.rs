//! Removing rooms and layers, of our own and of processes that died.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::{OnPath, WarmError};
use super::lock::{LOCK_ENDING, LockSharing, RoomLock};
use super::seed::SeedSeal;
use super::store::{LAYERS, SEEDS};
use crate::{dir, fail, jail, patience};

/// The directory of an overlay's own files.
pub(super) const UPPER: &str = "upper";
/// The ending of directories that are being removed.
const GONE: &str = ".gone";

/// The result of a sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WarmSwept {
    /// How many rooms and layers of dead processes were removed.
    pub layers: usize,
    /// How many seeds without a readable seal were removed.
    pub seeds: usize,
}

/// Removes from a state directory the rooms and layers that no living process has, and seeds that
/// were never finished.
pub fn sweep(state: &Path) -> Result<WarmSwept, WarmError> {
    let mut swept = WarmSwept::default();
    for dir in rooms(&state.join(LAYERS))? {
        swept.layers += usize::from(sweep_room(&dir)?);
    }
    for dir in rooms(&state.join(SEEDS))? {
        let is_sealed = dir.extension().is_none() && SeedSeal::read(&dir).is_some();
        if !is_sealed {
            swept.seeds += usize::from(sweep_room(&dir)?);
        }
    }
    Ok(swept)
}

/// Removes a room that nobody has; false if somebody does.
fn sweep_room(dir: &Path) -> Result<bool, WarmError> {
    let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let renamed_from = name.strip_suffix(GONE).map(|former| dir.with_file_name(former));
    // What was renamed for its removal belongs to whoever has the lock of its former name.
    let former = renamed_from.as_deref().unwrap_or(dir);
    let Some(lock) = RoomLock::take(former, LockSharing::Alone).at("lock", former)? else {
        return Ok(false);
    };
    if renamed_from.is_some() {
        dir::remove(dir).at("remove", dir)?;
        if !former.exists() {
            lock.end().at("unlock", dir)?;
        }
        return Ok(true);
    }
    // The jail of a dead controller may live for some moments more.
    let upper = dir.join(UPPER);
    if upper.exists() && jail::lock_upper(&upper).is_err() {
        return Ok(false);
    }
    let was_there = dir.exists();
    clear_room(dir, lock)?;
    Ok(was_there)
}

/// Removes a directory whose lock the caller holds, and the lock.
pub(super) fn clear_room(dir: &Path, lock: RoomLock) -> Result<(), WarmError> {
    let mut name = dir.file_name().unwrap_or_default().to_owned();
    name.push(GONE);
    let gone = dir.with_file_name(name);
    // A gate that was cancelled must be able to clean up.
    patience::during(patience::unlimited(), || {
        dir::remove(&gone).at("remove", &gone)?;
        match fs::rename(dir, &gone) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            renamed => renamed.at("remove", dir)?,
        }
        fail::point("layer.renamed");
        dir::remove(&gone).at("remove", &gone)?;
        lock.end().at("unlock", dir)
    })
}

/// Returns the directories in a directory, and those of which only the lock is left.
pub(super) fn rooms(dir: &Path) -> Result<Vec<PathBuf>, WarmError> {
    let mut found: Vec<PathBuf> = Vec::new();
    for name in dir::names(dir).at("read", dir)? {
        found.push(dir.join(name.strip_suffix(LOCK_ENDING).unwrap_or(&name)));
    }
    found.sort();
    found.dedup();
    Ok(found)
}
