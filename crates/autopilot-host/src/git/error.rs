//! The errors of git, with the operation and the object.

use std::io;
use std::path::{Path, PathBuf};

use super::capture::Oversize;
use super::command::{CommandError, CommandStatus};
use super::object::Oid;
use super::repo::RepoRefusal;

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
    /// Returns whether the work was ended from outside, so that trying again is no use.
    pub(crate) fn is_cut_short(&self) -> bool {
        match self {
            GitError::Command(error) => error.is_cut_short(),
            GitError::Worktree(error) => error.is_cut_short(),
            GitError::File { source, .. } => {
                matches!(source.kind(), io::ErrorKind::Interrupted | io::ErrorKind::TimedOut)
            }
            GitError::Refused(_)
            | GitError::Unreadable { .. }
            | GitError::TooManyCommits { .. }
            | GitError::RefMoved { .. }
            | GitError::Tampered { .. }
            | GitError::SlotMissing { .. }
            | GitError::ProofDiffers { .. }
            | GitError::Oversize(_)
            | GitError::Withheld { .. }
            | GitError::NotFound { .. } => false,
        }
    }

    /// Returns whether there was not enough time.
    pub fn is_out_of_time(&self) -> bool {
        match self {
            GitError::Command(error) => matches!(error, CommandError::TimedOut { .. }),
            GitError::Worktree(error) => error.is_out_of_time(),
            GitError::File { source, .. } => source.kind() == io::ErrorKind::TimedOut,
            GitError::Refused(_)
            | GitError::Unreadable { .. }
            | GitError::TooManyCommits { .. }
            | GitError::RefMoved { .. }
            | GitError::Tampered { .. }
            | GitError::SlotMissing { .. }
            | GitError::ProofDiffers { .. }
            | GitError::Oversize(_)
            | GitError::Withheld { .. }
            | GitError::NotFound { .. } => false,
        }
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
