//! What is missing of a repository's state: its id, its state directory or its journal.

use crate::place::StatePaths;
use autopilot_host::checkout;
use autopilot_host::git::{StateEnv, state, state_root};
use camino::Utf8PathBuf;

/// A part of the state that was there once and is gone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LostState {
    #[error(
        "the state directory `{path}` is missing, and with it the journal and all work that was \
         not merged"
    )]
    Directory { path: Utf8PathBuf },
    #[error("the journal `{path}` is missing, and with it the history of the runs")]
    Journal { path: Utf8PathBuf },
    #[error(
        "the journal `{path}` is missing because an earlier `autopilot recover --journal` was \
         interrupted"
    )]
    HalfRecovered { path: Utf8PathBuf },
    #[error("`{file}` is missing, which names the state directory of this repository")]
    Id { file: Utf8PathBuf, state: Utf8PathBuf },
}

impl LostState {
    /// Looks for what is missing in a repository that has no journal.
    pub fn of(place: &StatePaths, env: &StateEnv) -> Option<LostState> {
        let path = place.journal();
        if place.state.as_str().is_empty() {
            return without_id(place, env);
        }
        if !place.state.exists() {
            return Some(LostState::Directory { path: place.state.clone() });
        }
        if path.exists() {
            return None;
        }
        if path.with_extension("db.rebuilt").exists() {
            return Some(LostState::HalfRecovered { path });
        }
        // The journal is made before the hub, and removed by nobody.
        place.state.join("hub.git").exists().then_some(LostState::Journal { path })
    }

    /// What a person can do about it.
    pub fn remedy(&self) -> String {
        match self {
            LostState::Directory { .. } => {
                "mount its file system or put it back from a backup; or see with `autopilot recover` \
                 which branches of earlier runs are left; `autopilot run` starts anew"
                    .to_owned()
            }
            LostState::Journal { .. } => {
                "put it back from a backup (with its `-wal` file), or see with `autopilot recover` \
                 which branches and unfinished work are left; `autopilot run` starts anew"
                    .to_owned()
            }
            LostState::HalfRecovered { .. } => {
                "`autopilot recover --journal` completes it".to_owned()
            }
            LostState::Id { state, .. } => format!(
                "`autopilot recover --state` takes `{state}` as its state directory again, if that is \
                 this repository's"
            ),
        }
    }
}

fn without_id(place: &StatePaths, env: &StateEnv) -> Option<LostState> {
    let found = checkout::find(place.root.as_std_path())?;
    let states = state::belonging_to(&found.common_dir, &state_root(env)?);
    // The newest journal is that of the latest run.
    let newest = |state: &Utf8PathBuf| {
        crate::store::journal_path(state).metadata().and_then(|meta| meta.modified()).ok()
    };
    let state = states
        .into_iter()
        .filter_map(|state| Utf8PathBuf::from_path_buf(state).ok())
        .filter(|state| newest(state).is_some())
        .max_by_key(newest)?;
    let file = Utf8PathBuf::from_path_buf(found.common_dir.join("autopilot/id")).ok()?;
    Some(LostState::Id { file, state })
}
