//! The messages between controller and supervisor.
//!
//! The supervisor's stdin is one end of a socket pair. The first message carries four descriptors:
//! a memory file with the launch order as JSON (so no argument or environment limit applies to it),
//! and the agent's stdin, stdout and stderr. After it both sides speak JSON lines. A supervisor that
//! only copies itself gets one descriptor with each message, and answers with the number of the copy.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::proc::ProcessIdentity;
use crate::register::RegisteredTree;
use crate::sandbox;

/// The first byte to a supervisor that is to supervise.
pub const LAUNCH: u8 = b'L';

/// The byte to a supervisor that is to copy itself; it carries the control socket of the copy.
pub const COPY: u8 = b'C';

/// The longest line either side accepts.
pub const LINE_BYTES_MAX: usize = 16 * 1024;

/// The order to a supervisor: the program to run and how.
#[derive(Debug, Serialize, Deserialize)]
pub struct LaunchOrder {
    /// The process that gives the order; the tree ends when this process does.
    pub controller_pid: i32,
    /// The program, looked for on the PATH of `env` when it has no slash.
    pub program: OsText,
    /// The arguments, without the program's own name.
    pub args: Vec<OsText>,
    /// The whole environment, as pairs because a JSON object cannot hold names that are not UTF-8.
    pub env: Vec<(OsText, OsText)>,
    /// The directory in which the program starts.
    pub cwd: PathBuf,
    /// The kernel's limits on the program and everything it starts.
    pub limits: ProcessLimits,
    /// The sandbox in which the program runs.
    pub sandbox: sandbox::SandboxPlan,
    /// The time between TERM and KILL when the supervisor itself gets a TERM.
    pub grace_ms: u64,
    /// How long processes that outlive the program may take to finish by themselves.
    pub drain_ms: u64,
    /// The mark of the program and everything it starts.
    pub mark: u64,
}

/// A string of the operating system; nearly always UTF-8, and then cheap to pass.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OsText {
    /// Valid UTF-8, as a JSON string.
    Utf8(String),
    /// Any other bytes, as a JSON array of numbers.
    Raw(Vec<u8>),
}

impl OsText {
    /// Returns the string in the form that the operating system takes.
    pub fn os(&self) -> &OsStr {
        match self {
            OsText::Utf8(text) => OsStr::new(text),
            OsText::Raw(bytes) => OsStr::from_bytes(bytes),
        }
    }
}

impl From<&OsString> for OsText {
    fn from(text: &OsString) -> OsText {
        match text.to_str() {
            Some(text) => OsText::Utf8(text.into()),
            None => OsText::Raw(text.as_bytes().into()),
        }
    }
}

/// Limits of the kernel on the agent and everything it starts; `None` leaves the inherited one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLimits {
    /// The most processes of the user (RLIMIT_NPROC; the kernel does not apply it to root).
    pub processes_max: Option<u64>,
    /// The most open descriptors of a process (RLIMIT_NOFILE).
    pub open_files_max: Option<u64>,
    /// The largest file a process can write (RLIMIT_FSIZE).
    pub file_bytes_max: Option<u64>,
    /// The largest address space of a process (RLIMIT_AS).
    pub memory_bytes_max: Option<u64>,
    /// The order of dying when memory runs out: −1000 never, 1000 first.
    pub oom_score_adj: Option<i32>,
}

/// A command from the controller to a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SupervisorCommand {
    /// Let the program run that is held.
    Go,
    /// Send TERM now and KILL when the grace is over.
    Terminate { grace_ms: u64 },
    /// Kill the whole tree at once.
    Kill,
}

/// A report from a supervisor to the controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SupervisorReport {
    /// The process that becomes the program is there and is held until [`SupervisorCommand::Go`].
    Held(RegisteredTree),
    /// The program runs.
    Started { agent: ProcessIdentity },
    /// The program could not be started.
    Failed(LaunchFailure),
    /// The agent was stopped by a signal; `resumed` if it has been continued, which happens once.
    Stopped { resumed: bool },
    /// The program has ended; processes that it started may still run.
    Exited { code: Option<i32>, signal: Option<i32> },
    /// No process is left but `survivors`, which not even SIGKILL ended in time. `leaked` were
    /// killed because they outlived the program.
    Gone { leaked: u32, survivors: u32 },
}

/// The reason why a supervisor could not start the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchFailure {
    /// How far the supervisor came.
    pub stage: LaunchStage,
    /// The error in words.
    pub message: String,
    /// The number of the operating system's error, if it is one.
    pub errno: Option<i32>,
}

impl LaunchFailure {
    /// Makes the failure of a call at this stage.
    pub fn at(stage: LaunchStage, error: impl Into<std::io::Error>) -> LaunchFailure {
        let error = error.into();
        LaunchFailure { stage, errno: error.raw_os_error(), message: error.to_string() }
    }
}

/// The stage of a start at which it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchStage {
    /// The supervisor could not prepare itself.
    Supervisor,
    /// The working directory cannot be read.
    Directory,
    /// The sandbox could not be prepared.
    Sandbox,
    /// The program could not be executed.
    Program,
}

/// A splitter of arriving bytes into whole lines.
#[derive(Debug, Default)]
pub struct WireLines {
    pending: Vec<u8>,
}

impl WireLines {
    /// Adds the bytes that arrived and returns the messages that are complete; a line that is not a
    /// message is skipped.
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

/// Returns one message as a line.
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
            SupervisorReport::Stopped { resumed: true },
            SupervisorReport::Exited { code: Some(3), signal: None },
            SupervisorReport::Gone { leaked: 2, survivors: 0 },
        ];
        let bytes: Vec<u8> = sent.iter().flat_map(line).collect();
        for split in 0..bytes.len() {
            let mut lines = WireLines::default();
            let mut heard: Vec<SupervisorReport> = lines.push(&bytes[..split]);
            heard.extend(lines.push::<SupervisorReport>(&bytes[split..]));
            assert_eq!(heard, sent);
        }
    }

    #[test]
    fn an_endless_line_does_not_grow_the_buffer() {
        let mut lines = WireLines::default();
        for _ in 0..100 {
            assert!(lines.push::<SupervisorReport>(&[b'x'; 4096]).is_empty());
            assert!(lines.pending.len() <= LINE_BYTES_MAX);
        }
    }
}
