//! The steps a task can be at. A step says what is done; the tables say when.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The controller validates the untouched base before the first agent starts.
    Preflight,
    /// The planner divides the work into tasks.
    Plan,
    /// A person looks at the plan.
    ApprovePlan,
    /// The controller makes the plan's tasks.
    Schedule,
    /// A planner makes the next workflow towards a goal.
    Workflow,
    /// The tasks below this one.
    Tasks,
    /// A session of an agent on one step of a workflow.
    WorkflowStep,
    Build,
    /// A build that may only repair what the last round found.
    Fix,
    Validate,
    Review,
    /// A reviewer says whether the goal is reached.
    Completion,
    UatGenerate,
    Uat,
    Decide,
    Merge,
    /// A person looks at the result.
    ApproveResult,
    Push,
    PullRequest,
}

impl Step {
    pub const ALL: [Step; 19] = [
        Step::Preflight,
        Step::Plan,
        Step::ApprovePlan,
        Step::Schedule,
        Step::Workflow,
        Step::Tasks,
        Step::WorkflowStep,
        Step::Build,
        Step::Fix,
        Step::Validate,
        Step::Review,
        Step::Completion,
        Step::UatGenerate,
        Step::Uat,
        Step::Decide,
        Step::Merge,
        Step::ApproveResult,
        Step::Push,
        Step::PullRequest,
    ];

    /// The word agents, commands and files see (`AUTOPILOT_STEP`, log names).
    pub fn word(self) -> &'static str {
        match self {
            Step::Preflight => "preflight",
            Step::Plan => "plan",
            Step::ApprovePlan => "approve_plan",
            Step::Schedule => "schedule",
            Step::Workflow => "workflow",
            Step::Tasks => "tasks",
            Step::WorkflowStep => "step",
            Step::Build => "build",
            Step::Fix => "fix",
            Step::Validate => "validate",
            Step::Review => "review",
            Step::Completion => "completion",
            Step::UatGenerate => "uat_generate",
            Step::Uat => "uat",
            Step::Decide => "decide",
            Step::Merge => "merge",
            Step::ApproveResult => "approve_result",
            Step::Push => "push",
            Step::PullRequest => "pull_request",
        }
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}
