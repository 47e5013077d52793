//! The store of a repository's seeds and layers.

use std::path::{Path, PathBuf};

use super::error::{OnPath, WarmError};
use super::layer::{GateLayer, LayerKind};
use super::lock::{LockSharing, RoomLock};
use super::room::{ColdRoom, RoomPaths};
use super::seed::{SealedSeed, name_of};
use crate::dir;
use crate::git::{Prepare, Slots};

/// The directory in a state directory at which every gate finds its room, and every agent its slot. The
/// name tells nothing.
pub const PLACE: &str = "work";
/// The directory of rooms and layers in a state directory.
pub const LAYERS: &str = "layers";
/// The directory of sealed seeds in a state directory.
pub const SEEDS: &str = "seeds";

/// The most rooms and layers at once; far more than gates run side by side.
const ROOMS_MAX: usize = 4096;

/// The seeds and layers of a repository.
#[derive(Debug, Clone)]
pub struct WarmStore {
    pub(super) slots: Slots,
    state: PathBuf,
    place: PathBuf,
}

impl WarmStore {
    /// Opens the store in the state directory of these slots, making it when there is none.
    pub fn open(slots: &Slots) -> Result<WarmStore, WarmError> {
        let state = slots.hub.state().to_path_buf();
        let place = state.join(PLACE);
        // An agent's slot and caches are bound below the place, on directories that have to exist.
        let RoomPaths { tree, cache, .. } = RoomPaths::below(&place);
        for path in [&place, &tree, &cache, &state.join(LAYERS), &state.join(SEEDS)] {
            dir::create_private(path).at("create", path)?;
        }
        Ok(WarmStore { slots: slots.clone(), state, place })
    }

    /// Returns the path at which rooms and layers appear in a jail, and an agent's slot as its `tree`.
    /// Outside there are no files.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Makes a cold room with the wanted commit. What `wanted` says of kept build output does not
    /// matter: there is none.
    pub fn cold_room(&self, wanted: &Prepare<'_>) -> Result<ColdRoom, WarmError> {
        ColdRoom::new(self, claim(&self.state)?, wanted)
    }

    /// Returns the seed of a key, if there is one.
    pub fn find(&self, key: &str) -> Result<Option<SealedSeed>, WarmError> {
        let seed = SealedSeed::open(&self.seed_dir(key))?;
        Ok(seed.filter(|seed| seed.seal().key == key))
    }

    /// Makes an empty layer over a seed.
    pub fn layer(&self, seed: &SealedSeed, kind: LayerKind) -> Result<GateLayer, WarmError> {
        GateLayer::new(self, claim(&self.state)?, seed, kind)
    }

    pub(super) fn seed_dir(&self, key: &str) -> PathBuf {
        self.state.join(SEEDS).join(name_of(key))
    }
}

/// Makes a new directory for a room or a layer, locked before it exists.
pub(super) fn claim(state: &Path) -> Result<(PathBuf, RoomLock), WarmError> {
    let layers = state.join(LAYERS);
    dir::create_private(&layers).at("create", &layers)?;
    for number in 0..ROOMS_MAX {
        let dir = layers.join(number.to_string());
        if dir.exists() {
            continue;
        }
        let Some(lock) = RoomLock::take(&dir, LockSharing::Alone).at("lock", &dir)? else {
            continue;
        };
        if dir::create_new(&dir).at("create", &dir)? {
            return Ok((dir, lock));
        }
    }
    let source = std::io::Error::other(format!("{ROOMS_MAX} are in use"));
    Err(source).at("make another directory in", &layers)
}
