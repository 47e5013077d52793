//! Held-out tests: tests from outside of the repository that the controller lays over the tree it
//! proves. No agent sees them; of a failure it is told the names and nothing else.
//!
//! Code that runs beside a held-out test can read it, and can print what it likes. So nothing that a
//! run prints is told: a name is told only if the held-out files themselves have it.

mod name;
mod place;

pub use name::{HeldOutName, HeldOutTests};
pub use place::{HOLDOUT_BYTES_MAX, HOLDOUT_FILE_BYTES_MAX, HOLDOUT_FILES_MAX, HoldoutFault};
pub use place::{HoldoutGround, location_fault};

use crate::doubt::{Doubt, DoubtKind};
use crate::evidence::{RoundEvidence, SeenCommand};
use crate::flow::Flow;
use crate::guard::{Finding, FindingSource, Severity};
use crate::rows::rows;
use crate::step::Step;
use crate::test_report::TestReport;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The name of the command that runs the held-out tests.
pub const HOLDOUT: &str = "holdout";
/// The name of the command that is repeated with the held-out tests.
const TESTS: &str = "tests";
/// The names of failing tests that one run tells; the rest is counted.
pub const HELD_OUT_TOLD_MAX: usize = 20;
/// The number up to which failing tests without a held-out name are counted: a number is text too.
pub const OTHERS_MAX: u64 = 9;

/// Returns whether the held-out tests judge this validation. They are about all that is asked for, so
/// where a run is validated as a whole its parts are not judged by them.
pub fn is_judged(flow: Flow, is_whole: bool) -> bool {
    is_whole || flow.row().root.place(Step::Validate).is_none()
}

/// The commands of a gate with the tests once more, over the held-out files.
pub fn with_held_out(mut commands: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
    let tests: Vec<String> =
        commands.iter().filter(|(name, _)| *name == TESTS).map(|(_, line)| line.clone()).collect();
    commands.extend(tests.into_iter().map(|line| (HOLDOUT, line)));
    commands
}

/// The result of the tests as they are that a run over the held-out files follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VisibleTests {
    /// They passed.
    Passed,
    /// They fail as they do on the untouched base, so an exit code says nothing.
    RedAsBase,
    /// They failed, or changed what they prove: nothing else needs to be run.
    Failed,
}

impl VisibleTests {
    /// What the results of a gate say of its tests.
    pub fn of(seen: &SeenCommand, base: &RoundEvidence) -> VisibleTests {
        match (seen.failed(), seen.is_known(base)) {
            _ if seen.tampering(base).is_some() => VisibleTests::Failed,
            (false, _) => VisibleTests::Passed,
            (true, true) => VisibleTests::RedAsBase,
            (true, false) => VisibleTests::Failed,
        }
    }
}

rows! {
/// How a run over the held-out files ended. The row is the sentence where no test is named.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
HeldOutEnd -> &'static str {
    Passed: "the held-out tests pass",
    #[default]
    Failed: "a held-out test failed",
    TimedOut: "the held-out tests did not end in time",
    /// A program wrote to the held-out files or to tracked ones.
    Rewrote: "files were changed while the held-out tests ran",
}}

/// What is kept and told of a run over the held-out files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldOutRun {
    /// The digest of the held-out files.
    pub digest: String,
    pub end: HeldOutEnd,
    /// The failing tests, by the names that the held-out files give them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub failing: BTreeSet<String>,
    /// Further held-out tests that fail.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// Failing tests that have no held-out name, up to [`OTHERS_MAX`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub others: u64,
    /// The tests fail on the base too, and no held-out one was seen to fail.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_known: bool,
    /// The runner names its tests, and no held-out one is among them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unseen: bool,
    /// Agents could read the held-out files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub readable: bool,
    /// The directory is no longer as it was at the start of the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What the controller saw of a run over the held-out files.
#[derive(Debug, Clone, Copy)]
pub struct HeldOutShown<'a> {
    pub exit_code: Option<i32>,
    /// The run did not end by itself.
    pub was_ended: bool,
    /// Held-out or tracked files were changed meanwhile.
    pub rewrote: bool,
    pub report: Option<&'a TestReport>,
    /// The failing tests that the output names.
    pub failing: &'a BTreeSet<String>,
    /// The tests as they are, and their report.
    pub visible: VisibleTests,
    pub visible_report: Option<&'a TestReport>,
    pub is_readable: bool,
    pub is_edited: bool,
}

