//! The hub: a bare repository of our own that shares the user's objects by hard links.
//!
//! Invariant: only the controller writes its config, so a command with `GIT_DIR` = hub executes
//! nothing that an agent or a repository can plant. Its HEAD names no commit, so that
//! `.gitattributes` of a commit can't hide a file from a diff.

mod expand;
mod look;
mod make;
mod objects;
mod restore;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::command::GitCommand;
use super::commit::CommitHead;
use super::error::{GitError, OnFile};
use super::loose::{self, ObjectKind};
use super::name::ref_component;
use super::object::Oid;
use super::ref_file;
use super::repo::{Filter, UserRepo, list_refs, resolve_ref};
use super::submodule::ModulePlaces;
use super::transfer::{ObjectCheck, ObjectSource, transfer};
use super::tree_file::KnownTrees;
pub(super) use expand::EditedSubmodule;
pub use look::HubDamage;
use make::{HEAD, config_text};
pub use objects::ObjectMend;
pub use restore::{BranchMend, BranchRecord};

/// The refs of base branches as they were when last read, away from `refs/heads/` where they could
/// collide.
const BASE: &str = "refs/base/";

/// The refs of commits that agents made themselves.
pub(crate) const AGENTS_COMMITS: &str = "refs/autopilot/commits/";
/// How many trees of commits, and commits that refs name, are remembered; beyond that git is asked
/// again.
const TREES_KNOWN_MAX: usize = 16_384;

/// The state that a ref must have for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedRef<'a> {
    /// The ref does not exist.
    Absent,
    /// The ref is at this object.
    At(&'a Oid),
}

impl<'a> ExpectedRef<'a> {
    /// Returns the state in which a ref was found.
    pub fn of(found: &'a Option<Oid>) -> Self {
        found.as_ref().map_or(ExpectedRef::Absent, ExpectedRef::At)
    }
}

/// The hub of one repository.
#[derive(Clone, Debug)]
pub struct Hub {
    state: PathBuf,
    dir: PathBuf,
    config: String,
    filters: Vec<Filter>,
    /// The directory in which the user's git-lfs keeps large files; they stay there.
    lfs_storage: PathBuf,
    /// The trees of commits. A commit's tree never changes, and every step asks for one several
    /// times.
    trees: Arc<Mutex<BTreeMap<Oid, Oid>>>,
    /// The trees with the files of their submodules, by the tree without; `None` for one without
    /// submodules.
    expanded_trees: Arc<Mutex<BTreeMap<Oid, Option<Oid>>>>,
    /// Where the user's submodules have their objects.
    modules: ModulePlaces,
    /// The directories of trees that were read.
    pub(super) known_trees: Arc<Mutex<KnownTrees>>,
    /// Commits that refs name for certain: seen or put there by this process, and not moved since.
    /// Refs may name others as well; nobody else writes refs here while we hold the lock.
    held: Arc<Mutex<BTreeSet<Oid>>>,
}

impl Hub {
    /// Opens the hub of a state directory, making it when there is none. The caller holds the
    /// workspace's lock.
    pub fn open(state: &Path, repo: &UserRepo) -> Result<Self, GitError> {
        fs::create_dir_all(state).on("create", state)?;
        let hub = Self::at(state, repo);
        if hub.dir.exists() {
            hub.put_back_frame()?;
        } else {
            hub.create(repo)?;
        }
        hub.adopt_settings(repo)?;
        hub.verify()?;
        // No other process works here: a lock is from a git of ours that was killed.
        hub.remove_stale_locks(Duration::ZERO)?;
        hub.remove_temporary_objects();
        hub.sync(repo)?;
        Ok(hub)
    }

    fn at(state: &Path, repo: &UserRepo) -> Self {
        Self {
            state: state.to_owned(),
            dir: state.join("hub.git"),
            config: config_text(repo),
            filters: repo.filters.clone(),
            lfs_storage: repo.common_dir.join("lfs"),
            trees: Arc::default(),
            expanded_trees: Arc::default(),
            modules: ModulePlaces::of(repo),
            known_trees: Arc::default(),
            held: Arc::default(),
        }
    }

