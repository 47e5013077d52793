//! What is asked of an agent, and the process that asks it.

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

/// One question to an agent, in the words of the engine.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    pub prompt: &'a str,
    pub cwd: &'a Utf8Path,
    pub model: Option<&'a str>,
    pub effort: Option<&'a str>,
    /// Extra flags of the configuration; they come last, so that they win.
    pub args: &'a [String],
    pub schema: Option<Schema<'a>>,
    /// The session to go on with; a new one without it.
    pub session: Option<&'a str>,
    /// What was said in it, for an agent whose server does not keep it.
    pub earlier: &'a [Exchange],
    pub access: Access,
    pub allowed_tools: &'a [String],
    pub network: Network,
    pub sandbox: Sandbox,
    pub max_usd: Option<f64>,
    pub disallowed_tools: &'a [String],
    pub max_turns: Option<u32>,
    /// Added to what the agent tells its model by itself.
    pub system_prompt: Option<&'a str>,
    pub mcp_servers: &'a [McpServer],
    /// Offer the agent to read and write files through us, where its protocol has that.
    pub fs: bool,
}

impl<'a> Ask<'a> {
    /// A question with nothing but its prompt: a new session that may edit files.
    pub fn new(prompt: &'a str, cwd: &'a Utf8Path) -> Self {
        Ask {
            prompt,
            cwd,
            model: None,
            effort: None,
            args: &[],
            schema: None,
            session: None,
            earlier: &[],
            access: Access::Edit,
            allowed_tools: &[],
            network: Network::On,
            sandbox: Sandbox::None,
            max_usd: None,
            disallowed_tools: &[],
            max_turns: None,
            system_prompt: None,
            mcp_servers: &[],
            fs: false,
        }
    }

    /// For a program that has no other place for what is added to every prompt.
    pub(crate) fn whole_prompt(&self) -> String {
        match self.system_prompt {
            Some(first) => format!("{}\n\n{}", first.trim_end(), self.prompt),
            None => self.prompt.to_owned(),
        }
    }
}

/// A prompt and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    pub prompt: String,
    pub answer: String,
}

/// A server of tools the agent is to start or to reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    pub name: String,
    pub transport: Transport,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    Stdio { command: String, args: Vec<String>, env: Vec<(String, String)> },
    Http { url: String },
}

/// The JSON Schema the answer must satisfy, as text and as the file that holds it.
#[derive(Debug, Clone, Copy)]
pub struct Schema<'a> {
    pub path: &'a Utf8Path,
    pub json: &'a str,
}

/// What the agent itself lets its model do. Our sandbox holds whatever is said here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Look, change nothing: reviewers and planners.
    Read,
    /// Edit in the worktree, run the allowed tools.
    Edit,
    /// No questions asked (`unsafe` in the configuration).
    Unsafe,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    On,
    Off,
}

/// Whether the process will run inside a sandbox of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sandbox {
    Ours,
    None,
}

/// A process for the host to run.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchPlan {
    pub program: Program,
    pub args: Vec<String>,
    /// Defaults of the agent; the configuration's own `env` goes over them.
    pub env: Vec<(String, String)>,
    pub stdin: Stdin,
    /// Files to be written before the start: path and content.
    pub files: Vec<(Utf8PathBuf, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stdin {
    /// This and then end of file.
    Whole(Vec<u8>),
    /// Open for what the conversation says.
    Open,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// An executable's name, looked up in PATH, or its path.
    Named(String),
    /// The running binary itself.
    Own,
}
