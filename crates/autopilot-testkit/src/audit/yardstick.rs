//! Tests of the base that do not pass as they did: nothing is merged or reached over one of them that
//! nobody who may has accepted, and nothing is refused because of one that somebody has.

use super::books::{Books, Entry};
use super::rule::{Kept, kept};
use autopilot_core::event::Facts;
use autopilot_core::limit::YardstickChanges;
use autopilot_core::step::Step;
use autopilot_core::three_runs::OpenTestKind;

impl Entry {
    /// Whether its validation has left tests open that block as long as nobody accepts them.
    pub(super) fn has_open_tests(&self, policy: YardstickChanges) -> bool {
        let open = self.proof.get(&Step::Validate).map(|(_, facts)| facts.open.as_slice());
        let mut open = open.unwrap_or_default().iter();
        policy != YardstickChanges::Told
            && open.any(|test| test.kind != OpenTestKind::DoesNotCompile)
    }
}

impl Books {
    /// Whether the tests that the validation has left open are accounted for, as the run asks.
    pub(super) fn is_accounted_for(&self, entry: &Entry) -> Kept {
        let facts = |step: Step| entry.proof.get(&step).map(|(_, facts)| facts);
        let open = facts(Step::Validate).map(|facts| facts.open.as_slice()).unwrap_or_default();
        let has_named = |facts: &Facts, id: &str| facts.accepted.iter().any(|it| it.id == id);
        let judged = [Step::Review, Step::Completion, Step::WholeReview];
        let is_refused = entry.said_no(Step::AcceptTests);
        kept(!is_refused, || format!("I6: a person refused the tests of {}", entry.name))?;
        for test in open.iter().filter(|test| test.kind != OpenTestKind::DoesNotCompile) {
            let by_judge = judged.into_iter().filter_map(facts).any(|it| has_named(it, &test.id));
            let by_person = entry.did(Step::AcceptTests);
            let is_accepted = match self.limits.yardstick_changes {
                YardstickChanges::Told => true,
                YardstickChanges::Reviewed => by_judge,
                YardstickChanges::Person => by_person,
                YardstickChanges::Refused => false,
            };
            kept(is_accepted, || format!("I6: nobody accounts for {} of {}", test.id, entry.name))?;
        }
        Ok(())
    }

    /// A person is asked about tests only where the run says so, and where there are any.
    pub(super) fn may_ask_about_tests(&self, entry: &Entry) -> Kept {
        let open = entry.proof.get(&Step::Validate).map(|(_, facts)| facts.open.as_slice());
        let blocks = open.unwrap_or_default().iter();
        let has_any = blocks.filter(|test| test.kind != OpenTestKind::DoesNotCompile).count() > 0;
        let is_asked = self.limits.yardstick_changes == YardstickChanges::Person;
        kept(is_asked && has_any, || {
            format!("I9: a person is asked about no test of {}", entry.name)
        })
    }
}
