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
    /// The tasks below this one.
    Tasks,
    Build,
    /// A build that may only repair what the last round found.
    Fix,
    Validate,
    Review,
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
    pub const ALL: [Step; 16] = [
        Step::Preflight,
        Step::Plan,
        Step::ApprovePlan,
        Step::Schedule,
        Step::Tasks,
        Step::Build,
        Step::Fix,
        Step::Validate,
        Step::Review,
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
            Step::Tasks => "tasks",
            Step::Build => "build",
            Step::Fix => "fix",
            Step::Validate => "validate",
            Step::Review => "review",
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
