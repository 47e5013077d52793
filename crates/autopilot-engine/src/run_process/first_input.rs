//! The first inputs of a process, made from its intent.

use super::Intent;
use super::choice::ChosenRun;
use crate::begin::RunRequest;
use crate::inbox::LimitChange;
use autopilot_core::event::HaltWhy;
use autopilot_core::input::{Ask, Input};
use autopilot_core::state::State;
use autopilot_core::step::Step;

/// The inputs a process hears before anything else.
pub fn first_inputs(intent: &Intent, chosen: &ChosenRun) -> Vec<Input> {
    match (intent, &chosen.prepared) {
        (_, Some(prepared)) => vec![Input::Start(Box::new(prepared.spec.clone()))],
        (Intent::Begin { request, .. }, None) => {
            let mut asks = approval(request, &chosen.state);
            asks.push(Ask::Resume);
            resume_inputs(chosen, &request.limits, asks)
        }
        (Intent::Again { .. }, None) => vec![Input::Boot],
        (Intent::Resume { asks, limits, .. }, None) => {
            resume_inputs(chosen, limits, [&asks[..], &[Ask::Resume]].concat())
        }
        (Intent::Only { ask, limits, .. }, None) => {
            // Attempts that an interrupted process left must not start again here.
            let rests = Ask::Halt { why: HaltWhy::Stop, now: false };
            let mut inputs = vec![Input::Asked(rests)];
            inputs.extend(resume_inputs(chosen, limits, vec![ask.clone()]));
            inputs
        }
    }
}

/// Running a plan without `--plan-only` approves it, if that option was the only reason to hold it.
fn approval(request: &RunRequest, state: &State) -> Vec<Ask> {
    let at_plan = state.gate().is_some_and(|(_, live)| live.step == Step::ApprovePlan);
    let approves = at_plan && !request.hold_plan && !request.gates_plan;
    let by = request.started_by.clone();
    if approves { vec![Ask::Approve { by, answer: None }] } else { Vec::new() }
}

fn resume_inputs(chosen: &ChosenRun, limits: &LimitChange, asks: Vec<Ask>) -> Vec<Input> {
    let mut inputs = vec![Input::Boot];
    let known = &chosen.state.run.limits;
    let change = match &chosen.models {
        Some(models) => Some(models.ask(limits.applied_to(known))),
        None => limits.ask(known),
    };
    inputs.extend(change.map(Input::Asked));
    inputs.extend(asks.into_iter().map(Input::Asked));
    inputs
}
