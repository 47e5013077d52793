//! The cost of an attempt's turns. A bill is cumulative per attempt; a vendor may count over the
//! whole session instead, and then only the increase of its count is owed.

use super::{Job, JobError};
use crate::purse::MoneyClaim;
use autopilot_agents::{AgentUsage, Scope, TokenCount};
use autopilot_core::config::{AgentConfig, Mode, Price};
use autopilot_core::decide::untold;
use autopilot_core::event::{Bill, SessionTotal};
use autopilot_core::id::Micros;
use autopilot_core::input::AttemptWord;
use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

/// The running bill of one attempt.
#[derive(Debug, Default)]
pub struct Billing {
    /// The bill of the turns before this one.
    earlier: Bill,
    this_turn: Bill,
    /// The vendor's count of the session when this turn resumed it.
    before: Option<AgentUsage>,
    /// The price of tokens, for agents that do not report a cost.
    price: Option<Price>,
    session: Option<String>,
    totals: BTreeMap<String, SessionTotal>,
    last: Option<SessionTotal>,
    /// The most the attempt may cost, once that is known.
    allowance: Option<Allowance>,
    /// The share of the allowance that this turn may cost.
    given: Option<Micros>,
    /// Money that was charged although no cost was reported.
    assumed: Micros,
}

#[derive(Clone, Copy, Debug)]
enum Allowance {
    Any,
    Max(Micros),
}

/// Whether an agent that reported no cost may have had one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostDoubt {
    Perhaps,
    /// The agent was turned away before any model answered.
    No,
    /// A scripted agent uses no model.
    Scripted,
}

impl Billing {
    /// Starts a turn. `known` is how far earlier attempts have counted the resumed session.
    fn begin(
        &mut self,
        session: Option<&str>,
        known: Option<&SessionTotal>,
        price: Option<Price>,
        given: Option<Micros>,
    ) {
        let ours = session.and_then(|session| self.totals.get(session));
        self.before = ours.or(known).map(usage_of);
        self.session = session.map(str::to_owned);
        self.price = price;
        self.given = given;
    }

    /// The bill of a turn of which only the last usage figures are left.
    pub fn of_turn(
        resumed: Option<&str>,
        known: Option<&SessionTotal>,
        price: Option<Price>,
        session: Option<&str>,
        usage: &AgentUsage,
    ) -> Billing {
        let mut billing = Billing::default();
        billing.begin(resumed, known, price, None);
        billing.end(Some(usage), session, CostDoubt::Perhaps);
        billing
    }

    /// Notes the session; one other than the resumed session counts from zero.
    pub fn opened(&mut self, session: &str) {
        if self.session.as_deref().is_some_and(|asked| asked != session) {
            self.before = self.totals.get(session).map(usage_of);
        }
        self.session = Some(session.to_owned());
    }

    /// Takes new usage figures and returns what the attempt owes by now.
    pub fn hear(&mut self, usage: &AgentUsage) -> AttemptWord {
        self.count(usage);
        word(self.earlier.plus(self.this_turn), self.total(usage))
    }

    /// The allowance and the cost of the turn, if the cost is higher.
    pub fn excess(&self) -> Option<(Micros, Micros)> {
        let given = self.given.filter(|given| self.this_turn.usd > *given)?;
        Some((given, self.this_turn.usd))
    }

    /// A note for people if money was charged that no agent reported.
    pub fn note(&self) -> Option<String> {
        (self.assumed > Micros(0)).then(|| untold(self.assumed))
    }

    fn count(&mut self, usage: &AgentUsage) {
        let bill = usage.of_run(self.before.as_ref());
        let TokenCount { input, output, cached } = bill.tokens;
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

    /// Ends the turn with its final usage figures.
    pub fn end(&mut self, usage: Option<&AgentUsage>, session: Option<&str>, doubt: CostDoubt) {
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
            // Figures of an interrupted turn stay; without any, the cost is unknown.
            None if self.this_turn == Bill::default() => {
                let is_free = doubt == CostDoubt::Scripted && self.earlier == Bill::default();
                self.this_turn.unpriced = !is_free;
            }
            None => {}
        }
        // Money that may have been spent must not be spent again.
        if self.this_turn.unpriced
            && doubt == CostDoubt::Perhaps
            && let Some(given) = self.given.filter(|given| *given > self.this_turn.usd)
        {
            self.assumed = self.assumed.plus(given.minus(self.this_turn.usd));
            self.this_turn.usd = given;
        }
        self.earlier = self.earlier.plus(std::mem::take(&mut self.this_turn));
        self.before = None;
    }

