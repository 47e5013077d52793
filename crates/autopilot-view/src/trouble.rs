//! The newest failure in a run, with its log.

use autopilot_core::event::{Outcome, TaskEnd};
use autopilot_core::state::{Shown, State, Task};
use autopilot_core::step::Step;

/// The newest failure in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LastTrouble<'a> {
    pub task: &'a Task,
    /// None if the attempt broke: the state does not keep the step of such an attempt.
    pub step: Option<Step>,
    pub shown: &'a Shown,
}

impl LastTrouble<'_> {
    /// The reason of the failure.
    pub fn why(&self) -> &str {
        crate::why(&self.shown.outcome).unwrap_or_default()
    }
}

/// Returns the newest failure in a run, except of tasks that are done since or left out.
pub fn trouble(state: &State) -> Option<LastTrouble<'_>> {
    let of_task = |task| {
        let failed =
            move |(step, shown): (&Step, _)| LastTrouble { task, step: Some(*step), shown };
        let Task { results, broken, .. } = task;
        let is_bad = |shown: &Shown| {
            matches!(shown.outcome, Outcome::Failed { .. } | Outcome::Misconfigured { .. })
        };
        let failures = results.iter().filter(move |(_, shown)| is_bad(shown)).map(failed);
        failures.chain(broken.iter().map(move |shown| LastTrouble { task, step: None, shown }))
    };
    let is_over = |task: &Task| match task.end() {
        Some(TaskEnd::Closed | TaskEnd::Skipped { .. }) => true,
        Some(TaskEnd::Failed { .. }) | None => false,
    };
    let tasks = state.tasks.iter().filter(|task| !is_over(task));
    let newest = tasks.flat_map(of_task).max_by_key(|trouble| trouble.shown.id)?;
    // What a command showed says more than what a reviewer made of it in the same round.
    let proof = [Step::Validate, Step::Coverage].into_iter().find_map(|step| {
        let shown = newest.task.last(step).filter(|shown| {
            newest.step == Some(Step::Review)
                && shown.round == newest.shown.round
                && shown.outcome.failure().is_some()
        });
        shown.map(|shown| LastTrouble { step: Some(step), shown, ..newest })
    });
    Some(proof.unwrap_or(newest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use autopilot_core::event::Facts;
    use autopilot_core::id::{AttemptId, TaskId, Time};

    fn failed(seq: u64, round: u32) -> Shown {
        let outcome = Outcome::Failed { why: format!("{seq}") };
        let (id, facts) = (AttemptId { seq, place: 0 }, Facts::default());
        Shown { id, round, at: Time(0), outcome, facts }
    }

    #[test]
    fn failing_tests_are_shown_before_a_review_of_the_same_round() {
        let mut task = Task { id: TaskId::ROOT, ..Task::default() };
        task.results.insert(Step::Validate, failed(1, 1));
        task.results.insert(Step::Review, failed(2, 1));
        let mut state = State::default();
        state.tasks.push(task);
        let step = |state: &State| trouble(state).and_then(|trouble| trouble.step);
        assert_eq!(step(&state), Some(Step::Validate));
        state.tasks[0].results.insert(Step::Review, failed(3, 2));
        assert_eq!(step(&state), Some(Step::Review), "another round says something new");
        state.tasks[0].results.insert(Step::Coverage, failed(3, 2));
        assert_eq!(step(&state), Some(Step::Coverage), "what no test covers comes first as well");
        state.tasks[0].status = autopilot_core::state::Status::Settled(TaskEnd::Closed);
        assert_eq!(step(&state), None, "what is done has no trouble");
    }
}
