//! Workflows: the steps that an agent proposes for a goal, the result of each step, and the
//! judgement on whether the goal is met.
//!
//! A workflow is an agent's word. [`check()`] finds every fault of a workflow in a single pass, so
//! that one repair prompt can name them all; the order is always our own.

mod carry;
mod check;
mod completion;
mod member;
mod past;
mod prompt;
mod result;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::task_file::id::ID_CHARS_MAX;

pub use crate::plan::PlanFault;
pub use carry::carry_summary;
pub use check::check;
pub use completion::{Assessed, Completion, assess, salvage};
pub use past::{PastStep, StepBody, has_newer_needs, past_steps};
pub use prompt::{
    CompletionPrompt, OUTPUT_BYTES_MAX, OUTPUTS_BYTES_MAX, StepPrompt, WorkflowPrompt,
    completion_prompt, step_continued, step_prompt, workflow_prompt,
};
pub use result::{StepResult, StepStatus, StepUsage, dependencies};

/// The only version of the format.
pub const VERSION: u32 = 1;
/// The only type of step.
pub const STEP_KIND: &str = "agent.run";
/// The number of steps of a workflow.
pub const STEPS_MAX: usize = 8;
/// The number of steps of a workflow that the reviewer proposes.
pub const NEXT_STEPS_MAX: usize = 6;
/// The longest time limit of a step.
pub const TIMEOUT_SEC_MAX: u64 = 24 * 60 * 60;
/// The longest id of a step: with the iteration's number appended, it still is a task's name.
pub const STEP_ID_CHARS_MAX: usize = ID_CHARS_MAX - "-i99999".len();

/// The steps to be done for a goal, as an agent gave them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workflow {
    /// Always [`VERSION`].
    pub version: u32,
    pub id: String,
    pub steps: Vec<WorkflowStep>,
}

/// One step of a workflow, which one agent does in one session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowStep {
    pub id: String,
    /// The prompt of the step, starting with the skill to use.
    pub goal: String,
    /// The ids of the steps whose output this one needs.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// The type of the step; [`STEP_KIND`] or nothing.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The name of the agent that does the step, if it is not the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<String>,
    /// The model, in place of the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_sec: Option<u64>,
}

impl WorkflowStep {
    /// A title for the step: the first line of its goal after the sentence that names the skill.
    pub fn title(&self) -> &str {
        let goal = self.goal.trim();
        let after = goal.split_once("skill.").and_then(|(before, after)| {
            let is_first = !before.contains(['\n', '.']);
            let asks = is_first && !crate::skill::asked(&format!("{before}skill.")).is_empty();
            Some(after.trim()).filter(|after| asks && !after.is_empty())
        });
        after.unwrap_or(goal).lines().next().unwrap_or_default().trim()
    }
}

/// The rules that a workflow must keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowRules {
    pub steps_max: usize,
    pub timeout_sec_max: u64,
    /// The names that a step may give as its adapter.
    pub adapters: BTreeSet<String>,
    /// The names of agents that can't do a step here, each with the reason.
    pub unusable: BTreeMap<String, String>,
    /// The known prices, if money is limited.
    pub prices: Option<Prices>,
}

/// The knowledge of prices. A limit on money holds only where the cost of a step can be known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices {
    /// The adapters that report no cost, and whether the default model of each has a price.
    pub asked_of: BTreeMap<String, bool>,
    /// The models that have a price.
    pub models: BTreeSet<String>,
    /// The adapter of a step that names none.
    pub usual: String,
}

impl WorkflowRules {
    /// The default rules, with these adapters.
    pub fn new<A: Into<String>>(adapters: impl IntoIterator<Item = A>) -> WorkflowRules {
        WorkflowRules {
            steps_max: STEPS_MAX,
            timeout_sec_max: TIMEOUT_SEC_MAX,
            adapters: adapters.into_iter().map(Into::into).collect(),
            unusable: BTreeMap::new(),
            prices: None,
        }
    }

    /// The rules for the workflow that comes with a "not done".
    #[must_use]
    pub fn of_next(&self) -> WorkflowRules {
        WorkflowRules { steps_max: self.steps_max.min(NEXT_STEPS_MAX), ..self.clone() }
    }
}

/// A workflow without faults, ready to be worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedWorkflow {
    pub workflow: Workflow,
    /// The places of the steps, each after all those it depends on; otherwise in the given order.
    pub order: Vec<usize>,
    /// The length of the longest chain of steps that wait for each step, itself included, by place.
    pub urgency: Vec<u32>,
    /// Remarks on members that were not used or not understood.
    pub warnings: Vec<String>,
}

/// The name of a step among the tasks of a run: a later workflow may use the same ids.
pub fn task_name(step: &str, iteration: u32) -> String {
    if iteration <= 1 { step.to_owned() } else { format!("{step}-i{iteration}") }
}
