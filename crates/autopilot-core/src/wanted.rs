//! The attempts that should be alive. Whoever executes them starts the missing and ends the rest;
//! stopping, deleting and running out of money need no other path.

use crate::id::{AttemptId, TaskId};
use crate::pipeline::Work;
use crate::state::{LiveAttempt, State};
use crate::step::Step;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Want {
    pub id: AttemptId,
    pub task: TaskId,
    pub step: Step,
    /// Which of those who can do the step is to do it.
    pub lane: u32,
}

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
