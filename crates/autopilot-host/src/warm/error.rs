//! The errors of warm gates, and the reasons for which a gate has to be cold.

use std::io;
use std::path::{Path, PathBuf};

use crate::file::FileError;
use crate::git::GitError;

/// The reason why a seed or a layer could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum WarmError {
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A file operation failed.
    #[error("cannot {what} `{}`", path.display())]
    File { what: &'static str, path: PathBuf, source: io::Error },
    /// The seed was not made, because what the gate left can't be trusted.
    #[error("nothing was kept for warm gates: {0}")]
    NotSealed(SealRefusal),
    /// A tracked file that was changed before the first command could not be put back.
    #[error("cannot put `{}` back as it is committed", path.display())]
    NotRestored { path: PathBuf },
    /// This gate has to be cold.
    #[error("this gate can't start from what the base built: {0}")]
    GoCold(ColdReason),
}

impl WarmError {
    /// Returns why a cold gate must be run instead, where that is the answer to the error.
    pub fn cold_reason(&self) -> Option<&ColdReason> {
        match self {
            WarmError::GoCold(reason) => Some(reason),
            WarmError::Git(_)
            | WarmError::File { .. }
            | WarmError::NotSealed(_)
            | WarmError::NotRestored { .. } => None,
        }
    }

    /// Returns whether the disk, or the share of it that we may use, is full.
    pub fn is_disk_full(&self) -> bool {
        let source = match self {
            WarmError::File { source, .. } | WarmError::Git(GitError::File { source, .. }) => {
                source
            }
            WarmError::Git(_)
            | WarmError::NotSealed(_)
            | WarmError::NotRestored { .. }
            | WarmError::GoCold(_) => return false,
        };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// The reason why a room was not sealed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealRefusal {
    /// The gate changed files of the commit.
    #[error("the gate of the base changed tracked files ({})", shown(paths))]
    TrackedChanged { paths: Vec<PathBuf> },
    /// A file is dated later than now, so that nothing written afterwards would look newer.
    #[error("`{}` is dated in the future", path.display())]
    FutureTime { path: PathBuf },
    /// A file has an attribute by which the kernel would take it for a part of a layer.
    #[error("`{}` has an attribute that only layers have", path.display())]
    LayerAttribute { path: PathBuf },
}

/// The reason why a gate has to be cold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ColdReason {
    /// The clock shows a time before the newest file of the seed: a changed file would look old.
    #[error("the clock was set back to before the base was built")]
    ClockSetBack,
    /// A command has left a file that is dated in the future.
    #[error("a command dated `{}` in the future", path.display())]
    FutureTime { path: PathBuf },
    /// The attributes decide how unchanged files look on disk.
    #[error("`{}` changes how git writes other files", path.display())]
    Attributes { path: PathBuf },
    /// A submodule was added, removed or moved.
    #[error("the submodule `{}` changed", path.display())]
    Submodule { path: PathBuf },
    /// The commit has a file where the base's build left something of its own.
    #[error("the commit has `{}`, where the build of the base left files", path.display())]
    BuildOutput { path: PathBuf },
    /// A command replaced one of the room's directories.
    #[error("a command replaced the directory `{}`", path.display())]
    Replaced { path: PathBuf },
}

fn shown(paths: &[PathBuf]) -> String {
    const SHOWN_MAX: usize = 3;
    let mut names: Vec<String> =
        paths.iter().take(SHOWN_MAX).map(|path| path.display().to_string()).collect();
    if paths.len() > SHOWN_MAX {
        names.push(format!("{} more", paths.len() - SHOWN_MAX));
    }
    names.join(", ")
}

/// Returns the error of the system that a failed file operation has, with its number.
pub(super) fn io_error(error: FileError) -> io::Error {
    match error {
        FileError::Failed { source, .. } => source,
        other @ (FileError::Link { .. } | FileError::Name { .. } | FileError::TooLarge { .. }) => {
            io::Error::other(other)
        }
    }
}

/// A conversion that puts the operation and the path on an I/O error.
pub(super) trait OnPath<T> {
    /// Names the operation, in words that complete "cannot …", and the path.
    fn at(self, what: &'static str, path: &Path) -> Result<T, WarmError>;
}

impl<T, E: Into<io::Error>> OnPath<T> for Result<T, E> {
    fn at(self, what: &'static str, path: &Path) -> Result<T, WarmError> {
        let path = || path.to_path_buf();
        self.map_err(|source| WarmError::File { what, path: path(), source: source.into() })
    }
}
