//! A cold room: a commit in a new worktree, with an empty home, empty temporary files and empty
//! caches, and nothing of any gate before.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::{OnPath, WarmError};
use super::fill;
use super::lock::RoomLock;
use super::mark::TreeMarks;
use super::scrub::SetupFiles;
use super::seal;
use super::seed::SealedSeed;
use super::store::WarmStore;
use super::sweep::clear_room;
use crate::dir;
use crate::git::{GitError, Oid, Prepare, PreparedSlot, Slot};
use crate::jail::{JailMount, JailPlan};

/// The four directories of a room, at the path at which programs see them or at that at which they
/// are outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomPaths {
    /// The worktree.
    pub tree: PathBuf,
    /// The home.
    pub home: PathBuf,
    /// The temporary files.
    pub tmp: PathBuf,
    /// The package caches.
    pub cache: PathBuf,
}

impl RoomPaths {
    /// Returns the directories of a room at `root`.
    pub fn below(root: &Path) -> RoomPaths {
        RoomPaths {
            tree: root.join(TREE),
            home: root.join("home"),
            tmp: root.join("tmp"),
            cache: root.join("cache"),
        }
    }

    /// Returns all four.
    pub fn all(&self) -> [&PathBuf; 4] {
        [&self.tree, &self.home, &self.tmp, &self.cache]
    }
}

/// A room for one gate that starts from nothing. It is removed when it is dropped, unless it was
/// sealed.
#[derive(Debug)]
pub struct ColdRoom {
    pub(super) store: WarmStore,
    pub(super) dir: PathBuf,
    pub(super) slot: Slot,
    pub(super) commit: Oid,
    pub(super) marks: TreeMarks,
    /// The ignored files of the user's checkout that were copied into the worktree.
    pub(super) copied: Vec<PathBuf>,
    prepared: PreparedSlot,
    pub(super) setup: SetupFiles,
    /// The lock, until the room is sealed or removed.
    pub(super) lock: Option<RoomLock>,
}

/// What a seed is made with besides its room.
#[derive(Debug, Clone)]
pub struct SealRequest<'a> {
    /// The name of the seed: everything that its content depends on.
    pub key: &'a str,
    /// How long the setup and the commands of the base took in this room.
    pub cold: Duration,
    /// The files with which the home was furnished, relative to it. It gets them as they are here,
    /// whatever the commands made of them; of the rest only the stores of build tools stay.
    pub home: &'a [(PathBuf, Vec<u8>)],
}

impl ColdRoom {
    pub(super) fn new(
        store: &WarmStore,
        (dir, lock): (PathBuf, RoomLock),
        wanted: &Prepare<'_>,
    ) -> Result<ColdRoom, WarmError> {
        let root = dir.join(ROOT);
        let paths = RoomPaths::below(&root);
        let slot = store.slots.proof_at(paths.tree.clone(), dir.join(OWN));
        let mut room = ColdRoom {
            store: store.clone(),
            dir,
            slot,
            commit: wanted.commit.clone(),
            marks: TreeMarks::default(),
            copied: Vec::new(),
            prepared: PreparedSlot::default(),
            setup: SetupFiles::default(),
            lock: Some(lock),
        };
        for path in paths.all() {
            dir::create_private(path).at("create", path)?;
        }
        room.prepared = room.slot.prepare(wanted)?;
        room.copied = room.prepared.copied.clone();
        room.marks = TreeMarks::of(&store.slots.hub, wanted.commit, &paths.tree)?;
        Ok(room)
    }

    /// Returns the room's directories as they are outside, where the caller furnishes its home.
    pub fn paths(&self) -> RoomPaths {
        RoomPaths::below(&self.dir.join(ROOT))
    }

    /// Returns the slot of the worktree, to verify or capture it.
    pub fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Returns what filling the worktree did.
    pub fn prepared(&self) -> &PreparedSlot {
        &self.prepared
    }

