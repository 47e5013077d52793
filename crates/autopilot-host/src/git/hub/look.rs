//! A look at a hub that writes nothing, for `doctor`.

use std::fs;
use std::path::{Path, PathBuf};

use super::Hub;
use super::make::is_ours;
use crate::git::error::GitError;
use crate::git::object::Oid;
use crate::git::repo::UserRepo;

/// The most commits whose files are looked for.
const COMMITS_MAX: usize = 500;

/// What is wrong with a hub.
#[derive(Debug, thiserror::Error)]
pub enum HubDamage {
    /// The directory does not exist.
    #[error("`{}` is missing", path.display())]
    Gone { path: PathBuf },
    /// A part that every hub has is missing.
    #[error("`{}` is missing", path.display())]
    Part { path: PathBuf },
    /// A file that could make git run programs was changed.
    #[error(transparent)]
    Tampered(GitError),
    /// Git can't read its refs, or objects that they or the run need.
    #[error("git can't read `{}`", path.display())]
    Unreadable { path: PathBuf, source: GitError },
}

impl Hub {
    /// Looks for damage in the hub of a state directory. `recorded` are commits that the run needs.
    pub fn look(state: &Path, repo: &UserRepo, recorded: &[Oid]) -> Result<(), HubDamage> {
        let mut hub = Self::at(state, repo);
        let path = hub.dir.clone();
        if !path.is_dir() {
            return Err(HubDamage::Gone { path });
        }
        for part in ["HEAD", "config", "objects", "refs"] {
            let path = path.join(part);
            if !path.exists() {
                return Err(HubDamage::Part { path });
            }
        }
        // The user's settings may have changed since it was written.
        let config = fs::read_to_string(path.join("config")).unwrap_or_default();
        if is_ours(&config) {
            hub.config = config;
        }
        hub.verify().map_err(HubDamage::Tampered)?;
        let unreadable = |source| HubDamage::Unreadable { path: path.clone(), source };
        let tips = hub.tips().map_err(unreadable)?;
        let commits: Vec<Oid> = recorded.iter().cloned().chain(tips).take(COMMITS_MAX).collect();
        if commits.is_empty() {
            return Ok(());
        }
        hub.check_files_of(&commits).map_err(unreadable)
    }
}
