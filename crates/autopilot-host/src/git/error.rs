//! What can go wrong with git, said with the operation and the object.

use std::io;
use std::path::{Path, PathBuf};

use super::command::CommandError;
use super::object::Oid;
use super::repo::Refusal;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("cannot {operation} `{}`", path.display())]
    File { operation: &'static str, path: PathBuf, source: io::Error },
    #[error("git gave an unreadable {what}: `{text}`")]
    Unreadable { what: String, text: String },
    #[error("ref `{name}` is at {} but was expected at {}", show(found), show(expected))]
    RefMoved { name: String, expected: Option<Oid>, found: Option<Oid> },
    #[error("`{}` in the hub is not as the controller wrote it; nothing was run", path.display())]
    Tampered { path: PathBuf },
    #[error("slot `{}` is gone or is not a directory", path.display())]
    SlotMissing { path: PathBuf },
    #[error("the clean checkout `{}` holds tree {found} instead of {expected}", path.display())]
    ProofDiffers { path: PathBuf, expected: Oid, found: Oid },
    #[error("no {what} named `{name}`")]
    NotFound { what: &'static str, name: String },
}

fn show(oid: &Option<Oid>) -> &str {
    oid.as_ref().map_or("nothing", Oid::as_str)
}

/// Puts the operation and the path on an I/O error.
pub(crate) trait OnFile<T> {
    fn on(self, operation: &'static str, path: &Path) -> Result<T, GitError>;
}

impl<T> OnFile<T> for io::Result<T> {
    fn on(self, operation: &'static str, path: &Path) -> Result<T, GitError> {
        self.map_err(|source| GitError::File { operation, path: path.to_owned(), source })
    }
}
