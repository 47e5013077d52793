//! The steps a task can be at: one row each, with everything that is particular to the step.
//!
//! A step says what is done; the tables of the flows say when. The list below makes the enum, the
//! list of all steps and the rows, so a step without a row does not compile.

use crate::rows::rows;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

rows! {
/// The agent that does a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
Role -> &'static str {
    Builder: "builder",
    Reviewer: "reviewer",
    Planner: "planner",
}}

impl Role {
    /// The name of the configuration section for this agent.
    pub fn word(self) -> &'static str {
        self.row()
    }
}

/// Everything that is particular to one step.
#[derive(Clone, Copy, Debug)]
pub struct StepRow {
    /// The word that commands, log names and files use for the step.
    pub word: &'static str,
    /// The value of `AUTOPILOT_STEP` for its programs, and its key in the configuration. Steps that ask
    /// for the same kind of answer share one.
    pub runs_as: &'static str,
    /// The agent that does the step; none if the controller or a person does it.
    pub role: Option<Role>,
    /// The limits of the step; none if nothing runs that could reach one.
    pub limits: Option<StepLimits>,
    pub caches: CacheUse,
    /// The current activity in words for a person: "reviewing the change".
    pub doing: &'static str,
    /// The question to a person, for the steps that are approvals.
    pub gate: Option<GateText>,
    /// The state that `state.json` shows while the run is at this step; none while its tasks run.
    pub run_word: Option<&'static str>,
    /// The step judges work that others did.
    pub judges: bool,
    /// The effect of the step is visible outside of the machine.
    pub leaves_machine: bool,
}

/// The object that a person is asked to approve, and where to look at it.
#[derive(Clone, Copy, Debug)]
pub struct GateText {
    pub what: &'static str,
    pub look_at: &'static str,
}

/// The limits of a step that the configuration does not mention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepLimits {
    /// The step whose configured limits apply to this one if it has none of its own.
    pub like: Step,
    pub timeout_sec: u64,
    /// The number of retries of a broken try.
    pub retries: u32,
}

/// The package caches that the programs of a step fill and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheUse {
    /// The caches that agents share.
    Agents,
    /// The seed: caches that the checks of the untouched base fill, for later checks to copy.
    Seed,
    /// A copy of the seed, thrown away afterwards.
    Copy,
}

const LIKE_PLAN: StepLimits = StepLimits { like: Step::Plan, timeout_sec: 120, retries: 1 };
const LIKE_BUILD: StepLimits = StepLimits { like: Step::Build, timeout_sec: 900, retries: 1 };
const LIKE_REVIEW: StepLimits = StepLimits { like: Step::Review, timeout_sec: 180, retries: 1 };
const LIKE_VALIDATE: StepLimits = StepLimits { like: Step::Validate, timeout_sec: 600, retries: 0 };
const LIKE_UAT: StepLimits = StepLimits { like: Step::Uat, timeout_sec: 600, retries: 0 };
const LIKE_PUSH: StepLimits = StepLimits { like: Step::Push, timeout_sec: 120, retries: 2 };

/// The words of planned steps: a configuration may set limits for them, which nothing reads yet.
/// Configurations pinned in old journals name some of them.
pub const RESERVED_WORDS: [&str; 10] = [
    "design",
    "execute",
    "green",
    "judge",
    "plan_check",
    "red",
    "research",
    "session",
    "triage",
    "verify",
];

// The order is part of the journal: results and limits are kept in maps by step.
rows! {
/// A piece of work in a pipeline. Each step has a [`StepRow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
Step -> StepRow {
    /// The controller validates the untouched base before the first agent starts.
    Preflight: controller("preflight", "checking that the base passes")
        .limits(LIKE_VALIDATE).caches(CacheUse::Seed).run_word("PRECHECK"),
    /// The planner divides the work into tasks.
    Plan: agent(Role::Planner, "plan", "planning the work").limits(LIKE_PLAN).run_word("PLAN"),
    /// A person looks at the plan.
    ApprovePlan: controller("approve_plan", "waiting for you to approve the plan")
        .asks_for("plan", ".autopilot/plan/plan.json, `autopilot graph`"),
    /// The controller makes the plan's tasks.
    Schedule: controller("schedule", "creating the tasks of the plan").run_word("SCHEDULE"),
    /// A planner makes the next workflow towards a goal.
    Workflow: agent(Role::Planner, "workflow", "planning the next steps")
        .limits(LIKE_PLAN).run_word("PLAN"),
    /// The child tasks run.
    Tasks: controller("tasks", "working on its tasks"),
    /// An agent works on one step of a workflow.
    WorkflowStep: agent(Role::Builder, "step", "working on the step"),
    Build: agent(Role::Builder, "build", "building"),
    /// A build that may only repair the problems that the last round found.
    Fix: agent(Role::Builder, "fix", "fixing"),
    Validate: controller("validate", "validating in a clean checkout").limits(LIKE_VALIDATE).judges(),
    Review: agent(Role::Reviewer, "review", "reviewing the change").limits(LIKE_REVIEW).judges(),
    /// A reviewer says whether the goal is met.
    Completion: agent(Role::Reviewer, "completion", "checking whether the goal is met")
        .limits(LIKE_REVIEW).judges(),
    UatGenerate: agent(Role::Reviewer, "uat_generate", "writing acceptance cases")
        .limits(LIKE_REVIEW).run_word("FINAL_UAT_GENERATE").judges(),
    Uat: controller("uat", "running acceptance tests")
        .limits(LIKE_UAT).run_word("FINAL_UAT_RUN").judges(),
    Decide: controller("decide", "weighing the results"),
    /// The programs of a merge validate the integrated tree.
    Merge: controller("merge", "committing and merging").limits(LIKE_VALIDATE).runs_as("integration"),
    /// A person looks at the result.
    ApproveResult: controller("approve_result", "waiting for you to approve the result")
        .asks_for("result", "`autopilot diff`"),
    Push: controller("push", "pushing").limits(LIKE_PUSH).run_word("PUSH").leaves_machine(),
    PullRequest: controller("pull_request", "opening the pull request")
        .limits(LIKE_PUSH).run_word("PUSH").leaves_machine(),
    /// The controller validates the result once more, from nothing.
    Prove: controller("prove", "proving the result from nothing")
        .limits(LIKE_VALIDATE).run_word("FINAL_PROOF").judges(),
    /// A person looks at the tests of the base that the change breaks, skips or removes.
    AcceptTests: controller("accept_tests", "waiting for you to accept changed tests")
        .asks_for("changed tests", "`autopilot show`, `autopilot diff`"),
    /// A reviewer judges the result of a plan as a whole. Its programs see a review like any other.
    WholeReview: agent(Role::Reviewer, "whole_review", "reviewing the result as a whole")
        .runs_as("review").limits(LIKE_REVIEW).run_word("FINAL_REVIEW").judges(),
    /// A reviewer says which tests cover which criterion.
    Coverage: agent(Role::Reviewer, "coverage", "mapping criteria to tests")
        .limits(LIKE_REVIEW).judges(),
}}

