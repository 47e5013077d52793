//! Publishing declared branches to the user's repository: they are the only refs of the user's that
//! we write.

mod together;

use std::fs;
use std::path::{Path, PathBuf};

use super::border::Border;
use super::command::GitCommand;
use super::error::GitError;
use super::hub::{ExpectedRef, Hub, set_ref};
use super::name::{beside, branches, collide};
use super::object::Oid;
use super::repo::{UserRepo, resolve_ref};
use super::transfer::{ObjectCheck, ObjectSource, transfer};
use crate::fail;
pub(super) use together::common_history;

/// The reason why a branch of the user's repository was left as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishRefusal {
    /// The branch is checked out, or being rebased, in a worktree of the user's.
    #[error("branch `{branch}` is checked out in `{}`; switch to another branch there, then publish again", worktree.display())]
    CheckedOut { branch: String, worktree: PathBuf },
    /// The branch is at a commit that we did not put there.
    #[error(
        "branch `{branch}` has commits from someone else ({tip}); merge or rename it, then publish again"
    )]
    ForeignCommits { branch: String, tip: Oid },
    /// Another branch has the name of the folder, or the folder has the name of this branch.
    #[error("branch `{branch}` can't exist beside `{other}`; rename `{other}`, then publish again")]
    InTheWay { branch: String, other: String },
}

/// The result of publishing a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublishOutcome {
    /// The branch was made or moved.
    Published { commit: Oid },
    /// The branch was there at this commit already.
    Already { commit: Oid },
    /// The branch was left as it is.
    Refused(PublishRefusal),
}

/// The name under which a branch can be reached in the user's repository, whatever they have there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reachable {
    /// The short name.
    pub branch: String,
    /// The reason why the branch does not have the name it should have.
    pub instead: Option<PublishRefusal>,
}

/// Publishes one branch to the user's repository, under its own name or the next one that is free.
pub fn publish_reachable(
    hub: &Hub,
    repo: &UserRepo,
    branch: &str,
    border: &Border,
) -> Result<Reachable, GitError> {
    let refusal = match publish(hub, repo, branch, border)? {
        PublishOutcome::Refused(refusal) => refusal,
        PublishOutcome::Published { .. } | PublishOutcome::Already { .. } => {
            return Ok(Reachable { branch: branch.to_owned(), instead: None });
        }
    };
    let commit = in_hub(hub, branch)?;
    for name in beside(branch, &branches(repo)?) {
        if !is_ours_or_free(hub, repo, &commit, &name)? {
            continue;
        }
        match publish_as(hub, repo, &commit, &name, border)? {
            PublishOutcome::Refused(_) => {}
            PublishOutcome::Published { .. } | PublishOutcome::Already { .. } => {
                return Ok(Reachable { branch: name, instead: Some(refusal) });
            }
        }
    }
    Err(GitError::NotFound { what: "free variant of the branch", name: branch.into() })
}

/// Publishes branches to the user's repository, each under its own name or the next one that is free:
/// all of them at once where nothing is in the way of any.
pub fn publish_all(
    hub: &Hub,
    repo: &UserRepo,
    branches: &[&str],
    border: &Border,
) -> Result<Vec<Reachable>, GitError> {
    if together::publish(hub, repo, branches, border)? {
        let reachable = |branch: &&str| Reachable { branch: (*branch).to_owned(), instead: None };
        return Ok(branches.iter().map(reachable).collect());
    }
    branches.iter().map(|branch| publish_reachable(hub, repo, branch, border)).collect()
}

/// Returns whether we may write the branch. One that only looks like ours is the user's.
fn is_ours_or_free(
    hub: &Hub,
    repo: &UserRepo,
    commit: &Oid,
    branch: &str,
) -> Result<bool, GitError> {
    let Some(tip) = resolve_ref(&repo.common_dir, &format!("refs/heads/{branch}"))? else {
        return Ok(true);
    };
    Ok(tip == *commit || hub.resolve(&mark_of(branch))?.as_ref() == Some(&tip))
}

/// Returns the ref of the hub that remembers where we put a branch of the user's.
fn mark_of(branch: &str) -> String {
    format!("refs/autopilot/published/{branch}")
}

/// Publishes one branch (short name, the same on both sides) from the hub to the user's repository.
pub fn publish(
    hub: &Hub,
    repo: &UserRepo,
    branch: &str,
    border: &Border,
) -> Result<PublishOutcome, GitError> {
    publish_as(hub, repo, &in_hub(hub, branch)?, branch, border)
}

fn in_hub(hub: &Hub, branch: &str) -> Result<Oid, GitError> {
    hub.resolve(&format!("refs/heads/{branch}"))?
        .ok_or_else(|| GitError::NotFound { what: "branch in the hub", name: branch.into() })
}

