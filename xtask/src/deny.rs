//! Licences, banned crates and sources of the dependencies, judged by cargo-deny with `deny.toml`.
//!
//! Advisories are left out: they need a database from the network, and would turn CI red on a day
//! when nothing changed here.

use std::path::PathBuf;
use std::process::Command;

use crate::step::{self, Failure};
use crate::workspace::{cargo, find_program, root, tool_cache};

/// Pinned, because the checks and the configuration differ between versions.
const VERSION: &str = "0.20.2";

pub fn run() -> Result<(), Failure> {
    let mut command = Command::new(tool()?);
    command.args(["--workspace", "check", "--hide-inclusion-graph"]);
    command.args(["licenses", "bans", "sources"]).current_dir(root());
    step::run("deny", &mut command)
}

/// The cargo-deny on PATH, else the cached one, else one built now (about four minutes on two cores).
fn tool() -> Result<PathBuf, Failure> {
    if let Some(installed) = find_program("cargo-deny") {
        return Ok(installed);
    }
    let home = tool_cache().join(format!("cargo-deny-{VERSION}"));
    let cached = home.join("bin/cargo-deny");
    if !cached.is_file() {
        let mut install =
            cargo(["install", "-q", "--locked", "cargo-deny", "--version", VERSION, "--root"]);
        step::run("install cargo-deny", install.arg(&home))?;
    }
    Ok(cached)
}
