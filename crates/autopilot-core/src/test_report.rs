//! The tests of one run of a command, by the report of their runner.
//!
//! Every report can be written by the tests themselves, so it is evidence: it can make a run doubted or
//! not green, and never green. The exit code of the run is the proof.

pub mod file;
pub mod hook;
pub mod lost;
pub mod output;
mod tap;

use crate::rows::rows;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The most tests whose names are kept of a run; the rest is counted.
pub const IDS_MAX: usize = 20_000;
/// The longest name of a test that is kept, in characters.
pub const ID_CHARS_MAX: usize = 400;
/// The tests that a sentence names.
pub const IDS_NAMED_MAX: usize = 5;

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

/// The commands whose tests are told apart by name.
pub const REPORTED: &[&str] = &["tests"];

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
    /// The number of tests that ran, also where their names are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The time that the tests themselves took, without what was built before them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite_ms: Option<u64>,
    /// The command failed while the runner was asked for its report, and passed when it was not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_unasked: bool,
}

/// How a test ended. The later one stays where a test is reported twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestOutcome {
    Skipped,
    Passed,
    Failed,
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

    /// The number of tests that ran, if it is known; a skipped test did not run. An output may count
    /// more tests than it names.
    pub fn ran(&self) -> Option<u64> {
        let named = u64::try_from(self.passed.len() + self.failed.len()).unwrap_or(u64::MAX);
        match (self.has_ids(), self.count) {
            (true, count) => Some(named.max(count.unwrap_or_default())),
            (false, count) => count,
        }
    }

    /// Takes down how a test ended.
    pub fn add(&mut self, id: &str, outcome: TestOutcome) {
        let id = shortened(id);
        let is_known =
            [&self.passed, &self.failed, &self.skipped].iter().any(|set| set.contains(&id));
        let kept = self.passed.len() + self.failed.len() + self.skipped.len();
        if id.is_empty() || (!is_known && kept >= IDS_MAX) {
            return;
        }
        let before = [
            (&self.failed, TestOutcome::Failed),
            (&self.passed, TestOutcome::Passed),
            (&self.skipped, TestOutcome::Skipped),
        ];
        let before = before.into_iter().find(|(set, _)| set.contains(&id)).map(|(_, how)| how);
        if before.is_some_and(|before| before >= outcome) {
            return;
        }
        self.passed.remove(&id);
        self.skipped.remove(&id);
        match outcome {
            TestOutcome::Passed => self.passed.insert(id),
            TestOutcome::Failed => self.failed.insert(id),
            TestOutcome::Skipped => self.skipped.insert(id),
        };
    }

    /// Takes down a test that the runner has not reported.
    pub fn miss(&mut self, id: &str) {
        if self.unreported.len() < IDS_MAX {
            self.unreported.insert(shortened(id));
        }
    }

    /// Takes down a file or target that did not load.
    pub fn fail_to_load(&mut self, name: &str) {
        if self.not_loaded.len() < IDS_MAX {
            self.not_loaded.insert(shortened(name));
        }
    }

    /// Adds the tests of another report of the same run, such as that of a second runner.
    pub fn merge(&mut self, other: &TestReport) {
        for (ids, outcome) in [
            (&other.passed, TestOutcome::Passed),
            (&other.failed, TestOutcome::Failed),
            (&other.skipped, TestOutcome::Skipped),
        ] {
            ids.iter().for_each(|id| self.add(id, outcome));
        }
        other.unreported.iter().for_each(|id| self.miss(id));
        other.not_loaded.iter().for_each(|name| self.fail_to_load(name));
        let sum = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            (one, two) => one.or(two),
        };
        self.count = sum(self.count, other.count);
        self.suite_ms = sum(self.suite_ms, other.suite_ms);
        self.only_unasked |= other.only_unasked;
    }

    /// The reason why a run that ended with 0 is not green: a program that ends amid its tests ends
    /// with 0 as well. What the base does too is no reason against a change.
    pub fn incomplete(&self, base: Option<&TestReport>) -> Option<String> {
        let is_new = |id: &&String| base.is_none_or(|base| !base.unreported.contains(*id));
        let missing: Vec<&str> =
            self.unreported.iter().filter(is_new).map(String::as_str).collect();
        (!missing.is_empty()).then(|| format!("ended without a result of {}", named(&missing)))
    }

    /// The numbers for people: `12 passed, 1 skipped`.
    pub fn tally(&self) -> String {
        let of = |count: usize, word: &str| (count > 0).then(|| format!("{count} {word}"));
        let parts = [
            of(self.passed.len(), "passed"),
            of(self.failed.len(), "failed"),
            of(self.skipped.len(), "skipped"),
            of(self.unreported.len(), "without a result"),
            of(self.not_loaded.len(), "not loaded"),
        ];
        let known: Vec<String> = parts.into_iter().flatten().collect();
        match (known.is_empty(), self.count) {
            (false, _) => known.join(", "),
            (true, Some(count)) => format!("{count} tests"),
            (true, None) => "no test is known by name".to_owned(),
        }
    }
}