    /// The bill of all turns, and the vendor's count of the last session.
    pub fn owed(&self) -> (Bill, Option<Box<SessionTotal>>) {
        (self.earlier, self.last.clone().map(Box::new))
    }

    fn total(&self, usage: &AgentUsage) -> Option<SessionTotal> {
        let session = self.session.clone()?;
        let usd = usage.cost_usd.filter(|_| usage.cost_scope == Scope::Session);
        let tokens = (usage.tokens_scope == Scope::Session).then_some(usage.tokens);
        let total = SessionTotal { session, usd: usd.map(Micros::from_usd), tokens };
        (total.usd.is_some() || total.tokens.is_some()).then_some(total)
    }
}

fn word(bill: Bill, total: Option<SessionTotal>) -> AttemptWord {
    match total {
        Some(total) => AttemptWord::Counted { bill, total: Box::new(total) },
        None => AttemptWord::Bill(bill),
    }
}

fn usage_of(total: &SessionTotal) -> AgentUsage {
    let tokens = total.tokens.unwrap_or_default();
    AgentUsage::new(Scope::Session, tokens, total.usd.map(Micros::usd))
}

/// The limit that leaves no money for another turn.
#[derive(Debug, thiserror::Error)]
pub enum BudgetGone {
    #[error("the run has spent {spent} of its limit of {max}; `--max-usd` raises the limit")]
    Run { spent: Micros, max: Micros },
    #[error(
        "task {name} has spent {spent} of its limit of {max}; `--max-usd-per-task` raises the limit"
    )]
    Task { name: String, spent: Micros, max: Micros },
    #[error("it has spent {spent} of the {max} its agent may spend (`max_usd`)")]
    Agent { spent: Micros, max: Micros },
    #[error("it has spent {spent} and has no money left")]
    Attempt { spent: Micros },
}

impl Job {
    pub(super) fn billing(&self) -> MutexGuard<'_, Billing> {
        self.billing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the bill of a turn and returns what the turn may cost at most. The bill so far is
    /// recorded first, because a limit may forbid this turn.
    pub(super) async fn open_bill(
        &self,
        config: &AgentConfig,
        session: Option<&str>,
    ) -> Result<Option<f64>, JobError> {
        let (owed, total) = self.billing().owed();
        if owed != Bill::default() {
            self.say(word(owed, total.map(|total| *total)));
        }
        let given = match self.allowance(config).await {
            Allowance::Any => None,
            Allowance::Max(max) => Some(max.minus(owed.usd)),
        };
        if given == Some(Micros(0)) {
            return Err(self.money_gone(config).into());
        }
        // A scripted agent costs only what it reports.
        if let Some(given) = given.filter(|_| config.mode != Mode::Script)
            && !self.context.signals.vow(self.want, AttemptWord::Given(given)).await
        {
            return Err(JobError::NotWanted);
        }
        let price = config.model.as_deref().and_then(|model| self.context.config.price(model));
        let known = session.and_then(|session| self.task.totals.get(session));
        self.billing().begin(session, known, price, given);
        Ok(given.map(Micros::usd))
    }

    /// The allowance for all turns of the attempt, settled before the first one.
    async fn allowance(&self, config: &AgentConfig) -> Allowance {
        let known = self.billing().allowance;
        if let Some(known) = known {
            return known;
        }
        let of_task = self.left_of_task(Micros(0));
        let own_max = config.max_usd.map(Micros::from_usd).into_iter().chain(of_task).min();
        let given = match self.run.limits.usd_max {
            None => own_max,
            Some(max) => {
                let (id, spent, workers) = (self.want.id, self.run.spent.usd, self.workers);
                let claim = MoneyClaim { id, max, spent, workers, own_max };
                tokio::select! {
                    given = self.context.purse.claim(claim) => Some(given),
                    () = self.cancel.asked() => Some(Micros(0)),
                }
            }
        };
        let allowance = given.map_or(Allowance::Any, Allowance::Max);
        self.billing().allowance = Some(allowance);
        allowance
    }

