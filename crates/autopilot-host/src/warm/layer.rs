//! A gate's layer: what the seed has, what the commit changes, and what commands write over it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use serde::{Deserialize, Serialize};

use super::audit;
use super::copying::{CopyWay, copy_room};
use super::difference::{self, LayerDifferences};
use super::error::{ColdReason, OnPath, WarmError};
use super::fill::{self, LayerFill};
use super::lock::RoomLock;
use super::mark::TreeMarks;
use super::room::{OWN, ROOT, RoomPaths, bind_into};
use super::seed::SealedSeed;
use super::store::WarmStore;
use super::sweep::{UPPER, clear_room};
use crate::dir;
use crate::git::Oid;
use crate::jail::{self, JailMount, JailPlan};

const WORK: &str = "work";
const TMP: &str = "tmp";

/// The way in which a layer is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LayerKind {
    /// The kernel merges the seed with an upper directory. Nothing is copied.
    Overlay,
    /// A copy of the seed that shares its blocks, on file systems that can.
    Reflink,
    /// A whole copy of the seed.
    Copy,
}

impl LayerKind {
    /// Returns the word for people.
    pub fn word(self) -> &'static str {
        match self {
            LayerKind::Overlay => "overlay",
            LayerKind::Reflink => "reflink",
            LayerKind::Copy => "copy",
        }
    }
}

/// A layer of one gate. It is removed when it is dropped.
#[derive(Debug)]
pub struct GateLayer {
    pub(super) store: WarmStore,
    pub(super) dir: PathBuf,
    pub(super) seed: SealedSeed,
    pub(super) kind: LayerKind,
    /// What every tracked file must be.
    pub(super) marks: TreeMarks,
    /// The files that `fill` wrote, and how they were when their times were last set.
    pub(super) written: BTreeMap<PathBuf, WrittenFile>,
    took: Duration,
    lock: Option<RoomLock>,
}

/// The identity of a written file. Nobody can set the time at which an inode was changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WrittenFile {
    inode: u64,
    changed: (i64, i64),
}

impl WrittenFile {
    pub fn of(met: &fs::Metadata) -> WrittenFile {
        WrittenFile { inode: met.ino(), changed: (met.ctime(), met.ctime_nsec()) }
    }
}

impl GateLayer {
    pub(super) fn new(
        store: &WarmStore,
        (dir, lock): (PathBuf, RoomLock),
        seed: &SealedSeed,
        kind: LayerKind,
    ) -> Result<GateLayer, WarmError> {
        let began = Instant::now();
        let mut layer = GateLayer {
            store: store.clone(),
            dir,
            seed: seed.clone(),
            kind,
            marks: TreeMarks::clone(&seed.marks),
            written: BTreeMap::new(),
            took: Duration::ZERO,
            lock: Some(lock),
        };
        match kind {
            LayerKind::Overlay => {
                for name in [UPPER, WORK, TMP] {
                    let path = layer.dir.join(name);
                    dir::create_private(&path).at("create", &path)?;
                }
            }
            LayerKind::Reflink => copy_room(&seed.root(), &layer.dir.join(ROOT), CopyWay::Clone)?,
            LayerKind::Copy => copy_room(&seed.root(), &layer.dir.join(ROOT), CopyWay::Bytes)?,
        }
        layer.took = began.elapsed();
        if kind == LayerKind::Copy {
            seed.note_copy(layer.took)?;
        }
        Ok(layer)
    }

    /// Returns the way in which the layer was made.
    pub fn kind(&self) -> LayerKind {
        self.kind
    }

    /// Returns how long making the layer took.
    pub fn took(&self) -> Duration {
        self.took
    }

    /// Makes the worktree that of a commit: deletes and writes what differs from the seed's tree. It
    /// is called once, before any command.
    pub fn fill(&mut self, commit: &Oid) -> Result<LayerFill, WarmError> {
        fill::fill(self, commit)
    }

    /// Prepares the layer for a command: every file that `fill` wrote gets a time newer than
    /// anything in the seed and anything that a command before left, so that no build tool takes it
    /// for unchanged.
    pub fn before_command(&mut self) -> Result<(), WarmError> {
        self.check_directories()?;
        if self.kind == LayerKind::Overlay {
            // Nothing below a mount that is in use may be changed.
            let upper = self.dir.join(UPPER);
            let _nobody_uses_it = jail::lock_upper(&upper).at("prepare", &upper)?;
            // The kernel refuses a volatile layer a second time, unless what it kept is removed.
            let kept = self.dir.join(WORK).join("work");
            dir::remove(&kept).at("remove", &kept)?;
        }
        let now = self.time_after_the_seed()?;
        let now_ns = audit::nanoseconds(now);
        let newest = audit::newest(&self.seen())?;
        if let Some((path, _)) = newest.filter(|(_, newest_ns)| *newest_ns >= now_ns) {
            return Err(WarmError::GoCold(ColdReason::FutureTime { path }));
        }
        let tree = self.tree_outside();
        for (path, written) in &mut self.written {
            let full = tree.join(path);
            // A command that removed or replaced it is found out by its content.
            if !fill::is_reached_without_links(&tree, path) || full.symlink_metadata().is_err() {
                continue;
            }
            let time = TimeSpec::from_duration(now);
            let flags = UtimensatFlags::NoFollowSymlink;
            utimensat(nix::fcntl::AT_FDCWD, &full, &time, &time, flags).at("date", &full)?;
            let met = full.symlink_metadata().at("look at", &full)?;
            if audit::time_of(&met) <= self.seed.seal().newest_ns {
                return Err(WarmError::GoCold(ColdReason::ClockSetBack));
            }
            *written = WrittenFile::of(&met);
        }
        Ok(())
    }

