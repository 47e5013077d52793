//! `autopilot recover`: brings salvaged work back as a branch, and rebuilds a damaged journal.

mod journal;
mod lost;
mod traces;

use super::{Done, answer, ground, place};
use crate::cli::{Global, Recover};
use crate::exit::CommandFailure;
use crate::terminal;
use autopilot_core::config::nearest::nearest;
use autopilot_core::id::Time;
use autopilot_engine::place::StatePaths;
use autopilot_host::checkout;
use autopilot_host::git::{GitCommand, GitError, OVERSIZE, PublishOutcome, Salvaged, salvage};
use camino::Utf8PathBuf;
use serde::Serialize;
use serde_json::json;

/// The size of a piece whose objects are lost.
const UNREADABLE: &str = "can't be read";
const SALVAGE: &str = "refs/autopilot/salvage/";
/// The most pieces that are listed, newest first, also with `--json`.
const LISTED_MAX: usize = 200;

/// Lists the salvaged work, brings one piece back, or rebuilds the journal.
pub fn recover(global: &Global, args: &Recover) -> Done {
    let (place, known) = place(global)?;
    if args.journal {
        return journal::recover(global, &place);
    }
    if args.state {
        return lost::take_state(global, &place);
    }
    let hub = place.state.join("hub.git");
    if place.state.as_str().is_empty() || !hub.is_dir() {
        return match &args.id {
            None => traces::tell(global, &place),
            Some(id) => Err(nothing(id).hint("`autopilot recover` tells what there is")),
        };
    }
    match &args.id {
        None => {
            lost::save_unfinished(&place);
            let listed = list(global, &place, &hub)?;
            if known || global.json { Ok(listed) } else { traces::tell(global, &place) }
        }
        Some(id) => bring_back(global, &place, &hub, id),
    }
}

/// A piece of salvaged work.
#[derive(Default, Serialize)]
struct Piece {
    id: String,
    commit: String,
    at: String,
    size: String,
    /// A branch that has the work too.
    branch: Option<String>,
}

/// Lists the salvaged work, without a lock because a running engine only adds to it.
fn pieces(hub: &Utf8PathBuf) -> Result<Vec<Piece>, CommandFailure> {
    let out = GitCommand::isolated("list salvaged work", hub.as_std_path())
        .args(["for-each-ref", "--sort=-committerdate"])
        .args(["--format=%(objectname) %(committerdate:unix) %(refname)", SALVAGE])
        .ok()
        .map_err(GitError::from)?;
    Ok(String::from_utf8_lossy(&out).lines().filter_map(piece).collect())
}

fn piece(line: &str) -> Option<Piece> {
    let mut words = line.splitn(3, ' ');
    let (commit, at, name) = (words.next()?, words.next()?, words.next()?);
    let id = name.strip_prefix(SALVAGE)?;
    let at = Time(at.parse::<i64>().ok()?.saturating_mul(1000)).rfc3339();
    Some(Piece { id: id.to_owned(), commit: commit.to_owned(), at, ..Piece::default() })
}

fn list(global: &Global, place: &StatePaths, hub: &Utf8PathBuf) -> Done {
    let mut listed = pieces(hub)?;
    let more = listed.len().saturating_sub(LISTED_MAX);
    listed.truncate(LISTED_MAX);
    for piece in &mut listed {
        // Objects may be lost; the rest of the list is still worth knowing.
        piece.size = size(hub, &piece.commit).unwrap_or_else(|_| UNREADABLE.to_owned());
        piece.branch = branch_with(place, &piece.commit)?;
    }
    let aside = oversize(place);
    answer(global, listed, |listed| format!("{}{aside}", table(listed, more)))
}

/// Names the directories of files that were too large to be captured.
fn oversize(place: &StatePaths) -> String {
    let mut text = String::new();
    let folder = place.state.join(OVERSIZE);
    for task in folder.read_dir_utf8().into_iter().flatten().flatten() {
        for attempt in task.path().read_dir_utf8().into_iter().flatten().flatten() {
            text.push_str(&format!("\nfiles that were too large are kept at {}", attempt.path()));
        }
    }
    if !text.is_empty() {
        text.push_str("\n`autopilot gc --oversize` removes them");
    }
    text
}

