//! Plans: the tasks a planner proposes, the rules they must keep, and what becomes of them.
//!
//! A plan is an agent's word. [`check`] finds everything that is wrong with one in a single pass,
//! so that one repair prompt can name it all; order, batches and the ready set are always our own.

mod body;
mod check;
mod difference;
mod fault;
mod order;
mod overlap;
mod place;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::flow::task_word;
use crate::state::State;
use crate::task_file::TaskSpec;

pub use body::{Guidance, TaskBody, body};
pub use check::check;
pub(crate) use check::{folded, is_of_a_run};
pub use difference::difference;
pub use fault::{FAULTS_MAX, Fault, NOTES_MAX};
pub(crate) use fault::{Faults, Notes, listed, shown};
pub use overlap::overlap;

/// Where the tasks of a plan are written, as a planner names it.
pub const TASKS_DIR: &str = ".autopilot/plan/tasks";

/// Bytes of a goal; what needs more is a plan of its own.
pub const GOAL_BYTES_MAX: usize = 64 * 1024;
pub const CRITERION_BYTES_MAX: usize = 8 * 1024;
pub const CRITERIA_MAX: usize = 200;
pub const PATHS_MAX: usize = 200;
pub const COMMAND_BYTES_MAX: usize = 4 * 1024;
/// Skills, servers or sub-agents suggested for one task.
pub const SUGGESTIONS_MAX: usize = 50;
/// Bytes of the summary, the scope notes and the risks.
pub const PLAN_TEXT_BYTES_MAX: usize = 64 * 1024;
pub const TEST_PLAN_BYTES_MAX: usize = 256 * 1024;

/// The planner's answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub plan_summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks_dir: Option<String>,
    pub tasks: Vec<PlanTask>,
    #[serde(default)]
    pub edges: Vec<Edge>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topo_order: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_batches: Option<Vec<Vec<String>>>,
    #[serde(default)]
    pub initial_ready_tasks: Vec<String>,
    #[serde(default)]
    pub scope_notes: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risks: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_plan: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanTask {
    pub id: String,
    pub title: String,
    pub goal: String,
    pub acceptance_criteria: Vec<String>,
    #[serde(default)]
    pub allowed_paths: Vec<String>,
    #[serde(default)]
    pub validation_commands: ValidationCommands,
    pub depends_on: Vec<String>,
    /// The higher, the sooner among those that could begin.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// Too large for one agent: divided by a plan of its own when its turn comes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub expand: bool,
    #[serde(default)]
    pub suggested_claude_skills: Vec<String>,
    #[serde(default)]
    pub suggested_mcp_servers: Vec<String>,
    /// A name, or an object with more about it.
    #[serde(default)]
    pub suggested_subagents: Vec<serde_json::Value>,
}

fn is_zero(n: &i32) -> bool {
    *n == 0
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidationCommands {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uat: Option<String>,
}

impl ValidationCommands {
    /// Those that say anything.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [("tests", &self.tests), ("lint", &self.lint), ("format", &self.format), ("uat", &self.uat)]
            .into_iter()
            .filter_map(|(key, command)| Some((key, command.as_deref()?)))
            .filter(|(_, command)| !command.trim().is_empty())
    }
}

/// `from` blocks `to`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    pub from: String,
    pub to: String,
    #[serde(default)]
    pub reason: String,
}

/// What a plan must keep to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    pub tasks_max: usize,
    /// Tasks in the longest chain.
    pub depth_max: usize,
    /// Tasks that wait directly for the same one.
    pub fan_out_max: usize,
    /// Where the plan as a whole may change anything; empty for everywhere.
    pub allowed_paths: Vec<String>,
    pub deny_paths: Vec<String>,
    /// May a planner bring commands of its own.
    pub commands_allowed: bool,
    /// Tasks with overlapping paths are done one after the other.
    pub serialize_overlapping: bool,
    /// Names of the tasks the run already has, and a word on the state of each.
    pub taken: BTreeMap<String, String>,
}

impl Rules {
    /// `plan` is what the person wrote.
    pub fn of(config: &Config, plan: &TaskSpec, taken: BTreeMap<String, String>) -> Rules {
        let denied = config.safety.deny_paths.iter().chain(&plan.deny_paths);
        Rules {
            tasks_max: config.plan.max_tasks as usize,
            depth_max: config.plan.max_depth as usize,
            fan_out_max: config.plan.max_fan_out as usize,
            allowed_paths: plan.allowed_paths.clone(),
            deny_paths: denied.cloned().collect(),
            commands_allowed: config.plan.commands,
            serialize_overlapping: config.orchestrator.serialize_overlapping,
            taken,
        }
    }
}

/// The names a further plan may not use, each with its state.
pub fn taken(state: &State) -> BTreeMap<String, String> {
    state.tasks.iter().map(|task| (task.name().to_owned(), task_word(task).to_owned())).collect()
}

/// A plan that can be worked.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// Each after all it depends on; otherwise as the planner listed them.
    pub tasks: Vec<PlannedTask>,
    /// What could be done at the same time, one set after the other.
    pub batches: Vec<Vec<String>>,
    pub ready: Vec<String>,
    /// What a person should know: commands it brings, paths that overlap, where the planner's own
    /// order was wrong.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTask {
    /// With its allowed paths inside those of the whole plan.
    pub task: PlanTask,
    /// How many tasks in a row wait for it, itself included.
    pub urgency: u32,
}
