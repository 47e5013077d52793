//! The attempts that should be alive. The engine starts the missing ones and ends the others, so
//! stopping, deleting and running out of money need no other path.

use crate::id::{AttemptId, TaskId};
use crate::pipeline::Work;
use crate::state::{LiveAttempt, State};
use crate::step::Step;

/// An attempt that should be alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Want {
    pub id: AttemptId,
    pub task: TaskId,
    pub step: Step,
    /// The index of the agent in the step's list of agents.
    pub lane: u32,
}

/// Returns the attempts that should be alive; none after a stop that ends everything at once.
pub fn wanted(state: &State) -> Vec<Want> {
    if state.run.halt.as_ref().is_some_and(|halt| halt.now) {
        return Vec::new();
    }
    let somebody_does = |live: &LiveAttempt| {
        state.task(live.task).stage().is_none_or(|stage| stage.work != Work::Person)
    };
    let live = state.live.iter().filter(|(_, live)| somebody_does(live));
    let want = |(id, live): (&AttemptId, &LiveAttempt)| {
        let LiveAttempt { task, step, lane, .. } = *live;
        Want { id: *id, task, step, lane }
    };
    live.map(want).collect()
}
