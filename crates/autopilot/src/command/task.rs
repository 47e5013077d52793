//! `autopilot retry` and `skip`: requests about one task, to the running process or by resuming the
//! run.

use super::{ask, work};
use crate::cli::{Global, OneTask, Retry};
use crate::exit::CommandFailure;
use autopilot_core::input::Ask;
use autopilot_engine::inbox::LimitChange;
use autopilot_engine::place::StatePaths;
use autopilot_engine::query::QueryError;

/// Retries a failed task, or the run.
pub fn retry(global: &Global, args: &Retry) -> super::Done {
    // An empty name stands for the run itself.
    let task = args.task.clone().unwrap_or_default();
    let limits = work::limits(&args.limits)?;
    ask::say(global, &place(global)?, limits, Ask::Retry { task }, args.wait)
}

/// Leaves a task out.
pub fn skip(global: &Global, args: &OneTask) -> super::Done {
    let asked = Ask::Skip { task: args.task.clone() };
    ask::say(global, &place(global)?, LimitChange::default(), asked, args.wait)
}

fn place(global: &Global) -> Result<StatePaths, CommandFailure> {
    let (place, known) = super::place_of_runs(global)?;
    known.then_some(place).ok_or_else(|| QueryError::NoRunYet.into())
}
