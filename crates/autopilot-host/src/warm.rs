//! Warm gates: what the untouched base built is sealed once, and each gate is a throw-away layer over
//! it.
//!
//! Everything that a gate reads or writes, its worktree, home, temporary files and caches, appears at
//! one path in its jail ([`WarmStore::place`]), because build tools write paths into what they build.
//! Outside, there are no files at that path. An agent's slot appears there as the worktree of a room.
//!
//! ```text
//! <state>/work                                    the path, without files outside
//! <state>/layers/<n>/root/{tree,home,tmp,cache}   a cold room, or a layer that is a copy
//! <state>/layers/<n>/{upper,work,tmp}             a layer that is an overlay
//! <state>/seeds/<digest>/root, seal.json          a sealed seed
//! ```
//!
//! The life of a gate, for the caller:
//!
//! 1. [`WarmStore::find`] looks for the seed of a key. Without one, [`WarmStore::cold_room`] makes an
//!    empty room with the commit in it. [`ColdRoom::after_setup`] notes what the setup made there;
//!    after the base's own gate has passed, [`ColdRoom::seal`] makes the seed of the room, in place.
//!    A seed that has lost something of the setup says so ([`SeedSeal::setup_lost`]).
//! 2. [`WarmStore::layer`] makes a layer over the seed and [`GateLayer::fill`] writes what differs.
//! 3. Before each command [`GateLayer::before_command`]; the command runs in a jail that
//!    [`GateLayer::put_into`] has completed; after it [`GateLayer::differences`].
//! 4. [`GateLayer::remove`], or dropping it.
//!
//! [`WarmError::cold_reason`] says that a warm gate can't be trusted here, and a cold one must do.
//! A layer of its own for each command is the safest: what one command left, no other finds.
//!
//! Invariants: a seed exists as a whole or not at all; nobody writes to it after it is sealed; a layer
//! belongs to one process, by a lock of its own; what no living process locks is removed at the next
//! [`sweep()`].

mod audit;
mod bound;
mod copying;
mod difference;
mod error;
mod fill;
mod layer;
mod lock;
mod mark;
mod probe;
mod room;
mod scrub;
mod seal;
mod seed;
mod slot;
mod store;
mod sweep;

pub use bound::{RemovedSeed, SeedBounds, bound};
pub use difference::LayerDifferences;
pub use error::{ColdReason, SealRefusal, WarmError};
pub use fill::LayerFill;
pub use layer::{GateLayer, LayerKind};
pub(crate) use probe::layer_trial;
pub use probe::{KindProbe, WarmProbe, probe};
pub use room::{ColdRoom, RoomPaths, SealRequest, TREE};
pub use seed::{SealedSeed, SeedSeal};
pub use slot::{SlotFill, SlotFilled};
pub use store::{LAYERS, PLACE, SEEDS, WarmStore};
pub use sweep::{WarmSwept, sweep};
