//! Money: at the limit of the run all work ends, at the limit of a task that task alone.

use super::RecordDraft;
use super::refusal::Hindrance;
use crate::event::{Bill, Event, Failure, Outcome};
use crate::id::{AttemptId, Micros, TaskId};
use crate::limit::Limits;
use crate::pipeline::Work;
use crate::state::{Grant, State, Status, Task};
use std::collections::{BTreeMap, BTreeSet};

impl RecordDraft<'_> {
    /// The message that the money of the run is used up, if it is.
    pub(super) fn money_gone(&self) -> Option<String> {
        let MoneyGone { spent, max, .. } = run_money_gone(self.state, &self.state.run.limits)?;
        Some(format!("the run has spent {spent} of its limit of {max}"))
    }

    /// Closes the grant of an attempt whose whole cost is known.
    pub(super) fn close_grant(&mut self, id: AttemptId) {
        if let Some(grant) = self.state.grants.get(&id) {
            let task = grant.task;
            self.emit(Event::MoneyGiven { id, task, usd: Micros(0) });
        }
    }

    /// Charges attempts of a process that died: they will report nothing more, so an attempt that
    /// reported no cost is charged its whole grant. Returns a note for each of them.
    pub(super) fn charge_grants(&mut self) -> BTreeMap<AttemptId, String> {
        let mut notes = BTreeMap::new();
        for (id, Grant { task, usd, owed, .. }) in self.state.grants.clone() {
            let known = self.state.bill_of(id);
            if known.usd <= owed.usd {
                let bill = Bill { usd: owed.usd.plus(usd), unpriced: true, ..known };
                self.charge(id, task, bill, None);
                notes.insert(id, untold(usd));
            }
            self.close_grant(id);
        }
        notes
    }

    /// Ends the tasks that have spent what one task may, before anything is started for them.
    pub(super) fn end_overspent(&mut self) {
        if self.state.run.limits.usd_per_task_max.is_none() {
            return;
        }
        let mut seen = 0;
        // The end of one task may move others.
        while seen < self.events.len() {
            let suspects = self.suspects(seen);
            seen = self.events.len();
            for task in suspects {
                if let Some((attempt, why)) = self.overspent(task) {
                    self.give_up(task, attempt, why);
                }
            }
        }
    }

    fn give_up(&mut self, task: TaskId, attempt: Option<AttemptId>, why: Failure) {
        // Money that the attempt spends until it is gone still counts.
        if let Some(id) = attempt {
            self.end(id, Outcome::Revoked, Box::default());
        }
        self.fail(task, why);
    }

    /// The tasks that were charged or moved since; all open tasks if the limit may have changed or
    /// bills may have come in while no process worked on the run.
    fn suspects(&self, since: usize) -> BTreeSet<TaskId> {
        let mut suspects = BTreeSet::new();
        for event in &self.events[since..] {
            if let Event::Billed { task, .. } | Event::TaskMoved { task, .. } = event {
                suspects.insert(*task);
            }
            if matches!(event, Event::LimitsChanged { .. } | Event::Resumed | Event::Booted { .. })
            {
                suspects.extend(self.state.ready().chain(self.state.waiting()));
                suspects.extend(self.state.live.values().map(|live| live.task));
            }
        }
        suspects
    }

    /// The failure of a task that has spent its limit, and its running attempt. An effect is carried
    /// through, because it costs nothing; the run itself has its own limit.
    fn overspent(&self, task: TaskId) -> Option<(Option<AttemptId>, Failure)> {
        let now = self.state.task(task);
        let MoneyGone { spent, max, .. } = task_money_gone(now, &self.state.run.limits)?;
        if now.stage()?.work != Work::Slot {
            return None;
        }
        let attempt = match now.status {
            Status::Running { attempt, .. } => Some(attempt),
            Status::Open | Status::At { .. } | Status::Waiting { .. } | Status::Settled(_) => None,
        };
        let text = format!("task {} has spent {spent} of its limit of {max}", now.name());
        Some((attempt, Failure::Money { text }))
    }
}

/// The refusal for a task that has spent its limit: it would end at once if it were re-opened.
pub(super) fn own_money_gone(state: &State, now: &Task) -> Option<Hindrance> {
    let MoneyGone { spent, max, .. } = task_money_gone(now, &state.run.limits)?;
    Some(Hindrance::Money { spent, max })
}

/// A limit on money that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoneyGone {
    pub spent: Micros,
    pub max: Micros,
    /// The limit is that of one task, not of the whole run.
    pub is_of_task: bool,
}

/// The limit that keeps a task from spending more, of the run or else its own, if there is one.
pub fn money_gone(state: &State, limits: &Limits, task: TaskId) -> Option<MoneyGone> {
    run_money_gone(state, limits).or_else(|| task_money_gone(state.task(task), limits))
}

fn run_money_gone(state: &State, limits: &Limits) -> Option<MoneyGone> {
    let (max, spent) = (limits.usd_max?, state.run.spent.usd);
    (spent >= max).then_some(MoneyGone { spent, max, is_of_task: false })
}

fn task_money_gone(task: &Task, limits: &Limits) -> Option<MoneyGone> {
    let max = limits.usd_per_task_max.filter(|_| task.parent.is_some())?;
    let spent = task.spent.bill.usd;
    (spent >= max).then_some(MoneyGone { spent, max, is_of_task: true })
}

/// The note on an attempt that was charged although its cost was not reported.
pub fn untold(given: Micros) -> String {
    format!(
        "its agent ended without reporting its cost; the {given} reserved for it count against the \
         limit"
    )
}
