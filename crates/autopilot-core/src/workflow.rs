//! Workflows: the steps an agent proposes for a goal, what became of each, and whether the goal is
//! reached.
//!
//! A workflow is an agent's word. [`check()`] finds everything that is wrong with one in a single
//! pass, so that one repair prompt can name it all; the order is always our own.

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

pub use crate::plan::Fault;
pub use carry::carry_summary;
pub use check::check;
pub use completion::{Assessed, Completion, assess, salvage};
pub use past::{Past, StepBody};
pub use prompt::{
    CompletionPrompt, OUTPUT_BYTES_MAX, OUTPUTS_BYTES_MAX, Refuted, StepPrompt, WorkflowPrompt,
    completion_prompt, step_prompt, workflow_prompt,
};
pub use result::{StepResult, StepStatus, Usage, dependencies, in_step_order};

/// The only one there is.
pub const VERSION: u32 = 1;
/// The only type of step there is.
pub const STEP_KIND: &str = "agent.run";
pub const STEPS_MAX: usize = 8;
/// Steps of a workflow that whoever checks completion proposes.
pub const NEXT_STEPS_MAX: usize = 6;
pub const TIMEOUT_SEC_MAX: u64 = 24 * 60 * 60;
/// Letters of a step's id: with the iteration behind it, it still is a task's name.
pub const STEP_ID_CHARS_MAX: usize = ID_CHARS_MAX - "-i99999".len();

/// What is to be done, as an agent gave it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workflow {
    pub version: u32,
    pub id: String,
    pub steps: Vec<WorkflowStep>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowStep {
    pub id: String,
    pub goal: String,
    #[serde(default)]
    pub depends_on: Vec<String>,
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_sec: Option<u64>,
}

impl WorkflowStep {
    /// What it is about: the first line of its goal after the sentence that names the skill.
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

/// What a workflow must keep to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    pub steps_max: usize,
    pub timeout_sec_max: u64,
    /// Names a step may give as its adapter.
    pub adapters: BTreeSet<String>,
    /// Names that mean an agent which can't do a step here, each with the reason.
    pub unusable: BTreeMap<String, String>,
    /// Where money is limited, what is known of prices.
    pub prices: Option<Prices>,
}

/// A limit on money holds only where it can be known what a step costs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices {
    /// Adapters that tell no money, and whether the model each uses by itself has a price.
    pub asked_of: BTreeMap<String, bool>,
    /// Models that have one.
    pub models: BTreeSet<String>,
    /// Who does a step that names nobody.
    pub usual: String,
}

impl Rules {
    pub fn new<A: Into<String>>(adapters: impl IntoIterator<Item = A>) -> Rules {
        Rules {
            steps_max: STEPS_MAX,
            timeout_sec_max: TIMEOUT_SEC_MAX,
            adapters: adapters.into_iter().map(Into::into).collect(),
            unusable: BTreeMap::new(),
            prices: None,
        }
    }

    /// For the workflow that comes with a no.
    #[must_use]
    pub fn of_next(&self) -> Rules {
        Rules { steps_max: self.steps_max.min(NEXT_STEPS_MAX), ..self.clone() }
    }
}

/// A workflow that can be worked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    pub workflow: Workflow,
    /// Places of the steps, each after all it depends on; otherwise as they were given.
    pub order: Vec<usize>,
    /// How many steps in a row wait for each, itself included, by place.
    pub urgency: Vec<u32>,
    /// What was not used or not understood.
    pub warnings: Vec<String>,
}

/// The name of a step among the tasks of a run: a later workflow may use the same ids.
pub fn task_name(step: &str, iteration: u32) -> String {
    if iteration <= 1 { step.to_owned() } else { format!("{step}-i{iteration}") }
}
