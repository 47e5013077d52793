//! The two runs beside the gate of a change that touches what decides its verdict: the base's tests
//! over the new code, and the new tests over the base's code.
//!
//! Whoever may edit the tests edits the verdict. So a test of the base that does not pass as it did has
//! to be accounted for by the task, by a judge or by a person, each by its name.

mod asked;
mod compare;
mod doubts;

use crate::doubt::Doubt;
use crate::event::Outcome;
use crate::evidence::SeenCommand;
use crate::guard::{FINDINGS_MAX, Finding, FindingSource, Severity};
use crate::limit::YardstickChanges;
use crate::pipeline::{Switch, Work};
use crate::rows::rows;
use crate::state::{Run, Task};
use crate::step::Step;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

pub use asked::{AskedChange, ChangedText, accounts};
pub use compare::{RedTests, RunsSeen, last_name, open_tests, red_tests, vanished_tests};
pub use doubts::{accounted_lines, neutral_lines, open_doubts, refusal};

/// The files with tests that are run by themselves where none of the new tests ran together.
pub const RED_FILES_MAX: usize = 20;

/// What the runs beside the gate have shown.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ThreeRuns {
    /// The files of the change that decide a verdict.
    pub touched: BTreeSet<String>,
    /// The files that hold tests and code which can't be told apart.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub inseparable: BTreeSet<String>,
    /// The settings of builds and runners that count for both sides, because they build the product too.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub settings: BTreeSet<String>,
    /// The base's tests over the new code; none where they are the same tree as the change or the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_regression: Option<ProofRun>,
    /// The new tests over the base's code; where none of them ran together, each file by itself. None
    /// where they are the same tree as the change or the base.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub red: Vec<ProofRun>,
    /// Tests that are new or changed and pass only with the change.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub proven_red: BTreeSet<String>,
    /// Tests that are new, pass with the change and did not compile or load without it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub weakly_red: BTreeSet<String>,
    /// Tests that are new or changed and pass, or are skipped, without the change.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub not_red: BTreeSet<String>,
    /// Tests that are new or changed and were not run without the change, because their file is one too
    /// many.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub not_shown: BTreeSet<String>,
    /// Everything that the change breaks, skips or removes of the base's tests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<OpenTest>,
    /// The tests of the base that the gate does not run, besides those that are open and those that stand
    /// in the change under another name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<OpenTest>,
    /// The part of what is open for which the task itself accounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AskedTest>,
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
    DoesNotCompile: "does not compile or load with the change",
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

impl OpenTest {
    /// The test and what became of it, in a few words.
    pub fn words(&self) -> String {
        let place = match &self.file {
            Some(file) if !self.id.contains(file.as_str()) => format!(" ({file})"),
            Some(_) | None => String::new(),
        };
        format!("`{}`{place} {}", self.id, self.kind.row())
    }

    /// Whether the test fails a round as long as nothing accounts for it. An API that was renamed leaves
    /// tests that can't be compiled, and that alone says nothing against the change.
    pub fn blocks(&self) -> bool {
        match self.kind {
            OpenTestKind::Fails | OpenTestKind::IsGone | OpenTestKind::IsSkipped => true,
            OpenTestKind::DoesNotCompile => false,
        }
    }
}

/// A test that a judge accepts by name, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AcceptedTest {
    pub id: String,
    pub reason: String,
}

/// A test for which the task itself accounts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedTest {
    pub test: OpenTest,
    pub by: AskedChange,
}

/// Who has accounted for tests besides the task.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accounts<'a> {
    /// The tests that a judge accepts.
    pub accepted: &'a [AcceptedTest],
    /// A person was asked, and accepts all of them.
    pub by_person: bool,
}

impl ThreeRuns {
    /// The tests for which the task does not account.
    pub fn unasked(&self) -> Vec<OpenTest> {
        let is_asked = |test: &&OpenTest| !self.asked.iter().any(|asked| asked.test == **test);
        self.open.iter().filter(is_asked).cloned().collect()
    }
}

/// The tests that fail the round, because nobody who may has accounted for them.
pub fn unaccounted<'a>(
    open: &'a [OpenTest],
    policy: YardstickChanges,
    accounts: Accounts<'_>,
) -> Vec<&'a OpenTest> {
    let is_accepted = |test: &OpenTest| accounts.accepted.iter().any(|it| it.id == test.id);
    let counts = |test: &&OpenTest| match policy {
        YardstickChanges::Told => false,
        YardstickChanges::Reviewed => !accounts.by_person && !is_accepted(test),
        YardstickChanges::Person => !accounts.by_person,
        YardstickChanges::Refused => true,
    };
    open.iter().filter(|test| test.blocks()).filter(counts).collect()
}

/// The steps at which a judge may accept tests by name.
const JUDGES: [Step; 3] = [Step::Review, Step::Completion, Step::WholeReview];

