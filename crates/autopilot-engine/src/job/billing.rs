//! The cost of an attempt's turns. A bill is cumulative per attempt; a vendor may count over the
//! whole session instead, and then only the increase of its count is owed.

mod price_list;
#[cfg(test)]
mod tests;

pub use price_list::PriceList;

use super::{Job, JobError};
use crate::purse::MoneyClaim;
use autopilot_agents::{AgentUsage, Scope};
use autopilot_core::config::{AgentConfig, Mode};
use autopilot_core::decide::{MoneyGone, estimate, untold};
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
    /// The bill of the turn that ended last.
    last_turn: Bill,
    /// The vendor's count of the session when this turn resumed it.
    before: Option<AgentUsage>,
    prices: PriceList,
    session: Option<String>,
    totals: BTreeMap<String, SessionTotal>,
    last: Option<SessionTotal>,
    /// The most the attempt may cost, once that is known.
    allowance: Option<Allowance>,
    /// The share of the allowance that this turn may cost.
    given: Option<Micros>,
    /// The part of the bill that was estimated because no cost was reported.
    estimated: Micros,
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
        prices: PriceList,
        given: Option<Micros>,
    ) {
        let ours = session.and_then(|session| self.totals.get(session));
        self.before = ours.or(known).map(usage_of);
        self.session = session.map(str::to_owned);
        self.prices = prices;
        self.given = given;
    }

    /// Takes the count from which the vendor goes on in the resumed session, where its files tell it:
    /// after a kill it is not what we were told last.
    pub fn resumes_at(&mut self, count: &AgentUsage) {
        self.before = Some(self.prices.complete(count).0);
    }

    /// The bill of a turn of a process that died, by the last usage figures that are left of it.
    /// `count` is the vendor's own count when the turn resumed its session.
    pub fn of_turn(
        (resumed, count): (Option<&str>, Option<&AgentUsage>),
        known: Option<&SessionTotal>,
        prices: PriceList,
        session: Option<&str>,
        usage: &AgentUsage,
    ) -> Billing {
        let mut billing = Billing::default();
        billing.begin(resumed, known, prices, None);
        if let Some(count) = count {
            billing.resumes_at(count);
        }
        billing.end(Some(usage), session, CostDoubt::Perhaps, 0);
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
        let usage = self.count(usage);
        word(self.earlier.plus(self.this_turn), self.total(&usage))
    }

    /// The allowance and the cost of the turn, if the cost is higher.
    pub fn excess(&self) -> Option<(Micros, Micros)> {
        let given = self.given.filter(|given| self.this_turn.usd > *given)?;
        Some((given, self.this_turn.usd))
    }

    /// A note for people if a part of the bill was estimated.
    pub fn note(&self) -> Option<String> {
        (self.estimated > Micros(0)).then(|| untold(self.estimated))
    }

    /// Adds a report to the bill of the turn, and returns the report with all that is priced.
    fn count(&mut self, usage: &AgentUsage) -> AgentUsage {
        let (usage, is_whole) = self.prices.complete(usage);
        let bill = usage.of_run(self.before.as_ref());
        let priced = || self.prices.own(&usage, bill.tokens).filter(|_| is_whole);
        let usd = bill.cost_usd.map(Micros::from_usd).or_else(priced);
        self.this_turn = Bill {
            usd: self.this_turn.usd.max(usd.unwrap_or_default()),
            tokens_in: self.this_turn.tokens_in.max(bill.tokens.input),
            tokens_out: self.this_turn.tokens_out.max(bill.tokens.output),
            cached: self.this_turn.cached.max(bill.tokens.cached),
            // The newest report stands: an agent may tell its cost after its tokens.
            unpriced: usd.is_none() || !is_whole,
            estimated: Micros(0),
        };
        usage
    }

    /// Ends the turn with its final usage figures, after `ms` milliseconds.
    pub fn end(
        &mut self,
        usage: Option<&AgentUsage>,
        session: Option<&str>,
        doubt: CostDoubt,
        ms: u64,
    ) {
        if let Some(session) = session {
            self.opened(session);
        }
        match usage {
            Some(usage) => {
                let usage = self.count(usage);
                self.last = self.total(&usage);
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
            && let Some(given) = self.given
        {
            let guess = estimate(given.minus(self.this_turn.usd), ms);
            self.estimated = self.estimated.plus(guess);
            self.this_turn = Bill { estimated: guess, unpriced: false, ..self.this_turn };
        }
        self.last_turn = std::mem::take(&mut self.this_turn);
        self.earlier = self.earlier.plus(self.last_turn);
        self.before = None;
    }

    /// The bill of the turn that ended last, by itself.
    pub fn last_turn(&self) -> Bill {
        self.last_turn
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
    #[error("the run has spent {0}; `--max-usd` raises the limit")]
    Run(MoneyGone),
    #[error("task {name} has spent {gone}; `--max-usd-per-task` raises the limit")]
    Task { name: String, gone: MoneyGone },
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
            Allowance::Max(max) => Some(max.minus(owed.counted())),
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
        let prices = PriceList::of(&self.context.config, config.model.as_deref());
        let known = session.and_then(|session| self.task.totals.get(session));
        self.billing().begin(session, known, prices, given);
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
                let (id, spent, workers) = (self.want.id, self.run.spent, self.workers);
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
        Some(self.task_max()?.minus(self.task.spent.bill.counted().plus(owed)))
    }

    /// The bill of the run's ended attempts and of this one.
    fn spent_of_run(&self) -> Bill {
        let owed = self.billing().earlier;
        self.context.purse.spent().unwrap_or(self.run.spent).plus(owed)
    }

    /// The money left of the run's and the task's limits as far as this job knows: others spend
    /// too, and the core counts everything.
    pub(super) fn money_left(&self) -> Option<Micros> {
        let owed = self.billing().earlier.counted();
        let of_run = self.run.limits.usd_max.map(|max| max.minus(self.spent_of_run().counted()));
        of_run.into_iter().chain(self.left_of_task(owed)).min()
    }

    /// The limit of the task; the run itself is not a task and has only its own limit.
    fn task_max(&self) -> Option<Micros> {
        self.run.limits.usd_per_task_max.filter(|_| self.task.parent.is_some())
    }

    /// Finds the limit that leaves no money for another turn.
    fn money_gone(&self, config: &AgentConfig) -> BudgetGone {
        let own = self.billing().earlier;
        let task = self.task.spent.bill.plus(own);
        if let Some(max) = self.run.limits.usd_max
            && let Some(gone) = MoneyGone::of(self.spent_of_run(), max, false)
        {
            return BudgetGone::Run(gone);
        }
        if let Some(max) = self.task_max()
            && let Some(gone) = MoneyGone::of(task, max, true)
        {
            return BudgetGone::Task { name: self.task.name().to_owned(), gone };
        }
        let spent = own.counted();
        match config.max_usd.map(Micros::from_usd).filter(|max| spent >= *max) {
            Some(max) => BudgetGone::Agent { spent, max },
            None => BudgetGone::Attempt { spent },
        }
    }
}
