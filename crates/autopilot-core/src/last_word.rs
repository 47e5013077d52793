//! When the last word on a run can be prepared: a tree that becomes the result if its review approves
//! is proven from nothing beside the review.

use crate::event::Outcome;
use crate::pipeline::Switch;
use crate::state::{State, Task};
use crate::step::Step;

/// Whether the run's result will be exactly what this task has built, if it is approved: all other
/// tasks have ended, the branch has not moved since the task began, and a proof from nothing is due.
pub fn is_near(state: &State, task: &Task) -> bool {
    let run = &state.run;
    let is_due = run.switches.contains(&Switch::ColdProof);
    let is_warm = task
        .shown(Step::Validate)
        .is_some_and(|shown| shown.outcome == Outcome::Passed && shown.facts.warm);
    let tip = run.tip.as_ref().unwrap_or(&run.base);
    let is_on_top = task.base.as_ref() == Some(tip);
    is_due && is_warm && is_on_top && others(state, task).all(Task::is_settled)
}

/// The tasks besides this one and those that it is a part of.
fn others<'a>(state: &'a State, task: &'a Task) -> impl Iterator<Item = &'a Task> {
    let mut above = vec![task.id];
    let mut parent = task.parent;
    while let Some(id) = parent {
        above.push(id);
        parent = state.task(id).parent;
    }
    state.tasks.iter().filter(move |other| !above.contains(&other.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Facts, TaskEnd};
    use crate::id::{AttemptId, TaskId, Time};
    use crate::state::{Shown, Status};

    /// A run with one task under review, whose validation was warm, and one that has ended.
    fn state() -> State {
        let mut state = State::default();
        state.run.switches.insert(Switch::ColdProof);
        state.run.base = "base".to_owned();
        state.run.tip = Some("tip".to_owned());
        let child = |id| Task { id: TaskId(id), parent: Some(TaskId::ROOT), ..Task::default() };
        let facts = Facts { warm: true, ..Facts::default() };
        let (id, outcome) = (AttemptId { seq: 1, place: 0 }, Outcome::Passed);
        let shown = Shown { id, round: 1, at: Time(0), outcome, facts };
        let reviewed = Task {
            base: Some("tip".to_owned()),
            round: 1,
            results: [(Step::Validate, shown)].into(),
            ..child(1)
        };
        let ended = Task { status: Status::Settled(TaskEnd::Closed), ..child(2) };
        state.tasks = vec![Task { id: TaskId::ROOT, ..Task::default() }, reviewed, ended];
        state
    }

    fn after(change: impl FnOnce(&mut State)) -> bool {
        let mut state = state();
        change(&mut state);
        is_near(&state, &state.tasks[1])
    }

    #[test]
    fn only_a_warm_tree_that_will_be_the_result_is_proven_ahead() {
        assert!(after(|_| {}));
        assert!(!after(|state| state.run.switches.clear()), "no last word is due");
        assert!(!after(|state| state.run.tip = Some("other".to_owned())), "the branch has moved");
        assert!(!after(|state| state.run.tip = None), "the task began elsewhere");
        assert!(!after(|state| state.tasks[2].status = Status::Open), "another task is to come");
        assert!(!after(|state| state.tasks[1].round = 2), "the validation is of an earlier round");
        let cold = |state: &mut State| {
            state.tasks[1].results.values_mut().for_each(|shown| shown.facts.warm = false);
        };
        assert!(!after(cold), "it is proven from nothing already");
    }
}