impl HeldOutTests {
    /// Weighs a run over the held-out files. Nothing that the run printed is in the result.
    pub fn weigh(&self, shown: &HeldOutShown<'_>) -> HeldOutRun {
        let is_incomplete = shown.report.is_some_and(|report| report.incomplete(None).is_some());
        let end = match shown.exit_code {
            _ if shown.rewrote => HeldOutEnd::Rewrote,
            _ if shown.was_ended => HeldOutEnd::TimedOut,
            Some(0) if !is_incomplete => HeldOutEnd::Passed,
            Some(_) | None => HeldOutEnd::Failed,
        };
        let mut ids: BTreeSet<&str> = shown.failing.iter().map(String::as_str).collect();
        if let Some(report) = shown.report {
            ids.extend(report.failed.iter().chain(&report.not_loaded).map(String::as_str));
        }
        let (mut failing, mut others) = (BTreeSet::new(), 0_u64);
        for id in ids.iter().filter(|_| end != HeldOutEnd::Passed) {
            match self.named(id) {
                Some(name) => drop(failing.insert(name.told())),
                None => others = (others + 1).min(OTHERS_MAX),
            }
        }
        let is_red = end == HeldOutEnd::Failed;
        let only_known = is_red && shown.visible == VisibleTests::RedAsBase && failing.is_empty();
        let more = failing.len().saturating_sub(HELD_OUT_TOLD_MAX) as u64;
        HeldOutRun {
            digest: self.digest.clone(),
            end,
            failing: failing.into_iter().take(HELD_OUT_TOLD_MAX).collect(),
            more,
            others,
            only_known,
            unseen: self.is_unseen(shown, end),
            readable: shown.is_readable,
            edited: shown.is_edited,
        }
    }

    /// Whether a run that passed ran none of the held-out tests, as far as its runner names any.
    fn is_unseen(&self, shown: &HeldOutShown<'_>, end: HeldOutEnd) -> bool {
        let reports = [shown.report, shown.visible_report];
        let has_ids = reports.into_iter().flatten().any(TestReport::has_ids);
        let ran = |report: &TestReport| {
            report.passed.iter().chain(&report.failed).any(|id| self.named(id).is_some())
        };
        end == HeldOutEnd::Passed && has_ids && !shown.report.is_some_and(ran)
    }
}

impl HeldOutRun {
    /// Whether the held-out tests passed.
    pub fn passed(&self) -> bool {
        self.end == HeldOutEnd::Passed
    }

    /// What is told of the run, one sentence a line. It is all that an agent ever reads of it.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.failing.iter().map(|name| format!("held-out test `{name}` fails")).collect();
        if self.more > 0 {
            lines.push(format!("{} more held-out tests fail", self.more));
        }
        if lines.is_empty() || self.end != HeldOutEnd::Failed {
            let other = match self.others {
                0 => "",
                1 => ", and one test without a held-out name",
                OTHERS_MAX.. => ", and many tests without a held-out name",
                _ => ", and some tests without a held-out name",
            };
            lines.insert(0, format!("{}{other}", self.end.row()));
        }
        lines
    }

    /// The same on one line.
    pub fn sentence(&self) -> String {
        self.lines().join("; ")
    }

    /// What a builder is to repair.
    pub fn findings(&self) -> Vec<Finding> {
        if self.passed() {
            return Vec::new();
        }
        let blocker = |line| Finding::new(FindingSource::Validation, Severity::Blocker, line, "");
        self.lines().into_iter().map(blocker).collect()
    }

    /// What a person should look at.
    pub fn doubts(&self) -> Vec<Doubt> {
        let table = [
            (self.readable, DoubtKind::NoSandbox, READABLE),
            (self.edited, DoubtKind::WeakProof, EDITED),
            (self.unseen, DoubtKind::WeakProof, UNSEEN),
            (self.only_known, DoubtKind::WeakProof, ONLY_KNOWN),
        ];
        let told = table.into_iter().filter(|(is_so, ..)| *is_so);
        told.map(|(_, kind, text)| Doubt::new(kind, text)).collect()
    }
}

/// The doubt about held-out tests that nothing hides.
pub const READABLE: &str =
    "agents could read the held-out tests: nothing hides files from programs here";
/// The doubt about a directory that was changed during the run.
pub const EDITED: &str =
    "the held-out tests were changed during the run, which is judged by those of its start";
const UNSEEN: &str = "no held-out test is among those that the runner names, so none may have run";
const ONLY_KNOWN: &str =
    "the tests fail on the base too, so that no held-out test fails is not known";

#[cfg(test)]
mod tests;
