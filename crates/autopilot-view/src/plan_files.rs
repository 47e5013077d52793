//! `.autopilot/plan/`: the plan as it was taken, the graph as it stands, and a file per task.
//!
//! Task files carry everything that changes in their front matter, and [`file_key`] tells cheaply
//! whether it has changed: of ten thousand files only the few that changed are written.

#[cfg(test)]
mod tests;

use super::task_word;
use autopilot_core::dag::TaskGraph;
use autopilot_core::event::{Skip, TaskEnd};
use autopilot_core::id::TaskId;
use autopilot_core::plan::{Plan, TaskBody};
use autopilot_core::state::{State, Status, Task};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The file of the plan, in `.autopilot/plan`.
pub const PLAN_FILE: &str = "plan.json";
/// The file of the task graph.
pub const GRAPH_FILE: &str = "task_graph.json";
/// The directory of the task files.
pub const TASKS_DIR: &str = "tasks";

/// The text of `plan.json`.
pub fn plan_json(plan: &Plan) -> String {
    let text = serde_json::to_string_pretty(plan).unwrap_or_else(|error| error.to_string());
    format!("{text}\n")
}

/// The content of `task_graph.json`: every task with its state, the dependencies, the batches that
/// could run at the same time, and the tasks that could start now.
pub fn task_graph(state: &State) -> Value {
    let tasks: Vec<&Task> = state.tasks.iter().filter(|task| task.parent.is_some()).collect();
    let mut counts: BTreeMap<&str, usize> =
        ["PENDING", "RUNNING", "DONE", "FAILED", "BLOCKED"].map(|word| (word, 0)).into();
    let mut edges = Vec::new();
    let mut ready = Vec::new();
    for task in &tasks {
        *counts.entry(task_word(task)).or_default() += 1;
        edges
            .extend(task.spec.depends_on.iter().map(|on| json!({ "from": on, "to": task.name() })));
        if is_ready(task) {
            ready.push(task.name());
        }
    }
    json!({
        "run_id": state.run.id,
        "nodes": tasks.iter().map(|task| node(state, task)).collect::<Vec<_>>(),
        "edges": edges,
        "batches": batches(&tasks),
        "ready": ready,
        "counts": counts,
    })
}

fn node(state: &State, task: &Task) -> Value {
    // The parent of top-level tasks is the run, which is not a task to a reader.
    let parent = task.parent.filter(|parent| *parent != TaskId::ROOT);
    json!({
        "id": task.name(),
        "title": task.spec.title,
        "status": task_word(task),
        "parent": parent.map(|parent| state.task(parent).name()),
        "expand": task.spec.expand,
        "priority": task.spec.priority,
        "depends_on": task.spec.depends_on,
        "blocked_by": blocked_by(state, task),
        "allowed_paths": task.spec.paths,
        "file": format!("{TASKS_DIR}/{}", task_file_name(task)),
    })
}

/// Whether all dependencies of a task are done and no worker has taken it yet.
fn is_ready(task: &Task) -> bool {
    task.needs == 0 && task_word(task) == "PENDING"
}

/// The batches of tasks that could run at the same time; none if a dependency is unknown.
fn batches<'a>(tasks: &[&'a Task]) -> Vec<Vec<&'a str>> {
    let graph = TaskGraph::build(
        tasks.iter().map(|task| (task.name(), task.spec.depends_on.iter().map(String::as_str))),
    );
    let Ok(graph) = graph else { return Vec::new() };
    let names = |batch: Vec<usize>| batch.into_iter().map(|at| graph.id(at)).collect();
    graph.batches().into_iter().map(names).collect()
}

/// The name of a task's file. Task names are safe in file names already.
pub fn task_file_name(task: &Task) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    format!("{}.md", task.name().chars().map(plain).collect::<String>())
}

