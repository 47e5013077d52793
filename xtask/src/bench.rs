//! Benches: every figure is a ratio to an anchor measured in turn with it, so that a busy machine
//! slows both. They inform; only a bench that cannot run fails.

mod gate;
mod graph;
mod integrate;
mod interleave;
mod paired;
mod plan_gates;
mod project;
mod repository;
mod startup;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::argument::Arguments;
use crate::step::{self, Failure};
use crate::workspace::{cargo, find_program, target_dir};
use interleave::Measured;

const ROUNDS: usize = 7;
/// Of what takes many seconds each time.
const LONG_ROUNDS: usize = 5;

#[derive(Clone, Copy)]
pub enum Effort {
    /// One round with the debug binary: checks that the bench works, its figures mean nothing.
    Smoke,
    /// Enough rounds for a median, or as many as were asked for, with the release binary.
    Full { rounds: Option<usize> },
}

impl Effort {
    pub fn from_arguments(arguments: &mut Arguments) -> Result<Self, Failure> {
        let is_smoke = arguments.flag("--smoke");
        match (is_smoke, arguments.number("--rounds")?) {
            (true, None) => Ok(Effort::Smoke),
            (false, rounds) if rounds != Some(0) => {
                Ok(Effort::Full { rounds: rounds.and_then(|rounds| usize::try_from(rounds).ok()) })
            }
            (true | false, _) => Err(Failure::Usage(
                "`--rounds` takes at least 1, and `--smoke` has one round".to_owned(),
            )),
        }
    }

    fn rounds(self) -> usize {
        match self {
            Effort::Smoke => 1,
            Effort::Full { rounds } => rounds.unwrap_or(ROUNDS),
        }
    }
}

/// One row of the table of benches.
struct Bench {
    id: &'static str,
    what: &'static str,
    anchor: &'static str,
    /// The program the anchor is made of; without it there is nothing to compare with.
    needs: &'static str,
    /// The ratio we want to stay under.
    target: f64,
    measure: fn(&Bed) -> Result<Measured, Failure>,
}

/// What a bench gets to work with.
pub struct Bed {
    autopilot: PathBuf,
    scratch: PathBuf,
    rounds: usize,
    effort: Effort,
    /// The gates that were measured already, by project: several rows are made of them.
    gates: RefCell<BTreeMap<&'static str, Vec<gate::GateRound>>>,
}

