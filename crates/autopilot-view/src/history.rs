//! The whole history of a run, folded from its records: every attempt with its result, and all
//! other events that a person may look up afterwards.

use autopilot_core::event::{Bill, Event, Facts, HoldWhy, Outcome, Record, away};
use autopilot_core::id::{AttemptId, TaskId, Time};
use autopilot_core::pipeline::Switch;
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
    pub round: u32,
    pub started: Time,
    /// The time and outcome of its end; none while it runs.
    pub ended: Option<(Time, Outcome)>,
    pub facts: Facts,
    pub bill: Bill,
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
    for record in records {
        for (place, event) in record.events.iter().enumerate() {
            fold.event(AttemptId { seq: record.seq, place: place as u32 }, record.at, event);
        }
    }
    RunHistory { attempts: fold.attempts.into_values().collect(), remarks: fold.remarks }
}

#[derive(Default)]
struct HistoryFold {
    attempts: BTreeMap<AttemptId, PastAttempt>,
    rounds: BTreeMap<TaskId, u32>,
    remarks: Vec<Remark>,
}

impl HistoryFold {
    #[expect(clippy::wildcard_enum_match_arm, reason = "other events are remarks")]
    fn event(&mut self, id: AttemptId, at: Time, event: &Event) {
        match event {
            Event::TaskMoved { task, round, .. } => {
                self.rounds.insert(*task, *round);
            }
            Event::AttemptStarted { task, step, .. } => self.started(id, at, *task, *step),
            Event::AttemptEnded { id, outcome, facts, .. } => {
                if let Some(tried) = self.attempts.get_mut(id) {
                    tried.ended = Some((at, outcome.clone()));
                    tried.facts = Facts::clone(facts);
                }
            }
            Event::Billed { id, bill, .. } => {
                if let Some(tried) = self.attempts.get_mut(id) {
                    tried.bill = tried.bill.max(*bill);
                }
            }
            _ => {}
        }
        if let Some((task, text)) = remark(event) {
            self.remarks.push(Remark { at, task, text });
        }
    }

    fn started(&mut self, id: AttemptId, at: Time, task: TaskId, step: Step) {
        let tried = PastAttempt {
            id,
            task,
            step,
            round: self.rounds.get(&task).copied().unwrap_or(1),
            started: at,
            ended: None,
            facts: Facts::default(),
            bill: Bill::default(),
        };
        self.attempts.insert(id, tried);
    }
}

fn remark(event: &Event) -> Option<(Option<TaskId>, String)> {
    match event {
        Event::StageSkipped { task, step, why } => {
            Some((Some(*task), format!("{step} skipped: {why}")))
        }
        Event::Overruled { task, why } => Some((Some(*task), format!("overruled: {why}"))),
        Event::RoundFailed { task, round, reasons, .. } => {
            let why: Vec<String> =
                reasons.iter().map(|reason| format!("{}: {}", reason.step, reason.text)).collect();
            Some((Some(*task), format!("iteration {round} not good enough: {}", why.join("; "))))
        }
        Event::RailTripped { task, rail } => Some((Some(*task), format!("stopped: {rail}"))),
        Event::TaskReopened { task } => Some((Some(*task), "reopened".to_owned())),
        Event::TaskContinued { task, words } => {
            Some((Some(*task), format!("a person continues session {}", words.session)))
        }
        Event::WaitBegan { task, until, account, why, guess, .. } => {
            Some((Some(*task), waits(account, *why, *until, *guess)))
        }
        Event::AccountHeld { account, until, why, text, guess, .. } => {
            Some((None, held(account, *until, *why, text, *guess)))
        }
        Event::AccountFreed { account } => Some((None, freed(account))),
        Event::Halted { halt } => Some((None, format!("halted: {}", halt.why))),
        Event::Resumed => Some((None, "resumed".to_owned())),
        Event::Booted { .. } => Some((None, "taken over by a new process".to_owned())),
        Event::LimitsChanged { config: Some(_), .. } => Some((None, "models changed".to_owned())),
        Event::LimitsChanged { config: None, .. } => Some((None, "limits changed".to_owned())),
        Event::Switched { switch, on, by } => Some((None, switched(*switch, *on, by))),
        Event::RoomChanged { short: Some(short) } => {
            Some((None, format!("not starting more workers: {short}")))
        }
        Event::RoomChanged { short: None } => {
            Some((None, "enough room for more workers again".to_owned()))
        }
        Event::RunStarted { .. }
        | Event::TaskAdded { .. }
        | Event::TaskMoved { .. }
        | Event::AttemptStarted { .. }
        | Event::AttemptEnded { .. }
        | Event::SessionOpened { .. }
        | Event::Billed { .. }
        | Event::MoneyGiven { .. }
        | Event::TaskSettled { .. }
        | Event::WaitEnded { .. }
        | Event::TimePassed => None,
    }
}