/// The text of a task's file, with front matter for programs.
pub fn task_file(state: &State, task: &Task, body: &TaskBody) -> String {
    let mut text = String::from("---\n");
    let worker = worker(state, task).map_or("null".to_owned(), |worker| worker.to_string());
    for (key, value) in [
        ("id", quoted(task.name())),
        ("title", quoted(&task.spec.title)),
        ("status", task_word(task).to_owned()),
        ("depends_on", list(task.spec.depends_on.iter().map(String::as_str))),
        ("blocked_by", list(blocked_by(state, task))),
        ("attempts", task.spent.attempts.to_string()),
        ("assigned_worker", worker),
    ] {
        text.push_str(&format!("{key}: {value}\n"));
    }
    text.push_str("---\n\n");
    text.push_str(&body.spec.to_markdown());
    for (title, names) in [
        ("Suggested skills", &body.guidance.skills),
        ("Suggested MCP servers", &body.guidance.mcp_servers),
        ("Suggested sub-agents", &body.guidance.subagents),
    ] {
        if !names.is_empty() {
            text.push_str(&format!("\n## {title}\n\n"));
            names.iter().for_each(|name| text.push_str(&format!("- {name}\n")));
        }
    }
    text
}

/// The changing part of a task's file. Two equal keys mean the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileKey {
    status: &'static str,
    attempts: u32,
    worker: Option<usize>,
    blocked: u64,
}

/// The key of a task's file as it would be written now.
pub fn file_key(state: &State, task: &Task) -> FileKey {
    let blocked = blocking(state, task).fold(0, |sum: u64, id| {
        // The key covers which tasks block: one may close while another is re-opened.
        sum.wrapping_mul(1_000_003).wrapping_add(u64::from(id.0) + 1)
    });
    FileKey {
        status: task_word(task),
        attempts: task.spent.attempts,
        worker: worker(state, task),
        blocked,
    }
}

/// The number of the worker, counted as in `state.json`.
fn worker(state: &State, task: &Task) -> Option<usize> {
    match &task.status {
        Status::Running { attempt, .. } => state.live.keys().position(|id| id == attempt),
        Status::Open | Status::At { .. } | Status::Waiting { .. } | Status::Settled(_) => None,
    }
}

fn blocked_by<'a>(state: &'a State, task: &'a Task) -> Vec<&'a str> {
    blocking(state, task).map(|id| state.task(id).name()).collect()
}

/// The unfinished dependencies of a task.
fn blocking<'a>(state: &'a State, task: &'a Task) -> impl Iterator<Item = TaskId> + 'a {
    let is_open = match &task.status {
        Status::Open => task.needs > 0,
        Status::Settled(TaskEnd::Skipped { why: Skip::Blocked { .. } }) => true,
        Status::Settled(TaskEnd::Closed | TaskEnd::Failed { .. } | TaskEnd::Skipped { .. })
        | Status::At { .. }
        | Status::Running { .. }
        | Status::Waiting { .. } => false,
    };
    let names = task.spec.depends_on.iter().filter(move |_| is_open);
    names.filter_map(|on| state.named(on)).filter(|on| !on.is_closed()).map(|on| on.id)
}

/// `["a", "b"]`
fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    format!("[{}]", names.into_iter().map(quoted).collect::<Vec<_>>().join(", "))
}

/// A quoted YAML string on one line. Characters that YAML does not print, breaks lines at or could
/// read as syntax are escaped.
fn quoted(text: &str) -> String {
    let mut yaml = String::from("\"");
    for c in text.chars() {
        let code = u32::from(c);
        match c {
            '"' | '\\' => yaml.extend(['\\', c]),
            ' '..='~' => yaml.push(c),
            '\u{2028}' | '\u{2029}' | '\u{feff}' => yaml.push_str(&format!("\\u{code:04X}")),
            // These characters change the writing direction.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                yaml.push_str(&format!("\\u{code:04X}"));
            }
            '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' => yaml.push(c),
            '\u{10000}'.. if code & 0xfffe != 0xfffe => yaml.push(c),
            _ if code > 0xffff => yaml.push_str(&format!("\\U{code:08X}")),
            _ => yaml.push_str(&format!("\\u{code:04X}")),
        }
    }
    yaml.push('"');
    yaml
}
