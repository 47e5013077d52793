//! The files of a run on a thread of their own, as one of the subscribers of its feed: a slow disk
//! does not hold up the loop.

use super::Views;
use crate::feed::{FeedItem, FeedNews, Subscription};
use autopilot_core::event::Record;
use autopilot_core::state::State;
use std::time::Duration;
use tokio::sync::watch;

/// How often files that could not be written at once are looked at again.
const FLUSH_EVERY: Duration = Duration::from_millis(250);
/// A step begins without the files of the steps before it when they take longer than this.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Instead of a record's number: everything is written.
const ALL: u64 = u64::MAX;

/// The loop's end of the thread.
pub struct FileKeeper {
    written: watch::Receiver<u64>,
}

impl FileKeeper {
    /// Starts the thread. `state` is what holds before the first record of the subscription, and
    /// `known` are the records about which the process before may not have come to write.
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

    /// Waits until the files tell what holds after a record; not for long.
    pub fn written(&self, seq: u64) -> impl Future<Output = ()> + use<> {
        let mut written = self.written.clone();
        async move {
            let reached = written.wait_for(|at| *at >= seq);
            let _late_or_gone = tokio::time::timeout(WAIT_MAX, reached).await;
        }
    }

    /// Waits until everything is written, once the feed has ended.
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
                state.apply_record(&record);
                views.record(&record, &state);
                told.send_replace(record.seq);
            }
            Ok(FeedNews::Item(
                FeedItem::Sight { .. } | FeedItem::Notice(_) | FeedItem::Missed(_),
            )) => {}
            Ok(FeedNews::Quiet) => views.flush(&state),
            // The journal holds the truth; whoever takes the run up writes the files again.
            Ok(FeedNews::Ended) | Err(_) => break,
        }
    }
    views.close(&state);
    told.send_replace(ALL);
}
