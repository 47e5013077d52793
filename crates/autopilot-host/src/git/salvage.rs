//! Salvaged work in the hub: listed, restored as a branch, and dropped only on request.

use super::border::Border;
use super::error::GitError;
use super::hub::{Hub, base_ref_of};
use super::name::ref_component;
use super::object::Oid;
use super::publish::{PublishOutcome, publish_as};
use super::repo::UserRepo;
use super::slot::{Slot, SlotNote};
use super::transfer::existing;

const SALVAGE: &str = "refs/autopilot/salvage/";

/// A salvaged state of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salvaged {
    /// The full name of the ref.
    pub name: String,
    /// The name of the task, as it is in the ref.
    pub task: String,
    /// The id of the attempt, as it is in the ref.
    pub attempt: String,
    /// The commit that holds the files.
    pub commit: Oid,
    /// The time of salvage, in seconds since 1970.
    pub at: i64,
    /// The size of the files that differ from the state before.
    pub bytes: u64,
}

/// Lists all salvaged states, oldest first.
pub fn list(hub: &Hub) -> Result<Vec<Salvaged>, GitError> {
    let out = hub
        .git("list salvaged work")
        .args(["for-each-ref", "--sort=committerdate"])
        .args(["--format=%(objectname) %(committerdate:unix) %(refname)", SALVAGE])
        .ok()?;
    let text = String::from_utf8_lossy(&out).into_owned();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line.splitn(3, ' ');
        let (Some(oid), Some(at), Some(name)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let Some((task, attempt)) =
            name.strip_prefix(SALVAGE).and_then(|rest| rest.split_once('/'))
        else {
            continue;
        };
        let commit = Oid::parse(oid)?;
        found.push(Salvaged {
            name: name.to_owned(),
            task: task.to_owned(),
            attempt: attempt.to_owned(),
            bytes: changed_bytes(hub, &commit)?,
            at: at.parse().unwrap_or(0),
            commit,
        });
    }
    Ok(found)
}

fn changed_bytes(hub: &Hub, commit: &Oid) -> Result<u64, GitError> {
    let raw = hub
        .git(format!("measure {commit}"))
        .args(["diff-tree", "-r", "-z", "--root", "--no-commit-id", "--no-renames", "--raw"])
        .args(["--diff-merges=first-parent", commit.as_str()])
        .ok()?;
    let mut ask = String::new();
    for head in raw.split(|b| *b == 0).filter(|field| field.starts_with(b":")) {
        let text = String::from_utf8_lossy(head).into_owned();
        if let Some(oid) = text.split(' ').nth(3).and_then(|w| Oid::parse(w).ok())
            && !oid.is_zero()
        {
            ask.push_str(&format!("{oid}\n"));
        }
    }
    let out = hub
        .git(format!("measure {commit}"))
        .args(["cat-file", "--batch-check=%(objectsize)"])
        .stdin(ask)
        .ok()?;
    Ok(String::from_utf8_lossy(&out).lines().filter_map(|line| line.parse::<u64>().ok()).sum())
}

/// Publishes a salvaged state to the user's repository as `autopilot/salvage/<task>-<attempt>`.
pub fn restore(
    hub: &Hub,
    repo: &UserRepo,
    salvaged: &Salvaged,
    border: &Border,
) -> Result<(String, PublishOutcome), GitError> {
    let leaf = ref_component(&format!("{}-{}", salvaged.task, salvaged.attempt));
    let branch = format!("autopilot/salvage/{leaf}");
    let outcome = publish_as(hub, repo, &salvaged.commit, &branch, border)?;
    Ok((branch, outcome))
}

/// The rule by which salvaged states are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropRule {
    /// States that a branch of the hub contains anyway.
    Contained,
    /// The same, and every state older than this time (seconds since 1970), because the user has
    /// asked for it.
    OlderThan(i64),
}

/// Drops salvaged states by the rule and returns them.
pub fn drop_salvaged(hub: &Hub, rule: DropRule) -> Result<Vec<Salvaged>, GitError> {
    let mut dropped = Vec::new();
    for salvaged in list(hub)? {
        let old = match rule {
            DropRule::Contained => false,
            DropRule::OlderThan(time) => salvaged.at < time,
        };
        if old || on_a_branch(hub, &salvaged.commit)? {
            hub.delete_ref(&salvaged.name, &salvaged.commit)?;
            dropped.push(salvaged);
        }
    }
    Ok(dropped)
}

fn on_a_branch(hub: &Hub, commit: &Oid) -> Result<bool, GitError> {
    let out = hub
        .git(format!("look for {commit} on a branch"))
        .args(["for-each-ref", "--count=1", "--contains", commit.as_str(), "refs/heads/"])
        .ok()?;
    Ok(!out.is_empty())
}

impl Slot {
    /// Measures the work against the base branch where its own base was lost with an earlier hub;
    /// nothing of it is safe then.
    pub(super) fn on_known_base(&self, note: SlotNote) -> Result<SlotNote, GitError> {
        let hub = self.hub();
        let asked = hub.git("look for the base of a slot");
        if hub.surely_has(&note.base)
            || !existing(asked, std::slice::from_ref(&note.base))?.is_empty()
        {
            return Ok(note);
        }
        let Some(base) = hub.resolve(&base_ref_of(&self.pools.base_branch))? else {
            return Ok(note);
        };
        let note = SlotNote { safe_tree: hub.tree_of(&base)?, base, ..note };
        self.write_note(&note)?;
        Ok(note)
    }
}
