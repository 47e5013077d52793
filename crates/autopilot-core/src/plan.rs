//! Plans: the tasks that a planner proposes, and the rules that they must keep.
//!
//! A plan is an agent's word. [`check()`] finds every fault of a plan in a single pass, so that one
//! repair prompt can name them all; the order, the batches and the ready set are always our own.

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

pub use body::{PlanGuidance, TaskBody, body};
pub use check::check;
pub(crate) use check::{folded, is_of_a_run};
pub use difference::difference;
pub use fault::{FAULTS_MAX, NOTES_MAX, PlanFault};
pub(crate) use fault::{Notes, PlanFaults, listed, shown};
pub use overlap::overlap;

/// The directory for the tasks of a plan, as a planner names it.
pub const TASKS_DIR: &str = ".autopilot/plan/tasks";

/// The longest goal of a task; more text needs a plan of its own.
pub const GOAL_BYTES_MAX: usize = 64 * 1024;
/// The longest acceptance criterion.
pub const CRITERION_BYTES_MAX: usize = 8 * 1024;
/// The number of acceptance criteria of one task.
pub const CRITERIA_MAX: usize = 200;
/// The number of allowed paths of one task.
pub const PATHS_MAX: usize = 200;
/// The longest validation command.
pub const COMMAND_BYTES_MAX: usize = 4 * 1024;
/// The number of skills, servers or sub-agents suggested for one task.
pub const SUGGESTIONS_MAX: usize = 50;
/// The longest summary, scope notes or risks of a plan.
pub const PLAN_TEXT_BYTES_MAX: usize = 64 * 1024;
/// The longest test plan.
pub const TEST_PLAN_BYTES_MAX: usize = 256 * 1024;

/// The planner's answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The plan in a few sentences.
    pub plan_summary: String,
    /// The directory for the tasks; ours is used in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks_dir: Option<String>,
    pub tasks: Vec<PlanTask>,
    /// The dependencies once more, as edges.
    #[serde(default)]
    pub edges: Vec<PlanEdge>,
    /// The planner's order of the tasks, which is compared with ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topo_order: Option<Vec<String>>,
    /// The planner's batches, which are compared with ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_batches: Option<Vec<Vec<String>>>,
    /// The tasks that the planner takes for ready, which are compared with ours.
    #[serde(default)]
    pub initial_ready_tasks: Vec<String>,
    #[serde(default)]
    pub scope_notes: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risks: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_plan: Option<String>,
}

/// One task of a plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanTask {
    pub id: String,
    pub title: String,
    pub goal: String,
    pub acceptance_criteria: Vec<String>,
    /// The paths that the task may change; empty for all of the plan's.
    #[serde(default)]
    pub allowed_paths: Vec<String>,
    /// Commands that validate the task, in place of the configured ones.
    #[serde(default)]
    pub validation_commands: ValidationCommands,
    /// The ids of the tasks that must be done before.
    pub depends_on: Vec<String>,
    /// The priority among tasks that could begin; higher ones begin sooner.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// Whether the task is too large for one agent, and is divided by its own plan when its turn
    /// comes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub expand: bool,
    #[serde(default)]
    pub suggested_claude_skills: Vec<String>,
    #[serde(default)]
    pub suggested_mcp_servers: Vec<String>,
    /// The suggested sub-agents, each a name or an object that describes it.
    #[serde(default)]
    pub suggested_subagents: Vec<serde_json::Value>,
}

fn is_zero(n: &i32) -> bool {
    *n == 0
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The validation commands of one task.
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
    /// The commands that are not blank, with their keys.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [("tests", &self.tests), ("lint", &self.lint), ("format", &self.format), ("uat", &self.uat)]
            .into_iter()
            .filter_map(|(key, command)| Some((key, command.as_deref()?)))
            .filter(|(_, command)| !command.trim().is_empty())
    }
}

/// A dependency: `from` must be done before `to`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanEdge {
    pub from: String,
    pub to: String,
    #[serde(default)]
    pub reason: String,
}

/// The rules that a plan must keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRules {
    pub tasks_max: usize,
    /// The number of tasks in the longest chain.
    pub depth_max: usize,
    /// The number of tasks that depend directly on the same one.
    pub fan_out_max: usize,
    /// The paths that the plan as a whole may change; empty for all.
    pub allowed_paths: Vec<String>,
    pub deny_paths: Vec<String>,
    /// Whether a plan may bring its own validation commands.
    pub commands_allowed: bool,
    /// Whether tasks with overlapping paths are done one after the other.
    pub serialize_overlapping: bool,
    /// The names of the tasks that the run already has, each with a word for its state.
    pub taken: BTreeMap<String, String>,
}

impl PlanRules {
    /// The rules of a run. `plan` is the specification that the person wrote.
    pub fn of(config: &Config, plan: &TaskSpec, taken: BTreeMap<String, String>) -> PlanRules {
        let denied = config.safety.deny_paths.iter().chain(&plan.deny_paths);
        PlanRules {
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

/// The names that a further plan may not use, each with a word for its state.
pub fn taken(state: &State) -> BTreeMap<String, String> {
    state.tasks.iter().map(|task| (task.name().to_owned(), task_word(task).to_owned())).collect()
}

/// A plan without faults, ready to be worked on.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedPlan {
    /// The tasks, each after all those it depends on; otherwise in the planner's order.
    pub tasks: Vec<PlannedTask>,
    /// The sets of tasks that could be done at the same time, one set after the other.
    pub batches: Vec<Vec<String>>,
    /// The tasks that depend on nothing.
    pub ready: Vec<String>,
    /// Remarks for a person: commands that the plan brings, paths that overlap, faults of the
    /// planner's own order.
    pub notes: Vec<String>,
}

/// One task of a checked plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTask {
    /// The task, with its allowed paths cut to those of the whole plan.
    pub task: PlanTask,
    /// The length of the longest chain of tasks that wait for this one, itself included.
    pub urgency: u32,
}