/// The numbers of the tests of one command, for the record of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestTally {
    pub command: String,
    pub source: ReportSource,
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
    /// Tests that the runner listed and then did not report.
    pub unreported: usize,
    pub not_loaded: usize,
    /// The number of tests that ran, also where their names are not known.
    pub count: Option<u64>,
}

impl TestTally {
    /// The numbers of a command's report.
    pub fn of(command: &str, report: &TestReport) -> TestTally {
        TestTally {
            command: command.to_owned(),
            source: report.source,
            passed: report.passed.len(),
            failed: report.failed.len(),
            skipped: report.skipped.len(),
            unreported: report.unreported.len(),
            not_loaded: report.not_loaded.len(),
            count: report.ran(),
        }
    }
}

/// The first names, and how many more there are.
pub fn named(ids: &[&str]) -> String {
    let first: Vec<String> = ids.iter().take(IDS_NAMED_MAX).map(|id| format!("`{id}`")).collect();
    match ids.len().saturating_sub(IDS_NAMED_MAX) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// A name without line ends, as long as names are kept.
fn shortened(id: &str) -> String {
    let plain = id.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(ID_CHARS_MAX).collect()
}

/// The end of a command as far as it matters for whether its runner's report was in its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedRun {
    /// The runner was asked for a report and has either begun one or named what asks for it.
    pub was_asked: bool,
    /// The command ended by itself with another exit code than 0.
    pub failed: bool,
}

impl AskedRun {
    /// Whether the command has to run once more without being asked, before its failure counts.
    pub fn is_tried_unasked(self) -> bool {
        self.was_asked && self.failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(passed: &[&str], failed: &[&str], skipped: &[&str]) -> TestReport {
        let mut report = TestReport { source: ReportSource::Runner, ..TestReport::default() };
        passed.iter().for_each(|id| report.add(id, TestOutcome::Passed));
        failed.iter().for_each(|id| report.add(id, TestOutcome::Failed));
        skipped.iter().for_each(|id| report.add(id, TestOutcome::Skipped));
        report
    }

    #[test]
    fn a_test_that_failed_once_has_failed_and_one_that_ran_once_has_run() {
        let mut report = report(&["a", "b"], &["b"], &["a", "c"]);
        report.add("b", TestOutcome::Passed);
        assert_eq!(report.tally(), "1 passed, 1 failed, 1 skipped");
        assert_eq!(report.ran(), Some(2));
        report.add("c", TestOutcome::Passed);
        assert_eq!(report.tally(), "2 passed, 1 failed");
    }

    #[test]
    fn a_listed_test_without_a_result_makes_the_run_no_proof_unless_the_base_has_the_same() {
        let mut ended = report(&["a"], &[], &[]);
        assert_eq!(ended.incomplete(None), None);
        ["u", "v"].iter().for_each(|id| ended.miss(id));
        let told = ended.incomplete(None);
        assert_eq!(told.as_deref(), Some("ended without a result of `u`, `v`"));
        let mut base = report(&[], &[], &[]);
        base.miss("u");
        let told = ended.incomplete(Some(&base));
        assert_eq!(told.as_deref(), Some("ended without a result of `v`"));
        assert_eq!(ended.incomplete(Some(&ended)), None);
    }

    #[test]
    fn two_reports_of_a_run_are_one() {
        let mut one = TestReport { suite_ms: Some(2), ..report(&["a"], &[], &["s"]) };
        let mut two =
            TestReport { suite_ms: Some(3), count: Some(2), ..report(&["s"], &["a"], &[]) };
        two.miss("m");
        two.fail_to_load("t.py");
        one.merge(&two);
        assert_eq!(one.tally(), "1 passed, 1 failed, 1 without a result, 1 not loaded");
        assert_eq!((one.suite_ms, one.count), (Some(5), Some(2)));
    }

    #[test]
    fn the_number_and_the_length_of_names_are_limited() {
        let mut many = TestReport::default();
        (0..IDS_MAX + 3).for_each(|n| many.add(&format!("t{n}"), TestOutcome::Passed));
        assert_eq!(many.ids().len(), IDS_MAX);
        many.count = Some(30_000);
        assert_eq!(many.ran(), Some(30_000));
        many.count = Some(0);
        assert_eq!(many.ran(), Some(20_000));
        (0..IDS_MAX + 3).for_each(|n| many.miss(&format!("t{n}")));
        assert_eq!(many.unreported.len(), IDS_MAX);
        let mut long = TestReport::default();
        long.add(&format!("a\nb{}", "é".repeat(ID_CHARS_MAX)), TestOutcome::Passed);
        let id = long.passed.first().map(String::as_str).unwrap_or_default();
        assert!(id.starts_with("a bé") && id.chars().count() == ID_CHARS_MAX, "{id}");
        let ids: Vec<&str> = vec!["t"; IDS_NAMED_MAX + 2];
        assert!(named(&ids).ends_with("`t` and 2 more"), "{}", named(&ids));
    }

    #[test]
    fn only_a_failure_of_an_asked_runner_is_tried_unasked() {
        let tried = |was_asked, failed| AskedRun { was_asked, failed }.is_tried_unasked();
        assert!(tried(true, true));
        assert!(!tried(true, false) && !tried(false, true) && !tried(false, false));
    }
}
