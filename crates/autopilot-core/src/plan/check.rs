//! Checks that a plan keeps the rules, and reports every fault at once.

use std::collections::{BTreeMap, BTreeSet};

use super::fault::{Notes, PlanFault, PlanFaults, listed, shown, shown_at_most};
use super::{
    COMMAND_BYTES_MAX, CRITERIA_MAX, CRITERION_BYTES_MAX, CheckedPlan, GOAL_BYTES_MAX, PATHS_MAX,
    PLAN_TEXT_BYTES_MAX, Plan, PlanRules, PlanTask, PlannedTask, SUGGESTIONS_MAX, TASKS_DIR,
    TEST_PLAN_BYTES_MAX, order, overlap, place,
};
use crate::dag::{GraphFault, TaskGraph};
use crate::task_file::TITLE_CHARS_MAX;
use crate::task_file::id::ID_CHARS_MAX;

/// Checks `plan`. A plan with a fault is refused as a whole.
pub fn check(plan: &Plan, rules: &PlanRules) -> Result<CheckedPlan, Vec<PlanFault>> {
    let mut faults = PlanFaults::default();
    let mut notes = Notes::default();
    size(plan, rules, &mut faults);
    ids(plan, rules, &mut faults);
    for (at, task) in plan.tasks.iter().enumerate() {
        texts(at, task, &mut faults);
        commands(at, task, rules, &mut faults, &mut notes);
    }
    let paths = place::allowed(plan, rules, &mut faults, &mut notes);
    edges(plan, &mut faults);
    match graph(plan, rules, &mut faults) {
        Some(graph) if faults.is_empty() => {
            order::compare(plan, &graph, &mut notes);
            if plan.tasks_dir.as_deref().is_some_and(|dir| dir.trim_end_matches('/') != TASKS_DIR) {
                notes.add(format!(
                    "the tasks are written to {TASKS_DIR}, not to the plan's `tasks_dir`"
                ));
            }
            overlap::warn(&graph, &paths, rules.serialize_overlapping, &mut notes);
            Ok(checked(plan, &graph, paths, notes))
        }
        Some(_) | None => Err(faults.all()),
    }
}

fn checked(
    plan: &Plan,
    graph: &TaskGraph<'_>,
    mut paths: Vec<Vec<String>>,
    notes: Notes,
) -> CheckedPlan {
    let urgency = graph.urgency();
    let planned = |at: &usize| PlannedTask {
        task: PlanTask {
            allowed_paths: std::mem::take(&mut paths[*at]),
            ..plan.tasks[*at].clone()
        },
        urgency: urgency[*at],
    };
    let names = |places: Vec<usize>| places.into_iter().map(|at| graph.id(at).to_owned()).collect();
    CheckedPlan {
        tasks: graph.order().iter().map(planned).collect(),
        batches: graph.batches().into_iter().map(names).collect(),
        ready: names(graph.ready()),
        notes: notes.all(),
    }
}

fn size(plan: &Plan, rules: &PlanRules, faults: &mut PlanFaults) {
    let (count, max) = (plan.tasks.len(), rules.tasks_max);
    if count == 0 {
        faults.add("/tasks", "the plan has no task; give at least one");
    }
    if count > max {
        let what = format!(
            "the plan has {count} tasks, the limit is {max} (`plan.max_tasks`); join some, or mark \
             larger ones `expand: true` to have them divided later"
        );
        faults.add("/tasks", what);
    }
    for (key, text, max) in [
        ("plan_summary", Some(&plan.plan_summary), PLAN_TEXT_BYTES_MAX),
        ("scope_notes", Some(&plan.scope_notes), PLAN_TEXT_BYTES_MAX),
        ("risks", plan.risks.as_ref(), PLAN_TEXT_BYTES_MAX),
        ("test_plan", plan.test_plan.as_ref(), TEST_PLAN_BYTES_MAX),
    ] {
        if let Some(text) = text {
            too_long(&format!("/{key}"), text, max, faults);
        }
    }
}

fn too_long(pointer: &str, text: &str, bytes_max: usize, faults: &mut PlanFaults) {
    if text.len() > bytes_max {
        let what = format!("it has {} bytes, the limit is {bytes_max}; shorten it", text.len());
        faults.add(pointer, what);
    }
}

