//! The whole history of a run, folded from its records: every attempt with its result, and all
//! other events that a person may look up afterwards.

use crate::wording::happened;
use autopilot_core::event::{Bill, Event, Facts, Outcome, Record};
use autopilot_core::id::{AttemptId, Micros, TaskId, Time};
use autopilot_core::session_name::asked_something;
use autopilot_core::step::Step;
use std::collections::BTreeMap;

/// The history of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunHistory {
    /// The attempts in the order of their starts.
    pub attempts: Vec<PastAttempt>,
    pub remarks: Vec<Remark>,
}

/// One attempt from its start to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct PastAttempt {
    pub id: AttemptId,
    pub task: TaskId,
    pub step: Step,
    /// The lane of the agent that did it.
    pub lane: u32,
    pub round: u32,
    pub started: Time,
    /// The time and outcome of its end; none while it runs.
    pub ended: Option<(Time, Outcome)>,
    pub facts: Facts,
    pub bill: Bill,
    /// The amounts by which its bill grew, with their times.
    pub rises: Vec<(Time, Bill)>,
    /// The money that is reserved for it and not spent.
    pub reserved: Micros,
    /// The sessions that its agent opened, the last one at the end.
    pub sessions: Vec<String>,
}

impl PastAttempt {
    /// Whether the attempt has asked an agent, or may still.
    pub fn asks_an_agent(&self) -> bool {
        let asked = |(_, outcome): &(Time, Outcome)| asked_something(outcome, &self.facts);
        self.step.role().is_some() && self.ended.as_ref().is_none_or(asked)
    }
}

/// An event that is neither an attempt nor its result: a skipped stage, a halt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    pub at: Time,
    pub task: Option<TaskId>,
    pub text: String,
}

impl RunHistory {
    /// The attempts of a task.
    pub fn of_task(&self, task: TaskId) -> impl Iterator<Item = &PastAttempt> {
        self.attempts.iter().filter(move |tried| tried.task == task)
    }

    /// The remarks on a task.
    pub fn remarks_on(&self, task: TaskId) -> impl Iterator<Item = &Remark> {
        self.remarks.iter().filter(move |remark| remark.task == Some(task))
    }
}

/// Folds the history of a run from its records.
pub fn history(records: &[Record]) -> RunHistory {
    let mut fold = HistoryFold::default();
    let mut remarks = Vec::new();
    for record in records {
        for (id, event) in record.numbered() {
            fold.event(id, record.at, event);
            if let Some(text) = remark(event) {
                remarks.push(Remark { at: record.at, task: event.task(), text });
            }
        }
    }
    RunHistory { attempts: fold.attempts.into_values().collect(), remarks }
}

#[derive(Default)]
struct HistoryFold {
    attempts: BTreeMap<AttemptId, PastAttempt>,
    rounds: BTreeMap<TaskId, u32>,
}

