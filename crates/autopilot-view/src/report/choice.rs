//! The choice of the tasks of a large run for its page: failed and unfinished tasks come first.

use crate::history::PastAttempt;
use autopilot_core::event::TaskEnd;
use autopilot_core::id::TaskId;
use autopilot_core::state::{State, Status, Task};
use std::collections::BTreeSet;

/// The most tasks that a page shows.
pub const TASKS_MAX: usize = 200;
/// The most attempts that a page shows of a task; the last ones are shown.
pub const ATTEMPTS_OF_TASK_MAX: usize = 60;
/// The most remarks that a page shows; the last ones are shown.
pub const REMARKS_MAX: usize = 300;
/// The most agent calls that a page shows.
pub const CALLS_MAX: usize = 1_000;

/// The tasks that are shown, the run itself among them, in order.
#[derive(Clone, Debug, Default)]
pub struct TaskChoice {
    pub tasks: Vec<TaskId>,
    /// The number of tasks that are not shown.
    pub left_out: usize,
}

impl TaskChoice {
    /// Chooses the tasks of a run.
    pub fn of(state: &State) -> TaskChoice {
        let below = || state.tasks.iter().filter(|task| task.parent.is_some());
        let all = below().count();
        let mut ranked: Vec<(u8, TaskId)> = below().map(|task| (rank(task), task.id)).collect();
        ranked.sort_unstable();
        let root = state.root().map(|root| root.id);
        let kept = ranked.into_iter().take(TASKS_MAX).map(|(_, id)| id);
        let tasks: BTreeSet<TaskId> = root.into_iter().chain(kept).collect();
        let left_out = all - tasks.len().saturating_sub(root.iter().count());
        TaskChoice { tasks: tasks.into_iter().collect(), left_out }
    }

    /// Whether a task is shown.
    pub fn has(&self, task: TaskId) -> bool {
        self.tasks.binary_search(&task).is_ok()
    }
}

fn rank(task: &Task) -> u8 {
    match &task.status {
        Status::Settled(TaskEnd::Failed { .. }) => 0,
        Status::Running { .. } | Status::Waiting { .. } => 1,
        Status::At { .. } => 2,
        Status::Settled(TaskEnd::Closed) => 3,
        Status::Settled(TaskEnd::Skipped { .. }) => 4,
        Status::Open => 5,
    }
}

/// The last attempts of a task, and the number of earlier ones.
pub fn attempts(all: &[PastAttempt], task: TaskId) -> (Vec<&PastAttempt>, usize) {
    let own: Vec<&PastAttempt> = all.iter().filter(|tried| tried.task == task).collect();
    let before = own.len().saturating_sub(ATTEMPTS_OF_TASK_MAX);
    (own[before..].to_vec(), before)
}