/// Checks that the ids are safe, that no two are alike, and that the run has none of them yet.
fn ids(plan: &Plan, rules: &PlanRules, faults: &mut PlanFaults) {
    let taken: BTreeMap<String, (&String, &String)> =
        rules.taken.iter().map(|(name, word)| (folded(name), (name, word))).collect();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (at, task) in plan.tasks.iter().enumerate() {
        let pointer = || format!("/tasks/{at}/id");
        if !is_safe(&task.id) {
            let what = format!(
                "{} is not a valid id; use 1 to {ID_CHARS_MAX} of a-z, 0-9 and `-`, not starting with \
                 `-`, and put text for people into `title`",
                shown(&task.id)
            );
            faults.add(pointer(), what);
        }
        if is_of_a_run(&task.id) {
            let what = format!("{} is the name of a run's branch; choose another", shown(&task.id));
            faults.add(pointer(), what);
        }
        let folded = folded(&task.id);
        if let Some((name, word)) = taken.get(&folded) {
            let what = match word.as_str() {
                "DONE" => format!(
                    "{} is a task of this run that is already done and cannot change; \
                     leave it out, or give the new work another id",
                    shown(name)
                ),
                word => format!(
                    "this run already has a task {} ({word}); choose another id",
                    shown(name)
                ),
            };
            faults.add(pointer(), what);
        }
        match seen.get(&folded) {
            None => {
                seen.insert(folded, at);
            }
            Some(first) if plan.tasks[*first].id == task.id => {
                let what = format!("two tasks have the id {} (/tasks/{first})", shown(&task.id));
                faults.add(pointer(), what);
            }
            Some(first) => {
                let what = format!(
                    "{} and {} (/tasks/{first}) differ only by case",
                    shown(&task.id),
                    shown(&plan.tasks[*first].id)
                );
                faults.add(pointer(), what);
            }
        }
    }
}

/// Whether an id can be used in names of branches, files and variables, on every system.
fn is_safe(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    id.len() <= ID_CHARS_MAX
        && id.bytes().next().is_some_and(plain)
        && id.bytes().all(|byte| plain(byte) || byte == b'-')
}

