//! Going on with a run that is known: with the configuration it began with, the models of now, and
//! without the flags that had stopped it.

use super::choice::{ChosenRun, pinned};
use super::model_change::{ModelChange, check_prices};
use super::{Intent, RunProcessError};
use crate::begin;
use crate::flag::Flag;
use crate::place::StatePaths;
use autopilot_core::config::Config;
use autopilot_core::flow::FlowFiles;
use autopilot_core::state::State;
use autopilot_journal::{JournalHistory, JournalRun};
use autopilot_view as view;
use std::collections::BTreeSet;

/// What is asked of a run that is gone on with.
pub struct ResumeRequest<'a> {
    pub intent: &'a Intent,
    pub place: &'a StatePaths,
    /// The configuration as it is now.
    pub config: Config,
    /// Nothing of a run that is played again changes.
    pub is_replay: bool,
}

/// Checks that the run can go on as asked, and tells what has changed since it began.
pub fn go_on(
    (run, state): (JournalRun, State),
    history: &dyn JournalHistory,
    asked: ResumeRequest<'_>,
    notice: &mut dyn FnMut(&str),
) -> Result<ChosenRun, RunProcessError> {
    let ResumeRequest { intent, place, config, is_replay } = asked;
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
            let whose = if models.model.is_some() { "as asked for" } else { "as config.yml says" };
            notice(&format!("{change} from here on, {whose}"));
        }
    }
    let kept = models.as_ref().map_or(&pinned, |models| &models.config);
    let config = config.with_options(options).unwrap_or(config);
    if kept.digest() != config.digest() && pinned.digest() != config.digest() {
        notice("config.yml has changed since the run began; the run keeps its own");
    }
    tell_changes(intent, &state, place, notice);
    Ok(ChosenRun { run: run.id, state, config: pinned, models, prepared: None })
}

/// Whoever resumes takes a stop and a pause back; not before nobody else works on the run.
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
            "`{path}` has changed since the run began; the run keeps what it began with"
        ));
    }
    let Intent::Begin { tasks, .. } = intent else { return };
    let known: BTreeSet<&str> = view::leaves(state).map(|t| t.spec.source.as_str()).collect();
    for spec in tasks.specs.iter().filter(|spec| !known.contains(spec.path.as_str())) {
        notice(&format!(
            "`{}` came after the run began; the run keeps what it began with",
            spec.path
        ));
    }
}
