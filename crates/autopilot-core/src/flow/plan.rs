//! The plan flow: a planner divides the work, the tasks are done side by side, and the whole is
//! proven once more before it leaves the machine.

use super::root::PROVE;
use super::{FlowFiles, FlowInput, FlowRow, Pipeline, paired};
use crate::pipeline::{
    ChildOrder, Else, Failing, Sparing, Stage, Switch, When, children, person, serial, slot,
};
use crate::step::Step;

/// The row of the plan flow.
pub const FLOW: FlowRow = FlowRow {
    word: "plan",
    root: Pipeline::Plan,
    task: Pipeline::Paired,
    input: FlowInput::PlanFile,
    needs_tests: true,
    iterations_max: None,
    files: FlowFiles::Plan,
    worker_words: paired::WORKER_WORDS,
};

/// The stages of a planned run.
pub const PLAN: &[Stage] = &[
    slot(Step::Preflight).when(When::On(Switch::Baseline)),
    slot(Step::Plan),
    person(Step::ApprovePlan).when(When::On(Switch::PlanGate)).fails(Else::Again(Step::Plan)),
    serial(Step::Schedule).spawns(Pipeline::Paired),
    children(Step::Tasks, ChildOrder::Parallel, Failing::Independent),
    slot(Step::Validate).fails(Else::FixBy(Pipeline::Paired)),
    slot(Step::WholeReview)
        .when(When::Silently(Switch::WholeReview))
        .spared(Sparing::Waived(Switch::Review))
        .fails(Else::FixBy(Pipeline::Paired)),
    slot(Step::UatGenerate).spared(Sparing::Without(Switch::SpareCases, Switch::Uat)),
    slot(Step::Uat).when(When::On(Switch::Uat)).fails(Else::FixBy(Pipeline::Paired)),
    PROVE,
    person(Step::ApproveResult).when(When::On(Switch::EndGate)),
    serial(Step::Push).when(When::On(Switch::Push)),
    serial(Step::PullRequest).when(When::On(Switch::Pr)),
];

/// The stages of a task too large to be planned with the rest: it is divided into tasks when its
/// turn comes, and its dependants wait for all of them.
pub const EXPAND: &[Stage] = &[
    slot(Step::Plan),
    serial(Step::Schedule).spawns(Pipeline::Paired),
    children(Step::Tasks, ChildOrder::Parallel, Failing::Independent),
];
