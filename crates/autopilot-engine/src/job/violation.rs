//! What a builder is told of files that must not be in its change.

use autopilot_core::number::size;
use autopilot_host::git::{Oversize, Violation};
use std::path::{Path, PathBuf};

/// The most files of a submodule that are named.
const FILES_NAMED_MAX: usize = 5;

/// A sentence about a file that must not be in a change, and what to do about it.
pub(super) fn violation(violation: &Violation) -> String {
    match violation {
        Violation::NestedRepository { path } => {
            let path = String::from_utf8_lossy(path);
            format!("there is a git repository inside the worktree at {path}; remove it")
        }
        Violation::Unreadable { reason } => {
            format!("a file can't be read: {reason}; make it readable or remove it")
        }
        Violation::CommitsNotTaken { reason } => {
            format!("commits in the worktree are broken: {reason}; do not commit yourself")
        }
        Violation::GitDirectoryGone => {
            "the worktree's .git was removed or replaced; leave it alone".to_owned()
        }
        Violation::Oversize { what, kept } => oversize(what, kept),
        Violation::SubmoduleEdited { path, files, kept } => format!(
            "files of the submodule `{}` were changed ({}), and Autopilot does not change \
             submodules: do without these changes; they are not in the worktree any more, and are \
             kept at {kept}",
            String::from_utf8_lossy(path),
            named_files(files),
        ),
        Violation::SubmoduleLittered { path, files, kept } => format!(
            "new files in the submodule `{}` are not in the change ({}); they are kept at {kept}",
            String::from_utf8_lossy(path),
            named_files(files),
        ),
        Violation::SubmoduleMoved { path } => format!(
            "the submodule `{}` was moved to another commit or removed from git's index, and \
             Autopilot does not change submodules: leave it as it is",
            String::from_utf8_lossy(path)
        ),
        Violation::OutOfTime { kept } => format!(
            "the files of the worktree could not be read in the time there was; the worktree is kept \
             at {}, and nothing of it is in the change: copy from there what is needed, and leave \
             fewer and smaller files",
            kept.display()
        ),
        Violation::TooManyRefs => "the worktree has too many refs; do not create any".to_owned(),
    }
}

/// Whether a violation is only told: the work is whole without it, and what was left out is often what
/// a build leaves.
pub(super) fn is_only_told(violation: &Violation) -> bool {
    match violation {
        Violation::SubmoduleLittered { .. } => true,
        Violation::NestedRepository { .. }
        | Violation::Unreadable { .. }
        | Violation::CommitsNotTaken { .. }
        | Violation::GitDirectoryGone
        | Violation::TooManyRefs
        | Violation::Oversize { .. }
        | Violation::SubmoduleEdited { .. }
        | Violation::SubmoduleMoved { .. }
        | Violation::OutOfTime { .. } => false,
    }
}

fn named_files(files: &[Vec<u8>]) -> String {
    let named = files.iter().take(FILES_NAMED_MAX).map(|file| String::from_utf8_lossy(file));
    let named = named.collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(FILES_NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// A sentence about files that are more than is taken, with the largest of them.
fn oversize(what: &Oversize, kept: &Path) -> String {
    let (caps, kept) = (what.caps, kept.display());
    let named = |found: &[(PathBuf, u64)], unit: fn(u64) -> String| {
        let named = found.iter().map(|(path, n)| format!("{} ({})", path.display(), unit(*n)));
        named.collect::<Vec<_>>().join(", ")
    };
    if what.is_whole() {
        return format!(
            "the worktree has {} new and changed files, more than the {} that are taken \
             (worktrees.files_max); most are in {}. The worktree is kept at {kept}, and nothing of \
             it is in the change: copy from there what is needed, and remove or ignore \
             (.gitignore) the rest",
            what.files,
            caps.files_max,
            named(&what.fullest, |files| format!("{files} files")),
        );
    }
    format!(
        "new and changed files have {} together, more than the {} that are taken \
         (worktrees.bytes_max); the largest: {}. They were moved to {kept} and are not in the \
         change: do not create such files, or ignore them (.gitignore)",
        size(what.bytes),
        size(caps.bytes_max),
        named(&what.largest, size),
    )
}
