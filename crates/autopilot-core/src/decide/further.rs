//! Going on with the session of a step, because a person asks: what they say is the next attempt's
//! prompt, and its answer takes the place of the step's result.
//!
//! The run does nothing else meanwhile and rests afterwards. Where its tasks were weighed already
//! it stands after that as if they had just ended.

#[cfg(test)]
mod tests;

use super::Draft;
use crate::event::{End, Event, Skip, Words};
use crate::id::TaskId;
use crate::pipeline::Work;
use crate::state::{State, Status, Task};
use std::fmt;

/// Why a step can't be gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// Nothing of the kind is in its table.
    NotAStep,
    NeverBegun,
    AtWork,
    /// Its work is about to be merged.
    Merging,
    /// The run has been found good and is about to be shown to people or to leave the machine.
    Publishing,
    /// All rounds it, or the run, may ever have are used up.
    Lifetime,
    /// It has spent what one task may.
    Money,
}

impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Hindrance::NotAStep => "it is not a step of a workflow",
            Hindrance::NeverBegun => "it was not begun",
            Hindrance::AtWork => "it is being worked on",
            Hindrance::Merging => "its work is about to be merged",
            Hindrance::Publishing => "the result of the run is about to be approved or published",
            Hindrance::Lifetime => "all the rounds there may ever be are used up",
            Hindrance::Money => "it has spent what one task may",
        })
    }
}

/// None: it can be gone on with.
pub fn hindrance(state: &State, task: TaskId) -> Option<Hindrance> {
    let now = state.task(task);
    let above = now.parent.map(|parent| state.task(parent));
    let Some(above) = above.filter(|_| now.pipeline.continues_at().is_some()) else {
        return Some(Hindrance::NotAStep);
    };
    let lifetime_max = state.run.limits.rounds_lifetime_max;
    let max = state.run.limits.usd_per_task_max;
    let is_spent = max.is_some_and(|max| now.spent.bill.usd >= max);
    let is_worn = |task: &Task| task.spent.rounds_lived >= lifetime_max;
    own(now).or_else(|| around(above)).or(if is_worn(now) || above.is_settled() && is_worn(above) {
        Some(Hindrance::Lifetime)
    } else if is_spent {
        Some(Hindrance::Money)
    } else {
        None
    })
}

fn own(now: &Task) -> Option<Hindrance> {
    if now.spent.attempts == 0 {
        return Some(Hindrance::NeverBegun);
    }
    match &now.status {
        Status::Settled(End::Closed | End::Failed { .. } | End::Skipped { why: Skip::Asked }) => {
            None
        }
        Status::Settled(End::Skipped {
            why: Skip::Blocked { .. } | Skip::Stopped { .. } | Skip::Dropped,
        })
        | Status::Open => Some(Hindrance::NeverBegun),
        Status::Running { .. } => Some(Hindrance::AtWork),
        Status::At { .. } | Status::Waiting { .. } => {
            let is_work = now.stage().is_some_and(|stage| stage.work == Work::Slot);
            (!is_work).then_some(Hindrance::Merging)
        }
    }
}

fn around(above: &Task) -> Option<Hindrance> {
    let is_running = matches!(above.status, Status::Running { .. });
    match above.stage().map(|stage| stage.work) {
        Some(Work::Serial | Work::Person) => Some(Hindrance::Publishing),
        Some(Work::Slot | Work::Decide | Work::Children(..)) | None => {
            is_running.then_some(Hindrance::AtWork)
        }
    }
}

impl Draft<'_> {
    pub(super) fn go_on_with(&mut self, name: &str, words: Words) {
        let Some(task) = self.state.named(name).map(|task| task.id) else { return };
        let Some(step) = self.state.task(task).pipeline.continues_at() else { return };
        if hindrance(self.state, task).is_some() {
            return;
        }
        let is_halted = self.state.run.halt.is_some();
        let known = self.state.task(task).words.clone();
        let known = known.filter(|known| known.say_the_same_as(&words));
        if known.is_some() && !is_halted && self.state.run.focus == Some(task) {
            return;
        }
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
                let end = End::Skipped { why: Skip::Dropped };
                self.emit(Event::TaskSettled { task: child, end });
            }
        }
    }

    /// The round a task that is opened again goes on in, and whether there are tasks for it. Those
    /// that were brought for the next one begin it.
    pub(super) fn round_with_tasks(&self, task: TaskId) -> (u32, bool) {
        let now = self.state.task(task);
        if !now.pipeline.has_tasks_by_round() {
            return (now.round, !now.children.is_empty());
        }
        let is_next = |child: &TaskId| {
            let child = self.state.task(*child);
            child.of_round > now.round && !child.is_settled()
        };
        if now.children.iter().any(is_next) {
            return (now.round + 1, true);
        }
        (now.round, self.has_tasks_of(task, now.round))
    }

    fn has_tasks_of(&self, task: TaskId, round: u32) -> bool {
        let mut children = self.state.task(task).children.iter();
        children.any(|child| self.state.task(*child).of_round == round)
    }

    fn wake(&mut self, task: TaskId) {
        if matches!(self.state.task(task).status, Status::Waiting { .. }) {
            self.emit(Event::WaitEnded { task });
        }
    }
}
