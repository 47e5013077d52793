//! Talking with one launched agent: what it says becomes events, and what is said back.
//!
//! A conversation is pure. It never waits, reads or writes; whoever runs the process carries its
//! lines in and its acts out.

use crate::agent::Stream;
use crate::ending::{Ending, ExitFacts};
use crate::event::AgentEvent;

/// What a line meant, and what is to be done about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Heard {
    pub events: Vec<AgentEvent>,
    pub acts: Vec<Act>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// A line for the agent's stdin, without its end.
    Say(String),
    /// Nothing more will be said: its stdin is closed.
    Close,
    /// Answered by [`Conversation::file`] with the text.
    ReadFile { id: u64, path: String, first_line: Option<u32>, lines_max: Option<u32> },
    /// Answered by [`Conversation::file`] with nothing.
    WriteFile { id: u64, path: String, text: String },
}

/// Said to an agent while it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    Message(String),
    Interrupt,
}

/// The agent does not listen while it works, or its turn is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Deaf {
    #[error("this kind of agent can't be spoken to while it works")]
    Always,
    #[error("its turn is over")]
    Over,
    #[error("too much that was said to it waits already")]
    Full,
}

/// Turns the lines of one run into events and, at its end, a judgement. Never fails and never
/// panics: a line that means nothing is counted.
pub trait Conversation: Send {
    /// Before the first line.
    fn begin(&mut self) -> Heard {
        Heard::default()
    }

    /// `truncated` tells that the host cut the line at its limit.
    fn line(&mut self, stream: Stream, line: &str, truncated: bool) -> Heard;

    /// What became of an act on a file.
    fn file(&mut self, _id: u64, _done: Result<String, String>) -> Heard {
        Heard::default()
    }

    fn wish(&mut self, _wish: Wish) -> Result<Heard, Deaf> {
        Err(Deaf::Always)
    }

    fn finish(self: Box<Self>, exit: ExitFacts) -> Ending;
}

impl Heard {
    pub(crate) fn say(line: String) -> Heard {
        Heard { events: Vec::new(), acts: vec![Act::Say(line)] }
    }

    /// With events that came before its own.
    #[must_use]
    pub(crate) fn after(mut self, events: impl IntoIterator<Item = AgentEvent>) -> Heard {
        let own = std::mem::take(&mut self.events);
        self.events.extend(events);
        self.events.extend(own);
        self
    }
}

impl From<Vec<AgentEvent>> for Heard {
    fn from(events: Vec<AgentEvent>) -> Heard {
        Heard { events, acts: Vec::new() }
    }
}
