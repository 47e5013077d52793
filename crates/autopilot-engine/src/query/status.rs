//! Where a run stands, as the object `status --json` prints.

use super::{KnownRun, Standing};
use crate::views::state_object;
use autopilot_core::state::State;
use autopilot_host::redact::Redactor;
use serde_json::{Value, json};

/// The object of `state.json` with the run's cost.
pub fn status_object(state: &State, redactor: &Redactor) -> Value {
    let mut object = state_object(state, redactor);
    if let Value::Object(fields) = &mut object {
        fields.insert("cost_usd".to_owned(), json!(state.run.spent.usd.usd()));
        fields.insert("cost_complete".to_owned(), json!(!state.run.spent.unpriced));
    }
    object
}

/// The status of a run with the process that works on it, if there is one.
pub fn known_status(told: Option<&KnownRun>, redactor: &Redactor) -> Value {
    let Some(told) = told else {
        return json!({
            "run_id": null, "current_state": null, "tasks": [], "cost_usd": 0.0, "pid": null,
        });
    };
    let mut object = status_object(&told.state, redactor);
    if let Value::Object(fields) = &mut object {
        let pid = match told.standing() {
            Standing::Live { pid } => Some(pid),
            Standing::Over | Standing::Abandoned | Standing::Rests | Standing::Interrupted => None,
        };
        fields.insert("pid".to_owned(), json!(pid));
    }
    object
}
