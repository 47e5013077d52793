//! The simulated journal: what is durable, what is on its way, and what a crash makes of it.

use autopilot_core::event::Record;
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub struct Disk {
    pub durable: Vec<Record>,
    pub pending: VecDeque<Record>,
    pub is_flushing: bool,
}

impl Disk {
    /// Everything up to `seq` has reached the platter.
    pub fn settle(&mut self, seq: u64) {
        while let Some(record) = self.pending.pop_front_if(|record| record.seq <= seq) {
            self.durable.push(record);
        }
        self.is_flushing = false;
    }

    /// The process is gone: of what was on its way, the first `kept` records made it.
    pub fn crash(&mut self, kept: usize) {
        self.durable.extend(self.pending.drain(..).take(kept));
        self.pending.clear();
        self.is_flushing = false;
    }

    pub fn append_now(&mut self, record: Record) {
        self.durable.push(record);
    }
}
