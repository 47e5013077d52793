//! The feed of a run that another process works on, read from the journal.

use super::{BATCH_RECORDS_MAX, GrowthWatch};
use crate::store::{self, StoreError};
use autopilot_core::event::Record;
use autopilot_journal::JournalHistory;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a followed journal is checked for new records by a task that must not block.
pub const ASYNC_LOOK_EVERY: Duration = Duration::from_millis(250);

/// How often, and for how long, a journal that has grown is checked for new records: SQLite writes
/// a record some time before it lets others read it.
const SOON: Duration = Duration::from_millis(50);
const SOON_FOR: Duration = Duration::from_secs(1);

/// Tells whether a process works on the run.
pub type AtWork = Box<dyn FnMut() -> Result<bool, StoreError> + Send>;

/// A reader that follows one run in the journal.
pub struct JournalFollower {
    history: Box<dyn JournalHistory + Send>,
    run: String,
    at_work: AtWork,
    growth: GrowthWatch,
    grew: Option<Instant>,
    looked: Option<Instant>,
}

impl JournalFollower {
    /// A follower of a run in this journal.
    pub fn new(
        history: Box<dyn JournalHistory + Send>,
        run: &str,
        at_work: AtWork,
        growth: GrowthWatch,
    ) -> JournalFollower {
        let run = run.to_owned();
        JournalFollower { history, run, at_work, growth, grew: None, looked: None }
    }

    /// Reads the records from `next` on, waiting for one until `until`; false when there is none
    /// and no process works on the run any more.
    pub fn read(
        &mut self,
        next: u64,
        until: Instant,
        into: &mut VecDeque<Arc<Record>>,
    ) -> Result<bool, StoreError> {
        loop {
            let is_growing = self.grew.is_some_and(|at| at.elapsed() < SOON_FOR);
            let every = if is_growing { SOON } else { self.growth.every() };
            let due = self.looked.map_or(Duration::ZERO, |at| every.saturating_sub(at.elapsed()));
            let left = until.saturating_duration_since(Instant::now());
            let has_grown = self.growth.wait(due.min(left));
            if has_grown {
                self.grew = Some(Instant::now());
            } else if due > left {
                return Ok(true);
            }
            // Ask before reading, or records written just before the end would be missed.
            let is_live = (self.at_work)()?;
            let batch = self.history.read(&self.run, next, BATCH_RECORDS_MAX)?;
            for record in &batch {
                into.push_back(Arc::new(store::decode(record)?));
            }
            // A full batch means that there is more to read at once.
            self.looked = (batch.len() < BATCH_RECORDS_MAX).then(Instant::now);
            if !batch.is_empty() || !is_live {
                return Ok(!batch.is_empty());
            }
            if left.is_zero() {
                return Ok(true);
            }
        }
    }
}
