//! Graphs of ten thousand: how fast steps follow each other, and how soon the first agent starts.
//!
//! A step of ours is an attempt of the paired loop: it is decided by the core, its record is durable
//! in SQLite before the process starts (with or without the supervisor every agent has), and its
//! end is decided and recorded again. Tasks have five steps each, so ten thousand steps are two
//! thousand tasks; ninja and make get the same graph, one edge per step, and start `true` for each.
//! No git, no slots, no views: `examples/dag.rs` of the engine drives the loop's own parts.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::Bed;
use super::interleave::{Measured, in_turn, time};
use super::repository::Repository;
use crate::step::{self, Failure, failed_to};

const STEPS_PER_TASK: usize = 5;
/// Tasks in a layer; each waits for two of the layer before.
const WIDTH: usize = 100;
/// How long the first agent may take to start.
const START_MAX: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(1);

pub fn supervised_to_ninja(bed: &Bed) -> Result<Measured, Failure> {
    layered(bed, "supervised", ninja)
}

pub fn supervised_to_make(bed: &Bed) -> Result<Measured, Failure> {
    layered(bed, "supervised", make)
}

pub fn plain_to_make(bed: &Bed) -> Result<Measured, Failure> {
    layered(bed, "plain", make)
}

fn layered(bed: &Bed, how: &str, builder: fn(&Path) -> Command) -> Result<Measured, Failure> {
    let tasks = bed.size(10_000, 50) / STEPS_PER_TASK;
    let ground = Ground::prepare(bed, "dag")?;
    write_graph(&ground.dir, tasks, STEPS_PER_TASK)?;
    let anchor = |_| {
        let mut build = builder(&ground.dir);
        time(|| step::output_of(build.arg("-j4")).map(drop))
    };
    let subject = |round| ground.steps(bed, how, "layered", tasks, round);
    in_turn(bed.long_rounds(), anchor, subject, |_| Ok(()))
}

/// Steps that each wait for the one before, against a loop that starts `true` and waits for it.
pub fn chain(bed: &Bed) -> Result<Measured, Failure> {
    let tasks = bed.size(2_000, 50) / STEPS_PER_TASK;
    let ground = Ground::prepare(bed, "chain")?;
    let anchor = |_| {
        time(|| {
            for _ in 0..tasks * STEPS_PER_TASK {
                let mut nothing = Command::new("true");
                nothing.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                nothing.status().map_err(failed_to("start `true`"))?;
            }
            Ok(())
        })
    };
    let subject = |round| ground.steps(bed, "plain", "chain", tasks, round);
    in_turn(bed.long_rounds(), anchor, subject, |_| Ok(()))
}

struct Ground {
    dir: PathBuf,
    program: PathBuf,
}

impl Ground {
    fn prepare(bed: &Bed, name: &str) -> Result<Ground, Failure> {
        let dir = bed.scratch.join(name);
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(failed_to(format!("remove {}", dir.display())))?;
        }
        fs::create_dir_all(&dir).map_err(failed_to(format!("create {}", dir.display())))?;
        Ok(Ground { dir, program: bed.example("autopilot-engine", "dag")? })
    }

    fn steps(
        &self,
        bed: &Bed,
        how: &str,
        shape: &str,
        tasks: usize,
        round: usize,
    ) -> Result<Duration, Failure> {
        let journal = self.dir.join(format!("journal-{round}.db"));
        let mut run = Command::new(&self.program);
        run.args([how, shape, &tasks.to_string()]).arg(&journal).arg(&bed.autopilot);
        time(|| step::output_of(&mut run).map(drop))
    }
}

fn ninja(dir: &Path) -> Command {
    let mut command = Command::new("ninja");
    command.arg("-C").arg(dir);
    command
}

fn make(dir: &Path) -> Command {
    let mut command = Command::new("make");
    command.arg("-C").arg(dir).arg("--no-print-directory").arg("-rR").arg("-s");
    command
}

/// What task `n` waits for.
fn needs(n: usize) -> Vec<usize> {
    let Some(before) = n.checked_sub(WIDTH) else { return Vec::new() };
    let layer = before / WIDTH * WIDTH;
    vec![before, layer + (n + 1) % WIDTH]
}

/// The same graph as `build.ninja` and as `Makefile`.
fn write_graph(dir: &Path, tasks: usize, steps: usize) -> Result<(), Failure> {
    let mut ninja = String::from("rule step\n  command = true\n");
    let mut make = String::from(".SUFFIXES:\n");
    let mut all = String::new();
    for n in 0..tasks {
        let last = |task: &usize| format!("t{task}s{}", steps - 1);
        let mut before = needs(n).iter().map(last).collect::<Vec<_>>().join(" ");
        for k in 0..steps {
            let step = format!("t{n}s{k}");
            // Writing to a string can't fail.
            let _ = writeln!(ninja, "build {step}: step {before}");
            let _ = writeln!(make, "{step}: {before}\n\ttrue");
            before.clone_from(&step);
        }
        let _ = write!(all, " {before}");
    }
    let _ = writeln!(ninja, "build all: phony{all}\ndefault all");
    let make = format!(".PHONY: all\nall:{all}\n{make}");
    for (name, text) in [("build.ninja", ninja), ("Makefile", make)] {
        fs::write(dir.join(name), text).map_err(failed_to(format!("write {name}")))?;
    }
    Ok(())
}

