//! `.autopilot/config.yml`: its shape, its defaults and its faults.
//!
//! A configuration is read once, checked whole and pinned to the run by its digest. Every fault is
//! found in one pass and names its line, its column and what to write instead.

mod adapter;
mod agent_settings;
pub mod amend;
mod choice;
mod commands;
mod fault;
mod gate_home;
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

use crate::flaky::FlakyGates;
use crate::gate_order::GateOrder;
use crate::limit::{ReviewGate, YardstickChanges};
use crate::rows::rows;
use crate::step::Step;
use crate::warmth::{LastWord, WarmGates};
use serde::{Deserialize, Serialize};

pub use crate::step::Role;
pub use adapter::{AGENT_NAME_CHARS_MAX, AGENTS_MAX, KINDS, Options, UnknownAdapter, WorkBy};
pub use agent_settings::{
    API_KEY_ENV, AgentConfig, Api, FALLBACK_MAX, McpServer, Mode, SessionPolicy, SkillPolicy,
};
pub use choice::{AgentChoice, AgentPresence};
pub use commands::Commands;
pub use fault::{ConfigFault, ConfigFaults, TextPlace, Warning};
pub use price::{MoneyCheck, Price, UsageReport};
pub use secret::SecretSettings;
pub use template::template;
pub use text::{duration, path_fault};

/// The largest file that is read as a configuration.
pub const CONFIG_BYTES_MAX: usize = 256 * 1024;

/// The settings of one repository, with defaults for the keys that the file leaves out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// `sqlite` or the address of a Postgres server.
    pub database: String,
    pub repo: Repo,
    pub commands: Commands,
    pub orchestrator: Orchestrator,
    #[serde(default)]
    pub plan: PlanConfig,
    #[serde(rename = "loop")]
    pub rounds: Rounds,
    #[serde(default, skip_serializing_if = "is_usual")]
    pub uat: UatConfig,
    pub safety: Safety,
    pub builder: AgentConfig,
    pub reviewer: AgentConfig,
    pub planner: AgentConfig,
    /// The agents that the user has named, for goals and the steps of workflows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, AgentConfig>,
    pub gates: Gates,
    pub budget: Budget,
    pub sandbox: SandboxConfig,
    pub worktrees: Worktrees,
    pub integration: Integration,
    pub git: GitConfig,
    pub github: GithubConfig,
    pub board: Board,
    pub phases: Phases,
    pub notify: Notify,
    pub logging: Logging,
    #[serde(default, skip_serializing_if = "SecretSettings::is_default")]
    pub secrets: SecretSettings,
    /// The price of a million tokens by model, for agents that report tokens and no money.
    #[serde(default)]
    pub prices: BTreeMap<String, Price>,
}

impl Config {
    /// Reads a file. Faults stop it; warnings do not.
    pub fn parse(text: &str) -> Result<(Config, Vec<Warning>), ConfigFaults> {
        read::read(text)
    }

    /// The digest of the settings; equal settings have the same digest however the file is written.
    pub fn digest(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_else(|error| error.to_string());
        crate::fingerprint::sha256_hex(text.as_bytes())
    }

    /// The preferred agent of a role.
    pub fn agent(&self, role: Role) -> &AgentConfig {
        match role {
            Role::Builder => &self.builder,
            Role::Reviewer => &self.reviewer,
            Role::Planner => &self.planner,
        }
    }

    /// The preferred agent of a role, to be changed.
    pub fn agent_mut(&mut self, role: Role) -> &mut AgentConfig {
        match role {
            Role::Builder => &mut self.builder,
            Role::Reviewer => &mut self.reviewer,
            Role::Planner => &mut self.planner,
        }
    }

    /// The agents that can do the work of a role, in order of preference; never empty.
    pub fn candidates(&self, role: Role) -> impl Iterator<Item = &AgentConfig> {
        self.agent(role).candidates()
    }

    /// The agent of a lane; the preferred one if the list has become shorter meanwhile.
    pub fn candidate(&self, role: Role, lane: u32) -> &AgentConfig {
        self.agent(role).candidate(lane)
    }

    /// Every configured agent with its fallbacks.
    pub fn all_agents(&self) -> impl Iterator<Item = &AgentConfig> {
        [&self.builder, &self.reviewer, &self.planner]
            .into_iter()
            .chain(self.agents.values())
            .flat_map(AgentConfig::candidates)
    }

