//! `cargo xtask agents`: the real agents the tests run, at their pinned versions, from npm.
//!
//! They live outside `target/` and are looked at, not installed, when they are there.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::package;
use crate::step::{self, Failure, failed_to};

/// The same file tells the tests where to look.
const PINNED: &str = include_str!("../../crates/autopilot-testkit/agents.txt");

pub fn install_missing() -> Result<(), Failure> {
    for agent in pinned() {
        if agent.is_right() {
            continue;
        }
        package::install(&[("npm", "npm")])?;
        agent.install()?;
    }
    Ok(())
}

struct Agent {
    word: String,
    package: String,
    version: String,
    home: PathBuf,
    binary: PathBuf,
}

fn pinned() -> Vec<Agent> {
    let lines = PINNED.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines
        .filter_map(|words| match words[..] {
            [word, package, version, binary] => Some(Agent::new(word, package, version, binary)),
            _ => None,
        })
        .collect()
}

impl Agent {
    fn new(word: &str, package: &str, version: &str, binary: &str) -> Self {
        let (arch, cpu) = match env::consts::ARCH {
            "aarch64" => ("arm64", "aarch64"),
            _ => ("x64", "x86_64"),
        };
        let binary = binary.replace("{arch}", arch).replace("{cpu}", cpu);
        let short = package.rsplit('/').next().unwrap_or(package);
        Agent {
            word: word.to_owned(),
            package: package.to_owned(),
            version: version.to_owned(),
            home: folder().join(format!("{short}-{version}")),
            binary: binary.into(),
        }
    }

    /// Starting it costs less than a second, and catches one that a full disk has cut short.
    fn is_right(&self) -> bool {
        self.has_version(&self.home)
    }

    fn has_version(&self, home: &Path) -> bool {
        let said = step::output_of(Command::new(home.join(&self.binary)).arg("--version"));
        said.is_ok_and(|said| {
            said.split_whitespace().any(|word| word.trim_start_matches('v') == self.version)
        })
    }

    /// Beside its place first: an install that is cut short is not mistaken for a whole one.
    fn install(&self) -> Result<(), Failure> {
        let beside = self.home.with_file_name(format!(".{}-{}", self.word, std::process::id()));
        fs::create_dir_all(&beside).map_err(failed_to(format!("create `{}`", beside.display())))?;
        let done = self.install_by_way_of(&beside);
        if done.is_err() {
            drop(fs::remove_dir_all(&beside));
        }
        done
    }

    fn install_by_way_of(&self, beside: &Path) -> Result<(), Failure> {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
        npm.arg(beside).arg(format!("{}@{}", self.package, self.version));
        step::run(&format!("install {}", self.word), &mut npm)?;
        if !self.has_version(beside) {
            let what = beside.join(&self.binary);
            return Err(Failure::Task(format!(
                "`{}` of {} does not say that it is version {}",
                what.display(),
                self.package,
                self.version
            )));
        }
        if self.home.exists() {
            fs::remove_dir_all(&self.home)
                .map_err(failed_to(format!("remove `{}`", self.home.display())))?;
        }
        fs::rename(beside, &self.home)
            .map_err(failed_to(format!("rename to `{}`", self.home.display())))
    }
}

/// Where the tests look too.
fn folder() -> PathBuf {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(folder) = named("AUTOPILOT_TEST_AGENTS") {
        return folder.into();
    }
    let cache = named("XDG_CACHE_HOME").map(PathBuf::from).unwrap_or_else(|| {
        PathBuf::from(named("HOME").unwrap_or_else(|| "/tmp".into())).join(".cache")
    });
    cache.join("autopilot-tests/agents")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_of_the_list_is_pinned_to_one_version() {
        let agents = pinned();
        assert_eq!(agents.len(), 3);
        for agent in agents {
            assert!(agent.version.split('.').all(|part| part.parse::<u32>().is_ok()));
            assert!(agent.binary.starts_with("node_modules"), "{}", agent.binary.display());
        }
    }

    #[test]
    fn only_a_program_that_says_its_version_is_right() {
        let dir = tempfile::tempdir().unwrap();
        let agent = Agent { home: dir.path().to_owned(), ..Agent::new("a", "@x/a", "1.2.3", "a") };
        assert!(!agent.is_right());
        let says = |text: &str| {
            use std::os::unix::fs::PermissionsExt;
            let file = dir.path().join("a");
            fs::write(&file, format!("#!/bin/sh\necho '{text}'\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            agent.is_right()
        };
        assert!(says("a-cli v1.2.3 (build 7)"));
        assert!(!says("a-cli 1.2.30"));
    }
}
