//! The newest failure of a run, with the lines of its log that say why.

use super::log::reason_lines;
use crate::place::StatePaths;
use autopilot_core::event::FailedCommand;
use autopilot_core::state::State;
use autopilot_host::redact::Redactor;
use autopilot_view::trouble::trouble;
use serde::Serialize;

/// The most lines of a log that are told with a failure.
const LINES_MAX: usize = 6;
/// The most commands whose logs are told, where several failed.
const COMMANDS_MAX: usize = 3;

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
        let lines = |log: &str, lines_max| reason_lines(place, &state.run.id, log, lines_max);
        let failed = &trouble.shown.facts.failed;
        let told = match failed.is_empty() {
            true => log.map(|log| lines(log, LINES_MAX)).unwrap_or_default(),
            false => {
                let lines_max = LINES_MAX / failed.len().min(COMMANDS_MAX);
                let of_one = |one: &FailedCommand| {
                    let own = lines(&one.log, lines_max);
                    let own = own.iter().map(|line| format!("  {line}"));
                    [format!("{}:", one.name)].into_iter().chain(own).collect::<Vec<_>>()
                };
                failed.iter().take(COMMANDS_MAX).flat_map(of_one).collect()
            }
        };
        let redacted = |line: &str| redactor.redact(line).into_owned();
        Some(FailureReport {
            task: trouble.task.label().to_owned(),
            step: trouble.step.map(|step| step.word()),
            iteration: trouble.shown.round,
            why: redacted(trouble.why()),
            lines: told.iter().map(|line| redacted(line)).collect(),
            log: log.map(|log| format!(".autopilot/{log}")),
        })
    }
}
