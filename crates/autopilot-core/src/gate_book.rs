//! The gates that a run has seen lately, by everything that their verdicts depend on. What is proven
//! is not proven again, and what failed before and passes now is flaky.

use crate::event::{Facts, Outcome};
use crate::id::AttemptId;
use serde::{Deserialize, Serialize};

/// The gates that are remembered. A gate is asked for again soon or never.
const GATES_MAX: usize = 64;

/// A gate and its verdict, as an attempt reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateMark {
    /// A hash of the tree, the commands, the seed or the lack of one, and the environment.
    pub key: String,
    /// The tree on which the commands ran; none in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// Every command passed; failures that the base has too do not count as that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_green: bool,
    /// Blob: the evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// The commands ran over a seed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_warm: bool,
    /// The attempt whose verdict was taken over; none if the commands were run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<AttemptId>,
}

/// A gate whose commands were run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownGate {
    pub by: AttemptId,
    pub mark: GateMark,
}

/// The gates of a run, the latest last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateBook(Vec<KnownGate>);

impl GateBook {
    /// Whether nothing was noted yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes the gate of an attempt that ended, if it ran one.
    pub fn note(&mut self, by: AttemptId, outcome: &Outcome, facts: &Facts) {
        let is_verdict = matches!(outcome, Outcome::Passed | Outcome::Failed { .. });
        let Some(mark) = facts.gate.as_deref().filter(|_| is_verdict) else { return };
        if mark.taken.is_some() {
            return;
        }
        let is_same = |known: &GateMark| (&known.key, known.is_green) == (&mark.key, mark.is_green);
        self.0.retain(|known| !is_same(&known.mark));
        self.0.push(KnownGate { by, mark: mark.clone() });
        let too_many = self.0.len().saturating_sub(GATES_MAX);
        self.0.drain(..too_many);
    }

    /// The gate with this key that passed.
    pub fn proven(&self, key: &str) -> Option<&KnownGate> {
        self.0.iter().find(|known| known.mark.is_green && known.mark.key == key)
    }

    /// The gate with this key that failed.
    pub fn failed(&self, key: &str) -> Option<&KnownGate> {
        self.0.iter().find(|known| !known.mark.is_green && known.mark.key == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(key: &str, is_green: bool, taken: Option<AttemptId>) -> Facts {
        let (key, log) = (key.to_owned(), Some("a.log".to_owned()));
        let mark = GateMark { key, is_green, taken, log, ..GateMark::default() };
        Facts { gate: Some(Box::new(mark)), ..Facts::default() }
    }

    fn id(seq: u64) -> AttemptId {
        AttemptId { seq, place: 0 }
    }

    #[test]
    fn a_gate_is_known_by_the_attempt_that_ran_it() {
        let mut book = GateBook::default();
        let red = Outcome::Failed { why: "tests failed".to_owned() };
        book.note(id(1), &Outcome::Revoked, &facts("k", true, None));
        book.note(id(2), &Outcome::Passed, &Facts::default());
        assert!(book.is_empty(), "a cancelled attempt and one without a gate say nothing");
        book.note(id(3), &red, &facts("k", false, None));
        assert_eq!(book.proven("k"), None);
        assert_eq!(book.failed("k").and_then(|gate| gate.mark.log.as_deref()), Some("a.log"));
        book.note(id(4), &red, &facts("k", true, None));
        assert_eq!(book.proven("k").map(|gate| gate.by), Some(id(4)), "the commands did pass");
        book.note(id(5), &Outcome::Passed, &facts("k", true, Some(id(4))));
        assert_eq!(book.proven("k").map(|gate| gate.by), Some(id(4)));
        assert_eq!((book.proven("other"), book.failed("other")), (None, None));
    }

    #[test]
    fn the_oldest_gates_are_forgotten() {
        let mut book = GateBook::default();
        for seq in 0..100 {
            book.note(id(seq), &Outcome::Passed, &facts(&seq.to_string(), true, None));
        }
        assert_eq!(book.0.len(), GATES_MAX);
        assert!(book.proven("35").is_none() && book.proven("36").is_some());
    }
}
