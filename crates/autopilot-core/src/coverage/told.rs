//! What people are told of coverage.

use super::{CoverageCheck, CoverageGround, CoverageVerdict, CriterionProof};
use crate::doubt::{Doubt, DoubtKind};
use crate::event::Outcome;
use std::collections::BTreeSet;

/// The tests and criteria that one sentence names.
const NAMED_MAX: usize = 3;

impl CoverageCheck {
    /// The outcome of the step. Where not even the base has names of tests, the configuration has to
    /// change, not the work.
    pub fn outcome(&self) -> Outcome {
        match (self.verdict, self.is_of_configuration) {
            (CoverageVerdict::Covered, _) => Outcome::Passed,
            (CoverageVerdict::NoNames, true) => Outcome::Misconfigured { why: self.why() },
            (
                CoverageVerdict::Uncovered
                | CoverageVerdict::NothingIsRed
                | CoverageVerdict::NoNames,
                _,
            ) => Outcome::Failed { why: self.why() },
        }
    }

    /// The result in one sentence.
    pub fn why(&self) -> String {
        let open: Vec<&CriterionProof> =
            self.criteria.iter().filter(|proof| !proof.is_covered()).collect();
        match self.verdict {
            CoverageVerdict::Covered => "every criterion is covered".to_owned(),
            CoverageVerdict::Uncovered => {
                let of_one = |proof: &&CriterionProof| {
                    let why = proof.missing.as_deref().unwrap_or("no test covers it");
                    format!("{} (“{}”): {why}", proof.criterion, proof.text)
                };
                let named = open.iter().take(NAMED_MAX).map(of_one).collect::<Vec<_>>().join("; ");
                let rest = more(open.len());
                format!("criteria without a test that fails without the change: {named}{rest}")
            }
            CoverageVerdict::NothingIsRed => {
                let ids = open.iter().take(NAMED_MAX).map(|proof| proof.criterion.as_str());
                let named = ids.collect::<Vec<_>>().join(", ");
                let rest = more(open.len());
                format!("no test fails without the change, so nothing proves {named}{rest}")
            }
            CoverageVerdict::NoNames => {
                "`gates.proof: red_green` needs the names of tests, and `commands.tests` tells none: \
                 run them with pytest, `node --test` or `cargo test`, print their names, or name the \
                 reports that your runner writes in `gates.reports`"
                    .to_owned()
            }
        }
    }
}

fn more(count: usize) -> String {
    match count.saturating_sub(NAMED_MAX) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    }
}

/// The criteria and what covers them, one line each; nothing of those that nothing covers.
pub fn coverage_notes(check: &CoverageCheck) -> Vec<String> {
    check.criteria.iter().filter(|proof| proof.is_covered()).map(CriterionProof::words).collect()
}

impl CriterionProof {
    /// The criterion and what covers it.
    pub fn words(&self) -> String {
        let (id, red, weak) = (&self.criterion, listed(&self.tests), listed(&self.weak_tests));
        let mark = "which did not compile or load without the change";
        match (self.tests.is_empty(), self.weak_tests.is_empty()) {
            (false, true) => format!("{id}: covered by {red}"),
            (false, false) => format!("{id}: covered by {red}, and weakly by {weak}, {mark}"),
            (true, false) => format!("{id}: weakly covered by {weak}, {mark}"),
            (true, true) => {
                let why = self.missing.as_deref().unwrap_or("no test covers it");
                format!("{id}: not covered: {why}")
            }
        }
    }
}

fn listed(ids: &BTreeSet<String>) -> String {
    let named: Vec<String> = ids.iter().take(NAMED_MAX).map(|id| format!("`{id}`")).collect();
    format!("{}{}", named.join(", "), more(ids.len()))
}

/// The doubts about new and changed tests that prove nothing about the change.
pub fn coverage_doubts(ground: &CoverageGround) -> Vec<Doubt> {
    let doubt = |id: &String| {
        let text = format!(
            "the test `{id}` is new or changed and does not fail without the change, so it proves \
             nothing about it"
        );
        Doubt::new(DoubtKind::NotRed, text).about_test(id)
    };
    ground.not_red.iter().map(doubt).collect()
}
