//! The Debian packages the tests need, installed when missing.
//!
//! Tests fail rather than skip without their programs, so this runs before them.

use std::process::{Command, Stdio};

use crate::step::{self, Failure};
use crate::workspace::find_program;

/// Program the tests (or the build) start → Debian package that brings it.
const NEEDED: &[(&str, &str)] = &[
    ("bwrap", "bubblewrap"),
    ("cc", "build-essential"),
    ("chromium", "chromium"),
    ("curl", "curl"),
    ("git", "git"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("mkfs.ext4", "e2fsprogs"),
    ("ps", "procps"),
    ("pytest", "python3-pytest"),
    ("python3", "python3"),
    ("setsid", "util-linux"),
    ("tmux", "tmux"),
];

pub fn install_missing() -> Result<(), Failure> {
    install(NEEDED)
}

/// What of `needed` is not there.
pub fn install(needed: &[(&str, &'static str)]) -> Result<(), Failure> {
    let packages = missing(needed, |program| find_program(program).is_some());
    if packages.is_empty() {
        return Ok(());
    }
    let names = packages.join(" ");
    let Some(privilege) = privilege() else {
        return Err(Failure::Task(format!(
            "programs the tests need are missing, and this user may not install them\n  \
             as root: apt-get update && apt-get install -y {names}"
        )));
    };
    step::run("package lists", privilege.command().args(["update", "-qq"]))?;
    step::run(
        "packages",
        privilege
            .command()
            .args(["install", "-y", "-qq", "--no-install-recommends"])
            .args(packages),
    )
}

fn missing(needed: &[(&str, &'static str)], present: impl Fn(&str) -> bool) -> Vec<&'static str> {
    needed.iter().filter(|(program, _)| !present(program)).map(|(_, package)| *package).collect()
}

enum Privilege {
    Root,
    Sudo,
}

impl Privilege {
    fn command(&self) -> Command {
        match self {
            Privilege::Root => {
                let mut command = Command::new("apt-get");
                command.env("DEBIAN_FRONTEND", "noninteractive");
                command
            }
            Privilege::Sudo => {
                let mut command = Command::new("sudo");
                command.args(["-n", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
                command
            }
        }
    }
}

fn privilege() -> Option<Privilege> {
    find_program("apt-get")?;
    let id = step::output_of(Command::new("id").arg("-u")).unwrap_or_default();
    if id.trim() == "0" {
        return Some(Privilege::Root);
    }
    let mut sudo = Command::new("sudo");
    sudo.args(["-n", "true"]).stdout(Stdio::null()).stderr(Stdio::null());
    sudo.status().is_ok_and(|status| status.success()).then_some(Privilege::Sudo)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_of_missing_programs_are_asked_for() {
        let needed = [("git", "git"), ("bwrap", "bubblewrap")];
        assert_eq!(missing(&needed, |program| program == "git"), ["bubblewrap"]);
        assert!(missing(&needed, |_| true).is_empty());
    }
}