    /// Returns the git directory of the hub.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the state directory of the repository.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Brings the base branch's tip into the hub, with the files of its submodules, and returns it.
    pub fn sync(&self, repo: &UserRepo) -> Result<Oid, GitError> {
        let tip = repo.tip()?;
        let name = base_ref(repo);
        let known = self.resolve(&name)?;
        if known.as_ref() != Some(&tip) {
            let _kept =
                self.import(&ObjectSource { git_dir: &repo.common_dir, objects: vec![] }, &tip)?;
            self.set_ref(&name, &tip, ExpectedRef::of(&known))?;
        }
        if repo.has_submodules {
            self.expanded(&tip)?;
        }
        Ok(tip)
    }

    /// Copies one commit with all it reaches from another object store.
    pub(crate) fn import(
        &self,
        source: &ObjectSource<'_>,
        tip: &Oid,
    ) -> Result<super::transfer::KeptPack, GitError> {
        transfer(
            source,
            &self.dir,
            std::slice::from_ref(tip),
            &self.tips()?,
            ObjectCheck::Connected,
        )
    }

    /// Returns all objects that the hub is known to hold completely.
    pub(crate) fn tips(&self) -> Result<Vec<Oid>, GitError> {
        let mut tips: Vec<Oid> = self.refs("refs/")?.into_iter().map(|(_, oid)| oid).collect();
        tips.sort();
        tips.dedup();
        Ok(tips)
    }

    /// Fails when the hub's config, HEAD, hooks, attributes or alternates are not as we wrote them.
    pub fn verify(&self) -> Result<(), GitError> {
        let tampered = |path: PathBuf| Err(GitError::Tampered { path });
        let config = self.dir.join("config");
        if fs::read(&config).on("read", &config)? != self.config.as_bytes() {
            return tampered(config);
        }
        let head = self.dir.join("HEAD");
        if fs::read(&head).on("read", &head)? != HEAD.as_bytes() {
            return tampered(head);
        }
        for planted in
            ["hooks", "info/attributes", "objects/info/alternates", "commondir", "config.worktree"]
        {
            let path = self.dir.join(planted);
            if path.symlink_metadata().is_ok() {
                return tampered(path);
            }
        }
        Ok(())
    }

    /// Returns the object that a ref names, if there is such a ref.
    pub fn resolve(&self, name: &str) -> Result<Option<Oid>, GitError> {
        // A ref in a file of its own has git's answer in it, and saves asking git.
        let loose = name.starts_with("refs/").then(|| fs::read(self.dir.join(name)).ok()).flatten();
        if let Some(oid) = loose.and_then(|bytes| Oid::from_bytes(bytes.trim_ascii()).ok()) {
            return Ok(Some(oid));
        }
        if self.is_surely_absent(name) {
            return Ok(None);
        }
        resolve_ref(&self.dir, name)
    }

    /// Returns whether the ref has no file of its own and no refs are packed. Looked at in this
    /// order, because a ref that is being packed is in both places for a moment and never in
    /// neither.
    fn is_surely_absent(&self, name: &str) -> bool {
        let missing = |path: PathBuf| {
            let looked = path.symlink_metadata();
            looked.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
        };
        name.starts_with("refs/")
            && missing(self.dir.join(name))
            && missing(self.dir.join("packed-refs"))
            && missing(self.dir.join("reftable"))
    }

    /// Returns the refs below a prefix, with the objects they name.
    pub fn refs(&self, prefix: &str) -> Result<Vec<(String, Oid)>, GitError> {
        match ref_file::list(&self.dir, prefix) {
            Some(refs) => Ok(refs),
            None => list_refs(&self.dir, prefix),
        }
    }

