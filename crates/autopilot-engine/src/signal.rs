//! How jobs reach the loop of their run: words for certain, what they show in passing.

use crate::feed::{RunFeed, Sight};
use autopilot_core::input::AttemptWord;
use autopilot_core::wanted::Want;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// What reaches the loop from the jobs, the writer and the operating system.
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
    /// The same, of a job that goes on only once it is on the record.
    Vowed {
        want: Want,
        word: AttemptWord,
        kept: oneshot::Sender<()>,
    },
    Interrupt,
    /// A run that is played again was cut short here.
    CutShort,
}

/// A job's way to the loop and to whoever watches the run.
#[derive(Clone)]
pub struct Teller {
    signals: mpsc::UnboundedSender<LoopSignal>,
    feed: RunFeed,
}

impl Teller {
    /// A way to whoever has the other end of `signals`, and to the subscribers of `feed`.
    pub fn new(signals: mpsc::UnboundedSender<LoopSignal>, feed: RunFeed) -> Teller {
        Teller { signals, feed }
    }

    /// Says a word about an attempt to the loop.
    pub fn say(&self, want: Want, word: AttemptWord) {
        let _loop_is_gone = self.signals.send(LoopSignal::Heard { want, word });
    }

    /// Whether it is on the record, and durable there. It is not if the attempt is not wanted any
    /// more, or if nothing can be recorded.
    pub async fn vow(&self, want: Want, word: AttemptWord) -> bool {
        let (kept, answer) = oneshot::channel();
        let _loop_is_gone = self.signals.send(LoopSignal::Vowed { want, word, kept });
        answer.await.is_ok()
    }

    /// Shows something in passing to whoever watches, past the loop.
    pub fn show(&self, want: Want, sight: Sight) {
        self.feed.show(want.task, want.step, sight);
    }
}