/// Whether the id looks like a run's (`run-20260131-…`): runs have branches beside those of tasks.
pub(crate) fn is_of_a_run(id: &str) -> bool {
    const DAY_CHARS: usize = 8;
    let day = id.strip_prefix("run-").and_then(|rest| rest.split('-').next());
    day.is_some_and(|day| day.len() == DAY_CHARS && day.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The text without regard to case. It goes up and down again: one letter may have two capitals
/// (`ß`, `ſ`, the Kelvin sign).
pub(crate) fn folded(text: &str) -> String {
    text.to_uppercase().to_lowercase()
}

fn texts(at: usize, task: &PlanTask, faults: &mut PlanFaults) {
    let pointer = |key: &str| format!("/tasks/{at}/{key}");
    if task.title.trim().is_empty() {
        faults.add(pointer("title"), "the title is empty");
    }
    if task.title.chars().nth(TITLE_CHARS_MAX).is_some() {
        let what = format!("the title is longer than {TITLE_CHARS_MAX} letters; shorten it");
        faults.add(pointer("title"), what);
    }
    if task.title.contains(char::is_control) {
        faults.add(pointer("title"), "the title has a control character; write one line of text");
    }
    if task.goal.trim().is_empty() {
        faults.add(pointer("goal"), "the goal is empty");
    }
    too_long(&pointer("goal"), &task.goal, GOAL_BYTES_MAX, faults);
    criteria(at, task, faults);
    for (key, count, max) in [
        ("allowed_paths", task.allowed_paths.len(), PATHS_MAX),
        ("suggested_claude_skills", task.suggested_claude_skills.len(), SUGGESTIONS_MAX),
        ("suggested_mcp_servers", task.suggested_mcp_servers.len(), SUGGESTIONS_MAX),
        ("suggested_subagents", task.suggested_subagents.len(), SUGGESTIONS_MAX),
    ] {
        if count > max {
            faults.add(pointer(key), format!("the list has {count} entries; the limit is {max}"));
        }
    }
}

/// Checks the acceptance criteria; a task without any could never be shown to be done.
fn criteria(at: usize, task: &PlanTask, faults: &mut PlanFaults) {
    let pointer = format!("/tasks/{at}/acceptance_criteria");
    let count = task.acceptance_criteria.len();
    if count == 0 {
        let what = format!(
            "task {} has no acceptance criteria, so nothing could be verified; give at least one",
            shown(&task.id)
        );
        faults.add(&pointer, what);
    }
    if count > CRITERIA_MAX {
        faults.add(&pointer, format!("the list has {count} entries; the limit is {CRITERIA_MAX}"));
    }
    for (place, criterion) in task.acceptance_criteria.iter().enumerate() {
        if criterion.trim().is_empty() {
            let what = "the criterion is empty; say what can be tested, or leave it out";
            faults.add(format!("{pointer}/{place}"), what);
        }
        too_long(&format!("{pointer}/{place}"), criterion, CRITERION_BYTES_MAX, faults);
    }
}

fn commands(
    at: usize,
    task: &PlanTask,
    rules: &PlanRules,
    faults: &mut PlanFaults,
    notes: &mut Notes,
) {
    const COMMAND_CHARS_MAX: usize = 200;
    for (key, command) in task.validation_commands.given() {
        let pointer = format!("/tasks/{at}/validation_commands/{key}");
        let said = shown_at_most(command, COMMAND_CHARS_MAX);
        too_long(&pointer, command, COMMAND_BYTES_MAX, faults);
        if !rules.commands_allowed {
            let what = format!(
                "a plan may not bring its own commands: {said}; leave it out (`plan.commands: \
                 true` in the configuration would allow it)"
            );
            faults.add(pointer, what);
        } else if command.contains('\0') {
            faults.add(pointer, format!("the command {said} has a NUL character"));
        } else {
            notes.add(format!("task {} brings its own `{key}` command: {said}", shown(&task.id)));
        }
    }
}

/// Compares `edges` with `depends_on`; where the two differ we can't know which was meant.
fn edges(plan: &Plan, faults: &mut PlanFaults) {
    if plan.edges.is_empty() {
        return;
    }
    let known: BTreeSet<&str> = plan.tasks.iter().map(|task| task.id.as_str()).collect();
    let mut drawn: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (at, edge) in plan.edges.iter().enumerate() {
        for (key, id) in [("from", &edge.from), ("to", &edge.to)] {
            if !known.contains(id.as_str()) {
                let what = format!("{} is not a task of the plan", shown(id));
                faults.add(format!("/edges/{at}/{key}"), what);
            }
        }
        drawn.entry(&edge.to).or_default().insert(&edge.from);
    }
    let none = BTreeSet::new();
    for (at, task) in plan.tasks.iter().enumerate() {
        let listed_on: BTreeSet<&str> = task.depends_on.iter().map(String::as_str).collect();
        let drawn_on = drawn.get(task.id.as_str()).unwrap_or(&none);
        if *drawn_on != listed_on {
            let what = format!(
                "`edges` and `depends_on` differ for {}: edges lead to it from {}, depends_on \
                 names {}; make them agree",
                shown(&task.id),
                listed(drawn_on.iter().copied()),
                listed(listed_on.iter().copied())
            );
            faults.add(format!("/tasks/{at}/depends_on"), what);
        }
    }
}

fn graph<'a>(plan: &'a Plan, rules: &PlanRules, faults: &mut PlanFaults) -> Option<TaskGraph<'a>> {
    let tasks = plan.tasks.iter();
    let built = TaskGraph::build(
        tasks.map(|task| (task.id.as_str(), task.depends_on.iter().map(String::as_str))),
    );
    let graph = match built {
        Ok(graph) => graph,
        Err(found) => {
            graph_faults(plan, rules, found, faults);
            return None;
        }
    };
    let (depth, max) = (graph.depth(), rules.depth_max);
    if depth > max {
        let what = format!(
            "the longest chain of dependencies has {depth} tasks; the limit is {max} \
             (`plan.max_depth`); let fewer tasks depend on each other"
        );
        faults.add("/tasks", what);
    }
    for at in 0..graph.len() {
        let (waiting, max) = (graph.dependants(at).len(), rules.fan_out_max);
        if waiting > max {
            let what = format!(
                "{waiting} tasks depend on {}; the limit is {max} (`plan.max_fan_out`)",
                shown(graph.id(at))
            );
            faults.add(format!("/tasks/{at}/id"), what);
        }
    }
    Some(graph)
}

fn graph_faults(plan: &Plan, rules: &PlanRules, found: Vec<GraphFault>, faults: &mut PlanFaults) {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, task) in plan.tasks.iter().enumerate() {
        places.entry(&task.id).or_insert(at);
    }
    let at = |id: &str| places.get(id).copied().unwrap_or_default();
    for fault in found {
        match &fault {
            // The check of the ids has reported it, with its place.
            GraphFault::Twice(_) => {}
            GraphFault::Unknown { task, on } => {
                let at = at(task);
                faults.add_with(format!("/tasks/{at}/depends_on"), || {
                    let why = match rules.taken.get(on) {
                        Some(word) => format!("a task of the run ({word}) but not of this plan"),
                        None => "not a task of the plan".to_owned(),
                    };
                    format!(
                        "task {} depends on {}, which is {why}; depends_on names {}, the tasks are \
                         {}",
                        shown(task),
                        shown(on),
                        listed(plan.tasks[at].depends_on.iter().map(String::as_str)),
                        listed(plan.tasks.iter().map(|task| task.id.as_str()))
                    )
                });
            }
            GraphFault::Cycle(path) => {
                let first = path.first().map_or(0, |id| at(id));
                faults.add(format!("/tasks/{first}/depends_on"), fault.to_string());
            }
        }
    }
}