impl HistoryFold {
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other event is about an attempt")]
    fn event(&mut self, id: AttemptId, at: Time, event: &Event) {
        match event {
            Event::TaskMoved { task, round, .. } => {
                self.rounds.insert(*task, *round);
            }
            Event::AttemptStarted { task, step, lane } => {
                let started = PastAttempt {
                    id,
                    task: *task,
                    step: *step,
                    lane: *lane,
                    round: self.rounds.get(task).copied().unwrap_or(1),
                    started: at,
                    ended: None,
                    facts: Facts::default(),
                    bill: Bill::default(),
                    rises: Vec::new(),
                    reserved: Micros(0),
                    sessions: Vec::new(),
                };
                self.attempts.insert(id, started);
            }
            Event::AttemptEnded { id, outcome, facts, .. } => {
                if let Some(tried) = self.attempts.get_mut(id) {
                    tried.ended = Some((at, outcome.clone()));
                    tried.facts = Facts::clone(facts);
                }
            }
            Event::Billed { id, bill, .. } => {
                if let Some(tried) = self.attempts.get_mut(id) {
                    let before = tried.bill;
                    tried.bill = before.max(*bill);
                    let rise = tried.bill.since(before);
                    tried.reserved = tried.reserved.minus(rise.counted());
                    tried.rises.push((at, rise));
                }
            }
            Event::MoneyGiven { id, usd, .. } => {
                if let Some(tried) = self.attempts.get_mut(id) {
                    tried.reserved = *usd;
                }
            }
            Event::SessionOpened { id, session, .. } => {
                if let Some(tried) = self.attempts.get_mut(id) {
                    tried.sessions.retain(|known| known != session);
                    tried.sessions.push(session.clone());
                }
            }
            _ => {}
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the others have the same words everywhere")]
fn remark(event: &Event) -> Option<String> {
    match event {
        Event::Overruled { why, .. } => Some(format!("overruled: {why}")),
        Event::RoundFailed { round, reasons, .. } => {
            let why: Vec<String> =
                reasons.iter().map(|reason| format!("{}: {}", reason.step, reason.text)).collect();
            Some(format!("iteration {round} not good enough: {}", why.join("; ")))
        }
        Event::RailTripped { rail, .. } => Some(format!("stopped: {rail}")),
        Event::Halted { halt } => Some(format!("halted: {}", halt.why)),
        Event::Booted { .. } => Some("taken over by a new process".to_owned()),
        other => happened(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use autopilot_core::pipeline::Switch;

    const TASK: TaskId = TaskId(1);

    fn record(seq: u64, events: Vec<Event>) -> Record {
        Record { seq, at: Time(seq as i64 * 1000), events }
    }

    fn bill(usd: u64) -> Event {
        let id = AttemptId { seq: 1, place: 1 };
        let bill = Bill { usd: Micros(usd), ..Bill::default() };
        Event::Billed { id, task: TASK, bill, total: None }
    }

    #[test]
    fn an_attempt_has_the_round_it_ran_in_its_end_and_its_largest_bill() {
        let id = AttemptId { seq: 1, place: 1 };
        let facts = Box::new(Facts { exit: Some(1), ms: 900, ..Facts::default() });
        let outcome = Outcome::Failed { why: "red".into() };
        let told = history(&[
            record(
                1,
                vec![
                    Event::TaskMoved { task: TASK, step: Step::Validate, round: 3 },
                    Event::AttemptStarted { task: TASK, step: Step::Validate, lane: 0 },
                ],
            ),
            record(2, vec![bill(7), bill(5)]),
            record(
                3,
                vec![Event::AttemptEnded {
                    id,
                    task: TASK,
                    step: Step::Validate,
                    outcome: outcome.clone(),
                    facts,
                }],
            ),
        ]);
        let tried = told.of_task(TASK).next().unwrap();
        assert_eq!((tried.id, tried.round, tried.bill.usd), (id, 3, Micros(7)));
        assert_eq!(tried.ended, Some((Time(3000), outcome)));
        assert_eq!((tried.facts.exit, tried.facts.ms), (Some(1), 900));
    }

    #[test]
    fn the_file_that_switched_the_review_off_keeps_its_name() {
        let by = "/Work/P/.autopilot/AUTOPILOT_SKIP_REVIEW";
        let event = Event::Switched { switch: Switch::Review, on: false, by: by.to_owned() };
        let said = "review switched off (/Work/P/.autopilot/AUTOPILOT_SKIP_REVIEW)";
        assert_eq!(history(&[record(1, vec![event.clone()])]).remarks[0].text, said);
        let line = crate::progress::line(&event, &autopilot_core::state::State::default());
        assert_eq!(line.map(|line| line.text).as_deref(), Some(said));
    }

    #[test]
    fn a_running_attempt_has_no_end_and_what_was_left_out_is_remarked() {
        let told = history(&[record(
            1,
            vec![
                Event::StageSkipped { task: TASK, step: Step::Uat, why: "no command".into() },
                Event::AttemptStarted { task: TASK, step: Step::Build, lane: 0 },
                Event::Resumed,
            ],
        )]);
        assert_eq!(told.attempts[0].ended, None);
        let on: Vec<&str> = told.remarks_on(TASK).map(|remark| remark.text.as_str()).collect();
        assert_eq!(on, ["uat skipped: no command"]);
        assert_eq!(told.remarks.len(), 2, "{:?}", told.remarks);
    }
}
