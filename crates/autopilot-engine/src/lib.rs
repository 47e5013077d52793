//! The engine: the loop around the pure core, and the code that does what it wants done.
//!
//! The core's [`autopilot_core::pilot`] is the loop without I/O; [`shell`] is the I/O around it;
//! [`job`] and the modules in its folder do the steps; [`run_process`] opens a repository and runs a
//! shell in it. Only settled state leaves the process.

mod admission;
mod again;
mod arrears;
pub mod ask;
pub mod base_proof;
pub mod begin;
pub mod clock;
pub mod environment;
pub mod evidence;
mod exposure;
pub mod feed;
pub mod flag;
pub mod further;
pub mod holdout;
pub mod host;
pub mod inbox;
pub mod job;
pub mod kept;
pub mod leak;
pub mod lost_state;
pub mod place;
pub mod pool;
pub mod ports;
pub mod purse;
pub mod query;
pub mod recorded;
pub mod redaction;
pub mod replay;
pub mod report;
pub mod run_process;
pub mod shell;
pub mod signal;
pub mod skill;
pub mod store;
pub mod toolchain;
pub mod views;
pub mod workspace;

pub use autopilot_host::cause;