/// The message for a waiting task. `account` is empty in older journals; a `guess` is not a known end.
pub fn waits(account: &str, why: HoldWhy, until: Time, guess: bool) -> String {
    let of = if account.is_empty() { String::new() } else { format!(" of {account}") };
    let word = why.word();
    match (why, guess) {
        (HoldWhy::Quota, false) => format!("waiting for quota{of} until {}", until.rfc3339()),
        (HoldWhy::Quota, true) => format!("waiting for quota{of}; {}", next_try(until)),
        (HoldWhy::Auth | HoldWhy::Outage | HoldWhy::Model, false) => {
            format!("waiting for {account} until {} ({word})", until.rfc3339())
        }
        (HoldWhy::Auth | HoldWhy::Outage | HoldWhy::Model, true) => {
            format!("waiting for {account} ({word}); {}", next_try(until))
        }
    }
}

pub(super) fn held(
    account: &str,
    until: Option<Time>,
    why: HoldWhy,
    text: &str,
    guess: bool,
) -> String {
    match (why, until) {
        (HoldWhy::Quota, Some(until)) if !guess => {
            format!("{account} has no quota until {}", until.rfc3339())
        }
        (HoldWhy::Quota, Some(until)) => {
            format!("{account} has no quota; {}", next_try(until))
        }
        (HoldWhy::Auth | HoldWhy::Outage | HoldWhy::Model, Some(until)) => {
            format!("{}; next try at {}", away(account, why, text), until.rfc3339())
        }
        (_, None) => away(account, why, text),
    }
}

fn next_try(until: Time) -> String {
    format!("reset time unknown; next try about {}", until.rfc3339())
}

pub(super) fn freed(account: &str) -> String {
    format!("trying {account} again")
}

/// The message for a changed switch. `by` may be a path and is not changed.
pub(super) fn switched(switch: Switch, on: bool, by: &str) -> String {
    let what = match switch {
        Switch::Baseline => "baseline",
        Switch::Review => "review",
        Switch::Uat => "uat",
        Switch::Push => "push",
        Switch::Pr => "pull request",
        Switch::PlanGate => "approval of the plan",
        Switch::EndGate => "approval of the result",
        Switch::HasTests => "validation of the whole",
        Switch::FailFast => "fail-fast",
    };
    format!("{what} switched {} ({by})", if on { "on" } else { "off" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_nobody_named_is_not_told_as_one() {
        let at = Time(1_794_817_860_000);
        assert_eq!(
            held("codex", Some(at), HoldWhy::Quota, "", false),
            "codex has no quota until 2026-11-16T08:31:00Z"
        );
        let guess = "codex has no quota; reset time unknown; next try about 2026-11-16T08:31:00Z";
        assert_eq!(held("codex", Some(at), HoldWhy::Quota, "", true), guess);
        assert_eq!(
            waits("codex", HoldWhy::Quota, at, false),
            "waiting for quota of codex until 2026-11-16T08:31:00Z"
        );
        let guess =
            "waiting for quota of codex; reset time unknown; next try about 2026-11-16T08:31:00Z";
        assert_eq!(waits("codex", HoldWhy::Quota, at, true), guess);
        let guess = "waiting for codex (service not available); reset time unknown; next try about 2026-11-16T08:31:00Z";
        assert_eq!(waits("codex", HoldWhy::Outage, at, true), guess);
        let halted = |guess| autopilot_core::event::HaltWhy::Quota { until: at, guess }.to_string();
        assert!(halted(false).starts_with("the quota resets at 2026-11-16T08:31:00Z"));
        assert!(halted(true).contains("for an unknown time; the next try, about 2026"));
    }
    use autopilot_core::id::Micros;

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
        let line = crate::progress::told(&event, &autopilot_core::state::State::default());
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
