//! A rebase without a working tree: commits carried over to another tip by `merge-tree`.

use super::commit::{NewCommit, write_commit};
use super::error::GitError;
use super::hub::Hub;
use super::identity::CommitIdentity;
use super::merge::{Conflict, Conflicts, Merged, merge_trees};
use super::object::Oid;

/// The most commits that are rebased.
const COMMITS_MAX: usize = 2000;

/// The result of a rebase.
#[derive(Clone, Debug)]
pub enum RebaseOutcome {
    /// The new tip.
    Onto(Oid),
    /// The commit that could not be rebased, and where it conflicts.
    Conflict { commit: Oid, conflicts: Vec<Conflict> },
}

/// Work that lies on another tip as one commit.
#[derive(Clone, Debug)]
pub struct Carried {
    /// The commit.
    pub commit: Oid,
    /// The paths that git could not merge: there the commit's files hold conflict markers.
    pub conflicts: Option<Conflicts>,
}

/// Puts all the work since it left the line of `onto` on top of that, whatever conflicts: somebody
/// can resolve them there, and the result is a change to `onto`.
pub fn carry(
    hub: &Hub,
    work: &Oid,
    onto: &Oid,
    identity: &CommitIdentity,
    now: i64,
) -> Result<Carried, GitError> {
    let (tree, conflicts) = match merge_trees(hub, onto, work)? {
        Merged::Clean(tree) => (tree, None),
        Merged::Conflicted(conflicts) => (conflicts.tree.clone(), Some(*conflicts)),
    };
    let new = NewCommit {
        tree: &tree,
        parents: std::slice::from_ref(onto),
        message: &format!("The work of {work} on top of {onto}\n"),
        identity,
        now,
    };
    Ok(Carried { commit: write_commit(hub, &new)?, conflicts })
}

/// Rebases the first-parent line `base..head` onto another tip. A merge is rebased as the change it
/// made to its line; messages and authors stay, so attempts are still found by their trailers.
pub fn rebase(
    hub: &Hub,
    base: &Oid,
    head: &Oid,
    onto: &Oid,
    now: i64,
) -> Result<RebaseOutcome, GitError> {
    let out = hub
        .git(format!("list commits to rebase onto {onto}"))
        .args(["rev-list", "--first-parent", "--reverse", head.as_str()])
        .arg(format!("^{base}"))
        .arg(format!("^{onto}"))
        .ok()?;
    let text = String::from_utf8_lossy(&out).into_owned();
    let commits: Vec<Oid> = text.lines().map(Oid::parse).collect::<Result<_, _>>()?;
    if commits.len() > COMMITS_MAX {
        let range = format!("{base}..{head}");
        return Err(GitError::TooManyCommits { range, commits_max: COMMITS_MAX });
    }
    let mut tip = onto.clone();
    for commit in commits {
        match pick(hub, &commit, &tip, now)? {
            Ok(next) => tip = next,
            Err(conflicts) => return Ok(RebaseOutcome::Conflict { commit, conflicts }),
        }
    }
    Ok(RebaseOutcome::Onto(tip))
}

/// Replays one commit onto the tip.
fn pick(
    hub: &Hub,
    commit: &Oid,
    tip: &Oid,
    now: i64,
) -> Result<Result<Oid, Vec<Conflict>>, GitError> {
    let out = hub
        .git(format!("read {commit}"))
        .args(["show", "-s", "--no-show-signature", "--no-color", "--no-notes"])
        .args(["--format=%P%n%an%n%ae%n%B", commit.as_str()])
        .ok()?;
    let text = String::from_utf8_lossy(&out).into_owned();
    let mut parts = text.splitn(4, '\n');
    let mut part = || parts.next().unwrap_or_default().to_owned();
    let (parents, name, email, message) = (part(), part(), part(), part());
    let identity = CommitIdentity { name, email };
    let parent = Oid::parse(parents.split(' ').next().unwrap_or_default())?;
    // `--merge-base` needs git 2.40. A stand-in commit with the tip's tree and the picked commit's
    // parent makes that parent the merge base for older ones too.
    let on = |parent: &Oid, tree: &Oid, message: &str| {
        let (parents, identity) = (std::slice::from_ref(parent), &identity);
        write_commit(hub, &NewCommit { tree, parents, message, identity, now })
    };
    let stand_in = on(&parent, &hub.tree_of(tip)?, "replay\n")?;
    match merge_trees(hub, &stand_in, commit)? {
        Merged::Clean(tree) => Ok(Ok(on(tip, &tree, &message)?)),
        Merged::Conflicted(conflicts) => Ok(Err(conflicts.paths)),
    }
}
