//! The watch over real agents, with limits short enough for a test.

use std::time::{Duration, Instant};

use autopilot_host::exec;
use autopilot_host::life::{LifeWatch, Threshold, WatchEnd, WatchLimits, WatchNotice, watch};

use crate::world::*;

fn limits(timeout_ms: u64, silent_ms: u64) -> LifeWatch {
    let limits = WatchLimits {
        timeout: Duration::from_millis(timeout_ms),
        silent: Duration::from_millis(silent_ms),
        waiting: Duration::from_millis(silent_ms * 2),
        threshold: Threshold::default(),
    };
    LifeWatch { limits, grace: Duration::from_millis(200), dir: None, entries_max: 1000 }
}

fn run(script: &str, limits: &LifeWatch) -> (WatchEnd, Vec<WatchNotice>, Duration) {
    let mut notices = Vec::new();
    let started = Instant::now();
    let ended = block_on(async {
        let (control, child) = exec::spawn(shell(script)).await.unwrap();
        watch(child, &control, limits, |notice| notices.push(notice)).await
    });
    (ended, notices, started.elapsed())
}

fn suspects(notices: &[WatchNotice]) -> usize {
    notices.iter().filter(|notice| matches!(notice, WatchNotice::Suspect { .. })).count()
}

pub fn busy() {
    let (ended, notices, took) = run("while :; do :; done", &limits(1200, 200));
    assert!(matches!(ended, WatchEnd::TimedOut(_)), "{ended:?}");
    assert_eq!(suspects(&notices), 0, "{notices:?}");
    assert!(took >= Duration::from_millis(1200) && took < Duration::from_secs(3), "{took:?}");
}

pub fn tool() {
    // The tool begins after the last word, as a tool call does.
    let (ended, notices, _) = run("echo call; sleep 1.2; exit 0", &limits(10_000, 200));
    assert!(matches!(&ended, WatchEnd::Exited(exit) if exit.is_zero()), "{ended:?}");
    assert_eq!(suspects(&notices), 0, "{notices:?}");
}

pub fn idle() {
    let (ended, notices, took) = run("exec sleep 100", &limits(60_000, 400));
    let WatchEnd::Stuck { evidence, exit } = ended else { panic!("{ended:?}") };
    assert!(evidence.contains("no activity") && evidence.contains("1 process,"), "{evidence}");
    assert_eq!((exit.signal, suspects(&notices)), (Some(15), 1));
    assert!(took >= Duration::from_millis(800) && took < Duration::from_secs(3), "{took:?}");
}

pub fn trickle() {
    let script = "while :; do printf x; sleep 0.05; done";
    let (ended, notices, took) = run(script, &limits(1000, 300));
    assert!(matches!(ended, WatchEnd::TimedOut(_)), "{ended:?}");
    assert_eq!(suspects(&notices), 0, "{notices:?}");
    assert!(took < Duration::from_secs(3), "{took:?}");
    let (ended, ..) = run("while :; do echo x; done", &limits(500, 300));
    assert!(matches!(ended, WatchEnd::TimedOut(_)), "a flood of lines must not put it off");
}

pub fn stopped() {
    let script = "kill -STOP $$; kill -STOP $$; echo never";
    let (ended, notices, _) = run(script, &limits(60_000, 30_000));
    assert!(matches!(ended, WatchEnd::Stuck { .. }), "{ended:?}");
    assert_eq!(notices, [true, false].map(|resumed| WatchNotice::Stopped { resumed }));
}

pub fn exits() {
    let (ended, notices, _) = run("echo hello; exit 3", &limits(60_000, 30_000));
    assert!(matches!(&ended, WatchEnd::Exited(exit) if exit.code == Some(3)), "{ended:?}");
    assert!(
        matches!(&notices[..], [WatchNotice::Line(line)] if line.text == "hello"),
        "{notices:?}"
    );
}
