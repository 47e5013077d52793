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
pub mod installed;
mod jsonl;
pub mod launch;
pub mod openai;
pub mod script;
pub mod session_file;
pub mod session_id;
pub mod tail;
pub mod telling;
pub mod words;

pub use agent::{Agent, AgentError, AgentSettings, OutputStream, listens};
pub use conversation::{Act, AgentMessage, Conversation, Deaf, HeardLine};
pub use ending::{AgentEnding, AgentOutcome, Cause, ExitFacts, OddLines};
pub use event::{AgentBill, AgentEvent, AgentUsage, ModelTokens, Scope, TokenCount};
pub use launch::{
    Access, Exchange, LaunchPlan, LaunchProgram, LaunchRequest, LaunchSandbox, LaunchSchema,
    LaunchServer, LaunchStdin, Network, Transport,
};
