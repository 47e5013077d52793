//! One codec per agent: how to launch the agent, and what its output lines mean.
//!
//! Invariant: everything here is a function of its arguments. No files, clock, environment,
//! processes or randomness; the host runs what a [`LaunchPlan`] says and feeds the lines back.

mod acp;
pub mod agent;
pub mod answer;
pub mod classify;
mod claude;
mod codex;
pub mod comeback;
mod command;
pub mod conversation;
pub mod doing;
pub mod ending;
pub mod event;
pub mod gateway;
mod jsonl;
pub mod launch;
pub mod openai;
pub mod script;
pub mod session_id;
pub mod tail;
pub mod words;

pub use agent::{Agent, AgentError, Expected, Settings, Stream, listens};
pub use conversation::{Act, Conversation, Deaf, Heard, Wish};
pub use ending::{Cause, Ending, ExitFacts, Odd, Outcome};
pub use event::{AgentEvent, Bill, Scope, Tokens, Usage};
pub use launch::{
    Access, Ask, Exchange, LaunchPlan, McpServer, Network, Program, Sandbox, Schema, Stdin,
    Transport,
};
