//! `sim`: simulated runs by seed. Old failures first, then new seeds; a failure names its replay.
#![expect(clippy::print_stdout, reason = "a program of its own whose words are its result")]

use autopilot_testkit::fault::{Fault, Faults};
use autopilot_testkit::swarm::{drawn_faults, trial, trial_with};
use autopilot_testkit::world::Tally;
use std::process::ExitCode;
use std::time::Instant;

const USAGE: &str = "sim [--seeds N] [--from S] [--keep-going] | sim --seed X [--trace]";
const SEEDS_DEFAULT: u64 = 2000;
const PROGRESS_SEEDS: u64 = 500;
const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus.txt");

struct Arguments {
    seeds: u64,
    from: u64,
    seed: Option<u64>,
    trace: bool,
    keep_going: bool,
}

fn main() -> ExitCode {
    let Some(arguments) = arguments() else {
        println!("usage: {USAGE}");
        return ExitCode::from(64);
    };
    match arguments.seed {
        Some(seed) => replay(seed, arguments.trace),
        None => campaign(&arguments),
    }
}

fn arguments() -> Option<Arguments> {
    let mut found =
        Arguments { seeds: SEEDS_DEFAULT, from: 0, seed: None, trace: false, keep_going: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        match word.as_str() {
            "--seeds" => found.seeds = number()?,
            "--from" => found.from = number()?,
            "--seed" => found.seed = Some(number()?),
            "--trace" => found.trace = true,
            "--keep-going" => found.keep_going = true,
            _ => return None,
        }
    }
    Some(found)
}

fn replay(seed: u64, trace: bool) -> ExitCode {
    let mut first = autopilot_testkit::world::World::new(autopilot_testkit::swarm::plan(
        seed,
        &drawn_faults(seed),
    ));
    if trace {
        first.trace = Some(Vec::new());
    }
    first.run();
    for line in first.trace.iter().flatten() {
        println!("{line}");
    }
    let trial = trial(seed);
    println!("seed {seed}: hash {:016x}, faults {:?}", first.hash, first.faults);
    if trial.world.hash != first.hash {
        println!("the same seed gave another run: {:016x}", trial.world.hash);
        return ExitCode::FAILURE;
    }
    match trial.fault {
        None => ExitCode::SUCCESS,
        Some(what) => {
            println!("FAILED: {what}");
            ExitCode::FAILURE
        }
    }
}

fn campaign(arguments: &Arguments) -> ExitCode {
    let Arguments { from, seeds, .. } = *arguments;
    let started = Instant::now();
    let mut tally = Tally::default();
    let corpus = match corpus() {
        Ok(corpus) => corpus,
        Err(error) => {
            println!("sim: cannot read the seeds of `{CORPUS}`: {error}");
            return ExitCode::FAILURE;
        }
    };
    let (mut runs, mut failures) = (0, 0);
    for seed in corpus.iter().copied().chain(from..from + seeds) {
        let trial = trial(seed);
        if let Some(what) = trial.fault {
            failures += 1;
            if !arguments.keep_going {
                report(seed, &what);
                return ExitCode::FAILURE;
            }
            println!("sim: seed {seed} FAILED: {what}");
        }
        add(&mut tally, &trial.world.tally);
        runs += 1;
        if runs % PROGRESS_SEEDS == 0 {
            println!("sim: {runs} runs, {} ms", started.elapsed().as_millis());
        }
    }
    summarise(runs, corpus.len(), &tally, started);
    if failures > 0 {
        println!("sim: {failures} runs failed");
        return ExitCode::FAILURE;
    }
    println!("sim: every invariant held");
    ExitCode::SUCCESS
}

/// Seeds that failed once, a line each; what follows the number says why.
fn corpus() -> std::io::Result<Vec<u64>> {
    let text = std::fs::read_to_string(CORPUS)?;
    let numbers = text.lines().filter_map(|line| line.split_whitespace().next());
    numbers.map(|word| word.parse().map_err(std::io::Error::other)).collect()
}

fn report(seed: u64, what: &str) {
    println!("sim: seed {seed} FAILED: {what}");
    println!("sim: it takes {:?}", fewest(seed));
    println!("sim: replay with  cargo run -p autopilot-testkit --bin sim -- --seed {seed} --trace");
}

/// Leaves out one fault after another as long as the seed still fails.
fn fewest(seed: u64) -> Faults {
    let mut faults = drawn_faults(seed);
    for fault in Fault::ALL {
        let mut fewer = faults.clone();
        if fewer.remove(&fault) && trial_with(seed, &fewer).fault.is_some() {
            faults = fewer;
        }
    }
    faults
}

fn add(sum: &mut Tally, one: &Tally) {
    sum.records += one.records;
    sum.happenings += one.happenings;
    sum.boots += one.boots;
    sum.attempts += one.attempts;
    sum.merges += one.merges;
    sum.swept += one.swept;
    for (fault, times) in &one.faults {
        *sum.faults.entry(*fault).or_default() += times;
    }
    for (outcome, times) in &one.outcomes {
        *sum.outcomes.entry(outcome.clone()).or_default() += times;
    }
}

fn summarise(runs: u64, old: usize, tally: &Tally, started: Instant) {
    println!(
        "sim: {runs} runs ({old} from the corpus), {} boots, {} records, {} attempts, {} merges, \
         {} orphans swept, {} happenings in {} ms",
        tally.boots,
        tally.records,
        tally.attempts,
        tally.merges,
        tally.swept,
        tally.happenings,
        started.elapsed().as_millis()
    );
    let times = |fault: &Fault| tally.faults.get(fault).copied().unwrap_or(0);
    let faults: Vec<String> =
        Fault::ALL.iter().map(|fault| format!("{fault:?} {}", times(fault))).collect();
    println!("sim: faults: {}", faults.join(", "));
    let outcomes: Vec<String> =
        tally.outcomes.iter().map(|(outcome, times)| format!("{outcome} {times}")).collect();
    println!("sim: endings: {}", outcomes.join(", "));
}
