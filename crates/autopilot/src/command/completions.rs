//! `autopilot completions`: a script for the shell, made from the command line's own description.

use super::{Done, done};
use crate::cli::{Cli, Completions};
use crate::terminal;
use clap::CommandFactory;

pub fn completions(args: &Completions) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "autopilot", &mut script);
    terminal::put(&String::from_utf8_lossy(&script));
    done()
}
