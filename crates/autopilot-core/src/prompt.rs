//! The prompts for agents, written from facts.
//!
//! A prompt holds what its step needs and nothing else of the repository. Every part has a limit,
//! and text that a program or an agent produced stands between fences that it cannot close itself.

mod build;
mod continued;
mod coverage;
mod part;
mod plan;
mod review;
mod rules;
#[cfg(test)]
mod tests;
mod tree;
mod whole;

use crate::config::{Logging, SkillPolicy};
use crate::coverage::CoverageGround;
use crate::evidence::SeenCommand;
use crate::guard::Finding;
use crate::limit::ReviewGate;
use crate::task_file::TaskSpec;
use crate::three_runs::OpenTest;

pub use build::{builder, fix};
pub use continued::{ContinuedWork, builder_continued, fix_continued};
pub(crate) use continued::{since, taken_up};
pub use coverage::coverage;
pub(crate) use part::{bullets, ran};
pub use part::{cut, fenced, tail};
pub use plan::{plan, repair};
pub(crate) use review::{open_tests, restored};
pub use review::{reviewer, uat_generate};
pub use rules::BuildRules;
pub use tree::tree_summary;
pub use whole::whole_reviewer;

/// The limits of one part of a prompt: `logging.prompt_bytes_max` and `logging.tail_lines_max`.
#[derive(Debug, Clone, Copy)]
pub struct Caps {
    pub prompt_bytes_max: usize,
    pub tail_lines_max: usize,
}

impl Caps {
    /// The configured limits.
    pub fn of(logging: &Logging) -> Caps {
        Caps {
            prompt_bytes_max: usize::try_from(logging.prompt_bytes_max).unwrap_or(usize::MAX),
            tail_lines_max: logging.tail_lines_max as usize,
        }
    }
}

/// The planner's suggestions for a task.
#[derive(Debug, Clone, Copy, Default)]
pub struct PromptGuidance<'a> {
    pub skills: &'a [String],
    pub mcp_servers: &'a [String],
    pub subagents: &'a [String],
    pub notes: &'a str,
}

/// The facts for the prompt of a first build.
#[derive(Debug, Clone, Copy)]
pub struct Build<'a> {
    pub task: &'a TaskSpec,
    pub guidance: PromptGuidance<'a>,
    /// The available skills as `name — description`.
    pub skills_known: &'a [String],
    /// The output of `git status`.
    pub repo_status: &'a str,
    /// The last review, in JSON.
    pub last_review: Option<&'a str>,
    /// The last results; only failed ones are shown.
    pub validation: &'a [SeenCommand],
    /// The rules that the work is judged by.
    pub rules: &'a BuildRules,
    pub skills: SkillPolicy,
    /// Whether the agent may use the network.
    pub network: bool,
}

/// The facts for the prompt of a round that only fixes.
#[derive(Debug, Clone, Copy)]
pub struct Fix<'a> {
    pub build: Build<'a>,
    /// The findings of the guards.
    pub findings: &'a [Finding],
    /// The acceptance tests, if they ran.
    pub uat: Option<&'a SeenCommand>,
    /// The acceptance test cases, in Markdown.
    pub uat_cases: Option<&'a str>,
    /// The sides and the `git status` of a merge that git could not do alone; its result is in the
    /// files.
    pub conflict: Option<&'a str>,
    /// The failure of a change that was proven alone, once it is merged with those of other tasks.
    pub together: Option<FailedChecks<'a>>,
}

/// A result that failed the controller's own checks.
#[derive(Debug, Clone, Copy)]
pub struct FailedChecks<'a> {
    /// The failure in a few words: `tests failed with exit code 1`.
    pub why: &'a str,
    /// The commands that ran, with their output.
    pub ran: &'a [SeenCommand],
}

/// The facts for the prompt of a review.
#[derive(Debug, Clone, Copy)]
pub struct ReviewPrompt<'a> {
    pub task: &'a TaskSpec,
    pub diff: &'a str,
    /// The commands that the controller ran on the change.
    pub validation: &'a [SeenCommand],
    /// The builder's summary, in JSON.
    pub claimed: Option<&'a str>,
    /// The contradictions between the summary and what the controller saw.
    pub differs: &'a [String],
    /// The findings of the guards.
    pub findings: &'a [Finding],
    /// The tests of the base that the change breaks, skips or removes, and the task does not name.
    pub open: &'a [OpenTest],
    /// The changed files with instructions for agents, which the reviewer finds as at the base.
    pub restored: &'a [String],
    /// Decides whether the reviewer is told to cite evidence.
    pub gate: ReviewGate,
    /// The JSON Schema of the answer.
    pub schema: &'a str,
}

