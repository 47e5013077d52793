//! Merging a task onto the run's branch, without a working tree and at most once per attempt.

use super::capture::Attempt;
use super::command::CommandError;
use super::commit::{ATTEMPT, Committed, NewCommit, RUN, find_attempt, trailers, write_commit};
use super::error::GitError;
use super::hub::{Expected, Hub};
use super::identity::Identity;
use super::object::Oid;
use crate::fail;

const SWAPS_MAX: usize = 5;
const CONFLICTS_MAX: usize = 200;
const SIDE_BYTES_MAX: usize = 16 * 1024;

#[derive(Clone, Debug)]
pub struct MergeRequest<'a> {
    pub run: &'a str,
    pub attempt: Attempt<'a>,
    /// Short name of the run's branch.
    pub onto: &'a str,
    /// Where that branch starts when it does not exist yet.
    pub start: &'a Oid,
    pub commit: &'a Oid,
    pub message: &'a str,
    pub identity: &'a Identity,
    /// Seconds since 1970.
    pub now: i64,
}

#[derive(Clone, Debug)]
pub enum MergeOutcome {
    Merged(Committed),
    /// The run's branch was not touched.
    Conflict {
        onto: Oid,
        conflicts: Vec<Conflict>,
        more: usize,
    },
}

/// One conflicted path with its three sides, for the prompt of a fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub path: Vec<u8>,
    pub base: Option<ConflictSide>,
    pub ours: Option<ConflictSide>,
    pub theirs: Option<ConflictSide>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictSide {
    pub mode: String,
    pub oid: Oid,
    pub text: String,
    pub cut: bool,
}

/// Merges a commit onto the run's branch. A merge by the same attempt is returned as it is.
pub fn merge_task(hub: &Hub, request: &MergeRequest<'_>) -> Result<MergeOutcome, GitError> {
    let name = format!("refs/heads/{}", request.onto);
    let mut tries = 0;
    loop {
        let old = hub.resolve(&name)?;
        let tip = old.clone().unwrap_or_else(|| request.start.clone());
        if old.is_some()
            && let Some(commit) =
                find_attempt(hub, &tip, Some(request.start), (request.run, request.attempt.id))?
        {
            return Ok(MergeOutcome::Merged(Committed { commit, already: true }));
        }
        let tree = match merge_trees(hub, &tip, request.commit)? {
            Ok(tree) => tree,
            Err((conflicts, more)) => {
                return Ok(MergeOutcome::Conflict { onto: tip, conflicts, more });
            }
        };
        let commit = write_commit(
            hub,
            &NewCommit {
                tree: &tree,
                parents: &[tip, request.commit.clone()],
                message: &trailers(
                    request.message,
                    &[
                        (RUN, request.run),
                        ("Autopilot-Task", request.attempt.task),
                        (ATTEMPT, request.attempt.id),
                    ],
                ),
                identity: request.identity,
                now: request.now,
            },
        )?;
        fail::point("merge.written");
        tries += 1;
        match hub.set_ref(&name, &commit, old.as_ref().map_or(Expected::Absent, Expected::At)) {
            Ok(()) => {
                fail::point("merge.done");
                return Ok(MergeOutcome::Merged(Committed { commit, already: false }));
            }
            Err(GitError::RefMoved { .. }) if tries < SWAPS_MAX => {}
            Err(other) => return Err(other),
        }
    }
}

type Conflicted = (Vec<Conflict>, usize);

/// The merged tree, or what stands in its way.
pub(crate) fn merge_trees(
    hub: &Hub,
    ours: &Oid,
    theirs: &Oid,
) -> Result<Result<Oid, Conflicted>, GitError> {
    let operation = format!("merge {theirs} onto {ours}");
    let out = hub
        .git(&operation)
        .args(["merge-tree", "--write-tree", "-z", "--no-messages", "--allow-unrelated-histories"])
        .args([ours.as_str(), theirs.as_str()])
        .run()?;
    let mut fields = out.stdout.split(|b| *b == 0);
    match out.code() {
        Some(0) => Ok(Ok(Oid::from_bytes(fields.next().unwrap_or_default().trim_ascii())?)),
        Some(1) => Ok(Err(read_conflicts(hub, fields.skip(1))?)),
        _ => Err(CommandError::Failed {
            operation,
            verb: "merge-tree".into(),
            status: out.status.to_string(),
            stderr: out.stderr,
        }
        .into()),
    }
}

/// Lines of `<mode> <object> <stage>\t<path>`, grouped by path.
fn read_conflicts<'a>(
    hub: &Hub,
    fields: impl Iterator<Item = &'a [u8]>,
) -> Result<Conflicted, GitError> {
    let mut conflicts: Vec<Conflict> = Vec::new();
    let mut paths_seen = 0;
    let mut last: Option<Vec<u8>> = None;
    for field in fields.take_while(|field| !field.is_empty()) {
        let Some(tab) = field.iter().position(|b| *b == b'\t') else { continue };
        let path = field.get(tab + 1..).unwrap_or_default().to_vec();
        if last.as_ref() != Some(&path) {
            paths_seen += 1;
            last = Some(path.clone());
            if paths_seen <= CONFLICTS_MAX {
                conflicts.push(Conflict { path, base: None, ours: None, theirs: None });
            }
        }
        if paths_seen > CONFLICTS_MAX {
            continue;
        }
        let head = String::from_utf8_lossy(field.get(..tab).unwrap_or_default()).into_owned();
        let mut words = head.split(' ');
        let (Some(mode), Some(oid), Some(stage)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let side = read_side(hub, mode, &Oid::parse(oid)?)?;
        if let Some(conflict) = conflicts.last_mut() {
            match stage {
                "1" => conflict.base = Some(side),
                "2" => conflict.ours = Some(side),
                _ => conflict.theirs = Some(side),
            }
        }
    }
    Ok((conflicts, paths_seen.saturating_sub(CONFLICTS_MAX)))
}

fn read_side(hub: &Hub, mode: &str, oid: &Oid) -> Result<ConflictSide, GitError> {
    let (bytes, cut) = if mode == "160000" {
        (oid.to_string().into_bytes(), false)
    } else {
        read_blob(hub, oid, SIDE_BYTES_MAX)?
    };
    let text = if bytes.iter().take(8000).any(|b| *b == 0) {
        "(binary)".to_owned()
    } else {
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Ok(ConflictSide { mode: mode.to_owned(), oid: oid.clone(), text, cut })
}

/// The first bytes of a blob; git is stopped when they are read.
pub(crate) fn read_blob(
    hub: &Hub,
    oid: &Oid,
    bytes_max: usize,
) -> Result<(Vec<u8>, bool), GitError> {
    use std::ops::ControlFlow;
    let mut bytes = Vec::new();
    hub.git(format!("read {oid}")).args(["cat-file", "blob", oid.as_str()]).stream(
        &mut |chunk| {
            bytes.extend_from_slice(chunk);
            if bytes.len() > bytes_max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
    )?;
    let cut = bytes.len() > bytes_max;
    bytes.truncate(bytes_max);
    Ok((bytes, cut))
}
