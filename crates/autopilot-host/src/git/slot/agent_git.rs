//! The `.git` that an agent finds in its slot.

use super::super::capture::copy_with_time;
use super::super::disposable::{self, Fresh};
use super::super::error::GitError;
use super::{Prepare, Slot};

impl Slot {
    /// Writes a `.git` that knows the commit, its branch and its base. A submodule is one entry of its
    /// index, as in the commit, and a directory of plain files in the slot: git then finds nothing
    /// changed, and no command of it goes into the submodule.
    pub(super) fn fresh_git(&self, wanted: &Prepare<'_>) -> Result<(), GitError> {
        let mut index = self.index();
        if self.hub().has_submodules(wanted.commit)? {
            let collapsed = self.own.join("agent.index");
            copy_with_time(&index, &collapsed)?;
            self.hub().collapse_index(&self.dir, &collapsed, wanted.commit)?;
            index = collapsed;
        }
        disposable::write(
            &self.dir,
            &Fresh {
                hub_objects: &self.hub().dir().join("objects"),
                index: &index,
                config_copy: &self.own.join("git-config"),
                excludes: &self.hub().dir().join("info/exclude"),
                commit: wanted.commit,
                branch: wanted.branch,
                beside: Some((&self.pools.base_branch, wanted.base)),
                identity: &self.pools.identity,
                remotes: &self.pools.remotes,
            },
        )
    }
}