const BENCHES: &[Bench] = &[
    Bench {
        id: "B1",
        what: "loop of 20 tasks",
        anchor: "bare script",
        needs: "git",
        target: 1.5,
        measure: paired::small,
    },
    Bench {
        id: "B2",
        what: "loop, 10,000 files",
        anchor: "bare script",
        needs: "git",
        target: 0.15,
        measure: paired::large,
    },
    Bench {
        id: "B3-ninja",
        what: "10,000 steps, supervised",
        anchor: "ninja -j4",
        needs: "ninja",
        target: 1.5,
        measure: graph::supervised_to_ninja,
    },
    Bench {
        id: "B3-make",
        what: "10,000 steps, supervised",
        anchor: "make -j4",
        needs: "make",
        target: 1.15,
        measure: graph::supervised_to_make,
    },
    Bench {
        id: "B3-plain",
        what: "10,000 steps, plain spawn",
        anchor: "make -j4",
        needs: "make",
        target: 1.15,
        measure: graph::plain_to_make,
    },
    Bench {
        id: "B3-chain",
        what: "chain of 2,000 steps, plain",
        anchor: "ideal spawn loop",
        needs: "true",
        target: 1.4,
        measure: graph::chain,
    },
    Bench {
        id: "B7",
        what: "autopilot status --json",
        anchor: "git --version",
        needs: "git",
        target: 4.0,
        measure: startup::status,
    },
    Bench {
        id: "B8",
        what: "autopilot --version",
        anchor: "ninja --version",
        needs: "ninja",
        target: 1.2,
        measure: startup::version,
    },
    Bench {
        id: "B9",
        what: "10,000 tasks to 1st agent",
        anchor: "ninja -n",
        needs: "ninja",
        target: 3.0,
        measure: graph::first_spawn_to_ninja,
    },
    Bench {
        id: "B9-make",
        what: "10,000 tasks to 1st agent",
        anchor: "make -n",
        needs: "make",
        target: 1.0,
        measure: graph::first_spawn_to_make,
    },
    Bench {
        id: "B15",
        what: "40 slots at once",
        anchor: "40 git worktree add",
        needs: "git",
        target: 1.0,
        measure: integrate::slots,
    },
    Bench {
        id: "B16",
        what: "train of 500 merges",
        anchor: "3 plumbing commands",
        needs: "git",
        target: 1.1,
        measure: integrate::train,
    },
    Bench {
        id: "B18-cargo",
        what: "warm gate, cargo",
        anchor: "warm checkout",
        needs: "git",
        target: 1.5,
        measure: gate::cargo_to_checkout,
    },
    Bench {
        id: "B18-cargo-cold",
        what: "warm gate, cargo",
        anchor: "cold gate",
        needs: "git",
        target: 0.15,
        measure: gate::cargo_to_cold,
    },
    Bench {
        id: "B18-cargo-seed",
        what: "base with seeds, cargo",
        anchor: "base, cold",
        needs: "git",
        target: 1.1,
        measure: gate::cargo_seed,
    },
    Bench {
        id: "B18-npm",
        what: "warm gate, npm",
        anchor: "warm checkout",
        needs: "git",
        target: 1.5,
        measure: gate::npm_to_checkout,
    },
    Bench {
        id: "B18-npm-cold",
        what: "warm gate, npm",
        anchor: "cold gate",
        needs: "git",
        target: 0.15,
        measure: gate::npm_to_cold,
    },
    Bench {
        id: "B18-npm-seed",
        what: "base with seeds, npm",
        anchor: "base, cold",
        needs: "git",
        target: 1.1,
        measure: gate::npm_seed,
    },
    Bench {
        id: "B18-python",
        what: "warm gate, python",
        anchor: "warm checkout",
        needs: "git",
        target: 1.5,
        measure: gate::python_to_checkout,
    },
    Bench {
        id: "B18-python-cold",
        what: "warm gate, python",
        anchor: "cold gate",
        needs: "git",
        target: 0.15,
        measure: gate::python_to_cold,
    },
    Bench {
        id: "B18-python-seed",
        what: "base with seeds, python",
        anchor: "base, cold",
        needs: "git",
        target: 1.1,
        measure: gate::python_seed,
    },
    Bench {
        id: "B19",
        what: "10 tasks, 3 workers, cargo",
        anchor: "cold gates",
        needs: "git",
        target: 0.35,
        measure: plan_gates::measure,
    },
    Bench {
        id: "B20-cargo",
        what: "gate with three runs, cargo",
        anchor: "gate with one run",
        needs: "git",
        target: 3.0,
        measure: gate::cargo_three_runs,
    },
    Bench {
        id: "B20-npm",
        what: "gate with three runs, npm",
        anchor: "gate with one run",
        needs: "git",
        target: 3.0,
        measure: gate::npm_three_runs,
    },
    Bench {
        id: "B20-python",
        what: "gate with three runs, python",
        anchor: "gate with one run",
        needs: "git",
        target: 3.0,
        measure: gate::python_three_runs,
    },
];

pub fn run(only: Option<&str>, effort: Effort) -> Result<(), Failure> {
    let chosen: Vec<&Bench> =
        BENCHES.iter().filter(|bench| only.is_none_or(|id| bench.is_called(id))).collect();
    if chosen.is_empty() {
        let known: Vec<&str> = BENCHES.iter().map(|bench| bench.id).collect();
        return Err(Failure::Usage(format!("no such bench; there are {}", known.join(", "))));
    }
    let bed = Bed::prepare(effort)?;
    let mut lines = Vec::new();
    println!(
        "{:<16} {:<27} {:>10}   {:<20} {:>10} {:>8} {:>8}",
        "id", "subject", "ms", "anchor", "ms", "ratio", "target"
    );
    for bench in chosen {
        if find_program(bench.needs).is_none() {
            println!(
                "{:<16} {:<27} not measured: {} is not here",
                bench.id, bench.what, bench.needs
            );
            lines.push(json!({ "bench": bench.id, "absent": bench.needs }).to_string());
            continue;
        }
        let measured = (bench.measure)(&bed)?;
        println!(
            "{:<16} {:<27} {:>10.3}   {:<20} {:>10.3} {:>7.2}x {:>7.2}x{}",
            bench.id,
            bench.what,
            measured.subject_ms(),
            bench.anchor,
            measured.anchor_ms(),
            measured.ratio(),
            bench.target,
            if measured.ratio() <= bench.target { "" } else { "  over" },
        );
        lines.push(json_line(bench, &measured));
    }
    println!();
    for line in lines {
        println!("{line}");
    }
    Ok(())
}

