//! Money: at the limit of the run all work ends, at the limit of a task that task alone.

use super::RecordDraft;
use super::refusal::Hindrance;
use crate::event::{Bill, Event, Failure, Outcome};
use crate::id::{AttemptId, Micros, TaskId};
use crate::pipeline::Work;
use crate::state::{Grant, State, Status, Task};
use std::collections::{BTreeMap, BTreeSet};

impl RecordDraft<'_> {
    /// The limit of the run that is used up, in words, if it is.
    pub(super) fn money_gone(&self) -> Option<String> {
        let (max, spent) = (self.state.run.limits.usd_max?, self.state.run.spent.usd);
        (spent >= max).then(|| format!("the run has spent {spent} of its limit of {max}"))
    }

    /// It has told all it costs.
    pub(super) fn close_grant(&mut self, id: AttemptId) {
        if let Some(grant) = self.state.grants.get(&id) {
            let task = grant.task;
            self.emit(Event::MoneyGiven { id, task, usd: Micros(0) });
        }
    }

    /// Whoever was given money by a process that died will tell nothing more: who has told no cost
    /// of it is charged all of it, because it may be gone. Gives what a person should know of it.
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
        let Some(max) = self.state.run.limits.usd_per_task_max else { return };
        let mut seen = 0;
        // The end of one may move others.
        while seen < self.events.len() {
            let suspects = self.suspects(seen);
            seen = self.events.len();
            for task in suspects {
                if let Some((attempt, why)) = self.overspent(task, max) {
                    self.give_up(task, attempt, why);
                }
            }
        }
    }

    fn give_up(&mut self, task: TaskId, attempt: Option<AttemptId>, why: Failure) {
        // What it still spends until it is gone is owed and counted.
        if let Some(id) = attempt {
            self.end(id, Outcome::Revoked, Box::default());
        }
        self.fail(task, why);
    }

    /// Whoever was charged or moved since; all who are under way when the limit may be another or
    /// money may have been owed while nobody decided.
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

    /// The attempt to be ended with it, if one runs, and why. An effect is carried through, it costs
    /// nothing; the run itself has a limit of its own.
    fn overspent(&self, task: TaskId, max: Micros) -> Option<(Option<AttemptId>, Failure)> {
        let now = self.state.task(task);
        let spent = now.spent.bill.usd;
        let is_run = now.parent.is_none();
        if is_run || spent < max || now.stage()?.work != Work::Slot {
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

/// A task that has spent what one task may would end at once if it were begun again.
pub(super) fn own_money_gone(state: &State, now: &Task) -> Option<Hindrance> {
    let max = state.run.limits.usd_per_task_max.filter(|_| now.parent.is_some())?;
    let spent = now.spent.bill.usd;
    (spent >= max).then_some(Hindrance::Money { spent, max })
}

/// The note on an attempt that was charged although nobody told its cost.
pub fn untold(given: Micros) -> String {
    format!(
        "its agent ended without telling what it cost; {given}, all it had been given, is counted \
         against the limit"
    )
}
