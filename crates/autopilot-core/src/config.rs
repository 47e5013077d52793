//! `.autopilot/config.yml`: its shape, its defaults and what is wrong with it.
//!
//! A configuration is read once, checked whole and pinned to the run by its digest. Every fault is
//! found in one pass and names its line, its column and what to write instead.

mod adapter;
pub mod amend;
mod fault;
pub mod nearest;
mod price;
mod read;
mod secret;
mod template;
#[cfg(test)]
mod tests;
mod text;
pub mod yaml;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::step::Step;
use serde::{Deserialize, Serialize};

pub use crate::step::Role;
pub use adapter::{AGENT_NAME_CHARS_MAX, AGENTS_MAX, By, Options, UnknownAdapter};
pub use fault::{Fault, Faults, Place, Warning};
pub use price::Price;
pub use template::template;
pub use text::{duration, path_fault};

/// A larger file is no configuration.
pub const CONFIG_BYTES_MAX: usize = 256 * 1024;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    pub database: String,
    pub repo: Repo,
    pub commands: Commands,
    pub orchestrator: Orchestrator,
    #[serde(default)]
    pub plan: Plan,
    #[serde(rename = "loop")]
    pub rounds: Rounds,
    pub safety: Safety,
    pub builder: Agent,
    pub reviewer: Agent,
    pub planner: Agent,
    /// Agents by names of the user's own, for goals and the steps of workflows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, Agent>,
    pub gates: Gates,
    pub budget: Budget,
    pub sandbox: Sandbox,
    pub worktrees: Worktrees,
    pub integration: Integration,
    pub git: Git,
    pub github: Github,
    pub board: Board,
    pub phases: Phases,
    pub notify: Notify,
    pub logging: Logging,
    /// What a million tokens of a model cost, for agents that tell tokens and no money.
    #[serde(default)]
    pub prices: BTreeMap<String, Price>,
}

impl Config {
    pub fn parse(text: &str) -> Result<(Config, Vec<Warning>), Faults> {
        read::read(text)
    }

    /// The same settings have the same digest however the file is written.
    pub fn digest(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_else(|error| error.to_string());
        crate::fingerprint::sha256_hex(text.as_bytes())
    }

    pub fn agent(&self, role: Role) -> &Agent {
        match role {
            Role::Builder => &self.builder,
            Role::Reviewer => &self.reviewer,
            Role::Planner => &self.planner,
        }
    }

    pub fn agent_mut(&mut self, role: Role) -> &mut Agent {
        match role {
            Role::Builder => &mut self.builder,
            Role::Reviewer => &mut self.reviewer,
            Role::Planner => &mut self.planner,
        }
    }

    /// The agents that can do the work of a role, in order of preference; never empty.
    pub fn candidates(&self, role: Role) -> impl Iterator<Item = &Agent> {
        self.agent(role).candidates()
    }

    /// The agent of a lane; the preferred one where the list has become shorter meanwhile.
    pub fn candidate(&self, role: Role, lane: u32) -> &Agent {
        self.agent(role).candidate(lane)
    }

    /// Every agent there is, whoever uses it.
    pub fn all_agents(&self) -> impl Iterator<Item = &Agent> {
        [&self.builder, &self.reviewer, &self.planner]
            .into_iter()
            .chain(self.agents.values())
            .flat_map(Agent::candidates)
    }

    pub fn price(&self, model: &str) -> Option<Price> {
        self.prices.get(model).copied()
    }

    /// How long a step may take: its own setting, else its agent's `timeout_sec`, else the setting
    /// of the step whose limits it takes, else the default of that step.
    pub fn timeout(&self, step: Step) -> Duration {
        self.timeout_in(step, 0)
    }

    /// The same for the agent of a lane.
    pub fn timeout_in(&self, step: Step, lane: u32) -> Duration {
        self.timeout_by(step, step.role().map(|role| self.candidate(role, lane)))
    }

    /// The same for whoever does it.
    pub fn timeout_by(&self, step: Step, agent: Option<&Agent>) -> Duration {
        let given = |step: Step| self.rounds.step_timeouts_sec.get(step.row().runs_as).copied();
        let of_agent = || agent.and_then(|agent| agent.timeout_sec);
        let usual = step.limits();
        let seconds = given(step)
            .or_else(of_agent)
            .or_else(|| given(usual.like))
            .unwrap_or(usual.timeout_sec);
        Duration::from_secs(seconds)
    }

