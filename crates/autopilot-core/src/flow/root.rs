//! The roots of the task and queue flows: prove the base, do the tasks, push if asked.

use super::{FlowFiles, FlowInput, FlowRow, Pipeline, paired};
use crate::pipeline::{
    ChildOrder, Else, Failing, Sparing, Stage, Switch, When, children, person, serial, slot,
};
use crate::step::Step;

/// The row of the task flow.
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

/// The row of the queue flow.
pub const QUEUE_FLOW: FlowRow = FlowRow { word: "queue", root: Pipeline::Queue, ..TASK_FLOW };

/// The last word on what is on the run's branch. What fails from nothing is repaired by a task.
pub const PROVE: Stage = slot(Step::Prove)
    .when(When::Silently(Switch::ColdProof))
    .spared(Sparing::AllCold)
    .fails(Else::FixBy(Pipeline::Paired));

/// The stages of a run of one or more tasks.
pub const ONE_TASK: &[Stage] = &[
    slot(Step::Preflight).when(When::On(Switch::Baseline)),
    children(Step::Tasks, ChildOrder::Parallel, Failing::Stop),
    PROVE,
    person(Step::ApproveResult).when(When::On(Switch::EndGate)),
    serial(Step::Push).when(When::On(Switch::Push)),
    serial(Step::PullRequest).when(When::On(Switch::Pr)),
];

/// The stages of a queue. A failed task leaves the branch at the last good one, so the next can run.
pub const QUEUE: &[Stage] = &[
    slot(Step::Preflight).when(When::On(Switch::Baseline)),
    children(Step::Tasks, ChildOrder::OneByOne, Failing::Independent),
    PROVE,
    person(Step::ApproveResult).when(When::On(Switch::EndGate)),
    serial(Step::Push).when(When::On(Switch::Push)),
    serial(Step::PullRequest).when(When::On(Switch::Pr)),
];
