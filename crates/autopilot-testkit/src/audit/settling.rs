//! Whether a task may end as it does, and what its end and its re-opening do to others.

use super::books::{Books, Entry, Kind, Place};
use super::rule::{Kept, kept};
use autopilot_core::event::{Failure, Outcome, Skip, TaskEnd};
use autopilot_core::id::TaskId;
use autopilot_core::pipeline::Switch;
use autopilot_core::step::Step;

impl Books {
    pub(super) fn settled(&mut self, task: TaskId, end: &TaskEnd) -> Kept {
        let entry = self.entry(task)?.clone();
        let name = &entry.name;
        kept(!entry.place.is_settled(), || format!("I9: {name} settled twice"))?;
        kept(!matches!(entry.place, Place::Running(..)), || format!("I9: {name} still runs"))?;
        match end {
            TaskEnd::Closed if entry.stands => {}
            TaskEnd::Closed => self.may_close(task, &entry)?,
            TaskEnd::Skipped { why: Skip::Asked } => {}
            TaskEnd::Skipped { why: Skip::Blocked { by } | Skip::Stopped { by } } => {
                if entry.kind == Kind::Session {
                    self.is_left_out_rightly(&entry, *by)?;
                }
                let is_around = self.is_around(*by, task);
                kept(entry.place == Place::Open || is_around, || {
                    format!("I9: {name} was blocked at work")
                })?;
            }
            TaskEnd::Skipped { why: Skip::Dropped } => {
                kept(entry.place == Place::Open, || format!("I9: {name} was dropped at work"))?;
                self.may_be_dropped(&entry)?;
            }
            TaskEnd::Failed { why } => self.may_fail(task, &entry, why)?,
        }
        self.focus = self.focus.filter(|focus| *focus != task);
        let settled = self.entry(task)?;
        settled.place = Place::of(end);
        settled.is_continued = false;
        (settled.stood, settled.stands) = (None, false);
        self.forget_the_whole(entry.parent)
    }

    pub(super) fn is_around(&self, above: TaskId, task: TaskId) -> bool {
        let parent = self.tasks[task.index()].parent;
        parent.is_some_and(|parent| parent == above || self.is_around(above, parent))
    }

    /// What was proven of the whole before says nothing of it now.
    pub(super) fn forget_the_whole(&mut self, above: Option<TaskId>) -> Kept {
        let Some(task) = above else { return Ok(()) };
        let entry = self.entry(task)?;
        let of_the_whole = [
            Step::Validate,
            Step::Completion,
            Step::WholeReview,
            Step::UatGenerate,
            Step::Uat,
            Step::Prove,
            Step::ApproveResult,
        ];
        for step in of_the_whole {
            entry.proof.remove(&step);
        }
        let above = entry.parent;
        self.forget_the_whole(above)
    }

    pub(super) fn may_close(&self, task: TaskId, entry: &Entry) -> Kept {
        let name = &entry.name;
        let Some(step) = entry.place.step() else {
            return Err(format!("I9: {name} closed without work"));
        };
        match entry.kind {
            Kind::Paired | Kind::Session => {
                let is_merged = step == Step::Merge && entry.did(Step::Merge);
                kept(is_merged, || format!("I6: {name} is not merged"))?;
                self.is_proven(task, entry.tree.as_deref().unwrap_or_default())
            }
            Kind::Divided => {
                kept(step == Step::Tasks, || format!("I9: {name} closed at {step}"))?;
                self.whole_is_proven(entry)
            }
            Kind::Given | Kind::Planned | Kind::Goal => {
                self.whole_is_proven(entry)?;
                let done = |step| entry.did(step) || entry.left_out(step);
                kept(done(Step::Push) && done(Step::PullRequest), || "I9: not pushed".to_owned())
            }
        }
    }

