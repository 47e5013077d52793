//! Costs that agents reported to a process which died before it could record them.
//!
//! A cost that is not found here is charged as unknown when the run boots, so a missing or
//! unreadable file never makes an attempt cheaper.

use crate::clock::now;
use crate::job::{Billing, EVENTS, Metadata};
use crate::place::StatePaths;
use crate::recorded::{RecordedExec, RecordedRun};
use autopilot_agents::{AgentEvent, AgentUsage};
use autopilot_core::config::Config;
use autopilot_core::decide::owe;
use autopilot_core::event::Record;
use autopilot_core::id::AttemptId;
use autopilot_core::state::{Grant, State};

/// Room beyond the configured size of an events file, for the line that says that it was cut.
const EVENTS_SLACK_BYTES: u64 = 4096;

/// Records the costs that a dead process left unrecorded, before anything else is decided.
pub fn collect(state: &mut State, place: &StatePaths, config: &Config) -> Vec<Record> {
    let grants = state.grants.clone();
    let found = grants.into_iter().filter_map(|(id, grant)| {
        let (bill, total) = unrecorded_bill(state, place, config, id, grant)?.owed();
        owe(state, (id, grant.task), grant.owed.plus(bill), total, now())
    });
    found.collect()
}

fn unrecorded_bill(
    state: &State,
    place: &StatePaths,
    config: &Config,
    id: AttemptId,
    grant: Grant,
) -> Option<Billing> {
    let run = RecordedRun::open(&place.views(), &state.run.id).ok()?;
    let (exec, metadata) = question(&run, id, grant)?;
    let bytes_max = config.logging.output_bytes_max.saturating_add(EVENTS_SLACK_BYTES);
    let (session, usage) = last_usage(&run.text(&exec, EVENTS, bytes_max)?);
    let price = metadata.model.as_deref().and_then(|model| config.price(model));
    let resumed = metadata.resumed.as_deref();
    let known = resumed.and_then(|session| state.task(grant.task).totals.get(session));
    Some(Billing::of_turn(resumed, known, price, session.as_deref(), &usage?))
}

/// The last question that was paid for with this grant.
fn question(run: &RecordedRun, id: AttemptId, grant: Grant) -> Option<(RecordedExec, Metadata)> {
    let id = id.to_string();
    let (exec, metadata) = run.newest_first().ok()?.find(|(_, said)| said.attempt == id)?;
    let began: jiff::Timestamp = metadata.started_at.parse().ok()?;
    (began.as_millisecond() >= grant.at.0).then_some((exec, metadata))
}

/// The last session id and the last usage figures among an agent's events.
fn last_usage(events: &str) -> (Option<String>, Option<AgentUsage>) {
    let (mut session, mut usage) = (None, None);
    // The last line may be cut off, and its figure is then unknown.
    for event in events.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        if let AgentEvent::Session { id } = event {
            session = Some(id);
        } else if let AgentEvent::Usage(figure) = event {
            usage = Some(figure);
        }
    }
    (session, usage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use autopilot_agents::{Scope, TokenCount};

    #[test]
    fn the_last_figure_of_what_was_recorded_counts() {
        let usage = |usd| AgentUsage {
            tokens: TokenCount { input: 5, output: 1, cached: 0 },
            tokens_scope: Scope::Run,
            cost_usd: Some(usd),
            cost_scope: Scope::Session,
        };
        let line = |event| serde_json::to_string(&event).unwrap();
        let text = [
            line(AgentEvent::Session { id: "s-1".into() }),
            line(AgentEvent::Usage(usage(0.1))),
            line(AgentEvent::Usage(usage(0.3))),
            line(AgentEvent::Text { text: "x".into() }),
            r#"{"event":"usa"#.to_owned(),
        ]
        .join("\n");
        assert_eq!(last_usage(&text), (Some("s-1".to_owned()), Some(usage(0.3))));
        assert_eq!(last_usage("{}\nno"), (None, None));
    }
}
