//! Putting the build directories of seeds into an agent's slot, as copies with their times, so that the
//! agent's first build goes on where the base's ended. An agent writes in its copy alone.
//!
//! Everything is copied beside the slot first. While [`Slot::laying`] exists the slot may have a part of
//! it, and is swept as a whole when it is filled the next time.

use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;

use super::audit;
use super::copying::copy_entry;
use super::error::{OnPath, WarmError};
use super::fill::is_reached_without_links;
use super::mark::path_of;
use super::room::RoomPaths;
use super::scrub::build_directories;
use super::seed::SealedSeed;
use crate::git::{GitError, Oid, PreparedSlot, Slot, is_lock_of};
use crate::{dir, fail, patience};

/// A slot without build output of its own, and the seeds of its base.
#[derive(Debug)]
pub struct SlotFill<'a> {
    slot: &'a Slot,
    seeds: &'a [SealedSeed],
    /// What differs between the base and the slot's commit.
    changed: HashSet<PathBuf>,
    /// The directories that the slot can get, by seed.
    offers: Vec<Vec<PathBuf>>,
}

/// What became of putting the directories of one seed into a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotFilled {
    Done,
    /// The time was over before all was copied; nothing of the seed is in the slot.
    OutOfTime,
}

impl<'a> SlotFill<'a> {
    /// Looks at a slot that has just been filled with a commit. `None` where there is nothing to put
    /// into it: it has kept build output of its own, or the seeds have none.
    pub fn new(
        slot: &'a Slot,
        (commit, prepared): (&Oid, &PreparedSlot),
        seeds: &'a [SealedSeed],
    ) -> Result<Option<SlotFill<'a>>, WarmError> {
        let has_own = prepared.kept.iter().any(|kept| !is_empty(&slot.dir().join(kept)));
        let Some(first) = seeds.first().filter(|_| !has_own) else { return Ok(None) };
        let changed = between(slot, &first.seal().tree, commit)?;
        let mut fill = SlotFill { slot, seeds, changed, offers: Vec::new() };
        for seed in seeds {
            let tree = RoomPaths::below(&seed.root()).tree;
            let mut dirs = build_directories(&tree, &seed.marks)?;
            dirs.retain(|dir| fill.is_free(dir) && fill.is_locked_alike(dir));
            fill.offers.push(dirs);
        }
        let wanted: HashSet<PathBuf> = fill.offers.iter().flatten().cloned().collect();
        if wanted.is_empty() {
            return Ok(None);
        }
        let ignored = ignored(slot, &wanted)?;
        fill.offers.iter_mut().for_each(|dirs| dirs.retain(|dir| ignored.contains(dir)));
        Ok(Some(fill))
    }

    /// Returns the build directories that the slot can get of a seed.
    pub fn offer(&self, seed: usize) -> &[PathBuf] {
        self.offers.get(seed).map(Vec::as_slice).unwrap_or_default()
    }

    /// Puts directories into the slot, each share for at most its time. Files that are as in the base
    /// get their times of there, and files that differ a new one: a build tool finds stale what is.
    pub fn put(
        &self,
        shares: &[(usize, Vec<PathBuf>, Duration)],
    ) -> Result<Vec<SlotFilled>, WarmError> {
        let spare = self.slot.laying();
        dir::remove(&spare).at("remove", &spare)?;
        dir::create_private(&spare).at("create", &spare)?;
        let (mut seen, mut used, mut copied) = (Vec::new(), Vec::new(), Vec::new());
        for (number, (seed, dirs, time_max)) in shares.iter().enumerate() {
            let Some(seed) = self.seeds.get(*seed) else { continue };
            let beside = spare.join(number.to_string());
            let filled = copy(seed, dirs, &beside, *time_max)?;
            if filled == SlotFilled::Done {
                used.push(seed);
                copied
                    .extend(dirs.iter().enumerate().map(|(at, dir)| (beside.join(name(at)), dir)));
            }
            seen.push(filled);
        }
        fail::point("slot.copied");
        if !used.is_empty() {
            self.date(&used)?;
        }
        for (from, dir) in copied {
            let to = self.slot.dir().join(dir);
            fs::rename(&from, &to).at("put the build of the base to", &to)?;
            fail::point("slot.filled");
        }
        dir::remove(&spare).at("remove", &spare)?;
        Ok(seen)
    }

    /// Returns whether nothing is at a path, and a directory of the slot above it.
    fn is_free(&self, path: &Path) -> bool {
        let full = self.slot.dir().join(path);
        let is_free = full.symlink_metadata().is_err() || is_empty(&full);
        is_free && is_reached_without_links(self.slot.dir(), path)
    }

    /// Returns whether the files that say from what a directory was made are those of the base.
    fn is_locked_alike(&self, path: &Path) -> bool {
        !self.changed.iter().any(|file| is_lock_of(file, path))
    }

    fn date(&self, used: &[&SealedSeed]) -> Result<(), WarmError> {
        let tree = self.slot.dir();
        let now = TimeSpec::from_duration(audit::now());
        for path in &self.changed {
            date(tree, path, now)?;
        }
        let Some(first) = used.first() else { return Ok(()) };
        for (path, _) in first.marks.files().filter(|(path, _)| !self.changed.contains(*path)) {
            patience::check().at("date", tree)?;
            let times = used.iter().filter_map(|seed| {
                let file = RoomPaths::below(&seed.root()).tree.join(path);
                file.symlink_metadata().ok().map(|met| audit::time_of(&met))
            });
            // The build of each seed is later than its own files.
            let Some(oldest) = times.min() else { continue };
            let oldest = Duration::from_nanos(u64::try_from(oldest).unwrap_or_default());
            date(tree, path, TimeSpec::from_duration(oldest))?;
        }
        Ok(())
    }
}

