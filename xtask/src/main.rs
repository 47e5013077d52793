//! `cargo xtask`: the checks, campaigns and benches of the project, one subcommand each.
//!
//! Whatever CI does is a subcommand here, so a person can run the same thing by hand.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

mod agents;
mod argument;
mod bench;
mod campaign;
mod deny;
mod dist;
mod elf;
mod listing;
mod mutant;
mod package;
mod slice;
mod step;
mod suite;
mod tree;
mod workspace;

use std::process::ExitCode;

use argument::Arguments;
use step::Failure;

const USAGE: &str = "\
usage: cargo xtask <command>

  test [--quick]                        everything CI checks, with a slice of the seeds and mutants;
                                        --quick: formatting, lints, tests without real agents and kills
  sim [--seeds N] [--from S] [--seed X] simulate N runs from seed S, or replay seed X alone
  torture [--faults N] [--kind K,…] [--kills N]
                                        let N faults of each kind strike the real binary and check that
                                        nothing is lost: controller, supervisor, git, agent, disk-full,
                                        inodes, read-only, ref-damage, journal-damage
  honesty [name | --slice K/N] [--write]
                                        play the cheats and the honest runs of tests/honesty against the real
                                        binary; --write: make the table of docs/honesty.md anew
  warm-kills [--kills N]                kill controllers N times for each kind of layer, while they seal
                                        what the base built or run a gate over it
  mutants [name | --slice K/N]          plant each known bug and check that a test notices it
  bench [id] [--rounds N | --smoke]     compare with an anchor; --smoke: one round, debug binary
  agents                                install the real agents the tests run, from npm
  deny                                  licences, banned crates and sources of the dependencies
  dist                                  build the static release binary
";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    match dispatch(&command, Arguments::new(words)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\nxtask: {failure}");
            match failure {
                Failure::Usage(_) => {
                    eprint!("\n{USAGE}");
                    ExitCode::from(64)
                }
                Failure::Step { .. } | Failure::Task(_) => ExitCode::FAILURE,
            }
        }
    }
}

fn dispatch(command: &str, mut arguments: Arguments) -> Result<(), Failure> {
    match command {
        "test" => {
            let depth =
                if arguments.flag("--quick") { suite::Depth::Quick } else { suite::Depth::Full };
            arguments.finish()?;
            suite::run(depth)
        }
        "sim" => {
            let seeds = campaign::Seeds::from_arguments(&mut arguments)?;
            arguments.finish()?;
            campaign::simulate(seeds)
        }
        "torture" => {
            let faults = campaign::Faults::from_arguments(&mut arguments)?;
            arguments.finish()?;
            campaign::torture(&faults)
        }
        "honesty" => {
            let cheats = campaign::Cheats::from_arguments(&mut arguments)?;
            arguments.finish()?;
            campaign::honesty(&cheats)
        }
        "warm-kills" => {
            let kills = campaign::warm_kills(&mut arguments)?;
            arguments.finish()?;
            campaign::kill_warm(kills)
        }
        "mutants" => {
            let choice = mutant::Choice::from_arguments(&mut arguments)?;
            arguments.finish()?;
            mutant::run(&choice)
        }
        "bench" => {
            let effort = bench::Effort::from_arguments(&mut arguments)?;
            let only = arguments.word();
            arguments.finish()?;
            bench::run(only.as_deref(), effort)
        }
        "agents" => {
            arguments.finish()?;
            agents::install_missing()
        }
        "deny" => {
            arguments.finish()?;
            deny::run()
        }
        "dist" => {
            arguments.finish()?;
            dist::run()
        }
        "" | "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(())
        }
        unknown => Err(Failure::Usage(format!("unknown command `{unknown}`"))),
    }
}
