//! `autopilot undo`: removes the branches of a run from the user's repository. They stay in the
//! hub, and `recover` brings them back.

use super::ground::{self, Ground};
use super::past;
use super::{Done, answer};
use crate::cli::Global;
use crate::exit::CommandFailure;
use autopilot_engine::query::{KnownRun, Standing};
use autopilot_host::git::{
    ExpectedRef, GitCommand, GitError, Oid, UserRepo, ref_component, task_branch,
};
use autopilot_view as view;
use serde_json::json;
use std::path::Path;

/// The attempt under which an undone branch is listed by `recover`.
const UNDONE: &str = "undone";

/// The refs in which the hub remembers the branches that it has published.
const MARKS: &str = "refs/autopilot/published/";

/// A branch that Autopilot has published in the user's repository.
struct PublishedBranch {
    name: String,
    tip: Oid,
    /// The task name under which `recover` lists the branch.
    task: String,
}

/// Removes the branches of a run.
pub fn undo(global: &Global, run: Option<&str>) -> Done {
    let past = past::must(global)?;
    let told = past.run(run)?;
    if let Some(pid) = told.pid() {
        let text = format!("run {} is live (process {pid}); its branches stay", told.run.id);
        return Err(CommandFailure::failed(text).hint("stop it first with `autopilot stop`"));
    }
    let ground = ground::open(&past.place)?;
    let branches = published(&ground, &told)?;
    // All refusals come before the first change, so that nothing is half undone.
    for branch in &branches {
        refuse(&ground, branch)?;
    }
    let mut kept = Vec::new();
    for branch in &branches {
        kept.push(keep(&ground, branch)?);
        remove(&ground.repo, branch)?;
    }
    tell(global, &told, &branches, &kept)
}

fn published(ground: &Ground, told: &KnownRun) -> Result<Vec<PublishedBranch>, CommandFailure> {
    let run = &told.state.run;
    let mut names = vec![(run.branch.clone(), format!("run-{}", told.run.id))];
    names.extend(view::leaves(&told.state).map(|t| (task_branch(t.name()), t.name().to_owned())));
    let there = ground.repo.refs("refs/heads/")?;
    let marks = ground.hub.refs(MARKS)?;
    let mut branches = Vec::new();
    for (name, task) in names {
        if name != run.branch && !is_of_run(ground, &name, told)? {
            continue;
        }
        let ours = ground.hub.resolve(&format!("refs/heads/{name}"))?;
        for (full, tip) in &there {
            let Some(branch) = full.strip_prefix("refs/heads/") else { continue };
            let is_marked = marks.iter().any(|(mark, _)| mark.strip_prefix(MARKS) == Some(branch));
            let is_at_ours = branch == name && ours.as_ref() == Some(tip);
            if is_name_or_suffixed(branch, &name) && (is_marked || is_at_ours) {
                let (name, tip, task) = (branch.to_owned(), tip.clone(), task.clone());
                branches.push(PublishedBranch { name, tip, task });
            }
        }
    }
    Ok(branches)
}

/// Whether a branch has this name or the name with a number: beside a foreign `x`, work is
/// published as `x-2`.
fn is_name_or_suffixed(branch: &str, name: &str) -> bool {
    let number = branch.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    branch == name || number.is_some_and(is_number)
}

/// Whether the branch is this run's; a later run may have published a task of the same name.
fn is_of_run(ground: &Ground, branch: &str, told: &KnownRun) -> Result<bool, CommandFailure> {
    let Some(tip) = ground.hub.resolve(&format!("refs/heads/{branch}"))? else { return Ok(false) };
    let run = GitCommand::isolated(format!("read the trailers of {branch}"), ground.hub.dir())
        .args(["log", "-1", "--format=%(trailers:key=Autopilot-Run,valueonly)", tip.as_str()])
        .line()
        .map_err(GitError::from)?;
    Ok(run.trim() == told.run.id)
}

