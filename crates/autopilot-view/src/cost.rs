//! The cost of a run: each increase of a bill with its time, and the attempts whose cost was not
//! reported.

use autopilot_core::event::{Bill, Event, Record};
use autopilot_core::id::{AttemptId, TaskId, Time};
use autopilot_core::session_name::asked_something;
use autopilot_core::step::Step;
use std::collections::BTreeMap;

/// The amount that one record added to the bill of an attempt; an attempt's charges sum to its bill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    pub at: Time,
    pub attempt: AttemptId,
    pub task: TaskId,
    pub step: Step,
    /// The lane of the agent that did it.
    pub lane: u32,
    pub sum: Sum,
}

/// Money and tokens, and the number of attempts for which they are not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub bill: Bill,
    /// All attempts, whether they reported a cost or not.
    pub attempts: u32,
    /// The attempts whose cost is not, or not fully, known.
    pub cost_unknown: u32,
    /// The attempts whose tokens are not known.
    pub tokens_unknown: u32,
}

impl Sum {
    /// The sum of two sums.
    #[must_use]
    pub fn plus(self, other: Sum) -> Sum {
        Sum {
            bill: self.bill.plus(other.bill),
            attempts: self.attempts + other.attempts,
            cost_unknown: self.cost_unknown + other.cost_unknown,
            tokens_unknown: self.tokens_unknown + other.tokens_unknown,
        }
    }

    /// Whether nothing of the cost is known.
    pub fn is_cost_dark(&self) -> bool {
        self.attempts > 0 && self.cost_unknown >= self.attempts && self.bill.usd.0 == 0
    }

    /// Whether nothing of the tokens is known.
    pub fn are_tokens_dark(&self) -> bool {
        let told = self.bill.tokens_in + self.bill.tokens_out;
        self.attempts > 0 && self.tokens_unknown >= self.attempts && told == 0
    }
}

/// Returns the charges in order of time. An attempt counts once, with its first charge.
pub fn charges(records: &[Record]) -> Vec<Charge> {
    let mut fold = CostFold::default();
    for record in records {
        for (place, event) in record.events.iter().enumerate() {
            fold.event(AttemptId { seq: record.seq, place: place as u32 }, record.at, event);
        }
    }
    fold.finish()
}

#[derive(Default)]
struct CostFold {
    known: BTreeMap<AttemptId, KnownAttempt>,
    charges: Vec<Charge>,
}

struct KnownAttempt {
    task: TaskId,
    step: Step,
    lane: u32,
    /// The time of its start; later, of its end.
    at: Time,
    bill: Bill,
    /// The index of its first charge.
    first: Option<usize>,
    uses_an_agent: bool,
}

impl CostFold {
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other event is about a bill")]
    fn event(&mut self, id: AttemptId, at: Time, event: &Event) {
        match event {
            Event::AttemptStarted { task, step, lane } => {
                let uses_an_agent = step.role().is_some();
                let bill = Bill::default();
                let (task, step, lane) = (*task, *step, *lane);
                let known = KnownAttempt { task, step, lane, at, bill, first: None, uses_an_agent };
                self.known.insert(id, known);
            }
            Event::AttemptEnded { id, outcome, facts, .. } => {
                if let Some(known) = self.known.get_mut(id) {
                    known.at = at;
                    known.uses_an_agent &= asked_something(outcome, facts);
                }
            }
            Event::Billed { id, bill, .. } => self.billed(*id, at, *bill),
            _ => {}
        }
    }

    fn billed(&mut self, id: AttemptId, at: Time, bill: Bill) {
        let Some(known) = self.known.get_mut(&id) else { return };
        let after = known.bill.max(bill);
        let rise = after.since(known.bill);
        known.bill = after;
        let attempts = u32::from(known.first.is_none());
        known.first.get_or_insert(self.charges.len());
        let sum = Sum { bill: rise, attempts, ..Sum::default() };
        let KnownAttempt { task, step, lane, .. } = *known;
        self.charges.push(Charge { at, attempt: id, task, step, lane, sum });
    }

