//! The tests that cover the criteria, as evidence.

use autopilot_core::coverage::CriterionProof;
use autopilot_core::state::Shown;
use serde::{Deserialize, Serialize};

/// A criterion and the tests that cover it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceCriterion {
    /// Its name, such as `AC-1`.
    pub criterion: String,
    /// The beginning of its text.
    pub text: String,
    /// Tests that fail without the change and pass with it.
    pub tests: Vec<String>,
    /// Tests that pass with the change, and do not compile or load without it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weak_tests: Vec<String>,
}

/// The criteria as a note tells them.
pub(super) fn coverage(shown: &Shown) -> Vec<EvidenceCriterion> {
    let one = |proof: &CriterionProof| EvidenceCriterion {
        criterion: proof.criterion.clone(),
        text: proof.text.clone(),
        tests: proof.tests.iter().cloned().collect(),
        weak_tests: proof.weak_tests.iter().cloned().collect(),
    };
    let checked = shown.facts.coverage.iter();
    checked.flat_map(|check| &check.criteria).map(one).collect()
}
