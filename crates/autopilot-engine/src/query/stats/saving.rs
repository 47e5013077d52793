//! What the switches that spare stages would have saved: reviews after failed tests, and acceptance
//! cases that nothing ran.

use autopilot_core::event::{Bill, Event, Record};
use autopilot_core::id::{AttemptId, Micros, TaskId};
use autopilot_core::pipeline::Switch;
use autopilot_core::state::State;
use autopilot_core::step::Step;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Attempts that would not have been made, and their cost as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SparedAttempts {
    pub attempts: usize,
    pub cost: Micros,
}

/// The attempts that each switch would have saved.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Savings {
    /// With `loop.review_on_red: false`.
    pub reviews: SparedAttempts,
    /// With `uat.generate: auto`.
    pub cases: SparedAttempts,
}

/// The savings as `runs --stats --json` prints them.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SavingFigures {
    pub review_on_red: SparedFigures,
    pub uat_generate: SparedFigures,
}

/// Attempts and dollars.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SparedFigures {
    pub attempts: usize,
    pub cost_usd: f64,
}

impl Savings {
    /// The figures in dollars.
    pub fn figures(&self) -> SavingFigures {
        let of = |spared: SparedAttempts| SparedFigures {
            attempts: spared.attempts,
            cost_usd: spared.cost.usd(),
        };
        SavingFigures { review_on_red: of(self.reviews), uat_generate: of(self.cases) }
    }
}

/// Reads the records of one run.
#[derive(Default)]
pub(super) struct SavingReader {
    /// The tasks whose validation failed in the round they are in.
    red: BTreeSet<TaskId>,
    reviews: BTreeSet<AttemptId>,
    cases: BTreeMap<AttemptId, TaskId>,
    bills: BTreeMap<AttemptId, Bill>,
}

impl SavingReader {
    #[expect(clippy::wildcard_enum_match_arm, reason = "other events spare nothing")]
    pub(super) fn hear(&mut self, record: &Record) {
        for (id, event) in record.numbered() {
            match event {
                Event::TaskMoved { task, step: Step::Build | Step::Fix, .. } => {
                    self.red.remove(task);
                }
                Event::AttemptEnded { task, step: Step::Validate, outcome, .. } => {
                    match outcome.failure() {
                        Some(_) => self.red.insert(*task),
                        None => self.red.remove(task),
                    };
                }
                Event::AttemptStarted { task, step: Step::Review, .. }
                    if self.red.contains(task) =>
                {
                    self.reviews.insert(id);
                }
                Event::AttemptStarted { task, step: Step::UatGenerate, .. } => {
                    self.cases.insert(id, *task);
                }
                Event::Billed { id, bill, .. } => {
                    let known = self.bills.entry(*id).or_default();
                    *known = known.max(*bill);
                }
                _ => {}
            }
        }
    }

    /// Adds what this run would have saved.
    pub(super) fn add_to(&self, savings: &mut Savings, state: &State) {
        let is_run = |task: &TaskId| state.is_on(Switch::Uat, state.task(*task));
        let cases = self.cases.iter().filter(|(_, task)| !is_run(task)).map(|(id, _)| id);
        self.sum(&mut savings.cases, cases);
        self.sum(&mut savings.reviews, self.reviews.iter());
    }

    fn sum<'a>(&self, spared: &mut SparedAttempts, ids: impl Iterator<Item = &'a AttemptId>) {
        for id in ids {
            spared.attempts += 1;
            let cost = self.bills.get(id).map(|bill| bill.usd).unwrap_or_default();
            spared.cost = spared.cost.plus(cost);
        }
    }
}
