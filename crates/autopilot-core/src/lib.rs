//! The pure core: facts in, facts out.
//!
//! Nothing here reads a clock, a file, the environment or a random number; time is an argument.
//! The same inputs give the same records on every machine, which is what lets a run be replayed,
//! resumed after any crash and simulated by the hundred thousand.
//!
//! Read in this order: [`id`] and [`step`] for the words, [`pipeline`] and [`flow`] for the tables,
//! [`event`] and [`input`] for what the core writes and hears, [`state`] for what it knows,
//! [`decide`] for the rules, [`pilot`] for the loop that the engine turns.

pub mod claim;
pub mod command_line;
pub mod config;
pub mod coverage;
pub mod dag;
pub mod decide;
pub mod detect;
pub mod doubt;
pub mod event;
pub mod evidence;
pub mod fingerprint;
pub mod flaky;
pub mod flow;
pub mod gate_book;
pub mod gate_order;
pub mod guard;
pub mod holdout;
pub mod id;
pub mod input;
pub mod instruction;
pub mod key_shape;
pub mod last_word;
pub mod limit;
pub mod number;
pub mod pilot;
pub mod pipeline;
pub mod plan;
pub mod prompt;
pub mod rail;
mod rows;
pub mod session_name;
pub mod skill;
pub mod state;
pub mod step;
pub mod task_file;
pub mod test_report;
pub mod three_runs;
pub mod wanted;
pub mod warmth;
pub mod workflow;
pub mod yardstick;