    /// How often a step that broke (not: failed) is tried again.
    pub fn retries(&self, step: Step) -> u32 {
        let given = |step: Step| self.rounds.retries.get(step.row().runs_as).copied();
        let usual = step.limits();
        given(step).or_else(|| given(usual.like)).unwrap_or(usual.retries)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repo {
    pub base_branch: String,
    pub remote_name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commands {
    /// Empty where there are none.
    pub tests: String,
    pub lint: Option<String>,
    pub format: Option<String>,
    pub uat: Option<String>,
    /// Where executable acceptance tests may be written; none means nowhere.
    pub uat_dir: Option<String>,
}

impl Commands {
    /// Without them nothing can be proven.
    pub fn has_tests(&self) -> bool {
        !self.tests.trim().is_empty()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Orchestrator {
    pub max_workers: u32,
    /// Tasks that both declare allowed paths which overlap are done one after the other.
    pub serialize_overlapping: bool,
    /// With less free, no further worker starts beside those that run.
    pub min_free_memory_mb: u64,
    pub min_free_disk_mb: u64,
}

impl Default for Orchestrator {
    fn default() -> Self {
        Orchestrator {
            max_workers: 3,
            serialize_overlapping: true,
            min_free_memory_mb: 512,
            min_free_disk_mb: 512,
        }
    }
}

/// What a planner may propose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    pub max_tasks: u32,
    /// Tasks in the longest chain.
    pub max_depth: u32,
    /// Tasks that wait directly for the same one.
    pub max_fan_out: u32,
    /// May it bring validation commands of its own.
    pub commands: bool,
    /// The acceptance command proves each task and not only the whole.
    pub task_uat: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            max_tasks: 10_000,
            max_depth: 1_000,
            max_fan_out: 1_000,
            commands: false,
            task_uat: true,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rounds {
    pub max_iterations: u32,
    pub diff_line_cap: u64,
    pub stuck_no_output_sec: u64,
    pub stuck_waiting_sec: u64,
    /// Only what the file gives; [`Config::timeout`] knows the rest.
    pub step_timeouts_sec: BTreeMap<String, u64>,
    /// Only what the file gives; [`Config::retries`] knows the rest.
    pub retries: BTreeMap<String, u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Safety {
    pub deny_paths: Vec<String>,
    pub forbid_todos: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    ClaudeCodeCli,
    CodexCli,
    Acp,
    Command,
    OpenaiApi,
    Script,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Agent {
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
    pub max_usd: Option<f64>,
    pub schema_path: Option<String>,
    pub allowed_tools: Vec<String>,
    pub skill_policy: SkillPolicy,
    /// May the agent's tools use the network.
    pub network: bool,
    /// Who does the work while this one can't; they have none themselves.
    #[serde(default)]
    pub fallback: Vec<Agent>,
    /// Where the agent's model is asked, instead of its vendor's own address.
    #[serde(default)]
    pub base_url: Option<String>,
    /// The environment variable that holds the key, if the file names one; the key itself is
    /// nowhere in a file.
    #[serde(default)]
    pub api_key_env: Option<String>,
    #[serde(default)]
    pub api: Api,
    #[serde(default)]
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// Added to the agent's own.
    #[serde(default)]
    pub system_prompt: Option<String>,
    #[serde(default)]
    pub max_turns: Option<u32>,
    #[serde(default)]
    pub disallowed_tools: Vec<String>,
    /// Without the agent's own permission checks; our sandbox stays.
    #[serde(default)]
    pub r#unsafe: bool,
    /// Offers an acp agent our file system in place of its own.
    #[serde(default)]
    pub fs: bool,
}

/// Where the key for the vendor's own address is, unless the configuration names another variable.
pub const API_KEY_ENV: &str = "OPENAI_API_KEY";
/// More agents than this for one role are no plan but a mistake.
pub const FALLBACK_MAX: usize = 8;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// Responses, and Chat Completions where the server knows no Responses.
    #[default]
    Auto,
    Responses,
    Chat,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum McpServer {
    /// Words as in a command line, without a shell; `args` come after them.
    Command {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
    },
    Url {
        url: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillPolicy {
    pub detect_skills: bool,
    pub allow_upscale: bool,
    pub use_mcp: bool,
    pub max_subagents: u32,
    pub require_skill_plan: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gates {
    pub review: ReviewGate,
    pub proof: ProofGate,
    pub human: HumanGate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewGate {
    Required,
    Evidence,
    Advisory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofGate {
    Off,
    RedGreen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HumanGate {
    None,
    Deferred,
    Three,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    pub max_usd: Option<f64>,
    pub max_usd_per_task: Option<f64>,
    pub max_wall: Option<Duration>,
    pub max_wait_quota: Duration,
    pub retries: u32,
    pub interruptions: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    pub mode: SandboxMode,
    pub write: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    Auto,
    Landlock,
    Bwrap,
    Off,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktrees {
    pub keep: Keep,
    pub copy: Vec<String>,
    pub setup: Option<String>,
    pub ports: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Integration {
    pub revalidate: bool,
    pub batch: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Git {
    pub filters: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Github {
    pub enabled: bool,
    pub open_pr: bool,
    pub pr_title_prefix: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Board {
    pub parallel_subtasks: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    pub verify_min_sec: u64,
    pub version_bump: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notify {
    pub bell: bool,
    pub desktop: bool,
    pub command: Option<String>,
    pub webhook: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logging {
    pub redact_patterns: Vec<String>,
    /// Bytes kept of the output of one attempt.
    pub output_bytes_max: u64,
    /// Bytes of one part of a prompt.
    pub prompt_bytes_max: u64,
    /// Last lines of an output that go into prompts.
    pub tail_lines_max: u32,
    /// Keeps what replaying a run needs.
    #[serde(default = "yes")]
    pub record: bool,
}

fn yes() -> bool {
    true
}
