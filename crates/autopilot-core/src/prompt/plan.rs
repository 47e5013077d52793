//! The prompts that ask for JSON and nothing else: the plan, and the repair of a broken answer.

use super::part::{block, bullets, cut, fenced, inline};
use super::{Caps, Expand, PlanPrompt, Repair};
use crate::number::count;

/// The prompt that asks for a plan.
pub fn plan(facts: &PlanPrompt<'_>, caps: Caps) -> String {
    let mut text = String::from(match facts.expands {
        None => {
            "You turn a plan into tasks that coding agents carry out one by one or side by side. \
             Read only; change nothing.\n"
        }
        Some(_) => {
            "You divide one task of a plan, too large for one agent, into smaller ones that coding \
             agents carry out one by one or side by side. Read only; change nothing.\n"
        }
    });
    if let Some(expand) = facts.expands {
        text.push_str(&parent(&expand, caps));
    }
    text.push_str(&block("The plan", "markdown", facts.body, caps));
    if let Some(rejected) = facts.rejected {
        text.push_str(&block("Why your last plan was rejected", "text", rejected, caps));
        text.push_str("\nMake a new plan that resolves this.\n");
    }
    if !facts.constraints.is_empty() {
        text.push_str("\n## Constraints\n\n");
        text.push_str(&bullets(facts.constraints, caps));
    }
    text.push_str(&repository(facts, caps));
    text.push_str(&rules(facts, caps));
    text.push_str(
        "\nAnswer with one JSON object that satisfies this schema, and nothing else:\n\n",
    );
    text.push_str(&fenced("json", &cut(facts.schema, caps.prompt_bytes_max)));
    text
}

fn parent(task: &Expand<'_>, caps: Caps) -> String {
    let mut text = format!("\n## The task to divide: {}\n", inline(task.title));
    text.push_str(&format!("\n{}", fenced("markdown", &cut(task.goal, caps.prompt_bytes_max))));
    text.push_str("\nThe task is done when all of this holds:\n\n");
    text.push_str(&bullets(task.acceptance, caps));
    text.push_str(
        "\nPlan this task and no other: the plan below only shows what the task is part \
         of.\n",
    );
    text
}

/// The facts about the repository: names and commands, never contents.
fn repository(facts: &PlanPrompt<'_>, caps: Caps) -> String {
    let mut text = String::new();
    if !facts.repo_status.is_empty() {
        text.push_str(&block("State of the repository", "text", facts.repo_status, caps));
    }
    if !facts.tree.is_empty() {
        text.push_str(&block("Directories and their files", "text", facts.tree, caps));
    }
    if !facts.commands.is_empty() {
        let lines: Vec<String> = facts
            .commands
            .iter()
            .map(|(name, command)| format!("{name}: {}", inline(command)))
            .collect();
        text.push_str("\n## Commands the controller runs on every change\n\n");
        text.push_str(&bullets(&lines, caps));
    }
    if !facts.skills_known.is_empty() {
        text.push_str("\n## Available skills\n\n");
        text.push_str(&bullets(facts.skills_known, caps));
    }
    text
}

fn rules(facts: &PlanPrompt<'_>, caps: Caps) -> String {
    let mut text = String::from(
        "\n## Rules\n\n\
         - Each task is small, stands on its own, and has acceptance criteria that can be tested.\n\
         - Ids are short, of a-z, 0-9 and `-`. List in `depends_on` the tasks that must be done before; no \
         circles, only ids of this answer. If you give `edges`, they must say the same.\n\
         - Tasks that do not depend on each other run at the same time, each in its own \
         worktree. Let tasks that touch the same files or area depend on each other.\n\
         - Keep `allowed_paths` as narrow as the task permits. No refactoring that the plan does not ask \
         for.\n\
         - A task too large to see through now may be marked `expand: true`: it gets its own \
         plan when its turn comes.\n\
         - Put a plan for testing the whole result into `test_plan`, in Markdown: what works, what happens \
         with bad input, recovery after a crash, parallel tasks, and what a user sees. Do not \
         make a separate task for that.\n\
         - Suggest skills, MCP servers and sub-agents where they help; suggest only skills that are \
         available.\n\
         - Keep to the constraints and paths of the plan.\n",
    );
    text.push_str(if facts.commands_allowed {
        "- Give `validation_commands` only where the commands above do not fit the task.\n"
    } else {
        "- Give no `validation_commands`: a plan that brings commands is refused.\n"
    });
    if facts.tasks_max > 0 {
        text.push_str(&format!("- At most {}.\n", count(facts.tasks_max, "task")));
    }
    for (said, names) in [
        ("Tasks may only change what is under", facts.allowed_paths),
        ("No task may change anything under", facts.deny_paths),
        (
            "The plan asks for these skills; name each in `suggested_claude_skills` of the tasks it is \
             meant for:",
            facts.skills_asked,
        ),
        ("These ids are taken and can't be used again:", facts.taken),
    ] {
        if !names.is_empty() {
            let names: Vec<String> = names.iter().map(|name| inline(name)).collect();
            let names = cut(&names.join(", "), caps.prompt_bytes_max);
            text.push_str(&format!("- {said} {names}.\n"));
        }
    }
    text
}

/// The prompt that asks for a corrected answer.
pub fn repair(facts: &Repair<'_>, caps: Caps) -> String {
    let mut text = String::from("Your last answer can't be used. Return JSON only.\n");
    text.push_str("\n## What is wrong\n\n");
    text.push_str(&bullets(facts.faults, caps));
    text.push_str(&block("Your answer", "text", facts.answer, caps));
    if let Some(schema) = facts.schema {
        text.push_str(&block("The schema it must satisfy", "json", schema, caps));
    }
    text.push_str(
        "\nReturn the whole corrected JSON object: no prose, no fences, nothing before or after it. \
         Change only what is wrong with it; do no other work.\n",
    );
    text
}
