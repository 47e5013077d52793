//! Slots: plain directories that are filled from a commit, worked in, captured and filled again.
//!
//! Invariant: nothing that an agent wrote is deleted before a salvage ref holds it.

mod agent_git;
mod changed;
mod known;
mod note;
mod put_back;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::capture::{AttemptName, CaptureCaps, CaptureRequest, MeasuredFiles, TreeSnapshot};
use super::command::TRANSFER_TIMEOUT;
use super::disposable;
use super::error::{GitError, OnFile};
use super::hub::Hub;
use super::identity::CommitIdentity;
use super::object::Oid;
use super::repo::UserRepo;
use super::sweep::{Tracked, remove_tree, sweep};
use crate::dir::open_up;
use crate::fail;
pub(crate) use note::SlotNote;

/// Build output worth keeping, and the lock files that say from what it was built.
const KEPT: [(&str, &[&str]); 3] = [
    ("target", &["Cargo.lock"]),
    ("node_modules", &["package-lock.json", "pnpm-lock.yaml", "yarn.lock"]),
    (".venv", &["requirements*.txt", "poetry.lock", "uv.lock"]),
];
/// The directory, among the controller's files of a slot, of build output that is being put into it.
const LAYING: &str = "laying";
/// The largest lock file that is compared.
const LOCK_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The most files that are copied into a slot.
const COPY_FILES_MAX: usize = 1000;

/// The pools of a repository: `slots/sN` for agents that work, `slots/jN` for those that judge, `proof/pN` for the controller's own gates.
#[derive(Clone, Debug)]
pub struct Slots {
    pub(crate) hub: Hub,
    pub(crate) identity: CommitIdentity,
    remotes: Vec<(String, String)>,
    pub(super) base_branch: String,
    checkout: PathBuf,
    pub(crate) caps: CaptureCaps,
}

/// The kind of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// A slot in which an agent works.
    Agent,
    /// A slot that only the controller fills; gates run here on exactly the committed tree.
    Proof,
}

/// Which build output stays in a slot when it is filled again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepFiles {
    /// No build output stays.
    Nothing,
    /// `target`, `node_modules` and `.venv` while their lock files are the ones of the new commit.
    WhileLocked,
}

/// The content that a slot is to have.
#[derive(Clone, Debug)]
pub struct Prepare<'a> {
    /// The commit with which the slot is filled.
    pub commit: &'a Oid,
    /// The commit against which the work is measured; the slot's base branch is put there.
    pub base: &'a Oid,
    /// The short name of the branch the agent finds itself on.
    pub branch: &'a str,
    /// The attempt that will work in the slot.
    pub attempt: AttemptName<'a>,
    /// Which build output stays.
    pub keep: KeepFiles,
    /// Ignored files of the user's checkout that a slot needs (`.env`), relative to its root.
    pub copy: &'a [PathBuf],
    /// The time of the salvage commit of work that is found, in seconds since 1970.
    pub now: i64,
}

/// The result of filling a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreparedSlot {
    /// The build directories that stayed.
    pub kept: Vec<PathBuf>,
    /// The files of the copy list that were copied.
    pub copied: Vec<PathBuf>,
    /// Files of the copy list that were left out, with the reason.
    pub not_copied: Vec<(PathBuf, String)>,
    /// The salvage ref that now holds the work that an interrupted attempt had left here.
    pub rescued: Option<String>,
}

/// Files that were copied, and files that were not with the reason.
type CopiedIn = (Vec<PathBuf>, Vec<(PathBuf, String)>);

/// One directory of a pool. It is not shared: whoever holds the slot's lease uses it.
#[derive(Clone, Debug)]
pub struct Slot {
    pub(crate) pools: Slots,
    pub(crate) pool: Pool,
    pub(crate) dir: PathBuf,
    /// The directory for the controller's index and notes, where an agent can't write.
    pub(crate) own: PathBuf,
}

impl Slots {
    /// Makes the pools of a repository; no directory is made yet.
    pub fn new(hub: &Hub, repo: &UserRepo) -> Self {
        Self {
            hub: hub.clone(),
            identity: repo.identity.clone(),
            remotes: repo.remotes.clone(),
            base_branch: repo.base_branch.clone(),
            checkout: repo.root.clone(),
            caps: CaptureCaps::default(),
        }
    }

    /// Sets the most that is taken from a slot.
    pub fn capped(self, caps: CaptureCaps) -> Self {
        Self { caps, ..self }
    }

    /// Returns the agent slot of that number, which may not exist on disk yet.
    pub fn agent(&self, n: usize) -> Slot {
        self.slot(Pool::Agent, "slots", &format!("s{n}"))
    }

