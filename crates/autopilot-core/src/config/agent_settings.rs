//! The settings of one agent: its kind, how it is started and what it may do.

use std::collections::BTreeMap;

use crate::rows::rows;
use serde::{Deserialize, Serialize};

rows! {
/// The kind of program behind an agent, and the word that `mode:` and the files have for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
Mode -> &'static str {
    #[default]
    ClaudeCodeCli: "claude_code_cli",
    CodexCli: "codex_cli",
    Acp: "acp",
    Command: "command",
    OpenaiApi: "openai_api",
    Script: "script",
}}

impl Mode {
    /// The word in a configuration.
    pub fn word(self) -> &'static str {
        self.row()
    }

    /// The mode with this word.
    pub fn of(word: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.word() == word)
    }
}

/// One agent and its settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentConfig {
    pub mode: Mode,
    pub command: Option<String>,
    pub script: Option<String>,
    pub model: Option<String>,
    pub effort: Option<String>,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub env_pass: Vec<String>,
    pub executable: Option<String>,
    pub timeout_sec: Option<u64>,
    /// The most money that one attempt may cost.
    pub max_usd: Option<f64>,
    pub schema_path: Option<String>,
    pub allowed_tools: Vec<String>,
    pub skill_policy: SkillPolicy,
    /// Whether the agent's tools may use the network.
    pub network: bool,
    /// The agents that do the work while this one can't; they have no fallbacks themselves.
    #[serde(default)]
    pub fallback: Vec<AgentConfig>,
    /// The address of the model, in place of the vendor's own.
    #[serde(default)]
    pub base_url: Option<String>,
    /// The name of the environment variable that holds the key; the key itself is in no file.
    #[serde(default)]
    pub api_key_env: Option<String>,
    #[serde(default)]
    pub api: Api,
    #[serde(default)]
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// The text that is added to the agent's own system prompt.
    #[serde(default)]
    pub system_prompt: Option<String>,
    #[serde(default)]
    pub max_turns: Option<u32>,
    #[serde(default)]
    pub disallowed_tools: Vec<String>,
    /// Whether the agent's own permission checks are switched off; our sandbox stays.
    #[serde(default)]
    pub r#unsafe: bool,
    /// Whether an `acp` agent reads and writes files through us.
    #[serde(default)]
    pub fs: bool,
    /// Whether a builder continues its session when it tries again or repairs.
    #[serde(default, skip_serializing_if = "SessionPolicy::is_default")]
    pub session: SessionPolicy,
}

/// The variable of the key for the vendor's own address, unless the configuration names another.
pub const API_KEY_ENV: &str = "OPENAI_API_KEY";
/// The number of fallbacks of one agent; more are a mistake.
pub const FALLBACK_MAX: usize = 8;

rows! {
/// The session in which a builder tries again or repairs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
SessionPolicy -> &'static str {
    /// The one it had, as long as it can be resumed.
    #[default]
    Continue: "continue",
    /// A new one.
    Fresh: "fresh",
}}

impl SessionPolicy {
    fn is_default(&self) -> bool {
        *self == SessionPolicy::default()
    }
}

rows! {
/// The APIs of OpenAI-compatible servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
Api -> &'static str {
    /// Responses, or Chat Completions if the server does not know Responses.
    #[default]
    Auto: "auto",
    Responses: "responses",
    Chat: "chat",
}}

/// An MCP server that an agent gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum McpServer {
    /// A server that the agent starts, without a shell: the words of `command`, then `args`.
    Command {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
    },
    Url {
        url: String,
    },
}

/// The rules on skills, MCP servers and sub-agents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillPolicy {
    pub detect_skills: bool,
    pub allow_upscale: bool,
    pub use_mcp: bool,
    pub max_subagents: u32,
    pub require_skill_plan: bool,
}
