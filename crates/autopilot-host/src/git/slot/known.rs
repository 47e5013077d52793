//! What is known of a slot's files without asking git.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::Slot;
use crate::fail;
use crate::git::error::{GitError, OnFile};
use crate::git::index_file::{IndexFile, OtherFiles, has_content, mode_of};
use crate::git::object::Oid;
use crate::git::sweep::remove_tree;
use crate::git::tree_file::TreeFile;
use crate::patience;

impl Slot {
    /// The index as the last capture left it: with the files that the agent wrote.
    pub(in crate::git) fn captured_index(&self) -> PathBuf {
        self.own.join("captured.index")
    }

    /// Returns the one of these commits or trees that the slot's files certainly are, with those of its
    /// submodules, when nobody has touched them since git last read or wrote them.
    pub(in crate::git) fn untouched_tree(
        &self,
        candidates: &[&Oid],
    ) -> Result<Option<Oid>, GitError> {
        for index in [self.captured_index(), self.index()] {
            let Some(index) = self.read_index(&index) else { continue };
            if !index.is_certainly_at(&self.dir, OtherFiles::Count) {
                continue;
            }
            for candidate in candidates {
                // One that can't be read is a matter for the capture itself.
                let hub = self.hub();
                let files = hub.expanded(candidate).and_then(|filled| hub.files_of(&filled));
                let Ok(files) = files else { continue };
                if index.is_of(&files) && self.hub().has_all(&files) {
                    return self.hub().tree_of(candidate).map(Some);
                }
            }
        }
        Ok(None)
    }

    /// Returns whether the slot's files certainly are those of a commit, and its index knows them.
    /// Files beside them do not count: they were swept away or are kept.
    pub(super) fn has_files_of(&self, files: &[TreeFile]) -> Result<bool, GitError> {
        let captured = self.captured_index();
        for path in [self.index(), captured.clone()] {
            let holds = self.read_index(&path).is_some_and(|index| {
                index.is_of(files) && index.is_certainly_at(&self.dir, OtherFiles::Ignored)
            });
            if holds {
                if path == captured {
                    fs::rename(&path, self.index()).on("use", &path)?;
                }
                return Ok(true);
            }
        }
        // It tells of files that git is about to replace.
        remove_tree(&captured)?;
        Ok(false)
    }

    /// Reads every file and returns whether they certainly are those of a commit, each byte by byte,
    /// with nothing beside them.
    pub(super) fn is_surely_clean(&self, commit: &Oid) -> Result<bool, GitError> {
        if fail::is_git_alone() {
            return Ok(false);
        }
        let files = self.hub().files_of(commit)?;
        Ok(self.count_clean(&files) == Some(files.len()))
    }

    /// Returns how many files are as they should be; `None` at the first that is not.
    fn count_clean(&self, files: &[TreeFile]) -> Option<usize> {
        let files: BTreeMap<&[u8], &TreeFile> =
            files.iter().map(|file| (&*file.path, file)).collect();
        let mut found = 0;
        let mut pending = vec![Vec::new()];
        while let Some(dir) = pending.pop() {
            for entry in fs::read_dir(self.dir.join(OsStr::from_bytes(&dir))).ok()? {
                patience::check().ok()?;
                let entry = entry.ok()?;
                let name = entry.file_name();
                let path = match dir.is_empty() {
                    true => name.as_bytes().to_vec(),
                    false => [&*dir, b"/", name.as_bytes()].concat(),
                };
                if entry.file_type().ok()?.is_dir() {
                    pending.push(path);
                    continue;
                }
                let (file, met) = (files.get(&*path)?, entry.metadata().ok()?);
                let is_clean =
                    mode_of(&met) == Some(file.mode) && has_content(&entry.path(), &met, &file.oid);
                is_clean.then_some(())?;
                found += 1;
            }
        }
        Some(found)
    }

    fn read_index(&self, path: &std::path::Path) -> Option<IndexFile> {
        IndexFile::read(path, self.hub().name_bytes())
    }
}
