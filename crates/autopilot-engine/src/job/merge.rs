//! The controller's commit of a task, its merge onto the run's branch, and both brought into the
//! user's repository. Each part looks for its own trace first, so doing it again does nothing.

use super::workshop::{blocking, seconds_now};
use super::{Done, Job, JobError};
use autopilot_core::event::{Facts, Outcome};
use autopilot_core::step::Step;
use autopilot_host::git::{
    Attempt, CommitRequest, Conflict, Hub, MergeOutcome, MergeRequest, Oid, PublishRefusal,
    UserRepo, commit_task, merge_task, publish_reachable, task_branch,
};
use std::sync::Arc;

/// Conflicted files named in the message to the builder.
const CONFLICTS_NAMED_MAX: usize = 20;

impl Job {
    pub(super) async fn merge(&self) -> Result<Done, JobError> {
        let Some(tree) = self.proven_tree() else {
            // Nothing but the exact tree that passed may be merged.
            let why = "the tree to merge is not the one that was validated".to_owned();
            return Ok((Outcome::Failed { why }, Facts::default()));
        };
        let spec = self.spec()?;
        let work = Work {
            hub: self.context.workshop.hub.clone(),
            repo: Arc::clone(&self.context.workshop.repo),
            run: self.run.id.clone(),
            branch: self.run.branch.clone(),
            start: self.run.base.clone(),
            base: self.task.base.clone().unwrap_or_else(|| self.run.base.clone()),
            task: self.task.name().to_owned(),
            attempt: self.want.id.to_string(),
            tree,
            message: message(&spec.title, &spec.goal),
        };
        blocking(move || work.do_it()).await
    }

    fn proven_tree(&self) -> Option<String> {
        let proven = self.task.shown(Step::Validate)?;
        let tree = proven.facts.tree.clone()?;
        (proven.outcome == Outcome::Passed && self.task.tree.as_ref() == Some(&tree))
            .then_some(tree)
    }
}

struct Work {
    hub: Hub,
    repo: Arc<UserRepo>,
    run: String,
    branch: String,
    start: String,
    base: String,
    task: String,
    attempt: String,
    tree: String,
    message: String,
}

impl Work {
    fn do_it(&self) -> Result<Done, JobError> {
        let (base, tree) = (Oid::parse(&self.base)?, Oid::parse(&self.tree)?);
        if let Some(commit) = self.merged_before(&base, &tree)? {
            return self.published(commit);
        }
        let attempt = Attempt { task: &self.task, id: &self.attempt };
        let branch = task_branch(&self.task);
        let now = seconds_now();
        let committed = commit_task(
            &self.hub,
            &CommitRequest {
                run: &self.run,
                attempt,
                branch: &branch,
                parent: &base,
                tree: &tree,
                message: &self.message,
                identity: &self.repo.identity,
                now,
            },
        )?;
        let start = Oid::parse(&self.start)?;
        if let Some(why) = self.has_moved_on(&start, &base, &committed.commit)? {
            return Ok((Outcome::Failed { why }, Facts::default()));
        }
        let merged = merge_task(
            &self.hub,
            &MergeRequest {
                run: &self.run,
                attempt,
                onto: &self.branch,
                start: &start,
                commit: &committed.commit,
                message: &format!("Merge task {}", self.task),
                identity: &self.repo.identity,
                now,
            },
        )?;
        let merge = match merged {
            MergeOutcome::Merged(merge) => merge.commit,
            MergeOutcome::Conflict { conflicts, .. } => return Ok(conflicted(&conflicts)),
        };
        if self.hub.tree_of(&merge)? != tree {
            let why = "the merged tree is not the one that was validated".to_owned();
            return Err(JobError::Internal(why));
        }
        self.published(committed.commit)
    }

    /// An earlier attempt may have merged and then failed to say so: the branch then ends in a
    /// merge of this very tree onto the base.
    fn merged_before(&self, base: &Oid, tree: &Oid) -> Result<Option<Oid>, JobError> {
        let Some(tip) = self.hub.resolve(&format!("refs/heads/{}", self.branch))? else {
            return Ok(None);
        };
        if tip == *base || self.hub.tree_of(&tip)? != *tree {
            return Ok(None);
        }
        let parents = self.hub.parents(&tip)?;
        Ok(match parents.as_slice() {
            [first, second] if first == base && self.is_of_task(second)? => Some(second.clone()),
            _ => None,
        })
    }

    fn is_of_task(&self, commit: &Oid) -> Result<bool, JobError> {
        let task = self.hub.trailer(commit, "Autopilot-Task")?;
        Ok(task.as_deref() == Some(self.task.as_str()))
    }

    fn published(&self, commit: Oid) -> Result<Done, JobError> {
        let mut facts = Facts { commit: Some(commit.to_string()), ..Facts::default() };
        for name in [&task_branch(&self.task), &self.branch] {
            let reached = publish_reachable(&self.hub, &self.repo, name)?;
            if let Some(why) = &reached.instead {
                facts.notes.push(elsewhere(name, &reached.branch, why));
            }
        }
        Ok((Outcome::Passed, facts))
    }
}

impl Work {
    /// A branch that has grown since the work began would make a tree that nobody has validated.
    fn has_moved_on(
        &self,
        start: &Oid,
        base: &Oid,
        commit: &Oid,
    ) -> Result<Option<String>, JobError> {
        let tip = self.hub.resolve(&format!("refs/heads/{}", self.branch))?;
        let tip = tip.as_ref().unwrap_or(start);
        if tip == base || self.hub.is_ancestor(commit, tip)? {
            return Ok(None);
        }
        Ok(Some(format!(
            "the run's branch has moved on to {}; the work goes on top of it",
            tip.short()
        )))
    }
}

/// What a person has to know who would otherwise merge the branch that has not got the work.
fn elsewhere(wanted: &str, got: &str, why: &PublishRefusal) -> String {
    let why = match why {
        PublishRefusal::CheckedOut { branch, worktree } => {
            format!(
                "branch {branch} is checked out in {} and was left as it is",
                worktree.display()
            )
        }
        PublishRefusal::ForeignCommits { branch, .. } => {
            format!("branch {branch} has commits that are not this run's and was left as it is")
        }
        PublishRefusal::InTheWay { other, .. } => {
            format!("branch {other} leaves no place for {wanted}")
        }
    };
    format!("{why}; the work is on {got}, so look and merge there: git merge {got}")
}

fn conflicted(conflicts: &[Conflict]) -> Done {
    let names: Vec<String> = conflicts
        .iter()
        .take(CONFLICTS_NAMED_MAX)
        .map(|conflict| String::from_utf8_lossy(&conflict.path).into_owned())
        .collect();
    let why = format!("the change conflicts with the run's branch in {}", names.join(", "));
    (Outcome::Failed { why }, Facts::default())
}

/// A subject of one line and the goal as the body.
fn message(title: &str, goal: &str) -> String {
    let title: String = title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{}\n\n{}\n", title.trim(), goal.trim())
}
