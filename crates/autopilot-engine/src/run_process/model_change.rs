//! A run keeps its configuration except for the models of its agents: finds what changed of them,
//! and checks that the limits can still be kept.

use super::{Intent, RunProcessError};
use crate::begin;
use crate::place::StatePaths;
use crate::workspace;
use autopilot_core::config::{Config, Options, WorkBy};
use autopilot_core::event::{Skip, TaskEnd};
use autopilot_core::fingerprint::sha256_hex;
use autopilot_core::id::TaskId;
use autopilot_core::input::Ask;
use autopilot_core::limit::Limits;
use autopilot_core::state::{State, Status, Task};
use std::collections::BTreeSet;

/// The configuration of a run with the current models.
pub struct ModelChange {
    pub config: Config,
    pub text: String,
    pub changes: Vec<String>,
    /// The model that a person named on the command line.
    pub model: Option<String>,
}

impl ModelChange {
    /// The change of models; `None` where nothing changed or the file, which is not needed, can't
    /// be read.
    pub fn now(
        pinned: &Config,
        place: &StatePaths,
        options: &Options,
        model: Option<String>,
    ) -> Option<ModelChange> {
        let mut options = options.clone();
        options.model = model.clone().or(options.model);
        let now = match workspace::read_config(place) {
            Ok((now, _)) => now.with_options(&options).ok()?,
            // A model from the command line needs no file.
            Err(_) if model.is_some() => pinned.with_options(&options).ok()?,
            Err(_) => return None,
        };
        let (config, changes) = pinned.with_models_of(&now);
        let text = serde_json::to_string(&config).ok()?;
        (!changes.is_empty()).then_some(ModelChange { config, text, changes, model })
    }

    /// The request that changes the models, with the run's limits.
    pub fn ask(&self, limits: Limits) -> Ask {
        let Limits { lanes, agents, .. } = begin::limits(&self.config);
        let limits = Box::new(Limits { lanes, agents, ..limits });
        let config = sha256_hex(self.text.as_bytes());
        Ask::Models { limits, config, model: self.model.clone() }
    }
}

/// Checks that the agents of a resumed run can keep its limits with its models.
pub fn check_prices(
    intent: &Intent,
    state: &State,
    was: &Config,
    now: &Config,
) -> Result<(), RunProcessError> {
    let Some(change) = intent.limits() else { return Ok(()) };
    let limits = change.applied_to(&state.run.limits);
    let (was, now) = ((was, &state.run.limits), (now, &limits));
    Ok(begin::check_prices(was, now, state.run.flow, &named_agents(intent, state))?)
}

/// The agents named by tasks that are still open, besides the default ones.
fn named_agents(intent: &Intent, state: &State) -> Vec<WorkBy> {
    let asked = reopened_tasks(intent, state);
    let is_open = |task: &&Task| !task.is_settled() || asked.contains(&task.id);
    let tasks = state.tasks.iter().filter(is_open);
    tasks.map(|task| task.spec.by.clone()).filter(|by| !by.is_anybody()).collect()
}

/// The ended tasks that the asks re-open, with the tasks that depend on them.
fn reopened_tasks(intent: &Intent, state: &State) -> BTreeSet<TaskId> {
    let asks = match intent {
        Intent::Begin { .. } | Intent::Again { .. } => &[],
        Intent::Resume { asks, .. } => asks.as_slice(),
        Intent::Only { ask, .. } => std::slice::from_ref(ask),
    };
    let named = |ask: &Ask| match ask {
        Ask::Retry { task } | Ask::Continue { task, .. } => state.named(task).map(|task| task.id),
        Ask::Halt { .. }
        | Ask::Resume
        | Ask::Unpause
        | Ask::Skip { .. }
        | Ask::Approve { .. }
        | Ask::Reject { .. }
        | Ask::Limit(_)
        | Ask::Models { .. }
        | Ask::Switch { .. } => None,
    };
    let mut found: BTreeSet<TaskId> = asks.iter().filter_map(named).collect();
    for task in &state.tasks {
        if let Status::Settled(TaskEnd::Skipped {
            why: Skip::Blocked { by } | Skip::Stopped { by },
        }) = &task.status
            && found.contains(by)
        {
            found.insert(task.id);
        }
    }
    found
}
