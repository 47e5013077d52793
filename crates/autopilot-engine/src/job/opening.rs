//! The prompts with which the work of a run begins. Jobs send them and a dry run shows them, so both
//! get them here.

use super::JobError;
use super::skill::Kit;
use crate::begin::PlanBody;
use autopilot_agents::answer::AgentAnswer;
use autopilot_core::config::{AgentConfig, Config};
use autopilot_core::plan::{Plan, PlanRules};
use autopilot_core::prompt::{self, Build, BuildRules, Caps, PlanPrompt, PromptGuidance};
use autopilot_core::task_file::TaskSpec;
use autopilot_core::workflow::{Workflow, WorkflowPrompt, WorkflowRules};
use autopilot_host::git::Oid;

/// The base of the work in one line.
pub fn based_on(commit: &Oid, branch: &str) -> String {
    format!("based on {} of {branch}", commit.short())
}

/// The branch and base of a task's worktree in one line.
pub fn work_status(task: &str, commit: &Oid, base: &Oid, base_branch: &str) -> String {
    format!("branch autopilot/{task} at {}, {}\n", commit.short(), based_on(base, base_branch))
}

/// The facts of a first build. Later ones add what was found since.
pub fn build_facts<'a>(
    spec: &'a TaskSpec,
    agent: &AgentConfig,
    skills_known: &'a [String],
    repo_status: &'a str,
    rules: &'a BuildRules,
) -> Build<'a> {
    Build {
        task: spec,
        guidance: PromptGuidance::default(),
        skills_known,
        repo_status,
        last_review: None,
        validation: &[],
        rules,
        skills: agent.skill_policy,
        network: agent.network,
    }
}

/// The prompt of a planner. `rest` holds the facts that are particular to this try.
pub fn plan_prompt(
    config: &Config,
    whole: &PlanBody,
    rules: &PlanRules,
    kit: &Kit,
    rest: PlanPrompt<'_>,
) -> String {
    let spec = &whole.spec;
    let taken: Vec<String> = rules.taken.keys().cloned().collect();
    let facts = PlanPrompt {
        body: &whole.text,
        constraints: &spec.constraints,
        allowed_paths: &spec.allowed_paths,
        deny_paths: &rules.deny_paths,
        commands: &config.commands.all(&spec.commands),
        commands_allowed: config.plan.commands,
        tasks_max: rules.tasks_max,
        // The planner suggests skills to the builder, who is held to its own policy.
        skills_known: &kit.listed(config.builder.skill_policy),
        skills_asked: &kit.asked_names(),
        taken: &taken,
        schema: Plan::SCHEMA_JSON,
        ..rest
    };
    prompt::plan(&facts, Caps::of(&config.logging))
}

/// The facts for a goal's first workflow. Later ones add what came of the workflow before.
pub fn workflow_facts<'a>(
    goal: &'a PlanBody,
    rules: &'a WorkflowRules,
    skills_known: &'a [String],
) -> WorkflowPrompt<'a> {
    WorkflowPrompt {
        task: &goal.text,
        carry: None,
        refuted: None,
        faults: &[],
        rules,
        skills_known,
        schema: Workflow::SCHEMA_JSON,
    }
}

/// The specification that asks for the skill named in a prompt's first line.
pub fn asking_spec(prompt: &str) -> TaskSpec {
    let goal = prompt.lines().next().unwrap_or_default().to_owned();
    TaskSpec { goal, ..TaskSpec::default() }
}

/// The prompt with the skill named in its first line, if there is one.
pub fn with_named_skill(prompt: String, kit: &Kit, caps: Caps) -> Result<String, JobError> {
    if kit.is_complete() { kit.give(prompt, caps) } else { Ok(prompt) }
}