const fn controller(word: &'static str, doing: &'static str) -> StepRow {
    StepRow {
        word,
        runs_as: word,
        role: None,
        limits: None,
        caches: CacheUse::Copy,
        doing,
        gate: None,
        run_word: None,
        judges: false,
        leaves_machine: false,
    }
}

const fn agent(role: Role, word: &'static str, doing: &'static str) -> StepRow {
    let row = controller(word, doing).limits(LIKE_BUILD).caches(CacheUse::Agents);
    StepRow { role: Some(role), ..row }
}

impl StepRow {
    const fn runs_as(self, runs_as: &'static str) -> StepRow {
        StepRow { runs_as, ..self }
    }

    const fn limits(self, limits: StepLimits) -> StepRow {
        StepRow { limits: Some(limits), ..self }
    }

    const fn caches(self, caches: CacheUse) -> StepRow {
        StepRow { caches, ..self }
    }

    const fn asks_for(self, what: &'static str, look_at: &'static str) -> StepRow {
        StepRow { gate: Some(GateText { what, look_at }), ..self }
    }

    const fn run_word(self, word: &'static str) -> StepRow {
        StepRow { run_word: Some(word), ..self }
    }

    const fn judges(self) -> StepRow {
        StepRow { judges: true, ..self }
    }

    const fn leaves_machine(self) -> StepRow {
        StepRow { leaves_machine: true, ..self }
    }
}

impl Step {
    /// The word that agents, commands and files use for the step.
    pub fn word(self) -> &'static str {
        self.row().word
    }

    /// The agent that does the step, if one does.
    pub fn role(self) -> Option<Role> {
        self.row().role
    }

    /// The limits of the step; a step without limits gets those of a build.
    pub fn limits(self) -> StepLimits {
        self.row().limits.unwrap_or(LIKE_BUILD)
    }

    /// The step words for which a configuration may set limits.
    pub fn configurable_words() -> impl Iterator<Item = &'static str> {
        let rows = Step::ALL.into_iter().map(Step::row).filter(|row| row.limits.is_some());
        let words: BTreeSet<&str> = rows.map(|row| row.runs_as).chain(RESERVED_WORDS).collect();
        words.into_iter()
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_steps_share_a_word_and_none_has_a_reserved_one() {
        let rows = || Step::ALL.into_iter().map(Step::row);
        let words: BTreeSet<&str> = rows().map(|row| row.word).collect();
        assert_eq!(words.len(), Step::ALL.len());
        for word in RESERVED_WORDS {
            let is_run_as = rows().any(|row| row.runs_as == word);
            assert!(!words.contains(word) && !is_run_as, "`{word}` is a step now");
        }
    }

    #[test]
    fn steps_that_share_a_key_ask_the_same_agent_with_the_same_limits() {
        for (step, other) in Step::ALL.into_iter().flat_map(|a| Step::ALL.map(|b| (a, b))) {
            if step.row().runs_as == other.row().runs_as {
                let of = |step: Step| (step.role(), step.row().limits);
                assert_eq!(of(step), of(other), "{step} and {other} share a key");
            }
        }
    }

    #[test]
    fn a_step_that_lends_its_limits_has_the_same_ones() {
        for step in Step::ALL {
            assert_eq!(step.limits().like.limits(), step.limits(), "{step}");
        }
    }

    #[test]
    fn every_step_is_told_in_a_few_words_of_its_own() {
        let told: BTreeSet<&str> = Step::ALL.into_iter().map(|step| step.row().doing).collect();
        assert_eq!(told.len(), Step::ALL.len());
        assert!(told.iter().all(|words| !words.is_empty() && words.len() <= 40), "{told:?}");
    }

    #[test]
    fn what_agents_do_has_limits_and_caches_of_agents() {
        for step in Step::ALL {
            let row = step.row();
            assert!(row.role.is_none() || row.limits.is_some(), "{step}");
            assert_eq!(row.role.is_some(), row.caches == CacheUse::Agents, "{step}");
        }
    }
}
