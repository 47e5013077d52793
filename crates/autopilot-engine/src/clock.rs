//! The wall clock. The rules take the time as an argument, and their callers get it here.

use autopilot_core::id::Time;

/// The current time.
pub fn now() -> Time {
    Time(jiff::Timestamp::now().as_millisecond())
}

/// The current time as the beginning of a run's id.
pub(crate) fn stamp() -> String {
    jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string()
}
