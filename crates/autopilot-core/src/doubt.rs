//! Doubts: what the controller knows about a result that a person should look at before merging it.
//!
//! A doubt never blocks by itself. What blocks is an outcome or a finding; what neither blocks nor asks
//! for a look is a note.

use crate::guard::{Finding, FindingEffect, FindingSource};
use crate::rows::rows;
use serde::{Deserialize, Serialize};

/// The number of doubts that one attempt may tell; the rest is counted.
pub const DOUBTS_MAX: usize = 100;

rows! {
/// What a doubt is about, in the order in which a person reads doubts: the worst first. The row is the
/// word for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
DoubtKind -> &'static str {
    /// What is merged failed when it was proven from nothing.
    RefutedProof: "refuted_proof",
    /// Nothing was proven.
    NoProof: "no_proof",
    /// A text of the change looks like a secret.
    Secret: "secret",
    /// A judge said no, or contradicted itself, and was overruled.
    Overruled: "overruled",
    /// A gate was switched off or skipped.
    WaivedGate: "waived_gate",
    /// Agents could write where results are tested.
    NoSandbox: "no_sandbox",
    /// A failure was excused because the base has it too.
    RedBase: "red_base",
    /// Tests of the base are gone, skipped, fewer or did not run.
    LostTests: "lost_tests",
    /// What decides the verdict was changed and nobody accounted for it.
    Yardstick: "yardstick",
    /// Instructions that agents read were changed.
    Instructions: "instructions",
    /// Added or changed tests pass without the change.
    NotRed: "not_red",
    /// The change weakens a check.
    WeakenedCheck: "weakened_check",
    /// The change has something odd that is not against a rule.
    OddChange: "odd_change",
    /// A report differs from what the controller saw.
    Claim: "claim",
    /// A command failed and then passed on the same tree.
    Flaky: "flaky",
    /// The result was proven over what the base had built, and not from nothing.
    WarmProof: "warm_proof",
    /// The proof is weaker than it could be.
    WeakProof: "weak_proof",
}}

/// Something that a person should look at before the result is merged, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Doubt {
    pub kind: DoubtKind,
    /// The sentence, which names the file or the test.
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The name of a test in its runner's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
}

impl Doubt {
    /// A doubt about the result as a whole.
    pub fn new(kind: DoubtKind, text: impl Into<String>) -> Doubt {
        Doubt { kind, text: text.into(), file: None, test: None }
    }

    /// The doubt with the file that it is about.
    #[must_use]
    pub fn about_file(self, file: &str) -> Doubt {
        Doubt { file: Some(file.to_owned()), ..self }
    }

    /// The doubt with the test that it is about.
    #[must_use]
    pub fn about_test(self, test: &str) -> Doubt {
        Doubt { test: Some(test.to_owned()), ..self }
    }

    /// The doubt that a finding raises; none for one that blocks, because that is repaired, and none
    /// for one that asks for no look.
    pub fn of_finding(found: &Finding) -> Option<Doubt> {
        let kind = match found.source {
            _ if found.severity.effect() != FindingEffect::IsDoubted => return None,
            FindingSource::Secret => DoubtKind::Secret,
            FindingSource::Instructions => DoubtKind::Instructions,
            FindingSource::TestCode | FindingSource::Ci => DoubtKind::WeakenedCheck,
            FindingSource::Paths
            | FindingSource::Repository
            | FindingSource::DiffCap
            | FindingSource::Todo
            | FindingSource::Substance
            | FindingSource::Unicode
            | FindingSource::Validation
            | FindingSource::Review
            | FindingSource::Uat
            | FindingSource::Coverage
            | FindingSource::Integration => DoubtKind::OddChange,
        };
        let doubt = Doubt::new(kind, found.sentence());
        Some(Doubt { file: found.file.clone(), ..doubt })
    }
}

/// Doubts as they are told: the worst first, none twice, and a bounded number of them.
pub fn ranked(mut doubts: Vec<Doubt>) -> Vec<Doubt> {
    doubts.sort();
    doubts.dedup();
    if doubts.len() > DOUBTS_MAX {
        let rest = doubts.split_off(DOUBTS_MAX - 1);
        let text = format!("{} more doubts are not listed", rest.len());
        doubts.extend(rest.first().map(|next| Doubt::new(next.kind, text)));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::Severity;

    #[test]
    fn the_worst_doubt_comes_first_and_none_twice() {
        let claim = || Doubt::new(DoubtKind::Claim, "the builder says it ran the tests");
        let gone = Doubt::new(DoubtKind::LostTests, "`a::b` is gone").about_test("a::b");
        assert_eq!(ranked(vec![claim(), gone.clone(), claim()]), [gone, claim()]);
    }

    #[test]
    fn more_doubts_than_anybody_reads_are_counted() {
        let odd = |n: usize| Doubt::new(DoubtKind::OddChange, format!("{n:04}"));
        let told = ranked((0..DOUBTS_MAX + 20).map(odd).collect());
        assert_eq!(told.len(), DOUBTS_MAX);
        let last = told.iter().map(|doubt| doubt.text.as_str()).max();
        assert_eq!(last, Some("21 more doubts are not listed"));
        assert_eq!(ranked((0..DOUBTS_MAX).map(odd).collect()).len(), DOUBTS_MAX);
    }

    #[test]
    fn a_finding_that_blocks_is_no_doubt() {
        let found = |severity| {
            Finding::new(FindingSource::TestCode, severity, "a test is skipped", "").in_file("a.py")
        };
        assert_eq!(Doubt::of_finding(&found(Severity::Blocker)), None);
        assert_eq!(Doubt::of_finding(&found(Severity::Minor)), None);
        let told = Doubt::new(DoubtKind::WeakenedCheck, "a.py: a test is skipped");
        assert_eq!(Doubt::of_finding(&found(Severity::Major)), Some(told.about_file("a.py")));
    }
}
