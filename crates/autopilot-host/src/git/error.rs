//! The errors of git, with the operation and the object.

use std::io;
use std::path::{Path, PathBuf};

use super::capture::Oversize;
use super::command::{CommandError, CommandStatus};
use super::object::Oid;
use super::repo::RepoRefusal;
use crate::patience::CutShort;

/// What the failure of git, or of an operation on its files, means for trying again. This is the one
/// rule for all who do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureOutlook {
    /// The work was ended from outside.
    CutShort(CutShort),
    /// The failure says something of the machine at this moment: git was killed, could not be started
    /// or gave up, or a file could not be read or written.
    MayPass,
    /// The failure is an answer, and would be the same the next time.
    Stays,
}

/// The reason why something could not be done with git or its files.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// A git command failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The files or commits that an agent left can't be read.
    #[error(transparent)]
    Worktree(Box<GitError>),
    /// The user's repository cannot be worked on.
    #[error(transparent)]
    Refused(#[from] RepoRefusal),
    /// A file operation failed.
    #[error("cannot {operation} `{}`", path.display())]
    File { operation: &'static str, path: PathBuf, source: io::Error },
    /// A text of git's, or of our own, does not have the expected form.
    #[error("unreadable {what}: `{text}`")]
    Unreadable { what: String, text: String },
    /// There are more commits than are rebased one by one.
    #[error("cannot rebase {range}: it has more than {commits_max} commits")]
    TooManyCommits { range: String, commits_max: usize },
    /// Somebody else has moved, made or deleted the ref.
    #[error("ref `{name}` is {}, but was expected to be {}", show(found), show(expected))]
    RefMoved { name: String, expected: Option<Oid>, found: Option<Oid> },
    /// A file of the hub that could make git run programs was changed.
    #[error("`{}` in the hub is not as autopilot wrote it; no git command was run there", path.display())]
    Tampered { path: PathBuf },
    /// Somebody has removed the directory of a slot.
    #[error("the worktree `{}` is gone or is not a directory", path.display())]
    SlotMissing { path: PathBuf },
    /// The files of a proof slot are not those of its commit.
    #[error("the clean checkout `{}` has tree {found} instead of {expected}", path.display())]
    ProofDiffers { path: PathBuf, expected: Oid, found: Oid },
    /// A worktree has more new and changed files, or larger ones, than are taken.
    #[error("the worktree has {} new and changed files of {} bytes, more than is taken", .0.files, .0.bytes)]
    Oversize(Box<Oversize>),
    /// It holds the value of a known secret, and must not leave the hub.
    #[error("{branch} stays in autopilot's own repository: {why}")]
    Withheld { branch: String, why: String },
    /// A branch or a name does not exist.
    #[error("no {what} named `{name}`")]
    NotFound { what: &'static str, name: String },
}

impl GitError {
    /// Returns what the failure means for trying again.
    pub fn outlook(&self) -> FailureOutlook {
        match self {
            GitError::Command(error) => error.outlook(),
            GitError::Worktree(error) => error.outlook(),
            GitError::File { source, .. } if source.kind() == io::ErrorKind::Interrupted => {
                FailureOutlook::CutShort(CutShort::Unwanted)
            }
            GitError::File { source, .. } if source.kind() == io::ErrorKind::TimedOut => {
                FailureOutlook::CutShort(CutShort::OutOfTime)
            }
            GitError::File { .. } => FailureOutlook::MayPass,
            GitError::Refused(_)
            | GitError::Unreadable { .. }
            | GitError::TooManyCommits { .. }
            | GitError::RefMoved { .. }
            | GitError::Tampered { .. }
            | GitError::SlotMissing { .. }
            | GitError::ProofDiffers { .. }
            | GitError::Oversize(_)
            | GitError::Withheld { .. }
            | GitError::NotFound { .. } => FailureOutlook::Stays,
        }
    }

    /// Returns whether the work was ended from outside, so that trying again is no use.
    pub(crate) fn is_cut_short(&self) -> bool {
        matches!(self.outlook(), FailureOutlook::CutShort(_))
    }

    /// Returns whether there was not enough time.
    pub fn is_out_of_time(&self) -> bool {
        self.outlook() == FailureOutlook::CutShort(CutShort::OutOfTime)
    }

    /// Marks the failure of an operation that reads what an agent wrote. A git that was killed or
    /// could not be started says nothing about the agent and is left as it is.
    pub(crate) fn of_worktree(error: impl Into<GitError>) -> GitError {
        match error.into() {
            error @ (GitError::Command(
                CommandError::Failed { status: CommandStatus::Code(_), .. }
                | CommandError::TimedOut { .. }
                | CommandError::TooLong { .. },
            )
            | GitError::File { .. }
            | GitError::Unreadable { .. }) => GitError::Worktree(Box::new(error)),
            other @ (GitError::Command(_)
            | GitError::Worktree(_)
            | GitError::Refused(_)
            | GitError::TooManyCommits { .. }
            | GitError::RefMoved { .. }
            | GitError::Tampered { .. }
            | GitError::SlotMissing { .. }
            | GitError::Oversize(_)
            | GitError::ProofDiffers { .. }
            | GitError::Withheld { .. }
            | GitError::NotFound { .. }) => other,
        }
    }
}

fn show(oid: &Option<Oid>) -> String {
    oid.as_ref().map_or_else(|| "absent".to_owned(), |oid| format!("at {oid}"))
}

/// A conversion that puts the operation and the path on an I/O error.
pub(crate) trait OnFile<T> {
    /// Names the operation, in words that complete "cannot …", and the path.
    fn on(self, operation: &'static str, path: &Path) -> Result<T, GitError>;
}

impl<T> OnFile<T> for io::Result<T> {
    fn on(self, operation: &'static str, path: &Path) -> Result<T, GitError> {
        self.map_err(|source| GitError::File { operation, path: path.to_owned(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_command(error: CommandError) -> FailureOutlook {
        GitError::from(error).outlook()
    }

    fn of_file(kind: io::ErrorKind) -> FailureOutlook {
        let file = GitError::File { operation: "read", path: "x".into(), source: kind.into() };
        GitError::Worktree(Box::new(file)).outlook()
    }

    #[test]
    fn what_is_tried_again_is_told_from_answers_and_from_work_that_was_ended() {
        let (called, stderr) = (String::new, String::new);
        let failed = |status| CommandError::Failed { called: called(), status, stderr: stderr() };
        for status in [CommandStatus::Code(128), CommandStatus::Signal(9)] {
            assert_eq!(of_command(failed(status)), FailureOutlook::MayPass, "{status}");
        }
        assert_eq!(of_file(io::ErrorKind::StorageFull), FailureOutlook::MayPass);
        let late = CommandError::TimedOut {
            called: called(),
            after: std::time::Duration::ZERO,
            stderr: stderr(),
        };
        for late in [of_command(late), of_file(io::ErrorKind::TimedOut)] {
            assert_eq!(late, FailureOutlook::CutShort(CutShort::OutOfTime));
        }
        let unwanted = of_command(CommandError::Unwanted { called: called() });
        for unwanted in [unwanted, of_file(io::ErrorKind::Interrupted)] {
            assert_eq!(unwanted, FailureOutlook::CutShort(CutShort::Unwanted));
        }
        let moved = GitError::RefMoved { name: "x".into(), expected: None, found: None };
        assert_eq!(moved.outlook(), FailureOutlook::Stays);
        assert_eq!(of_command(CommandError::NoGit), FailureOutlook::Stays);
    }
}
