//! The two runs beside the gate of a change that touches what decides its verdict: the base's tests
//! over the new code, and the new tests over the base's code.

use crate::evidence::SeenCommand;
use crate::rows::rows;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What the runs beside the gate have shown.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ThreeRuns {
    /// The files of the change that decide a verdict.
    pub touched: BTreeSet<String>,
    /// The base's tests over the new code; none where they are the same tree as the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_regression: Option<ProofRun>,
    /// The new tests over the base's code; none where they are the same tree as the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub red: Option<ProofRun>,
    /// Tests that are new and pass only with the change.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub proven_red: BTreeSet<String>,
    /// Tests that are new, pass with the change and did not compile or load without it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub weakly_red: BTreeSet<String>,
    /// Tests that are new or changed and pass without the change.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub not_red: BTreeSet<String>,
    /// What the change breaks, skips or removes of the base's tests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<OpenTest>,
}

/// One run on a tree of the controller's making.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProofRun {
    pub tree: String,
    pub checks: Vec<SeenCommand>,
}

rows! {
/// What became of a test of the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
OpenTestKind -> &'static str {
    Fails: "fails with the change",
    IsGone: "is gone",
    IsSkipped: "is skipped now",
    DoesNotCompile: "does not compile with the change",
}}

/// A test of the base that does not pass as it did, and that somebody has to account for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OpenTest {
    /// The name of the test in its runner's words; of a file or a command where no test is known.
    pub id: String,
    pub kind: OpenTestKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// A test that a judge accepts by name, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AcceptedTest {
    pub id: String,
    pub reason: String,
}
