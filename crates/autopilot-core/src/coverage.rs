//! Coverage: the tests that prove each acceptance criterion of a change, where `gates.proof: red_green`
//! asks for it.
//!
//! An agent says which test covers which criterion; the controller believes it only of tests that fail
//! without the change and pass with it. A test that does not compile or load without the change counts,
//! and is marked.

mod check;
mod told;

use crate::evidence::RoundEvidence;
use crate::guard::{FINDINGS_MAX, Finding, FindingSource, Severity};
use crate::pipeline::Switch;
use crate::rows::rows;
use crate::state::{State, Task};
use crate::step::Step;
use crate::test_report::TestReport;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

pub use check::{check_coverage, coverage_faults};
pub use told::{coverage_doubts, coverage_notes};

/// The characters of a criterion that are kept beside its name.
const TEXT_CHARS_MAX: usize = 300;

/// The answer of the agent that says which tests cover which criterion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoverageAnswer {
    pub map: Vec<MappedCriterion>,
    #[serde(rename = "allCovered")]
    pub all_covered: bool,
    /// The criteria that no test covers.
    pub uncovered: Vec<String>,
}

/// A criterion and the tests that are said to cover it, each by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedCriterion {
    pub criterion: String,
    pub tests: Vec<String>,
}

/// An acceptance criterion with the name by which it is mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCriterion {
    pub id: String,
    pub text: String,
}

/// The criteria of a task by name. Names that the criteria bring themselves (`AC-2: …`) are kept if every
/// criterion has one of its own. Where there are no criteria, the goal is the only one.
pub fn named_criteria(acceptance: &[String], goal: &str) -> Vec<NamedCriterion> {
    let goal = [goal.trim().to_owned()];
    let texts = if acceptance.is_empty() { &goal[..] } else { acceptance };
    let own: Option<Vec<NamedCriterion>> = texts.iter().map(|text| with_own_name(text)).collect();
    let names: BTreeSet<&str> = own.iter().flatten().map(|it| it.id.as_str()).collect();
    if let Some(own) = own.clone().filter(|own| own.len() == names.len()) {
        return own;
    }
    let numbered = |(place, text): (usize, &String)| NamedCriterion {
        id: format!("AC-{}", place + 1),
        text: text.trim().to_owned(),
    };
    texts.iter().enumerate().map(numbered).collect()
}

fn with_own_name(text: &str) -> Option<NamedCriterion> {
    let (id, rest) = text.trim().split_once(':')?;
    let number = id.strip_prefix("AC-")?;
    let is_name = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_name.then(|| NamedCriterion { id: id.to_owned(), text: rest.trim().to_owned() })
}

/// The results on which coverage is checked.
#[derive(Clone, Copy, Debug)]
pub struct CoverageSeen<'a> {
    /// What the validation of the change has shown.
    pub green: &'a RoundEvidence,
    /// What the untouched base of the run has shown.
    pub base: &'a RoundEvidence,
    /// The commits on which the change and the run stand.
    pub change_base: &'a str,
    pub run_base: &'a str,
}

/// The criteria of a change and the tests that can cover them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoverageGround {
    pub criteria: Vec<NamedCriterion>,
    /// Tests that fail without the change and pass with it.
    pub red: BTreeSet<String>,
    /// Tests that pass with the change, and do not compile or load without it.
    pub weak: BTreeSet<String>,
    /// New and changed tests that pass without the change.
    pub not_red: BTreeSet<String>,
    /// All tests that pass with the change.
    pub green: BTreeSet<String>,
    /// Whether the base has tests that are known by name.
    pub base_has_names: bool,
}

impl CoverageGround {
    /// The tests by what the runs have shown of them. Only names of tests count: a file or a command is
    /// none. A test that fails on the base of the run is red as well, where the change stands on it.
    pub fn of(criteria: Vec<NamedCriterion>, seen: &CoverageSeen<'_>) -> CoverageGround {
        let passed = |evidence: &RoundEvidence| names(evidence, |report| &report.passed);
        let failed = |evidence: &RoundEvidence| names(evidence, |report| &report.failed);
        let green = passed(seen.green);
        let runs = seen.green.three_runs.as_deref();
        let of_green = |ids: &BTreeSet<String>| ids.intersection(&green).cloned().collect();
        let pick = |ids: Option<&BTreeSet<String>>| -> BTreeSet<String> {
            ids.map(of_green).unwrap_or_default()
        };
        let mut red = pick(runs.map(|runs| &runs.proven_red));
        let not_red = pick(runs.map(|runs| &runs.not_red));
        if seen.change_base == seen.run_base {
            let before = failed(seen.base);
            red.extend(before.intersection(&green).filter(|id| !not_red.contains(*id)).cloned());
        }
        let mut weak = pick(runs.map(|runs| &runs.weakly_red));
        weak.retain(|id| !red.contains(id));
        let base_has_names = !passed(seen.base).is_empty() || !failed(seen.base).is_empty();
        CoverageGround { criteria, red, weak, not_red, green, base_has_names }
    }

    /// Whether a test fails, does not compile or does not load without the change.
    pub fn is_red(&self, id: &str) -> bool {
        self.red.contains(id) || self.weak.contains(id)
    }

    /// The result that needs no agent: no test that could be mapped to anything.
    pub fn settled(&self) -> Option<CoverageCheck> {
        let verdict = match (self.green.is_empty(), self.red.is_empty() && self.weak.is_empty()) {
            (true, _) => CoverageVerdict::NoNames,
            (false, true) => CoverageVerdict::NothingIsRed,
            (false, false) => return None,
        };
        let uncovered = |criterion: &NamedCriterion| {
            CriterionProof::missing(criterion, "no test fails without the change".to_owned())
        };
        let criteria = self.criteria.iter().map(uncovered).collect();
        let is_of_configuration = verdict == CoverageVerdict::NoNames && !self.base_has_names;
        Some(CoverageCheck { verdict, criteria, is_of_configuration })
    }
}

