//! Kills at random instants.

use crate::draw::{Draw, number, seed};
use crate::stage::{Ended, Flow};
use crate::trial::{Trial, With, reference};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const KILLS_DEFAULT: u64 = 50;
const KILLS_PER_RUN_MAX: u32 = 12;
/// As many as the smallest machine has cores.
const THREADS: usize = 2;

#[test]
fn a_run_killed_at_random_instants_ends_like_an_undisturbed_one() {
    let wanted = number("AUTOPILOT_TORTURE_KILLS", KILLS_DEFAULT);
    let seed = seed();
    for flow in [Flow::Task, Flow::Queue] {
        reference(flow);
    }
    let (kills, cases, failed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let work = || {
        while kills.load(Ordering::SeqCst) < wanted && !failed.load(Ordering::SeqCst) {
            let case = cases.fetch_add(1, Ordering::SeqCst);
            let case_is_over = Alarm { failed: &failed, seed, case };
            kills.fetch_add(u64::from(torture(&mut Draw::of(seed, case))), Ordering::SeqCst);
            std::mem::forget(case_is_over);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(work);
        }
    });
    let (kills, cases) = (kills.into_inner(), cases.into_inner());
    eprintln!("{kills} kills in {cases} runs");
    assert!(kills >= wanted);
}

/// Ends the campaign and names the case that broke.
struct Alarm<'a> {
    failed: &'a AtomicBool,
    seed: u64,
    case: u64,
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        self.failed.store(true, Ordering::SeqCst);
        eprintln!("case {} of AUTOPILOT_TORTURE_SEED={}", self.case, self.seed);
    }
}

/// One run from its start to its end; how often it was killed.
fn torture(draw: &mut Draw) -> u32 {
    let flow = if draw.chance(50) { Flow::Task } else { Flow::Queue };
    let time = reference(flow).time;
    let mut trial = Trial::new(flow);
    loop {
        let first = trial.kills == 0;
        let again = first || (trial.kills < KILLS_PER_RUN_MAX && draw.chance(60));
        // Often early too, so that a boot itself is cut short.
        let span = if draw.chance(25) { time / 8 } else { time };
        let instant = Duration::from_micros(draw.below(span.as_micros() as u64));
        let with = match draw.below(10) {
            0 | 1 => With::Supervisors,
            2 | 3 => With::Everything,
            _ => With::Nobody,
        };
        let mut controller = if first { trial.start(None) } else { trial.resume() };
        if again && controller.ended_before(instant).is_none() {
            controller.kill(with);
            if !trial.is_over() {
                continue;
            }
        } else {
            assert_eq!(controller.end(), Ended::Code(0), "after {} kills", trial.kills);
        }
        let kills = trial.kills;
        trial.judge();
        return kills;
    }
}
