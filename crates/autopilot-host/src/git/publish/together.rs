//! Publishing several branches at once: one look at the user's refs, one pack and one change of refs.
//! Whatever is in the way of one of them is left to the publication of each by itself.

use std::collections::{BTreeMap, BTreeSet};

use super::{in_hub, is_a_head, mark_of, rebased_in};
use crate::fail;
use crate::git::border::Border;
use crate::git::command::GitCommand;
use crate::git::error::GitError;
use crate::git::hub::Hub;
use crate::git::name::collide;
use crate::git::object::Oid;
use crate::git::repo::UserRepo;
use crate::git::transfer::{ObjectCheck, ObjectSource, transfer, transfer_known};

/// How many commits are read one by one to find what the user's repository has of their history.
const COMMITS_READ_MAX: usize = 500;

/// The user's refs as they were at one moment.
struct UserRefs {
    tips: BTreeMap<String, Oid>,
    /// The branches that are checked out in a worktree.
    checked_out: BTreeSet<String>,
}

/// A branch that is to be moved.
struct BranchMove<'a> {
    branch: &'a str,
    old: Option<Oid>,
    new: Oid,
}

/// Publishes all of the branches and returns true, or returns false because one needs a closer look.
pub(super) fn publish(
    hub: &Hub,
    repo: &UserRepo,
    branches: &[&str],
    border: &Border,
) -> Result<bool, GitError> {
    let refs = UserRefs::read(repo)?;
    let mut moves = Vec::new();
    for branch in branches {
        let new = in_hub(hub, branch)?;
        let old = refs.tips.get(&format!("refs/heads/{branch}")).cloned();
        if old.as_ref() == Some(&new) {
            hub.mark(&mark_of(branch), &new)?;
            continue;
        }
        let wanted = BranchMove { branch, old, new };
        if !refs.lets_move(hub, repo, &wanted)? {
            return Ok(false);
        }
        moves.push(wanted);
    }
    if moves.is_empty() {
        return Ok(true);
    }
    let haves: Vec<Oid> = refs.tips.values().cloned().collect();
    for BranchMove { branch, new, .. } in &moves {
        border.pass(hub, new, &haves, branch)?;
    }
    let wants: Vec<Oid> = moves.iter().map(|wanted| wanted.new.clone()).collect();
    let source = ObjectSource { git_dir: hub.dir(), objects: vec![] };
    let (target, check) = (&repo.common_dir, ObjectCheck::Connected);
    let _kept = match common_history(hub, &wants, &haves) {
        Some(common) => transfer_known(&source, target, &wants, &common, check)?,
        None => transfer(&source, target, &wants, &haves, check)?,
    };
    fail::point("publish.sent");
    if !move_all(repo, &moves)? {
        return Ok(false);
    }
    fail::point("publish.done");
    for BranchMove { branch, new, .. } in &moves {
        hub.mark(&mark_of(branch), new)?;
    }
    Ok(true)
}

impl UserRefs {
    fn read(repo: &UserRepo) -> Result<UserRefs, GitError> {
        let out = GitCommand::isolated("list the user's refs and worktrees", &repo.common_dir)
            .args(["for-each-ref", "--format=%(refname)%00%(objectname)%00%(worktreepath)%00"])
            .ok()?;
        let mut refs = UserRefs { tips: BTreeMap::new(), checked_out: BTreeSet::new() };
        let mut fields = out.split(|byte| *byte == 0);
        while let (Some(name), Some(oid), Some(worktree)) =
            (fields.next(), fields.next(), fields.next())
        {
            let name = String::from_utf8_lossy(name.trim_ascii_start()).into_owned();
            if !worktree.is_empty() {
                refs.checked_out.insert(name.clone());
            }
            refs.tips.insert(name, Oid::from_bytes(oid)?);
        }
        Ok(refs)
    }

    /// Returns whether nothing is in the way of the move.
    fn lets_move(
        &self,
        hub: &Hub,
        repo: &UserRepo,
        wanted: &BranchMove<'_>,
    ) -> Result<bool, GitError> {
        let BranchMove { branch, old, new } = wanted;
        let name = format!("refs/heads/{branch}");
        // A branch without a commit is not among the refs, and may be checked out all the same.
        let is_checked_out = self.checked_out.contains(&name) || is_a_head(repo, branch);
        if is_checked_out || rebased_in(repo, branch).is_some() {
            return Ok(false);
        }
        match old {
            None => Ok(!self.tips.keys().any(|other| collide(&name, other))),
            Some(old) => Ok(hub.resolve(&mark_of(branch))?.as_ref() == Some(old)
                || hub.is_ancestor(old, new)?),
        }
    }
}

/// Returns those of the user's commits at which the history of ours begins; `None` if that is not
/// found within a few commits.
pub(in crate::git) fn common_history(hub: &Hub, wants: &[Oid], haves: &[Oid]) -> Option<Vec<Oid>> {
    let haves: BTreeSet<&Oid> = haves.iter().collect();
    let (mut common, mut seen) = (Vec::new(), BTreeSet::new());
    let mut pending: Vec<Oid> = wants.to_vec();
    while let Some(commit) = pending.pop() {
        if !seen.insert(commit.clone()) {
            continue;
        }
        if haves.contains(&commit) {
            common.push(commit);
        } else if seen.len() > COMMITS_READ_MAX {
            return None;
        } else {
            pending.extend(hub.commit_head(&commit)?.parents);
        }
    }
    Some(common)
}

/// Moves all of the branches or none; false if none was moved.
fn move_all(repo: &UserRepo, moves: &[BranchMove<'_>]) -> Result<bool, GitError> {
    let line = |wanted: &BranchMove<'_>| {
        let BranchMove { branch, old, new } = wanted;
        let old = old.as_ref().map_or("0".repeat(new.as_str().len()), Oid::to_string);
        format!("option no-deref\0update refs/heads/{branch}\0{new}\0{old}\0")
    };
    let moved = GitCommand::isolated("move the branches", &repo.common_dir)
        .args(["update-ref", "-z", "--stdin"])
        .stdin(moves.iter().map(line).collect::<String>())
        .run()?;
    Ok(moved.code() == Some(0))
}
