//! How long the work at hand may go on: git commands and walks over directories ask here, many times
//! a second, whether somebody still wants their result.
//!
//! The limit belongs to the scope in which they are called, so that no function on the way has to
//! hand it on, and none can forget to.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The reason why work has to end before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutShort {
    /// Nobody wants the result any more.
    Unwanted,
    /// The time for it is over.
    OutOfTime,
}

/// A limit: it returns the reason once work has to end.
pub type Limit = Arc<dyn Fn() -> Option<CutShort> + Send + Sync>;

tokio::task_local! {
    static LIMIT: Limit;
}

/// Does work that blocks under a limit, instead of that around it.
pub fn during<T>(limit: Limit, work: impl FnOnce() -> T) -> T {
    LIMIT.sync_scope(limit, work)
}

/// Does work that blocks for at most this time, and no longer than the limit around it allows.
pub fn within<T>(time: Duration, work: impl FnOnce() -> T) -> T {
    let around = LIMIT.try_with(Arc::clone).unwrap_or_else(|_none| unlimited());
    let end = Instant::now() + time;
    let is_late = move || (Instant::now() > end).then_some(CutShort::OutOfTime);
    during(Arc::new(move || around().or_else(&is_late)), work)
}

/// Returns a limit that never ends anything, for a few short commands that must not be left half
/// done.
pub fn unlimited() -> Limit {
    Arc::new(|| None)
}

/// Returns the reason why the work at hand has to end, if it has to.
pub fn cut_short() -> Option<CutShort> {
    LIMIT.try_with(|limit| limit()).ok().flatten()
}

/// Fails once the work at hand has to end.
pub fn check() -> io::Result<()> {
    match cut_short() {
        None => Ok(()),
        Some(CutShort::Unwanted) => Err(io::Error::new(io::ErrorKind::Interrupted, "cancelled")),
        Some(CutShort::OutOfTime) => {
            Err(io::Error::new(io::ErrorKind::TimedOut, "there was no time left"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(reason: Option<CutShort>) -> Limit {
        Arc::new(move || reason)
    }

    #[test]
    fn the_innermost_limit_counts_and_without_one_nothing_ends() {
        assert_eq!(cut_short(), None);
        during(limit(Some(CutShort::Unwanted)), || {
            assert_eq!(cut_short(), Some(CutShort::Unwanted));
            assert_eq!(during(unlimited(), cut_short), None);
            let late = during(limit(Some(CutShort::OutOfTime)), check).unwrap_err();
            assert_eq!(late.kind(), io::ErrorKind::TimedOut);
            assert_eq!(check().unwrap_err().kind(), io::ErrorKind::Interrupted);
        });
        assert!(check().is_ok());
    }

    #[test]
    fn a_time_ends_work_and_so_does_the_limit_around_it() {
        let out_of_time = Some(CutShort::OutOfTime);
        let soon = || {
            while cut_short().is_none() {
                std::thread::yield_now();
            }
            cut_short()
        };
        assert_eq!(within(Duration::ZERO, soon), out_of_time);
        assert_eq!(within(Duration::from_secs(3600), cut_short), None);
        let cancelled = limit(Some(CutShort::Unwanted));
        let long = || within(Duration::from_secs(3600), cut_short);
        assert_eq!(during(cancelled, long), Some(CutShort::Unwanted));
    }
}
