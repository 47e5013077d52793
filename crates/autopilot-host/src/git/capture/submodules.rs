//! Submodules in captured work: a change has them as its base does. Whatever else became of them is
//! kept and told.

use std::collections::BTreeMap;

use super::{CaptureRequest, TreeSnapshot, Violation};
use crate::git::commit::{NewCommit, TASK, trailers, write_commit};
use crate::git::disposable::FoundRefs;
use crate::git::error::GitError;
use crate::git::hub::{EditedSubmodule, ExpectedRef};
use crate::git::index_file::IndexFile;
use crate::git::object::Oid;
use crate::git::slot::Slot;
use crate::git::tree_file::TreeFile;

impl Slot {
    /// Returns the snapshot with the submodules of the base in place of their files. Where somebody has
    /// edited those files, all of the slot's files are kept as they were found.
    pub(super) fn without_submodules(
        &self,
        request: &CaptureRequest<'_>,
        mut snapshot: TreeSnapshot,
    ) -> Result<TreeSnapshot, GitError> {
        let (tree, edited) = self.hub().collapsed(request.base, &snapshot.tree)?;
        if !edited.is_empty() {
            let kept = self.keep_edits(request, &snapshot.tree)?;
            snapshot.with_submodules = Some(snapshot.tree.clone());
            snapshot.violations.extend(edited.into_iter().map(|edited| {
                let EditedSubmodule { path, files, is_only_more } = edited;
                let kept = kept.clone();
                match is_only_more {
                    true => Violation::SubmoduleLittered { path, files, kept },
                    false => Violation::SubmoduleEdited { path, files, kept },
                }
            }));
        }
        Ok(TreeSnapshot { tree, ..snapshot })
    }

    /// Keeps the files as they were found under a salvage ref of their own, and returns its name.
    fn keep_edits(&self, request: &CaptureRequest<'_>, tree: &Oid) -> Result<String, GitError> {
        let hub = self.hub();
        let name = format!("{}-submodules", request.attempt.salvage_ref());
        let old = hub.resolve(&name)?;
        if let Some(commit) = &old
            && hub.tree_of(commit)? == *tree
        {
            return Ok(name);
        }
        let parents: Vec<Oid> = [request.base.clone()].into_iter().chain(old.clone()).collect();
        let (task, id) = (request.attempt.task, request.attempt.id);
        let message = format!("Edited submodules of {task} {id}");
        let message = trailers(&message, &[(TASK, task)]);
        let (parents, identity, now) = (&*parents, &self.pools.identity, request.now);
        let commit =
            write_commit(hub, &NewCommit { tree, parents, message: &message, identity, now })?;
        hub.set_ref(&name, &commit, ExpectedRef::of(&old))?;
        Ok(name)
    }

    /// Returns the submodules that the agent's own commit or index names otherwise than the base. Its
    /// files tell nothing of that.
    pub(super) fn moved_submodules(
        &self,
        request: &CaptureRequest<'_>,
        found: Option<&FoundRefs>,
    ) -> Result<Vec<Violation>, GitError> {
        let hub = self.hub();
        if !hub.has_submodules(request.base)? {
            return Ok(Vec::new());
        }
        let links = hub.submodules_of(request.base)?;
        let head = found.and_then(|found| found.head.as_ref());
        // A commit that was not taken is told as such.
        let committed = head.and_then(|head| hub.files_of(head).ok());
        let index = self.dir.join(".git/index");
        let staged = IndexFile::with_submodules(&index, hub.name_bytes());
        let sides: Vec<BTreeMap<Vec<u8>, TreeFile>> =
            [committed, staged.map(|index| index.files())]
                .into_iter()
                .flatten()
                .map(named)
                .collect();
        let is_moved = |link: &TreeFile| {
            let is_there = |side: &BTreeMap<_, _>| side.get(&link.path) == Some(link);
            !sides.iter().all(is_there)
        };
        let moved = links.into_iter().filter(is_moved);
        Ok(moved.map(|link| Violation::SubmoduleMoved { path: link.path }).collect())
    }
}

fn named(files: Vec<TreeFile>) -> BTreeMap<Vec<u8>, TreeFile> {
    files.into_iter().map(|file| (file.path.clone(), file)).collect()
}
