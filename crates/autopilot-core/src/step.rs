//! The steps a task can be at. A step says what is done; the tables say when.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The controller validates the untouched base before the first agent starts.
    Preflight,
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
    Push,
}

impl Step {
    pub const ALL: [Step; 11] = [
        Step::Preflight,
        Step::Tasks,
        Step::Build,
        Step::Fix,
        Step::Validate,
        Step::Review,
        Step::UatGenerate,
        Step::Uat,
        Step::Decide,
        Step::Merge,
        Step::Push,
    ];

    /// The word agents, commands and files see (`AUTOPILOT_STEP`, log names).
    pub fn word(self) -> &'static str {
        match self {
            Step::Preflight => "preflight",
            Step::Tasks => "tasks",
            Step::Build => "build",
            Step::Fix => "fix",
            Step::Validate => "validate",
            Step::Review => "review",
            Step::UatGenerate => "uat_generate",
            Step::Uat => "uat",
            Step::Decide => "decide",
            Step::Merge => "merge",
            Step::Push => "push",
        }
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}
