//! The runs beside a gate, as evidence: the base's tests over the new code, and the new tests over the
//! base's code.

use super::EvidenceCommand;
use super::fold::command;
use autopilot_core::three_runs::{AskedTest, OpenTest, ProofRun, ThreeRuns};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The names that one list of a note holds.
const NAMES_MAX: usize = 2_000;

/// The runs beside a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceThreeRuns {
    /// The changed files that decide a verdict.
    pub touched: Vec<String>,
    /// The base's tests over the new code; none where that is a tree whose result is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_regression: Option<EvidenceProofRun>,
    /// The new tests over the base's code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub red: Vec<EvidenceProofRun>,
    /// New and changed tests that fail without the change.
    pub red_tests: Vec<String>,
    /// Those that do not compile or load without it.
    pub weakly_red_tests: Vec<String>,
    /// Those that pass without it.
    pub not_red_tests: Vec<String>,
    /// The tests of the base that do not pass as they did, and how the task accounts for them.
    pub open: Vec<EvidenceOpenTest>,
}

/// A run on a tree that is no commit's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceProofRun {
    pub tree: String,
    pub commands: Vec<EvidenceCommand>,
}

/// A test of the base that does not pass as it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceOpenTest {
    pub id: String,
    /// `fails`, `is_gone`, `is_skipped` or `does_not_compile`.
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// How the task accounts for it; where it does not, a judge or a person has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
}

/// The runs as a note tells them.
pub(super) fn three_runs(runs: &ThreeRuns) -> EvidenceThreeRuns {
    let names = |names: &BTreeSet<String>| names.iter().take(NAMES_MAX).cloned().collect();
    EvidenceThreeRuns {
        touched: names(&runs.touched),
        no_regression: runs.no_regression.as_ref().map(proof_run),
        red: runs.red.iter().map(proof_run).collect(),
        red_tests: names(&runs.proven_red),
        weakly_red_tests: names(&runs.weakly_red),
        not_red_tests: names(&runs.not_red),
        open: runs.open.iter().take(NAMES_MAX).map(|test| open_test(test, &runs.asked)).collect(),
    }
}

fn proof_run(run: &ProofRun) -> EvidenceProofRun {
    EvidenceProofRun { tree: run.tree.clone(), commands: run.checks.iter().map(command).collect() }
}

fn open_test(test: &OpenTest, asked: &[AskedTest]) -> EvidenceOpenTest {
    let word = serde_json::to_value(test.kind).ok();
    let by = asked.iter().find(|asked| asked.test == *test);
    EvidenceOpenTest {
        id: test.id.clone(),
        kind: word.and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default(),
        file: test.file.clone(),
        asked: by.map(|asked| (*asked.by.row()).to_owned()),
    }
}
