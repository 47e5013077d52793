//! The wall clock. The rules get the time as an argument; whoever calls them asks here.

use autopilot_core::id::Time;

/// The time now.
pub fn now() -> Time {
    Time(jiff::Timestamp::now().as_millisecond())
}

/// The time now as the beginning of a run's id.
pub(crate) fn stamp() -> String {
    jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string()
}