/// Copies directories of a seed, and notes how long that took.
fn copy(
    seed: &SealedSeed,
    dirs: &[PathBuf],
    beside: &Path,
    time_max: Duration,
) -> Result<SlotFilled, WarmError> {
    let tree = RoomPaths::below(&seed.root()).tree;
    let began = Instant::now();
    let copied = patience::within(time_max, || {
        dir::create_private(beside).at("create", beside)?;
        for (at, dir) in dirs.iter().enumerate() {
            copy_entry(&tree.join(dir), &beside.join(name(at)))?;
        }
        Ok(())
    });
    // A seed that could not be copied in its time must not be tried for every slot.
    seed.note_laid(began.elapsed())?;
    match copied {
        Ok(()) => Ok(SlotFilled::Done),
        Err(error) if began.elapsed() < time_max || patience::cut_short().is_some() => Err(error),
        Err(_late) => {
            dir::remove(beside).at("remove", beside)?;
            Ok(SlotFilled::OutOfTime)
        }
    }
}

fn name(at: usize) -> String {
    at.to_string()
}

fn is_empty(path: &Path) -> bool {
    let is_dir = path.symlink_metadata().is_ok_and(|met| met.is_dir());
    is_dir && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

fn date(tree: &Path, path: &Path, time: TimeSpec) -> Result<(), WarmError> {
    let full = tree.join(path);
    if !is_reached_without_links(tree, path) || full.symlink_metadata().is_err() {
        return Ok(());
    }
    let flags = UtimensatFlags::NoFollowSymlink;
    utimensat(nix::fcntl::AT_FDCWD, &full, &time, &time, flags).at("date", &full)
}

/// Returns the paths that differ between two trees.
fn between(slot: &Slot, old: &Oid, new: &Oid) -> Result<HashSet<PathBuf>, WarmError> {
    let hub = slot.hub();
    let (old, new) = (&hub.expanded(old)?, hub.tree_of(&hub.expanded(new)?)?);
    if *old == new {
        return Ok(HashSet::new());
    }
    let listing = hub
        .git(format!("compare {old} with {new}"))
        .args(["diff-tree", "-r", "-z", "--name-only", "--no-renames", old.as_str(), new.as_str()])
        .ok()
        .map_err(GitError::from)?;
    Ok(listing.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(path_of).collect())
}

/// Returns which of these directories git ignores in the slot. What it does not ignore would become a
/// part of the agent's work.
fn ignored(slot: &Slot, dirs: &HashSet<PathBuf>) -> Result<HashSet<PathBuf>, WarmError> {
    let mut asked = Vec::new();
    for path in dirs {
        // A rule for directories holds for nothing that is not there.
        let full = slot.dir().join(path);
        if full.symlink_metadata().is_err() {
            fs::create_dir(&full).at("create", &full)?;
        }
        asked.extend([path.as_os_str().as_bytes(), b"\0"].concat());
    }
    let out = slot
        .hub()
        .git_in("ask what is ignored", slot.dir(), &slot.index())
        .args(["check-ignore", "-z", "--stdin"])
        .stdin(asked)
        .run()
        .map_err(GitError::from)?;
    for path in dirs {
        let full = slot.dir().join(path);
        fs::remove_dir(&full).at("remove", &full)?;
    }
    let named = out.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    Ok(named.map(path_of).collect())
}
