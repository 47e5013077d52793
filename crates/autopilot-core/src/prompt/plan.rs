//! Prompts that ask for JSON and nothing else: the plan, and the repair of a broken answer.

use super::part::{block, bullets, cut, fenced, inline};
use super::{Caps, Plan, Repair};

pub(super) fn plan(facts: &Plan<'_>, caps: Caps) -> String {
    let mut text = String::from(
        "You turn a plan into tasks that coding agents carry out one by one or side by side. Read \
         only; change nothing.\n",
    );
    text.push_str(&block("The plan", "markdown", facts.body, caps));
    if !facts.repo_status.is_empty() {
        text.push_str(&block("State of the repository", "text", facts.repo_status, caps));
    }
    text.push_str(
        "\n## Rules\n\n\
         - Each task is small, stands on its own, and has acceptance criteria that can be tested.\n\
         - Say with `depends_on` what must be done before; no cycles, only ids of this answer. Tasks \
         that touch the same files depend on each other.\n\
         - Keep `allowed_paths` as narrow as the task permits. No refactoring the plan does not ask \
         for.\n\
         - Suggest skills, MCP servers and sub-agents where they help.\n\
         - Keep to the constraints and paths of the plan.\n",
    );
    if !facts.deny_paths.is_empty() {
        let paths: Vec<String> = facts.deny_paths.iter().map(|path| inline(path)).collect();
        text.push_str(&format!("- No task may change anything under {}.\n", paths.join(", ")));
    }
    text.push_str(
        "\nAnswer with one JSON object that satisfies this schema, and nothing else:\n\n",
    );
    text.push_str(&fenced("json", &cut(facts.schema, caps.prompt_bytes_max)));
    text
}

pub(super) fn repair(facts: &Repair<'_>, caps: Caps) -> String {
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
