//! The loop without its I/O: inputs become records, durable records become orders.
//!
//! `ahead` runs before the disk so that no input waits for it; whatever leaves the process comes
//! from `settled`, which only holds what is durable. The simulator drives this same type.

use crate::decide::{Refusal, decide};
use crate::event::Record;
use crate::id::{AttemptId, Time};
use crate::input::{AttemptWord, Input};
use crate::state::State;
use crate::wanted::{Want, wanted};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Debug, Default)]
pub struct Pilot {
    ahead: State,
    settled: State,
    pending: VecDeque<Record>,
    /// What this process has begun and not yet seen the end of.
    running: BTreeMap<AttemptId, Want>,
    /// Those of them that have said their last word and touch nothing any more.
    spoken: BTreeSet<AttemptId>,
}

/// What the shell has to do now.
#[derive(Clone, Debug, PartialEq)]
pub enum PilotOrder {
    /// Show it: feed, views, answers.
    Tell(Record),
    Start(Want),
    End(AttemptId),
}

impl Pilot {
    /// Takes up a run from what the journal holds of it.
    pub fn resume(state: State) -> Pilot {
        Pilot { ahead: state.clone(), settled: state, ..Pilot::default() }
    }

    /// The record, if any, must be given to the writer; its orders come when it is durable. An ask
    /// that is refused leaves none.
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

    /// Everything up to `seq` is on disk.
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

    /// An executor has ended, by itself or because it was told to.
    pub fn gone(&mut self, id: AttemptId) {
        self.running.remove(&id);
        self.spoken.remove(&id);
    }

    /// What had to wait until somebody was gone. Without this it waits for the next record.
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
            // Whoever was told to end is still at the task until it is gone: never two at once.
            let is_at_work = |other: &Want| other.id == id || !self.spoken.contains(&other.id);
            let is_taken =
                self.running.values().any(|other| other.task == want.task && is_at_work(other));
            // Whoever has said its last word is not begun again while the disk does not know it yet.
            let is_unheard = self.ahead.live.contains_key(&id);
            if !is_taken && is_unheard {
                self.running.insert(id, want);
                orders.push(PilotOrder::Start(want));
            }
        }
    }

    /// What is decided, durable or not.
    pub fn ahead(&self) -> &State {
        &self.ahead
    }

    /// What is durable, and so may be shown.
    pub fn settled(&self) -> &State {
        &self.settled
    }

    pub fn running(&self) -> impl Iterator<Item = &Want> {
        self.running.values()
    }

    /// Nothing runs, nothing is on its way to the disk, and nothing will happen by itself.
    pub fn is_over(&self) -> bool {
        self.pending.is_empty() && self.running.is_empty() && self.settled.is_at_rest()
    }
}