fn names(evidence: &RoundEvidence, of: fn(&TestReport) -> &BTreeSet<String>) -> BTreeSet<String> {
    let reports = evidence.checks.iter().filter_map(|seen| seen.report.as_deref());
    reports.flat_map(|report| of(report).iter().cloned()).collect()
}

rows! {
/// What the controller makes of the coverage of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
CoverageVerdict -> &'static str {
    /// Each criterion has a test that fails without the change and passes with it.
    Covered: "every criterion is covered",
    /// A criterion has none.
    #[default]
    Uncovered: "a criterion is not covered",
    /// No test at all fails without the change.
    NothingIsRed: "no test fails without the change",
    /// No test is known by its name.
    NoNames: "no test is known by name",
}}

/// The coverage of a change as the controller has checked it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoverageCheck {
    pub verdict: CoverageVerdict,
    pub criteria: Vec<CriterionProof>,
    /// The base has no names of tests either, so no change can mend that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_configuration: bool,
}

/// A criterion and what proves it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CriterionProof {
    pub criterion: String,
    /// The beginning of its text.
    pub text: String,
    /// Tests that fail without the change and pass with it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tests: BTreeSet<String>,
    /// Tests that pass with the change, and do not compile or load without it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub weak_tests: BTreeSet<String>,
    /// Why it is not covered; none if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

impl CriterionProof {
    fn new(criterion: &NamedCriterion) -> CriterionProof {
        let text = criterion.text.chars().take(TEXT_CHARS_MAX).collect();
        CriterionProof { criterion: criterion.id.clone(), text, ..CriterionProof::default() }
    }

    fn missing(criterion: &NamedCriterion, why: String) -> CriterionProof {
        CriterionProof { missing: Some(why), ..CriterionProof::new(criterion) }
    }

    /// Whether a test covers the criterion.
    pub fn is_covered(&self) -> bool {
        self.missing.is_none() && !(self.tests.is_empty() && self.weak_tests.is_empty())
    }
}

/// The reason why a stage that maps criteria to tests is saved: there is nothing to map.
///
/// A repair that the controller asks for is proven red and green by the commands that it is about: they
/// failed on what is merged, and its validation passed.
pub fn nothing_to_cover(task: &Task) -> Option<&'static str> {
    let validated = task.shown(Step::Validate);
    let has_failed = validated.is_some_and(|shown| shown.outcome.failure().is_some());
    match (has_failed, task.spec.mends) {
        (true, _) => Some("the validation failed, so no test covers anything yet"),
        (false, true) => Some("the commands that failed before the repair prove it"),
        (false, false) => None,
    }
}

/// The reason for which a round fails because its criteria are not covered. Only a check of the
/// controller itself counts, whatever the step says.
pub fn refusal_of(state: &State, task: &Task) -> Option<String> {
    if !state.is_on(Switch::RedGreen, task) || nothing_to_cover(task).is_some() {
        return None;
    }
    let shown = task.shown(Step::Coverage);
    let is_covered = shown
        .and_then(|shown| shown.facts.coverage.as_deref())
        .is_some_and(|check| check.verdict == CoverageVerdict::Covered);
    let failure = shown.and_then(|shown| shown.outcome.failure());
    let unknown = "nobody has said which tests cover the criteria";
    (!is_covered || failure.is_some()).then(|| failure.unwrap_or(unknown).to_owned())
}

/// What a person should know before the first agent is paid: the tests of the base have no names, and each
/// criterion needs one.
pub fn note_of_base(switches: &BTreeSet<Switch>, base: &RoundEvidence) -> Option<String> {
    let is_asked = switches.contains(&Switch::RedGreen);
    let mut reports = base.checks.iter().filter_map(|seen| seen.report.as_deref());
    let has_names = reports.any(TestReport::has_ids);
    (is_asked && !has_names).then(|| {
        "no test of the base is known by name, and `gates.proof: red_green` needs the names of the \
         tests that come with the change"
            .to_owned()
    })
}

/// The criteria that the round before has left without a test, as something to repair.
pub fn findings_of(task: &Task) -> Vec<Finding> {
    let last = task.last(Step::Coverage).filter(|shown| shown.round + 1 >= task.round);
    let Some(check) = last.and_then(|shown| shown.facts.coverage.as_deref()) else {
        return Vec::new();
    };
    let found = |message: String, fix: &str| {
        Finding::new(FindingSource::Coverage, Severity::Blocker, message, fix)
    };
    let first = match check.verdict {
        CoverageVerdict::Covered => return Vec::new(),
        CoverageVerdict::Uncovered => None,
        CoverageVerdict::NothingIsRed => Some(found(
            "no test fails without the change".to_owned(),
            "add tests that fail on the code as it was before the change and pass with it",
        )),
        CoverageVerdict::NoNames => Some(found(
            "the tests have no names".to_owned(),
            "run them so that each is reported by its name, as it is without the change",
        )),
    };
    let of_one = |proof: &CriterionProof| {
        let why = proof.missing.as_deref().unwrap_or("no test covers it");
        let message = format!("{} (“{}”) is not covered: {why}", proof.criterion, proof.text);
        found(
            message,
            "add a test of this criterion that fails without the change and passes with it",
        )
    };
    let uncovered = check.criteria.iter().filter(|proof| !proof.is_covered()).map(of_one);
    first.into_iter().chain(uncovered).take(FINDINGS_MAX).collect()
}

#[cfg(test)]
mod tests;