    /// Returns whether a ref, other than one of an agent's own commits, names each of these. A list
    /// of all refs costs more with every task there was, so git is only asked for it when this
    /// process does not know.
    pub(crate) fn holds_all(&self, commits: &BTreeSet<Oid>) -> Result<bool, GitError> {
        // The lock is held while the refs are listed, so that a ref that moves meanwhile is
        // forgotten afterwards.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if commits.is_subset(&held) {
            return Ok(true);
        }
        let refs = self.refs("refs/")?.into_iter();
        let of_others = refs.filter(|(name, _)| !name.starts_with(AGENTS_COMMITS));
        let all: BTreeSet<Oid> = of_others.map(|(_, oid)| oid).collect();
        let are_held = commits.is_subset(&all);
        if are_held {
            if held.len() >= TREES_KNOWN_MAX {
                held.clear();
            }
            held.extend(commits.iter().cloned());
        }
        Ok(are_held)
    }

    /// Moves one ref by compare-and-swap.
    pub fn set_ref(&self, name: &str, new: &Oid, old: ExpectedRef<'_>) -> Result<(), GitError> {
        let moved = match ref_file::set(&self.dir, name, new, old) {
            Some(()) => Ok(()),
            None => set_ref(&self.dir, name, new, old),
        };
        if let ExpectedRef::At(old) = old {
            self.no_longer_holds(old);
        }
        moved
    }

    /// Puts a mark of ours at a commit, wherever it was before.
    pub(crate) fn mark(&self, name: &str, commit: &Oid) -> Result<(), GitError> {
        let old = self.resolve(name)?;
        if old.as_ref() == Some(commit) {
            return Ok(());
        }
        self.set_ref(name, commit, ExpectedRef::of(&old))
    }

    /// Deletes a ref that is at this object.
    pub fn delete_ref(&self, name: &str, old: &Oid) -> Result<(), GitError> {
        let line = format!("option no-deref\0delete {name}\0{old}\0");
        let deleted = match ref_file::delete(&self.dir, name, old) {
            Some(()) => Ok(()),
            None => update_refs(&self.dir, name, &line, ExpectedRef::At(old)),
        };
        self.no_longer_holds(old);
        deleted
    }

    fn no_longer_holds(&self, commit: &Oid) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(commit);
    }

    /// Returns the tree of a commit, or a tree itself.
    pub fn tree_of(&self, commit: &Oid) -> Result<Oid, GitError> {
        let trees = || self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tree) = trees().get(commit) {
            return Ok(tree.clone());
        }
        let is_tree = |oid: &Oid| loose::read(&self.dir, oid, ObjectKind::Tree).is_some();
        let tree = match self.commit_head(commit) {
            Some(head) if is_tree(&head.tree) => head.tree,
            None if is_tree(commit) => commit.clone(),
            Some(_) | None => self
                .git(format!("find the tree of {commit}"))
                .args(["rev-parse", "--verify", "--end-of-options"])
                .arg(format!("{commit}^{{tree}}"))
                .oid()?,
        };
        let mut known = trees();
        if known.len() >= TREES_KNOWN_MAX {
            known.clear();
        }
        known.insert(commit.clone(), tree.clone());
        Ok(tree)
    }

    /// Returns whether git runs programs of the user's on what it reads and writes.
    pub(super) fn has_filters(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Returns how long the binary names of objects are.
    pub(super) fn name_bytes(&self) -> usize {
        if self.config.contains("objectFormat = sha256") { 32 } else { 20 }
    }

    /// Returns whether the hub certainly has an object; git knows of the others.
    pub(super) fn surely_has(&self, oid: &Oid) -> bool {
        let trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        trees.contains_key(oid) || loose::is_there(&self.dir, oid)
    }

    /// Returns what a commit says of itself, if it has a file of its own in the hub.
    pub(super) fn commit_head(&self, commit: &Oid) -> Option<CommitHead> {
        CommitHead::read(&loose::read(&self.dir, commit, ObjectKind::Commit)?)
    }

    /// Returns the parents of a commit.
    pub fn parents(&self, commit: &Oid) -> Result<Vec<Oid>, GitError> {
        if let Some(head) = self.commit_head(commit) {
            return Ok(head.parents);
        }
        let line = self
            .git(format!("read the parents of {commit}"))
            .args(["rev-list", "--parents", "--max-count=1", commit.as_str()])
            .line()?;
        line.split_whitespace().skip(1).map(Oid::parse).collect()
    }

    /// Returns the newest commit that both have in their history.
    pub fn merge_base(&self, one: &Oid, other: &Oid) -> Result<Option<Oid>, GitError> {
        let out = self
            .git(format!("find the merge base of {one} and {other}"))
            .args(["merge-base", one.as_str(), other.as_str()])
            .run()?;
        match out.code() {
            Some(0) => Ok(Some(Oid::from_bytes(out.stdout.trim_ascii())?)),
            _ => Ok(None),
        }
    }

    /// Returns whether `old` is in the history of `new`.
    pub fn is_ancestor(&self, old: &Oid, new: &Oid) -> Result<bool, GitError> {
        let out = self
            .git(format!("compare {old} with {new}"))
            .args(["merge-base", "--is-ancestor", old.as_str(), new.as_str()])
            .run()?;
        Ok(out.code() == Some(0))
    }

    /// Removes lock files that a killed git of ours left behind; a younger one may have a living
    /// owner.
    pub fn remove_stale_locks(&self, older_than: Duration) -> Result<Vec<PathBuf>, GitError> {
        let mut removed = Vec::new();
        let mut dirs = vec![self.dir.join("refs")];
        let mut candidates = vec![
            self.dir.join("packed-refs.lock"),
            self.dir.join("config.lock"),
            self.dir.join("HEAD.lock"),
        ];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(&dir).on("read", &dir)?.flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => dirs.push(entry.path()),
                    Ok(_) => candidates.push(entry.path()),
                    Err(_) => {}
                }
            }
        }
        for path in candidates.into_iter().filter(|p| p.extension().is_some_and(|e| e == "lock")) {
            let Ok(modified) = path.symlink_metadata().and_then(|meta| meta.modified()) else {
                continue;
            };
            if SystemTime::now().duration_since(modified).is_ok_and(|age| age >= older_than) {
                fs::remove_file(&path).on("remove", &path)?;
                removed.push(path);
            }
        }
        Ok(removed)
    }

    /// Makes a command on the hub alone.
    pub(crate) fn git(&self, operation: impl Into<String>) -> GitCommand {
        GitCommand::isolated(operation, &self.dir)
    }

    /// Makes a command on the hub with a slot's files, and the filters the user has allowed.
    pub(crate) fn git_in(
        &self,
        operation: impl Into<String>,
        tree: &Path,
        index: &Path,
    ) -> GitCommand {
        let mut git = self.git(operation).work_tree(tree).index(index);
        for filter in &self.filters {
            if filter.name == "lfs" {
                git = git.config("lfs.storage", &self.lfs_storage);
            }
            for (key, value) in &filter.settings {
                git = git.config(key, value);
            }
        }
        git
    }
}

