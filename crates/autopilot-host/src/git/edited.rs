//! A commit with other contents at some of its paths, made in the hub alone. No ref is moved.

use std::collections::BTreeMap;

use super::commit::{NewCommit, write_commit};
use super::error::{GitError, OnFile};
use super::hub::Hub;
use super::identity::CommitIdentity;
use super::object::Oid;

/// What stands at a path of an edited commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeEdit {
    /// The path is not there.
    Absent,
    /// An object that the hub has.
    Object { mode: u32, oid: Oid },
    /// A new file.
    File { mode: u32, content: Vec<u8> },
}

/// The commit on top of which edits are made, and the words of the new one.
#[derive(Clone, Copy, Debug)]
pub struct EditRequest<'a> {
    pub commit: &'a Oid,
    pub message: &'a str,
    pub identity: &'a CommitIdentity,
    pub now: i64,
}

/// Returns a commit like the given one, but for the edits at these paths; without any it is that
/// commit itself. The same edits make the same commit.
pub fn edited(
    hub: &Hub,
    request: &EditRequest<'_>,
    edits: &BTreeMap<Vec<u8>, TreeEdit>,
) -> Result<Oid, GitError> {
    let EditRequest { commit, message, identity, now } = request;
    if edits.is_empty() {
        return Ok((*commit).clone());
    }
    let mut lines = Vec::new();
    // A path that is gone makes room for a directory of its name, and the other way round.
    let is_absent = |edit: &TreeEdit| *edit == TreeEdit::Absent;
    let (gone, there): (Vec<_>, Vec<_>) = edits.iter().partition(|(_, edit)| is_absent(edit));
    for (path, edit) in gone.into_iter().chain(there) {
        let line = match edit {
            // A mode of zero removes the path.
            TreeEdit::Absent => format!("0 {}\t", "0".repeat(commit.as_str().len())),
            TreeEdit::Object { mode, oid } => format!("{mode:o} {oid}\t"),
            TreeEdit::File { mode, content } => {
                let blob = hub
                    .git("write a file".to_owned())
                    .args(["hash-object", "-w", "-t", "blob", "--no-filters", "--stdin"])
                    .stdin(content.clone())
                    .oid()?;
                format!("{mode:o} {blob}\t")
            }
        };
        lines.extend_from_slice(line.as_bytes());
        lines.extend_from_slice(path);
        lines.push(0);
    }
    let dir = tempfile::tempdir_in(hub.state()).on("create an index in", hub.state())?;
    let index = dir.path().join("index");
    let git = |what: &str| hub.git(what.to_owned()).index(&index);
    git("start a tree").args(["read-tree", commit.as_str()]).ok()?;
    git("change a tree").args(["update-index", "-z", "--index-info"]).stdin(lines).ok()?;
    let tree = git("write a tree").args(["write-tree"]).oid()?;
    let parents = std::slice::from_ref(*commit);
    write_commit(hub, &NewCommit { tree: &tree, parents, message, identity, now: *now })
}