    /// Returns the time now, once the clock shows a later second than the seed's newest entry has:
    /// Python compares whole seconds.
    fn time_after_the_seed(&self) -> Result<Duration, WarmError> {
        let newest_ns = self.seed.seal().newest_ns;
        let now = audit::now();
        if audit::nanoseconds(now) <= newest_ns {
            return Err(WarmError::GoCold(ColdReason::ClockSetBack));
        }
        let newest_s = Duration::from_nanos(u64::try_from(newest_ns).unwrap_or_default()).as_secs();
        if now.as_secs() > newest_s {
            return Ok(now);
        }
        std::thread::sleep(Duration::from_secs(newest_s + 1).saturating_sub(now));
        Ok(audit::now())
    }

    /// Puts the layer into a jail: it appears at the store's place and may be written there, and its
    /// temporary files are `/tmp`. Only a jail with namespaces can have it.
    pub fn put_into(&self, plan: &mut JailPlan) {
        let place = self.store.place();
        if self.kind != LayerKind::Overlay {
            return bind_into(plan, &self.dir.join(ROOT), place);
        }
        let (upper, work) = (self.dir.join(UPPER), self.dir.join(WORK));
        let (lower, at) = (self.seed.root(), place.to_path_buf());
        plan.mounts.push(JailMount::Overlay { lower, upper, work, at });
        // A plain directory, in which programs may rename directories.
        let tmp = self.dir.join(TMP);
        let at = RoomPaths::below(place).tmp;
        plan.mounts.push(JailMount::Bind { from: tmp.clone(), at });
        plan.write.push(place.to_path_buf());
        plan.tmp = Some(tmp);
    }

    /// Returns what commands did to the tracked files since [`GateLayer::before_command`].
    pub fn differences(&self) -> Result<LayerDifferences, WarmError> {
        difference::of_layer(self)
    }

    /// Returns the directory in which it is seen outside that programs write.
    pub fn seen(&self) -> PathBuf {
        match self.kind {
            LayerKind::Overlay => self.dir.join(UPPER),
            LayerKind::Reflink | LayerKind::Copy => self.dir.join(ROOT),
        }
    }

    /// Returns the directories outside that have the worktree's files: where two have one, the first
    /// counts.
    pub fn trees(&self) -> Vec<PathBuf> {
        let below = RoomPaths::below(&self.seed.root()).tree;
        match self.kind {
            LayerKind::Overlay => vec![self.tree_outside(), below],
            LayerKind::Reflink | LayerKind::Copy => vec![self.tree_outside()],
        }
    }

    /// Removes the layer with everything that was written to it.
    pub fn remove(mut self) -> Result<(), WarmError> {
        self.clear()
    }

    fn clear(&mut self) -> Result<(), WarmError> {
        let Some(lock) = self.lock.take() else { return Ok(()) };
        clear_room(&self.dir, lock)
    }

    /// Returns the worktree outside: of an overlay, what was written to it.
    pub(super) fn tree_outside(&self) -> PathBuf {
        RoomPaths::below(&self.seen()).tree
    }

    pub(super) fn index(&self) -> Result<PathBuf, WarmError> {
        let own = self.dir.join(OWN);
        dir::create_private(&own).at("create", &own)?;
        Ok(own.join("index"))
    }

    /// Fails if a command has put something else in the place of one of the room's directories.
    fn check_directories(&self) -> Result<(), WarmError> {
        let paths = RoomPaths::below(&self.seen());
        for path in paths.all() {
            let is_replaced = match path.symlink_metadata() {
                Ok(met) if !met.is_dir() => true,
                Ok(_) => difference::is_opaque(path).at("look at", path)?,
                Err(_) => self.kind != LayerKind::Overlay,
            };
            if is_replaced {
                let name = path.file_name().map(Path::new).unwrap_or(path).to_path_buf();
                return Err(WarmError::GoCold(ColdReason::Replaced { path: name }));
            }
        }
        Ok(())
    }
}

impl Drop for GateLayer {
    fn drop(&mut self) {
        // What can't be removed now is removed by the next sweep.
        let _left_for_the_sweep = self.clear();
    }
}
