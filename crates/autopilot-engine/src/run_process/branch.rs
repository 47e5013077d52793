//! Compares the run's branch with what the journal says was merged: at every start, and once more
//! before a run is called done.

use crate::job::Workshop;
use autopilot_core::event::TaskEnd;
use autopilot_core::state::State;
use autopilot_host::git::{GitError, Hub, Oid, UserRepo, publish_reachable};
use std::sync::Arc;

/// The run's branch in the hub, and the repository it is published to.
pub(super) struct RunBranch {
    hub: Hub,
    repo: Arc<UserRepo>,
}

impl RunBranch {
    pub(super) fn of(workshop: &Workshop) -> RunBranch {
        RunBranch { hub: workshop.hub.clone(), repo: Arc::clone(&workshop.repo) }
    }

    /// Puts the branch back if it lacks what was merged. Returns a notice if it did.
    pub(super) fn restore(&self, state: &State) -> Result<Option<String>, GitError> {
        let tips: Vec<Oid> = state.merged_tips().map(Oid::parse).collect::<Result<_, _>>()?;
        let Some(recorded) = self.hub.newest_of(&tips)? else { return Ok(None) };
        let branch = &state.run.branch;
        let is_restored = self.hub.restore_branch(branch, &recorded)?;
        let notice = || {
            format!(
                "branch {branch} was gone or damaged in Autopilot's own repository; it was restored \
                 at {}",
                recorded.short()
            )
        };
        Ok(is_restored.then(notice))
    }

    /// The same for a run that is about to be called done; the user's copy is mended too.
    pub(super) fn restore_done(&self, state: &State) -> Result<Option<String>, GitError> {
        if state.end() != Some(&TaskEnd::Closed) {
            return Ok(None);
        }
        let notice = self.restore(state)?;
        if notice.is_some() {
            publish_reachable(&self.hub, &self.repo, &state.run.branch)?;
        }
        Ok(notice)
    }
}
