//! Trees with the files of their submodules. A worktree of ours is filled with such an expanded tree, so
//! that the files of a submodule are written, measured and compared like all others; whatever is taken
//! from a worktree gets its submodules back before anybody else sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use super::{ExpectedRef, Hub, TREES_KNOWN_MAX};
use crate::git::commit::{NewCommit, write_commit};
use crate::git::error::{GitError, OnFile};
use crate::git::identity::CommitIdentity;
use crate::git::object::Oid;
use crate::git::submodule::{self, ModulePlaces, NESTED_MAX};
use crate::git::transfer::{ObjectCheck, ObjectSource, transfer_known};
use crate::git::tree_file::{FileDifference, TreeFile};

/// The refs of the files of submodules, each by the commit of the submodule.
const SUBMODULES: &str = "refs/submodules/";

/// What somebody did with the files of a submodule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::git) struct EditedSubmodule {
    /// The path of the submodule.
    pub path: Vec<u8>,
    /// The paths of the files that were changed, added or removed.
    pub files: Vec<Vec<u8>>,
    /// Whether all of them are new, so that the submodule's own files are as they were.
    pub is_only_more: bool,
}

impl Hub {
    /// Returns whether a commit or tree has a submodule.
    pub(in crate::git) fn has_submodules(&self, commit: &Oid) -> Result<bool, GitError> {
        Ok(self.expanded(commit)? != *commit)
    }

    /// Returns the object directories in which the user's submodules of a commit may have theirs.
    pub(in crate::git) fn submodule_stores(
        &self,
        commit: &Oid,
    ) -> Result<BTreeSet<PathBuf>, GitError> {
        let mut stores = BTreeSet::new();
        if self.has_submodules(commit)? {
            for link in self.submodules_of(commit)? {
                stores.extend(self.modules.stores(&link.path)?);
            }
        }
        Ok(stores)
    }

    /// Forgets the files of all submodules, of which some may be lost. They are taken again when they
    /// are needed.
    pub(super) fn forget_submodules(&self) -> Result<(), GitError> {
        for (name, commit) in self.refs(SUBMODULES)? {
            self.delete_ref(&name, &commit)?;
        }
        self.expanded_trees.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(())
    }

    /// Returns the submodules of a commit or tree.
    pub(in crate::git) fn submodules_of(&self, commit: &Oid) -> Result<Vec<TreeFile>, GitError> {
        Ok(self.files_of(commit)?.into_iter().filter(submodule::is_link).collect())
    }

    /// Returns the tree with the files of the submodules in their places, and of the submodules in
    /// them. A commit or tree without any is returned as it is.
    pub fn expanded(&self, commit: &Oid) -> Result<Oid, GitError> {
        let tree = self.tree_of(commit)?;
        let known = || self.expanded_trees.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(expanded) = known().get(&tree) {
            return Ok(expanded.clone().unwrap_or_else(|| commit.clone()));
        }
        let files = self.files_of(&tree)?;
        let expanded = match files.iter().any(submodule::is_link) {
            false => None,
            true => {
                let mut all = Vec::new();
                self.add_expanded(files, &mut Vec::new(), &mut all)?;
                Some(self.write_files(all)?)
            }
        };
        let mut known = known();
        if known.len() >= TREES_KNOWN_MAX {
            known.clear();
        }
        known.insert(tree, expanded.clone());
        Ok(expanded.unwrap_or_else(|| commit.clone()))
    }

    fn add_expanded(
        &self,
        files: Vec<TreeFile>,
        around: &mut Vec<Vec<u8>>,
        all: &mut Vec<TreeFile>,
    ) -> Result<(), GitError> {
        for file in files {
            let path = match around.last() {
                Some(dir) => [&**dir, b"/", &*file.path].concat(),
                None => file.path,
            };
            let file = TreeFile { path, ..file };
            if !submodule::is_link(&file) {
                all.push(file);
                continue;
            }
            if around.len() >= NESTED_MAX {
                return Err(submodule::too_deep(&file.path).into());
            }
            let top = around.first().unwrap_or(&file.path);
            let nested = self.files_of(&self.submodule_commit(&file, top)?)?;
            around.push(file.path);
            self.add_expanded(nested, around, all)?;
            around.pop();
        }
        Ok(())
    }

