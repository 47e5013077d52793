//! What a person waits for when asking a short question: the version, and the status of a repository.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::Bed;
use super::interleave::{Measured, measure};
use crate::step::{self, Failure, failed_to};

const REPEATS: u32 = 20;

pub fn version(bed: &Bed) -> Result<Measured, Failure> {
    let ask = || step::output_of(Command::new(&bed.autopilot).arg("--version"));
    expect_start("--version", &ask()?, "autopilot ")?;
    let ninja = || step::output_of(Command::new("ninja").arg("--version")).map(drop);
    measure(bed.rounds, REPEATS, ninja, || ask().map(drop))
}

pub fn status(bed: &Bed) -> Result<Measured, Failure> {
    let repository = bed.scratch.join("status");
    make_repository(&repository)?;
    let state = bed.scratch.join("state");
    let ask = || {
        let mut command = Command::new(&bed.autopilot);
        command.args(["status", "--json"]).current_dir(&repository);
        step::output_of(command.env("AUTOPILOT_STATE_DIR", &state))
    };
    expect_start("status --json", &ask()?, "{")?;
    measure(bed.rounds, REPEATS, git_version, || ask().map(drop))
}

/// A fast wrong answer is no result.
fn expect_start(question: &str, answer: &str, start: &str) -> Result<(), Failure> {
    if answer.starts_with(start) {
        return Ok(());
    }
    Err(Failure::Task(format!(
        "`autopilot {question}` answered `{}`, expected it to start with `{start}`",
        answer.trim_end()
    )))
}

fn git_version() -> Result<(), Failure> {
    step::output_of(Command::new("git").arg("--version")).map(drop)
}

fn make_repository(dir: &Path) -> Result<(), Failure> {
    if dir.join(".git").is_dir() {
        return Ok(());
    }
    fs::create_dir_all(dir).map_err(failed_to(format!("create `{}`", dir.display())))?;
    step::output_of(Command::new("git").args(["init", "-q"]).current_dir(dir))?;
    let mut commit = Command::new("git");
    commit.args(["-c", "user.name=bench", "-c", "user.email=bench@localhost"]);
    commit.args(["commit", "-q", "--allow-empty", "-m", "start"]).current_dir(dir);
    step::output_of(&mut commit).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_answer_is_refused() {
        assert!(expect_start("--version", "autopilot 0.1.0\n", "autopilot ").is_ok());
        assert!(expect_start("--version", "", "autopilot ").is_err());
    }
}
