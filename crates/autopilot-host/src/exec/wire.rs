//! What controller and supervisor say to each other.
//!
//! The supervisor's stdin is one end of a socket pair. The first message carries four descriptors:
//! a memory file with the launch as JSON (so no argument or environment limit applies
//! to it), and the agent's stdin, stdout and stderr. After it both sides speak JSON lines.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::proc::Identity;
use crate::sandbox;

/// Longest line either side accepts.
pub const LINE_BYTES_MAX: usize = 16 * 1024;

#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    pub controller_pid: i32,
    pub program: Text,
    pub args: Vec<Text>,
    /// Pairs, because a JSON object cannot hold names that are not UTF-8.
    pub env: Vec<(Text, Text)>,
    pub cwd: PathBuf,
    pub limits: Limits,
    pub sandbox: sandbox::Plan,
    pub grace_ms: u64,
    pub drain_ms: u64,
}

/// A string of the operating system; nearly always UTF-8, and then cheap to pass.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Text {
    Utf8(String),
    Raw(Vec<u8>),
}

impl Text {
    pub fn os(&self) -> &OsStr {
        match self {
            Text::Utf8(text) => OsStr::new(text),
            Text::Raw(bytes) => OsStr::from_bytes(bytes),
        }
    }
}

impl From<&OsString> for Text {
    fn from(text: &OsString) -> Text {
        match text.to_str() {
            Some(text) => Text::Utf8(text.into()),
            None => Text::Raw(text.as_bytes().into()),
        }
    }
}

/// Limits of the kernel on the agent and everything it starts; `None` leaves the inherited one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Processes of the user (RLIMIT_NPROC; the kernel does not apply it to root).
    pub processes_max: Option<u64>,
    pub open_files_max: Option<u64>,
    pub file_bytes_max: Option<u64>,
    pub memory_bytes_max: Option<u64>,
    /// Who dies first when memory runs out: −1000 never, 1000 first.
    pub oom_score_adj: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    Terminate { grace_ms: u64 },
    Kill,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    Started {
        agent: Identity,
    },
    Failed {
        stage: Stage,
        message: String,
        errno: Option<i32>,
    },
    /// The agent was stopped; `resumed` when it has been continued, which happens once.
    Stopped {
        resumed: bool,
    },
    Exited {
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// Nothing is left but `survivors`, which not even SIGKILL ended in time.
    Gone {
        leaked: u32,
        survivors: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Supervisor,
    Directory,
    Sandbox,
    Program,
}

/// Whole lines out of arriving bytes.
#[derive(Debug, Default)]
pub struct Lines {
    pending: Vec<u8>,
}

impl Lines {
    /// Adds what arrived and gives the messages that are complete; what is no message is skipped.
    pub fn push<T: for<'a> Deserialize<'a>>(&mut self, bytes: &[u8]) -> Vec<T> {
        self.pending.extend_from_slice(bytes);
        let mut messages = Vec::new();
        while let Some(end) = memchr::memchr(b'\n', &self.pending) {
            messages.extend(serde_json::from_slice(&self.pending[..end]).ok());
            self.pending.drain(..=end);
        }
        if self.pending.len() > LINE_BYTES_MAX {
            self.pending.clear();
        }
        messages
    }
}

/// One message as a line.
pub fn line<T: Serialize>(message: &T) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(message).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_any_split() {
        let sent = [
            Report::Stopped { resumed: true },
            Report::Exited { code: Some(3), signal: None },
            Report::Gone { leaked: 2, survivors: 0 },
        ];
        let bytes: Vec<u8> = sent.iter().flat_map(line).collect();
        for split in 0..bytes.len() {
            let mut lines = Lines::default();
            let mut heard: Vec<Report> = lines.push(&bytes[..split]);
            heard.extend(lines.push::<Report>(&bytes[split..]));
            assert_eq!(heard, sent);
        }
    }

    #[test]
    fn an_endless_line_does_not_grow_the_buffer() {
        let mut lines = Lines::default();
        for _ in 0..100 {
            assert!(lines.push::<Report>(&[b'x'; 4096]).is_empty());
            assert!(lines.pending.len() <= LINE_BYTES_MAX);
        }
    }
}
