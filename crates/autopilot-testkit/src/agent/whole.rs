//! What simulated jobs make of a plan as a whole. Like real ones they ask the core what it means.

use super::{Play, Scene};
use autopilot_core::event::{Outcome, StepAnswer};
use autopilot_core::flow::review::{ReviewAnswer, ReviewGround, ReviewIssue};
use autopilot_core::flow::whole_review::{WholeGround, judged};
use autopilot_core::guard::Severity;
use autopilot_core::step::Step;
use autopilot_core::three_runs::{self, Accounts, OpenTest};

/// The reason for which the validation of the whole fails because of tests that it leaves open.
pub fn refusal(scene: &Scene<'_>, open: &[OpenTest]) -> Option<String> {
    let run = &scene.state.run;
    let reason = three_runs::refusal(open, run.limits.yardstick_changes, Accounts::default());
    reason.filter(|_| !three_runs::are_weighed_later(run, scene.state.task(scene.want.task)))
}

/// What the answer of a review of the whole means.
pub fn outcome(scene: &Scene<'_>, answer: &ReviewAnswer, ground: &ReviewGround) -> Outcome {
    let limits = &scene.state.run.limits;
    let shown = scene.state.task(scene.want.task).shown(Step::Validate);
    let open = shown.map(|shown| shown.facts.open.as_slice()).unwrap_or_default();
    let by = WholeGround {
        gate: limits.review,
        yardstick_changes: limits.yardstick_changes,
        ground,
        open,
    };
    judged(answer, by).outcome
}

/// Gives a drawn review of the whole the meaning that it has.
pub fn judge(scene: &Scene<'_>, play: &mut Play) {
    // A review without a verdict is none.
    let Some(StepAnswer::Review { verdict, issues, blocking }) = play.facts.said else {
        play.outcome = Outcome::Broke { why: "it has no verdict".into() };
        return;
    };
    let issue = |number: u64| ReviewIssue {
        severity: Severity::Major,
        message: format!("issue {number}"),
        fix: "do it".to_owned(),
        file: None,
        line: None,
        criterion: (number < blocking).then_some(1),
        command: None,
    };
    let answer = ReviewAnswer {
        verdict,
        summary: String::new(),
        issues: (0..issues).map(issue).collect(),
        accepted_tests: play.facts.accepted.clone(),
    };
    let ground = ReviewGround { criteria: 1, ..ReviewGround::default() };
    play.outcome = outcome(scene, &answer, &ground);
}
