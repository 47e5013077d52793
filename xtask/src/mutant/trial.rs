//! The trial of one mutant: build the copy, run the scenarios, then the simulator; either may
//! catch it. A mutant that does not build is a fault of its recipe, not a catch.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::campaign::Seeds;
use crate::step::{self, Failure, failed_to};

const SEEDS: u64 = 300;
/// A mutant may loop for ever; it has this many times what the whole sources needed.
const PATIENCE_FACTOR_MAX: u32 = 10;
const PATIENCE_MIN: Duration = Duration::from_secs(60);
const TARGET: &str = "target";
const POLL: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Caught { by: &'static str },
    Hung { on: &'static str },
    Survived,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Caught { by } => write!(f, "caught by {by}"),
            Verdict::Hung { on } => write!(f, "caught, hung {on}"),
            Verdict::Survived => f.write_str("SURVIVED"),
        }
    }
}

/// Where mutants are tried, and how long a trial may take.
pub struct Bench {
    copy: PathBuf,
    scratch: PathBuf,
    patience: Duration,
}

impl Bench {
    /// Tries the whole sources first: where they fail, every mutant would look caught.
    pub fn prepare(copy: &Path, scratch: &Path) -> Result<Self, Failure> {
        let mut bench =
            Self { copy: copy.to_owned(), scratch: scratch.to_owned(), patience: Duration::MAX };
        let programs = bench.build()?;
        let started = Instant::now();
        match bench.judge("whole", &programs)? {
            Verdict::Survived => {}
            Verdict::Caught { by } | Verdict::Hung { on: by } => {
                return Err(Failure::Task(format!(
                    "the sources fail the {by} without any mutant; see `{}`",
                    bench.log("whole", by).display()
                )));
            }
        }
        bench.patience = (started.elapsed() * PATIENCE_FACTOR_MAX).max(PATIENCE_MIN);
        Ok(bench)
    }

    /// One more for the same sources: what this one has built of others' is taken over.
    pub fn another(&self, copy: &Path, scratch: &Path) -> Result<Self, Failure> {
        let target = scratch.join(TARGET);
        if !target.is_dir() {
            let mut take = Command::new("cp");
            step::output_of(take.arg("-a").arg(self.scratch.join(TARGET)).arg(&target))?;
        }
        Ok(Self { copy: copy.to_owned(), scratch: scratch.to_owned(), patience: self.patience })
    }

    /// The sources it tries.
    pub fn copy(&self) -> &Path {
        &self.copy
    }

    pub fn try_mutant(&self, name: &str) -> Result<Verdict, Failure> {
        let programs = self.build().map_err(|failure| {
            Failure::Task(format!("mutant `{name}` does not build, correct its text: {failure}"))
        })?;
        self.judge(name, &programs)
    }

    fn build(&self) -> Result<Programs, Failure> {
        let mut command = Command::new("cargo");
        command
            .args(["build", "-q", "-p", "autopilot-testkit", "--bin", "sim"])
            .args(["--test", "scenarios", "--message-format", "json-render-diagnostics"])
            .env("CARGO_TARGET_DIR", self.scratch.join(TARGET))
            // A mutant leaves things unused; only the tests may catch it.
            .env("RUSTFLAGS", "--cap-lints warn")
            // Nobody debugs a mutant, and linking is most of the time of a trial.
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            // Most of a crate is the same as before, whatever CI says of its own build.
            .env("CARGO_INCREMENTAL", "1")
            .current_dir(&self.copy);
        Programs::from_messages(&step::output_of(&mut command)?)
    }

    fn judge(&self, name: &str, programs: &Programs) -> Result<Verdict, Failure> {
        let mut scenarios = Command::new(&programs.scenarios);
        let mut simulator = Command::new(&programs.simulator);
        simulator.args(Seeds::first(SEEDS).words());
        for (what, command) in [("scenarios", &mut scenarios), ("simulator", &mut simulator)] {
            match self.end_of(name, what, command)? {
                None => return Ok(Verdict::Hung { on: what }),
                Some(status) if !status.success() => return Ok(Verdict::Caught { by: what }),
                Some(_) => {}
            }
        }
        Ok(Verdict::Survived)
    }

