//! The kinds of answers that the flows ask for, typed, with their schemas.

use std::sync::LazyLock;

use autopilot_core::coverage::CoverageAnswer;
use autopilot_core::flow::review::ReviewAnswer;
use autopilot_core::plan::Plan;
use autopilot_core::skill::{ClaimedUse, Gain, Subagent};
use autopilot_core::workflow::{Completion, Workflow};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{AnswerSchema, SchemaError};

/// A kind of answer that has a schema of ours.
pub trait AgentAnswer: DeserializeOwned {
    /// The word that files with the schema are named after.
    const NAME: &'static str;
    /// The schema's text, which is given to the agent and written where users may edit it.
    const SCHEMA_JSON: &'static str;

    /// The compiled schema.
    fn schema() -> Result<&'static AnswerSchema, SchemaError>;
}

type Compiled = LazyLock<Result<AnswerSchema, SchemaError>>;

macro_rules! answer {
    ($kind:ty, $name:literal, $file:literal) => {
        impl AgentAnswer for $kind {
            const NAME: &'static str = $name;
            const SCHEMA_JSON: &'static str = include_str!($file);

            fn schema() -> Result<&'static AnswerSchema, SchemaError> {
                static COMPILED: Compiled =
                    LazyLock::new(|| AnswerSchema::parse(<$kind>::NAME, <$kind>::SCHEMA_JSON));
                COMPILED.as_ref().map_err(Clone::clone)
            }
        }
    };
}

answer!(ReviewAnswer, "review", "../../schemas/review_schema.json");
answer!(CoverageAnswer, "coverage", "../../schemas/coverage_schema.json");
answer!(Plan, "plan", "../../schemas/plan_schema.json");
answer!(Summary, "summary", "../../schemas/summary_schema.json");
answer!(Workflow, "workflow", "../../schemas/workflow_schema.json");
answer!(Completion, "completion", "../../schemas/completion_schema.json");

/// A builder's report of its own work. The report holds claims only: they are compared with what we
/// saw, and never decide.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub changed_files: Vec<String>,
    #[serde(default)]
    pub commands_ran: Vec<CommandRan>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests_ran: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests_passed: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uat_ran: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uat_passed: Option<bool>,
    #[serde(default)]
    pub skills_used: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagents_used: Option<Vec<SubagentUsed>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_servers_used: Option<Vec<String>>,
    /// The skills that the builder meant to use, announced before its first edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_plan: Option<String>,
    /// The gains that the builder claims for each skill it used under `upscale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upscale: Option<Vec<Gain>>,
    pub notes: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risks: Option<String>,
}

/// A command that a builder claims to have run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRan {
    pub cmd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
}

/// A sub-agent that a builder claims to have used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentUsed {
    pub name: String,
    #[serde(default)]
    pub purpose: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliverable: Option<String>,
}

impl Summary {
    /// The claims that are compared with what was seen.
    pub fn said(&self) -> ClaimedUse {
        let subagents = self.subagents_used.iter().flatten().map(|agent| Subagent {
            name: agent.name.clone(),
            purpose: agent.purpose.clone(),
            deliverable: agent.deliverable.clone().unwrap_or_default(),
        });
        ClaimedUse {
            skills: self.skills_used.clone(),
            mcp_servers: self.mcp_servers_used.clone().unwrap_or_default(),
            subagents: subagents.collect(),
            gained: self.upscale.clone().unwrap_or_default(),
            skill_plan: self.skill_plan.clone().unwrap_or_default(),
        }
    }
}