    /// Returns the slot of that number for an agent that judges, which may not exist on disk yet.
    pub fn judge(&self, n: usize) -> Slot {
        self.slot(Pool::Agent, "slots", &format!("j{n}"))
    }

    /// Returns the proof slot of that number, which may not exist on disk yet.
    pub fn proof(&self, n: usize) -> Slot {
        self.slot(Pool::Proof, "proof", &format!("p{n}"))
    }

    /// Returns a proof slot at a directory of the caller's, which has `own` for the controller's
    /// files.
    pub(crate) fn proof_at(&self, dir: PathBuf, own: PathBuf) -> Slot {
        Slot { pools: self.clone(), pool: Pool::Proof, dir, own }
    }

    /// Returns the agent slots that exist on disk.
    pub fn existing(&self) -> Result<Vec<Slot>, GitError> {
        let dir = self.hub.state().join("slots");
        let Ok(entries) = fs::read_dir(&dir) else { return Ok(Vec::new()) };
        let names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        let numbered = |start: char| {
            let of = |name: &std::ffi::OsString| name.to_str()?.strip_prefix(start)?.parse().ok();
            let mut numbers: Vec<usize> = names.iter().filter_map(of).collect();
            numbers.sort_unstable();
            numbers
        };
        let judges = numbered('j').into_iter().map(|n| self.judge(n));
        Ok(numbered('s').into_iter().map(|n| self.agent(n)).chain(judges).collect())
    }

    fn slot(&self, pool: Pool, folder: &str, name: &str) -> Slot {
        Slot {
            pools: self.clone(),
            pool,
            dir: self.hub.state().join(folder).join(name),
            own: self.hub.state().join("own").join(name),
        }
    }
}

impl Slot {
    pub(crate) fn hub(&self) -> &Hub {
        &self.pools.hub
    }

    /// Returns the directory in which an agent or a gate works.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Fills the slot with a commit. Work found in it that no ref holds is rescued first.
    pub fn prepare(&self, wanted: &Prepare<'_>) -> Result<PreparedSlot, GitError> {
        if self.dir.exists() {
            // An agent may have taken our permission to remove anything in it.
            open_up(&self.dir).on("make writable", &self.dir)?;
        }
        let rescued = self.rescue(wanted.now)?;
        self.make_dirs()?;
        let filled = self.hub().expanded(wanted.commit)?;
        let files = self.hub().files_of(&filled)?;
        let tracked = Tracked::of(files.iter().map(|file| &*file.path));
        let keep = match wanted.keep {
            // Of what a killed process was putting here, only a part may have arrived.
            _ if self.laying().exists() => HashSet::new(),
            KeepFiles::Nothing => HashSet::new(),
            KeepFiles::WhileLocked => self.kept(&filled, &tracked)?,
        };
        remove_tree(&self.dir.join(".git"))?;
        sweep(&self.dir, &tracked, &keep)?;
        remove_tree(&self.laying())?;
        fail::point("slot.swept");
        if !self.has_files_of(&files)? {
            self.checkout(wanted.commit)?;
        }
        let (copied, not_copied) = self.copy_in(wanted.copy)?;
        self.write_note(&SlotNote {
            task: wanted.attempt.task.to_owned(),
            attempt: wanted.attempt.id.to_owned(),
            base: wanted.commit.clone(),
            safe_tree: self.hub().tree_of(wanted.commit)?,
        })?;
        match self.pool {
            Pool::Agent => self.fresh_git(wanted)?,
            Pool::Proof => self.verify_clean(wanted.commit)?,
        }
        let mut kept: Vec<PathBuf> = keep.into_iter().collect();
        kept.sort();
        Ok(PreparedSlot { kept, copied, not_copied, rescued })
    }

    /// Reads every file again and fails unless the slot holds exactly the commit's tree with the files
    /// of its submodules (and ignored files). Sizes and times are not believed.
    pub fn verify_clean(&self, commit: &Oid) -> Result<(), GitError> {
        let commit = &self.hub().expanded(commit)?;
        if self.is_surely_clean(commit)? {
            return Ok(());
        }
        let found = self.read_again(commit)?;
        let expected = self.hub().tree_of(commit)?;
        let clean = found.violations.is_empty();
        if clean && (found.tree == expected || found.tree == self.pristine_tree(commit)?) {
            Ok(())
        } else {
            Err(GitError::ProofDiffers { path: self.dir.clone(), expected, found: found.tree })
        }
    }

