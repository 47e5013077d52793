//! How jobs reach the loop of their run: words are delivered for certain, sights only in passing.

use crate::feed::{RunFeed, Sight};
use autopilot_core::input::AttemptWord;
use autopilot_core::wanted::Want;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// A signal to the loop from jobs, the journal's writer or the operating system.
#[derive(Debug)]
pub enum LoopSignal {
    Durable {
        seq: u64,
    },
    JournalFailed {
        error: Arc<autopilot_journal::Error>,
    },
    Heard {
        want: Want,
        word: AttemptWord,
    },
    /// A word from a job that waits until the word is durable.
    Vowed {
        want: Want,
        word: AttemptWord,
        kept: oneshot::Sender<()>,
    },
    Interrupt,
    /// A replayed run was interrupted here when it was recorded.
    CutShort,
}

/// A job's channel to the loop and to the run's subscribers.
#[derive(Clone)]
pub struct Teller {
    signals: mpsc::UnboundedSender<LoopSignal>,
    feed: RunFeed,
}

impl Teller {
    /// A channel to the receiver of `signals` and to the subscribers of `feed`.
    pub fn new(signals: mpsc::UnboundedSender<LoopSignal>, feed: RunFeed) -> Teller {
        Teller { signals, feed }
    }

    /// Sends a word about an attempt to the loop.
    pub fn say(&self, want: Want, word: AttemptWord) {
        let _loop_is_gone = self.signals.send(LoopSignal::Heard { want, word });
    }

    /// Sends a word and returns whether it became durable. It does not if the attempt is no longer
    /// wanted or nothing can be recorded.
    pub async fn vow(&self, want: Want, word: AttemptWord) -> bool {
        let (kept, answer) = oneshot::channel();
        let _loop_is_gone = self.signals.send(LoopSignal::Vowed { want, word, kept });
        answer.await.is_ok()
    }

    /// Publishes a message about the run itself.
    pub fn notice(&self, text: &str) {
        self.feed.notice(text);
    }

    /// Publishes transient output, past the loop.
    pub fn show(&self, want: Want, sight: Sight) {
        self.feed.show(want.task, want.step, sight);
    }
}
