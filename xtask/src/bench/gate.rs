//! What a person waits for after a one-line change: the gate of a task over the seeds of its base,
//! against the same commands in a developer's own checkout and against a gate from nothing.
//!
//! The times of gates are those that the journal has, of runs as a person would start them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::Bed;
use super::interleave::{Measured, time};
use super::project::{self, RealProject};
use super::repository::git;
use crate::step::{self, Failure, failed_to};

/// The beginning of the name of a task that adds a test.
const TESTED: &str = "tested";
const TASK: &str =
    "# Task: Add a line\n\nGoal:\n- Add a line.\n\nAcceptance criteria:\n- It is there.\n";

/// The times of one round.
#[derive(Clone, Copy, Debug)]
pub struct GateRound {
    /// The commands in a checkout in which they ran before the change.
    checkout: Duration,
    /// The gate of the change over the seeds of the base.
    warm: Duration,
    /// The gate of the change from nothing.
    cold: Duration,
    /// The base's own gate, with the sealing of its seeds, in a new state directory.
    seed: Duration,
    /// The same without seeds.
    base: Duration,
    /// The gate of a change that adds a test, over the seeds of the base, with the runs beside it.
    three: Duration,
}

pub fn cargo_to_checkout(bed: &Bed) -> Result<Measured, Failure> {
    to_checkout(bed, RealProject::cargo(bed))
}

pub fn cargo_to_cold(bed: &Bed) -> Result<Measured, Failure> {
    to_cold(bed, RealProject::cargo(bed))
}

pub fn cargo_seed(bed: &Bed) -> Result<Measured, Failure> {
    seed(bed, RealProject::cargo(bed))
}

pub fn npm_to_checkout(bed: &Bed) -> Result<Measured, Failure> {
    to_checkout(bed, RealProject::npm(bed))
}

pub fn npm_to_cold(bed: &Bed) -> Result<Measured, Failure> {
    to_cold(bed, RealProject::npm(bed))
}

pub fn npm_seed(bed: &Bed) -> Result<Measured, Failure> {
    seed(bed, RealProject::npm(bed))
}

pub fn python_to_checkout(bed: &Bed) -> Result<Measured, Failure> {
    to_checkout(bed, RealProject::python(bed))
}

pub fn python_to_cold(bed: &Bed) -> Result<Measured, Failure> {
    to_cold(bed, RealProject::python(bed))
}

pub fn python_seed(bed: &Bed) -> Result<Measured, Failure> {
    seed(bed, RealProject::python(bed))
}

pub fn cargo_three_runs(bed: &Bed) -> Result<Measured, Failure> {
    three_runs(bed, RealProject::cargo(bed))
}

pub fn npm_three_runs(bed: &Bed) -> Result<Measured, Failure> {
    three_runs(bed, RealProject::npm(bed))
}

pub fn python_three_runs(bed: &Bed) -> Result<Measured, Failure> {
    three_runs(bed, RealProject::python(bed))
}

fn to_checkout(bed: &Bed, project: &'static RealProject) -> Result<Measured, Failure> {
    measured(bed, project, |round| (round.checkout, round.warm))
}

fn to_cold(bed: &Bed, project: &'static RealProject) -> Result<Measured, Failure> {
    measured(bed, project, |round| (round.cold, round.warm))
}

fn seed(bed: &Bed, project: &'static RealProject) -> Result<Measured, Failure> {
    measured(bed, project, |round| (round.base, round.seed))
}

fn three_runs(bed: &Bed, project: &'static RealProject) -> Result<Measured, Failure> {
    measured(bed, project, |round| (round.warm, round.three))
}

/// Anchor and subject of each round, measured unless another row has done it.
fn measured(
    bed: &Bed,
    project: &'static RealProject,
    pick: impl Fn(&GateRound) -> (Duration, Duration),
) -> Result<Measured, Failure> {
    let known = bed.gates.borrow().get(project.name).cloned();
    let rounds = match known {
        Some(rounds) => rounds,
        None => {
            let rounds = rounds(bed, project)?;
            bed.gates.borrow_mut().insert(project.name, rounds.clone());
            rounds
        }
    };
    Ok(Measured::from_rounds(rounds.iter().map(pick).collect()))
}

fn rounds(bed: &Bed, project: &'static RealProject) -> Result<Vec<GateRound>, Failure> {
    let ground = GateGround::make(bed, project, "gate")?;
    let checkout = Checkout::make(&ground)?;
    (1..=bed.long_rounds()).map(|round| ground.round(&checkout, round)).collect()
}