    fn end_of(
        &self,
        name: &str,
        what: &str,
        command: &mut Command,
    ) -> Result<Option<ExitStatus>, Failure> {
        let path = self.log(name, what);
        let log = File::create(&path).map_err(failed_to(format!("create `{}`", path.display())))?;
        let same_log = log.try_clone().map_err(failed_to(format!("share `{}`", path.display())))?;
        let package = self.copy.join("crates/autopilot-testkit");
        command
            .current_dir(&package)
            .env("CARGO_MANIFEST_DIR", &package)
            .env("INSTA_UPDATE", "no")
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(same_log);
        let mut child = command.spawn().map_err(failed_to(format!("start the {what}")))?;
        wait(&mut child, self.patience).map_err(failed_to(format!("wait for the {what}")))
    }

    fn log(&self, name: &str, what: &str) -> PathBuf {
        self.scratch.join(format!("{name}.{what}.log"))
    }
}

struct Programs {
    simulator: PathBuf,
    scenarios: PathBuf,
}

impl Programs {
    /// Cargo's messages name the executables; started directly, a hung one can be killed by its pid.
    fn from_messages(messages: &str) -> Result<Self, Failure> {
        let artifacts: Vec<Value> =
            messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let executable = |target: &str| {
            artifacts
                .iter()
                .filter(|message| message["target"]["name"] == target)
                .find_map(|message| message["executable"].as_str())
                .map(PathBuf::from)
                .ok_or_else(|| Failure::Task(format!("cargo built no executable `{target}`")))
        };
        Ok(Self { simulator: executable("sim")?, scenarios: executable("scenarios")? })
    }
}

/// Waits at most `patience`; a child that needs longer is killed, and the answer is `None`.
fn wait(child: &mut Child, patience: Duration) -> std::io::Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > patience {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench(dir: &Path, patience: Duration) -> Bench {
        std::fs::create_dir_all(dir.join("crates/autopilot-testkit")).unwrap();
        Bench { copy: dir.to_owned(), scratch: dir.to_owned(), patience }
    }

    fn verdict(scenarios: &str, simulator: &str, patience: Duration) -> Verdict {
        let dir = tempfile::tempdir().unwrap();
        let program = |name: &str, body: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
            let mut chmod = Command::new("chmod");
            assert!(chmod.arg("755").arg(&path).status().unwrap().success());
            path
        };
        let programs = Programs {
            simulator: program("sim", simulator),
            scenarios: program("scenarios", scenarios),
        };
        bench(dir.path(), patience).judge("m", &programs).unwrap()
    }

    #[test]
    fn either_test_catches_a_mutant() {
        let patience = Duration::from_secs(60);
        assert_eq!(verdict("exit 101", "exit 0", patience), Verdict::Caught { by: "scenarios" });
        assert_eq!(verdict("exit 0", "exit 1", patience), Verdict::Caught { by: "simulator" });
        assert_eq!(verdict("exit 0", "exit 0", patience), Verdict::Survived);
    }

    #[test]
    fn the_simulator_gets_its_seeds() {
        let simulator = "test \"$*\" = '--seeds 300'";
        assert_eq!(verdict("exit 0", simulator, Duration::from_secs(60)), Verdict::Survived);
    }

    #[test]
    fn a_mutant_that_hangs_is_killed_and_counts_as_caught() {
        let hang = "exec sleep 600";
        let short = Duration::from_millis(50);
        assert_eq!(verdict(hang, "exit 0", short), Verdict::Hung { on: "scenarios" });
    }

    #[test]
    fn executables_are_taken_from_the_messages_of_cargo() {
        let messages = r#"
{"reason":"compiler-artifact","target":{"name":"autopilot-core"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"sim"},"executable":"/t/sim"}
{"reason":"compiler-artifact","target":{"name":"scenarios"},"executable":"/t/scenarios-1"}
{"reason":"build-finished","success":true}
"#;
        let programs = Programs::from_messages(messages).unwrap();
        assert_eq!(programs.simulator, Path::new("/t/sim"));
        assert_eq!(programs.scenarios, Path::new("/t/scenarios-1"));
        assert!(Programs::from_messages("").is_err());
    }
}
