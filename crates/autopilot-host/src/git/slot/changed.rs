//! The files of a slot that are no longer as they are committed.

use super::super::error::GitError;
use super::super::object::Oid;
use super::super::sweep::remove_tree;
use super::Slot;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

impl Slot {
    /// Returns the tracked files that differ from the commit or are gone, by content, with those of its
    /// submodules. Files that the commit does not have are not looked at.
    pub fn changed_files(&self, commit: &Oid) -> Result<Vec<PathBuf>, GitError> {
        let index = self.own.join("changed.index");
        remove_tree(&index)?;
        remove_tree(&self.own.join("changed.index.lock"))?;
        let git = |operation: String| self.hub().git_in(operation, &self.dir, &index);
        let filled = self.hub().expanded(commit)?;
        git(format!("read {commit}")).args(["read-tree", filled.as_str()]).ok()?;
        // It ends with 1 where a file has changed, which the listing tells.
        git("compare the files of the slot".to_owned())
            .args(["update-index", "-q", "--really-refresh"])
            .run()?
            .expect_code(&[0, 1])?;
        let listing = git("list changed files of the slot".to_owned())
            .args(["diff-files", "--name-only", "-z"])
            .ok()?;
        remove_tree(&index)?;
        let paths = listing.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect())
    }
}
