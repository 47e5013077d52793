//! `cargo xtask test`: the steps that decide whether a change is fit to merge, in the order in
//! which they are likely to fail.

use std::time::Instant;

use crate::agents;
use crate::bench;
use crate::campaign::{self, Seeds};
use crate::deny;
use crate::mutant;
use crate::package;
use crate::step::{self, Failure};
use crate::workspace::{cargo, find_program};

const SIMULATED_SEEDS: u64 = 2000;
/// Everything but what takes minutes by design: kills by the dozen, gigabytes of output.
const QUICK: &str = "not (binary(torture) or binary(flood))";

pub enum Depth {
    /// What a person runs before each commit.
    Quick,
    /// What CI runs.
    Full,
}

pub fn run(depth: Depth) -> Result<(), Failure> {
    let started = Instant::now();
    step::run("formatting", &mut cargo(["fmt", "--all", "--check"]))?;
    package::install_missing()?;
    agents::install_missing()?;
    step::run(
        "lints",
        &mut cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    )?;
    match depth {
        Depth::Quick => tests(&["-E", QUICK])?,
        Depth::Full => {
            tests(&[])?;
            campaigns()?;
        }
    }
    println!("\nxtask: all steps passed in {:.0} s", started.elapsed().as_secs_f32());
    Ok(())
}

/// Tests start the product by its path, so its binary is built before them.
fn tests(selection: &[&str]) -> Result<(), Failure> {
    step::run("build", &mut cargo(["build", "--workspace", "--all-targets"]))?;
    if find_program("cargo-nextest").is_some() {
        let at_once = at_once().to_string();
        let nextest = ["nextest", "run", "--workspace", "--test-threads", &at_once];
        step::run("tests", cargo(nextest).args(selection))?;
        // Nextest runs no doctests.
        step::run("doctests", &mut cargo(["test", "-q", "--workspace", "--doc"]))
    } else {
        step::run("tests", &mut cargo(["test", "--workspace"]))
    }
}

/// Half as many again as there are cores: much of a test is waiting for processes and for time.
fn at_once() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    cores + cores.div_ceil(2)
}

fn campaigns() -> Result<(), Failure> {
    deny::run()?;
    bench::run(None, bench::Effort::Smoke)?;
    campaign::simulate(Seeds::first(SIMULATED_SEEDS))?;
    mutant::run(None)
}
