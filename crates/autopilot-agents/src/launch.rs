//! The question to an agent, and the process that asks it.

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::answer;

/// One question to an agent, in the words of the engine.
#[derive(Debug, Clone, Default)]
pub struct LaunchRequest {
    /// The text of the question.
    pub prompt: String,
    /// The directory in which the agent works.
    pub cwd: Utf8PathBuf,
    /// The model to use; `None` leaves the agent's default.
    pub model: Option<String>,
    /// How hard the model thinks, in the vendor's word.
    pub effort: Option<String>,
    /// Extra flags from the configuration; they come last, so that they win.
    pub args: Vec<String>,
    /// The schema that the answer must satisfy.
    pub schema: Option<LaunchSchema>,
    /// The id of the session to resume; `None` starts a new one.
    pub session: Option<String>,
    /// The earlier exchanges of the session, for an agent whose server does not keep them.
    pub earlier: Vec<Exchange>,
    /// How far the agent may change files.
    pub access: Access,
    /// The tools that need no permission.
    pub allowed_tools: Vec<String>,
    pub network: Network,
    pub sandbox: LaunchSandbox,
    /// The most money that this launch may cost.
    pub max_usd: Option<f64>,
    /// The tools that are refused.
    pub disallowed_tools: Vec<String>,
    /// The most turns that the agent may take.
    pub max_turns: Option<u32>,
    /// The text that is added to the agent's own system prompt.
    pub system_prompt: Option<String>,
    /// The MCP servers that the agent gets.
    pub mcp_servers: Vec<LaunchServer>,
    /// Whether the agent may read and write files through us, where its protocol has that.
    pub fs: bool,
}

impl LaunchRequest {
    /// A question with nothing but its prompt: a new session that may edit files.
    pub fn new(prompt: &str, cwd: &Utf8Path) -> Self {
        LaunchRequest { prompt: prompt.to_owned(), cwd: cwd.to_owned(), ..Self::default() }
    }

    /// The prompt for a program that takes no separate system prompt.
    pub(crate) fn whole_prompt(&self) -> String {
        match &self.system_prompt {
            Some(first) => format!("{}\n\n{}", first.trim_end(), self.prompt),
            None => self.prompt.clone(),
        }
    }
}

/// A prompt and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    pub prompt: String,
    pub answer: String,
}

/// An MCP server that the agent is to start or to reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchServer {
    /// The name under which the agent offers the server's tools.
    pub name: String,
    pub transport: Transport,
}

/// How an agent reaches an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// The agent starts the server and talks over its stdin and stdout.
    Stdio { command: String, args: Vec<String>, env: Vec<(String, String)> },
    /// The server already runs elsewhere.
    Http { url: String },
}

/// The JSON Schema the answer must satisfy, as text and as the file that holds it.
#[derive(Debug, Clone)]
pub struct LaunchSchema {
    pub path: Utf8PathBuf,
    pub json: String,
}

impl LaunchSchema {
    /// The schema in the form that vendors enforce; `None` if its text is not JSON.
    pub(crate) fn strict(&self) -> Option<serde_json::Value> {
        Some(answer::strict_form(&serde_json::from_str(&self.json).ok()?))
    }
}

/// The permissions inside the agent. Our sandbox holds whatever is said here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// Read files and change nothing: reviewers and planners.
    Read,
    /// Edit in the worktree and run the allowed tools.
    #[default]
    Edit,
    /// Do everything without asking (`unsafe` in the configuration).
    Unsafe,
}

/// Whether the agent's own tools may use the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Network {
    #[default]
    On,
    Off,
}

/// Whether the process will run inside a sandbox of ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LaunchSandbox {
    Ours,
    #[default]
    None,
}

/// A process for the host to run.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchPlan {
    pub program: LaunchProgram,
    pub args: Vec<String>,
    /// The defaults of the agent; the configuration's own `env` overrides them.
    pub env: Vec<(String, String)>,
    pub stdin: LaunchStdin,
    /// Files to be written before the start: path and content.
    pub files: Vec<(Utf8PathBuf, String)>,
}

impl LaunchPlan {
    /// A process without variables or files of its own.
    pub(crate) fn new(program: LaunchProgram, args: Vec<String>, stdin: LaunchStdin) -> Self {
        LaunchPlan { program, args, env: Vec::new(), stdin, files: Vec::new() }
    }
}

/// The content of a process's stdin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchStdin {
    /// The given bytes and then the end of the file.
    Whole(Vec<u8>),
    /// Open for the lines of the conversation.
    Open,
}

/// The executable of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchProgram {
    /// An executable's name, looked up in PATH, or its path.
    Named(String),
    /// The running binary itself.
    Own,
}
