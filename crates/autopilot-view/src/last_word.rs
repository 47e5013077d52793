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
    /// What is merged was proven over the base's build alone, as the configuration asks.
    WarmOnly,
    /// It was to be proven from nothing, and that did not come to an end.
    Unended,
    /// What is merged passed over the base's build, and failed from nothing.
    Refuted,
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
        let is_asked = run.switches.contains(&Switch::ColdProof);
        let is_due = state.end().is_none() && is_asked;
        Some(match (is_due, run.seeds.is_refuted) {
            (true, _) => LastProof::Due,
            (false, true) => LastProof::Refuted,
            (false, false) if is_asked => LastProof::Unended,
            (false, false) => LastProof::WarmOnly,
        })
    }

    /// The word for programs.
    pub fn word(self) -> &'static str {
        match self {
            LastProof::Cold => "cold",
            LastProof::Due => "due",
            LastProof::WarmOnly | LastProof::Unended => "warm",
            LastProof::Refuted => "failed",
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
            LastProof::Unended => {
                "warm only: what is merged passed over what the base built; the proof from nothing did \
                 not come to an end"
            }
            LastProof::Refuted => {
                "what is merged passed over what the base built (warm), and then failed from nothing \
                 (cold)"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use autopilot_core::event::{Failure, TaskEnd};
    use autopilot_core::id::TaskId;
    use autopilot_core::state::{Status, Task};

    #[test]
    fn what_failed_from_nothing_is_not_called_untried() {
        let mut state = State::default();
        assert_eq!(LastProof::of(&state), None, "nothing was warm");
        state.run.seeds.is_used = true;
        assert_eq!(LastProof::of(&state), None, "nothing is merged");
        state.run.tip = Some("tip".to_owned());
        assert_eq!(LastProof::of(&state), Some(LastProof::WarmOnly));
        state.run.seeds.is_refuted = true;
        assert_eq!(LastProof::of(&state), Some(LastProof::Refuted));
        state.run.switches.insert(Switch::ColdProof);
        assert_eq!(LastProof::of(&state), Some(LastProof::Due), "the run goes on to prove it");
        let end = Status::Settled(TaskEnd::Failed { why: Failure::Children { failed: 1 } });
        state.tasks = vec![Task { id: TaskId::ROOT, status: end, ..Task::default() }];
        assert_eq!(LastProof::of(&state), Some(LastProof::Refuted));
        state.run.seeds.is_refuted = false;
        assert_eq!(LastProof::of(&state), Some(LastProof::Unended));
    }
}
