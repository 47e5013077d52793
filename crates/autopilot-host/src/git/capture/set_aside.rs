//! Files that are too large to be taken are moved out of their slot and kept as they are, until
//! somebody removes them: renaming takes a moment whatever their size.

use std::fs;
use std::path::{Path, PathBuf};

use super::measure::{MeasuredFile, Oversize, path_of};
use super::{Capture, CaptureRequest, Violation};
use crate::git::error::{GitError, OnFile};
use crate::git::name::ref_component;
use crate::git::slot::Slot;
use crate::patience;

/// The directory of the state directory in which files are kept that were too large.
pub const OVERSIZE: &str = "oversize";

impl Capture {
    /// Returns where work is that no ref held before: a ref, a directory of files that were too
    /// large, or both.
    pub fn saved_at(&self) -> Option<String> {
        let aside = self.violations.iter().find_map(|violation| match violation {
            Violation::Oversize { kept, .. } | Violation::OutOfTime { kept } => {
                Some(kept.display().to_string())
            }
            Violation::SubmoduleEdited { kept, .. } | Violation::SubmoduleLittered { kept, .. } => {
                Some(kept.clone())
            }
            Violation::NestedRepository { .. }
            | Violation::Unreadable { .. }
            | Violation::CommitsNotTaken { .. }
            | Violation::GitDirectoryGone
            | Violation::SubmoduleMoved { .. }
            | Violation::TooManyRefs => None,
        });
        let saved = self.newly_saved.then(|| self.salvage_ref.clone());
        match (saved, aside) {
            (Some(saved), Some(aside)) => Some(format!("{saved} and {aside}")),
            (saved, aside) => saved.or(aside),
        }
    }
}

impl Slot {
    /// Moves files out of the slot and returns the directory they are in. Tracked ones become again
    /// what they are in the index.
    pub(super) fn move_aside(
        &self,
        request: &CaptureRequest<'_>,
        index: &Path,
        files: &[MeasuredFile],
    ) -> Result<PathBuf, GitError> {
        let kept = self.place_aside(request)?;
        let mut tracked: Vec<u8> = Vec::new();
        for file in files {
            let (from, to) = (self.dir.join(path_of(&file.path)), kept.join(path_of(&file.path)));
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent).on("create", parent)?;
            }
            fs::rename(&from, &to).on("move aside", &from)?;
            if file.is_tracked {
                tracked.extend_from_slice(&file.path);
                tracked.push(0);
            }
        }
        if !tracked.is_empty() {
            self.hub()
                .git_in("restore files that grew too large", &self.dir, index)
                .args(["checkout-index", "-f", "-u", "-z", "--stdin"])
                .stdin(tracked)
                .ok()?;
        }
        Ok(kept)
    }

    /// Moves the whole worktree out of the way and fills the slot anew. The work in it is kept as
    /// files; the next attempt starts from where this one did.
    pub(super) fn set_aside(
        &self,
        request: &CaptureRequest<'_>,
        what: Option<Box<Oversize>>,
    ) -> Result<Capture, GitError> {
        let kept = self.place_aside(request)?;
        fs::rename(&self.dir, &kept).on("move aside", &self.dir)?;
        let base_tree = patience::during(patience::unlimited(), || {
            self.make_dirs()?;
            self.checkout(request.base)?;
            self.hub().tree_of(request.base)
        })?;
        let violation = match what {
            Some(what) => Violation::Oversize { what, kept },
            None => Violation::OutOfTime { kept },
        };
        Ok(Capture {
            tree: base_tree,
            with_submodules: None,
            commit: None,
            salvage_ref: request.attempt.salvage_ref(),
            newly_saved: false,
            agent_commits: Vec::new(),
            agent_head: None,
            agent_head_ref: None,
            agent_stashed: false,
            git_settings_changed: false,
            violations: vec![violation],
        })
    }

    /// Makes an empty directory for what an attempt leaves.
    fn place_aside(&self, request: &CaptureRequest<'_>) -> Result<PathBuf, GitError> {
        let (task, id) = (ref_component(request.attempt.task), ref_component(request.attempt.id));
        let folder = self.hub().state().join(OVERSIZE).join(task);
        fs::create_dir_all(&folder).on("create", &folder)?;
        let names = (1_u32..).map(|n| match n {
            1 => folder.join(&id),
            n => folder.join(format!("{id}-{n}")),
        });
        for kept in names {
            match fs::create_dir(&kept) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                made => return made.on("create", &kept).map(|()| kept),
            }
        }
        Ok(folder)
    }
}
