//! Licences, banned crates and sources of the dependencies, judged by cargo-deny with `deny.toml`.
//!
//! Advisories are left out: they need a database from the network, and would turn CI red on a day
//! when nothing changed here.

use std::path::{Path, PathBuf};
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

/// The cargo-deny on PATH if it is the pinned one, else the cached one, else one built now.
fn tool() -> Result<PathBuf, Failure> {
    if let Some(installed) = find_program("cargo-deny").filter(|program| is_pinned(program)) {
        return Ok(installed);
    }
    let home = tool_cache().join(format!("cargo-deny-{VERSION}"));
    let cached = home.join("bin/cargo-deny");
    if !is_pinned(&cached) {
        // It works for two seconds; optimising it takes minutes.
        let mut install = cargo(["install", "-q", "--debug", "--locked", "--force", "cargo-deny"]);
        install.env("CARGO_PROFILE_DEV_DEBUG", "0");
        step::run("install cargo-deny", install.args(["--version", VERSION, "--root"]).arg(&home))?;
    }
    Ok(cached)
}

fn is_pinned(program: &Path) -> bool {
    let said = step::output_of(Command::new(program).arg("--version"));
    said.is_ok_and(|said| said.split_whitespace().any(|word| word == VERSION))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pinned_version_will_do() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("cargo-deny");
        assert!(!is_pinned(&program));
        for (version, pinned) in [(VERSION, true), ("0.1.0", false)] {
            let script = format!("#!/bin/sh\necho cargo-deny {version}\n");
            std::fs::write(&program, script).unwrap();
            let mut chmod = Command::new("chmod");
            assert!(chmod.arg("755").arg(&program).status().unwrap().success());
            assert_eq!(is_pinned(&program), pinned, "{version}");
        }
    }
}
