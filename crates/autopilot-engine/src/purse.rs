//! Divides a run's limit on money among attempts at work. No two attempts are promised the same
//! dollar, so the limit holds however many work at once.

use autopilot_core::event::Bill;
use autopilot_core::id::{AttemptId, Micros};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The money of one run.
#[derive(Debug, Default)]
pub struct Purse {
    book: Mutex<Book>,
    settled: Notify,
}

#[derive(Debug, Default)]
struct Book {
    /// Spent before this process started; `None` until the first claim.
    before: Option<Bill>,
    /// Money promised to attempts at work.
    promised: BTreeMap<AttemptId, Micros>,
    /// The bills of attempts that ended.
    spent: Bill,
}

/// An attempt's claim to a share of the run's money.
#[derive(Clone, Copy, Debug)]
pub struct MoneyClaim {
    pub id: AttemptId,
    /// The limit of the run, and the bill of the run when the attempt started.
    pub max: Micros,
    pub spent: Bill,
    /// Workers that are or could be busy, this one included.
    pub workers: u32,
    /// The most this attempt may have: the limit of its task and its agent.
    pub own_max: Option<Micros>,
}

impl Purse {
    /// Returns the amount the attempt may spend. Waits while all the money is promised to others,
    /// because they may leave some of it.
    pub async fn claim(&self, claim: MoneyClaim) -> Micros {
        loop {
            let mut settled = std::pin::pin!(self.settled.notified());
            settled.as_mut().enable();
            if let Some(given) = self.book().claim(claim) {
                return given;
            }
            settled.await;
        }
    }

    /// Settles an attempt that ended with this bill; the rest of its promise is free for others.
    pub fn settle(&self, id: AttemptId, spent: Bill) {
        let mut book = self.book();
        if book.promised.remove(&id).is_some() {
            book.spent = book.spent.plus(spent);
        }
        drop(book);
        self.settled.notify_waiters();
    }

    /// The bill of all attempts that ended; `None` if none ever claimed any money.
    pub fn spent(&self) -> Option<Bill> {
        let book = self.book();
        book.before.map(|before| before.plus(book.spent))
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// Returns `None` while all the remaining money is promised to others.
    fn claim(&mut self, claim: MoneyClaim) -> Option<Micros> {
        let before = *self.before.get_or_insert(claim.spent);
        let promised = self.promised.values().fold(Micros(0), |sum, given| sum.plus(*given));
        let gone = before.plus(self.spent).counted().plus(promised);
        let left = claim.max.minus(gone);
        if left == Micros(0) && !self.promised.is_empty() {
            return None;
        }
        let others = u32::try_from(self.promised.len()).unwrap_or(u32::MAX);
        let shares = u64::from(claim.workers.saturating_sub(others).max(1));
        let share = Micros(left.0.div_ceil(shares));
        let given = claim.own_max.map_or(share, |own| own.min(share));
        self.promised.insert(claim.id, given);
        Some(given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bill(usd: u64, estimated: u64) -> Bill {
        Bill { usd: Micros(usd), estimated: Micros(estimated), ..Bill::default() }
    }

    fn claim(seq: u64, workers: u32) -> MoneyClaim {
        let id = AttemptId { seq, place: 0 };
        MoneyClaim { id, max: Micros(120), spent: bill(15, 5), workers, own_max: None }
    }

    #[test]
    fn workers_share_what_is_left_and_never_get_more_together() {
        let mut book = Book::default();
        assert_eq!(book.claim(claim(1, 4)), Some(Micros(25)));
        assert_eq!(book.claim(claim(2, 4)), Some(Micros(25)));
        let modest = MoneyClaim { own_max: Some(Micros(5)), ..claim(3, 4) };
        assert_eq!(book.claim(modest), Some(Micros(5)), "its own limit is the smaller one");
        assert_eq!(book.claim(claim(4, 4)), Some(Micros(45)), "the last gets the rest");
        assert_eq!(book.claim(claim(5, 4)), None, "everything is promised");
    }

    #[tokio::test]
    async fn who_comes_too_late_waits_for_what_the_others_leave() {
        let purse = Purse::default();
        assert_eq!(purse.claim(claim(1, 1)).await, Micros(100));
        let settle = async { purse.settle(claim(1, 1).id, bill(60, 10)) };
        let (given, ()) = tokio::join!(purse.claim(claim(2, 1)), settle);
        assert_eq!(given, Micros(30));
        assert_eq!(purse.spent(), Some(bill(75, 15)), "an estimate is spent and stays one");
        purse.settle(claim(2, 1).id, bill(30, 0));
        assert_eq!(purse.claim(claim(3, 1)).await, Micros(0), "nobody is left to wait for");
    }
}
