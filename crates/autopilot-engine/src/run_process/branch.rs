//! Compares the run's branch with what the journal says was merged: at every start, and once more
//! before a run is called done.

use crate::job::Workshop;
use autopilot_core::event::TaskEnd;
use autopilot_core::state::State;
use autopilot_host::git::{Border, GitError, Hub, Oid, UserRepo, publish_reachable};
use std::sync::Arc;
use std::time::Duration;

/// How often git is asked before its failure counts.
const TRIES_MAX: u32 = 4;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// The run's branch in the hub, and the repository it is published to.
pub(super) struct RunBranch {
    hub: Hub,
    repo: Arc<UserRepo>,
}

impl RunBranch {
    pub(super) fn of(workshop: &Workshop) -> RunBranch {
        RunBranch { hub: workshop.hub.clone(), repo: Arc::clone(&workshop.repo) }
    }

    /// Puts the branch back if it lacks what was merged. Returns a notice if it did. A git that is
    /// killed is no answer, so it is asked again.
    pub(super) fn restore(&self, state: &State) -> Result<Option<String>, GitError> {
        let mut tries = 1;
        loop {
            match self.restore_once(state) {
                Err(GitError::Command(_)) if tries < TRIES_MAX => {
                    std::thread::sleep(TRY_AGAIN_AFTER * tries);
                    tries += 1;
                }
                ended => return ended,
            }
        }
    }

    fn restore_once(&self, state: &State) -> Result<Option<String>, GitError> {
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
    pub(super) fn restore_done(
        &self,
        state: &State,
        border: &Border,
    ) -> Result<Option<String>, GitError> {
        if state.end() != Some(&TaskEnd::Closed) {
            return Ok(None);
        }
        let notice = self.restore(state)?;
        if notice.is_some() {
            publish_reachable(&self.hub, &self.repo, &state.run.branch, border)?;
        }
        Ok(notice)
    }
}