/// Whether tests that are open after the validation of a task are weighed later in its round: by its
/// decision, or by whoever reviews the whole and may accept them. Where they are not, they fail the
/// validation.
pub fn are_weighed_later(run: &Run, task: &Task) -> bool {
    let stages = task.pipeline.stages();
    let is_on = |switch: Switch| run.switches.contains(&switch);
    let is_reviewed = task.pipeline.place(Step::WholeReview).is_some()
        && is_on(Switch::WholeReview)
        && is_on(Switch::Review);
    let may_accept = match run.limits.yardstick_changes {
        YardstickChanges::Told | YardstickChanges::Reviewed => true,
        YardstickChanges::Person | YardstickChanges::Refused => false,
    };
    stages.iter().any(|stage| stage.work == Work::Decide) || is_reviewed && may_accept
}

/// Whether tests of the round of a task are still open, which only a judge can accept.
pub fn waits_for_judge(run: &Run, task: &Task) -> bool {
    let (open, _) = of_round(task);
    !unaccounted(open, run.limits.yardstick_changes, Accounts::default()).is_empty()
}

/// The open tests of the round of a task, and who has accounted for them.
fn of_round(task: &Task) -> (&[OpenTest], Accounts<'_>) {
    let open = task.shown(Step::Validate).map(|shown| shown.facts.open.as_slice());
    let judged = JUDGES.into_iter().find_map(|step| task.shown(step));
    let accepted = judged.map(|shown| shown.facts.accepted.as_slice());
    let asked = task.shown(Step::AcceptTests);
    let by_person = asked.is_some_and(|shown| shown.outcome == Outcome::Passed);
    (open.unwrap_or_default(), Accounts { accepted: accepted.unwrap_or_default(), by_person })
}

/// The reason for which the round of a task fails because of tests of the base.
pub fn refusal_of(policy: YardstickChanges, task: &Task) -> Option<String> {
    let (open, accounts) = of_round(task);
    refusal(open, policy, accounts)
}

/// What a person should look at of the tests of the base that the round of a task leaves open.
pub fn doubts_of(policy: YardstickChanges, task: &Task) -> Vec<Doubt> {
    let (open, accounts) = of_round(task);
    open_doubts(open, policy, accounts)
}

/// The tests of the base that the round before has left open, as something to repair.
pub fn findings_of(policy: YardstickChanges, task: &Task) -> Vec<Finding> {
    let last = |step| task.last(step).filter(|shown| shown.round + 1 >= task.round);
    let open = last(Step::Validate).map(|shown| shown.facts.open.as_slice()).unwrap_or_default();
    let judged = JUDGES.into_iter().find_map(last);
    let accepted = judged.map(|shown| shown.facts.accepted.as_slice()).unwrap_or_default();
    let left = unaccounted(open, policy, Accounts { accepted, by_person: false });
    let finding = |test: &OpenTest| {
        let message = format!("a test of the base: {}", test.words());
        let fix = "restore the test if it was changed, and make it pass; if the task needs it to \
                   change, say in `notes` which criterion asks for that";
        let found = Finding::new(FindingSource::Validation, Severity::Blocker, message, fix);
        match &test.file {
            Some(file) => found.in_file(file),
            None => found,
        }
    };
    left.into_iter().take(FINDINGS_MAX).map(finding).collect()
}

/// Whether a person is asked about tests of the base that a task breaks.
pub fn asks_a_person(policy: YardstickChanges, task: &Task) -> bool {
    let is_asked = policy == YardstickChanges::Person;
    let (open, _) = of_round(task);
    is_asked && !unaccounted(open, policy, Accounts::default()).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(id: &str, kind: OpenTestKind) -> OpenTest {
        OpenTest { id: id.to_owned(), kind, file: None }
    }

    #[test]
    fn a_broken_test_of_the_base_needs_somebody_who_may_accept_it() {
        use YardstickChanges::{Person, Refused, Reviewed, Told};
        let tests = [open("a", OpenTestKind::Fails), open("b", OpenTestKind::IsGone)];
        let accepted = ["a", "b"].map(|id| AcceptedTest { id: id.to_owned(), reason: "r".into() });
        let count = |policy, accepted, by_person| {
            unaccounted(&tests, policy, Accounts { accepted, by_person }).len()
        };
        for (policy, alone, half, judged, by_person) in [
            (Told, 0, 0, 0, 0),
            (Reviewed, 2, 1, 0, 0),
            (Person, 2, 2, 2, 0),
            (Refused, 2, 2, 2, 2),
        ] {
            assert_eq!(count(policy, &[], false), alone, "{policy:?}");
            assert_eq!(count(policy, &accepted[..1], false), half, "{policy:?}");
            assert_eq!(count(policy, &accepted, false), judged, "{policy:?}");
            assert_eq!(count(policy, &[], true), by_person, "{policy:?}");
        }
        let pattern = [AcceptedTest { id: "*".to_owned(), reason: "all of them".to_owned() }];
        assert_eq!(count(Reviewed, &pattern, false), 2, "tests are accepted by name");
    }

    #[test]
    fn what_no_longer_compiles_fails_no_round_by_itself() {
        let tests = [open("tests/a.rs", OpenTestKind::DoesNotCompile)];
        for policy in YardstickChanges::ALL {
            assert_eq!(unaccounted(&tests, policy, Accounts::default()).len(), 0, "{policy:?}");
        }
    }
}