/// The facts for the prompt of the review of a plan's whole result.
#[derive(Debug, Clone, Copy)]
pub struct WholeReviewPrompt<'a> {
    pub title: &'a str,
    /// The plan as a person wrote it.
    pub plan: &'a str,
    pub acceptance: &'a [String],
    pub constraints: &'a [String],
    pub tasks: &'a [ReviewedTask],
    /// The change of the whole run, from its base to the tip of its branch.
    pub diff: &'a str,
    /// The changed files.
    pub files: &'a [String],
    /// The changed files that are not among them.
    pub files_left_out: usize,
    /// The commands that the controller ran on the whole result.
    pub validation: &'a [SeenCommand],
    /// The tests of the base that are still open.
    pub open: &'a [OpenTest],
    /// The tests of the base that tasks have changed, each with who accounts for that.
    pub accounted: &'a [String],
    /// What the controller and earlier judges doubt.
    pub doubts: &'a [String],
    /// The changed files with instructions for agents, which the reviewer finds as at the base.
    pub restored: &'a [String],
    /// Decides whether the reviewer is told to cite evidence.
    pub gate: ReviewGate,
    /// The JSON Schema of the answer.
    pub schema: &'a str,
}

/// A task of a plan whose whole result is reviewed.
#[derive(Debug, Clone, Default)]
pub struct ReviewedTask {
    pub name: String,
    pub title: String,
    /// The end of the task as one word.
    pub status: &'static str,
    pub acceptance: Vec<String>,
}

/// The facts for the prompt that asks which tests cover which criterion.
#[derive(Debug, Clone, Copy)]
pub struct CoveragePrompt<'a> {
    pub title: &'a str,
    /// The criteria, and the tests that pass with the change.
    pub ground: &'a CoverageGround,
    pub diff: &'a str,
    /// The JSON Schema of the answer.
    pub schema: &'a str,
}

/// The facts for the prompt that asks for acceptance test cases.
#[derive(Debug, Clone, Copy)]
pub struct UatGenerate<'a> {
    pub task: &'a TaskSpec,
    pub diff: &'a str,
    /// The cases of the last round, to be updated.
    pub last_cases: Option<&'a str>,
    /// The directory in which executable tests may be written.
    pub uat_dir: Option<&'a str>,
}

/// The facts for the prompt that asks for a plan.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanPrompt<'a> {
    /// The plan file without its front matter.
    pub body: &'a str,
    pub constraints: &'a [String],
    /// The paths that may be changed; empty for all.
    pub allowed_paths: &'a [String],
    pub deny_paths: &'a [String],
    /// The output of `git status`.
    pub repo_status: &'a str,
    /// The summary of the directories, from [`tree_summary`].
    pub tree: &'a str,
    /// The commands that the controller will run, with their keys.
    pub commands: &'a [(&'a str, String)],
    /// Whether the plan may bring its own commands.
    pub commands_allowed: bool,
    /// The number of tasks that are accepted; 0 leaves it unsaid.
    pub tasks_max: usize,
    /// The reason why the last plan was rejected, in a person's or the checker's words.
    pub rejected: Option<&'a str>,
    /// The available skills as `name — description`.
    pub skills_known: &'a [String],
    /// The names of the skills that the plan asks for.
    pub skills_asked: &'a [String],
    /// The task to divide; `None` if the plan itself is divided.
    pub expands: Option<Expand<'a>>,
    /// The names of the tasks that the run already has.
    pub taken: &'a [String],
    /// The JSON Schema of the answer.
    pub schema: &'a str,
}

/// A task of an earlier plan that was marked as too large for one agent.
#[derive(Debug, Clone, Copy)]
pub struct Expand<'a> {
    pub title: &'a str,
    pub goal: &'a str,
    pub acceptance: &'a [String],
}

/// The facts for the prompt that asks for a corrected answer.
#[derive(Debug, Clone, Copy)]
pub struct Repair<'a> {
    /// The answer with the faults.
    pub answer: &'a str,
    /// All faults of the answer: JSON, schema, graph.
    pub faults: &'a [String],
    pub schema: Option<&'a str>,
}
