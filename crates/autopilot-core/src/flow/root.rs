//! The roots of the task and queue flows: prove the base, do the tasks, push if asked.

use super::{FlowFiles, FlowInput, FlowRow, Pipeline, paired};
use crate::pipeline::{ChildOrder, Failing, Stage, Switch, When, children, person, serial, slot};
use crate::step::Step;

pub const TASK_FLOW: FlowRow = FlowRow {
    word: "task",
    root: Pipeline::OneTask,
    task: Pipeline::Paired,
    input: FlowInput::TaskFiles,
    needs_tests: true,
    iterations_max: None,
    files: FlowFiles::None,
    worker_words: paired::WORKER_WORDS,
};

pub const QUEUE_FLOW: FlowRow = FlowRow { word: "queue", root: Pipeline::Queue, ..TASK_FLOW };

pub const ONE_TASK: &[Stage] = &[
    slot(Step::Preflight).when(When::On(Switch::Baseline)),
    children(Step::Tasks, ChildOrder::Parallel, Failing::Stop),
    person(Step::ApproveResult).when(When::On(Switch::EndGate)),
    serial(Step::Push).when(When::On(Switch::Push)),
    serial(Step::PullRequest).when(When::On(Switch::Pr)),
];

/// A task that failed leaves the branch where the last good one put it, so the next can go on.
pub const QUEUE: &[Stage] = &[
    slot(Step::Preflight).when(When::On(Switch::Baseline)),
    children(Step::Tasks, ChildOrder::OneByOne, Failing::Independent),
    person(Step::ApproveResult).when(When::On(Switch::EndGate)),
    serial(Step::Push).when(When::On(Switch::Push)),
    serial(Step::PullRequest).when(When::On(Switch::Pr)),
];
