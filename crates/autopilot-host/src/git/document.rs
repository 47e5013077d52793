//! One file the controller itself puts on the run's branch, at most once per attempt.

use super::capture::Attempt;
use super::commit::{ATTEMPT, Committed, NewCommit, RUN, find_attempt, trailers, write_commit};
use super::error::{GitError, OnFile};
use super::hub::{Expected, Hub};
use super::identity::Identity;
use super::object::Oid;
use crate::fail;

const SWAPS_MAX: usize = 5;

#[derive(Clone, Debug)]
pub struct DocumentRequest<'a> {
    pub run: &'a str,
    pub attempt: Attempt<'a>,
    /// Short name of the run's branch.
    pub onto: &'a str,
    /// Where that branch starts when it does not exist yet.
    pub start: &'a Oid,
    /// From the top of the repository.
    pub path: &'a str,
    pub text: &'a str,
    pub message: &'a str,
    pub identity: &'a Identity,
    /// Seconds since 1970.
    pub now: i64,
}

/// Commits the file onto the branch. A commit of the same attempt is returned as it is, and a branch
/// that has the file already stays where it is.
pub fn commit_document(hub: &Hub, request: &DocumentRequest<'_>) -> Result<Committed, GitError> {
    let name = format!("refs/heads/{}", request.onto);
    let blob = hub
        .git(format!("keep {}", request.path))
        .args(["hash-object", "-w", "--stdin"])
        .stdin(request.text)
        .oid()?;
    let mut tries = 0;
    loop {
        let old = hub.resolve(&name)?;
        let tip = old.clone().unwrap_or_else(|| request.start.clone());
        if let Some(commit) =
            find_attempt(hub, &tip, Some(request.start), (request.run, request.attempt.id))?
        {
            return Ok(Committed { commit, already: true });
        }
        let tree = with_file(hub, &tip, request.path, &blob)?;
        if tree == hub.tree_of(&tip)? {
            return Ok(Committed { commit: tip, already: true });
        }
        let pairs = [
            (RUN, request.run),
            ("Autopilot-Task", request.attempt.task),
            (ATTEMPT, request.attempt.id),
        ];
        let new = NewCommit {
            tree: &tree,
            parents: std::slice::from_ref(&tip),
            message: &trailers(request.message, &pairs),
            identity: request.identity,
            now: request.now,
        };
        let commit = write_commit(hub, &new)?;
        fail::point("document.written");
        tries += 1;
        match hub.set_ref(&name, &commit, old.as_ref().map_or(Expected::Absent, Expected::At)) {
            Ok(()) => {
                fail::point("document.done");
                return Ok(Committed { commit, already: false });
            }
            Err(GitError::RefMoved { .. }) if tries < SWAPS_MAX => {}
            Err(other) => return Err(other),
        }
    }
}

/// The tree of a commit with one file more, or another text in it.
fn with_file(hub: &Hub, commit: &Oid, path: &str, blob: &Oid) -> Result<Oid, GitError> {
    let dir = tempfile::tempdir_in(hub.state()).on("make an index in", hub.state())?;
    let index = dir.path().join("index");
    let git = |what: &str| hub.git(format!("{what} {path}")).index(&index);
    git("begin a tree with").args(["read-tree", commit.as_str()]).ok()?;
    git("add")
        .args(["update-index", "--add", "--replace", "--cacheinfo"])
        .arg(format!("100644,{blob},{path}"))
        .ok()?;
    git("write a tree with").args(["write-tree"]).oid()
}
