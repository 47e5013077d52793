//! The indexes beside the tasks.

use super::{Status, Task};
use crate::id::{TaskId, Time};
use crate::pipeline::Work;
use crate::step::Step;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Sets that could be found by looking at every task; kept because there may be 100,000 tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Index {
    /// The tasks at a step for a worker, the most urgent first.
    pub(super) ready: BTreeSet<Rank>,
    /// The tasks at a step for the controller or a person.
    pub(super) ready_aside: BTreeSet<TaskId>,
    /// The started, unfinished tasks that declare the paths they write.
    pub(super) writing: BTreeSet<TaskId>,
    pub(super) waiting: BTreeSet<(Time, TaskId)>,
    pub(super) slots_live: u32,
    pub(super) serial_live: u32,
    pub(super) people_live: u32,
}

/// The urgency of a task: started tasks come first, then those of high priority, then those for
/// which the longest chain of others waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Rank {
    under_way: Reverse<bool>,
    priority: Reverse<i32>,
    urgency: Reverse<u32>,
    pub(super) task: TaskId,
}

impl Index {
    pub(super) fn put(&mut self, task: &Task) {
        match &task.status {
            Status::At { step } => match task.stage().map(|stage| stage.work) {
                Some(Work::Slot) => {
                    self.ready.insert(Rank::of(task, *step));
                }
                Some(Work::Serial | Work::Person) => {
                    self.ready_aside.insert(task.id);
                }
                Some(Work::Children(..) | Work::Decide) | None => {}
            },
            Status::Waiting { until, .. } => {
                self.waiting.insert((*until, task.id));
            }
            Status::Running { .. } => *self.live(task) += 1,
            Status::Open | Status::Settled(_) => {}
        }
        if task.step().is_some() && task.spent.attempts > 0 && task.writes_somewhere() {
            self.writing.insert(task.id);
        }
    }

    pub(super) fn take(&mut self, task: &Task) {
        match &task.status {
            Status::At { step } => {
                self.ready.remove(&Rank::of(task, *step));
                self.ready_aside.remove(&task.id);
            }
            Status::Waiting { until, .. } => {
                self.waiting.remove(&(*until, task.id));
            }
            Status::Running { .. } => *self.live(task) -= 1,
            Status::Open | Status::Settled(_) => {}
        }
        self.writing.remove(&task.id);
    }

    fn live(&mut self, task: &Task) -> &mut u32 {
        match task.stage().map(|stage| stage.work) {
            Some(Work::Serial) => &mut self.serial_live,
            Some(Work::Person) => &mut self.people_live,
            // Nothing else runs; a table that changed since counts as work.
            Some(Work::Slot | Work::Children(..) | Work::Decide) | None => &mut self.slots_live,
        }
    }
}

impl Rank {
    fn of(task: &Task, step: Step) -> Rank {
        Rank {
            under_way: Reverse(task.pipeline.place(step) != Some(0)),
            priority: Reverse(task.spec.priority),
            urgency: Reverse(task.spec.urgency),
            task: task.id,
        }
    }
}
