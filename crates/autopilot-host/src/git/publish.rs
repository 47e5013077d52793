//! Declared branches brought into the user's repository: the only refs of theirs we write.

use std::fs;
use std::path::{Path, PathBuf};

use super::command::Git;
use super::error::GitError;
use super::hub::{Expected, Hub, set_ref};
use super::object::Oid;
use super::repo::{UserRepo, resolve_ref};
use super::transfer::{Check, Source, transfer};
use crate::fail;

/// Why a branch of the user's repository was left as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishRefusal {
    #[error("branch `{branch}` is checked out in `{}`; switch to another branch there, then publish again", worktree.display())]
    CheckedOut { branch: String, worktree: PathBuf },
    #[error(
        "branch `{branch}` has commits of someone else ({tip}); merge or rename it, then publish again"
    )]
    ForeignCommits { branch: String, tip: Oid },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublishOutcome {
    Published {
        commit: Oid,
    },
    /// The branch was there at this commit already.
    Already {
        commit: Oid,
    },
    Refused(PublishRefusal),
}

/// Brings one branch (short name, the same on both sides) from the hub to the user's repository.
pub fn publish(hub: &Hub, repo: &UserRepo, branch: &str) -> Result<PublishOutcome, GitError> {
    let name = format!("refs/heads/{branch}");
    let commit = hub
        .resolve(&name)?
        .ok_or_else(|| GitError::NotFound { what: "branch in the hub", name: branch.into() })?;
    publish_as(hub, repo, &commit, branch)
}

/// Brings a commit of the hub to the user's repository under a branch name.
pub(crate) fn publish_as(
    hub: &Hub,
    repo: &UserRepo,
    commit: &Oid,
    branch: &str,
) -> Result<PublishOutcome, GitError> {
    let name = format!("refs/heads/{branch}");
    let mark = format!("refs/autopilot/published/{branch}");
    let old = resolve_ref(&repo.common_dir, &name)?;
    if old.as_ref() == Some(commit) {
        remember(hub, &mark, commit)?;
        return Ok(PublishOutcome::Already { commit: commit.clone() });
    }
    if let Some(refusal) = refusal(hub, repo, branch, old.as_ref(), commit, &mark)? {
        return Ok(PublishOutcome::Refused(refusal));
    }
    // What the user's refs reach is there in full; after a rewrite and prune the old base may not be.
    let haves: Vec<Oid> = repo.refs("refs/")?.into_iter().map(|(_, oid)| oid).collect();
    let source = Source { git_dir: hub.dir(), objects: vec![] };
    let wants = std::slice::from_ref(commit);
    let _kept = transfer(&source, &repo.common_dir, wants, &haves, Check::Connected)?;
    fail::point("publish.sent");
    let expected = old.as_ref().map_or(Expected::Absent, Expected::At);
    set_ref(&repo.common_dir, &name, commit, expected)?;
    fail::point("publish.done");
    remember(hub, &mark, commit)?;
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
    let Some(old) = old else { return Ok(None) };
    let ours = hub.resolve(mark)?.as_ref() == Some(old) || hub.is_ancestor(old, new)?;
    Ok((!ours).then(|| PublishRefusal::ForeignCommits { branch: branch.into(), tip: old.clone() }))
}

fn remember(hub: &Hub, mark: &str, commit: &Oid) -> Result<(), GitError> {
    let old = hub.resolve(mark)?;
    if old.as_ref() == Some(commit) {
        return Ok(());
    }
    hub.set_ref(mark, commit, old.as_ref().map_or(Expected::Absent, Expected::At))
}

/// The worktree that has the branch checked out or is in the middle of rebasing it.
fn checked_out(repo: &UserRepo, branch: &str) -> Result<Option<PathBuf>, GitError> {
    use std::os::unix::ffi::OsStringExt;
    let out = Git::isolated("list the user's worktrees", &repo.common_dir)
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
    let mut git_dirs = vec![repo.common_dir.clone()];
    if let Ok(entries) = fs::read_dir(repo.common_dir.join("worktrees")) {
        git_dirs.extend(entries.flatten().map(|entry| entry.path()));
    }
    Ok(git_dirs.into_iter().find(|dir| rebasing(dir, branch)))
}

fn rebasing(git_dir: &Path, branch: &str) -> bool {
    ["rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"].iter().any(|file| {
        fs::read_to_string(git_dir.join(file)).is_ok_and(|text| {
            text.trim() == format!("refs/heads/{branch}") || text.trim() == branch
        })
    })
}
