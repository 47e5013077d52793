//! The goal flow: a workflow is made, its steps are sessions of agents, and somebody says whether
//! the goal is reached; if not, the next workflow follows.
//!
//! DONE means: whoever checks said so, and the controller's own validation agrees on the result as
//! it is, where there is anything to validate with.

use super::{FlowFiles, FlowInput, FlowRow, Pipeline, RoundReason, Weighed};
use crate::event::{Outcome, Verdict};
use crate::pipeline::{
    ChildOrder, Else, Failing, Stage, Switch, When, children, decide, person, serial, slot,
};
use crate::state::{State, Task};
use crate::step::Step;

/// Iterations towards a goal, unless the command says otherwise.
const ITERATIONS_MAX: u32 = 4;

pub const FLOW: FlowRow = FlowRow {
    word: "goal",
    root: Pipeline::Goal,
    task: Pipeline::WorkflowStep,
    input: FlowInput::Text,
    needs_tests: false,
    iterations_max: Some(ITERATIONS_MAX),
    files: FlowFiles::RunDirectory,
    worker_words: &[(Step::WorkflowStep, "STEP"), (Step::Fix, "FIX"), (Step::Merge, "MERGE")],
};

pub const GOAL: &[Stage] = &[
    slot(Step::Preflight).when(When::On(Switch::Baseline)),
    slot(Step::Workflow).spawns(Pipeline::WorkflowStep).fails(Else::Again(Step::Workflow)),
    children(Step::Tasks, ChildOrder::Parallel, Failing::Assess),
    slot(Step::Validate).when(When::On(Switch::HasTests)).fails(Else::Note),
    slot(Step::Completion)
        .fails(Else::Next { again: Step::Workflow, brings: Pipeline::WorkflowStep }),
    decide(Step::Decide).fails(Else::Again(Step::Workflow)),
    person(Step::ApproveResult).when(When::On(Switch::EndGate)),
    serial(Step::Push).when(When::On(Switch::Push)),
    serial(Step::PullRequest).when(When::On(Switch::Pr)),
];

/// A step of a workflow. Its work is merged as it is: a step may leave behind what only a later one
/// puts right, so the whole is proven and not each.
pub const WORKFLOW_STEP: &[Stage] = &[
    slot(Step::WorkflowStep).when(When::FirstRound),
    slot(Step::Fix).when(When::LaterRounds).fails(Else::Again(Step::Fix)),
    serial(Step::Merge).fails(Else::Again(Step::Fix)),
];

/// Whoever checks has not said no, or the pipeline would not be here; only a yes is a yes.
pub fn weigh(_: &State, task: &Task) -> Weighed {
    let is_done = |verdict| verdict == Some(Verdict::Approve);
    let said = task.shown(Step::Completion).is_some_and(|shown| is_done(shown.facts.verdict()));
    let mut weighed = Weighed::default();
    if let Some(text) = unproven(task) {
        weighed.overruled = said.then(|| format!("it was said to be done although {text}"));
        weighed.reasons.push(RoundReason { step: Step::Validate, text });
    }
    if !said {
        let text = "nobody said that it is done".to_owned();
        weighed.reasons.push(RoundReason { step: Step::Completion, text });
    }
    weighed
}

/// Nothing to validate with is on the record as such.
fn unproven(task: &Task) -> Option<String> {
    match task.shown(Step::Validate).map(|shown| &shown.outcome) {
        Some(Outcome::Passed) => None,
        Some(Outcome::Failed { why }) => Some(why.clone()),
        Some(_) | None => {
            let left_out = task.skipped.contains_key(&Step::Validate);
            (!left_out).then(|| "it was not validated".to_owned())
        }
    }
}
