//! `autopilot completions`: prints a completion script for a shell.

use super::{Done, done};
use crate::cli::{Cli, Completions};
use crate::terminal;
use clap::CommandFactory;

/// Prints the script, generated from the definition of the command line.
pub fn completions(args: &Completions) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "autopilot", &mut script);
    terminal::put(&String::from_utf8_lossy(&script));
    done()
}