/// A repository of a project with a scripted agent, and room for the state of runs.
pub struct GateGround<'a> {
    bed: &'a Bed,
    project: &'static RealProject,
    dir: PathBuf,
    root: PathBuf,
}

/// A run as the product shows it.
pub struct ShownRun(Value);

impl<'a> GateGround<'a> {
    pub fn make(
        bed: &'a Bed,
        project: &'static RealProject,
        bench: &str,
    ) -> Result<GateGround<'a>, Failure> {
        let dir = bed.scratch.join(format!("{bench}-{}", project.name));
        remove(&dir)?;
        let root = dir.join("project");
        project.make(&root, &dir.join("fetched"))?;
        let agent = format!(
            "set -e\ncase \"$AUTOPILOT_STEP\" in\nbuild | fix)\n\
             case \"$AUTOPILOT_TASK_ID\" in\n{TESTED}-*)\n{}\n;;\n*)\n{}\n;;\nesac\n\
             echo '{{\"changed_files\":[],\"notes\":\"added a line\"}}'\n;;\n\
             review) echo '{{\"verdict\":\"APPROVE\",\"summary\":\"fine\",\"issues\":[]}}' ;;\n\
             *) echo '# Cases' ;;\nesac\n",
            project.tested_edit, project.edit
        );
        project::write(&dir.join("agent.sh"), &agent)?;
        Ok(GateGround { bed, project, dir, root })
    }

    /// A directory for whatever else the bench needs.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes the configuration, with these words for `gates:`.
    pub fn configure(&self, gates: &str) -> Result<(), Failure> {
        let project = self.project;
        let quoted = |text: &str| Value::from(text).to_string();
        let agent = quoted(&format!("sh {}", self.dir.join("agent.sh").display()));
        let setup = project.setup.map(|line| format!("worktrees: {{ setup: {} }}\n", quoted(line)));
        let config = format!(
            "repo: {{ base_branch: main }}\n\
             builder: {{ mode: command, command: {agent} }}\n\
             reviewer: {{ mode: command, command: {agent} }}\n\
             planner: {{ mode: command, command: {agent} }}\n\
             commands: {{ tests: {}, lint: {} }}\n\
             gates: {{ {gates} }}\n{}",
            quoted(project.tests),
            quoted(project.lint),
            setup.unwrap_or_default(),
        );
        project::write(&self.root.join(".autopilot/config.yml"), &config)
    }

    /// Runs something to its end, in a state directory that is new, and returns how long it took and
    /// what the product tells of it.
    pub fn run(&self, words: &[&str], input: &Path) -> Result<(Duration, ShownRun), Failure> {
        let state = self.dir.join("state");
        remove(&state)?;
        remove(&self.root.join(".git/autopilot"))?;
        let autopilot = |words: &[&str]| {
            let mut command = Command::new(&self.bed.autopilot);
            command.args(words).current_dir(&self.root).env("AUTOPILOT_STATE_DIR", &state);
            // What is tried in little is too quick for a seed; only a debug build listens to this.
            command.env("AUTOPILOT_SEED_MS", "0");
            command
        };
        let mut run = autopilot(words);
        run.arg(input);
        let took = time(|| step::output_of(&mut run).map(drop))?;
        let shown = step::output_of(&mut autopilot(&["show", "--json"]))?;
        remove(&state)?;
        let shown = serde_json::from_str(&shown).map_err(failed_to("read what `show` printed"))?;
        Ok((took, ShownRun(shown)))
    }

    fn round(&self, checkout: &Checkout<'_>, round: usize) -> Result<GateRound, Failure> {
        let id = format!("line-{round}");
        let run = |id: &str, gates: &str| {
            let task = self.dir.join(format!("{id}.md"));
            project::write(&task, TASK)?;
            self.configure(gates)?;
            self.run(&["run", "--no-ui", "--quiet"], &task)
        };
        let (_, without) = run(&id, "warm: off")?;
        // The last proof from nothing is after the gate that is measured, and would only be waited for.
        let (_, with) = run(&id, "warm: auto, last_word: warm")?;
        let (_, tested) = run(&format!("{TESTED}-{round}"), "warm: auto, last_word: warm")?;
        let times = GateRound {
            checkout: checkout.change(&id)?,
            warm: with.took("validate", Warmth::Warm)?,
            cold: without.took("validate", Warmth::Cold)?,
            seed: with.took("preflight", Warmth::Cold)?,
            base: without.took("preflight", Warmth::Cold)?,
            three: tested.took("validate", Warmth::Warm)?,
        };
        // A round takes minutes.
        eprintln!("round {round}: {times:.1?}");
        Ok(times)
    }
}

/// What a gate must have started from to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Warmth {
    Warm,
    Cold,
}

