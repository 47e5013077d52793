//! The talk with one launched agent: its lines become events, and acts carry replies back.
//!
//! A conversation is pure. It never waits, reads or writes; whoever runs the process carries its
//! lines in and its acts out.

use crate::agent::OutputStream;
use crate::ending::{AgentEnding, ExitFacts};
use crate::event::AgentEvent;
use serde::{Deserialize, Serialize};

/// The events of one line, and the acts that have to follow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeardLine {
    pub events: Vec<AgentEvent>,
    /// The acts, to be carried out in this order.
    pub acts: Vec<Act>,
}

/// Something that the host does for a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Write a line to the agent's stdin. The text has no line end.
    Say(String),
    /// Close the agent's stdin: nothing more will be said.
    Close,
    /// Read a file. [`Conversation::file`] gets its text.
    ReadFile { id: u64, path: String, first_line: Option<u32>, lines_max: Option<u32> },
    /// Write a file. [`Conversation::file`] gets an empty text.
    WriteFile { id: u64, path: String, text: String },
}

/// A person's request to an agent that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentMessage {
    /// A message, which the agent gets as soon as it can take it.
    Message(String),
    /// The request to stop the current turn.
    Interrupt,
}

/// The reason why an agent does not take a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deaf {
    #[error("this agent doesn't accept messages while it works")]
    Always,
    #[error("the agent's turn is over")]
    Over,
    #[error("too many messages are already waiting for the agent")]
    Full,
}

/// Decodes the lines of one launch into events and judges it at its end. A conversation never fails
/// and never panics: a line without a meaning is counted.
pub trait Conversation: Send {
    /// Is called before the first line.
    fn begin(&mut self) -> HeardLine {
        HeardLine::default()
    }

    /// Takes one line of output. `truncated` tells that the host cut the line at its limit.
    fn line(&mut self, stream: OutputStream, line: &str, truncated: bool) -> HeardLine;

    /// Takes the result of [`Act::ReadFile`] or [`Act::WriteFile`].
    fn file(&mut self, _id: u64, _done: Result<String, String>) -> HeardLine {
        HeardLine::default()
    }

    /// Passes on a person's request. Agents that do not listen refuse it.
    fn wish(&mut self, _wish: AgentMessage) -> Result<HeardLine, Deaf> {
        Err(Deaf::Always)
    }

    /// Judges the launch once its process has ended.
    fn finish(self: Box<Self>, exit: ExitFacts) -> AgentEnding;
}

impl HeardLine {
    /// A reply of one line.
    pub(crate) fn say(line: String) -> HeardLine {
        HeardLine { events: Vec::new(), acts: vec![Act::Say(line)] }
    }

    /// Puts `events` before the events of this one.
    #[must_use]
    pub(crate) fn after(mut self, events: impl IntoIterator<Item = AgentEvent>) -> HeardLine {
        let own = std::mem::take(&mut self.events);
        self.events.extend(events);
        self.events.extend(own);
        self
    }
}

impl From<Vec<AgentEvent>> for HeardLine {
    fn from(events: Vec<AgentEvent>) -> HeardLine {
        HeardLine { events, acts: Vec::new() }
    }
}
