//! The git part of the crate against real git, in temporary directories.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test helper that can't go on has failed the test"
)]

#[path = "git/border.rs"]
mod border;
#[path = "git/capture.rs"]
mod capture;
#[path = "git/change.rs"]
mod change;
#[path = "git/integrate.rs"]
mod integrate;
#[path = "git/notes.rs"]
mod notes;
#[path = "git/poison.rs"]
mod poison;
#[path = "git/precheck.rs"]
mod precheck;
#[path = "git/push.rs"]
mod push;
#[path = "git/slots.rs"]
mod slots;
#[path = "git/submodules.rs"]
mod submodules;
#[path = "git/train.rs"]
mod train;
#[path = "git/world.rs"]
mod world;