impl ShownRun {
    /// The time of the one passed attempt at this step. A gate that started from something else than
    /// it is measured for is no result.
    fn took(&self, step: &str, warmth: Warmth) -> Result<Duration, Failure> {
        let attempts = self.0["attempts"].as_array().into_iter().flatten();
        let all: Vec<&Value> = attempts.filter(|attempt| attempt["step"] == step).collect();
        let [attempt] = all.as_slice() else {
            return Err(Failure::Task(format!("the run has {} attempts at {step}", all.len())));
        };
        let is_warm = attempt["warm"] == true;
        if attempt["outcome"] != "passed" || is_warm != (warmth == Warmth::Warm) {
            return Err(Failure::Task(format!(
                "{step} was to pass {warmth:?}: it {}, warm: {is_warm}; {}",
                attempt["outcome"],
                self.notes()
            )));
        }
        let seconds = attempt["duration"].as_f64().unwrap_or_default();
        Ok(Duration::from_secs_f64(seconds))
    }

    /// What the run says of its attempts, each of which may be the reason for a gate from nothing.
    fn notes(&self) -> String {
        let attempts = self.0["attempts"].as_array().into_iter().flatten();
        let notes = attempts.flat_map(|attempt| attempt["notes"].as_array().into_iter().flatten());
        notes.filter_map(Value::as_str).collect::<Vec<_>>().join("; ")
    }

    /// The number of passed attempts at a step, whatever they started from.
    pub fn count(&self, step: &str) -> usize {
        self.passed(step).count()
    }

    /// The number of those that started from seeds.
    pub fn count_warm(&self, step: &str) -> usize {
        self.passed(step).filter(|attempt| attempt["warm"] == true).count()
    }

    fn passed(&self, step: &str) -> impl Iterator<Item = &Value> {
        let attempts = self.0["attempts"].as_array().into_iter().flatten();
        attempts.filter(move |attempt| attempt["step"] == step && attempt["outcome"] == "passed")
    }
}

/// A developer's own checkout, in which the commands ran before.
struct Checkout<'a> {
    ground: &'a GateGround<'a>,
    dir: PathBuf,
}

impl<'a> Checkout<'a> {
    fn make(ground: &'a GateGround<'a>) -> Result<Checkout<'a>, Failure> {
        let dir = ground.dir.join("checkout");
        git(&ground.dir, &["clone", "-q", "project", "checkout"])?;
        let made = Checkout { ground, dir };
        if let Some(setup) = ground.project.setup {
            made.shell(setup, "")?;
        }
        made.commands()?;
        // As the product's first gate, the first change counts for nothing.
        made.change("line-0")?;
        Ok(made)
    }

    /// Makes the change and returns the time of the commands after it.
    fn change(&self, id: &str) -> Result<Duration, Failure> {
        git(&self.dir, &["reset", "-q", "--hard"])?;
        self.shell(self.ground.project.edit, id)?;
        time(|| self.commands())
    }

    fn commands(&self) -> Result<(), Failure> {
        self.shell(self.ground.project.tests, "")?;
        self.shell(self.ground.project.lint, "")
    }

    fn shell(&self, line: &str, id: &str) -> Result<(), Failure> {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(&self.dir);
        shell.env("AUTOPILOT_TASK_ID", id).env_remove("CARGO_TARGET_DIR");
        step::output_of(&mut shell).map(drop)
    }
}

fn remove(dir: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(failed_to(format!("remove {}", dir.display()))(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(warm: bool, outcome: &str) -> ShownRun {
        let gate = json!({ "step": "validate", "duration": 1.5, "outcome": outcome, "warm": warm });
        ShownRun(json!({ "attempts": [{ "step": "build", "outcome": "passed" }, gate] }))
    }

    #[test]
    fn the_time_of_a_gate_is_the_one_in_the_journal() {
        let took = shown(true, "passed").took("validate", Warmth::Warm).unwrap();
        assert_eq!(took, Duration::from_millis(1500));
        assert_eq!(shown(true, "passed").count_warm("validate"), 1);
        assert_eq!(shown(false, "passed").count_warm("validate"), 0);
        assert_eq!(shown(false, "passed").count("validate"), 1);
    }

    #[test]
    fn a_gate_that_failed_or_started_from_something_else_is_no_result() {
        assert!(shown(false, "passed").took("validate", Warmth::Warm).is_err());
        assert!(shown(true, "passed").took("validate", Warmth::Cold).is_err());
        assert!(shown(true, "failed").took("validate", Warmth::Warm).is_err());
        assert!(shown(true, "passed").took("preflight", Warmth::Cold).is_err());
    }
}