fn refuse(ground: &Ground, branch: &PublishedBranch) -> Result<(), CommandFailure> {
    let PublishedBranch { name, tip, .. } = branch;
    if let Some(worktree) = checked_out(&ground.repo, name)? {
        let text = format!("branch `{name}` is checked out in `{worktree}`; nothing was changed");
        return Err(
            CommandFailure::failed(text).hint("switch to another branch there, then undo again")
        );
    }
    let ours = [format!("{MARKS}{name}"), format!("refs/heads/{name}")];
    for known in ours {
        if ground.hub.resolve(&known)?.as_ref() == Some(tip) {
            return Ok(());
        }
    }
    let text = format!(
        "branch `{name}` has commits that are not of this run ({}); nothing was changed",
        tip.short()
    );
    Err(CommandFailure::failed(text)
        .hint(format!("rename it with `git branch -m {name} <name>` to keep them")))
}

fn checked_out(repo: &UserRepo, branch: &str) -> Result<Option<String>, CommandFailure> {
    let out = GitCommand::isolated("list the worktrees", &repo.common_dir)
        .args(["worktree", "list", "--porcelain", "-z"])
        .ok()
        .map_err(GitError::from)?;
    if let Some(worktree) = worktree_on(&String::from_utf8_lossy(&out), branch) {
        return Ok(Some(worktree));
    }
    let others = repo.common_dir.join("worktrees").read_dir().into_iter().flatten().flatten();
    let mut git_dirs = vec![repo.common_dir.clone()];
    git_dirs.extend(others.map(|entry| entry.path()));
    let busy = git_dirs.into_iter().find(|dir| is_rebased_in(dir, branch));
    Ok(busy.map(|dir| dir.display().to_string()))
}

fn worktree_on(porcelain: &str, branch: &str) -> Option<String> {
    let wanted = format!("branch refs/heads/{branch}");
    let mut worktree = "";
    porcelain.split('\0').find_map(|line| {
        if let Some(path) = line.strip_prefix("worktree ") {
            worktree = path;
        }
        (line == wanted).then(|| worktree.to_owned())
    })
}

fn is_rebased_in(git_dir: &Path, branch: &str) -> bool {
    ["rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"].iter().any(|file| {
        let text = std::fs::read_to_string(git_dir.join(file)).unwrap_or_default();
        text.trim() == branch || text.trim() == format!("refs/heads/{branch}")
    })
}

/// Keeps the tip in a salvage ref before the branch is removed.
fn keep(ground: &Ground, branch: &PublishedBranch) -> Result<String, CommandFailure> {
    let task = ref_component(&branch.task);
    let attempt = format!("{UNDONE}-{}", branch.tip.short());
    let name = format!("refs/autopilot/salvage/{task}/{attempt}");
    if ground.hub.resolve(&name)?.as_ref() != Some(&branch.tip) {
        ground.hub.set_ref(&name, &branch.tip, ExpectedRef::Absent)?;
    }
    Ok(format!("{task}/{attempt}"))
}

/// Removes the branch if its tip has not changed since.
fn remove(repo: &UserRepo, branch: &PublishedBranch) -> Result<(), CommandFailure> {
    let name = format!("refs/heads/{}", branch.name);
    GitCommand::isolated(format!("remove branch {}", branch.name), &repo.common_dir)
        .args(["update-ref", "--no-deref", "-d", &name, branch.tip.as_str()])
        .ok()
        .map_err(GitError::from)?;
    Ok(())
}

fn tell(global: &Global, told: &KnownRun, branches: &[PublishedBranch], kept: &[String]) -> Done {
    let mut text = String::new();
    let mut removed = Vec::new();
    for (PublishedBranch { name, tip, .. }, kept) in branches.iter().zip(kept) {
        text.push_str(&format!("removed branch {name} (was {})\n", tip.short()));
        text.push_str(&format!("  `autopilot recover {kept}` restores it\n"));
        removed.push(json!({ "branch": name, "commit": tip.to_string(), "recover": kept }));
    }
    if branches.is_empty() {
        text = format!("run {} has no branch in this repository", told.run.id);
    } else if told.standing() != Standing::Over {
        text.push_str("the run is not over; `autopilot resume` would publish its branches again");
    }
    answer(global, json!({ "run_id": told.run.id, "removed": removed }), |_| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worktree_that_has_a_branch_is_named() {
        let listed = "worktree /a\0HEAD 1\0branch refs/heads/main\0\0worktree /b c\0HEAD 2\0\
                      branch refs/heads/autopilot/run-1\0\0";
        assert_eq!(worktree_on(listed, "autopilot/run-1").as_deref(), Some("/b c"));
        assert_eq!(worktree_on(listed, "autopilot/run-11"), None);
    }
}