    pub(super) fn may_fail(&self, task: TaskId, entry: &Entry, why: &Failure) -> Kept {
        let (limits, step) = (&self.limits, entry.place.step());
        let holds = match why {
            Failure::Rounds { .. } => entry.rounds >= limits.rounds_of(entry.parent.is_none()),
            Failure::Rail { .. } => entry.rounds > 0,
            Failure::Broke { step, .. } => {
                let here = entry.broke_here.get(step).copied().unwrap_or(0);
                here > limits.retries_of(*step) || entry.broke > limits.retries_max
            }
            Failure::Interrupted { .. } => entry.interruptions > limits.interruptions_max,
            Failure::Money { .. } => self.is_overspent(task),
            Failure::Refused { .. } => step.is_some_and(|step| {
                let has_a_way_back = match entry.kind {
                    Kind::Paired => true,
                    Kind::Session => step == Step::Merge,
                    Kind::Goal => {
                        matches!(
                            step,
                            Step::Workflow | Step::Validate | Step::Completion | Step::Prove
                        )
                    }
                    Kind::Given | Kind::Planned | Kind::Divided => {
                        matches!(
                            step,
                            Step::ApprovePlan
                                | Step::Validate
                                | Step::WholeReview
                                | Step::Uat
                                | Step::Prove
                        )
                    }
                };
                let said_no = matches!(entry.proof.get(&step), Some((Outcome::Failed { .. }, _)));
                said_no && !has_a_way_back
            }),
            Failure::Misconfigured { step: at, .. } => {
                let ended = entry.proof.get(at);
                step == Some(*at) && matches!(ended, Some((Outcome::Misconfigured { .. }, _)))
            }
            Failure::Children { failed } => {
                let has_failed = |task: &&Entry| task.place == Place::Failed;
                let children = || entry.children.iter().map(|child| &self.tasks[child.index()]);
                entry.kind != Kind::Goal
                    && (entry.kind == Kind::Divided || self.is_last_word_said(entry))
                    && children().all(|task| task.place.is_settled())
                    && children().any(|task| !task.place.satisfies())
                    && children().filter(has_failed).count() as u32 == *failed
            }
        };
        kept(entry.stood.is_none(), || {
            format!("S2: {} was done, and a person's turn took that away ({why})", entry.name)
        })?;
        kept(holds, || format!("I7: {} failed ({why}) before its limit", entry.name))
    }

    /// Whether nothing is on the run's branch that was proven over a seed alone.
    fn is_last_word_said(&self, whole: &Entry) -> bool {
        let is_asked = self.switches.contains(&Switch::ColdProof);
        let is_due = is_asked && self.is_warm && self.merged > 0;
        !is_due || whole.did(Step::Prove) && whole.proven == self.merged
    }

    /// Only a turn that a person asked for, on what was done, fails without its task.
    pub(super) fn turn_failed(&mut self, task: TaskId) -> Kept {
        let entry = self.entry(task)?;
        let Some((tree, proof)) = entry.stood.take() else {
            return Err(format!("S2: nothing of {} stands", entry.name));
        };
        (entry.tree, entry.proof, entry.stands) = (tree, proof, true);
        Ok(())
    }

    pub(super) fn reopened(&mut self, task: TaskId) -> Kept {
        let entry = self.entry(task)?;
        // What is around a task that was left out goes on with it, even if it was closed over it.
        let is_closed = entry.place == Place::Closed && entry.kind == Kind::Paired;
        kept(entry.place.is_settled() && !is_closed, || {
            format!("I9: {} re-opened from {:?}", entry.name, entry.place)
        })?;
        if entry.place == Place::Closed && entry.kind == Kind::Session {
            entry.stood = Some((entry.tree.clone(), entry.proof.clone()));
        }
        entry.place = Place::Open;
        entry.rounds = 0;
        entry.broke = 0;
        entry.broke_here.clear();
        entry.interruptions = 0;
        entry.hindered = 0;
        entry.finished.clear();
        Ok(())
    }
}
