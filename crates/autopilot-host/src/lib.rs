//! The machine's side of autopilot: processes, output, files, locks, sandboxes and git.

pub mod agent_home;
pub mod checkout;
pub mod dir;
pub mod editor;
pub mod escape;
pub mod exec;
pub mod fail;
pub mod file;
pub mod forge;
pub mod git;
pub mod hand;
pub mod life;
pub mod lock;
pub mod model_api;
pub mod notify;
pub mod output;
pub mod port;
pub mod proc;
pub mod redact;
pub mod room;
pub mod sandbox;
pub mod skill;
pub mod sweep;
pub mod turnstile;
pub mod web;
