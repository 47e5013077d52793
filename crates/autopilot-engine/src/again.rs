//! Asks git again at a start that something hinders: a git that was killed is no answer.

use autopilot_host::git::{CommandError, GitError};
use std::time::Duration;

/// How often git is asked before its failure counts.
const TRIES_MAX: u32 = 4;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// Does the work until it succeeds, or fails for a reason that does not pass.
pub(crate) fn again<T>(mut work: impl FnMut() -> Result<T, GitError>) -> Result<T, GitError> {
    let mut tries = 1;
    loop {
        match work() {
            Err(error) if tries < TRIES_MAX && may_pass(&error) => {
                std::thread::sleep(TRY_AGAIN_AFTER * tries);
                tries += 1;
            }
            ended => return ended,
        }
    }
}

/// Whether a failure says something of the machine at this moment.
fn may_pass(error: &GitError) -> bool {
    match error {
        GitError::Command(error) => !matches!(error, CommandError::NoGit),
        GitError::Worktree(error) => may_pass(error),
        GitError::File { .. } => true,
        GitError::Refused(_)
        | GitError::Unreadable { .. }
        | GitError::TooManyCommits { .. }
        | GitError::RefMoved { .. }
        | GitError::Tampered { .. }
        | GitError::SlotMissing { .. }
        | GitError::ProofDiffers { .. }
        | GitError::Oversize(_)
        | GitError::Withheld { .. }
        | GitError::NotFound { .. } => false,
    }
}
