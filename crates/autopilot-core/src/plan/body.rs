//! Turns a planned task into the specification that its builder gets.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{PlanTask, ValidationCommands};
use crate::prompt;
use crate::task_file::{CommandOverrides, TaskSpec};

/// The whole specification of a planned task. It can be read as a [`TaskSpec`]: the guidance is one
/// more member beside those of the specification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskBody {
    #[serde(flatten)]
    pub spec: TaskSpec,
    #[serde(default, skip_serializing_if = "PlanGuidance::is_empty")]
    pub guidance: PlanGuidance,
}

/// The skills, MCP servers and sub-agents that the planner suggests to the builder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanGuidance {
    pub skills: Vec<String>,
    pub mcp_servers: Vec<String>,
    pub subagents: Vec<String>,
}

impl PlanGuidance {
    /// Whether the planner suggested nothing.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty() && self.mcp_servers.is_empty() && self.subagents.is_empty()
    }

    /// The guidance in the form that the builder's prompt takes.
    pub fn for_prompt(&self) -> prompt::PromptGuidance<'_> {
        prompt::PromptGuidance {
            skills: &self.skills,
            mcp_servers: &self.mcp_servers,
            subagents: &self.subagents,
            notes: "",
        }
    }
}

/// Combines the task with the parts of the person's specification that hold for the whole plan.
pub fn body(task: &PlanTask, plan: &TaskSpec) -> TaskBody {
    let declared = !task.allowed_paths.is_empty();
    let allowed = if declared { &task.allowed_paths } else { &plan.allowed_paths };
    TaskBody {
        spec: TaskSpec {
            id: task.id.clone(),
            title: task.title.clone(),
            goal: task.goal.clone(),
            acceptance: task.acceptance_criteria.clone(),
            constraints: plan.constraints.clone(),
            allowed_paths: allowed.clone(),
            deny_paths: plan.deny_paths.clone(),
            commands: commands(&task.validation_commands, &plan.commands),
            uat: Vec::new(),
            notes: Vec::new(),
            depends_on: task.depends_on.clone(),
            skills: None,
            path: plan.path.clone(),
        },
        guidance: PlanGuidance {
            skills: named(&task.suggested_claude_skills),
            mcp_servers: named(&task.suggested_mcp_servers),
            subagents: task.suggested_subagents.iter().filter_map(subagent).collect(),
        },
    }
}

fn commands(own: &ValidationCommands, plan: &CommandOverrides) -> CommandOverrides {
    let own = |wanted: &str| {
        own.given().find(|(key, _)| *key == wanted).map(|(_, command)| command.to_owned())
    };
    CommandOverrides {
        tests: own("tests").or_else(|| plan.tests.clone()),
        lint: own("lint").or_else(|| plan.lint.clone()),
        format: own("format").or_else(|| plan.format.clone()),
        uat: own("uat").or_else(|| plan.uat.clone()),
    }
}

/// The longest suggestion; more text is not a name.
const SUGGESTION_BYTES_MAX: usize = 500;

fn named(names: &[String]) -> Vec<String> {
    names.iter().filter_map(|name| suggestion(name)).collect()
}

fn suggestion(text: &str) -> Option<String> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = line.floor_char_boundary(SUGGESTION_BYTES_MAX);
    (!line.is_empty()).then(|| line[..end].to_owned())
}

/// A sub-agent's name, with its purpose if the planner gave an object.
fn subagent(given: &Value) -> Option<String> {
    match given {
        Value::Null => None,
        Value::String(name) => suggestion(name),
        Value::Object(members) => {
            let text = |key: &str| members.get(key).and_then(Value::as_str);
            let purpose = ["purpose", "task", "description", "goal"].into_iter().find_map(text);
            match (text("name"), purpose) {
                (Some(name), Some(purpose)) => suggestion(&format!("{name} ({purpose})")),
                (Some(only), None) | (None, Some(only)) => suggestion(only),
                (None, None) => suggestion(&given.to_string()),
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => suggestion(&given.to_string()),
    }
}
