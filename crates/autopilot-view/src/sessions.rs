//! The sessions of agents in a run: the last attempt of each, its end and its cost.
//!
//! An attempt of an agent without sessions counts as one, named after run and attempt.

use crate::cost::{self, Sum};
use crate::history::{PastAttempt, history};
use autopilot_core::event::{Outcome, Record};
use autopilot_core::id::{AttemptId, TaskId, Time};
use autopilot_core::session_name::{TOLD, name, own_name};
use autopilot_core::state::State;
use autopilot_core::step::Step;
use std::collections::BTreeMap;

/// A conversation with an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    pub id: String,
    /// Whether the id is the agent's own, not one made here.
    pub is_its_own: bool,
    /// The last attempt that used the session.
    pub attempt: AttemptId,
    pub task: TaskId,
    pub step: Step,
    /// The lane of the agent that has the session.
    pub lane: u32,
    pub round: u32,
    pub began: Time,
    /// The time and outcome of the last attempt; none while it runs.
    pub ended: Option<(Time, Outcome)>,
    /// The cost of all attempts that used the session.
    pub cost: Sum,
}

/// Returns the sessions of a run in the order of their last use.
pub fn sessions(run: &str, records: &[Record]) -> Vec<Session> {
    let mut sessions: BTreeMap<String, Session> = BTreeMap::new();
    let attempts = history(records).attempts;
    for tried in attempts.into_iter().filter(|tried| tried.step.role().is_some()) {
        for session in of_attempt(run, tried) {
            let before = sessions.get(&session.id).map(|before| before.cost).unwrap_or_default();
            let cost = before.plus(session.cost);
            sessions.insert(session.id.clone(), Session { cost, ..session });
        }
    }
    let mut sessions: Vec<Session> = sessions.into_values().collect();
    sessions.sort_by_key(|session| session.attempt);
    sessions
}

/// The sessions of one attempt. The last one has the bill, because it is the one that continues.
fn of_attempt(run: &str, tried: PastAttempt) -> Vec<Session> {
    let mut ids = tried.sessions.clone();
    ids.retain(|id| !id.starts_with(TOLD));
    let is_its_own = !ids.is_empty();
    if !is_its_own && tried.asks_an_agent() {
        ids.push(own_name(run, tried.id));
    }
    let mut sessions: Vec<Session> = ids
        .into_iter()
        .map(|id| Session {
            id,
            is_its_own,
            attempt: tried.id,
            task: tried.task,
            step: tried.step,
            lane: tried.lane,
            round: tried.round,
            began: tried.started,
            ended: tried.ended.clone(),
            cost: Sum::default(),
        })
        .collect();
    if let Some(last) = sessions.last_mut() {
        let charges = cost::of_attempt(&tried).into_iter();
        last.cost = charges.fold(Sum::default(), |sum, charge| sum.plus(charge.sum));
    }
    sessions
}

/// The id of the last session of a task.
pub fn last_of(sessions: &[Session], task: TaskId) -> Option<&str> {
    sessions.iter().rfind(|session| session.task == task).map(|session| session.id.as_str())
}

/// The session id of an agent call, from the attempt and session in its files.
pub fn session_of(run: &str, attempt: &str, session: Option<&str>) -> String {
    attempt.parse().map(|attempt| name(run, attempt, session)).unwrap_or_default()
}

/// Whether a session is the newest of its step, whose answer counts. All steps of a workflow step
/// share one session.
pub fn is_current(session: &Session, among: &[Session], state: &State) -> bool {
    let task = state.task(session.task);
    let is_one = task.pipeline.continues_at().is_some();
    let same =
        |other: &&Session| other.task == session.task && (is_one || other.step == session.step);
    let newest = among.iter().filter(same).map(|other| other.attempt).max();
    let is_newest = newest == Some(session.attempt);
    let twins = among.iter().filter(|other| other.attempt == session.attempt).count();
    let last = task.sessions.get(&session.step);
    is_newest && (twins == 1 || last == Some(&session.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use autopilot_core::event::{Bill, Event, Facts};
    use autopilot_core::id::Micros;

    const TASK: TaskId = TaskId(1);

    fn id(seq: u64) -> AttemptId {
        AttemptId { seq, place: 0 }
    }

    fn record(seq: u64, event: Event) -> Record {
        Record { seq, at: Time(seq as i64 * 1000), events: vec![event] }
    }

    fn started(seq: u64, step: Step) -> Record {
        let event = format!(r#"{{"e":"attempt_started","task":1,"step":"{}"}}"#, step.word());
        record(seq, serde_json::from_str(&event).unwrap())
    }

    fn opened(seq: u64, of: u64, session: &str) -> Record {
        let session = session.to_owned();
        let (id, step) = (id(of), Step::Build);
        record(seq, Event::SessionOpened { id, task: TASK, step, session, continued: false })
    }

    fn billed(seq: u64, of: u64, usd: u64) -> Record {
        let bill = Bill { usd: Micros(usd), tokens_in: 1, ..Bill::default() };
        record(seq, Event::Billed { id: id(of), task: TASK, bill, total: None })
    }

    fn ended(seq: u64, of: u64, outcome: Outcome) -> Record {
        let facts = Box::new(Facts { log: Some("logs/x".into()), ..Facts::default() });
        let (id, step) = (id(of), Step::Build);
        record(seq, Event::AttemptEnded { id, task: TASK, step, outcome, facts })
    }

    #[test]
    fn a_session_that_was_gone_on_with_is_one_with_all_its_costs() {
        let records = [
            started(1, Step::Build),
            opened(2, 1, "s-1"),
            billed(3, 1, 20),
            ended(4, 1, Outcome::Failed { why: "no".into() }),
            started(5, Step::Fix),
            opened(6, 5, "s-1"),
            billed(7, 5, 30),
            ended(8, 5, Outcome::Passed),
        ];
        let told = sessions("r", &records);
        assert_eq!(told.len(), 1);
        assert_eq!((told[0].attempt, told[0].step), (id(5), Step::Fix));
        assert_eq!((told[0].cost.bill.usd, told[0].cost.attempts), (Micros(50), 2));
        assert!(told[0].is_its_own && told[0].ended == Some((Time(8000), Outcome::Passed)));
    }

    #[test]
    fn agents_without_sessions_get_one_named_after_the_attempt_and_commands_get_none() {
        let records = [
            started(1, Step::Build),
            ended(2, 1, Outcome::Passed),
            started(3, Step::Validate),
            started(4, Step::Review),
        ];
        let told = sessions("20260101-x", &records);
        let ids: Vec<&str> = told.iter().map(|session| session.id.as_str()).collect();
        assert_eq!(ids, ["20260101-x-1.0", "20260101-x-4.0"]);
        assert!(told.iter().all(|session| !session.is_its_own));
        assert_eq!(told[1].ended, None);
    }

    #[test]
    fn a_second_session_of_an_attempt_has_its_bill() {
        let records = [
            started(1, Step::Build),
            opened(2, 1, "first"),
            opened(3, 1, "second"),
            billed(4, 1, 7),
        ];
        let told = sessions("r", &records);
        let costs: Vec<(&str, u64)> =
            told.iter().map(|told| (told.id.as_str(), told.cost.bill.usd.0)).collect();
        assert!(costs.contains(&("first", 0)) && costs.contains(&("second", 7)), "{costs:?}");
    }
}
