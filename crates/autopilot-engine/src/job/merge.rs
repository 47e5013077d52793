//! The controller's commit of a task, its merge to the run's branch, and both published to the
//! user's repository. Each part looks for its own result first, so repeating it does nothing.

use super::conflict;
use super::own_work::blocking;
use super::train::{MergeRequest, MergeTask, MergeVerdict};
use super::workshop::Workshop;
use super::{Context, Done, Job, JobError, user_command};
use crate::cause::chain;
use crate::evidence::{EvidenceDesk, MergedState};
use autopilot_core::event::{Facts, Outcome};
use autopilot_core::evidence::RoundEvidence;
use autopilot_core::fingerprint::fingerprint;
use autopilot_core::flow::merging;
use autopilot_core::state::Shown;
use autopilot_core::step::Step;
use autopilot_host::fail;
use autopilot_host::git::{
    Border, CommitRequest, Conflicts, GitError, Oid, PublishRefusal, Sought, commit_task,
    publish_all, task_branch,
};
use std::sync::PoisonError;

impl Job {
    pub(super) async fn merge(&self) -> Result<Done, JobError> {
        if merging::keeps_earlier_result(&self.task) {
            let why = "its earlier result is merged already".to_owned();
            return Ok((Outcome::Skipped { why }, Facts::default()));
        }
        let Some(tree) = merging::proven_tree(&self.task) else {
            // Only the exact tree that passed may be merged.
            let why = "the tree to merge is not the one that was validated".to_owned();
            return Ok((Outcome::Failed { why }, Facts::default()));
        };
        let work = self.work(tree)?;
        if work.is_empty()? {
            let why = "there is nothing to merge".to_owned();
            return Ok((Outcome::Skipped { why }, Facts::default()));
        }
        let commit = match blocking(|| work.commit())? {
            EarlierMerge::Merged(commit) => {
                return self.published(&work, &commit, Facts::default());
            }
            EarlierMerge::Waits(commit) => commit,
        };
        if let Some(why) = work.withheld(&commit)? {
            return Ok((Outcome::Failed { why }, Facts::default()));
        }
        let is_proven_alone = self.task.pipeline.place(Step::Validate).is_some();
        let commands = match is_proven_alone {
            true => self.with_holdout(user_command::validation(self, Some(&self.spec()?)), false),
            false => Vec::new(),
        };
        let (of, cancel) = (work.of.clone(), self.cancel.clone());
        let accounted = self.open_ids_of(self.task.id)?;
        let request = MergeRequest { of, commit: commit.clone(), commands, accounted, cancel };
        match self.integrate(request).await? {
            MergeVerdict::Merged(facts) => self.published(&work, &commit, *facts),
            MergeVerdict::Conflict(conflicts) => self.conflicted(&conflicts),
            MergeVerdict::Broken { why, facts } => Ok((Outcome::Failed { why }, *facts)),
            MergeVerdict::Withdrawn => Ok((Outcome::Revoked, Facts::default())),
            MergeVerdict::Trouble(error) => Err(JobError::Integration(error)),
        }
    }

    /// Publishes the merge, and its evidence. The work is merged whatever becomes of a note on it.
    fn published(
        &self,
        work: &MergeWork<'_>,
        commit: &Oid,
        facts: Facts,
    ) -> Result<Done, JobError> {
        let mut facts = work.published(commit, facts)?;
        if let Err(error) = blocking(|| self.publish_evidence(work, commit, &facts)) {
            facts.notes.push(format!(
                "the evidence is not in the repository yet: {}; it is written before the run is done",
                chain(&error)
            ));
        }
        Ok((Outcome::Passed, facts))
    }

    fn publish_evidence(
        &self,
        work: &MergeWork<'_>,
        commit: &Oid,
        facts: &Facts,
    ) -> Result<(), JobError> {
        // What the gate of the merge has shown may still be on its way to the journal.
        self.context.texts.settle()?;
        let MergeWork { of, workshop: Workshop { hub, repo, queue, .. }, border, .. } = work;
        let tip = of.track(repo).tip(hub)?;
        let merged = of.track(repo).merged_tasks(hub, &of.base, &tip.commit)?;
        let Some(merged) = merged.iter().find(|merged| merged.of == *commit) else {
            return Err(JobError::Internal("the merge is not on the branch"));
        };
        let mut task = self.task.clone();
        let (id, round, facts) = (self.want.id, task.round, facts.clone());
        let shown = Shown { id, round, at: self.since, outcome: Outcome::Passed, facts };
        task.results.insert(Step::Merge, shown);
        let desk = EvidenceDesk {
            hub,
            repo,
            border,
            redactor: &self.context.redactor,
            read: &|hash| self.context.text(hash).ok(),
        };
        let _one_at_a_time = queue.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        let state = MergedState { run: &self.run, task: &task, at: of.at };
        Ok(desk.publish_merge(&state, merged)?)
    }