    fn finish(mut self) -> Vec<Charge> {
        for (id, known) in self.known {
            let sum = Sum {
                cost_unknown: u32::from(known.first.is_none() || known.bill.unpriced),
                tokens_unknown: u32::from(known.bill.tokens_in + known.bill.tokens_out == 0),
                ..Sum::default()
            };
            match known.first.and_then(|first| self.charges.get_mut(first)) {
                Some(charge) => charge.sum = charge.sum.plus(sum),
                None if known.uses_an_agent => self.charges.push(Charge {
                    at: known.at,
                    attempt: id,
                    task: known.task,
                    step: known.step,
                    lane: known.lane,
                    sum: Sum { attempts: 1, ..sum },
                }),
                None => {}
            }
        }
        self.charges.sort_by_key(|charge| (charge.at, charge.attempt));
        self.charges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use autopilot_core::event::{Facts, Outcome};
    use autopilot_core::id::Micros;

    const TASK: TaskId = TaskId(1);

    fn record(seq: u64, event: Event) -> Record {
        Record { seq, at: Time(seq as i64 * 1000), events: vec![event] }
    }

    fn started(seq: u64, step: Step) -> Record {
        let event = format!(r#"{{"e":"attempt_started","task":1,"step":"{}"}}"#, step.word());
        record(seq, serde_json::from_str(&event).unwrap())
    }

    fn billed(seq: u64, of: u64, usd: u64, tokens_in: u64) -> Record {
        let bill = Bill { usd: Micros(usd), tokens_in, ..Bill::default() };
        let id = AttemptId { seq: of, place: 0 };
        record(seq, Event::Billed { id, task: TASK, bill, total: None })
    }

    fn ended(seq: u64, of: u64, step: Step, outcome: Outcome, log: Option<&str>) -> Record {
        let facts = Facts { log: log.map(str::to_owned), ..Facts::default() };
        let id = AttemptId { seq: of, place: 0 };
        let facts = Box::new(facts);
        record(seq, Event::AttemptEnded { id, task: TASK, step, outcome, facts })
    }

    fn told(records: &[Record]) -> Vec<(i64, u64, u64, u32, u32, u32)> {
        let tell = |charge: Charge| {
            let Sum { bill, attempts, cost_unknown, tokens_unknown } = charge.sum;
            (charge.at.0, bill.usd.0, bill.tokens_in, attempts, cost_unknown, tokens_unknown)
        };
        charges(records).into_iter().map(tell).collect()
    }

    #[test]
    fn a_cumulative_bill_is_charged_by_what_it_rises_and_when() {
        let records = [
            started(1, Step::Build),
            billed(2, 1, 300, 10),
            // Doubled and smaller figures add nothing.
            billed(3, 1, 300, 10),
            billed(4, 1, 500, 10),
            ended(5, 1, Step::Build, Outcome::Passed, Some("logs/x")),
            // Money is owed after the end too.
            billed(6, 1, 500, 25),
        ];
        let told = told(&records);
        assert_eq!(told[0], (2000, 300, 10, 1, 0, 0));
        assert_eq!(told.iter().map(|t| t.1).sum::<u64>(), 500);
        assert_eq!(told.iter().map(|t| t.2).sum::<u64>(), 25);
        assert_eq!(told.iter().map(|t| t.3).sum::<u32>(), 1, "one attempt");
        assert_eq!(told.last().map(|t| t.0), Some(6000));
    }

    #[test]
    fn what_nobody_told_is_unknown_and_what_asked_nobody_is_nothing() {
        let broke = || Outcome::Broke { why: String::new() };
        let records = [
            started(1, Step::Build),
            ended(2, 1, Step::Build, Outcome::Passed, Some("logs/x")),
            started(3, Step::Review),
            ended(4, 3, Step::Review, Outcome::Lost, None),
            started(5, Step::Validate),
            ended(6, 5, Step::Validate, Outcome::Passed, Some("logs/y")),
            started(7, Step::Build),
            ended(8, 7, Step::Build, broke(), None),
            started(9, Step::Build),
            // Turned away in the middle of its work, or before it.
            started(10, Step::Build),
            ended(11, 10, Step::Build, Outcome::Quota { until: Time(0) }, Some("logs/z")),
            started(12, Step::Build),
            ended(13, 12, Step::Build, Outcome::Quota { until: Time(0) }, None),
        ];
        let told = told(&records);
        // The build, the lost review, the one that still runs, and the one without quota.
        assert_eq!(told.iter().map(|t| t.0).collect::<Vec<_>>(), [2000, 4000, 9000, 11_000]);
        assert!(told.iter().all(|t| (t.1, t.3, t.4, t.5) == (0, 1, 1, 1)), "{told:?}");
    }

    #[test]
    fn tokens_without_a_price_are_counted_and_their_cost_is_unknown() {
        let bill = Bill { tokens_in: 9, unpriced: true, ..Bill::default() };
        let id = AttemptId { seq: 1, place: 0 };
        let bill = record(2, Event::Billed { id, task: TASK, bill, total: None });
        let told = charges(&[started(1, Step::Build), bill]);
        let sum = told[0].sum;
        assert!(sum.is_cost_dark() && !sum.are_tokens_dark());
        // With one that is known beside it, a part is known.
        let part = sum.plus(Sum { attempts: 1, ..Sum::default() });
        assert!(!part.is_cost_dark() && part.cost_unknown == 1);
    }
}
