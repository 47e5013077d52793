//! The cost of a run: each increase of a bill with its time, and the attempts whose cost was not
//! reported.

use crate::history::{PastAttempt, history};
use autopilot_core::event::{Bill, Record};
use autopilot_core::id::{AttemptId, Micros, TaskId, Time};
use autopilot_core::step::Step;

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
    /// The money that is reserved for attempts and not spent.
    pub reserved: Micros,
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
            reserved: self.reserved.plus(other.reserved),
            attempts: self.attempts + other.attempts,
            cost_unknown: self.cost_unknown + other.cost_unknown,
            tokens_unknown: self.tokens_unknown + other.tokens_unknown,
        }
    }

    /// Whether nothing of the cost is known.
    pub fn is_cost_dark(&self) -> bool {
        self.attempts > 0 && self.cost_unknown >= self.attempts && self.bill.counted().0 == 0
    }

    /// Whether nothing of the tokens is known.
    pub fn are_tokens_dark(&self) -> bool {
        let told = self.bill.tokens_in + self.bill.tokens_out;
        self.attempts > 0 && self.tokens_unknown >= self.attempts && told == 0
    }
}

/// Returns the charges in order of time. An attempt counts once, with its first charge.
pub fn charges(records: &[Record]) -> Vec<Charge> {
    let mut charges: Vec<Charge> = history(records).attempts.iter().flat_map(of_attempt).collect();
    charges.sort_by_key(|charge| (charge.at, charge.attempt));
    charges
}

/// The charges of an attempt. One that asked an agent and reported no cost has a charge of zero.
pub(super) fn of_attempt(tried: &PastAttempt) -> Vec<Charge> {
    let charge = |at: Time, bill: Bill| {
        let (attempt, sum) = (tried.id, Sum { bill, ..Sum::default() });
        Charge { at, attempt, task: tried.task, step: tried.step, lane: tried.lane, sum }
    };
    let is_billed = !tried.rises.is_empty();
    let mut charges: Vec<Charge> =
        tried.rises.iter().map(|(at, rise)| charge(*at, *rise)).collect();
    if !is_billed && tried.asks_an_agent() {
        let at = tried.ended.as_ref().map_or(tried.started, |(at, _)| *at);
        charges.push(charge(at, Bill::default()));
    }
    if let Some(first) = charges.first_mut() {
        let told = tried.bill.tokens_in + tried.bill.tokens_out;
        first.sum.attempts = 1;
        first.sum.reserved = tried.reserved;
        first.sum.cost_unknown = u32::from(!is_billed || !tried.bill.is_complete());
        first.sum.tokens_unknown = u32::from(told == 0);
    }
    charges
}

#[cfg(test)]
mod tests {
    use super::*;
    use autopilot_core::event::{Event, Facts, Outcome};

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
            let Sum { bill, attempts, cost_unknown, tokens_unknown, .. } = charge.sum;
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