impl Bench {
    /// By its id, or by the beginning that several share, up to a dash.
    fn is_called(&self, id: &str) -> bool {
        let (own, id) = (self.id.to_ascii_lowercase(), id.to_ascii_lowercase());
        own.strip_prefix(&id).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }
}

impl Bed {
    fn prepare(effort: Effort) -> Result<Self, Failure> {
        let (profile, rounds, mut build) = match effort {
            Effort::Smoke => (
                "debug",
                effort.rounds(),
                cargo(["build", "-q", "--workspace", "--bin", "autopilot"]),
            ),
            Effort::Full { .. } => {
                ("release", effort.rounds(), cargo(["build", "-q", "--release", "-p", "autopilot"]))
            }
        };
        step::run("build for the bench", &mut build)?;
        Ok(Self {
            autopilot: target_dir().join(profile).join("autopilot"),
            scratch: target_dir().join("bench"),
            rounds,
            effort,
            gates: RefCell::default(),
        })
    }

    /// Fewer rounds of what takes long, unless a number was asked for.
    fn long_rounds(&self) -> usize {
        self.at_most(LONG_ROUNDS)
    }

    fn at_most(&self, rounds_max: usize) -> usize {
        match self.effort {
            Effort::Full { rounds: Some(asked) } => asked,
            Effort::Full { rounds: None } | Effort::Smoke => self.rounds.min(rounds_max),
        }
    }

    /// A program of the project that only benches use.
    fn example(&self, package: &str, name: &str) -> Result<PathBuf, Failure> {
        let (profile, mut build) = match self.effort {
            Effort::Smoke => ("debug", cargo(["build", "-q", "--workspace", "--example", name])),
            Effort::Full { .. } => {
                ("release", cargo(["build", "-q", "--release", "-p", package, "--example", name]))
            }
        };
        step::run("build a part for the bench", &mut build)?;
        Ok(target_dir().join(profile).join("examples").join(name))
    }

    /// How much of something: all of it, or just enough to see that the bench works.
    fn size(&self, full: usize, smoke: usize) -> usize {
        match self.effort {
            Effort::Full { .. } => full,
            Effort::Smoke => smoke,
        }
    }
}

fn json_line(bench: &Bench, measured: &Measured) -> String {
    json!({
        "bench": bench.id,
        "subject": bench.what,
        "anchor": bench.anchor,
        "ratio": measured.ratio(),
        "target": bench.target,
        "ratios": measured.ratios(),
        "subject_ms": measured.subject_ms(),
        "anchor_ms": measured.anchor_ms(),
        "load_average": load_average(),
    })
    .to_string()
}

/// The load over one minute; `None` where the system does not tell.
fn load_average() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn ids_are_unique() {
        let mut ids: Vec<&str> = BENCHES.iter().map(|bench| bench.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), BENCHES.len());
    }

    #[test]
    fn an_unknown_bench_is_refused_with_the_known_ones() {
        let failure = run(Some("B99"), Effort::Smoke).unwrap_err();
        assert!(failure.to_string().contains("there are B1, B2"), "{failure}");
    }

    #[test]
    fn a_family_of_benches_is_called_by_what_they_share() {
        let called = |id: &str| -> Vec<&str> {
            BENCHES.iter().filter(|bench| bench.is_called(id)).map(|bench| bench.id).collect()
        };
        assert_eq!(called("b9"), ["B9", "B9-make"]);
        assert_eq!(called("B3-chain"), ["B3-chain"]);
        assert_eq!(called("B1"), ["B1"], "and B15 is another");
        assert_eq!(called("B18-npm"), ["B18-npm", "B18-npm-cold", "B18-npm-seed"]);
    }

    #[test]
    fn the_json_line_holds_the_rounds_and_the_ratio() {
        let ms = Duration::from_millis;
        let measured = Measured::from_rounds(vec![(ms(2), ms(4)), (ms(2), ms(6)), (ms(1), ms(5))]);
        let line: serde_json::Value =
            serde_json::from_str(&json_line(&BENCHES[0], &measured)).unwrap();
        assert_eq!(line["bench"], "B1");
        assert_eq!(line["ratio"], 3.0);
        assert_eq!(line["ratios"], json!([2.0, 3.0, 5.0]));
    }
}
