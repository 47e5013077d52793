//! `cargo xtask test`: the steps that decide whether a change is fit to merge, in the order in
//! which they are likely to fail.

use std::process::Command;
use std::thread;
use std::time::Instant;

use crate::agents;
use crate::bench;
use crate::campaign::{self, Seeds};
use crate::deny;
use crate::listing::Listing;
use crate::mutant;
use crate::package;
use crate::slice::Slice;
use crate::step::{self, Failure};
use crate::workspace::{cargo, find_program};

/// Test binaries that `--quick` leaves out, because they take minutes by design: kills by the dozen,
/// gigabytes of output, ten thousand tasks, waits for a quota, a compiled copy of the sources, cheats,
/// hostile process trees that each have the machine to themselves, attempts on the jail and layers that need
/// root, and real agents.
const SLOW: &[&str] = &[
    "agents_acp",
    "agents_claude",
    "agents_codex",
    "attempts",
    "contributing",
    "flood",
    "goal_real",
    "honesty",
    "hostile",
    "disk_fault",
    "git_fault",
    "machine_fault",
    "plan_scale",
    "quota",
    "real_agents",
    "torture",
    "warm",
    "warm_cheats",
    "warm_kinds",
];
/// In the name of a test that starts a real agent, wherever it is.
const REAL: &str = "the_real_";

pub enum Depth {
    /// What a person runs before each commit.
    Quick,
    /// What CI runs.
    Full,
}

pub fn run(depth: Depth) -> Result<(), Failure> {
    let started = Instant::now();
    step::run("formatting", &mut cargo(["fmt", "--all", "--check"]))?;
    mutant::check_recipes()?;
    package::install_missing()?;
    match depth {
        Depth::Quick => quick()?,
        Depth::Full => full()?,
    }
    println!("\nxtask: all steps passed in {:.0} s", started.elapsed().as_secs_f32());
    Ok(())
}

fn quick() -> Result<(), Failure> {
    lints()?;
    let listing = Listing::build()?;
    if find_program("cargo-nextest").is_none() {
        return Err(Failure::Task(
            "`--quick` needs cargo-nextest, which can leave tests out: cargo install cargo-nextest"
                .to_owned(),
        ));
    }
    let slow: Vec<String> = SLOW.iter().map(|name| format!("binary({name})")).collect();
    let others = format!("not ({} or test({REAL}))", slow.join(" or "));
    let mut nextest = nextest();
    nextest.args(["-E", &others]);
    step::run("tests", &mut nextest)?;
    println!(
        "xtask: {} tests were left out: {}, and with a real agent; `cargo xtask test` runs them too",
        listing.count(SLOW, REAL),
        SLOW.join(", ")
    );
    Ok(())
}

fn full() -> Result<(), Failure> {
    let slice = Slice::of_head()?;
    // The agents are a gigabyte to download and nothing to compute.
    thread::scope(|scope| {
        let agents = scope.spawn(agents::install_missing);
        let built = lints().and_then(|()| docs()).and_then(|()| Listing::build());
        let agents = agents.join();
        built?;
        agents.map_err(|_| Failure::Task("the install of the agents panicked".to_owned()))?
    })?;
    tests(slice)?;
    deny::run()?;
    bench::run(None, bench::Effort::Smoke)?;
    campaign::simulate(Seeds::part(slice)?)?;
    mutant::run(&mutant::Choice::Part(slice))
}

fn lints() -> Result<(), Failure> {
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    step::run("lints", &mut cargo(clippy))
}

/// A link that leads nowhere is a name that has changed since.
fn docs() -> Result<(), Failure> {
    let mut command = cargo(["doc", "--workspace", "--no-deps", "--document-private-items"]);
    // Whoever reads them reads those of private items too.
    let flags = "-D warnings -A rustdoc::private_intra_doc_links";
    step::run("docs", command.env("RUSTDOCFLAGS", flags))
}

fn tests(slice: Slice) -> Result<(), Failure> {
    let cases = slice.to_string();
    if find_program("cargo-nextest").is_none() {
        let mut tests = cargo(["test", "--workspace"]);
        return step::run("tests", tests.env(campaign::HONESTY_CASES, cases));
    }
    step::run("tests", nextest().env(campaign::HONESTY_CASES, cases))?;
    // Nextest runs no doctests.
    step::run("doctests", &mut cargo(["test", "-q", "--workspace", "--doc"]))
}

/// Half as many tests at once again as there are cores: much of a test is waiting for processes and
/// for time.
fn nextest() -> Command {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let at_once = (cores + cores.div_ceil(2)).to_string();
    cargo(["nextest", "run", "--workspace", "--test-threads", &at_once])
}
