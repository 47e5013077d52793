//! The roots of the task and queue flows: prove the base, do the tasks, push if asked.

use crate::pipeline::{Failing, Order, Stage, Switch, When, children, serial, slot};
use crate::step::Step;

pub const ONE_TASK: &[Stage] = &[
    slot(Step::Preflight).when(When::On(Switch::Baseline)),
    children(Step::Tasks, Order::Parallel, Failing::Stop),
    serial(Step::Push).when(When::On(Switch::Push)),
];

/// A task that failed leaves the branch where the last good one put it, so the next can go on.
pub const QUEUE: &[Stage] = &[
    slot(Step::Preflight).when(When::On(Switch::Baseline)),
    children(Step::Tasks, Order::OneByOne, Failing::Independent),
    serial(Step::Push).when(When::On(Switch::Push)),
];
