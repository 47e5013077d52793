//! What a scenario says of tests and criteria, weighed as in a real step: two criteria, and tests of
//! every kind.

use autopilot_core::coverage::{
    CoverageAnswer, CoverageGround, CoverageSeen, MappedCriterion, check_coverage, coverage_doubts,
    coverage_faults, named_criteria,
};
use autopilot_core::event::{Facts, Outcome};
use autopilot_core::evidence::{RoundEvidence, SeenCommand};
use autopilot_core::state::{State, Task};
use autopilot_core::test_report::{TestOutcome, TestReport};
use autopilot_core::three_runs::ThreeRuns;
use std::collections::BTreeSet;

/// The tests of the change in a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TestsOf {
    /// `red`, `weak`, `vacuous` and `old` are what they are called; `mended` failed on the base of the
    /// run, and of `file.sh` only an exit code is known.
    #[default]
    EveryKind,
    /// Only tests that pass without the change.
    NothingRed,
    /// Tests without names.
    NoNames,
}

/// A map of tests in a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptedMap {
    pub answer: CoverageAnswer,
    pub tests: TestsOf,
}

impl ScriptedMap {
    /// `AC-1=red+weak`, `no:AC-2`, `unsure`, `nothing-red` or `no-names`.
    pub fn add(&mut self, word: &str) -> Result<(), String> {
        self.answer.all_covered |= self.answer == CoverageAnswer::default();
        match word {
            "unsure" => self.answer.all_covered = false,
            "nothing-red" => self.tests = TestsOf::NothingRed,
            "no-names" => self.tests = TestsOf::NoNames,
            word => match (word.split_once('='), word.strip_prefix("no:")) {
                (Some((criterion, tests)), _) => self.answer.map.push(MappedCriterion {
                    criterion: criterion.to_owned(),
                    tests: tests.split('+').map(str::to_owned).collect(),
                }),
                (None, Some(criterion)) => self.answer.uncovered.push(criterion.to_owned()),
                (None, None) => return Err(format!("`{word}` maps nothing")),
            },
        }
        Ok(())
    }

    /// How the step ends with this answer.
    pub fn weighed(&self, task: &Task, state: &State) -> (Outcome, Facts) {
        let (green, base) = (self.green(), tests(TestOutcome::Failed, &["mended"]));
        let base = if self.tests == TestsOf::NoNames { RoundEvidence::default() } else { base };
        let run_base = state.run.base.as_str();
        let change_base = task.base.as_deref().unwrap_or(run_base);
        let seen = CoverageSeen { green: &green, base: &base, change_base, run_base };
        let criteria = ["it adds", "it subtracts"].map(str::to_owned);
        let ground = CoverageGround::of(named_criteria(&criteria, ""), &seen);
        let check = check_coverage(&self.answer, &ground);
        let faults = coverage_faults(&self.answer, &ground).into_iter();
        let facts = Facts {
            notes: faults.map(|fault| format!("asked again: {fault}")).collect(),
            doubts: coverage_doubts(&ground),
            ..Facts::default()
        };
        (check.outcome(), Facts { coverage: Some(Box::new(check)), ..facts })
    }

    fn green(&self) -> RoundEvidence {
        let of = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<_>>();
        let runs = ThreeRuns {
            proven_red: of(&["red", "file.sh"]),
            weakly_red: of(&["weak"]),
            not_red: of(&["vacuous"]),
            ..ThreeRuns::default()
        };
        match self.tests {
            TestsOf::EveryKind => RoundEvidence {
                three_runs: Some(Box::new(runs)),
                ..tests(TestOutcome::Passed, &["red", "weak", "vacuous", "old", "mended"])
            },
            TestsOf::NothingRed => tests(TestOutcome::Passed, &["old"]),
            TestsOf::NoNames => RoundEvidence::default(),
        }
    }
}

fn tests(outcome: TestOutcome, ids: &[&str]) -> RoundEvidence {
    let mut report = TestReport::default();
    ids.iter().for_each(|id| report.add(id, outcome));
    let seen = SeenCommand { report: Some(Box::new(report)), ..SeenCommand::default() };
    RoundEvidence { checks: vec![seen], ..RoundEvidence::default() }
}
