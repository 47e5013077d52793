//! The consequences of an attempt's end: each outcome spends its own limit.

use super::RecordDraft;
use crate::event::{Failure, Outcome, TaskEntry};
use crate::flow::{Pipeline, RoundReason};
use crate::id::TaskId;
use crate::pipeline::Else;
use crate::step::Step;
use std::collections::BTreeSet;

impl RecordDraft<'_> {
    pub(super) fn follow(&mut self, task: TaskId, step: Step, outcome: Outcome) {
        match outcome {
            Outcome::Passed | Outcome::Skipped { .. } => self.advance(task),
            Outcome::Failed { why } => self.failed(task, step, why),
            Outcome::Misconfigured { why } => {
                self.fail(task, Failure::Misconfigured { step, why });
            }
            Outcome::Broke { why } => self.broke(task, step, why),
            Outcome::Lost => self.lost(task),
            // The account is held; the task stays at its step, and the scheduler finds another agent
            // or lets it wait.
            Outcome::Quota { .. } | Outcome::Away { .. } => {}
            // The task stays at its step and is started again when the run is resumed.
            Outcome::Revoked => {}
        }
    }

    /// Turns the outcome into a broken one if the attempt should bring tasks and brings none, brings
    /// known ones, or brings tasks that can't be put in order.
    pub(super) fn as_brought(
        &self,
        task: TaskId,
        outcome: Outcome,
        brought: &[TaskEntry],
    ) -> Outcome {
        if self.brings(task, &outcome).is_none() {
            return outcome;
        }
        let stage = self.state.task(task).stage();
        let passed = outcome == Outcome::Passed;
        if brought.is_empty() && stage.is_some_and(|stage| stage.may_bring_none(passed)) {
            return outcome;
        }
        if brought.is_empty() {
            return Outcome::Broke { why: "it returned no tasks".to_owned() };
        }
        let mut names = BTreeSet::new();
        for spec in brought {
            if self.state.named(&spec.name).is_some() || !names.insert(&spec.name) {
                let why = format!("it returned task {}, which already exists", spec.name);
                return Outcome::Broke { why };
            }
            // A dependency that is not known yet would not be waited for.
            let is_known = |need: &&String| {
                names.contains(need) && **need != spec.name || self.state.named(need).is_some()
            };
            if let Some(need) = spec.depends_on.iter().find(|need| !is_known(need)) {
                let why = format!("it returned task {} before {need}, which it needs", spec.name);
                return Outcome::Broke { why };
            }
            // A failed or skipped dependency would be waited for without end.
            let is_gone = |need: &&String| {
                self.state.named(need).is_some_and(|need| self.state.is_dead_end(need.id))
            };
            if let Some(need) = spec.depends_on.iter().find(is_gone) {
                let why =
                    format!("it returned task {}, which needs {need}, which failed", spec.name);
                return Outcome::Broke { why };
            }
        }
        outcome
    }

    pub(super) fn spawn(&mut self, task: TaskId, outcome: &Outcome, brought: Vec<TaskEntry>) {
        let Some(pipeline) = self.brings(task, outcome) else { return };
        for spec in brought {
            self.add(Some(task), pipeline.of(&spec), spec);
        }
    }

    /// The pipeline of the tasks that come with this end of the stage a task is at.
    fn brings(&self, task: TaskId, outcome: &Outcome) -> Option<Pipeline> {
        let stage = self.state.task(task).stage()?;
        match outcome {
            Outcome::Passed => stage.brings(true),
            Outcome::Failed { .. } => stage.brings(false),
            Outcome::Misconfigured { .. }
            | Outcome::Broke { .. }
            | Outcome::Lost
            | Outcome::Quota { .. }
            | Outcome::Away { .. }
            | Outcome::Revoked
            | Outcome::Skipped { .. } => None,
        }
    }

    fn failed(&mut self, task: TaskId, step: Step, why: String) {
        let Some(stage) = self.state.task(task).stage() else { return };
        match stage.fails {
            Else::Note => self.advance(task),
            Else::Fail => self.fail(task, Failure::Refused { step, why }),
            Else::Again(again) => {
                self.next_round(task, vec![RoundReason { step, text: why }], again);
            }
            // Only the tasks that it brought can be unsettled here.
            Else::Next { again, .. } if self.state.task(task).unsettled == 0 => {
                self.next_round(task, vec![RoundReason { step, text: why }], again);
            }
            Else::FixBy(_) | Else::Next { .. } => {
                let Some(again) = self.state.task(task).pipeline.children() else { return };
                self.next_round(task, vec![RoundReason { step, text: why }], again);
            }
        }
    }

    fn broke(&mut self, task: TaskId, step: Step, why: String) {
        let limits = &self.state.run.limits;
        let spent = &self.state.task(task).spent;
        let here = spent.retries.get(&step).copied().unwrap_or(0);
        if here > limits.retries_of(step) || spent.retries_all > limits.retries_max {
            self.fail(task, Failure::Broke { step, why });
        }
    }

    fn lost(&mut self, task: TaskId) {
        let times = self.state.task(task).spent.interruptions;
        if times > self.state.run.limits.interruptions_max {
            self.fail(task, Failure::Interrupted { times });
        }
    }
}