    fn left_of_task(&self, owed: Micros) -> Option<Micros> {
        Some(self.task_max()?.minus(self.task.spent.bill.usd.plus(owed)))
    }

    /// The money of the run spent by ended attempts and by this one.
    fn spent_of_run(&self) -> Micros {
        let owed = self.billing().earlier.usd;
        self.context.purse.spent().unwrap_or(self.run.spent.usd).plus(owed)
    }

    /// The money left of the run's and the task's limits as far as this job knows: others spend
    /// too, and the core counts everything.
    pub(super) fn money_left(&self) -> Option<Micros> {
        let owed = self.billing().earlier.usd;
        let of_run = self.run.limits.usd_max.map(|max| max.minus(self.spent_of_run()));
        of_run.into_iter().chain(self.left_of_task(owed)).min()
    }

    /// The limit of the task; the run itself is not a task and has only its own limit.
    fn task_max(&self) -> Option<Micros> {
        self.run.limits.usd_per_task_max.filter(|_| self.task.parent.is_some())
    }

    /// Finds the limit that leaves no money for another turn.
    fn money_gone(&self, config: &AgentConfig) -> BudgetGone {
        let spent = self.billing().earlier.usd;
        let (run, task) = (self.spent_of_run(), self.task.spent.bill.usd.plus(spent));
        if let Some(max) = self.run.limits.usd_max.filter(|max| run >= *max) {
            return BudgetGone::Run { spent: run, max };
        }
        if let Some(max) = self.task_max().filter(|max| task >= *max) {
            return BudgetGone::Task { name: self.task.name().to_owned(), spent: task, max };
        }
        match config.max_usd.map(Micros::from_usd).filter(|max| spent >= *max) {
            Some(max) => BudgetGone::Agent { spent, max },
            None => BudgetGone::Attempt { spent },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session_cost(usd: f64, input: u64) -> AgentUsage {
        AgentUsage {
            tokens: TokenCount { input, output: 1, cached: 0 },
            tokens_scope: Scope::Run,
            cost_usd: Some(usd),
            cost_scope: Scope::Session,
        }
    }

    fn session_tokens(input: u64, cached: u64, output: u64) -> AgentUsage {
        AgentUsage {
            tokens: TokenCount { input, output, cached },
            tokens_scope: Scope::Session,
            cost_usd: None,
            cost_scope: Scope::Run,
        }
    }

    #[test]
    fn another_session_than_was_asked_for_owes_all_it_counts() {
        let mut billing = Billing::default();
        billing.begin(None, None, None, None);
        billing.opened("s-0");
        billing.end(Some(&session_cost(1.0, 10)), None, CostDoubt::Perhaps);
        billing.begin(Some("s-0"), None, None, None);
        billing.opened("s-1");
        billing.end(Some(&session_cost(1.5, 10)), None, CostDoubt::Perhaps);
        assert_eq!(billing.owed().0.usd, Micros(2_500_000));
    }

    #[test]
    fn a_session_that_goes_on_owes_only_what_its_count_rises_by() {
        let mut first = Billing::default();
        first.begin(None, None, None, None);
        first.opened("s");
        first.end(Some(&session_cost(0.12, 10)), None, CostDoubt::Perhaps);
        let (bill, total) = first.owed();
        assert_eq!((bill.usd, bill.tokens_in), (Micros(120_000), 10));
        let total = *total.unwrap();
        assert_eq!((total.session.as_str(), total.usd), ("s", Some(Micros(120_000))));

        // Another attempt, perhaps of another process: it knows only what is durable.
        let mut next = Billing::default();
        next.begin(Some("s"), Some(&total), None, None);
        next.end(Some(&session_cost(0.15, 7)), Some("s"), CostDoubt::Perhaps);
        let (bill, total) = next.owed();
        assert_eq!((bill.usd, bill.tokens_in), (Micros(30_000), 7));
        assert_eq!(total.unwrap().usd, Some(Micros(150_000)));
    }

    #[test]
    fn the_second_turn_of_an_attempt_owes_the_rise_and_a_new_session_all_of_it() {
        let mut billing = Billing::default();
        billing.begin(None, None, None, None);
        billing.opened("s");
        billing.end(Some(&session_cost(0.10, 1)), None, CostDoubt::Perhaps);
        billing.begin(Some("s"), None, None, None);
        billing.end(Some(&session_cost(0.25, 1)), None, CostDoubt::Perhaps);
        assert_eq!(billing.owed().0.usd, Micros(250_000));
        billing.begin(None, None, None, None);
        billing.opened("t");
        billing.end(Some(&session_cost(0.5, 1)), None, CostDoubt::Perhaps);
        assert_eq!(billing.owed().0.usd, Micros(750_000));
    }

    #[test]
    fn tokens_without_a_cost_are_billed_by_the_price_of_the_rise() {
        let price = Price { input: 2.0, output: 10.0, cached: Some(0.5) };
        let total = SessionTotal {
            session: "t".into(),
            usd: None,
            tokens: Some(TokenCount { input: 1000, output: 100, cached: 0 }),
        };
        let mut billing = Billing::default();
        billing.begin(Some("t"), Some(&total), Some(price), None);
        let AttemptWord::Counted { bill, total } = billing.hear(&session_tokens(1600, 400, 150))
        else {
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
        billing.begin(None, None, None, None);
        let AttemptWord::Bill(bill) = billing.hear(&session_tokens(5, 0, 5)) else {
            panic!("without a session there is no count of one");
        };
        assert!(bill.unpriced && bill.usd == Micros(0) && bill.tokens_in == 5);
        // A turn that tells nothing after one that told something.
        let mut billing = Billing::default();
        billing.begin(None, None, None, None);
        billing.end(Some(&session_cost(0.1, 1)), None, CostDoubt::Perhaps);
        billing.begin(None, None, None, None);
        billing.end(None, None, CostDoubt::Perhaps);
        let bill = billing.owed().0;
        assert_eq!((bill.usd, bill.unpriced), (Micros(100_000), true));
    }

    #[test]
    fn what_nobody_told_is_charged_with_all_it_was_given() {
        let mut billing = Billing::default();
        billing.begin(None, None, None, Some(Micros(500)));
        billing.end(None, None, CostDoubt::Perhaps);
        let bill = billing.owed().0;
        assert_eq!((bill.usd, bill.unpriced), (Micros(500), true));
        assert!(billing.note().is_some());
        // Nor do tokens without a price tell it.
        let mut billing = Billing::default();
        billing.begin(None, None, None, Some(Micros(500)));
        billing.end(Some(&session_tokens(5, 0, 5)), None, CostDoubt::Perhaps);
        assert_eq!(billing.owed().0.usd, Micros(500));
        // The cost of an agent that never reached a model is unknown, but nothing is owed.
        for (given, worked) in [(Some(Micros(500)), CostDoubt::No), (None, CostDoubt::Perhaps)] {
            let mut billing = Billing::default();
            billing.begin(None, None, None, given);
            billing.end(None, None, worked);
            let bill = billing.owed().0;
            assert_eq!((bill.usd, bill.unpriced), (Micros(0), true));
            assert_eq!(billing.note(), None);
        }
        // An agent that reported its cost owes that.
        let mut billing = Billing::default();
        billing.begin(None, None, None, Some(Micros(500_000)));
        billing.end(Some(&session_cost(0.1, 1)), None, CostDoubt::Perhaps);
        assert_eq!(billing.owed().0.usd, Micros(100_000));
    }

    #[test]
    fn a_figure_above_what_the_turn_was_given_is_an_excess() {
        let mut billing = Billing::default();
        billing.begin(None, None, None, Some(Micros(100_000)));
        let _told = billing.hear(&session_cost(0.1, 1));
        assert_eq!(billing.excess(), None);
        let _told = billing.hear(&session_cost(0.15, 1));
        assert_eq!(billing.excess(), Some((Micros(100_000), Micros(150_000))));
    }
}