    /// The price of a model, if the file names one.
    pub fn price(&self, model: &str) -> Option<Price> {
        self.prices.get(model).copied()
    }

    /// The time limit of a step: its own setting, else its agent's `timeout_sec`, else the setting
    /// of the step whose limits it takes, else the default of that step.
    pub fn timeout(&self, step: Step) -> Duration {
        self.timeout_in(step, 0)
    }

    /// The time limit of a step that is done by the agent of a lane.
    pub fn timeout_in(&self, step: Step, lane: u32) -> Duration {
        self.timeout_by(step, step.role().map(|role| self.candidate(role, lane)))
    }

    /// The time limit of a step that is done by `agent`.
    pub fn timeout_by(&self, step: Step, agent: Option<&AgentConfig>) -> Duration {
        let given = |step: Step| self.rounds.step_timeouts_sec.get(step.row().runs_as).copied();
        let of_agent = || agent.and_then(|agent| agent.timeout_sec);
        let usual = step.limits();
        let seconds = given(step)
            .or_else(of_agent)
            .or_else(|| given(usual.like))
            .unwrap_or(usual.timeout_sec);
        Duration::from_secs(seconds)
    }

    /// The number of times that a step that broke (not: failed) is tried again.
    pub fn retries(&self, step: Step) -> u32 {
        let given = |step: Step| self.rounds.retries.get(step.row().runs_as).copied();
        let usual = step.limits();
        given(step).or_else(|| given(usual.like)).unwrap_or(usual.retries)
    }
}

/// The repository's branch and remote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repo {
    pub base_branch: String,
    pub remote_name: String,
}

/// The limits on parallel work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Orchestrator {
    pub max_workers: u32,
    /// Whether tasks whose declared paths overlap are done one after the other.
    pub serialize_overlapping: bool,
    /// The free memory below which no further worker starts beside those that run.
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

/// The limits on the plan that a planner may propose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanConfig {
    pub max_tasks: u32,
    /// The number of tasks in the longest chain of dependencies.
    pub max_depth: u32,
    /// The number of tasks that depend directly on the same one.
    pub max_fan_out: u32,
    /// Whether a plan may bring its own validation commands.
    pub commands: bool,
    /// Whether the acceptance command proves each task and not only the whole.
    pub task_uat: bool,
}

impl Default for PlanConfig {
    fn default() -> Self {
        PlanConfig {
            max_tasks: 10_000,
            max_depth: 1_000,
            max_fan_out: 1_000,
            commands: false,
            task_uat: true,
        }
    }
}

/// The limits on rounds and steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rounds {
    pub max_iterations: u32,
    pub diff_line_cap: u64,
    /// The seconds without any activity after which an agent counts as stuck.
    pub stuck_no_output_sec: u64,
    /// The seconds without activity that an agent may wait for its model.
    pub stuck_waiting_sec: u64,
    /// The time limits that the file gives; [`Config::timeout`] adds the defaults.
    pub step_timeouts_sec: BTreeMap<String, u64>,
    /// The retries that the file gives; [`Config::retries`] adds the defaults.
    pub retries: BTreeMap<String, u32>,
    /// Whether a change whose validation failed is reviewed too.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub review_on_red: bool,
    /// The order in which the commands of a gate start.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub gate_order: GateOrder,
}

/// The acceptance cases that a reviewer writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UatConfig {
    pub generate: GenerateCases,
}

rows! {
/// When acceptance cases are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
GenerateCases -> &'static str {
    #[default]
    Always: "always",
    /// Only where a `uat` command runs them.
    Auto: "auto",
}}

/// The rules that every change must keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Safety {
    pub deny_paths: Vec<String>,
    pub forbid_todos: bool,
}