    /// Puts the room into a jail: it appears at the store's place and may be written there, and its
    /// temporary files are `/tmp`. Only a jail with namespaces can have it.
    pub fn put_into(&self, plan: &mut JailPlan) {
        bind_into(plan, &self.dir.join(ROOT), self.store.place());
    }

    /// Returns the directory in which it is seen outside that programs write.
    pub fn seen(&self) -> PathBuf {
        self.dir.join(ROOT)
    }

    /// Notes what the setup has made. A cold gate has it too, so it is sealed where no command changes
    /// it, whoever owns it. It is called when the setup is done, before the first command.
    pub fn after_setup(&mut self) -> Result<(), WarmError> {
        self.setup = SetupFiles::of(&self.dir.join(ROOT))?;
        Ok(())
    }

    /// Puts the tracked files back that differ from the commit.
    pub fn restore(&self) -> Result<(), WarmError> {
        let changed = self.differences()?;
        if changed.is_empty() {
            return Ok(());
        }
        let (tree, index) = (self.paths().tree, self.dir.join(OWN).join("restore.index"));
        for path in &changed {
            let full = tree.join(path);
            // A directory or a link in its place, or on the way to it.
            let is_reached = fill::is_reached_without_links(&tree, path);
            if is_reached && full.symlink_metadata().is_ok() {
                dir::remove(&full).at("remove", &full)?;
            }
        }
        let hub = &self.store.slots.hub;
        let commit = &self.commit;
        hub.git_in(format!("read {commit}"), &tree, &index)
            .args(["read-tree", hub.expanded(commit)?.as_str()])
            .ok()
            .map_err(GitError::from)?;
        let mut paths = Vec::new();
        for path in &changed {
            paths.extend_from_slice(path.as_os_str().as_bytes());
            paths.push(0);
        }
        hub.git_in(format!("put files of {commit} back"), &tree, &index)
            .args(["checkout-index", "--force", "-z", "--stdin"])
            .stdin(paths)
            .ok()
            .map_err(GitError::from)?;
        match self.differences()?.into_iter().next() {
            None => Ok(()),
            Some(path) => Err(WarmError::NotRestored { path }),
        }
    }

    /// Returns the tracked files that differ from the commit by content, mode or kind, or are gone.
    pub fn differences(&self) -> Result<Vec<PathBuf>, WarmError> {
        super::difference::of_tree(&self.marks, &self.paths().tree)
    }

    /// Makes the seed of the room, in place: checks every tracked file, removes what no build tool
    /// owns, and records the rest. After any error nothing of the room is left, and no seed. Where a
    /// seed of this key exists already, that one is returned.
    pub fn seal(mut self, request: &SealRequest<'_>) -> Result<SealedSeed, WarmError> {
        seal::seal(&mut self, request)
    }

    /// Removes the room.
    pub fn remove(mut self) -> Result<(), WarmError> {
        self.clear()
    }

    fn clear(&mut self) -> Result<(), WarmError> {
        let Some(lock) = self.lock.take() else { return Ok(()) };
        clear_room(&self.dir, lock)
    }
}

impl Drop for ColdRoom {
    fn drop(&mut self) {
        // What can't be removed now is removed by the next sweep.
        let _left_for_the_sweep = self.clear();
    }
}

/// The name of the worktree in a room.
pub const TREE: &str = "tree";
/// The directory of a room or seed that appears in the jail.
pub(super) const ROOT: &str = "root";
/// The controller's own files of a room: its index.
pub(super) const OWN: &str = "own";

/// Binds a room that is a plain directory into a jail.
pub(super) fn bind_into(plan: &mut JailPlan, root: &Path, place: &Path) {
    plan.mounts.push(JailMount::Bind { from: root.to_path_buf(), at: place.to_path_buf() });
    plan.write.push(place.to_path_buf());
    plan.tmp = Some(RoomPaths::below(root).tmp);
}
