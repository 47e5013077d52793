//! The git side of many tasks: slots that start together, and a train of merges.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::interleave::Measured;
use super::{Bed, Effort};
use crate::step::{self, Failure, failed_to};
use crate::workspace::{cargo, target_dir};

const FILES: usize = 100;

/// 40 workers start together, against 40 sequential `git worktree add`.
pub fn slots(bed: &Bed) -> Result<Measured, Failure> {
    let count = bed.size(40, 4);
    let ground = Ground::prepare(bed, "slots", 0)?;
    let anchor = |round: usize| {
        let began = Instant::now();
        for n in 0..count {
            let tree = ground.dir.join(format!("tree-{round}-{n}"));
            let add = ["worktree", "add", "-q", "--detach", &tree.to_string_lossy(), "main"];
            ground.git(&ground.repository, &add)?;
        }
        Ok(began.elapsed())
    };
    let clean = |round: usize| {
        for n in 0..count {
            let tree = ground.dir.join(format!("tree-{round}-{n}"));
            fs::remove_dir_all(&tree).map_err(failed_to(format!("remove {}", tree.display())))?;
        }
        ground.git(&ground.repository, &["worktree", "prune"]).map(drop)
    };
    let subject = |round: usize| ground.example("slots", &(round * count).to_string(), count);
    in_turn(bed.rounds, anchor, subject, clean)
}

/// Approved branches integrated one by one, against the three plumbing commands in a loop.
pub fn train(bed: &Bed) -> Result<Measured, Failure> {
    let count = bed.size(500, 10);
    let ground = Ground::prepare(bed, "train", count)?;
    let bare = ground.dir.join("bare.git");
    let (from, to) = (ground.repository.to_string_lossy(), bare.to_string_lossy());
    ground.git(&ground.dir, &["clone", "-q", "--mirror", &from, &to])?;
    // The first start makes the hub; the branches come into it as a task's commits would.
    ground.example("train", "autopilot/none", 0)?;
    let hub = ground.dir.join("state/hub.git");
    ground.git(&hub, &["fetch", "-q", &from, "refs/heads/t*:refs/heads/t*"])?;
    let anchor = |round: usize| {
        let began = Instant::now();
        let mut tip = ground.git(&bare, &["rev-parse", "main"])?;
        let branch = format!("refs/heads/run-{round}");
        for n in 0..count {
            let task = format!("t{n}");
            let tree = ground.git(&bare, &["merge-tree", "--write-tree", &tip, &task])?;
            let merge = ["commit-tree", &tree, "-p", &tip, "-p", &task, "-m", &task];
            tip = ground.git(&bare, &merge)?;
            ground.git(&bare, &["update-ref", &branch, &tip])?;
        }
        Ok(began.elapsed())
    };
    let subject = |round: usize| ground.example("train", &format!("autopilot/run-{round}"), count);
    in_turn(bed.rounds, anchor, subject, |_| Ok(()))
}

/// A round before the first pays for cold caches and counts for nothing.
fn in_turn(
    rounds: usize,
    anchor: impl Fn(usize) -> Result<Duration, Failure>,
    subject: impl Fn(usize) -> Result<Duration, Failure>,
    clean: impl Fn(usize) -> Result<(), Failure>,
) -> Result<Measured, Failure> {
    let mut measured = Vec::with_capacity(rounds);
    for round in 0..=rounds {
        let times = (anchor(round)?, subject(round)?);
        clean(round)?;
        if round > 0 {
            measured.push(times);
        }
    }
    Ok(Measured::from_rounds(measured))
}

struct Ground {
    dir: PathBuf,
    repository: PathBuf,
    program: PathBuf,
}

impl Ground {
    /// A repository of some files, with branches that each change one of their own.
    fn prepare(bed: &Bed, name: &str, branches: usize) -> Result<Ground, Failure> {
        let dir = bed.scratch.join(name);
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(failed_to(format!("remove {}", dir.display())))?;
        }
        let repository = dir.join("project");
        fs::create_dir_all(&repository)
            .map_err(failed_to(format!("create {}", repository.display())))?;
        let ground = Ground { dir, repository, program: example(bed.effort)? };
        ground.git(&ground.repository, &["init", "-q", "-b", "main"])?;
        let history = ground.dir.join("history");
        fs::write(&history, stream(branches)).map_err(failed_to("write the history"))?;
        let import = fs::File::open(&history).map_err(failed_to("read the history"))?;
        let mut command = ground.command(&ground.repository, &["fast-import", "--quiet"]);
        step::output_of(command.stdin(import))?;
        ground.git(&ground.repository, &["reset", "-q", "--hard", "main"])?;
        Ok(ground)
    }

    fn command(&self, dir: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=bench", "-c", "user.email=bench@localhost"]);
        command.args(arguments).current_dir(dir);
        command
    }

    fn git(&self, dir: &Path, arguments: &[&str]) -> Result<String, Failure> {
        Ok(step::output_of(&mut self.command(dir, arguments))?.trim().to_owned())
    }

    fn example(&self, what: &str, place: &str, count: usize) -> Result<Duration, Failure> {
        let mut command = Command::new(&self.program);
        command.arg(what).arg(&self.repository).arg(self.dir.join("state"));
        let out = step::output_of(command.arg(place).arg(count.to_string()))?;
        let nanoseconds = out.trim().parse().map_err(failed_to("read the time it took"))?;
        Ok(Duration::from_nanos(nanoseconds))
    }
}

fn example(effort: Effort) -> Result<PathBuf, Failure> {
    let (profile, mut build) = match effort {
        Effort::Smoke => {
            ("debug", cargo(["build", "-q", "-p", "autopilot-host", "--example", "integrate"]))
        }
        Effort::Full => {
            let arguments =
                ["build", "-q", "--release", "-p", "autopilot-host", "--example", "integrate"];
            ("release", cargo(arguments))
        }
    };
    step::run("build the git part for the bench", &mut build)?;
    Ok(target_dir().join(profile).join("examples").join("integrate"))
}

/// For `git fast-import`.
fn stream(branches: usize) -> String {
    let commit = |branch: &str, from: &str, files: &[(String, String)]| {
        let mut text = format!(
            "commit refs/heads/{branch}\ncommitter bench <bench@localhost> 1700000000 +0000\n\
             data 1\nx\n{from}"
        );
        for (name, content) in files {
            text.push_str(&format!("M 644 inline {name}\ndata {}\n{content}\n", content.len()));
        }
        text
    };
    let file = |n: usize| (format!("dir{}/file{n}.txt", n % 10), format!("line {n}\n").repeat(20));
    let mut text = commit("main", "", &(0..FILES).map(file).collect::<Vec<_>>());
    for n in 0..branches {
        let own = (format!("dir{}/task{n}.txt", n % 10), format!("work {n}\n"));
        text.push_str(&commit(&format!("t{n}"), "from refs/heads/main\n", &[own]));
    }
    text
}