fn table(pieces: &[Piece], more: usize) -> String {
    if pieces.is_empty() {
        return "no salvaged work".to_owned();
    }
    let row = |piece: &Piece| {
        let branch = piece.branch.clone().unwrap_or_else(|| "no branch".to_owned());
        vec![piece.id.clone(), piece.at.clone(), piece.size.clone(), branch]
    };
    let heading = ["task/attempt", "when", "size", "also on"];
    let table = terminal::table(&heading, pieces.iter().map(row));
    let more = if more > 0 { format!("… and {more} older ones\n") } else { String::new() };
    format!("{table}{more}\n`autopilot recover <task>/<attempt>` restores one as a branch")
}

/// The size of a change: `3 files changed, 10 insertions(+)`.
fn size(hub: &Utf8PathBuf, commit: &str) -> Result<String, CommandFailure> {
    let line = GitCommand::isolated(format!("measure {commit}"), hub.as_std_path())
        .args(["diff-tree", "--shortstat", "--root", "--no-commit-id"])
        .args(["--diff-merges=first-parent", commit])
        .line()
        .map_err(GitError::from)?;
    let line = line.trim();
    Ok(if line.is_empty() { "no change".to_owned() } else { line.to_owned() })
}

/// A branch of the user's repository that contains the commit.
fn branch_with(place: &StatePaths, commit: &str) -> Result<Option<String>, CommandFailure> {
    let Some(found) = checkout::find(place.root.as_std_path()) else { return Ok(None) };
    let out = GitCommand::isolated(format!("look for {commit} on a branch"), &found.common_dir)
        .args(["for-each-ref", "--count=1", "--format=%(refname:lstrip=2)", "--contains", commit])
        .arg("refs/heads/")
        .run()
        .map_err(GitError::from)?;
    // Git fails if the repository does not have the object.
    let name = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    Ok(Some(name).filter(|name| out.code() == Some(0) && !name.is_empty()))
}

fn bring_back(global: &Global, place: &StatePaths, hub: &Utf8PathBuf, id: &str) -> Done {
    let known = pieces(hub)?;
    if !known.iter().any(|piece| piece.id == id) {
        let near = nearest(id, known.iter().map(|piece| piece.id.as_str()));
        return Err(match near {
            Some(near) => nothing(id).hint(format!("did you mean `{near}`?")),
            None => nothing(id).hint("`autopilot recover` lists what there is"),
        });
    }
    let ground = ground::open(place)?;
    let border = ground.border(place)?;
    let salvaged = salvage::list(&ground.hub)?;
    let found =
        salvaged.iter().find(|salvaged| format!("{}/{}", salvaged.task, salvaged.attempt) == id);
    let Some(found) = found else { return Err(nothing(id)) };
    let (branch, outcome) = match salvage::restore(&ground.hub, &ground.repo, found, &border) {
        Err(GitError::Withheld { why, .. }) => return Err(withheld(id, &why, found, hub)),
        restored => restored?,
    };
    let word = match outcome {
        PublishOutcome::Published { .. } => "is now",
        PublishOutcome::Already { .. } => "was already",
        PublishOutcome::Refused(refusal) => {
            return Err(CommandFailure::failed(refusal));
        }
    };
    let told = json!({ "id": id, "branch": branch, "commit": found.commit.to_string() });
    answer(global, told, |_| {
        format!(
            "{id} {word} branch {branch}\n  git show --stat {branch}\n  \
             git diff HEAD...{branch}\n  git cherry-pick {branch}"
        )
    })
}

/// Work that holds a known secret stays where no tool of the user's sends it on.
fn withheld(id: &str, why: &str, found: &Salvaged, hub: &Utf8PathBuf) -> CommandFailure {
    CommandFailure::failed(format!("`{id}` stays in autopilot's own repository: {why}"))
        .hint(format!("to look at it: git --git-dir={hub} show {}", found.commit.short()))
}

fn nothing(id: &str) -> CommandFailure {
    CommandFailure::usage(format!("there is no salvaged work `{id}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_salvage_ref_names_task_and_attempt() {
        let found = piece("abc 1767268800 refs/autopilot/salvage/add-header/12.0").unwrap();
        assert_eq!(
            (found.id.as_str(), found.at.as_str()),
            ("add-header/12.0", "2026-01-01T12:00:00Z")
        );
        assert!(piece("abc 1 refs/heads/x").is_none());
    }
}
