//! The long campaigns against the product: simulated runs by seed, faults that strike the real
//! binary, and kills of controllers that make or use the seeds of gates.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::argument::Arguments;
use crate::slice::Slice;
use crate::step::{self, Failure};
use crate::workspace::{cargo, root, target_dir};

const KILLS_DEFAULT: u64 = 200;
/// Of each of the nine kinds, so that a whole campaign has more than a thousand.
const FAULTS_DEFAULT: u64 = 112;
/// Of each kind of layer, as root and as a plain user.
const WARM_KILLS_DEFAULT: u64 = 100;
/// The seeds of `cargo xtask sim`, of which CI simulates a slice.
const SEEDS_DEFAULT: u64 = 8000;

pub enum Seeds {
    Range { from: u64, count: u64 },
    One(u64),
}

impl Seeds {
    pub fn first(count: u64) -> Self {
        Seeds::Range { from: 0, count }
    }

    /// The seeds of one slice of those that `cargo xtask sim` simulates.
    pub fn part(slice: Slice) -> Result<Self, Failure> {
        let part = slice.range(SEEDS_DEFAULT as usize)?;
        Ok(Seeds::Range { from: part.start as u64, count: part.len() as u64 })
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
    // Built as a part of the workspace: built alone, its dependencies have other features, and all
    // of them would be compiled once more.
    step::run(
        "build of the simulator",
        &mut cargo(["build", "-q", "--workspace", "--bin", "sim"]),
    )?;
    let mut command = Command::new(target_dir().join("debug/sim"));
    step::run("simulation", command.args(seeds.words()).current_dir(root()))
}

/// The faults of a torture campaign.
pub struct Faults {
    /// How many faults of each kind.
    pub each: u64,
    /// The kinds, separated by commas; all of them by default.
    pub kinds: Option<String>,
    /// How often the controller is killed besides, in the tests of kills alone.
    pub kills: u64,
}

impl Faults {
    pub fn from_arguments(arguments: &mut Arguments) -> Result<Self, Failure> {
        let each = arguments.number("--faults")?;
        let kinds = arguments.value("--kind")?;
        let kills = arguments.number("--kills")?;
        Ok(Faults {
            each: each.unwrap_or(FAULTS_DEFAULT),
            kinds,
            kills: kills.unwrap_or(KILLS_DEFAULT),
        })
    }
}

pub fn torture(faults: &Faults) -> Result<(), Failure> {
    require("the torture test", &torture_test())?;
    let mut command = cargo(["test", "--workspace", "--test", "torture", "--"]);
    command.env("AUTOPILOT_TORTURE_FAULTS", faults.each.to_string());
    command.env("AUTOPILOT_TORTURE_KILLS", faults.kills.to_string());
    if let Some(kinds) = &faults.kinds {
        // One kind is looked at alone.
        command.env("AUTOPILOT_TORTURE_KINDS", kinds).arg("faults_of_any_kind");
    }
    step::run("torture", command.args(["--nocapture", "--test-threads=1"]))
}

/// Which cheats and honest runs are played.
pub enum Cheats {
    All,
    /// Those with this in their names.
    Named(String),
    Part(Slice),
    /// None of them: the table of the docs is made anew.
    Table,
}

impl Cheats {
    pub fn from_arguments(arguments: &mut Arguments) -> Result<Self, Failure> {
        let slice = arguments.value("--slice")?.map(|text| text.parse()).transpose()?;
        match (arguments.flag("--write"), arguments.word(), slice) {
            (false, None, None) => Ok(Cheats::All),
            (false, Some(name), None) => Ok(Cheats::Named(name)),
            (false, None, Some(slice)) => Ok(Cheats::Part(slice)),
            (true, None, None) => Ok(Cheats::Table),
            _ => Err(Failure::Usage(
                "`honesty` takes a part of a name, or `--slice`, or `--write`".to_owned(),
            )),
        }
    }
}

/// The variable that says to the test which cases it plays.
pub const HONESTY_CASES: &str = "AUTOPILOT_HONESTY_CASES";

/// Plays cheats and honest runs against the real binary. CI plays a slice, by the same test.
pub fn honesty(cheats: &Cheats) -> Result<(), Failure> {
    require("the test of honesty", &honesty_test())?;
    let mut command = cargo(["test", "--workspace", "--test", "honesty", "--"]);
    match cheats {
        Cheats::All => command.env(HONESTY_CASES, "all"),
        Cheats::Named(name) => command.env(HONESTY_CASES, name).arg("every_chosen_case"),
        Cheats::Part(slice) => {
            command.env(HONESTY_CASES, slice.to_string()).arg("every_chosen_case")
        }
        Cheats::Table => command.env("AUTOPILOT_HONESTY_WRITE", "1").arg("the_table"),
    };
    step::run("honesty", command.arg("--nocapture"))
}

fn honesty_test() -> PathBuf {
    root().join("crates/autopilot/tests/honesty.rs")
}

/// The number of kills of `cargo xtask warm-kills`.
pub fn warm_kills(arguments: &mut Arguments) -> Result<u64, Failure> {
    match arguments.number("--kills")? {
        Some(0) => Err(Failure::Usage("`--kills 0` kills nothing; use at least 1".to_owned())),
        kills => Ok(kills.unwrap_or(WARM_KILLS_DEFAULT)),
    }
}

/// Kills controllers while they seal a seed or have a layer over it mounted. CI kills a few, by the
/// same tests.
pub fn kill_warm(kills: u64) -> Result<(), Failure> {
    require("the test of warm gates", &warm_test())?;
    let mut command = cargo(["test", "--workspace", "--test", "warm", "--"]);
    command.env("AUTOPILOT_WARM_KILLS", kills.to_string());
    step::run("kills of warm gates", command.arg("after_a_kill"))
}

fn warm_test() -> PathBuf {
    root().join("crates/autopilot-host/tests/warm.rs")
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
        assert_eq!(words("").unwrap(), ["--seeds", "8000"]);
        assert_eq!(words("--from 7 --seeds 3").unwrap(), ["--seeds", "3", "--from", "7"]);
        assert_eq!(words("--seed 99").unwrap(), ["--seed", "99"]);
    }

