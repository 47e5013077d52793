//! The live dashboard: what a run looks like on a terminal while it is under way.
//!
//! [`screen`] is what is known, folded from records, sights and keys; [`draw`] puts it on a frame;
//! both are pure and get the time as an argument. [`show`] has the terminal and the loop,
//! [`dashboard`] is the subscriber that feeds it from a run.

pub mod dashboard;
pub mod draw;
pub mod key;
pub mod notice;
pub mod page;
#[cfg(test)]
mod sample;
pub mod screen;
pub mod show;
pub mod tally;
pub mod tty;
pub mod word;
