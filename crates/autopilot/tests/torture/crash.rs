//! Kills at exact places: between two effects, and at every record.

use crate::stage::{Ended, Flow};
use crate::trial::Trial;
use std::sync::Mutex;

/// Passings of a point that are tried, where a run has more of them.
const PASSINGS_MAX: u64 = 2;
/// A run of one task has fewer records than this.
const RECORDS_MAX: u64 = 200;
const THREADS: usize = 2;

/// Crashes once at the place, resumes, and judges; false when the run never came there.
fn crash_at(flow: Flow, point: &str, passing: u64) -> bool {
    let mut trial = Trial::new(flow);
    let mut controller = trial.start(Some(&format!("{point}:{passing}")));
    match controller.wait() {
        Ended::Signal(9) => controller.died(),
        Ended::Code(0) => {
            trial.judge();
            return false;
        }
        other => panic!("{point}:{passing} ended as {other:?}:\n{}", trial.log()),
    }
    if !trial.is_over() {
        let ended = trial.resume().end();
        assert_eq!(ended, Ended::Code(0), "resumed after {point}:{passing}");
    }
    trial.judge();
    true
}

fn sweep(flow: Flow, point: &str, passings_max: u64) -> u64 {
    let came = (1..=passings_max).take_while(|passing| crash_at(flow, point, *passing)).count();
    assert!(came > 0, "no run comes to {point}");
    came as u64
}

/// C03, C08 to C11, C18, and what else can be cut in two.
#[test]
fn a_crash_between_two_effects_leaves_neither_twice_nor_missing() {
    let points = [
        "hub.built",
        "slot.swept",
        "salvage.done",
        "commit.written",
        "commit.done",
        "merge.candidate",
        "merge.validated",
        "merge.written",
        "merge.done",
        "merge.published",
        "publish.sent",
        "publish.done",
        "notes.due",
        "file.written",
        "process.held",
        "process.registered",
    ];
    let left = Mutex::new(points.to_vec());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let Some(point) = left.lock().unwrap().pop() else { return };
                    sweep(Flow::Queue, point, PASSINGS_MAX);
                }
            });
        }
    });
}

#[test]
fn c01_a_crash_at_every_record_changes_nothing() {
    let next = std::sync::atomic::AtomicU64::new(1);
    let work = || {
        loop {
            let passing = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            assert!(passing < RECORDS_MAX, "the run does not end");
            if !crash_at(Flow::Task, "journal.durable", passing) {
                return passing;
            }
        }
    };
    let last = std::thread::scope(|scope| {
        let all: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        all.into_iter().map(|one| one.join().unwrap()).min().unwrap()
    });
    eprintln!("crashed at {} records", last - 1);
    assert!(last > 10);
}

/// C12: each resume is killed as well, at its first record, its second and so on.
#[test]
fn c12_a_crash_of_each_resume_changes_nothing() {
    let mut trial = Trial::new(Flow::Task);
    let mut controller = trial.start(Some("journal.durable:5"));
    assert_eq!(controller.wait(), Ended::Signal(9));
    controller.died();
    for passing in 1..=10 {
        let mut controller = trial.resume_to(&format!("journal.durable:{passing}"));
        if controller.wait() == Ended::Code(0) {
            break;
        }
        controller.died();
    }
    if !trial.is_over() {
        assert_eq!(trial.resume().end(), Ended::Code(0));
    }
    trial.judge();
}

/// Attempts of two runs of one task have the same numbers; nothing of the first may pass for work of
/// the second.
#[test]
fn a_second_run_that_crashes_takes_up_nothing_of_the_first() {
    let mut trial = Trial::new(Flow::Task);
    assert_eq!(trial.start(None).end(), Ended::Code(0), "{}", trial.log());
    let stage = &trial.stage;
    std::fs::write(stage.repo.join("lib/news.txt"), "new on the base\n").unwrap();
    stage.git(&["add", "lib/news.txt"]);
    stage.git(&["commit", "-q", "-m", "News"]);
    // The first slot is the one of the preflight, the second the one of the build.
    let mut controller = trial.start(Some("slot.swept:2"));
    assert_eq!(controller.wait(), Ended::Signal(9));
    controller.died();
    assert_eq!(trial.resume().end(), Ended::Code(0), "{}", trial.log());
    let stage = &trial.stage;
    let branches = stage.git(&["branch", "--list", "autopilot/run-*", "--format=%(refname:short)"]);
    let second = branches.lines().last().unwrap();
    assert_eq!(branches.lines().count(), 2, "{branches}");
    let changed = stage.git(&["diff", "--name-only", "main", second]);
    assert_eq!(changed, "lib/alpha.txt\nlib/extra.txt\n");
    assert_eq!(stage.git(&["rev-parse", "autopilot/1-alpha^"]), stage.git(&["rev-parse", "main"]));
    trial.forget();
}

#[test]
fn a_retried_run_that_is_killed_is_found_again() {
    let mut trial = Trial::new(Flow::Task);
    let run: Vec<&str> = [Flow::Task.args(), &["--max-iterations", "1"]].concat();
    assert_eq!(trial.start_with(&run, None).end(), Ended::Code(11), "{}", trial.log());
    let mut controller = trial.start_with(&["retry", "1-alpha"], Some("journal.durable:4"));
    assert_eq!(controller.wait(), Ended::Signal(9));
    controller.died();
    assert_eq!(trial.start_with(&["resume"], None).end(), Ended::Code(0), "{}", trial.log());
    trial.forget();
}
