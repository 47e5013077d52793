//! Asks git again at a start that something hinders: a git that was killed is no answer.

use autopilot_host::git::{FailureOutlook, GitError};
use std::time::Duration;

/// How often git is asked before its failure counts.
const TRIES_MAX: u32 = 4;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// Does the work until it succeeds, or fails for a reason that does not pass.
pub(crate) fn again<T>(mut work: impl FnMut() -> Result<T, GitError>) -> Result<T, GitError> {
    let mut tries = 1;
    loop {
        match work() {
            Err(error) if tries < TRIES_MAX && error.outlook() == FailureOutlook::MayPass => {
                std::thread::sleep(TRY_AGAIN_AFTER * tries);
                tries += 1;
            }
            ended => return ended,
        }
    }
}