/// Publishes a commit of the hub to the user's repository under a branch name.
pub(crate) fn publish_as(
    hub: &Hub,
    repo: &UserRepo,
    commit: &Oid,
    branch: &str,
    border: &Border,
) -> Result<PublishOutcome, GitError> {
    let name = format!("refs/heads/{branch}");
    let mark = mark_of(branch);
    let old = resolve_ref(&repo.common_dir, &name)?;
    if old.as_ref() == Some(commit) {
        hub.mark(&mark, commit)?;
        return Ok(PublishOutcome::Already { commit: commit.clone() });
    }
    if let Some(refusal) = refusal(hub, repo, branch, old.as_ref(), commit, &mark)? {
        return Ok(PublishOutcome::Refused(refusal));
    }
    // Everything that the user's refs reach is there in full; after a rewrite and prune the old
    // base may not be.
    let haves: Vec<Oid> = repo.refs("refs/")?.into_iter().map(|(_, oid)| oid).collect();
    border.pass(hub, commit, &haves, branch)?;
    let source = ObjectSource { git_dir: hub.dir(), objects: vec![] };
    let wants = std::slice::from_ref(commit);
    let _kept = transfer(&source, &repo.common_dir, wants, &haves, ObjectCheck::Connected)?;
    fail::point("publish.sent");
    set_ref(&repo.common_dir, &name, commit, ExpectedRef::of(&old))?;
    fail::point("publish.done");
    hub.mark(&mark, commit)?;
    Ok(PublishOutcome::Published { commit: commit.clone() })
}

fn refusal(
    hub: &Hub,
    repo: &UserRepo,
    branch: &str,
    old: Option<&Oid>,
    new: &Oid,
    mark: &str,
) -> Result<Option<PublishRefusal>, GitError> {
    if let Some(worktree) = checked_out(repo, branch)? {
        return Ok(Some(PublishRefusal::CheckedOut { branch: branch.into(), worktree }));
    }
    let Some(old) = old else { return in_the_way(repo, branch) };
    let ours = hub.resolve(mark)?.as_ref() == Some(old) || hub.is_ancestor(old, new)?;
    Ok((!ours).then(|| PublishRefusal::ForeignCommits { branch: branch.into(), tip: old.clone() }))
}

/// Finds a branch that can't exist together with this one. Git keeps refs like files: not both `a`
/// and `a/b`.
fn in_the_way(repo: &UserRepo, branch: &str) -> Result<Option<PublishRefusal>, GitError> {
    let other = branches(repo)?.into_iter().find(|other| collide(branch, other));
    Ok(other.map(|other| PublishRefusal::InTheWay { branch: branch.into(), other }))
}

/// Returns the worktree that has the branch checked out or is in the middle of rebasing it.
fn checked_out(repo: &UserRepo, branch: &str) -> Result<Option<PathBuf>, GitError> {
    use std::os::unix::ffi::OsStringExt;
    let out = GitCommand::isolated("list the user's worktrees", &repo.common_dir)
        .args(["worktree", "list", "--porcelain", "-z"])
        .ok()?;
    let wanted = format!("branch refs/heads/{branch}");
    let mut worktree = PathBuf::new();
    for line in out.split(|b| *b == 0) {
        if let Some(path) = line.strip_prefix(b"worktree ") {
            worktree = PathBuf::from(std::ffi::OsString::from_vec(path.to_vec()));
        } else if line == wanted.as_bytes() {
            return Ok(Some(worktree));
        }
    }
    Ok(rebased_in(repo, branch))
}

/// Returns the git directory of a worktree that is in the middle of rebasing the branch.
fn rebased_in(repo: &UserRepo, branch: &str) -> Option<PathBuf> {
    git_dirs(repo).into_iter().find(|dir| rebasing(dir, branch))
}

/// Returns whether HEAD of a worktree, or of a repository without one, is on the branch.
fn is_a_head(repo: &UserRepo, branch: &str) -> bool {
    git_dirs(repo).iter().any(|dir| {
        fs::read_to_string(dir.join("HEAD")).is_ok_and(|text| {
            let name = text.strip_prefix("ref:").map(str::trim);
            name.and_then(|name| name.strip_prefix("refs/heads/")) == Some(branch)
        })
    })
}

/// Returns the git directories of the user's worktrees.
fn git_dirs(repo: &UserRepo) -> Vec<PathBuf> {
    let mut git_dirs = vec![repo.common_dir.clone()];
    if let Ok(entries) = fs::read_dir(repo.common_dir.join("worktrees")) {
        git_dirs.extend(entries.flatten().map(|entry| entry.path()));
    }
    git_dirs
}

fn rebasing(git_dir: &Path, branch: &str) -> bool {
    ["rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"].iter().any(|file| {
        fs::read_to_string(git_dir.join(file)).is_ok_and(|text| {
            text.trim() == format!("refs/heads/{branch}") || text.trim() == branch
        })
    })
}