pub fn first_spawn_to_ninja(bed: &Bed) -> Result<Measured, Failure> {
    first_spawn(bed, ninja)
}

pub fn first_spawn_to_make(bed: &Bed) -> Result<Measured, Failure> {
    first_spawn(bed, make)
}

/// From the command line of `run --from` to the first line of the first agent, in a repository
/// autopilot has not seen before. The base is proven meanwhile, with `true`.
fn first_spawn(bed: &Bed, builder: fn(&Path) -> Command) -> Result<Measured, Failure> {
    let tasks = bed.size(10_000, 50);
    let ground = Repository::make(bed.scratch.join("first"), 100, 0)?;
    write_graph(&ground.dir, tasks, 1)?;
    let plan = ground.write("plan.json", &plan(tasks))?;
    let seen = ground.dir.join("seen");
    fs::create_dir_all(&seen).map_err(failed_to("create the agent's directory"))?;
    let agent = ground.write("agent.sh", &format!("echo >{}/started\n", seen.display()))?;
    let word = serde_json::Value::from(format!("sh {}", agent.display()));
    let config = format!(
        "repo: {{ base_branch: main }}\n\
         builder: {{ mode: command, command: {word} }}\n\
         reviewer: {{ mode: command, command: {word} }}\n\
         planner: {{ mode: command, command: {word} }}\n\
         sandbox: {{ write: [{}] }}\n\
         commands: {{ tests: \"true\" }}\n",
        serde_json::Value::from(seen.display().to_string())
    );
    let anchor = |_| {
        let mut build = builder(&ground.dir);
        time(|| step::output_of(build.arg("-n")).map(drop))
    };
    let subject = |round: usize| {
        let _not_there_at_first = fs::remove_file(seen.join("started"));
        // What the round before left goes out of the way; deleting it would slow the file system
        // down for seconds.
        for (known, name) in [(".autopilot", "views"), (".git/autopilot", "id")] {
            let aside = ground.dir.join(format!("old-{name}-{round}"));
            let _not_there_at_first = fs::rename(ground.root.join(known), aside);
        }
        ground.write("project/.autopilot/config.yml", &config)?;
        let mut run = Command::new(&bed.autopilot);
        run.args(["run", "--no-ui", "--quiet", "--from"]).arg(&plan).current_dir(&ground.root);
        run.env("AUTOPILOT_STATE_DIR", ground.dir.join(format!("state-{round}")));
        until(run, &seen.join("started"))
    };
    in_turn(bed.long_rounds(), anchor, subject, |_| Ok(()))
}

/// Starts a program, and ends it as soon as a file is there.
fn until(mut command: Command, file: &Path) -> Result<Duration, Failure> {
    let line = step::shown(&command);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let began = Instant::now();
    let mut child = command.spawn().map_err(failed_to(format!("start `{line}`")))?;
    let took = loop {
        if file.exists() {
            break Ok(began.elapsed());
        }
        let ended = child.try_wait().map_err(failed_to(format!("wait for `{line}`")))?;
        if ended.is_some() || began.elapsed() > START_MAX {
            break Err(Failure::Task(format!("`{line}` started no agent")));
        }
        std::thread::sleep(LOOK_EVERY);
    };
    // What it had started ends with it.
    let _ended_already = child.kill();
    child.wait().map_err(failed_to(format!("wait for `{line}`")))?;
    took
}

fn plan(tasks: usize) -> String {
    let task = |n: usize| {
        let before: Vec<String> = needs(n).iter().map(|task| format!("t{task}")).collect();
        json!({
            "id": format!("t{n}"),
            "title": format!("Task {n}"),
            "goal": "Write a file.",
            "acceptance_criteria": ["the file is there"],
            "depends_on": before,
        })
    };
    let tasks: Vec<_> = (0..tasks).map(task).collect();
    json!({ "plan_summary": "Many tasks", "tasks": tasks }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_waits_for_the_one_before() {
        assert!(needs(WIDTH - 1).is_empty());
        assert_eq!(needs(WIDTH), [0, 1]);
        assert_eq!(needs(2 * WIDTH - 1), [WIDTH - 1, 0]);
        assert_eq!(needs(2 * WIDTH + 3), [WIDTH + 3, WIDTH + 4]);
    }

    #[test]
    fn a_program_that_ends_without_the_file_is_no_result() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("started");
        assert!(until(Command::new("true"), &file).is_err());
        let mut touch = Command::new("sh");
        touch.arg("-c").arg(format!("echo >{}; sleep 60", file.display()));
        assert!(until(touch, &file).unwrap() < Duration::from_secs(50));
    }
}
