//! Playing a run again from what was kept of it: its agents say again what they said, everything
//! else is done anew, and the decisions of both are compared.

mod decision;
mod player;
mod recording;

pub use decision::{Decisions, Difference, compare, decisions};
pub use player::{Played, Player};
pub use recording::{Recording, RecordingError};

/// The hidden command of our binary that says again what an agent said.
pub const COMMAND: &str = "__replay";
