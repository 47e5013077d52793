//! Compares the branches of the run and of its tasks with what the journal says was merged: at every
//! start, and once more before a run is called done.

use crate::again::again;
use crate::cause::chain;
use crate::evidence::EvidenceDesk;
use crate::job::Workshop;
use crate::place::StatePaths;
use crate::store::text;
use crate::workspace;
use autopilot_core::state::State;
use autopilot_host::git::{
    Border, BranchMend, BranchRecord, GitError, Hub, NOTES_REF, Oid, UserRepo, publish_reachable,
    task_branch,
};
use autopilot_host::redact::Redactor;
use std::sync::Arc;

/// The run's branch in the hub, and the repository it is published to.
#[derive(Clone)]
pub(super) struct RunBranch {
    hub: Hub,
    repo: Arc<UserRepo>,
}

impl RunBranch {
    pub(super) fn of(workshop: &Workshop) -> RunBranch {
        RunBranch { hub: workshop.hub.clone(), repo: Arc::clone(&workshop.repo) }
    }

    /// Puts the branches back that lack what was merged. Returns a notice of each. A git that is
    /// killed is no answer, so it is asked again.
    pub(super) fn restore(&self, state: &State) -> Result<Vec<String>, GitError> {
        again(|| self.restore_once(state))
    }

    fn restore_once(&self, state: &State) -> Result<Vec<String>, GitError> {
        let record = |(task, commit): (&str, Option<&str>)| {
            let commit = commit.map(Oid::parse).transpose()?;
            Ok(BranchRecord { branch: task_branch(task), commit })
        };
        let mut records: Vec<BranchRecord> =
            state.task_commits().map(record).collect::<Result<_, GitError>>()?;
        let tips: Vec<Oid> = state.merged_tips().map(Oid::parse).collect::<Result<_, _>>()?;
        let branch = &state.run.branch;
        if tips.is_empty() {
            // A merge may have moved it and died before the record; then it is merged once more.
            records.push(BranchRecord { branch: branch.clone(), commit: None });
        }
        let mends = self.hub.mend_branches(&records)?;
        let mut notices: Vec<String> = mends.iter().map(mend_notice).collect();
        if let Some(commit) = self.hub.newest_of(&tips)?
            && self.hub.restore_branch(branch, &commit)?
        {
            notices.push(mend_notice(&BranchMend::Restored { branch: branch.clone(), commit }));
        }
        Ok(notices)
    }

    /// Removes what a killed git was writing. Only when the work is over: nobody writes then.
    pub(super) fn tidy(&self) {
        self.hub.remove_temporary_objects();
    }

    /// Restores the branches of a run that is about to be called done; the user's copy is mended too.
    pub(super) fn restore_done(
        &self,
        state: &State,
        border: &Border,
    ) -> Result<Vec<String>, GitError> {
        let notices = self.restore(state)?;
        if !notices.is_empty() {
            publish_reachable(&self.hub, &self.repo, &state.run.branch, border)?;
        }
        Ok(notices)
    }

    /// Writes the evidence of the whole. A run is done whatever becomes of notes on its commits, so a
    /// failure is told and no more.
    pub(super) fn publish_evidence(
        &self,
        state: &State,
        place: &StatePaths,
        border: &Border,
        redactor: &Redactor,
    ) -> Option<String> {
        let told = |error: &dyn std::error::Error| {
            format!(
                "the evidence of the result is not in `{NOTES_REF}` of your repository, so `autopilot \
                 verify` can't check it: {}",
                chain(error)
            )
        };
        let history = match workspace::reader(place) {
            Ok(history) => history,
            Err(error) => return Some(told(&error)),
        };
        let read = |hash: &str| text(&history, hash).ok();
        let (hub, repo) = (&self.hub, &*self.repo);
        let desk = EvidenceDesk { hub, repo, border, redactor, read: &read };
        desk.publish_done(state).err().map(|error| told(&error))
    }
}

fn mend_notice(mend: &BranchMend) -> String {
    match mend {
        BranchMend::Restored { branch, commit } => format!(
            "branch {branch} was gone or damaged in Autopilot's own repository; it was restored at {}",
            commit.short()
        ),
        BranchMend::Removed { branch } => format!(
            "branch {branch} was damaged in Autopilot's own repository; no merge of it was on record, \
             so it was removed and is made again"
        ),
    }
}