    /// Returns the tree of the slot's files, starting from an index that knows nothing about them.
    fn read_again(&self, commit: &Oid) -> Result<TreeSnapshot, GitError> {
        let index = self.own.join("verify.index");
        remove_tree(&index)?;
        // Of a git of ours that was killed.
        remove_tree(&self.own.join("verify.index.lock"))?;
        self.hub()
            .git_in(format!("verify {commit}"), &self.dir, &index)
            .args(["read-tree", commit.as_str()])
            .ok()?;
        let found = self.snapshot_tree(&index, MeasuredFiles::New, commit)?;
        remove_tree(&index)?;
        Ok(found)
    }

    /// Returns the tree that reading a fresh checkout gives. It is another tree than the commit's
    /// where a file was committed in a form that git would write differently today (CRLF under
    /// `text eol=crlf`).
    fn pristine_tree(&self, commit: &Oid) -> Result<Oid, GitError> {
        let pristine = Slot {
            dir: self.own.join("pristine"),
            own: self.own.join("pristine-own"),
            ..self.clone()
        };
        let clear = || remove_tree(&pristine.dir).and_then(|()| remove_tree(&pristine.own));
        clear()?;
        pristine.make_dirs()?;
        pristine.checkout(commit)?;
        let found = pristine.read_again(commit)?;
        clear()?;
        Ok(found.tree)
    }

    /// Saves work that no ref holds yet under the salvage ref of the attempt that left it. Returns
    /// that ref, or the directory of files that were too large, if something was saved.
    pub fn rescue(&self, now: i64) -> Result<Option<String>, GitError> {
        let Some(note) = self.note().filter(|_| self.pool == Pool::Agent) else { return Ok(None) };
        if !self.is_dir() {
            return Ok(None);
        }
        let note = self.on_known_base(note)?;
        let attempt = AttemptName { task: &note.task, id: &note.attempt };
        let capture = self.capture(&CaptureRequest { attempt, base: &note.base, now })?;
        Ok(capture.saved_at())
    }

    /// Removes the slot's directory after rescuing the work in it.
    pub fn remove(&self, now: i64) -> Result<Option<String>, GitError> {
        let rescued = self.rescue(now)?;
        remove_tree(&self.dir)?;
        remove_tree(&self.own)?;
        Ok(rescued)
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.dir.symlink_metadata().is_ok_and(|meta| meta.is_dir())
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.own.join("index")
    }

    /// Returns the directory of build output that is being put into the slot. While it exists, the slot
    /// has only a part of that.
    pub(crate) fn laying(&self) -> PathBuf {
        self.own.join(LAYING)
    }

    pub(crate) fn make_dirs(&self) -> Result<(), GitError> {
        if !self.is_dir() {
            remove_tree(&self.dir)?;
        }
        for dir in [&self.dir, &self.own] {
            fs::create_dir_all(dir).on("create", dir)?;
        }
        // Whoever holds the slot is alone; a lock file here is from a git of ours that was killed.
        remove_tree(&self.own.join("index.lock"))
    }

    pub(crate) fn checkout(&self, commit: &Oid) -> Result<(), GitError> {
        let commit = self.hub().expanded(commit)?;
        let fill = || {
            self.hub()
                .git_in(format!("fill slot with {commit}"), &self.dir, &self.index())
                .args(["read-tree", "-u", "--reset", commit.as_str()])
                .timeout(TRANSFER_TIMEOUT)
                .ok()
        };
        if fill().is_err() {
            // An index cut short by a crash is only a cache; without it every file is written anew.
            remove_tree(&self.index())?;
            fill()?;
        }
        Ok(())
    }

    /// Returns the build directories whose lock files on disk are byte for byte those of the new
    /// commit.
    fn kept(&self, commit: &Oid, tracked: &Tracked) -> Result<HashSet<PathBuf>, GitError> {
        let mut kept = HashSet::new();
        let mut level: HashSet<PathBuf> = HashSet::from([PathBuf::new()]);
        for file in tracked.files() {
            let path = Path::new(OsStr::from_bytes(file));
            level.extend(path.parent().map(Path::to_owned));
        }
        for parent in level {
            for (name, locks) in KEPT {
                let dir = parent.join(name);
                let there = self.dir.join(&dir).symlink_metadata().is_ok_and(|m| m.is_dir());
                if there
                    && !tracked.has_dir(&dir)
                    && !linked_parent(&self.dir, &parent)
                    && self.locks_agree(commit, tracked, &parent, locks)?
                {
                    kept.insert(dir);
                }
            }
        }
        Ok(kept)
    }

