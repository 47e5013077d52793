//! Signs of life. Silence alone proves nothing: an agent is stuck when it is silent *and* nothing
//! below it moves.

mod patience;
mod sample;
mod watch;

pub use patience::{PatienceStep, SilencePatience, WatchLimits};
pub use sample::{LifeSample, Look, ticks_before};
pub use watch::{LifeWatch, WatchEnd, WatchNotice, watch};

use serde::{Deserialize, Serialize};

/// The conclusion from two samples of a process tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LifeVerdict {
    /// Something moves.
    Alive,
    /// Nothing moves, but a connection is open: the model may be thinking.
    Waiting,
    /// Nothing moves and no connection is open.
    Suspect,
}

/// The smallest movement that counts. An idle agent burns up to 2 % of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threshold {
    /// The smallest share of one core, in per cent.
    pub cpu_percent_min: u64,
    /// The fewest bytes read and written per second.
    pub io_bytes_per_sec_min: u64,
}

impl Default for Threshold {
    fn default() -> Threshold {
        Threshold { cpu_percent_min: 5, io_bytes_per_sec_min: 4096 }
    }
}

/// Compares an earlier sample with a later one.
pub fn verdict(earlier: &LifeSample, later: &LifeSample, threshold: Threshold) -> LifeVerdict {
    if movement(earlier, later, threshold).is_some() {
        LifeVerdict::Alive
    } else if later.connections > 0 {
        LifeVerdict::Waiting
    } else {
        LifeVerdict::Suspect
    }
}

/// Returns what moved between two samples, in words; `None` when nothing did.
pub fn movement(
    earlier: &LifeSample,
    later: &LifeSample,
    threshold: Threshold,
) -> Option<&'static str> {
    let ms = later.at_ms.saturating_sub(earlier.at_ms).max(1);
    // A process that ended takes its counters along; then the difference tells nothing.
    let cpu_ms = later.cpu_ms.saturating_sub(earlier.cpu_ms);
    let io = later.io_bytes.saturating_sub(earlier.io_bytes);
    if later.tool_child {
        Some("a tool is running")
    } else if cpu_ms.saturating_mul(100) >= threshold.cpu_percent_min.saturating_mul(ms) {
        Some("it is using the CPU")
    } else if io.saturating_mul(1000) >= threshold.io_bytes_per_sec_min.saturating_mul(ms) {
        Some("it is reading or writing")
    } else if later.newest_write > earlier.newest_write {
        Some("a file was written")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    fn at(second: u64) -> LifeSample {
        LifeSample { at_ms: second * 1000, cpu_ms: 1000, io_bytes: 5000, ..LifeSample::default() }
    }

    fn judge(change: impl Fn(&mut LifeSample)) -> LifeVerdict {
        let mut later = at(10);
        change(&mut later);
        verdict(&at(0), &later, Threshold::default())
    }

    #[test]
    fn each_sign_alone_is_life() {
        assert_eq!(judge(|sample| sample.cpu_ms += 500), LifeVerdict::Alive);
        assert_eq!(judge(|sample| sample.io_bytes += 40_960), LifeVerdict::Alive);
        assert_eq!(judge(|sample| sample.tool_child = true), LifeVerdict::Alive);
        let written = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(9));
        assert_eq!(judge(|sample| sample.newest_write = written), LifeVerdict::Alive);
    }

    #[test]
    fn what_an_idle_agent_burns_is_not_life() {
        assert_eq!(judge(|sample| sample.cpu_ms += 200), LifeVerdict::Suspect);
        assert_eq!(judge(|sample| sample.io_bytes += 1000), LifeVerdict::Suspect);
    }

    #[test]
    fn an_open_connection_is_waiting_unless_something_moves() {
        assert_eq!(judge(|sample| sample.connections = 1), LifeVerdict::Waiting);
        let both = |sample: &mut LifeSample| (sample.connections, sample.cpu_ms) = (1, 9000);
        assert_eq!(judge(both), LifeVerdict::Alive);
    }

    #[test]
    fn counters_that_fall_are_no_movement() {
        assert_eq!(judge(|sample| (sample.cpu_ms, sample.io_bytes) = (0, 0)), LifeVerdict::Suspect);
    }
}
