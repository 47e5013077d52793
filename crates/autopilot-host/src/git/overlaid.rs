//! A commit with some of its files as they are in another one.

use std::collections::BTreeMap;

use super::edited::{EditRequest, TreeEdit, edited};
use super::error::GitError;
use super::hub::Hub;
use super::identity::CommitIdentity;
use super::object::Oid;
use super::tree_file::FileDifference;

/// A commit in which some files are those of another, and the paths that differed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlaid {
    pub commit: Oid,
    pub paths: Vec<String>,
}

/// Returns `commit` with every file that `is_wanted` accepts as it is in `from`: changed ones
/// changed back, new ones removed, removed ones there again. No ref is moved.
pub fn overlaid(
    hub: &Hub,
    (commit, from): (&Oid, &Oid),
    is_wanted: impl Fn(&str) -> bool,
    identity: &CommitIdentity,
    now: i64,
) -> Result<Overlaid, GitError> {
    let mut edits = BTreeMap::new();
    let mut paths = Vec::new();
    for FileDifference { path, new, .. } in hub.differences(commit, from)? {
        let name = String::from_utf8_lossy(&path).into_owned();
        if is_wanted(&name) {
            let edit = new.map_or(TreeEdit::Absent, |(mode, oid)| TreeEdit::Object { mode, oid });
            edits.insert(path, edit);
            paths.push(name);
        }
    }
    let message = "Instructions as at the base of the run";
    let commit = edited(hub, &EditRequest { commit, message, identity, now }, &edits)?;
    Ok(Overlaid { commit, paths })
}
