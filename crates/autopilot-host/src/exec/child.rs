//! The owner's side of a running agent: its output, and at last how it ended.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::Control;
use crate::output::{Captured, OutputLine, Progress};
use crate::proc::ProcessIdentity;

/// The end of an agent. Success is never judged by the code alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exit {
    /// The exit code; `None` when a signal ended the agent, or when nobody saw its end.
    pub code: Option<i32>,
    /// The signal that ended the agent, if one did.
    pub signal: Option<i32>,
    /// How many processes the agent left behind, which were killed.
    pub leaked: u32,
    /// How many processes could not be killed.
    pub survivors: u32,
    /// Whether the supervisor was killed, so that code and signal may be unknown.
    pub supervisor_lost: bool,
    /// The part of the output that was kept.
    pub output: Arc<Captured>,
}

impl Exit {
    /// Returns the end of an agent of which nothing is known yet.
    pub(super) fn lost() -> Exit {
        Exit { supervisor_lost: true, ..Exit::default() }
    }

    /// Returns whether the agent is known to have exited with code 0.
    pub fn is_zero(&self) -> bool {
        self.code == Some(0) && !self.supervisor_lost
    }
}

/// Something a running agent says or does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildWord {
    /// A line of output.
    Line(OutputLine),
    /// The agent was stopped by a signal. It was continued if `resumed`; that happens once.
    Stopped { resumed: bool },
    /// The agent has ended; every later call returns this again.
    Ended(Exit),
}

/// The channels and handles from which a [`Child`] is made.
pub(super) struct ChildParts {
    pub agent: ProcessIdentity,
    pub supervisor: ProcessIdentity,
    pub lines: mpsc::Receiver<Vec<OutputLine>>,
    pub heard: mpsc::Receiver<bool>,
    pub captured: oneshot::Receiver<Captured>,
    pub ending: JoinHandle<Exit>,
    pub progress: Arc<Progress>,
    pub input: Option<pipe::Sender>,
}

/// The owner of a running agent. Dropping it kills the agent with all it started.
pub struct Child {
    parts: ChildParts,
    control: Control,
    ready: VecDeque<OutputLine>,
    lines_open: bool,
    notices_open: bool,
    /// How the agent ended, while its output is still to come.
    ending: Option<Exit>,
    exit: Option<Exit>,
}

impl Child {
    pub(super) fn new(parts: ChildParts, control: Control) -> Child {
        Child {
            parts,
            control,
            ready: VecDeque::new(),
            lines_open: true,
            notices_open: true,
            ending: None,
            exit: None,
        }
    }

    /// Returns the agent's process, to be recorded so that a later sweep can find it.
    pub fn agent(&self) -> ProcessIdentity {
        self.parts.agent
    }

    /// Returns the process that supervises the agent. When it is killed, an agent in a jail with
    /// namespaces dies with all it started.
    pub fn supervisor(&self) -> ProcessIdentity {
        self.parts.supervisor
    }

    /// Returns how much output there is and when the last byte came.
    pub fn progress(&self) -> &Progress {
        &self.parts.progress
    }

    /// Returns the agent's stdin, if it was launched with [`super::ProcessStdin::Open`]; dropping it
    /// closes it.
    pub fn take_input(&mut self) -> Option<pipe::Sender> {
        self.parts.input.take()
    }

    /// Waits for the next thing the agent says or does. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> ChildWord {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return ChildWord::Line(line);
            }
            if let Some(exit) = &self.exit {
                return ChildWord::Ended(exit.clone());
            }
            if let (false, Some(ending)) = (self.lines_open, &self.ending) {
                // The output thread has ended with the lines; its result is missing if it failed.
                let output = (&mut self.parts.captured).await.unwrap_or_default();
                self.exit = Some(Exit { output: Arc::new(output), ..ending.clone() });
                continue;
            }
            tokio::select! {
                batch = self.parts.lines.recv(), if self.lines_open => match batch {
                    Some(batch) => self.ready.extend(batch),
                    None => self.lines_open = false,
                },
                notice = self.parts.heard.recv(), if self.notices_open => match notice {
                    Some(resumed) => return ChildWord::Stopped { resumed },
                    None => self.notices_open = false,
                },
                ending = &mut self.parts.ending, if self.ending.is_none() => {
                    // A panic there leaves nothing known about the process: that is "lost".
                    self.ending = Some(ending.unwrap_or(Exit::lost()));
                }
            }
        }
    }

    /// Waits for the end; lines that nobody has asked for are passed over.
    pub async fn wait(mut self) -> Exit {
        loop {
            if let ChildWord::Ended(exit) = self.next().await {
                return exit;
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ending.is_none() {
            self.control.kill();
        }
    }
}
