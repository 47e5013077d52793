//! The goal flow: a planner makes a workflow, agents work on its steps, and a reviewer says whether
//! the goal is met; if not, the planner makes the next workflow.
//!
//! DONE means: the reviewer said so, and the controller's own validation of the result passed, if
//! tests are configured. Tests of the base that do not pass as they did were accepted by name. Where the
//! run asks for it, a test of the goal fails without the change.

use super::root::PROVE;
use super::{FlowFiles, FlowInput, FlowRow, Pipeline, RoundReason, Weighed};
use crate::coverage;
use crate::event::{Outcome, Verdict};
use crate::pipeline::{
    ChildOrder, Else, Failing, Sparing, Stage, Switch, When, children, decide, person, serial, slot,
};
use crate::state::{State, Task};
use crate::step::Step;
use crate::three_runs;

/// The default number of iterations towards a goal.
const ITERATIONS_MAX: u32 = 4;

/// The row of the goal flow.
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

/// The stages of a run towards a goal.
pub const GOAL: &[Stage] = &[
    slot(Step::Preflight).when(When::On(Switch::Baseline)),
    slot(Step::Workflow).spawns(Pipeline::WorkflowStep).fails(Else::Again(Step::Workflow)),
    children(Step::Tasks, ChildOrder::Parallel, Failing::Assess),
    slot(Step::Validate).when(When::On(Switch::HasTests)).fails(Else::Note),
    slot(Step::Coverage)
        .when(When::Silently(Switch::RedGreen))
        .spared(Sparing::NothingToCover)
        .fails(Else::Note),
    slot(Step::Completion)
        .fails(Else::Next { again: Step::Workflow, brings: Pipeline::WorkflowStep }),
    decide(Step::Decide).fails(Else::Again(Step::Workflow)),
    PROVE.fails(Else::Again(Step::Workflow)),
    person(Step::ApproveResult).when(When::On(Switch::EndGate)),
    serial(Step::Push).when(When::On(Switch::Push)),
    serial(Step::PullRequest).when(When::On(Switch::Pr)),
];

/// The stages of a workflow step. Its work is merged unvalidated: a step may leave the tree broken
/// until a later step, so only the whole is validated.
pub const WORKFLOW_STEP: &[Stage] = &[
    slot(Step::WorkflowStep).when(When::FirstRound),
    slot(Step::Fix).when(When::LaterRounds).fails(Else::Again(Step::Fix)),
    serial(Step::Merge).fails(Else::Again(Step::Fix)),
];

/// Judges a round. A reviewer's no has left the pipeline already; only an explicit yes is a yes.
pub fn weigh(state: &State, task: &Task) -> Weighed {
    let is_done = |verdict| verdict == Some(Verdict::Approve);
    let said = task.shown(Step::Completion).is_some_and(|shown| is_done(shown.facts.verdict()));
    let broken = three_runs::refusal_of(state.run.limits.yardstick_changes, task);
    let mut weighed = Weighed::default();
    let validated = unproven(task).into_iter().chain(broken).map(|text| (Step::Validate, text));
    let covered = coverage::refusal_of(state, task).map(|text| (Step::Coverage, text));
    for (step, text) in validated.chain(covered) {
        let over = || format!("the reviewer said it was done although {text}");
        weighed.overruled = weighed.overruled.or_else(|| said.then(over));
        weighed.reasons.push(RoundReason { step, text });
    }
    if !said {
        let text = "the reviewer did not say that it is done".to_owned();
        weighed.reasons.push(RoundReason { step: Step::Completion, text });
    }
    weighed
}

/// The reason why the result is not validated. A skipped validation is on the record already.
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
