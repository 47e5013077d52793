//! What an agent says of coverage, compared with what the controller has seen of the tests.

use super::{CoverageAnswer, CoverageCheck, CoverageGround, CoverageVerdict, CriterionProof};
use super::{MappedCriterion, NamedCriterion};
use crate::workflow::PlanFault;
use std::collections::BTreeSet;

/// The tests of a criterion that are kept.
const TESTS_MAX: usize = 50;
/// The tests that a reason names.
const NAMED_MAX: usize = 3;
/// The faults that one answer is told.
const FAULTS_MAX: usize = 40;

/// The faults of an answer that its schema does not express, for which it is asked once more.
pub fn coverage_faults(answer: &CoverageAnswer, ground: &CoverageGround) -> Vec<PlanFault> {
    let mut faults = Vec::new();
    let mut add = |pointer: String, what: String| faults.push(PlanFault { pointer, what });
    let is_known = |id: &str| ground.criteria.iter().any(|criterion| criterion.id == id);
    for (place, entry) in answer.map.iter().enumerate() {
        if !is_known(&entry.criterion) {
            let what = format!("there is no criterion `{}`", entry.criterion);
            add(format!("/map/{place}/criterion"), what);
        }
        for (at, id) in entry.tests.iter().enumerate().filter(|(_, id)| !ground.green.contains(*id))
        {
            let what = format!("no test `{id}` passes with the change");
            add(format!("/map/{place}/tests/{at}"), what);
        }
    }
    for (place, id) in answer.uncovered.iter().enumerate().filter(|(_, id)| !is_known(id)) {
        add(format!("/uncovered/{place}"), format!("there is no criterion `{id}`"));
    }
    let open: Vec<&str> = answer.open(ground).map(|criterion| criterion.id.as_str()).collect();
    match (answer.all_covered, open.as_slice()) {
        (true, [_, ..]) => {
            let what = format!("it is true, and the answer has no test for {}", open.join(", "));
            add("/allCovered".to_owned(), what);
        }
        (false, []) => {
            let what = "it is false, and `uncovered` names no criterion".to_owned();
            add("/allCovered".to_owned(), what);
        }
        (true, []) | (false, _) => {}
    }
    faults.truncate(FAULTS_MAX);
    faults
}

impl CoverageAnswer {
    /// The tests that are said to cover a criterion.
    fn tests_of<'a>(&'a self, criterion: &'a NamedCriterion) -> impl Iterator<Item = &'a String> {
        let is_its = |entry: &&MappedCriterion| entry.criterion == criterion.id;
        self.map.iter().filter(is_its).flat_map(|entry| &entry.tests)
    }

    /// The criteria of which the answer itself says that no test covers them.
    fn open<'a>(&'a self, ground: &'a CoverageGround) -> impl Iterator<Item = &'a NamedCriterion> {
        ground.criteria.iter().filter(|criterion| {
            self.uncovered.contains(&criterion.id) || self.tests_of(criterion).next().is_none()
        })
    }
}

/// Checks what an agent says of coverage. Nothing of it is believed but the choice among tests that fail
/// without the change and pass with it; a no is always believed.
pub fn check_coverage(answer: &CoverageAnswer, ground: &CoverageGround) -> CoverageCheck {
    if let Some(settled) = ground.settled() {
        return settled;
    }
    // A no that names nothing is one about everything.
    let is_vague_no = !answer.all_covered && answer.open(ground).next().is_none();
    let of_one = |criterion: &NamedCriterion| match is_vague_no {
        true => {
            let why = "the answer says that not every criterion is covered, and not which";
            CriterionProof::missing(criterion, why.to_owned())
        }
        false => of_criterion(criterion, answer, ground),
    };
    let criteria: Vec<CriterionProof> = ground.criteria.iter().map(of_one).collect();
    let is_covered = !criteria.is_empty() && criteria.iter().all(CriterionProof::is_covered);
    let verdict = if is_covered { CoverageVerdict::Covered } else { CoverageVerdict::Uncovered };
    CoverageCheck { verdict, criteria, is_of_configuration: false }
}

fn of_criterion(
    criterion: &NamedCriterion,
    answer: &CoverageAnswer,
    ground: &CoverageGround,
) -> CriterionProof {
    let said: BTreeSet<&String> = answer.tests_of(criterion).collect();
    let of = |ids: &BTreeSet<String>| {
        said.iter()
            .filter(|id| ids.contains(**id))
            .take(TESTS_MAX)
            .map(|id| (*id).clone())
            .collect()
    };
    let (tests, weak_tests): (BTreeSet<String>, BTreeSet<String>) =
        (of(&ground.red), of(&ground.weak));
    let missing = if answer.uncovered.contains(&criterion.id) {
        Some("no test of the change covers it".to_owned())
    } else if tests.is_empty() && weak_tests.is_empty() {
        Some(why_not(&said, ground))
    } else {
        None
    };
    match missing {
        Some(why) => CriterionProof::missing(criterion, why),
        None => CriterionProof { tests, weak_tests, ..CriterionProof::new(criterion) },
    }
}

/// Why the tests that are said to cover a criterion do not.
fn why_not(said: &BTreeSet<&String>, ground: &CoverageGround) -> String {
    if said.is_empty() {
        return "no test of the change covers it".to_owned();
    }
    let word = |id: &&&String| match ground.green.contains(**id) {
        true => format!("`{id}` does not fail without the change"),
        false => format!("`{id}` does not pass with the change, or does not exist"),
    };
    let named: Vec<String> = said.iter().take(NAMED_MAX).map(|id| word(&id)).collect();
    match said.len().saturating_sub(NAMED_MAX) {
        0 => named.join(", "),
        count => format!("{} and {count} more alike", named.join(", ")),
    }
}
