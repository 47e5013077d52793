//! Putting the hub's branches back where the journal says they were.

use super::{ExpectedRef, Hub};
use crate::git::command::CommandError;
use crate::git::error::GitError;
use crate::git::object::Oid;
use crate::git::sweep::remove_tree;

/// A branch of ours and the commit that the journal recorded for it, if it recorded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchRecord {
    /// The short name of the branch, such as `autopilot/<task>`.
    pub branch: String,
    /// The recorded commit.
    pub commit: Option<Oid>,
}

/// A damaged branch and what was done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchMend {
    /// The branch was put back at its recorded commit.
    Restored { branch: String, commit: Oid },
    /// The branch could not be read and nothing was recorded for it, so that it was removed.
    Removed { branch: String },
}

impl Hub {
    /// Returns the commit that comes after all others, of commits that were the tip of one branch.
    pub fn newest_of(&self, tips: &[Oid]) -> Result<Option<Oid>, GitError> {
        if tips.is_empty() {
            return Ok(None);
        }
        let tips: String = tips.iter().map(|tip| format!("{tip}\n")).collect();
        let newest = self
            .git("find the newest of the recorded commits")
            .args(["rev-list", "--topo-order", "--max-count=1", "--stdin"])
            .stdin(tips)
            .oid()?;
        Ok(Some(newest))
    }

    /// Puts a branch of ours back at a recorded commit, if it is gone, empty, damaged or behind it.
    /// Returns whether it had to be. A branch that went another way is an error.
    pub fn restore_branch(&self, branch: &str, recorded: &Oid) -> Result<bool, GitError> {
        let name = format!("refs/heads/{branch}");
        self.tree_of(recorded)?;
        let found = match self.resolve(&name) {
            Ok(found) => found,
            // Git refuses to touch a ref it can't read.
            Err(GitError::Command(CommandError::Failed { .. }) | GitError::Unreadable { .. }) => {
                remove_tree(&self.dir.join(&name))?;
                None
            }
            Err(other) => return Err(other),
        };
        let found = found.filter(|found| self.tree_of(found).is_ok());
        match &found {
            Some(tip) if self.is_ancestor(recorded, tip)? => return Ok(false),
            Some(tip) if !self.is_ancestor(tip, recorded)? => {
                let (expected, found) = (Some(recorded.clone()), Some(tip.clone()));
                return Err(GitError::RefMoved { name, expected, found });
            }
            Some(_) => {}
            // What can't be read is in the way of a new ref.
            None => remove_tree(&self.dir.join(&name))?,
        }
        self.set_ref(&name, recorded, ExpectedRef::of(&found))?;
        Ok(true)
    }

    /// Mends those of these branches that are gone, empty, damaged or behind their record. A branch
    /// that went another way is left alone: a task may have been done again since.
    pub fn mend_branches(&self, records: &[BranchRecord]) -> Result<Vec<BranchMend>, GitError> {
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let names: String =
            records.iter().map(|of| format!("refs/heads/{}\n", of.branch)).collect();
        // One question for all of them; git says `missing` of what it can't read.
        let found = self
            .git("read the branches of the tasks")
            .args(["cat-file", "--batch-check=%(objectname) %(objecttype)"])
            .stdin(names)
            .ok()?;
        let found = String::from_utf8_lossy(&found).into_owned();
        let mut mends = Vec::new();
        for (BranchRecord { branch, commit }, line) in records.iter().zip(found.lines()) {
            let tip = line.strip_suffix(" commit");
            let mend = match commit {
                Some(commit) if tip == Some(commit.as_str()) => None,
                Some(commit) => match self.restore_branch(branch, commit) {
                    Ok(true) => Some(BranchMend::Restored {
                        branch: branch.clone(),
                        commit: commit.clone(),
                    }),
                    Ok(false) | Err(GitError::RefMoved { .. }) => None,
                    Err(other) => return Err(other),
                },
                None => {
                    let file = self.dir.join(format!("refs/heads/{branch}"));
                    let is_damaged = tip.is_none() && file.is_file();
                    if is_damaged {
                        remove_tree(&file)?;
                    }
                    is_damaged.then(|| BranchMend::Removed { branch: branch.clone() })
                }
            };
            mends.extend(mend);
        }
        Ok(mends)
    }
}
