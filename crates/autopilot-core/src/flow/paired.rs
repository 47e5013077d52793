//! The paired loop: one agent builds, the controller proves, another agent reviews.
//!
//! DONE means: the controller's own validation passed on the exact tree that is merged, the review
//! approved that change, the tests of the base pass over it or somebody accounts for those that do not,
//! and the acceptance run passed or was skipped on the record. Where the run asks for it, each criterion
//! has a test that fails without the change. A tree that becomes
//! the run's result was also proven from nothing.

use super::{RoundReason, Weighed};
use crate::coverage;
use crate::event::{Outcome, Verdict};
use crate::limit::ReviewGate;
use crate::pipeline::{Else, Sparing, Stage, Switch, When, decide, person, serial, slot};
use crate::state::{State, Task};
use crate::step::Step;
use crate::three_runs;

/// The stages of a task.
pub const PAIRED: &[Stage] = &[
    slot(Step::Build).when(When::FirstRound).fails(Else::Again(Step::Fix)),
    slot(Step::Fix).when(When::LaterRounds).fails(Else::Again(Step::Fix)),
    slot(Step::Validate).fails(Else::Note),
    slot(Step::Coverage)
        .when(When::Silently(Switch::RedGreen))
        .spared(Sparing::NothingToCover)
        .fails(Else::Note),
    slot(Step::Review)
        .when(When::On(Switch::Review))
        .spared(Sparing::AfterNo(Switch::SpareReview, Step::Validate))
        .fails(Else::Note),
    slot(Step::UatGenerate)
        .spared(Sparing::Without(Switch::SpareCases, Switch::Uat))
        .fails(Else::Note),
    slot(Step::Uat).when(When::On(Switch::Uat)).fails(Else::Note),
    person(Step::AcceptTests).when(When::TestsAreOpen).fails(Else::Note),
    slot(Step::Prove).when(When::LastWord).fails(Else::Note),
    decide(Step::Decide).fails(Else::Again(Step::Fix)),
    serial(Step::Merge).fails(Else::Again(Step::Fix)),
];

/// Judges a round: exit codes first, then the reviewer, whose verdict they overrule.
pub fn weigh(state: &State, task: &Task) -> Weighed {
    let mut reasons = Vec::new();
    let unproven = [
        (Step::Validate, unvalidated(task)),
        (Step::Validate, three_runs::refusal_of(state.run.limits.yardstick_changes, task)),
        (Step::Coverage, coverage::refusal_of(state, task)),
        (Step::AcceptTests, failure(task, Step::AcceptTests)),
        (Step::Uat, unaccepted(task)),
        (Step::Prove, failure(task, Step::Prove)),
    ];
    for (step, text) in unproven {
        if let Some(text) = text {
            reasons.push(RoundReason { step, text });
        }
    }
    let unproven = !reasons.is_empty();
    if let Some(text) = objection(state.run.limits.review, task) {
        reasons.push(RoundReason { step: Step::Review, text });
    }
    let approved = task
        .shown(Step::Review)
        .is_some_and(|shown| shown.facts.verdict() == Some(Verdict::Approve));
    let overruled = (approved && unproven)
        .then(|| format!("the reviewer approved although {}", reasons[0].text));
    Weighed { reasons, overruled }
}

fn failure(task: &Task, step: Step) -> Option<String> {
    task.shown(step)?.outcome.failure().map(str::to_owned)
}

/// The reason why the round is not validated: only a validation that passed in this round counts.
fn unvalidated(task: &Task) -> Option<String> {
    match task.shown(Step::Validate).map(|shown| &shown.outcome) {
        Some(Outcome::Passed) => None,
        Some(_) | None => {
            Some(failure(task, Step::Validate).unwrap_or_else(|| "it was not validated".to_owned()))
        }
    }
}

fn unaccepted(task: &Task) -> Option<String> {
    let unknown = task.shown(Step::Uat).is_none() && !task.skipped.contains_key(&Step::Uat);
    failure(task, Step::Uat).or_else(|| unknown.then(|| "it was not accepted".to_owned()))
}

/// The reviewer's objection under the configured gate. A skipped review is on the record already; a
/// review without a verdict has not approved.
fn objection(gate: ReviewGate, task: &Task) -> Option<String> {
    let Some(shown) = task.shown(Step::Review) else {
        let left_out = task.skipped.contains_key(&Step::Review);
        return (!left_out).then(|| "it was not reviewed".to_owned());
    };
    if matches!(shown.outcome, Outcome::Skipped { .. }) {
        return None;
    }
    let objects = match gate {
        ReviewGate::Required => shown.facts.verdict() != Some(Verdict::Approve),
        ReviewGate::Evidence => shown.facts.blocking() > 0,
        ReviewGate::Advisory => false,
    };
    let otherwise = || match shown.facts.verdict() {
        Some(Verdict::Approve) => "the reviewer approved, but named issues that block".to_owned(),
        Some(Verdict::RequestChanges) | None => "the review did not approve".to_owned(),
    };
    objects.then(|| failure(task, Step::Review).unwrap_or_else(otherwise))
}

/// The words of `state.json` for a task at a step.
pub const WORKER_WORDS: &[(Step, &str)] = &[
    (Step::Build, "BUILD"),
    (Step::Fix, "FIX"),
    (Step::Validate, "VALIDATE"),
    (Step::Coverage, "REVIEW"),
    (Step::Review, "REVIEW"),
    (Step::UatGenerate, "UAT_GENERATE"),
    (Step::Uat, "UAT_RUN"),
    (Step::AcceptTests, "REVIEW"),
    (Step::Prove, "VALIDATE"),
    (Step::Decide, "DECIDE"),
    (Step::Merge, "DECIDE"),
];
