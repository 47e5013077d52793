//! Resumes an existing run: with the configuration it started with, the current models, and without
//! the flags that had stopped it.

use super::choice::{ChosenRun, pinned};
use super::model_change::{ModelChange, check_prices};
use super::{Intent, RunProcessError};
use crate::begin;
use crate::flag::Flag;
use crate::holdout;
use crate::place::StatePaths;
use autopilot_core::config::Config;
use autopilot_core::flow::FlowFiles;
use autopilot_core::state::State;
use autopilot_journal::{JournalHistory, JournalRun};
use autopilot_view as view;
use std::collections::BTreeSet;

/// Checks that the run can be resumed as requested, and reports what has changed since it started.
/// `config` is the current configuration. The models of a replayed run do not change.
pub fn go_on(
    (run, state): (JournalRun, State),
    history: &dyn JournalHistory,
    intent: &Intent,
    place: &StatePaths,
    config: Config,
    is_replay: bool,
    notice: &mut dyn FnMut(&str),
) -> Result<ChosenRun, RunProcessError> {
    let pinned = pinned(history, &state)?;
    check_prices(intent, &state, &pinned, &pinned)?;
    if state.run.flow.row().files == FlowFiles::RunDirectory {
        begin::prove_out_of(&state.run, place)?;
    }
    lower_flags(intent, place, notice)?;
    let options = &state.run.options;
    let now = || ModelChange::now(&pinned, place, options, intent.model());
    let models = if is_replay { None } else { now() };
    if let Some(models) = &models {
        check_prices(intent, &state, &pinned, &models.config)?;
        for change in &models.changes {
            let whose =
                if models.model.is_some() { "as requested" } else { "as set in config.yml" };
            notice(&format!("{change} from here on, {whose}"));
        }
    }
    let kept = models.as_ref().map_or(&pinned, |models| &models.config);
    let config = config.with_options(options).unwrap_or(config);
    if kept.digest() != config.digest() && pinned.digest() != config.digest() {
        notice("config.yml has changed since the run started; the run keeps its configuration");
    }
    tell_changes(intent, &state, place, notice);
    if pinned.gates.holdout.is_some() && state.run.holdout.is_none() {
        notice("the run began before held-out tests were run; it goes on without them");
    }
    if let Some(digest) = &state.run.holdout
        && holdout::is_edited(&pinned, place, digest)
    {
        notice(
            "the held-out tests have changed since the run started; the run keeps those of its start",
        );
    }
    Ok(ChosenRun { run: run.id, state, config: pinned, models, prepared: None })
}

/// Removes the stop and pause flags of a resumed run, once no other process works on it.
fn lower_flags(
    intent: &Intent,
    place: &StatePaths,
    notice: &mut dyn FnMut(&str),
) -> Result<(), RunProcessError> {
    let is_taken_back = match intent {
        Intent::Resume { asks, .. } => asks.is_empty(),
        Intent::Only { .. } => true,
        Intent::Begin { .. } | Intent::Again { .. } => false,
    };
    if !is_taken_back {
        return Ok(());
    }
    for flag in [Flag::Stop, Flag::Pause] {
        let name = flag.file_name();
        let lowered = flag.lower(place).map_err(|source| RunProcessError::Flag { name, source })?;
        for path in lowered {
            notice(&format!("removed {path}"));
        }
    }
    Ok(())
}

fn tell_changes(intent: &Intent, state: &State, place: &StatePaths, notice: &mut dyn FnMut(&str)) {
    for path in begin::changed_since(state, &place.root) {
        notice(&format!(
            "`{path}` has changed since the run started; the run keeps the earlier version"
        ));
    }
    let Intent::Begin { tasks, .. } = intent else { return };
    let known: BTreeSet<&str> = view::leaves(state).map(|t| t.spec.source.as_str()).collect();
    for spec in tasks.specs.iter().filter(|spec| !known.contains(spec.path.as_str())) {
        notice(&format!(
            "`{}` was added after the run started; the run does not include it",
            spec.path
        ));
    }
}