    fn locks_agree(
        &self,
        commit: &Oid,
        tracked: &Tracked,
        parent: &Path,
        locks: &[&str],
    ) -> Result<bool, GitError> {
        let mut names: HashSet<PathBuf> = tracked
            .files()
            .map(|file| Path::new(OsStr::from_bytes(file)))
            .filter(|file| file.parent() == Some(parent))
            .map(Path::to_owned)
            .collect();
        let on_disk = fs::read_dir(self.dir.join(parent)).on("read", &self.dir.join(parent))?;
        names.extend(on_disk.flatten().map(|entry| parent.join(entry.file_name())));
        names.retain(|path| locks.iter().any(|lock| is_lock(path, lock)));
        for path in &names {
            let committed = self.blob_at(commit, path)?;
            if committed.is_none() || committed != read_plain(&self.dir.join(path), LOCK_BYTES_MAX)
            {
                return Ok(false);
            }
        }
        Ok(!names.is_empty())
    }

    fn blob_at(&self, commit: &Oid, path: &Path) -> Result<Option<Vec<u8>>, GitError> {
        let mut spec = std::ffi::OsString::from(format!("{commit}:"));
        spec.push(path);
        let out = self
            .hub()
            .git(format!("read {}", path.display()))
            .args(["cat-file", "blob", "--end-of-options"])
            .arg(spec)
            .run()?;
        Ok((out.code() == Some(0)).then_some(out.stdout))
    }

    /// Copies ignored files of the user's checkout. A file git would commit is not copied: its
    /// content (often a secret) must not reach a branch.
    pub(crate) fn copy_in(&self, list: &[PathBuf]) -> Result<CopiedIn, GitError> {
        let (mut copied, mut left) = (Vec::new(), Vec::new());
        for path in list.iter().take(COPY_FILES_MAX) {
            match self.copy_one(path)? {
                None => copied.push(path.clone()),
                Some(reason) => left.push((path.clone(), reason)),
            }
        }
        left.extend(list.iter().skip(COPY_FILES_MAX).map(|path| {
            (path.clone(), format!("the list has more than {COPY_FILES_MAX} entries"))
        }));
        Ok((copied, left))
    }

    fn copy_one(&self, path: &Path) -> Result<Option<String>, GitError> {
        let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        if !plain || path.components().any(|part| part.as_os_str() == ".git") {
            return Ok(Some("not a path inside the checkout".into()));
        }
        let from = self.pools.checkout.join(path);
        if !from.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            return Ok(Some("not a file in the checkout".into()));
        }
        let parent = path.parent().unwrap_or(Path::new(""));
        if linked_parent(&self.dir, parent) || linked_parent(&self.pools.checkout, parent) {
            return Ok(Some("its directory is a link".into()));
        }
        let ignored = self
            .hub()
            .git_in("ask what is ignored", &self.dir, &self.index())
            .args(["check-ignore", "-q", "-z", "--stdin"])
            .stdin([path.as_os_str().as_bytes(), b"\0"].concat())
            .run()?;
        if ignored.code() != Some(0) {
            return Ok(Some("not ignored by git, it would be committed".into()));
        }
        let to = self.dir.join(path);
        if let Some(dir) = to.parent() {
            fs::create_dir_all(dir).on("create", dir)?;
        }
        remove_tree(&to)?;
        fs::copy(&from, &to).on("copy", &from)?;
        Ok(None)
    }
}

/// Returns whether a directory on the way from `root` down to `path` is a link (or not a directory
/// at all).
fn linked_parent(root: &Path, path: &Path) -> bool {
    let mut at = root.to_owned();
    path.components().any(|part| {
        at.push(part);
        at.symlink_metadata().is_ok_and(|meta| !meta.is_dir())
    })
}

/// Returns whether a file says from what a build directory was made.
pub(crate) fn is_lock_of(file: &Path, dir: &Path) -> bool {
    let is_its = |(name, locks): &(&str, &[&str])| {
        dir.file_name() == Some(OsStr::new(name)) && locks.iter().any(|lock| is_lock(file, lock))
    };
    file.parent() == dir.parent() && KEPT.iter().any(is_its)
}

fn is_lock(path: &Path, lock: &str) -> bool {
    let Some(name) = path.file_name().and_then(OsStr::to_str) else { return false };
    match lock.split_once('*') {
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
        None => name == lock,
    }
}

/// Reads a plain file, unless it is larger than `bytes_max`.
fn read_plain(path: &Path, bytes_max: u64) -> Option<Vec<u8>> {
    let file = disposable::open_plain(path)?;
    if file.metadata().ok()?.len() > bytes_max {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
