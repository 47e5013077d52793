//! Going on with the session of a step, because a person asks: what they say is the next attempt's
//! prompt, and its answer takes the place of the step's result.
//!
//! The run does nothing else meanwhile and rests afterwards. Where its tasks were weighed already
//! it stands after that as if they had just ended.

#[cfg(test)]
mod tests;

use super::RecordDraft;
use crate::event::{Event, SessionPrompt, Skip, TaskEnd};
use crate::id::TaskId;
use crate::state::Status;

impl RecordDraft<'_> {
    pub(super) fn go_on_with(&mut self, task: TaskId, words: SessionPrompt) {
        let Some(step) = self.state.task(task).pipeline.continues_at() else { return };
        let is_halted = self.state.run.halt.is_some();
        let known = self.state.task(task).words.clone();
        let known = known.filter(|known| known.say_the_same_as(&words));
        if is_halted {
            self.go_on();
        }
        if let Some(words) = known {
            return self.emit(Event::TaskContinued { task, words: Box::new(words) });
        }
        let now = self.state.task(task);
        // Of work there is already this is the next round.
        let round = now.round + u32::from(now.is_settled() && now.tree.is_some());
        self.open_again(task);
        self.emit(Event::TaskContinued { task, words: Box::new(words) });
        self.emit(Event::TaskMoved { task, step, round });
    }

    /// The step, what waits for it, and the run around it, as far as they are of one round. Of an
    /// earlier one only the step itself: what followed from it has happened.
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
            self.emit(Event::TaskReopened { task: parent });
            self.stand_at_tasks(parent);
        } else if above.is_past_children() {
            // What was proven of the whole says nothing of it once this is in.
            self.wake(parent);
            self.stand_at_tasks(parent);
        }
        if was_settled && is_of_this_round {
            self.reopen_blocked(task);
        }
    }

    /// Where the tasks of this round are worked on, without going on from there.
    fn stand_at_tasks(&mut self, task: TaskId) {
        self.drop_unbegun(task);
        let now = self.state.task(task);
        let (round, has_tasks) = (now.round, self.has_tasks_of(task, now.round));
        match now.pipeline.children().filter(|_| has_tasks) {
            Some(step) => self.emit(Event::TaskMoved { task, step, round }),
            // There is none yet: it goes on where they are made.
            None => self.reenter(task),
        }
    }

    /// Leaves out what was brought for a round that was never begun: the one before it is judged
    /// once more, and what follows then is for whoever judges it to say.
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

    fn wake(&mut self, task: TaskId) {
        if matches!(self.state.task(task).status, Status::Waiting { .. }) {
            self.emit(Event::WaitEnded { task });
        }
    }
}
