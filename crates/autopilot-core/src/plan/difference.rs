//! Compares a new plan with the one before it, for the person who approves it.

use std::collections::BTreeMap;

use super::fault::shown;
use super::{Plan, PlanTask};

/// The number of lines of a comparison; the rest is counted.
const LINES_MAX: usize = 200;

/// Returns one line per task that is new, gone or different, in the order of the plans.
pub fn difference(before: &Plan, after: &Plan) -> Vec<String> {
    let of = |plan: &'_ Plan| -> BTreeMap<String, PlanTask> {
        plan.tasks.iter().map(|task| (task.id.clone(), task.clone())).collect()
    };
    let (old, new) = (of(before), of(after));
    let mut lines = Vec::new();
    for task in before.tasks.iter().filter(|task| !new.contains_key(&task.id)) {
        lines.push(format!("- {} is gone: {}", task.id, shown(&task.title)));
    }
    for task in &after.tasks {
        match old.get(&task.id) {
            None => lines.push(format!("+ {} is new: {}", task.id, shown(&task.title))),
            Some(was) if was == task => {}
            Some(was) => {
                lines.push(format!("~ {} changed: {}", task.id, changed(was, task).join(", ")));
            }
        }
    }
    if lines.len() > LINES_MAX {
        let more = lines.len() - LINES_MAX;
        lines.truncate(LINES_MAX);
        lines.push(format!("and {more} more"));
    }
    lines
}

fn changed(was: &PlanTask, is: &PlanTask) -> Vec<&'static str> {
    [
        ("title", was.title != is.title),
        ("goal", was.goal != is.goal),
        ("acceptance_criteria", was.acceptance_criteria != is.acceptance_criteria),
        ("allowed_paths", was.allowed_paths != is.allowed_paths),
        ("validation_commands", was.validation_commands != is.validation_commands),
        ("depends_on", was.depends_on != is.depends_on),
        ("priority", was.priority != is.priority),
        ("expand", was.expand != is.expand),
        ("suggested_claude_skills", was.suggested_claude_skills != is.suggested_claude_skills),
        ("suggested_mcp_servers", was.suggested_mcp_servers != is.suggested_mcp_servers),
        ("suggested_subagents", was.suggested_subagents != is.suggested_subagents),
    ]
    .into_iter()
    .filter_map(|(key, differs)| differs.then_some(key))
    .collect()
}
