//! Putting some files of a slot back as they were when it was filled.

use super::super::error::GitError;
use super::super::object::Oid;
use super::super::sweep::{Tracked, withdraw};
use super::Slot;
use std::path::PathBuf;

impl Slot {
    /// Puts the files that `is_wanted` accepts back as the commit and the copied files of the checkout
    /// have them, and removes those that neither has. Every other tracked file is the commit's again as
    /// well; other files stay.
    pub fn put_back(
        &self,
        commit: &Oid,
        is_wanted: &dyn Fn(&str) -> bool,
        copy: &[PathBuf],
    ) -> Result<(), GitError> {
        let files = self.hub().files_of(&self.hub().expanded(commit)?)?;
        let tracked = Tracked::of(files.iter().map(|file| &*file.path));
        withdraw(&self.dir, &tracked, is_wanted)?;
        self.checkout(commit)?;
        self.copy_in(copy)?;
        Ok(())
    }
}
