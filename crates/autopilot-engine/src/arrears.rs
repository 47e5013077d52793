//! Costs of a process that died before it could record them: as its agents reported them, else as
//! their session files tell, else estimated.
//!
//! A cost that is not found here is estimated when the run boots, so a missing or unreadable file
//! never makes an attempt free.

use crate::clock::now;
use crate::job::{Billing, EVENTS, Metadata, PriceList, count_resumed_in, session_usage_in};
use crate::place::StatePaths;
use crate::recorded::{RecordedExec, RecordedRun};
use autopilot_agents::{AgentEvent, AgentUsage};
use autopilot_core::config::Config;
use autopilot_core::decide::{estimate, owe};
use autopilot_core::event::{Bill, Record};
use autopilot_core::id::AttemptId;
use autopilot_core::state::{Grant, State};

/// Room beyond the configured size of an events file, for the line that says that it was cut.
const EVENTS_SLACK_BYTES: u64 = 4096;
/// The time that an agent is taken to have worked on after its last sign of life.
const SILENT_MS: u64 = 60_000;

/// Records the costs that a dead process left unrecorded, before anything else is decided. The homes
/// of its agents must still be there.
pub fn collect(state: &mut State, place: &StatePaths, config: &Config) -> Vec<Record> {
    let grants = state.grants.clone();
    let found = grants.into_iter().filter_map(|(id, grant)| {
        let run = RecordedRun::open(&place.views(), &state.run.id).ok()?;
        let (exec, metadata) = question(&run, id, grant)?;
        let of = (id, grant.task);
        if let Some(billing) =
            unrecorded_bill(state, place, config, (&run, &exec), (id, grant), &metadata)
        {
            let (bill, total) = billing.owed();
            if !bill.unpriced {
                return owe(state, of, grant.owed.plus(bill), total, now());
            }
        }
        let known = state.bill_of(id);
        if known.counted() > grant.owed.counted() || grant.ended.is_some() {
            return None;
        }
        let seen = run.last_write(&exec).map_or(grant.at, |at| at.max(grant.at));
        let ms = seen.min(now()).since_ms(grant.at).saturating_add(SILENT_MS);
        let estimated = grant.owed.estimated.plus(estimate(grant.usd, ms));
        owe(state, of, Bill { estimated, ..known }, None, now())
    });
    found.collect()
}

/// The bill of the last turn, by the events that it left or else by its session file.
fn unrecorded_bill(
    state: &State,
    place: &StatePaths,
    config: &Config,
    (run, exec): (&RecordedRun, &RecordedExec),
    (id, grant): (AttemptId, Grant),
    metadata: &Metadata,
) -> Option<Billing> {
    let bytes_max = config.logging.output_bytes_max.saturating_add(EVENTS_SLACK_BYTES);
    let (session, usage) =
        run.text(exec, EVENTS, bytes_max).map(|text| last_usage(&text)).unwrap_or_default();
    let resumed = metadata.resumed.as_deref();
    let session = session.as_deref().or(resumed);
    let began = metadata.started_at.as_str();
    let home = place.scratch(&format!("{}-{id}.home", state.run.id));
    let usage = usage.or_else(|| session_usage_in(&home, session, began));
    let count = resumed.and_then(|session| count_resumed_in(&home, session, began));
    let known = resumed.and_then(|session| state.task(grant.task).totals.get(session));
    let prices = PriceList::of(config, metadata.model.as_deref());
    Some(Billing::of_turn((resumed, count.as_ref()), known, prices, session, &usage?))
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
            tokens_scope: Scope::Run,
            ..AgentUsage::new(
                Scope::Session,
                TokenCount { input: 5, output: 1, cached: 0 },
                Some(usd),
            )
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
