//! `autopilot goal "…"`: workflow after workflow until the goal is reached.

use super::run;
use crate::cli::{Global, Goal, LimitArgs, Run};
use crate::exit::Failure;
use autopilot_core::config::{Config, Mode, Role};
use autopilot_engine::begin::Source;

/// Longer goals belong into a plan.
const GOAL_BYTES_MAX: usize = 64 * 1024;

pub fn goal(global: &Global, args: &Goal) -> super::Done {
    let text = args.text.trim();
    if text.is_empty() {
        return Err(Failure::usage("the goal is empty")
            .help("say what is to be reached: autopilot goal \"Fix the login\""));
    }
    if text.len() > GOAL_BYTES_MAX {
        return Err(Failure::usage(format!("the goal is longer than {GOAL_BYTES_MAX} bytes"))
            .help("write a plan, and work on it with `autopilot run plan.md`"));
    }
    let run = Run {
        path: None,
        queue: None,
        pattern: None,
        push: args.push,
        pr: false,
        plan_only: false,
        from: None,
        edit: false,
        fresh: args.fresh,
        allow_red_base: args.allow_red_base,
        dry_run: args.dry_run,
        wait: args.wait,
        limits: LimitArgs {
            max_iterations: Some(args.max_iterations),
            max_usd: args.max_usd,
            max_usd_per_task: None,
            max_wall: args.max_wall.clone(),
            max_workers: args.concurrency,
        },
    };
    let source = Source::Goal { text: text.to_owned() };
    run::begin(global, source, &run, args.fail_fast, |config| configure(config, args))
}

fn configure(config: &mut Config, args: &Goal) -> Result<(), Failure> {
    if let Some(name) = &args.adapter {
        let agent = config.adapter(name).ok_or_else(|| {
            let known: Vec<String> = config.adapters().into_iter().collect();
            Failure::usage(format!("there is no adapter `{name}`"))
                .help(format!("known are {}", known.join(", ")))
        })?;
        if agent.mode == Mode::OpenaiApi {
            return Err(Failure::usage(format!("the adapter `{name}` can't edit files")));
        }
        for role in [Role::Builder, Role::Reviewer, Role::Planner] {
            *config.agent_mut(role) = agent.clone();
        }
    }
    for role in [Role::Builder, Role::Reviewer, Role::Planner] {
        let agent = config.agent_mut(role);
        if let Some(model) = &args.model {
            agent.model = Some(model.clone());
        }
        agent.r#unsafe |= args.is_unsafe;
    }
    Ok(())
}
