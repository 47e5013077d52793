//! The git side of many tasks: slots that start together, and a train of merges.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use super::Bed;
use super::interleave::{Measured, in_turn};
use super::repository::{Repository, git};
use crate::step::{self, Failure, failed_to};

const FILES: usize = 100;

/// 40 workers start together, against 40 sequential `git worktree add`.
pub fn slots(bed: &Bed) -> Result<Measured, Failure> {
    let count = bed.size(40, 4);
    let ground = Ground::prepare(bed, "slots", 0)?;
    let anchor = |round: usize| {
        let began = Instant::now();
        for n in 0..count {
            let tree = ground.made.dir.join(format!("tree-{round}-{n}"));
            let add = ["worktree", "add", "-q", "--detach", &tree.to_string_lossy(), "main"];
            ground.made.git(&add)?;
        }
        Ok(began.elapsed())
    };
    let clean = |round: usize| {
        for n in 0..count {
            let tree = ground.made.dir.join(format!("tree-{round}-{n}"));
            fs::remove_dir_all(&tree).map_err(failed_to(format!("remove {}", tree.display())))?;
        }
        ground.made.git(&["worktree", "prune"]).map(drop)
    };
    let subject = |round: usize| ground.example("slots", &(round * count).to_string(), count);
    in_turn(bed.rounds, anchor, subject, clean)
}

/// Approved branches integrated one by one, against the three plumbing commands in a loop.
pub fn train(bed: &Bed) -> Result<Measured, Failure> {
    let count = bed.size(500, 10);
    let ground = Ground::prepare(bed, "train", count)?;
    let bare = ground.made.dir.join("bare.git");
    let (from, to) = (ground.made.root.to_string_lossy(), bare.to_string_lossy());
    git(&ground.made.dir, &["clone", "-q", "--mirror", &from, &to])?;
    // The first start makes the hub; the branches come into it as a task's commits would.
    ground.example("train", "autopilot/none", 0)?;
    let hub = ground.made.dir.join("state/hub.git");
    git(&hub, &["fetch", "-q", &from, "refs/heads/t*:refs/heads/t*"])?;
    let anchor = |round: usize| {
        let began = Instant::now();
        let mut tip = git(&bare, &["rev-parse", "main"])?;
        let branch = format!("refs/heads/run-{round}");
        for n in 0..count {
            let task = format!("t{n}");
            let tree = git(&bare, &["merge-tree", "--write-tree", &tip, &task])?;
            let merge = ["commit-tree", &tree, "-p", &tip, "-p", &task, "-m", &task];
            tip = git(&bare, &merge)?;
            git(&bare, &["update-ref", &branch, &tip])?;
        }
        Ok(began.elapsed())
    };
    let subject = |round: usize| ground.example("train", &format!("autopilot/run-{round}"), count);
    in_turn(bed.rounds, anchor, subject, |_| Ok(()))
}

struct Ground {
    made: Repository,
    program: PathBuf,
}

impl Ground {
    fn prepare(bed: &Bed, name: &str, branches: usize) -> Result<Ground, Failure> {
        let made = Repository::make(bed.scratch.join(name), FILES, branches)?;
        Ok(Ground { made, program: bed.example("autopilot-host", "integrate")? })
    }

    fn example(&self, what: &str, place: &str, count: usize) -> Result<Duration, Failure> {
        let mut command = Command::new(&self.program);
        command.arg(what).arg(&self.made.root).arg(self.made.dir.join("state"));
        let out = step::output_of(command.arg(place).arg(count.to_string()))?;
        let nanoseconds = out.trim().parse().map_err(failed_to("read the time it took"))?;
        Ok(Duration::from_nanos(nanoseconds))
    }
}
