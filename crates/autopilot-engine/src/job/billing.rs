//! What the turns of an attempt cost. Bills are cumulative per attempt; a vendor may count over the
//! whole session instead, and then only what its count rises by is owed.

use super::{Job, JobError};
use autopilot_agents::{Scope, Tokens, Usage};
use autopilot_core::config::{Agent as AgentConfig, Price};
use autopilot_core::event::{Bill, SessionTotal, TokenTotal};
use autopilot_core::id::Micros;
use autopilot_core::input::Word;
use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub struct Billing {
    /// Of the turns before this one.
    earlier: Bill,
    this_turn: Bill,
    /// How far the vendor had counted the session when this turn began to go on with it.
    before: Option<Usage>,
    /// What tokens cost where the agent does not say.
    price: Option<Price>,
    session: Option<String>,
    totals: BTreeMap<String, SessionTotal>,
    last: Option<SessionTotal>,
}

impl Billing {
    /// `known` is how far the session that is gone on with was counted by earlier attempts.
    fn begin(&mut self, session: Option<&str>, known: Option<&SessionTotal>, price: Option<Price>) {
        let ours = session.and_then(|session| self.totals.get(session));
        self.before = ours.or(known).map(usage_of);
        self.session = session.map(str::to_owned);
        self.price = price;
    }

    pub fn opened(&mut self, session: &str) {
        self.session = Some(session.to_owned());
    }

    /// What the attempt owes by now.
    pub fn hear(&mut self, usage: &Usage) -> Word {
        self.count(usage);
        word(self.earlier.plus(self.this_turn), self.total(usage))
    }

    fn count(&mut self, usage: &Usage) {
        let bill = usage.of_run(self.before.as_ref());
        let Tokens { input, output, cached } = bill.tokens;
        let priced = || self.price.map(|price| price.of(input, output, cached));
        let usd = bill.cost_usd.map(Micros::from_usd).or_else(priced);
        self.this_turn = self.this_turn.max(Bill {
            usd: usd.unwrap_or_default(),
            tokens_in: input,
            tokens_out: output,
            cached,
            unpriced: usd.is_none(),
        });
    }

    pub fn end(&mut self, usage: Option<&Usage>, session: Option<&str>) {
        if let Some(session) = session {
            self.opened(session);
        }
        match usage {
            Some(usage) => {
                self.count(usage);
                self.last = self.total(usage);
                if let Some(total) = &self.last {
                    self.totals.insert(total.session.clone(), total.clone());
                }
            }
            // Of an attempt of which something is known, the rest is not to look like nothing.
            None if self.earlier != Bill::default() => self.this_turn.unpriced = true,
            None => {}
        }
        self.earlier = self.earlier.plus(std::mem::take(&mut self.this_turn));
        self.before = None;
    }

    /// What all turns together owe, and how far the vendor has counted the last session.
    pub fn owed(&self) -> (Bill, Option<Box<SessionTotal>>) {
        (self.earlier, self.last.clone().map(Box::new))
    }

    fn total(&self, usage: &Usage) -> Option<SessionTotal> {
        let session = self.session.clone()?;
        let usd = (usage.cost_scope == Scope::Session).then_some(usage.cost_usd).flatten();
        let Tokens { input, output, cached } = usage.tokens;
        let tokens =
            (usage.tokens_scope == Scope::Session).then_some(TokenTotal { input, output, cached });
        let total = SessionTotal { session, usd: usd.map(Micros::from_usd), tokens };
        (total.usd.is_some() || total.tokens.is_some()).then_some(total)
    }
}

fn word(bill: Bill, total: Option<SessionTotal>) -> Word {
    match total {
        Some(total) => Word::Counted { bill, total: Box::new(total) },
        None => Word::Bill(bill),
    }
}

fn usage_of(total: &SessionTotal) -> Usage {
    let TokenTotal { input, output, cached } = total.tokens.unwrap_or_default();
    Usage {
        tokens: Tokens { input, output, cached },
        tokens_scope: Scope::Session,
        cost_usd: total.usd.map(Micros::usd),
        cost_scope: Scope::Session,
    }
}

impl Job {
    pub(super) fn billing(&self) -> MutexGuard<'_, Billing> {
        self.billing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before each turn: what was owed for the one before is told, because this one may be what a
    /// limit forbids. Gives what the turn may cost at most.
    pub(super) fn open_bill(
        &self,
        config: &AgentConfig,
        session: Option<&str>,
    ) -> Result<Option<f64>, JobError> {
        let (owed, total) = self.billing().owed();
        if owed != Bill::default() {
            self.say(word(owed, total.map(|total| *total)));
        }
        let left = self.money_left();
        if left == Some(Micros(0)) {
            return Err(JobError::Setup("the limit on money is reached".to_owned()));
        }
        let price = config.model.as_deref().and_then(|model| self.context.config.price(model));
        let known = session.and_then(|session| self.task.totals.get(session));
        self.billing().begin(session, known, price);
        let own = config.max_usd;
        Ok(match (own, left.map(Micros::usd)) {
            (Some(own), Some(left)) => Some(own.min(left)),
            (own, left) => own.or(left),
        })
    }

