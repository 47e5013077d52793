//! The live dashboard: a run on a terminal while it is under way.
//!
//! [`screen`] folds records, sights and keys into what is shown, and [`draw`] puts it on a frame; both
//! are pure and get the time as an argument. [`show`] has the terminal and the loop, [`dashboard`]
//! feeds it from a run.

pub mod dashboard;
pub mod draw;
pub mod key;
pub mod notice;
pub mod page;
#[cfg(test)]
#[path = "tests/sample.rs"]
mod sample;
pub mod screen;
pub mod show;
pub mod tally;
pub mod tty;
pub mod word;
