//! PROVE: the last word on a run whose gates ran over seeds. The commands of all merged tasks run once
//! more on the tip of the run's branch, from nothing. What fails there and passed over a seed is sought
//! among the merges, from nothing as well.

use super::mend::Mending;
use super::own_work::blocking;
use super::train::Halving;
use super::user_command::CommandCheck;
use super::workshop::Workshop;
use super::{Done, Job, JobError};
use autopilot_core::event::Outcome;
use autopilot_core::evidence::NewFailures;
use autopilot_core::step::Step;
use autopilot_core::task_file::TaskSpec;
use autopilot_host::git::{Oid, Track};
use std::time::Instant;

/// A task on the run's branch.
struct MergedWork {
    task: String,
    /// The commit of the branch that brought it.
    commit: Oid,
    spec: TaskSpec,
    /// The commands that proved it.
    commands: Vec<(&'static str, String)>,
}

impl Job {
    pub(super) async fn prove_from_nothing(&self) -> Result<Done, JobError> {
        let commit = self.commit()?;
        let merged = self.merged_work(&commit)?;
        let whole = self.frame(&merged)?;
        let gate = self.proof(self.all_commands(&merged, &whole)).await?;
        let evidence = gate.evidence();
        let mut facts = self.facts_of_gate(&gate, &evidence)?;
        facts.tree = self.task.tree.clone();
        let NewFailures { reasons, excused } = self.new_failures(&gate.checks, &evidence)?;
        facts.excuse(excused);
        if reasons.is_empty() {
            return Ok((Outcome::Passed, facts));
        }
        facts.fingerprint = Some(super::validate::fingerprint(&gate.checks, &[]));
        let failed: Vec<&CommandCheck> =
            gate.checks.iter().filter(|check| !check.is_clean()).collect();
        // What can't be sought is told as unknown; the no stands.
        let culprit = self.first_to_fail(&merged, &failed).await.unwrap_or_default();
        let since =
            culprit.map(|task| format!(" since task {task} was merged")).unwrap_or_default();
        let why = format!("fails from nothing{since}: {}", reasons.join("; "));
        facts.notes.push(format!("passed over what the base had built, but {why}"));
        if self.task.stage().is_some_and(|stage| stage.brings(false).is_some()) {
            let mending = Mending::FromNothing { culprit };
            facts.tasks.push(self.mending_task(&whole, &failed, mending)?);
        }
        Ok((Outcome::Failed { why }, facts))
    }

    /// Every distinct command of the run and of what is on its branch.
    pub(super) fn commands_of_all(&self) -> Result<Vec<(&'static str, String)>, JobError> {
        let merged = self.merged_work(&self.commit()?)?;
        Ok(self.all_commands(&merged, &self.frame(&merged)?))
    }

    /// The tasks on the run's branch, the oldest first.
    fn merged_work(&self, tip: &Oid) -> Result<Vec<MergedWork>, JobError> {
        let Workshop { hub, repo, .. } = &self.context.workshop;
        let start = self.run_base()?;
        let track = Track {
            run: &self.run.id,
            branch: &self.run.branch,
            start: &start,
            has_begun: true,
            identity: &repo.identity,
            now: 0,
        };
        let merges = blocking(|| track.merge_commits(hub, &start, tip))?;
        let state = self.state()?;
        let mut merged = Vec::new();
        for (name, commit) in merges {
            let Some(task) = state.tasks.iter().find(|task| task.name() == name) else { continue };
            if task.parent.is_none() || task.pipeline.place(Step::Validate).is_none() {
                continue;
            }
            let spec: TaskSpec = self.body(&task.spec.body)?;
            let commands = self.context.config.commands.validation(Some(&spec.commands));
            merged.push(MergedWork { task: name, commit, spec, commands });
        }
        Ok(merged)
    }

    /// The specification of the whole run. Where the run has none, it is what all its tasks allow.
    fn frame(&self, merged: &[MergedWork]) -> Result<TaskSpec, JobError> {
        if !self.task.spec.body.is_empty() {
            return self.spec();
        }
        Ok(common_frame(merged.iter().map(|work| &work.spec)))
    }

    /// Every distinct command of the run and its merged tasks.
    fn all_commands(&self, merged: &[MergedWork], whole: &TaskSpec) -> Vec<(&'static str, String)> {
        let mut commands = match self.task.spec.body.is_empty() && !merged.is_empty() {
            true => Vec::new(),
            false => self.context.config.commands.validation(Some(&whole.commands)),
        };
        for command in merged.iter().flat_map(|work| &work.commands) {
            if !commands.contains(command) {
                commands.push(command.clone());
            }
        }
        self.with_holdout(commands, true)
    }

    /// The first task whose merge makes one of its own commands, or of those before it, fail from
    /// nothing as the tip does; none if nothing was merged.
    async fn first_to_fail<'a>(
        &self,
        merged: &'a [MergedWork],
        failed: &[&CommandCheck],
    ) -> Result<Option<&'a str>, JobError> {
        // Of what is held out no task has a command of its own.
        if failed.iter().all(|check| check.holdout.is_some()) {
            return Ok(None);
        }
        let mut halving = Halving::new(0, merged.len());
        while let Some(at) = halving.next() {
            // The whole has just been seen.
            let passed = at < merged.len() && self.passes_at(&merged[..at], failed).await?;
            if self.cancel.is_asked() {
                return Ok(None);
            }
            halving.saw(at, passed);
        }
        Ok(merged.get(halving.good).map(|work| work.task.as_str()))
    }

    /// Returns whether the commands that failed at the tip pass where only these tasks were merged.
    async fn passes_at(
        &self,
        merged: &[MergedWork],
        failed: &[&CommandCheck],
    ) -> Result<bool, JobError> {
        let Some(last) = merged.last() else { return Ok(true) };
        let is_theirs = |check: &&&CommandCheck| {
            let command = (check.name, check.line.clone());
            merged.iter().any(|work| work.commands.contains(&command))
        };
        let commands = failed.iter().filter(is_theirs);
        let commands = commands.map(|check| (check.name, check.line.clone())).collect();
        let gate = self.checks(&last.commit, commands, Instant::now()).await?;
        let evidence = gate.evidence();
        Ok(self.new_failures(&gate.checks, &evidence)?.reasons.is_empty())
    }
}

/// What all of these specifications allow together: a path that one may change may be changed, unless
/// one of them denies it.
fn common_frame<'a>(specs: impl Iterator<Item = &'a TaskSpec> + Clone) -> TaskSpec {
    let is_bounded = specs.clone().all(|spec| !spec.allowed_paths.is_empty());
    let distinct = |of: fn(&TaskSpec) -> &Vec<String>| {
        let mut all: Vec<String> = Vec::new();
        for text in specs.clone().flat_map(of) {
            if !all.contains(text) {
                all.push(text.clone());
            }
        }
        all
    };
    TaskSpec {
        allowed_paths: if is_bounded { distinct(|spec| &spec.allowed_paths) } else { Vec::new() },
        deny_paths: distinct(|spec| &spec.deny_paths),
        constraints: distinct(|spec| &spec.constraints),
        ..TaskSpec::default()
    }
}
