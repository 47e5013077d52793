//! The tests of one run of a command, by the report of their runner.
//!
//! Every report can be written by the tests themselves, so it is evidence: it can make a run doubted or
//! not green, and never green. The exit code of the run is the proof.

use crate::rows::rows;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

rows! {
/// Where the ids of tests come from, the strongest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
ReportSource -> &'static str {
    /// The runner's own report, which the controller asked for.
    Runner: "runner's report",
    /// A file that the user's command writes (`gates.reports`).
    File: "report file",
    /// The names that the output shows.
    Output: "output",
    /// Nothing names a test: only the exit code is known.
    #[default]
    ExitCode: "exit code",
}}

/// The tests of one run of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReport {
    pub source: ReportSource,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub passed: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub failed: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub skipped: BTreeSet<String>,
    /// Tests that the runner listed and then did not report.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unreported: BTreeSet<String>,
    /// The files or targets that did not compile or load, so that none of their tests ran.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub not_loaded: BTreeSet<String>,
    /// The number of tests, also where their names are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

impl TestReport {
    /// Whether single tests are known by their names.
    pub fn has_ids(&self) -> bool {
        !(self.passed.is_empty() && self.failed.is_empty() && self.skipped.is_empty())
    }

    /// The tests that ran or were skipped.
    pub fn ids(&self) -> BTreeSet<&str> {
        let all = self.passed.iter().chain(&self.failed).chain(&self.skipped);
        all.map(String::as_str).collect()
    }
}
