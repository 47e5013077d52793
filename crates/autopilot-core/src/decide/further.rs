//! Continuing the session of a step at a person's request: the person's prompt is that of the next
//! attempt, and its answer replaces the step's result.
//!
//! The run does nothing else meanwhile and halts afterwards. If its tasks were judged already, the
//! run then stands as if they had just ended.

#[cfg(test)]
mod tests;

use super::RecordDraft;
use crate::event::{Event, HaltWhy, SessionPrompt, Skip, TaskEnd};
use crate::id::TaskId;
use crate::state::{Status, Task};

impl RecordDraft<'_> {
    /// Continues a task's session with a person's prompt.
    pub(super) fn continue_session(&mut self, task: TaskId, words: SessionPrompt) {
        let Some(step) = self.state.task(task).pipeline.continues_at() else { return };
        let is_halted = self.state.run.halt.is_some();
        let known = self.state.task(task).words.clone();
        let known = known.filter(|known| known.say_the_same_as(&words));
        if is_halted {
            self.resume();
        }
        if let Some(words) = known {
            return self.emit(Event::TaskContinued { task, words: Box::new(words) });
        }
        let now = self.state.task(task);
        // If the task has work already, this is its next round.
        let round = now.round + u32::from(now.is_settled() && now.tree.is_some());
        self.open_again(task);
        self.emit(Event::TaskContinued { task, words: Box::new(words) });
        self.emit(Event::TaskMoved { task, step, round });
    }

    /// Re-opens the step, its dependants and the run, if they are of the current round. Of an earlier
    /// round only the step itself is re-opened: what followed from it has happened.
    fn open_again(&mut self, task: TaskId) {
        self.wake(task);
        let was_settled = self.state.task(task).is_settled();
        if was_settled {
            self.emit(Event::TaskReopened { task });
        }
        let now = self.state.task(task);
        let Some(parent) = now.parent else { return };
        let above = self.state.task(parent);
        let is_of_this_round = now.of_round == above.round;
        if above.is_settled() {
            self.reopen_around(parent);
        } else if above.is_past_children() {
            // The validation of the whole no longer holds once this change is in.
            self.wake(parent);
            self.stand_at_tasks(parent);
        }
        if was_settled && is_of_this_round {
            self.reopen_blocked(task);
        }
    }

    /// Re-opens the task around a step, so that its round is judged again. A round that had neither
    /// tasks nor a judgement continues where tasks are made; if it is lost, the next round does.
    fn reopen_around(&mut self, task: TaskId) {
        let now = self.state.task(task);
        let next = self.after_a_lost_round(task).map(|place| (place, now.round + 1));
        let has_results = self.has_tasks_of(task, now.round) || now.has_judged_its_children();
        self.emit(Event::TaskReopened { task });
        match next {
            _ if has_results => self.stand_at_tasks(task),
            Some((place, round)) => self.enter(task, place, round),
            None => self.reenter(task),
        }
    }

    /// Moves a task to the stage of its children, without advancing from there.
    fn stand_at_tasks(&mut self, task: TaskId) {
        self.drop_unbegun(task);
        let now = self.state.task(task);
        if let Some(step) = now.pipeline.children() {
            let round = now.round;
            self.emit(Event::TaskMoved { task, step, round });
        }
    }

    /// Skips the tasks of a round that never started: the round before it is judged again, and that
    /// judgement brings the tasks of the next one.
    pub(super) fn drop_unbegun(&mut self, parent: TaskId) {
        let above = self.state.task(parent);
        if !above.pipeline.has_tasks_by_round() {
            return;
        }
        let round = above.round;
        for child in above.children.clone() {
            let now = self.state.task(child);
            if now.of_round > round && now.status == Status::Open {
                let end = TaskEnd::Skipped { why: Skip::Dropped };
                self.emit(Event::TaskSettled { task: child, end });
            }
        }
    }

    /// Ends a turn that a person asked for without a result: the task is done as it was before.
    pub(super) fn end_turn(&mut self, task: TaskId, why: String) {
        self.emit(Event::TurnFailed { task, why });
        self.settle(task, TaskEnd::Closed);
    }

    /// The turn that a halt of the run ends, and the reason.
    pub(super) fn turn_ended_by(&self, halt: &HaltWhy) -> Option<(TaskId, String)> {
        let stands = |task: &&Task| task.talk.stands.is_some() && !task.is_at_an_effect();
        let task = self.state.tasks.iter().find(stands).filter(|_| halt.ends_a_turn())?;
        Some((task.id, halt.to_string()))
    }

    fn wake(&mut self, task: TaskId) {
        if matches!(self.state.task(task).status, Status::Waiting { .. }) {
            self.emit(Event::WaitEnded { task });
        }
    }
}
