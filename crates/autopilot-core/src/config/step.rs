//! The steps a configuration can name: whose they are, what they resemble, how long they may take.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Builder,
    Reviewer,
    Planner,
}

/// Every step, as `AUTOPILOT_STEP` and `loop.step_timeouts_sec` spell it.
pub const STEPS: &[&str] = &[
    "build",
    "completion",
    "coverage",
    "design",
    "execute",
    "fix",
    "green",
    "integration",
    "judge",
    "plan",
    "plan_check",
    "preflight",
    "push",
    "red",
    "research",
    "review",
    "session",
    "step",
    "triage",
    "uat",
    "uat_generate",
    "validate",
    "verify",
    "workflow",
];

/// Who does a step; none for what the controller runs itself.
pub fn role_of(step: &str) -> Option<Role> {
    match step {
        "build" | "fix" | "step" | "execute" | "session" | "verify" => Some(Role::Builder),
        "review" | "uat_generate" | "completion" | "coverage" | "judge" | "plan_check" => {
            Some(Role::Reviewer)
        }
        "plan" | "workflow" | "design" | "triage" | "research" => Some(Role::Planner),
        _ => None,
    }
}

/// The step whose limits stand for this one's where it has none of its own.
pub(super) fn resembles(step: &str) -> &str {
    match step {
        "plan" | "workflow" | "triage" => "plan",
        "review" | "uat_generate" | "completion" | "coverage" | "judge" | "plan_check" => "review",
        "validate" | "integration" | "merge" | "red" | "green" | "preflight" => "validate",
        "uat" => "uat",
        "push" | "pull_request" => "push",
        _ => "build",
    }
}

pub(super) fn timeout_sec(base: &str) -> u64 {
    match base {
        "plan" | "push" => 120,
        "review" => 180,
        "validate" | "uat" => 600,
        _ => 900,
    }
}

pub(super) fn retries(base: &str) -> u32 {
    match base {
        "push" => 2,
        "validate" | "uat" => 0,
        _ => 1,
    }
}
