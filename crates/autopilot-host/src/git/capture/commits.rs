//! The commits that an agent made itself: taken into the hub as a pack that is checked strictly.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{CaptureRequest, Violation};
use crate::git::disposable::FoundRefs;
use crate::git::error::GitError;
use crate::git::hub::ExpectedRef;
use crate::git::object::Oid;
use crate::git::slot::Slot;
use crate::git::transfer::{ObjectCheck, ObjectSource, transfer, typed};

/// The deadline for reading objects that an agent may have booby-trapped (a pipe for a pack).
const AGENT_OBJECTS_TIMEOUT: Duration = Duration::from_secs(60);
/// The most commits of an agent that are listed.
const COMMITS_LISTED_MAX: usize = 1000;

/// The agent's commits that were taken into the hub.
#[derive(Default)]
pub(super) struct Taken {
    /// All of them, newest first, up to a limit.
    pub commits: Vec<Oid>,
    /// Whether one of them was not in the hub before.
    pub newly_saved: bool,
}

impl Slot {
    /// Takes the commits that the agent made itself, as far as they are sound.
    pub(super) fn take_commits(
        &self,
        request: &CaptureRequest<'_>,
        found: Option<&FoundRefs>,
        violations: &mut Vec<Violation>,
    ) -> Result<Taken, GitError> {
        let Some(found) = found else {
            violations.push(Violation::GitDirectoryGone);
            return Ok(Taken::default());
        };
        if found.truncated {
            violations.push(Violation::TooManyRefs);
        }
        match self.import(request, found) {
            Ok(taken) => Ok(taken),
            Err(GitError::Worktree(error)) => {
                violations.push(Violation::CommitsNotTaken { reason: error.to_string() });
                self.import_one_by_one(request, found)
            }
            Err(other) => Err(other),
        }
    }

    /// Takes the commits of each tip by itself, because one broken tip must not cost the others.
    fn import_one_by_one(
        &self,
        request: &CaptureRequest<'_>,
        found: &FoundRefs,
    ) -> Result<Taken, GitError> {
        let mut all = Taken::default();
        for tip in &found.tips {
            let one = FoundRefs { tips: BTreeSet::from([tip.clone()]), ..FoundRefs::default() };
            match self.import(request, &one) {
                Ok(taken) => {
                    all.newly_saved |= taken.newly_saved;
                    all.commits.extend(taken.commits);
                }
                Err(GitError::Worktree(_)) => {}
                Err(other) => return Err(other),
            }
        }
        all.commits.truncate(COMMITS_LISTED_MAX);
        Ok(all)
    }

    fn import(&self, request: &CaptureRequest<'_>, found: &FoundRefs) -> Result<Taken, GitError> {
        let hub = self.hub();
        let objects = self.dir.join(".git/objects");
        let with_agent = |operation: &str| {
            hub.git(operation).also_objects(&[&objects]).timeout(AGENT_OBJECTS_TIMEOUT)
        };
        // Mostly an agent commits nothing: its refs then name the commits it was given.
        if hub.holds_all(&found.tips)? {
            return Ok(Taken::default());
        }
        let tips: Vec<Oid> = found.tips.iter().cloned().collect();
        let prefix = request.attempt.commits_prefix();
        let held: BTreeSet<Oid> = hub
            .refs("refs/")?
            .into_iter()
            .filter(|(name, _)| !name.starts_with(&format!("{prefix}/")))
            .map(|(_, oid)| oid)
            .collect();
        let commits: Vec<Oid> = typed(with_agent("look at the agent's commits"), &tips)
            .map_err(GitError::of_worktree)?
            .into_iter()
            .filter_map(|(oid, kind)| (kind == "commit").then_some(oid))
            .collect();
        if commits.is_empty() {
            return Ok(Taken::default());
        }
        let mut ask: String = commits.iter().map(|oid| format!("{oid}\n")).collect();
        ask.extend(held.iter().map(|oid| format!("^{oid}\n")));
        let out = with_agent("list the agent's commits")
            .args(["rev-list", "--parents", "--stdin"])
            .stdin(ask)
            .ok()
            .map_err(GitError::of_worktree)?;
        let listing = String::from_utf8_lossy(&out).into_owned();
        let (new, heads) = heads_of(&listing)?;
        if new.is_empty() {
            return Ok(Taken::default());
        }
        let source = ObjectSource { git_dir: hub.dir(), objects: vec![&objects] };
        let mut missing = Vec::new();
        for head in heads {
            if hub.resolve(&format!("{prefix}/{head}"))?.is_none() {
                missing.push(head);
            }
        }
        if !missing.is_empty() {
            let _kept = transfer(&source, hub.dir(), &missing, &hub.tips()?, ObjectCheck::Strict)
                .map_err(GitError::of_worktree)?;
            for head in &missing {
                hub.set_ref(&format!("{prefix}/{head}"), head, ExpectedRef::Absent)?;
            }
        }
        let commits = new.into_iter().take(COMMITS_LISTED_MAX).collect();
        Ok(Taken { commits, newly_saved: !missing.is_empty() })
    }
}

/// Returns all listed commits, and those that are no other's parent.
fn heads_of(listing: &str) -> Result<(Vec<Oid>, Vec<Oid>), GitError> {
    let mut new = Vec::new();
    let mut parents = BTreeSet::new();
    for line in listing.lines() {
        let mut words = line.split(' ');
        if let Some(commit) = words.next() {
            new.push(Oid::parse(commit)?);
        }
        parents.extend(words.map(str::to_owned));
    }
    let heads = new.iter().filter(|oid| !parents.contains(oid.as_str())).cloned().collect();
    Ok((new, heads))
}
