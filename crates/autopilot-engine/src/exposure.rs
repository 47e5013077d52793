//! Seeds and proofs of the base that programs without a sandbox could have changed: the state directory
//! is marked before the first of them starts, and while the mark is there nothing of it is trusted. The
//! next run removes all of it, and the mark.
//!
//! A program that can write everything can remove the mark as well; this is against left-overs and
//! accidents, not against an agent that knows our files and wants to deceive.

use crate::base_proof::BASES;
use crate::place::StatePaths;
use autopilot_host::dir;
use autopilot_host::file::{self, FileError};
use autopilot_host::warm::SEEDS;
use camino::Utf8PathBuf;

/// The file that marks a state directory.
const MARK: &str = "exposed";

fn mark_of(place: &StatePaths) -> Utf8PathBuf {
    place.state.join(MARK)
}

/// Returns whether seeds and proofs of the base are not to be trusted.
pub fn is_marked(place: &StatePaths) -> bool {
    mark_of(place).exists()
}

/// Marks the state directory.
pub fn mark(place: &StatePaths) -> Result<(), FileError> {
    match is_marked(place) {
        true => Ok(()),
        false => file::write_atomic(mark_of(place).as_std_path(), b""),
    }
}

/// Removes what can't be trusted, and then the mark. Whoever calls it has the lock of the repository.
/// What can't be removed stays marked.
pub fn clear(place: &StatePaths, notice: &mut dyn FnMut(&str)) {
    if !is_marked(place) {
        return;
    }
    let is_gone = |name: &str| dir::remove(place.state.join(name).as_std_path()).is_ok();
    let all_gone = [SEEDS, BASES].into_iter().all(is_gone);
    if all_gone && dir::remove_file(mark_of(place).as_std_path()).is_ok() {
        notice(
            "what earlier runs have built of the base is not used: programs without a sandbox could \
             have changed it",
        );
    }
}
