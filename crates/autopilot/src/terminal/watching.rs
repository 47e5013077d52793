//! The thread that shows a run while it works. It subscribes to the run's feed, so that a terminal
//! that stops reading does not block the run.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long to wait at the end until everything is shown; a terminal may be stuck.
const DRAIN_MAX: Duration = Duration::from_secs(3);

/// A thread that shows a run.
pub struct Watching {
    thread: Option<JoinHandle<()>>,
    end: Receiver<()>,
}

impl Watching {
    /// Starts the thread. If that fails, nothing is shown, but the run still works.
    pub fn start(show: impl FnOnce() + Send + 'static) -> Watching {
        let (ended, end) = mpsc::channel();
        let run = move || {
            show();
            let _nobody_waits = ended.send(());
        };
        let thread = std::thread::Builder::new().name("watching".into()).spawn(run).ok();
        Watching { thread, end }
    }

    /// Waits until everything is shown.
    pub fn drain(self) {
        let Some(thread) = self.thread else { return };
        // A thread that panicked has dropped its sender, and unwinding has restored the terminal.
        match self.end.recv_timeout(DRAIN_MAX) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                let _panicked = thread.join();
            }
            Err(RecvTimeoutError::Timeout) => autopilot_tui::tty::restore_modes(),
        }
    }
}
