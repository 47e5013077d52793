//! Carrying out the requests of people. Only [`super::refusal()`] says whether a request is carried
//! out at all.

use super::RecordDraft;
use super::refusal::blocker;
use crate::event::{Event, Facts, Outcome, Skip, TaskEnd};
use crate::id::TaskId;
use crate::input::Ask;
use crate::pipeline::Work;
use crate::state::Status;

impl RecordDraft<'_> {
    /// Carries out an ask that was not refused.
    pub(super) fn asked(&mut self, ask: Ask) {
        match ask {
            Ask::Halt { why, now } => self.halt(why, now),
            Ask::Resume | Ask::Unpause => self.resume(),
            Ask::Retry { task } => self.on(&task, RecordDraft::retry),
            Ask::Continue { task, words } => {
                self.on(&task, |draft, task| draft.continue_session(task, *words));
            }
            Ask::Skip { task } => self.on(&task, RecordDraft::skip),
            Ask::Approve { by, answer } => self.approve(&by, answer),
            Ask::Reject { by, why } => self.reject(&by, &why),
            Ask::Limit(limits) => {
                self.emit(Event::LimitsChanged { limits, config: None, model: None });
            }
            Ask::Models { limits, config, model } => {
                self.emit(Event::LimitsChanged { limits, config: Some(config), model });
            }
            Ask::Switch { switch, on, by } => self.emit(Event::Switched { switch, on, by }),
        }
    }

    fn on(&mut self, name: &str, act: impl FnOnce(&mut Self, TaskId)) {
        if let Some(task) = self.state.named(name).map(|task| task.id) {
            act(self, task);
        }
    }

    pub(super) fn resume(&mut self) {
        self.emit(Event::Resumed);
        self.free_all();
    }

    fn approve(&mut self, by: &str, answer: Option<String>) {
        let Some((id, _)) = self.state.gate() else { return };
        let notes = vec![format!("approved by {by}")];
        self.end(id, Outcome::Passed, Box::new(Facts { answer, notes, ..Facts::default() }));
    }

    fn reject(&mut self, by: &str, why: &str) {
        let Some((id, _)) = self.state.gate() else { return };
        let why = format!("rejected by {by}: {why}");
        self.end(id, Outcome::Failed { why }, Box::default());
    }

    /// Re-opens a failed or skipped task, the tasks that it blocked, and the run.
    fn retry(&mut self, task: TaskId) {
        let again = self.after_its_last_round(task);
        self.emit(Event::TaskReopened { task });
        self.reopen_blocked(task);
        if task == TaskId::ROOT {
            return match again {
                Some(place) => self.enter(task, place, self.state.task(task).round + 1),
                None => self.reenter(task),
            };
        }
        self.reopen_above(task);
        self.open_siblings(task);
    }

    /// Opens the siblings of a task and of its parents that may start now. In a queue a task waits its
    /// turn, and a task re-opened before the run has reached its tasks waits for that.
    fn open_siblings(&mut self, task: TaskId) {
        let Some(parent) = self.state.task(task).parent else { return };
        match self.state.task(parent).stage().map(|stage| stage.work) {
            Some(Work::Children(order, _)) => self.open_children(parent, order),
            Some(Work::Slot | Work::Serial | Work::Person | Work::Decide) | None => {}
        }
        self.open_siblings(parent);
    }

    pub(super) fn reopen_blocked(&mut self, by: TaskId) {
        for id in 0..self.state.tasks.len() {
            let task = TaskId(id as u32);
            let was_blocked = match self.state.task(task).end() {
                Some(TaskEnd::Skipped {
                    why: Skip::Blocked { by: who } | Skip::Stopped { by: who },
                }) => *who == by,
                Some(TaskEnd::Closed | TaskEnd::Failed { .. } | TaskEnd::Skipped { .. }) | None => {
                    false
                }
            };
            // The same failure may still block the task, or another one.
            let blocker = blocker(self.state, task);
            if was_blocked && blocker != Some(by) {
                self.emit(Event::TaskReopened { task });
                if let Some(by) = blocker {
                    let end = TaskEnd::Skipped { why: Skip::Blocked { by } };
                    self.emit(Event::TaskSettled { task, end });
                }
            }
        }
    }

    fn reopen_above(&mut self, task: TaskId) {
        let Some(parent) = self.state.task(task).parent else { return };
        if !self.state.task(parent).is_settled() {
            return;
        }
        self.emit(Event::TaskReopened { task: parent });
        self.reopen_blocked(parent);
        // Parents first, so that no task continues inside of a parent that has not.
        self.reopen_above(parent);
        let now = self.state.task(parent);
        if let Some(step) = now.pipeline.children() {
            let round = now.round;
            self.emit(Event::TaskMoved { task: parent, step, round });
        }
        self.drop_unbegun(parent);
    }

    /// The stage at which a task continues that lost its last round and has no tasks for the next.
    fn after_its_last_round(&self, task: TaskId) -> Option<usize> {
        let has_next = self.round_with_tasks(task).0 > self.state.task(task).round;
        self.after_a_lost_round(task).filter(|_| !has_next)
    }

    /// The stage at which the next round of a task starts, if the limits of the loop ended the task:
    /// its last round is lost and is not repeated.
    pub(super) fn after_a_lost_round(&self, task: TaskId) -> Option<usize> {
        let now = self.state.task(task);
        let is_lost = match now.end() {
            Some(TaskEnd::Failed { why }) => why.is_no_convergence(),
            Some(TaskEnd::Closed | TaskEnd::Skipped { .. }) | None => false,
        };
        now.pipeline.place(now.pipeline.next().filter(|_| is_lost)?)
    }

    fn skip(&mut self, task: TaskId) {
        match self.state.task(task).status {
            Status::Settled(ref end) => {
                let blocked_by = match end {
                    TaskEnd::Skipped { why: Skip::Blocked { by } } => Some(*by),
                    TaskEnd::Closed | TaskEnd::Failed { .. } | TaskEnd::Skipped { .. } => None,
                };
                self.emit(Event::TaskReopened { task });
                self.reopen_blocked(task);
                // Dependants that reach the failure through this task alone need not wait for it.
                if let Some(by) = blocked_by {
                    self.reopen_blocked(by);
                }
                self.reopen_above(task);
            }
            Status::Running { .. } => self.revoke(task),
            Status::Open | Status::At { .. } | Status::Waiting { .. } => {}
        }
        self.settle(task, TaskEnd::Skipped { why: Skip::Asked });
        self.stop_below(task, task);
        // What was re-opened with it need not depend on it.
        self.open_siblings(task);
    }

    /// Ends the children of a skipped task. Each one names the task that stopped it, so that it
    /// continues when that task is re-opened.
    fn stop_below(&mut self, task: TaskId, by: TaskId) {
        for child in self.state.task(task).children.clone() {
            if self.state.task(child).is_settled() {
                continue;
            }
            self.revoke(child);
            let end = TaskEnd::Skipped { why: Skip::Stopped { by } };
            self.emit(Event::TaskSettled { task: child, end });
            self.stop_below(child, by);
        }
    }

    fn revoke(&mut self, task: TaskId) {
        if let Status::Running { step, attempt } = self.state.task(task).status {
            let (outcome, facts) = (Outcome::Revoked, Box::default());
            self.emit(Event::AttemptEnded { id: attempt, task, step, outcome, facts });
        }
    }
}
