//! The main loop without its I/O: inputs become records, durable records become orders.
//!
//! `ahead` runs before the disk so that no input waits for it; everything that leaves the process
//! comes from `settled`, which holds durable records only. The simulator drives this same type.

use crate::decide::{Refusal, decide};
use crate::event::Record;
use crate::id::{AttemptId, Time};
use crate::input::{AttemptWord, Input};
use crate::state::State;
use crate::wanted::{Want, wanted};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The main loop of a run.
#[derive(Debug, Default)]
pub struct Pilot {
    ahead: State,
    settled: State,
    pending: VecDeque<Record>,
    /// The attempts that this process has started and whose executors have not ended.
    running: BTreeMap<AttemptId, Want>,
    /// The running attempts that have reported their end and touch nothing any more.
    spoken: BTreeSet<AttemptId>,
}

/// An order to the engine.
#[derive(Clone, Debug, PartialEq)]
pub enum PilotOrder {
    /// Show a durable record to the feed, the views and whoever asked.
    Tell(Record),
    Start(Want),
    End(AttemptId),
}

impl Pilot {
    /// Takes over a run from its journaled state.
    pub fn resume(state: State) -> Pilot {
        Pilot { ahead: state.clone(), settled: state, ..Pilot::default() }
    }

    /// Decides on an input. The record must go to the journal writer; its orders come when it is
    /// durable. A refused ask leaves no record.
    pub fn hear(&mut self, input: Input, now: Time) -> Result<Option<Record>, Refusal> {
        if let Input::Heard { id, word: AttemptWord::Ended { .. }, .. } = &input
            && self.running.contains_key(id)
        {
            self.spoken.insert(*id);
        }
        let record = decide(&mut self.ahead, input, now)?;
        self.pending.extend(record.clone());
        Ok(record)
    }

    /// Returns the orders that follow once everything up to `seq` is on disk.
    pub fn durable(&mut self, seq: u64) -> Vec<PilotOrder> {
        let mut orders = Vec::new();
        while self.pending.front().is_some_and(|record| record.seq <= seq) {
            if let Some(record) = self.pending.pop_front() {
                self.settled.apply_record(&record);
                orders.push(PilotOrder::Tell(record));
            }
        }
        self.reconcile(&mut orders);
        orders
    }

    /// Notes that the executor of an attempt has ended.
    pub fn gone(&mut self, id: AttemptId) {
        self.running.remove(&id);
        self.spoken.remove(&id);
    }

    /// Returns the orders that had to wait for an executor to end, without waiting for a record.
    pub fn catch_up(&mut self) -> Vec<PilotOrder> {
        let mut orders = Vec::new();
        self.reconcile(&mut orders);
        orders
    }

    fn reconcile(&mut self, orders: &mut Vec<PilotOrder>) {
        let wanted: BTreeMap<AttemptId, Want> =
            wanted(&self.settled).into_iter().map(|want| (want.id, want)).collect();
        for id in self.running.keys() {
            if !wanted.contains_key(id) {
                orders.push(PilotOrder::End(*id));
            }
        }
        for (id, want) in wanted {
            // An attempt that was told to end occupies its task until it is gone: never two at once.
            let is_at_work = |other: &Want| other.id == id || !self.spoken.contains(&other.id);
            let is_taken =
                self.running.values().any(|other| other.task == want.task && is_at_work(other));
            // An attempt that has reported its end is not restarted before the disk knows it.
            let is_unheard = self.ahead.live.contains_key(&id);
            if !is_taken && is_unheard {
                self.running.insert(id, want);
                orders.push(PilotOrder::Start(want));
            }
        }
    }

    /// The state with all decisions, durable or not.
    pub fn ahead(&self) -> &State {
        &self.ahead
    }

    /// The durable state, which may be shown.
    pub fn settled(&self) -> &State {
        &self.settled
    }

    /// The attempts that this process is running.
    pub fn running(&self) -> impl Iterator<Item = &Want> {
        self.running.values()
    }

    /// Whether nothing runs, nothing is on its way to the disk, and nothing will happen by itself.
    pub fn is_over(&self) -> bool {
        self.pending.is_empty() && self.running.is_empty() && self.settled.is_at_rest()
    }
}
