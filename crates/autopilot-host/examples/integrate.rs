//! The git work of many tasks and nothing else, for the benches: prints its own nanoseconds.
//!
//! `integrate slots <repository> <state> <first> <count>` fills that many slots at once;
//! `integrate train <repository> <state> <branch> <count>` merges `refs/heads/t0…` of the hub.

use autopilot_host::git::{
    Advanced, AttemptName, Coupled, Hub, KeepFiles, Prepare, Slots, Track, UserRepo, Wagon,
};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "its figure is all it is for")]
fn main() -> ExitCode {
    match run() {
        Ok(nanoseconds) => {
            println!("{nanoseconds}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("integrate: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome<u128> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, repository, state, place, count] = arguments.as_slice() else {
        return Err("usage: integrate slots|train <repository> <state> <place> <count>".into());
    };
    let repo = UserRepo::examine(Path::new(repository), "main", &[])?;
    let hub = Hub::open(Path::new(state), &repo)?;
    let count: usize = count.parse()?;
    let began = Instant::now();
    match what.as_str() {
        "slots" => fill(&repo, &hub, place.parse()?, count)?,
        "train" => merge(&repo, &hub, place, count)?,
        other => return Err(format!("`{other}` is not known").into()),
    }
    Ok(began.elapsed().as_nanos())
}

fn fill(repo: &UserRepo, hub: &Hub, first: usize, count: usize) -> Outcome<()> {
    let slots = Slots::new(hub, repo);
    std::thread::scope(|scope| {
        let start = |n: usize| {
            let slot = slots.agent(first + n);
            scope.spawn(move || {
                let id = n.to_string();
                slot.prepare(&Prepare {
                    commit: &repo.base_tip,
                    base: &repo.base_tip,
                    branch: "autopilot/bench",
                    attempt: AttemptName { task: "bench", id: &id },
                    keep: KeepFiles::Nothing,
                    copy: &[],
                    now: 1_700_000_000,
                })
            })
        };
        let workers: Vec<_> = (0..count).map(start).collect();
        for worker in workers {
            worker.join().map_err(|_| "a worker panicked")??;
        }
        Ok(())
    })
}

fn merge(repo: &UserRepo, hub: &Hub, branch: &str, count: usize) -> Outcome<()> {
    let track = Track {
        run: "bench",
        branch,
        start: &repo.base_tip,
        has_begun: false,
        identity: &repo.identity,
        now: 1_700_000_000,
    };
    for n in 0..count {
        let task = format!("t{n}");
        let commit = hub.resolve(&format!("refs/heads/{task}"))?.ok_or("a branch is missing")?;
        let wagon = Wagon {
            attempt: AttemptName { task: &task, id: branch },
            commit: &commit,
            message: &task,
        };
        let from = track.tip(hub)?;
        let Coupled::On(candidate) = track.couple(hub, &from.commit, &wagon)? else {
            return Err(format!("{task} conflicts").into());
        };
        let Advanced::Moved(_) = track.advance(hub, &from, &candidate.commit)? else {
            return Err("somebody else moved the branch".into());
        };
    }
    Ok(())
}
