//! Replays a recorded run: its agents repeat their recorded answers, everything else is done again,
//! and the decisions of both runs are compared.

mod decision;
mod player;
mod recording;

pub use decision::{Decisions, Difference, compare, compare_ends, decisions};
pub use player::{Played, Player};
pub use recording::{RecordedEnds, RecordedTurns, Recording, RecordingError};

/// The hidden command of Autopilot's binary that repeats an agent's recorded answer.
pub const COMMAND: &str = "__replay";
