//! A plan on a real project: its whole run with gates over the seeds of the base, last proof from
//! nothing included, against the same run with every gate from nothing.

use std::time::Duration;

use serde_json::json;

use super::Bed;
use super::gate::{GateGround, ShownRun};
use super::interleave::Measured;
use super::project::{self, RealProject};
use crate::step::Failure;

/// Each round has two runs, one of which takes many minutes.
const ROUNDS_MAX: usize = 3;
const WORKERS: &str = "3";

/// Whether a run may use the seeds of its base.
#[derive(Clone, Copy)]
enum Seeds {
    Used,
    Unused,
}

pub fn measure(bed: &Bed) -> Result<Measured, Failure> {
    let count = bed.size(10, 2);
    let rounds = bed.at_most(ROUNDS_MAX);
    let ground = GateGround::make(bed, RealProject::cargo(bed), "plan")?;
    let file = ground.dir().join("plan.json");
    project::write(&file, &plan(count))?;
    let run = |gates: &str, seeds: Seeds| {
        ground.configure(gates)?;
        let words = ["run", "--no-ui", "--quiet", "--max-workers", WORKERS, "--from"];
        let (took, shown) = ground.run(&words, &file)?;
        check(&shown, count, seeds)?;
        Ok::<Duration, Failure>(took)
    };
    let mut measured = Vec::with_capacity(rounds);
    for round in 1..=rounds {
        let cold = run("warm: off", Seeds::Unused)?;
        let warm = run("warm: auto", Seeds::Used)?;
        eprintln!("round {round}: cold {cold:.1?}, warm {warm:.1?}");
        measured.push((cold, warm));
    }
    Ok(Measured::from_rounds(measured))
}

/// Tasks that change different places of one file.
fn plan(count: usize) -> String {
    let task = |n: usize| {
        json!({
            "id": format!("line-{n}"),
            "title": format!("Add line {n}"),
            "goal": "Add a line.",
            "acceptance_criteria": ["the line is there"],
            "depends_on": [],
        })
    };
    let tasks: Vec<_> = (0..count).map(task).collect();
    json!({ "plan_summary": "Add lines", "tasks": tasks }).to_string()
}

/// A run whose tasks were not all merged is no result, and neither is one with other gates than it is
/// measured for: with seeds each task has a warm one and the whole a last one from nothing, without
/// seeds none is warm.
fn check(shown: &ShownRun, count: usize, seeds: Seeds) -> Result<(), Failure> {
    let (merged, warm) = (shown.count("merge"), shown.count_warm("validate"));
    let as_meant = match seeds {
        Seeds::Used => warm >= count && shown.count("prove") == 1,
        Seeds::Unused => warm == 0,
    };
    if merged == count && as_meant {
        return Ok(());
    }
    Err(Failure::Task(format!("of {count} tasks {merged} were merged, and {warm} gates were warm")))
}
