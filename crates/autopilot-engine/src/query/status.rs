//! Where a run stands.

use super::KnownRun;
use super::failure::FailureReport;
use crate::views::state_object;
use autopilot_core::state::State;
use autopilot_host::redact::Redactor;
use serde::Serialize;
use serde_json::{Value, json};

/// Where a run stands, as `status --json` and the commands that work on a run print it.
#[derive(Clone, Debug, Serialize)]
pub struct RunStatus {
    /// The object of `state.json`.
    #[serde(flatten)]
    pub state: Value,
    pub cost_usd: f64,
    /// The cost that was estimated because no agent told it.
    pub cost_estimated_usd: f64,
    /// The money that is reserved for agents and not spent.
    pub cost_reserved_usd: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_complete: Option<bool>,
    /// The last answer to whether the goal is met, after work on the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion: Option<Value>,
    /// The page that was written about the run after work on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report_path: Option<String>,
    /// The process that works on the run, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Option<i32>>,
    /// The newest failure, with the lines that say why, where the log was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<FailureReport>,
    /// A sentence about the files of the run, if they are out of date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale_files: Option<String>,
}

impl RunStatus {
    /// The status of a run, whoever works on it.
    pub fn of(state: &State, redactor: &Redactor) -> RunStatus {
        RunStatus {
            state: state_object(state, redactor),
            cost_usd: state.run.spent.usd.usd(),
            cost_estimated_usd: state.run.spent.estimated.usd(),
            cost_reserved_usd: state.reserved(None).usd(),
            cost_complete: Some(state.run.spent.is_complete()),
            completion: None,
            report_path: None,
            pid: None,
            last_failure: None,
            stale_files: None,
        }
    }

    /// The status of a run with the process that works on it, if there is one.
    pub fn known(told: Option<&KnownRun>, redactor: &Redactor) -> RunStatus {
        let Some(told) = told else {
            let nothing = json!({ "run_id": null, "current_state": null, "tasks": [] });
            let none = RunStatus::of(&State::default(), redactor);
            return RunStatus { state: nothing, cost_complete: None, pid: Some(None), ..none };
        };
        RunStatus { pid: Some(told.pid()), ..RunStatus::of(&told.state, redactor) }
    }

    /// The title of the run, redacted.
    pub fn title(&self) -> &str {
        self.state["title"].as_str().unwrap_or_default()
    }
}
