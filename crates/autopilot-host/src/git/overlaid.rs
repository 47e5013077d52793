//! A commit with some of its files as they are in another one.

use super::commit::{NewCommit, write_commit};
use super::error::{GitError, OnFile};
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
    let mut lines = Vec::new();
    let mut paths = Vec::new();
    for FileDifference { path, new, .. } in hub.differences(commit, from)? {
        let name = String::from_utf8_lossy(&path).into_owned();
        if is_wanted(&name) {
            // A mode of zero removes the path.
            let line = match new {
                Some((mode, oid)) => format!("{mode:o} {oid}\t"),
                None => format!("0 {}\t", "0".repeat(commit.as_str().len())),
            };
            lines.extend_from_slice(line.as_bytes());
            lines.extend_from_slice(&path);
            lines.push(0);
            paths.push(name);
        }
    }
    if paths.is_empty() {
        return Ok(Overlaid { commit: commit.clone(), paths });
    }
    let dir = tempfile::tempdir_in(hub.state()).on("create an index in", hub.state())?;
    let index = dir.path().join("index");
    let git = |what: &str| hub.git(what.to_owned()).index(&index);
    git("start a tree").args(["read-tree", commit.as_str()]).ok()?;
    git("change a tree").args(["update-index", "-z", "--index-info"]).stdin(lines).ok()?;
    let tree = git("write a tree").args(["write-tree"]).oid()?;
    let new = NewCommit {
        tree: &tree,
        parents: std::slice::from_ref(commit),
        message: "Instructions as at the base of the run",
        identity,
        now,
    };
    Ok(Overlaid { commit: write_commit(hub, &new)?, paths })
}
