//! The gates that a run has seen, by everything that their verdicts depend on. What is proven is not
//! proven again, and what failed before and passes now is flaky.

use crate::event::{Facts, Outcome};
use crate::id::AttemptId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A gate and its verdict, as an attempt reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateMark {
    /// A hash of the tree, the commands, the seed or the lack of one, and the environment.
    pub key: String,
    /// Every command passed; failures that the base has too do not count as that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_green: bool,
    /// The attempt whose verdict was taken over; none if the commands were run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<AttemptId>,
}

/// A gate whose commands all passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvenGate {
    pub by: AttemptId,
    /// Blob: the evidence.
    pub answer: Option<String>,
    pub log: Option<String>,
    /// The commands ran over a seed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_warm: bool,
}

/// The gates of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateBook {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    green: BTreeMap<String, ProvenGate>,
    /// The logs of gates that failed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    red: BTreeMap<String, Option<String>>,
}

impl GateBook {
    /// Whether nothing was noted yet.
    pub fn is_empty(&self) -> bool {
        self.green.is_empty() && self.red.is_empty()
    }

    /// Notes the gate of an attempt that ended, if it ran one.
    pub fn note(&mut self, by: AttemptId, outcome: &Outcome, facts: &Facts) {
        let is_verdict = matches!(outcome, Outcome::Passed | Outcome::Failed { .. });
        let Some(mark) = facts.gate.as_deref().filter(|_| is_verdict) else { return };
        if !mark.is_green {
            self.red.insert(mark.key.clone(), facts.log.clone());
        } else if mark.taken.is_none() {
            let (answer, log) = (facts.answer.clone(), facts.log.clone());
            let gate = ProvenGate { by, answer, log, is_warm: facts.warm };
            self.green.insert(mark.key.clone(), gate);
        }
    }

    /// The gate with this key that passed.
    pub fn proven(&self, key: &str) -> Option<&ProvenGate> {
        self.green.get(key)
    }

    /// The log of the gate with this key that failed.
    pub fn failed(&self, key: &str) -> Option<Option<&str>> {
        self.red.get(key).map(Option::as_deref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(is_green: bool, taken: Option<AttemptId>) -> Facts {
        let mark = GateMark { key: "k".to_owned(), is_green, taken };
        let (gate, log) = (Some(Box::new(mark)), Some("a.log".to_owned()));
        Facts { gate, log, ..Facts::default() }
    }

    #[test]
    fn a_gate_is_known_by_the_attempt_that_ran_it_and_red_ones_by_their_log() {
        let mut book = GateBook::default();
        let id = |seq| AttemptId { seq, place: 0 };
        let red = Outcome::Failed { why: "tests failed".to_owned() };
        book.note(id(1), &Outcome::Revoked, &facts(true, None));
        book.note(id(2), &Outcome::Passed, &Facts::default());
        assert!(book.is_empty(), "a cancelled attempt and one without a gate say nothing");
        book.note(id(3), &red, &facts(false, None));
        assert_eq!((book.proven("k"), book.failed("k")), (None, Some(Some("a.log"))));
        book.note(id(4), &red, &facts(true, None));
        assert_eq!(book.proven("k").map(|gate| gate.by), Some(id(4)), "the commands did pass");
        book.note(id(5), &Outcome::Passed, &facts(true, Some(id(4))));
        assert_eq!(book.proven("k").map(|gate| gate.by), Some(id(4)));
        assert_eq!((book.proven("other"), book.failed("other")), (None, None));
    }
}
