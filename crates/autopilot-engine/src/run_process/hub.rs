//! Opens the hub for a run: saves what a dead process left, puts branches back, and brings objects
//! back that are missing. A hub that is gone is made again from the user's repository.

use super::branch::RunBranch;
use super::choice::ChosenRun;
use super::needed_work::{self, NeededWork};
use crate::again::again;
use crate::job::Workshop;
use crate::place::StatePaths;
use crate::workspace::WorkspaceError;
use autopilot_core::number::count;
use autopilot_core::state::State;
use autopilot_host::git::{CommandError, CommandStatus, GitError, Hub, ObjectMend, Oid, UserRepo};
use camino::Utf8PathBuf;

/// The most refs that a message names.
const REFS_NAMED_MAX: usize = 5;

/// Opens the hub. A git that is hindered is asked again; a hub that lacks objects is mended from the
/// user's repository.
pub(super) fn open(
    place: &StatePaths,
    repo: UserRepo,
    chosen: &ChosenRun,
    notice: &mut dyn FnMut(&str),
) -> Result<(Workshop, RunBranch), WorkspaceError> {
    let state = &chosen.state;
    let is_missed =
        !hub_path(place).exists() && (state.has_begun() || place.state.join("slots").exists());
    let hub = again(|| Hub::open(place.state.as_std_path(), &repo))?;
    let workshop = Workshop::new(repo, hub, &chosen.config.worktrees);
    let branch = RunBranch::of(&workshop);
    if is_missed {
        notice(
            "Autopilot's own repository was missing and was made again from yours; work that was \
             kept in it for `autopilot recover` is lost, unless it is still in a worktree",
        );
    }
    let needed = needed_work::of(state)?;
    let mut mend = ObjectMend::default();
    if is_lacking(&workshop.hub, &needed)? {
        mend = mended(&workshop, &needed, notice)?;
        needed_work::refuse_lost(&workshop.hub, &needed, &hub_path(place))?;
    }
    let notices = match prepare(&workshop, &branch, state) {
        Ok(notices) => notices,
        Err(error) => {
            let found = mended(&workshop, &needed, notice)?;
            if found.is_nothing() {
                return Err(error.into());
            }
            mend.lost.extend(found.lost);
            // What git still refuses needs objects that were in no ref and on no record.
            prepare(&workshop, &branch, state).map_err(|error| {
                let lost = mend.lost.len().max(1);
                match is_refusal(&error) {
                    true => WorkspaceError::HubDamaged { path: hub_path(place), lost },
                    false => error.into(),
                }
            })?
        }
    };
    notices.iter().for_each(|text| notice(text));
    if is_missed {
        let lost = needed_work::lost_salvage(&workshop.hub, state)?;
        lost.iter().for_each(|text| notice(text));
    }
    Ok((workshop, branch))
}

fn is_lacking(hub: &Hub, needed: &[NeededWork]) -> Result<bool, GitError> {
    let objects: Vec<Oid> = needed.iter().map(|work| work.object.clone()).collect();
    Ok(!again(|| hub.lacking(&objects))?.is_empty())
}

/// Brings back what the user's repository has of what is missing, and says so.
fn mended(
    workshop: &Workshop,
    needed: &[NeededWork],
    notice: &mut dyn FnMut(&str),
) -> Result<ObjectMend, GitError> {
    let recorded: Vec<Oid> = needed.iter().map(|work| work.object.clone()).collect();
    let mend = again(|| workshop.hub.mend_objects(&workshop.repo, &recorded))?;
    if !mend.is_nothing() {
        notice(&mend_text(&mend));
    }
    Ok(mend)
}

fn prepare(
    workshop: &Workshop,
    branch: &RunBranch,
    state: &State,
) -> Result<Vec<String>, GitError> {
    let commits = [Some(state.run.base.as_str()), state.run.tip.as_deref()];
    let commits = commits.into_iter().flatten().filter(|commit| !commit.is_empty());
    let commits: Vec<Oid> = commits.map(Oid::parse).collect::<Result<_, _>>()?;
    if !commits.is_empty() {
        again(|| workshop.hub.check_files_of(&commits))?;
    }
    let base = commits.last().unwrap_or(&workshop.repo.base_tip);
    let saved = again(|| workshop.rescue_all(base))?;
    let kept = |saved| format!("unfinished work of an earlier process is kept at {saved}");
    let mut notices: Vec<String> = saved.into_iter().map(kept).collect();
    notices.extend(branch.restore(state)?);
    Ok(notices)
}

/// Whether git ran and said no. One that was killed has said nothing.
fn is_refusal(error: &GitError) -> bool {
    let refused = |error: &CommandError| {
        matches!(error, CommandError::Failed { status: CommandStatus::Code(_), .. })
    };
    matches!(error, GitError::Command(error) if refused(error))
}

fn mend_text(mend: &ObjectMend) -> String {
    let lacked = count(mend.restored + mend.lost.len(), "object");
    let mut text = format!(
        "Autopilot's own repository lacked {lacked}; {} came back from your repository",
        mend.restored
    );
    if !mend.refs.is_empty() {
        let named: Vec<&str> = mend.refs.iter().take(REFS_NAMED_MAX).map(String::as_str).collect();
        let more = mend.refs.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        text.push_str(&format!(", and the work at {}{more} is lost", named.join(", ")));
    }
    text
}

fn hub_path(place: &StatePaths) -> Utf8PathBuf {
    place.state.join("hub.git")
}
