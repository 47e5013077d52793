//! One file that the controller itself puts on the run's branch, at most once per attempt.

use super::capture::AttemptName;
use super::commit::{CommittedTask, NewCommit, attempt_trailers, find_attempt, write_commit};
use super::error::{GitError, OnFile};
use super::hub::{ExpectedRef, Hub};
use super::identity::CommitIdentity;
use super::object::Oid;
use crate::fail;

/// How often the commit is tried when the branch moves meanwhile.
const SWAPS_MAX: usize = 5;

/// The facts of a file to commit.
#[derive(Clone, Debug)]
pub struct DocumentRequest<'a> {
    /// The id of the run.
    pub run: &'a str,
    /// The attempt that writes the file.
    pub attempt: AttemptName<'a>,
    /// The short name of the run's branch.
    pub onto: &'a str,
    /// The commit at which that branch starts when it does not exist yet.
    pub start: &'a Oid,
    /// The path of the file from the top of the repository.
    pub path: &'a str,
    /// The content of the file.
    pub text: &'a str,
    /// The message, without trailers.
    pub message: &'a str,
    /// Author and committer.
    pub identity: &'a CommitIdentity,
    /// The time of the commit, in seconds since 1970.
    pub now: i64,
}

/// Commits the file onto the branch. A commit of the same attempt is returned as it is; `None` if
/// something else is at the path, and then nothing is done.
pub fn commit_document(
    hub: &Hub,
    request: &DocumentRequest<'_>,
) -> Result<Option<CommittedTask>, GitError> {
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
            return Ok(Some(CommittedTask { commit, already: true }));
        }
        if !is_free(hub, &tip, request.path)? {
            return Ok(None);
        }
        let tree = with_file(hub, &tip, request.path, &blob)?;
        let new = NewCommit {
            tree: &tree,
            parents: std::slice::from_ref(&tip),
            message: &attempt_trailers(request.message, request.run, request.attempt),
            identity: request.identity,
            now: request.now,
        };
        let commit = write_commit(hub, &new)?;
        fail::point("document.written");
        tries += 1;
        match hub.set_ref(&name, &commit, ExpectedRef::of(&old)) {
            Ok(()) => {
                fail::point("document.done");
                return Ok(Some(CommittedTask { commit, already: false }));
            }
            Err(GitError::RefMoved { .. }) if tries < SWAPS_MAX => {}
            Err(other) => return Err(other),
        }
    }
}

/// Returns whether a file can be put at the path without taking anything away: the path is free,
/// and every name on the way to it is free or a directory.
fn is_free(hub: &Hub, commit: &Oid, path: &str) -> Result<bool, GitError> {
    let names = path.match_indices('/').map(|(end, _)| &path[..end]).chain([path]);
    for name in names {
        let line = hub
            .git(format!("look for {name}"))
            .args(["ls-tree", "--full-tree", commit.as_str(), "--", name])
            .line()?;
        let is_directory = line.split(' ').next() == Some("040000") && name != path;
        if !line.is_empty() && !is_directory {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the tree of a commit with one more file, or with other content in that file.
fn with_file(hub: &Hub, commit: &Oid, path: &str, blob: &Oid) -> Result<Oid, GitError> {
    let dir = tempfile::tempdir_in(hub.state()).on("create an index in", hub.state())?;
    let index = dir.path().join("index");
    let git = |what: &str| hub.git(format!("{what} {path}")).index(&index);
    git("start a tree with").args(["read-tree", commit.as_str()]).ok()?;
    git("add")
        .args(["update-index", "--add", "--replace", "--cacheinfo"])
        .arg(format!("100644,{blob},{path}"))
        .ok()?;
    git("write a tree with").args(["write-tree"]).oid()
}
