//! Watches the disk while a program runs: one that met a full disk fails, and by then there may be
//! room again.

use crate::place::StatePaths;
use crate::run_process::room;
use autopilot_core::event::MachineFault;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a program may take to end after it met the shortage: it may clean up first.
const LATELY: Duration = Duration::from_secs(3);

type SeenShortage = Option<(Instant, (MachineFault, String))>;

/// A watch that ends when it is dropped.
pub(super) struct ShortageWatch {
    seen: Arc<Mutex<SeenShortage>>,
    looking: JoinHandle<()>,
}

impl ShortageWatch {
    /// Begins to look.
    pub fn begin(place: StatePaths) -> ShortageWatch {
        let seen = Arc::<Mutex<SeenShortage>>::default();
        let noted = Arc::clone(&seen);
        let looking = tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                if let Some(short) = room::shortage(&place) {
                    *noted.lock().unwrap_or_else(PoisonError::into_inner) =
                        Some((Instant::now(), short));
                }
            }
        });
        ShortageWatch { seen, looking }
    }

    /// What the disk was short of until a moment ago.
    pub fn lately(&self) -> Option<(MachineFault, String)> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        seen.filter(|(at, _)| at.elapsed() < LATELY).map(|(_, short)| short)
    }
}

impl Drop for ShortageWatch {
    fn drop(&mut self) {
        self.looking.abort();
    }
}