    /// Returns the commit of ours with the files of a submodule. They are taken from the user's own
    /// objects when they are needed for the first time. Only the files are: the history may be cut
    /// short, and nobody needs it.
    fn submodule_commit(&self, link: &TreeFile, top: &[u8]) -> Result<Oid, GitError> {
        let name = format!("{SUBMODULES}{}", link.oid);
        if let Some(commit) = self.resolve(&name)? {
            return Ok(commit);
        }
        let stores = self.modules.stores(&link.path)?;
        let tree = ModulePlaces::tree_of(self.git("look for a submodule"), &stores, link, top)?;
        let objects = stores.iter().map(PathBuf::as_path).collect();
        let source = ObjectSource { git_dir: self.dir(), objects };
        let wants = std::slice::from_ref(&tree);
        let kept = transfer_known(&source, self.dir(), wants, &[], ObjectCheck::Connected);
        let _kept = kept.map_err(|error| submodule::incomplete(link, error))?;
        let identity = CommitIdentity::or_default("", "");
        let message = format!("The files of the submodule at {}\n", link.oid);
        let new =
            NewCommit { tree: &tree, parents: &[], message: &message, identity: &identity, now: 0 };
        let commit = write_commit(self, &new)?;
        match self.set_ref(&name, &commit, ExpectedRef::Absent) {
            Ok(()) => Ok(commit),
            // Another step has needed it at the same time.
            Err(GitError::RefMoved { found: Some(found), .. }) => Ok(found),
            Err(error) => Err(error),
        }
    }

    /// Returns the tree of files taken from a worktree that was filled with `base`, with the submodules
    /// of the base in their places, and the submodules that somebody has edited. Where a submodule has
    /// no files any more, or a file is in its place, it is gone.
    pub(in crate::git) fn collapsed(
        &self,
        base: &Oid,
        taken: &Oid,
    ) -> Result<(Oid, Vec<EditedSubmodule>), GitError> {
        if !self.has_submodules(base)? {
            return Ok((taken.clone(), Vec::new()));
        }
        let differences = self.differences(&self.expanded(base)?, taken)?;
        if differences.is_empty() {
            return Ok((self.tree_of(base)?, Vec::new()));
        }
        let mut files = self.files_of(taken)?;
        let mut edited = Vec::new();
        for link in self.submodules_of(base)? {
            let changed = changes_in(&link.path, &differences);
            let count = files.len();
            let is_replaced = files.iter().any(|file| file.path == link.path);
            files.retain(|file| !is_below(&link.path, &file.path));
            let is_empty = files.len() == count && !changed.is_empty();
            if is_replaced || is_empty {
                continue;
            }
            if !changed.is_empty() {
                let is_only_more = changed.iter().all(|found| found.old.is_none());
                let files = changed.into_iter().map(|found| found.path.clone()).collect();
                edited.push(EditedSubmodule { path: link.path.clone(), files, is_only_more });
            }
            files.push(link);
        }
        Ok((self.write_files(files)?, edited))
    }

    /// Makes a copy of the index of an expanded tree for a git that knows the submodules: each is one
    /// entry again. Without a repository in its directory, git takes its files for nobody's concern.
    pub(in crate::git) fn collapse_index(
        &self,
        tree: &Path,
        index: &Path,
        commit: &Oid,
    ) -> Result<(), GitError> {
        let mut lines = Vec::new();
        for link in self.submodules_of(commit)? {
            // A file of an index gives way to what is put in its place.
            lines.extend_from_slice(format!("160000 {}\t", link.oid).as_bytes());
            lines.extend_from_slice(&link.path);
            lines.push(0);
        }
        self.git_in("put submodules into an index", tree, index)
            .args(["update-index", "-z", "--index-info"])
            .stdin(lines)
            .ok()?;
        Ok(())
    }

    /// Writes the trees of these files, which are in no order, and returns the root.
    fn write_files(&self, files: Vec<TreeFile>) -> Result<Oid, GitError> {
        let files: BTreeMap<Vec<u8>, TreeFile> =
            files.into_iter().map(|file| (file.path.clone(), file)).collect();
        let files: Vec<TreeFile> = files.into_values().collect();
        if let Some(tree) = self.write_trees(&files) {
            return Ok(tree);
        }
        let mut lines = Vec::new();
        for TreeFile { path, mode, oid } in &files {
            lines.extend_from_slice(format!("{mode:o} {oid}\t").as_bytes());
            lines.extend_from_slice(path);
            lines.push(0);
        }
        let dir = tempfile::tempdir_in(self.state()).on("create an index in", self.state())?;
        let index = dir.path().join("index");
        let git = |what: &str| self.git(what.to_owned()).index(&index);
        git("list files").args(["update-index", "-z", "--index-info"]).stdin(lines).ok()?;
        git("write a tree").args(["write-tree"]).oid()
    }
}

/// Returns whether a path is in the directory `dir`.
fn is_below(dir: &[u8], path: &[u8]) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.starts_with(b"/"))
}

fn changes_in<'a>(link: &[u8], differences: &'a [FileDifference]) -> Vec<&'a FileDifference> {
    let is_there = |path: &[u8]| is_below(link, path) || path == link;
    differences.iter().filter(|found| is_there(found.path.as_slice())).collect()
}