    /// Of what the run and the task may spend, as far as this job knows: others spend too, and the
    /// core counts all of it.
    pub(super) fn money_left(&self) -> Option<Micros> {
        let (owed, _) = self.billing().owed();
        let limits = &self.run.limits;
        let left = |max: Option<Micros>, spent: Micros| {
            max.map(|max| Micros(max.0.saturating_sub(spent.plus(owed.usd).0)))
        };
        let of_run = left(limits.usd_max, self.run.spent.usd);
        let of_task = left(limits.usd_per_task_max, self.task.spent.bill.usd);
        of_run.into_iter().chain(of_task).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session_cost(usd: f64, input: u64) -> Usage {
        Usage {
            tokens: Tokens { input, output: 1, cached: 0 },
            tokens_scope: Scope::Run,
            cost_usd: Some(usd),
            cost_scope: Scope::Session,
        }
    }

    fn session_tokens(input: u64, cached: u64, output: u64) -> Usage {
        Usage {
            tokens: Tokens { input, output, cached },
            tokens_scope: Scope::Session,
            cost_usd: None,
            cost_scope: Scope::Run,
        }
    }

    #[test]
    fn a_session_that_goes_on_owes_only_what_its_count_rises_by() {
        let mut first = Billing::default();
        first.begin(None, None, None);
        first.opened("s");
        first.end(Some(&session_cost(0.12, 10)), None);
        let (bill, total) = first.owed();
        assert_eq!((bill.usd, bill.tokens_in), (Micros(120_000), 10));
        let total = *total.unwrap();
        assert_eq!((total.session.as_str(), total.usd), ("s", Some(Micros(120_000))));

        // Another attempt, perhaps of another process: it knows only what is durable.
        let mut next = Billing::default();
        next.begin(Some("s"), Some(&total), None);
        next.end(Some(&session_cost(0.15, 7)), Some("s"));
        let (bill, total) = next.owed();
        assert_eq!((bill.usd, bill.tokens_in), (Micros(30_000), 7));
        assert_eq!(total.unwrap().usd, Some(Micros(150_000)));
    }

    #[test]
    fn the_second_turn_of_an_attempt_owes_the_rise_and_a_new_session_all_of_it() {
        let mut billing = Billing::default();
        billing.begin(None, None, None);
        billing.opened("s");
        billing.end(Some(&session_cost(0.10, 1)), None);
        billing.begin(Some("s"), None, None);
        billing.end(Some(&session_cost(0.25, 1)), None);
        assert_eq!(billing.owed().0.usd, Micros(250_000));
        billing.begin(None, None, None);
        billing.opened("t");
        billing.end(Some(&session_cost(0.5, 1)), None);
        assert_eq!(billing.owed().0.usd, Micros(750_000));
    }

    #[test]
    fn tokens_without_a_cost_are_billed_by_the_price_of_the_rise() {
        let price = Price { input: 2.0, output: 10.0, cached: Some(0.5) };
        let total = SessionTotal {
            session: "t".into(),
            usd: None,
            tokens: Some(TokenTotal { input: 1000, output: 100, cached: 0 }),
        };
        let mut billing = Billing::default();
        billing.begin(Some("t"), Some(&total), Some(price));
        let Word::Counted { bill, total } = billing.hear(&session_tokens(1600, 400, 150)) else {
            panic!("the session's count is told along");
        };
        // 200 fresh, 400 cached, 50 out.
        assert_eq!(bill.usd, Micros(400 + 200 + 500));
        assert_eq!((bill.tokens_in, bill.cached, bill.unpriced), (600, 400, false));
        assert_eq!(total.tokens.unwrap().input, 1600);
    }

    #[test]
    fn what_has_no_price_is_said_to_have_none() {
        let mut billing = Billing::default();
        billing.begin(None, None, None);
        let Word::Bill(bill) = billing.hear(&session_tokens(5, 0, 5)) else {
            panic!("without a session there is no count of one");
        };
        assert!(bill.unpriced && bill.usd == Micros(0) && bill.tokens_in == 5);
        // A turn that tells nothing after one that told something.
        let mut billing = Billing::default();
        billing.begin(None, None, None);
        billing.end(Some(&session_cost(0.1, 1)), None);
        billing.begin(None, None, None);
        billing.end(None, None);
        let bill = billing.owed().0;
        assert_eq!((bill.usd, bill.unpriced), (Micros(100_000), true));
    }
}
