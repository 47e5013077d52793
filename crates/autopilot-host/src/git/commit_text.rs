//! The files of a commit and their texts, for rules that read them.

use std::collections::{BTreeMap, BTreeSet};

use super::error::GitError;
use super::hub::Hub;
use super::loose::{self, ObjectKind};
use super::merge::read_blob;
use super::object::Oid;
use super::tree_file::{FileDifference, TreeFile};

/// The longest file whose text is read.
const TEXT_BYTES_MAX: usize = 1 << 20;
const FILES: [u32; 2] = [0o100_644, 0o100_755];

/// The files of one commit.
pub struct CommitTexts<'a> {
    hub: &'a Hub,
    files: BTreeMap<String, (u32, Oid)>,
    paths: BTreeSet<String>,
}

impl<'a> CommitTexts<'a> {
    /// Lists the files of a commit.
    pub fn of(hub: &'a Hub, commit: &Oid) -> Result<CommitTexts<'a>, GitError> {
        let named = |TreeFile { path, mode, oid }| {
            (String::from_utf8_lossy(&path).into_owned(), (mode, oid))
        };
        let files: BTreeMap<_, _> = hub.files_of(commit)?.into_iter().map(named).collect();
        let paths = files.keys().cloned().collect();
        Ok(CommitTexts { hub, files, paths })
    }

    /// The paths of all files.
    pub fn paths(&self) -> &BTreeSet<String> {
        &self.paths
    }

    /// The text of a file; none if it is no text, too large, a link, or not there.
    pub fn text(&self, path: &str) -> Option<String> {
        let (mode, oid) = self.files.get(path)?;
        text_of(self.hub, *mode, oid)
    }
}

/// A path that two commits do not have in common, with what each has there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedPathSides {
    pub path: Vec<u8>,
    pub old: Option<(u32, Oid)>,
    pub new: Option<(u32, Oid)>,
}

/// Returns the paths that differ between two commits, in order. A rename is a deletion and a new file.
pub fn changed_sides(hub: &Hub, old: &Oid, new: &Oid) -> Result<Vec<ChangedPathSides>, GitError> {
    let side = |FileDifference { path, old, new }| ChangedPathSides { path, old, new };
    Ok(hub.differences(old, new)?.into_iter().map(side).collect())
}

/// The text of an object; none if it is no regular file, no text, or too large.
pub fn text_of(hub: &Hub, mode: u32, oid: &Oid) -> Option<String> {
    if !FILES.contains(&mode) {
        return None;
    }
    let bytes = match loose::read(hub.dir(), oid, ObjectKind::Blob) {
        Some(bytes) => bytes,
        None => {
            let (bytes, is_cut) = read_blob(hub, oid, TEXT_BYTES_MAX).ok()?;
            (!is_cut).then_some(bytes)?
        }
    };
    let is_text = bytes.len() <= TEXT_BYTES_MAX && !bytes.contains(&0);
    String::from_utf8(bytes).ok().filter(|_| is_text)
}