    #[test]
    fn a_slice_of_the_seeds_can_be_asked_for_by_its_words() {
        let part = |slice: &str| Seeds::part(slice.parse().unwrap()).unwrap().words();
        assert_eq!(part("1/8"), words("--seeds 1000").unwrap());
        assert_eq!(part("8/8"), words("--from 7000 --seeds 1000").unwrap());
    }

    #[test]
    fn cheats_are_chosen_by_name_or_by_slice() {
        let cheats = |line: &str| {
            Cheats::from_arguments(&mut Arguments::new(line.split_whitespace().map(str::to_owned)))
        };
        assert!(matches!(cheats(""), Ok(Cheats::All)));
        assert!(
            matches!(cheats("leftovers/home"), Ok(Cheats::Named(name)) if name == "leftovers/home")
        );
        assert!(matches!(cheats("--slice 3/8"), Ok(Cheats::Part(_))));
        assert!(matches!(cheats("--write"), Ok(Cheats::Table)));
        assert!(cheats("--write leftovers").is_err() && cheats("a --slice 3/8").is_err());
    }

    #[test]
    fn a_campaign_of_kills_has_a_hundred_unless_told_otherwise_and_never_none() {
        let kills = |line: &str| {
            warm_kills(&mut Arguments::new(line.split_whitespace().map(str::to_owned)))
        };
        assert_eq!(kills("").unwrap(), 100);
        assert_eq!(kills("--kills 7").unwrap(), 7);
        assert!(kills("--kills 0").is_err());
    }

    #[test]
    fn one_seed_and_a_range_exclude_each_other() {
        assert!(words("--seed 1 --seeds 5").is_err());
    }
}