    fn work(&self, tree: &str) -> Result<MergeWork<'_>, JobError> {
        let spec = self.spec()?;
        let start = Oid::parse(&self.run.base)?;
        let base = self.task.base.as_deref().map(Oid::parse).transpose()?;
        let of = MergeTask {
            run: self.run.id.clone(),
            branch: self.run.branch.clone(),
            base: base.unwrap_or_else(|| start.clone()),
            start,
            has_begun: self.run.tip.is_some(),
            task: self.task.name().to_owned(),
            attempt: self.want.id.to_string(),
            tree: Oid::parse(tree)?,
            at: self.since.0 / 1000,
        };
        // The message leaves with the commit.
        let message = self.clean(&message(&spec.title, &spec.goal));
        let Context { workshop, border, .. } = &*self.context;
        Ok(MergeWork { of, workshop, border, message })
    }

    fn conflicted(&self, conflicts: &Conflicts) -> Result<Done, JobError> {
        let report = conflict::report(conflicts, &self.run.branch, &task_branch(self.task.name()));
        let evidence = RoundEvidence { conflict: Some(report), ..RoundEvidence::default() };
        let facts = Facts {
            answer: Some(self.keep(&evidence)?),
            // The same files in conflict with another commit are a different failure.
            fingerprint: Some(fingerprint(&format!("conflict with {}", conflicts.ours))),
            ..Facts::default()
        };
        Ok((Outcome::Failed { why: conflict::sentence(conflicts) }, facts))
    }
}

/// A task's result, where it is committed, and the message of its commit.
struct MergeWork<'a> {
    of: MergeTask,
    workshop: &'a Workshop,
    border: &'a Border,
    message: String,
}

/// How far an earlier try came.
enum EarlierMerge {
    Merged(Oid),
    Waits(Oid),
}

impl MergeWork<'_> {
    /// Returns whether the tree equals the base.
    fn is_empty(&self) -> Result<bool, JobError> {
        Ok(blocking(|| self.workshop.hub.tree_of(&self.of.base))? == self.of.tree)
    }

    /// The task's commit on its branch.
    fn commit(&self) -> Result<EarlierMerge, JobError> {
        let MergeWork { of, workshop: Workshop { hub, repo, .. }, message, .. } = self;
        let branch = task_branch(&of.task);
        // Searched also where the task has no branch: a damaged one is removed at the next start.
        let sought = Sought { attempt: of.attempt(), base: &of.base, tree: &of.tree };
        if let Some(commit) = of.track(repo).find(hub, &sought)? {
            // Somebody may have set it back; one that has other commits is left to the publication.
            match hub.restore_branch(&branch, &commit) {
                Ok(_) | Err(GitError::RefMoved { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            return Ok(EarlierMerge::Merged(commit));
        }
        let committed = commit_task(
            hub,
            &CommitRequest {
                run: &of.run,
                attempt: of.attempt(),
                branch: &branch,
                parent: &of.base,
                tree: &of.tree,
                message,
                identity: &repo.identity,
                now: of.at,
            },
        )?;
        Ok(EarlierMerge::Waits(committed.commit))
    }

    /// Why the commit must not leave the hub. It is asked before the run's branch holds it.
    fn withheld(&self, commit: &Oid) -> Result<Option<String>, JobError> {
        let MergeWork { of, workshop, border, .. } = self;
        let branch = task_branch(&of.task);
        let known = std::slice::from_ref(&of.base);
        blocking(|| match border.pass(&workshop.hub, commit, known, &branch) {
            Err(GitError::Withheld { why, .. }) => Ok(Some(why)),
            other => other.map(|()| None),
        })
    }

    fn published(&self, commit: &Oid, mut facts: Facts) -> Result<Facts, JobError> {
        facts.commit = Some(commit.to_string());
        facts.notes.extend(blocking(|| self.publish())?);
        let Workshop { hub, repo, .. } = self.workshop;
        facts.tip = Some(blocking(|| self.of.track(repo).tip(hub))?.commit.to_string());
        Ok(facts)
    }

    fn publish(&self) -> Result<Vec<String>, JobError> {
        let Workshop { hub, repo, queue, .. } = self.workshop;
        let _one_at_a_time = queue.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut notes = Vec::new();
        let task = task_branch(&self.of.task);
        let names = [task.as_str(), self.of.branch.as_str()];
        for (name, reached) in names.iter().zip(publish_all(hub, repo, &names, self.border)?) {
            if let Some(why) = &reached.instead {
                notes.push(wrong_branch_warning(name, &reached.branch, why));
            }
        }
        fail::point("merge.published");
        Ok(notes)
    }
}

/// A warning for a person who would otherwise merge the wrong branch.
fn wrong_branch_warning(wanted: &str, got: &str, why: &PublishRefusal) -> String {
    let why = match why {
        PublishRefusal::CheckedOut { branch, worktree } => {
            let worktree = worktree.display();
            format!("branch {branch} is checked out in {worktree} and was left unchanged")
        }
        PublishRefusal::ForeignCommits { branch, .. } => {
            format!("branch {branch} has commits that are not this run's and was left unchanged")
        }
        PublishRefusal::InTheWay { other, .. } => {
            format!("branch {other} prevents a branch named {wanted}")
        }
    };
    format!("{why}; the work is on {got} instead: git merge {got}")
}

/// A commit message: a one-line subject and the goal as the body.
fn message(title: &str, goal: &str) -> String {
    let title: String = title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{}\n\n{}\n", title.trim(), goal.trim())
}
