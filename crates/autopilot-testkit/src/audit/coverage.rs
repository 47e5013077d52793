//! Criteria and the tests that prove them: where the run asks for them, nothing is merged or reached
//! before the controller has found each covered, and nobody is asked over failed tests.

use super::books::{Books, Entry};
use super::rule::{Kept, kept};
use autopilot_core::coverage::CoverageVerdict;
use autopilot_core::pipeline::Switch;
use autopilot_core::step::Step;

impl Books {
    /// Whether every criterion of a round is covered, where each has to be.
    pub(super) fn is_covered(&self, entry: &Entry) -> Kept {
        let is_asked = self.switches.contains(&Switch::RedGreen) && !entry.spec.mends;
        let is_checked = entry.proof.get(&Step::Coverage).is_some_and(|(_, facts)| {
            let check = facts.coverage.as_deref();
            check.is_some_and(|check| check.verdict == CoverageVerdict::Covered)
        });
        let is_covered = entry.did(Step::Coverage) && is_checked;
        kept(!is_asked || is_covered, || format!("I6: no test covers what {} does", entry.name))
    }

    /// Tests are mapped only where the run asks for it, and where they pass.
    pub(super) fn may_map_tests(&self, entry: &Entry) -> Kept {
        let is_asked = self.switches.contains(&Switch::RedGreen) && !entry.spec.mends;
        kept(is_asked, || format!("I9: nobody asked which tests cover {}", entry.name))?;
        kept(!entry.said_no(Step::Validate), || {
            format!("I9: failed tests of {} are to cover it", entry.name)
        })
    }

    /// Whether there is nothing to map: the tests failed, or the task is a repair.
    pub(super) fn has_nothing_to_map(&self, entry: &Entry) -> bool {
        let is_asked = self.switches.contains(&Switch::RedGreen);
        is_asked && (entry.spec.mends || entry.said_no(Step::Validate))
    }
}
