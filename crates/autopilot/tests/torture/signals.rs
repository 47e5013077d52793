//! Polite signals at random instants: the run rests, nothing is left, and it goes on later.

use crate::draw::{Draw, number, seed};
use crate::processes;
use crate::stage::{Ended, Flow};
use crate::trial::{Trial, reference};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const CYCLES_DEFAULT: u64 = 20;
/// What agents are given to end by themselves, and the second allowed on top.
const GRACE: Duration = Duration::from_secs(5);
/// A step of the script with its git, on a busy machine.
const STEP_TIME_MAX: Duration = Duration::from_secs(20);

#[test]
fn sigterm_and_sigint_cycles_end_resumable() {
    let cycles = number("AUTOPILOT_TORTURE_CYCLES", CYCLES_DEFAULT);
    let (seed, mut done, mut case) = (seed(), 0, 0);
    while done < cycles {
        done += cycle(&mut Draw::of(seed, case));
        case += 1;
    }
}

/// One run with a few signals; how many were sent.
fn cycle(draw: &mut Draw) -> u64 {
    let time = reference(Flow::Queue).time;
    let mut trial = Trial::new(Flow::Queue);
    let mut sent = 0;
    let mut controller = trial.start(None);
    loop {
        let instant = Duration::from_micros(draw.below(time.as_micros() as u64));
        if sent < 6 && controller.ended_before(instant).is_none() {
            let name = ["TERM", "INT", "HUP"][draw.below(3) as usize];
            let twice = draw.chance(40);
            sent += 1;
            let began = Instant::now();
            controller.rest(name, twice);
            assert!(began.elapsed() < STEP_TIME_MAX, "not heeded for {:?}", began.elapsed());
        }
        let ended = controller.end();
        let left =
            processes::left(&trial.stage.root, &BTreeSet::new(), GRACE + Duration::from_secs(1));
        assert_eq!(left, [""; 0], "left behind after a signal");
        match ended {
            Ended::Code(0) => break,
            Ended::Code(2) => {}
            // Before the first record of a boot there is nothing to bring to rest.
            Ended::Signal(1 | 2 | 15) => {}
            other => panic!("ended as {other:?} after a signal:\n{}", trial.log()),
        }
        if trial.is_over() {
            break;
        }
        controller = trial.resume();
    }
    trial.judge();
    sent
}
