//! What follows from the end of an attempt: each outcome spends its own limit.

use super::Draft;
use crate::event::{Event, Failure, HaltWhy, Outcome};
use crate::flow::Reason;
use crate::id::{TaskId, Time};
use crate::pipeline::Else;
use crate::step::Step;

impl Draft<'_> {
    pub(super) fn follow(&mut self, task: TaskId, step: Step, outcome: Outcome) {
        match outcome {
            Outcome::Passed | Outcome::Skipped { .. } => self.advance(task),
            Outcome::Failed { why } => self.failed(task, step, why),
            Outcome::Broke { why } => self.broke(task, step, why),
            Outcome::Lost => self.lost(task),
            Outcome::Quota { until } => self.wait(task, step, until),
            // It stays at its step and is started again when the run goes on.
            Outcome::Revoked => {}
        }
    }

    fn failed(&mut self, task: TaskId, step: Step, why: String) {
        let Some(stage) = self.state.task(task).stage() else { return };
        match stage.fails {
            Else::Note => self.advance(task),
            Else::Fail => self.fail(task, Failure::Refused { step, why }),
            Else::Again(again) => {
                self.next_round(task, vec![Reason { step, text: why }], again);
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

    fn wait(&mut self, task: TaskId, step: Step, until: Time) {
        let waited = self.state.task(task).spent.waited_ms + until.since_ms(self.now);
        if waited > self.state.run.limits.wait_quota_max_ms {
            self.halt(HaltWhy::Quota { until }, false);
        } else {
            self.emit(Event::WaitBegan { task, step, until });
        }
    }
}
