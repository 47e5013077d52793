//! What agents are told, as text from facts.
//!
//! A prompt holds what its step needs and nothing else of the repository. Every part has a limit,
//! and whatever a program or an agent produced stands between fences it cannot close itself.

mod build;
mod part;
mod plan;
mod review;
#[cfg(test)]
mod tests;
mod tree;

use crate::config::SkillPolicy;
use crate::guard::Finding;
use crate::limit::ReviewGate;
use crate::task_file::TaskSpec;

pub(crate) use part::{bullets, ran};
pub use part::{cut, fenced, tail};
pub use tree::tree_summary;

/// Limits of one part of a prompt; `logging.prompt_bytes_max` and `logging.tail_lines_max`.
#[derive(Debug, Clone, Copy)]
pub struct Caps {
    pub prompt_bytes_max: usize,
    pub tail_lines_max: usize,
}

/// A command the controller ran.
#[derive(Debug, Clone, Copy)]
pub struct Ran<'a> {
    /// `tests`, `lint`, `format`, `uat`.
    pub name: &'a str,
    pub command: &'a str,
    /// None when it was killed.
    pub exit_code: Option<i32>,
    pub output: &'a str,
}

impl Ran<'_> {
    pub fn passed(&self) -> bool {
        self.exit_code == Some(0)
    }
}

/// What the planner suggested for a task.
#[derive(Debug, Clone, Copy, Default)]
pub struct Guidance<'a> {
    pub skills: &'a [String],
    pub mcp_servers: &'a [String],
    pub subagents: &'a [String],
    pub notes: &'a str,
}

#[derive(Debug, Clone, Copy)]
pub struct Build<'a> {
    pub task: &'a TaskSpec,
    pub guidance: Guidance<'a>,
    /// `name — description` of the skills there are.
    pub skills_known: &'a [String],
    pub repo_status: &'a str,
    pub last_review: Option<&'a str>,
    /// The last results; only those that failed are shown.
    pub validation: &'a [Ran<'a>],
    pub skills: SkillPolicy,
    pub network: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct Fix<'a> {
    pub build: Build<'a>,
    pub findings: &'a [Finding],
    pub uat: Option<Ran<'a>>,
    pub uat_cases: Option<&'a str>,
    /// Sides and `git status` of a merge that git could not do alone; its result is in the files.
    pub conflict: Option<&'a str>,
    pub together: Option<Together<'a>>,
}

/// Work that was proven alone and fails once it is merged with that of others.
#[derive(Debug, Clone, Copy)]
pub struct Together<'a> {
    pub why: &'a str,
    pub ran: &'a [Ran<'a>],
}

#[derive(Debug, Clone, Copy)]
pub struct Review<'a> {
    pub task: &'a TaskSpec,
    pub diff: &'a str,
    pub validation: &'a [Ran<'a>],
    /// The builder's summary, and where it differs from what the controller saw.
    pub claimed: Option<&'a str>,
    pub differs: &'a [String],
    pub findings: &'a [Finding],
    /// Decides whether the reviewer is told to cite evidence.
    pub gate: ReviewGate,
    pub schema: &'a str,
}

#[derive(Debug, Clone, Copy)]
pub struct UatGenerate<'a> {
    pub task: &'a TaskSpec,
    pub diff: &'a str,
    /// Cases of the last round, to be refreshed.
    pub last_cases: Option<&'a str>,
    pub uat_dir: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Plan<'a> {
    /// The plan file without its front matter.
    pub body: &'a str,
    pub constraints: &'a [String],
    /// Empty for everywhere.
    pub allowed_paths: &'a [String],
    pub deny_paths: &'a [String],
    pub repo_status: &'a str,
    /// What [`tree_summary`] makes of the file names.
    pub tree: &'a str,
    /// What the controller will run: `tests`, and the command.
    pub commands: &'a [(&'a str, String)],
    /// May the planner bring commands of its own.
    pub commands_allowed: bool,
    /// More tasks are refused; 0 says nothing about it.
    pub tasks_max: usize,
    /// Why the last plan was not taken, in a person's or the checker's words.
    pub rejected: Option<&'a str>,
    /// `name — description` of the skills there are, and the names the plan asks for.
    pub skills_known: &'a [String],
    pub skills_asked: &'a [String],
    /// The task to be divided; none when the plan itself is.
    pub expands: Option<Expand<'a>>,
    /// Names of tasks the run already has.
    pub taken: &'a [String],
    pub schema: &'a str,
}

/// A task of an earlier plan, marked as too large for one agent.
#[derive(Debug, Clone, Copy)]
pub struct Expand<'a> {
    pub title: &'a str,
    pub goal: &'a str,
    pub acceptance: &'a [String],
}

#[derive(Debug, Clone, Copy)]
pub struct Repair<'a> {
    pub answer: &'a str,
    /// All that is wrong with it: JSON, schema, graph.
    pub faults: &'a [String],
    pub schema: Option<&'a str>,
}

pub fn builder(facts: &Build<'_>, caps: Caps) -> String {
    build::build(facts, caps)
}

pub fn fix(facts: &Fix<'_>, caps: Caps) -> String {
    build::fix(facts, caps)
}

pub fn reviewer(facts: &Review<'_>, caps: Caps) -> String {
    review::review(facts, caps)
}

pub fn uat_generate(facts: &UatGenerate<'_>, caps: Caps) -> String {
    review::uat_generate(facts, caps)
}

pub fn plan(facts: &Plan<'_>, caps: Caps) -> String {
    plan::plan(facts, caps)
}

pub fn repair(facts: &Repair<'_>, caps: Caps) -> String {
    plan::repair(facts, caps)
}
