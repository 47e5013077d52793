//! The newest failure of a run, with the lines of its log that say why.

use super::log::reason_lines;
use crate::place::StatePaths;
use autopilot_core::state::State;
use autopilot_host::redact::Redactor;
use autopilot_view::trouble::trouble;
use serde::Serialize;

/// The most lines of a log that are told with a failure.
const LINES_MAX: usize = 6;

/// The newest failure of a run, as `status` and the commands that work on a run tell it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailureReport {
    /// The task, or `run` for a check of the run itself.
    pub task: String,
    /// None if the attempt broke.
    pub step: Option<&'static str>,
    pub iteration: u32,
    pub why: String,
    /// The lines of the log that say what failed.
    pub lines: Vec<String>,
    /// The path of the log in the repository.
    pub log: Option<String>,
}

impl FailureReport {
    /// Returns the newest failure, except of tasks that are done since or left out.
    pub fn of(place: &StatePaths, state: &State, redactor: &Redactor) -> Option<FailureReport> {
        let trouble = trouble(state)?;
        let log = trouble.shown.facts.log.as_deref();
        let lines = log.map(|log| reason_lines(place, &state.run.id, log, LINES_MAX));
        let redacted = |line: &str| redactor.redact(line).into_owned();
        Some(FailureReport {
            task: trouble.task.label().to_owned(),
            step: trouble.step.map(|step| step.word()),
            iteration: trouble.shown.round,
            why: redacted(trouble.why()),
            lines: lines.unwrap_or_default().iter().map(|line| redacted(line)).collect(),
            log: log.map(|log| format!(".autopilot/{log}")),
        })
    }
}
