//! `autopilot goal "…"`: works in iterations until the goal is met.

use super::run::{self, OrderedRun};
use super::work;
use crate::cli::{Global, GoalArgs, LimitArgs, PlanArgs};
use crate::exit::CommandFailure;
use autopilot_core::config::Options;
use autopilot_core::flow::Flow;
use autopilot_engine::begin::WorkSource;

/// The longest goal; a longer one should be a plan.
const GOAL_BYTES_MAX: usize = 64 * 1024;

/// Starts a run of a flow that is asked for with words.
pub fn goal(global: &Global, flow: Flow, args: &GoalArgs) -> super::Done {
    let text = args.text.trim();
    if text.is_empty() {
        return Err(CommandFailure::usage("the goal is empty")
            .hint("say what to achieve: autopilot goal \"Fix the login\""));
    }
    if text.len() > GOAL_BYTES_MAX {
        return Err(CommandFailure::usage(format!(
            "the goal is longer than {GOAL_BYTES_MAX} bytes"
        ))
        .hint("write a plan, and work on it with `autopilot run plan.md`"));
    }
    let limits = work::limits(&LimitArgs {
        max_iterations: args.max_iterations,
        max_usd: args.max_usd,
        max_wall: args.max_wall.clone(),
        max_workers: args.concurrency,
        ..LimitArgs::default()
    })?;
    let source = WorkSource::Text { flow, text: text.to_owned() };
    let options = Options {
        adapter: args.adapter.clone(),
        model: args.model.clone(),
        r#unsafe: args.is_unsafe,
        out: args.out.as_ref().map(ToString::to_string),
    };
    let ordered = OrderedRun { source, limits, fail_fast: args.fail_fast, options };
    run::begin(global, ordered, &args.start, &PlanArgs::default())
}