/// Returns the ref of the base branch: one component, so that base branches `a` and `a/b` can
/// follow each other.
fn base_ref(repo: &UserRepo) -> String {
    base_ref_of(&repo.base_branch)
}

/// Returns the ref of a base branch as it was when last read.
pub(crate) fn base_ref_of(branch: &str) -> String {
    format!("{BASE}{}", ref_component(branch))
}

pub(crate) fn set_ref(
    git_dir: &Path,
    name: &str,
    new: &Oid,
    old: ExpectedRef<'_>,
) -> Result<(), GitError> {
    let old_text = match old {
        ExpectedRef::Absent => "0".repeat(new.as_str().len()),
        ExpectedRef::At(oid) => oid.to_string(),
    };
    let line = format!("option no-deref\0update {name}\0{new}\0{old_text}\0");
    update_refs(git_dir, name, &line, old)
}

fn update_refs(
    git_dir: &Path,
    name: &str,
    lines: &str,
    old: ExpectedRef<'_>,
) -> Result<(), GitError> {
    let result = GitCommand::isolated(format!("move ref {name}"), git_dir)
        .args(["update-ref", "-z", "--stdin"])
        .stdin(lines.as_bytes())
        .ok();
    let Err(error) = result else { return Ok(()) };
    let found = resolve_ref(git_dir, name)?;
    let expected = match old {
        ExpectedRef::Absent => None,
        ExpectedRef::At(oid) => Some(oid.clone()),
    };
    if found == expected {
        Err(error.into())
    } else {
        Err(GitError::RefMoved { name: name.to_owned(), expected, found })
    }
}
