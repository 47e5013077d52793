//! Waiting that can be cut short.

use std::time::{Duration, Instant};

const SLICE: Duration = Duration::from_millis(50);

/// Waits; returns false when the wait was cut short.
pub(crate) fn pause(length: Duration, unwanted: &dyn Fn() -> bool) -> bool {
    let end = Instant::now() + length;
    while !unwanted() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(SLICE));
    }
    false
}
