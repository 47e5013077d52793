//! The two long campaigns against the product: simulated runs by seed, and kills of the real binary.

use std::path::{Path, PathBuf};

use crate::argument::Arguments;
use crate::step::{self, Failure};
use crate::workspace::{cargo, root};

pub const KILLS_DEFAULT: u64 = 1000;
const SEEDS_DEFAULT: u64 = 2000;

pub enum Seeds {
    Range { from: u64, count: u64 },
    One(u64),
}

impl Seeds {
    pub fn first(count: u64) -> Self {
        Seeds::Range { from: 0, count }
    }

    pub fn from_arguments(arguments: &mut Arguments) -> Result<Self, Failure> {
        let count = arguments.number("--seeds")?;
        let from = arguments.number("--from")?;
        match arguments.number("--seed")? {
            None => {
                Ok(Seeds::Range { from: from.unwrap_or(0), count: count.unwrap_or(SEEDS_DEFAULT) })
            }
            Some(seed) if count.is_none() && from.is_none() => Ok(Seeds::One(seed)),
            Some(_) => Err(Failure::Usage(
                "`--seed` replays one seed; it goes without `--seeds` and `--from`".to_owned(),
            )),
        }
    }

    /// The words the simulator understands.
    pub fn words(&self) -> Vec<String> {
        match self {
            Seeds::Range { from: 0, count } => vec!["--seeds".to_owned(), count.to_string()],
            Seeds::Range { from, count } => {
                ["--seeds", &count.to_string(), "--from", &from.to_string()]
                    .map(str::to_owned)
                    .to_vec()
            }
            Seeds::One(seed) => vec!["--seed".to_owned(), seed.to_string()],
        }
    }
}

pub fn simulate(seeds: Seeds) -> Result<(), Failure> {
    require("the simulator", &simulator())?;
    let mut command = cargo(["run", "-q", "-p", "autopilot-testkit", "--bin", "sim", "--"]);
    step::run("simulation", command.args(seeds.words()))
}

pub fn torture(kills: u64) -> Result<(), Failure> {
    require("the torture test", &torture_test())?;
    let mut command = cargo(["test", "-p", "autopilot", "--test", "torture", "--", "--nocapture"]);
    step::run("torture", command.env("AUTOPILOT_TORTURE_KILLS", kills.to_string()))
}

pub fn simulator() -> PathBuf {
    root().join("crates/autopilot-testkit/src/bin/sim.rs")
}

pub fn torture_test() -> PathBuf {
    root().join("crates/autopilot/tests/torture.rs")
}

fn require(what: &str, source: &Path) -> Result<(), Failure> {
    if source.is_file() {
        return Ok(());
    }
    Err(Failure::Task(format!("{what} is not in this tree: no file `{}`", source.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Vec<String>, Failure> {
        let mut arguments = Arguments::new(line.split_whitespace().map(str::to_owned));
        Seeds::from_arguments(&mut arguments).map(|seeds| seeds.words())
    }

    #[test]
    fn seeds_are_handed_on_to_the_simulator() {
        assert_eq!(words("").unwrap(), ["--seeds", "2000"]);
        assert_eq!(words("--from 7 --seeds 3").unwrap(), ["--seeds", "3", "--from", "7"]);
        assert_eq!(words("--seed 99").unwrap(), ["--seed", "99"]);
    }

    #[test]
    fn one_seed_and_a_range_exclude_each_other() {
        assert!(words("--seed 1 --seeds 5").is_err());
    }
}
