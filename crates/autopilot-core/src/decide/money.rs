//! Money: at the limit of the run all work ends, at the limit of a task that task alone.

use super::RecordDraft;
use super::refusal::Hindrance;
use crate::event::{Bill, Event, Failure, Outcome};
use crate::id::{AttemptId, Micros, TaskId};
use crate::limit::Limits;
use crate::pipeline::Work;
use crate::state::{Grant, State, Status, Task};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

impl RecordDraft<'_> {
    /// The message that the money of the run is used up, if it is.
    pub(super) fn money_gone(&self) -> Option<String> {
        let gone = run_money_gone(self.state, &self.state.run.limits)?;
        Some(format!("the run has spent {gone}"))
    }

    /// Closes the grant of an attempt whose whole cost is known.
    pub(super) fn close_grant(&mut self, id: AttemptId) {
        if let Some(grant) = self.state.grants.get(&id) {
            let task = grant.task;
            self.emit(Event::MoneyGiven { id, task, usd: Micros(0) });
        }
    }

    /// Settles the grants of a process that died: its attempts will report nothing more, so the cost
    /// of an attempt that reported none is estimated. Returns a note for each estimate.
    pub(super) fn charge_grants(
        &mut self,
        is_meant: impl Fn(&State, AttemptId) -> bool,
    ) -> BTreeMap<AttemptId, String> {
        let mut notes = BTreeMap::new();
        for (id, Grant { task, usd, owed, at, ended }) in self.state.grants.clone() {
            if !is_meant(self.state, id) {
                continue;
            }
            let known = self.state.bill_of(id);
            if known.counted() <= owed.counted() {
                let ms = ended.unwrap_or(self.now).since_ms(at);
                let estimated = owed.estimated.plus(estimate(usd, ms));
                self.charge(id, task, Bill { estimated, ..known }, None);
            }
            let guessed = self.state.bill_of(id).estimated.minus(owed.estimated);
            if guessed > Micros(0) {
                notes.insert(id, untold(guessed));
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
        let gone = task_money_gone(now, &self.state.run.limits)?;
        if now.stage()?.work != Work::Slot {
            return None;
        }
        let attempt = match now.status {
            Status::Running { attempt, .. } => Some(attempt),
            Status::Open | Status::At { .. } | Status::Waiting { .. } | Status::Settled(_) => None,
        };
        let text = format!("task {} has spent {gone}", now.name());
        Some((attempt, Failure::Money { text }))
    }
}

/// The refusal for a task that has spent its limit: it would end at once if it were re-opened.
pub(super) fn own_money_gone(state: &State, now: &Task) -> Option<Hindrance> {
    task_money_gone(now, &state.run.limits).map(Hindrance::Money)
}

/// A limit on money that is used up. Its text is the part of a sentence after "has spent".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoneyGone {
    /// The cost that agents told.
    pub told: Micros,
    /// The cost that was estimated for those who told none.
    pub estimated: Micros,
    pub max: Micros,
    /// The limit is that of one task, not of the whole run.
    pub is_of_task: bool,
}

impl MoneyGone {
    /// The limit, if this bill has used it up. Money that is only reserved is not spent, and uses up
    /// no limit; an estimate does.
    pub fn of(spent: Bill, max: Micros, is_of_task: bool) -> Option<MoneyGone> {
        let (told, estimated) = (spent.usd, spent.estimated);
        (spent.counted() >= max).then_some(MoneyGone { told, estimated, max, is_of_task })
    }
}

impl fmt::Display for MoneyGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MoneyGone { told, estimated, max, .. } = self;
        match estimated {
            Micros(0) => write!(f, "{told} of its limit of {max}"),
            _ => write!(f, "{told} and an estimated {estimated} of its limit of {max}"),
        }
    }
}

/// The limit that keeps a task from spending more, of the run or else its own, if there is one.
pub fn money_gone(state: &State, limits: &Limits, task: TaskId) -> Option<MoneyGone> {
    run_money_gone(state, limits).or_else(|| task_money_gone(state.task(task), limits))
}

fn run_money_gone(state: &State, limits: &Limits) -> Option<MoneyGone> {
    MoneyGone::of(state.run.spent, limits.usd_max?, false)
}

fn task_money_gone(task: &Task, limits: &Limits) -> Option<MoneyGone> {
    let max = limits.usd_per_task_max.filter(|_| task.parent.is_some())?;
    MoneyGone::of(task.spent.bill, max, true)
}

/// The money that an agent is taken to spend in a minute if nobody told its cost: more than a large
/// model costs that reads and writes without a pause.
const ESTIMATE_PER_MINUTE: Micros = Micros(1_000_000);

/// Estimates the cost of a turn of `ms` milliseconds that neither its agent nor the session file of
/// the agent told: by its time, and never more than was reserved for it. This is the only place in
/// which a cost is estimated.
pub fn estimate(reserved: Micros, ms: u64) -> Micros {
    let seconds_begun = (ms / 1000).saturating_add(1);
    Micros(ESTIMATE_PER_MINUTE.0.saturating_mul(seconds_begun).div_ceil(60)).min(reserved)
}

/// The note on an attempt whose cost was estimated.
pub fn untold(estimated: Micros) -> String {
    format!(
        "its agent ended without reporting its cost; an estimated {estimated} counts against the \
         limit"
    )
}
