//! Brings back what is left when a part of the state is gone: the id of the repository, and the work
//! of runs that nobody knows any more.

use super::super::{Done, answer, ground};
use crate::cli::Global;
use crate::exit::CommandFailure;
use crate::terminal;
use autopilot_engine::lost_state::LostState;
use autopilot_engine::place::StatePaths;
use autopilot_host::checkout;
use autopilot_host::git::{Slots, StateEnv, state};
use serde_json::json;

/// Gives the repository its id back.
pub fn take_state(global: &Global, place: &StatePaths) -> Done {
    let lost = LostState::of(place, &StateEnv::from_process());
    let (Some(LostState::Id { state, .. }), Some(found)) =
        (lost, checkout::find(place.root.as_std_path()))
    else {
        return Err(CommandFailure::usage(
            "no state directory of this repository is without its id",
        )
        .hint("`autopilot recover` lists what can be brought back"));
    };
    state::restore_id(&found.common_dir, state.as_std_path())?;
    answer(global, json!({ "state": state }), |_| {
        format!("`{state}` is the state directory of this repository again; see `autopilot status`")
    })
}

/// Saves the work that dead processes left in their worktrees, so that it is listed too. Only where
/// no process works now, and as far as it can be read.
pub fn save_unfinished(place: &StatePaths) {
    let Ok(ground) = ground::open(place) else { return };
    let now = autopilot_engine::clock::now().0 / 1000;
    for slot in Slots::new(&ground.hub, &ground.repo).existing().into_iter().flatten() {
        if let Ok(Some(saved)) = slot.rescue(now) {
            terminal::note(&format!("unfinished work is now kept at {saved}"));
        }
    }
}
