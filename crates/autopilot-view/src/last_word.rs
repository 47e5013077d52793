//! What the result of a run was proven from: from nothing, or over what the base had built.

use super::still_shown;
use autopilot_core::event::Outcome;
use autopilot_core::pipeline::Switch;
use autopilot_core::state::State;
use autopilot_core::step::Step;

/// The last word on the result of a run of which a gate passed over a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastProof {
    /// The result was proven once more from nothing.
    Cold,
    /// The result is proven from nothing before the run is done.
    Due,
    /// What is merged was proven over the base's build alone.
    WarmOnly,
}

impl LastProof {
    /// The last word on what is on the run's branch; none where every gate started from nothing, or
    /// nothing is merged.
    pub fn of(state: &State) -> Option<LastProof> {
        let run = &state.run;
        if !run.seeds.is_used || run.tip.is_none() {
            return None;
        }
        let proven = still_shown(state, Step::Prove);
        if proven.is_some_and(|shown| shown.outcome == Outcome::Passed) {
            return Some(LastProof::Cold);
        }
        let is_due = state.end().is_none() && run.switches.contains(&Switch::ColdProof);
        Some(if is_due { LastProof::Due } else { LastProof::WarmOnly })
    }

    /// The word for programs.
    pub fn word(self) -> &'static str {
        match self {
            LastProof::Cold => "cold",
            LastProof::Due => "due",
            LastProof::WarmOnly => "warm",
        }
    }

    /// The same for people, after `proof:`.
    pub fn sentence(self) -> &'static str {
        match self {
            LastProof::Cold => {
                "gates started from what the base built (warm); the result was proven once more from \
                 nothing (cold)"
            }
            LastProof::Due => {
                "so far over what the base built (warm); the result is proven from nothing (cold) before \
                 the run is done"
            }
            LastProof::WarmOnly => {
                "warm only: what is merged passed over what the base built, and was not proven from \
                 nothing"
            }
        }
    }
}
