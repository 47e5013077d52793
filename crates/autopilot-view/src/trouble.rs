//! The newest failure in a run, with its log.

use autopilot_core::event::Outcome;
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

/// Returns the newest failure in a run.
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
    state.tasks.iter().flat_map(of_task).max_by_key(|trouble| trouble.shown.id)
}
