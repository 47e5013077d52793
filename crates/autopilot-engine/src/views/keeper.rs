//! Writes the files of a run on their own thread, as a subscriber of its feed, so that a slow disk
//! does not delay the loop.

use super::Views;
use crate::feed::{FeedItem, FeedNews, Subscription};
use autopilot_core::event::Record;
use autopilot_core::state::State;
use std::time::Duration;
use tokio::sync::watch;

/// How often files that could not be written at once are tried again.
const FLUSH_EVERY: Duration = Duration::from_millis(250);
/// The longest time a step waits for the files of the steps before it.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// The most events of a record whose files a step waits for. One with more makes the tasks of a large
/// plan, whose files are for people, and take longer to write than an agent takes to start.
const EVENTS_WAITED_FOR_MAX: usize = 1_000;
/// Used instead of a record's number once everything is written.
const ALL: u64 = u64::MAX;

/// The loop's handle to the thread.
pub struct FileKeeper {
    written: watch::Receiver<u64>,
}

impl FileKeeper {
    /// Starts the thread. `state` is the state before the first record of the subscription, and
    /// `known` are the records whose files the process before may not have written.
    pub fn start(
        views: Views,
        subscription: Subscription,
        state: State,
        known: Vec<Record>,
    ) -> std::io::Result<FileKeeper> {
        let (told, written) = watch::channel(0);
        std::thread::Builder::new()
            .name("files".into())
            .spawn(move || keep(views, subscription, state, &known, &told))?;
        Ok(FileKeeper { written })
    }

    /// Waits, but not for long, until the files include the record `seq`, unless it is a very large one.
    pub fn written(&self, seq: u64) -> impl Future<Output = ()> + use<> {
        let mut written = self.written.clone();
        async move {
            let reached = written.wait_for(|at| *at >= seq);
            let _late_or_gone = tokio::time::timeout(WAIT_MAX, reached).await;
        }
    }

    /// Waits until everything is written, after the feed has ended.
    pub async fn close(mut self) {
        let _gone = self.written.wait_for(|at| *at == ALL).await;
    }
}

fn keep(
    mut views: Views,
    mut subscription: Subscription,
    mut state: State,
    known: &[Record],
    told: &watch::Sender<u64>,
) {
    views.catch_up(known);
    told.send_replace(state.seq);
    loop {
        match subscription.take(FLUSH_EVERY) {
            Ok(FeedNews::Item(FeedItem::Record(record))) => {
                if record.events.len() > EVENTS_WAITED_FOR_MAX {
                    told.send_replace(record.seq);
                }
                state.apply_record(&record);
                views.record(&record, &state);
                told.send_replace(record.seq);
            }
            Ok(FeedNews::Item(
                FeedItem::Sight { .. } | FeedItem::Notice(_) | FeedItem::Missed(_),
            )) => {}
            Ok(FeedNews::Quiet) => views.flush(&state),
            // The journal has everything; the process that resumes the run writes the files again.
            Ok(FeedNews::Ended) | Err(_) => break,
        }
    }
    views.close(&state);
    told.send_replace(ALL);
}