/// The points at which a run needs consent or proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gates {
    pub review: ReviewGate,
    pub proof: ProofGate,
    pub human: HumanGate,
    /// The files of the user's home of which the home of a gate's commands has copies.
    #[serde(default = "Gates::usual_home")]
    pub home: Vec<String>,
    #[serde(default, skip_serializing_if = "is_usual")]
    pub warm: WarmGates,
    #[serde(default, skip_serializing_if = "is_usual")]
    pub last_word: LastWord,
    /// What counts when a command fails that might pass on the same tree.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub flaky: FlakyGates,
    /// The names of tests that are known to be flaky.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known_flaky: Vec<String>,
    /// Patterns of more files that decide a verdict without being the product.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yardstick: Vec<String>,
    #[serde(default, skip_serializing_if = "is_usual")]
    pub yardstick_changes: YardstickChanges,
    /// Patterns of the reports that the tests' runner writes by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<String>,
    /// A directory of tests that no agent sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdout: Option<String>,
    /// Whether the integrated change of a plan is reviewed against the plan's goal.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub whole_review: bool,
}

rows! {
/// Whether a change has to turn a failing test green.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
ProofGate -> &'static str {
    Off: "off",
    RedGreen: "red_green",
}}

rows! {
/// The points at which a person has to approve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
HumanGate -> &'static str {
    None: "none",
    /// The result waits for an approval before it leaves the repository.
    Deferred: "deferred",
    /// The plan waits for an approval too.
    Three: "three",
}}

/// The limits on money, time and retries of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    pub max_usd: Option<f64>,
    pub max_usd_per_task: Option<f64>,
    pub max_wall: Option<Duration>,
    /// The longest time to wait for an account's limit to reset.
    pub max_wait_quota: Duration,
    pub retries: u32,
    pub interruptions: u32,
}

/// The sandbox around agents and commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxConfig {
    pub mode: SandboxMode,
    pub write: Vec<String>,
    /// Sockets of other programs that agents and commands may connect to.
    #[serde(default)]
    pub sockets: Vec<String>,
    /// The network of the commands that prove a change. Agents need theirs.
    #[serde(default)]
    pub network: SandboxNetwork,
}

rows! {
/// The means by which the sandbox is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
SandboxMode -> &'static str {
    Auto: "auto",
    Landlock: "landlock",
    Bwrap: "bwrap",
    Off: "off",
}}

rows! {
/// The network that a sandbox gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
SandboxNetwork -> &'static str {
    #[default]
    Open: "open",
    /// Only a loopback interface of its own.
    Off: "off",
}}

/// The worktrees in which tasks are done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktrees {
    pub keep: KeepWorktrees,
    pub copy: Vec<String>,
    pub setup: Option<String>,
    pub ports: u32,
    /// The most bytes of new and changed files that are taken from a worktree.
    #[serde(default = "worktree_bytes_max")]
    pub bytes_max: u64,
    /// The most new and changed files that are taken from a worktree.
    #[serde(default = "worktree_files_max")]
    pub files_max: u64,
}

/// The default of `worktrees.bytes_max`.
pub(crate) fn worktree_bytes_max() -> u64 {
    2 << 30
}

/// The default of `worktrees.files_max`.
pub(crate) fn worktree_files_max() -> u64 {
    200_000
}

rows! {
/// Whether build caches (`target`, `node_modules`, `.venv`) survive from one step to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
KeepWorktrees -> &'static str {
    /// They survive for agents and not for test runs.
    Auto: "auto",
    Always: "always",
    Never: "never",
}}

/// The merging of finished tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Integration {
    /// Whether the result of a merge is tested before the branch moves.
    pub revalidate: bool,
    /// The number of tasks that are merged and tested together.
    pub batch: u32,
}

/// The settings of git.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitConfig {
    pub filters: Vec<String>,
}

/// The settings of GitHub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GithubConfig {
    pub enabled: bool,
    pub open_pr: bool,
    pub pr_title_prefix: String,
}

/// The settings of the board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Board {
    pub parallel_subtasks: bool,
}

/// The settings of phases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    pub verify_min_sec: u64,
    pub version_bump: bool,
}

/// The ways in which a person is notified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notify {
    pub bell: bool,
    pub desktop: bool,
    pub command: Option<String>,
    pub webhook: Option<String>,
}

/// The limits on logs and prompts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logging {
    pub redact_patterns: Vec<String>,
    /// The bytes of output that are kept of one attempt.
    pub output_bytes_max: u64,
    /// The bytes of one part of a prompt.
    pub prompt_bytes_max: u64,
    /// The last lines of an output that go into prompts.
    pub tail_lines_max: u32,
    /// Whether a run keeps what replaying it needs.
    #[serde(default = "yes")]
    pub record: bool,
}

fn is_usual<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn yes() -> bool {
    true
}
