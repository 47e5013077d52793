//! `kill -9` at random instants and at exact places, then `resume`, until the run ends: what comes out
//! must be what an undisturbed run gives. Real binary, real git, real processes, scripted agents.
//!
//! `AUTOPILOT_TORTURE_KILLS` says how many kills, `AUTOPILOT_TORTURE_SEED` replays the draws of a run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    reason = "a test helper that can't go on has failed the test"
)]

#[path = "torture/account.rs"]
mod account;
#[path = "torture/crash.rs"]
mod crash;
#[path = "torture/damage.rs"]
mod damage;
#[path = "torture/draw.rs"]
mod draw;
#[path = "torture/fault.rs"]
mod fault;
#[path = "torture/processes.rs"]
mod processes;
#[path = "torture/race.rs"]
mod race;
#[path = "torture/random.rs"]
mod random;
#[path = "torture/signals.rs"]
mod signals;
#[path = "torture/stage.rs"]
mod stage;
#[path = "torture/trial.rs"]
mod trial;
