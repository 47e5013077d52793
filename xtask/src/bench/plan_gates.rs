//! A plan on a real project: its whole run with gates over the seeds of the base, last proof from
//! nothing included, against the same run with every gate from nothing.

use std::time::Duration;

use serde_json::json;

use super::gate::{GateGround, ShownRun, Warmth};
use super::interleave::Measured;
use super::project::{self, RealProject};
use super::{Bed, Effort};
use crate::step::Failure;

/// Each round has two runs, one of which takes many minutes.
const ROUNDS: usize = 3;
const WORKERS: &str = "3";

pub fn measure(bed: &Bed) -> Result<Measured, Failure> {
    let count = bed.size(10, 2);
    let rounds = match bed.effort {
        Effort::Full => ROUNDS,
        Effort::Smoke => 1,
    };
    let ground = GateGround::make(bed, RealProject::cargo(bed), "plan")?;
    let file = ground.dir().join("plan.json");
    project::write(&file, &plan(count))?;
    let run = |gates: &str, warmth: Warmth| {
        ground.configure(gates)?;
        let words = ["run", "--no-ui", "--quiet", "--max-workers", WORKERS, "--from"];
        let (took, shown) = ground.run(&words, &file)?;
        check(&shown, count, warmth)?;
        Ok::<Duration, Failure>(took)
    };
    let mut measured = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let cold = run("warm: off", Warmth::Cold)?;
        measured.push((cold, run("warm: auto", Warmth::Warm)?));
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

/// A run whose tasks were not all merged, or whose gates started from something else than they are
/// measured for, is no result.
fn check(shown: &ShownRun, count: usize, warmth: Warmth) -> Result<(), Failure> {
    let (merged, gates) = (shown.count("merge", Warmth::Cold), shown.count("validate", warmth));
    if merged >= count && gates >= count {
        return Ok(());
    }
    Err(Failure::Task(format!(
        "of {count} tasks {merged} were merged, and {gates} gates passed {warmth:?}"
    )))
}
