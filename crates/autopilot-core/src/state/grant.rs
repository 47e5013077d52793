//! Money of attempts: reserved for them, and billed.

use super::State;
use crate::event::Bill;
use crate::id::{AttemptId, Micros, TaskId, Time};
use serde::{Deserialize, Serialize};

/// The money that an attempt may be spending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub task: TaskId,
    pub usd: Micros,
    /// The time of the grant, and the bill of the attempt at that time.
    pub at: Time,
    pub owed: Bill,
    /// The time at which the attempt was ended; nothing is spent after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
}

impl State {
    /// The money that is reserved for attempts and not spent by them so far, as far as they told; of
    /// one task or of the whole run.
    pub fn reserved(&self, task: Option<TaskId>) -> Micros {
        let grants = self.grants.iter();
        let asked = grants.filter(|(_, grant)| task.is_none_or(|task| grant.task == task));
        let left = asked.map(|(id, grant)| {
            let spent = self.bill_of(*id).counted().minus(grant.owed.counted());
            grant.usd.minus(spent)
        });
        left.fold(Micros(0), Micros::plus)
    }

    /// The bill of an attempt so far.
    pub fn bill_of(&self, id: AttemptId) -> Bill {
        self.bills.get(&id).copied().unwrap_or_default()
    }
}
