//! Sealing: a room in which the base's own gate has passed becomes a seed, in place.
//!
//! The record is written when everything else is on the disk, and the room is moved among the seeds
//! when the record is. A crash at any moment leaves a room that nobody locks, or a whole seed.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use super::audit;
use super::error::{OnPath, SealRefusal, WarmError, io_error};
use super::lock::{LockSharing, RoomLock};
use super::room::{ColdRoom, OWN, ROOT, SealRequest};
use super::scrub::scrub;
use super::seed::{SealedSeed, SeedSeal};
use crate::file::Dir;
use crate::{dir, fail};

pub(super) fn seal(
    room: &mut ColdRoom,
    request: &SealRequest<'_>,
) -> Result<SealedSeed, WarmError> {
    let target = room.store.seed_dir(request.key);
    if let Some(seed) = room.store.find(request.key)? {
        return Ok(seed);
    }
    let lost = clean(room, request)?;
    fail::point("seal.scrubbed");
    let root = room.dir.join(ROOT);
    let audit = audit::look(&root)?;
    let tree = room.slot.hub().tree_of(&room.commit)?;
    let own = room.dir.join(OWN);
    dir::remove(&own).at("remove", &own)?;
    flush(&root)?;
    fail::point("seal.flushed");
    let mut seal = SeedSeal::new((request.key, tree), request.cold, &audit, &room.marks);
    seal.setup_lost = lost.iter().map(|path| path.display().to_string()).collect();
    seal.write(&room.dir)?;
    fail::point("seal.written");
    move_in(room, &target)?;
    fail::point("seal.moved");
    let seed = SealedSeed::open(&target)?;
    seed.ok_or_else(|| std::io::Error::other("it was removed at once")).at("open", &target)
}

/// Checks the tracked files and removes what no build tool owns. Returns what the setup had made and
/// is gone.
fn clean(room: &ColdRoom, request: &SealRequest<'_>) -> Result<Vec<PathBuf>, WarmError> {
    let root = room.dir.join(ROOT);
    let differing = room.differences()?;
    if !differing.is_empty() {
        return Err(WarmError::NotSealed(SealRefusal::TrackedChanged { paths: differing }));
    }
    let lost = scrub(&root, &room.marks, &room.setup)?;
    let home = room.paths().home;
    for (name, bytes) in request.home {
        let written = Dir::open(&home).and_then(|dir| dir.write_with_mode(name, bytes, 0o600));
        written.map_err(io_error).at("write", &home.join(name))?;
    }
    let (_copied, _left_out) = room.slot.copy_in(&room.copied)?;
    // What the home is furnished with and what was copied in is there again.
    Ok(lost.into_iter().filter(|path| root.join(path).symlink_metadata().is_err()).collect())
}

/// Waits until the disk has everything that was written: after a power cut there must be no seed
/// whose files are empty.
fn flush(root: &Path) -> Result<(), WarmError> {
    let dir = File::open(root).at("open", root)?;
    // SAFETY: a call without pointers.
    let done = unsafe { libc::syncfs(dir.as_raw_fd()) };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()).at("flush", root) }
}

fn move_in(room: &mut ColdRoom, target: &Path) -> Result<(), WarmError> {
    // Whoever has it uses, makes or removes a seed of this key at this moment.
    let alone = RoomLock::take(target, LockSharing::Alone).at("lock", target)?;
    let busy = || std::io::Error::new(std::io::ErrorKind::ResourceBusy, "another process has it");
    let alone = alone.ok_or_else(busy).at("make a seed at", target)?;
    // What is there has no seal that we can read.
    dir::remove(target).at("remove", target)?;
    fs::rename(&room.dir, target).at("move a seed to", target)?;
    if let Some(seeds) = target.parent() {
        File::open(seeds).and_then(|dir| dir.sync_all()).at("flush", seeds)?;
    }
    drop(alone);
    if let Some(lock) = room.lock.take() {
        lock.end().at("unlock", &room.dir)?;
    }
    Ok(())
}
