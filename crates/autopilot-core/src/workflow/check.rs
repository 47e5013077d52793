//! Checks that a workflow keeps the rules, and reports every fault at once.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::member::{Members, kind, whole};
use super::{
    CheckedWorkflow, PlanFault, STEP_ID_CHARS_MAX, STEP_KIND, VERSION, Workflow, WorkflowRules,
    WorkflowStep,
};
use crate::config::nearest::nearest;
use crate::dag::{GraphFault, Path, TaskGraph};
use crate::plan::{GOAL_BYTES_MAX, Notes, PlanFaults, folded, is_of_a_run, listed, shown};
use crate::skill::asked;
use crate::task_file::id::is_safe;

const WORKFLOW_KEYS: &[&str] = &["version", "id", "steps"];
const STEP_KEYS: &[&str] = &["id", "goal", "dependsOn", "type", "adapter", "model", "timeoutSec"];
/// The longest id of a workflow and name of a model.
const NAME_CHARS_MAX: usize = 200;

/// Checks a workflow. One with a fault is refused as a whole.
pub fn check(json: &Value, rules: &WorkflowRules) -> Result<CheckedWorkflow, Vec<PlanFault>> {
    let mut faults = PlanFaults::default();
    let mut warnings = Notes::default();
    let workflow = read(json, rules, &mut faults, &mut warnings);
    ids(&workflow.steps, &mut faults);
    match graph(&workflow.steps, &mut faults) {
        Some(graph) if faults.is_empty() => {
            let (order, urgency) = (graph.order().to_vec(), graph.urgency());
            Ok(CheckedWorkflow { workflow, order, urgency, warnings: warnings.all() })
        }
        Some(_) | None => Err(faults.all()),
    }
}

/// Reads a workflow; members that are missing or unreadable stay empty, with a fault.
fn read(
    json: &Value,
    rules: &WorkflowRules,
    faults: &mut PlanFaults,
    warnings: &mut Notes,
) -> Workflow {
    let mut workflow = Workflow { version: VERSION, ..Workflow::default() };
    let Some(given) = json.as_object() else {
        faults.add("", format!("the workflow is {}, not an object", kind(json)));
        return workflow;
    };
    let members = Members::new("", given, WORKFLOW_KEYS);
    version(&members, faults);
    if let Some(id) = members.needed("id", faults) {
        name(&members.pointer("id"), id, faults);
        id.trim().clone_into(&mut workflow.id);
    }
    members.warn_of_unknown("the workflow", warnings);
    for (at, step) in steps(&members, rules, faults).iter().enumerate() {
        workflow.steps.push(one_step(at, step, rules, faults, warnings));
    }
    workflow
}

fn version(members: &Members<'_>, faults: &mut PlanFaults) {
    let what = match members.get("version") {
        Some(value) if whole(value) == Some(u64::from(VERSION)) => return,
        Some(value) => format!("unknown version {}", shown(&value.to_string())),
        None => "`version` is missing".to_owned(),
    };
    faults.add(members.pointer("version"), format!("{what}; write \"version\": {VERSION}"));
}

fn steps<'a>(members: &Members<'a>, rules: &WorkflowRules, faults: &mut PlanFaults) -> &'a [Value] {
    let pointer = members.pointer("steps");
    let steps: &[Value] = match members.get("steps") {
        Some(Value::Array(steps)) => steps,
        Some(other) => {
            faults.add(pointer, format!("it is {}, not a list of steps", kind(other)));
            return &[];
        }
        None => &[],
    };
    let (count, max) = (steps.len(), rules.steps_max);
    if count == 0 {
        faults.add(&pointer, "the workflow has no step; give at least one");
    }
    if count > max {
        let what = format!("the workflow has {count} steps; the limit is {max}; combine some");
        faults.add(&pointer, what);
    }
    steps
}

fn one_step(
    at: usize,
    json: &Value,
    rules: &WorkflowRules,
    faults: &mut PlanFaults,
    warnings: &mut Notes,
) -> WorkflowStep {
    let mut step = WorkflowStep::default();
    let Some(given) = json.as_object() else {
        faults.add(format!("/steps/{at}"), format!("it is {}, not a step", kind(json)));
        return step;
    };
    let members = Members::new(format!("/steps/{at}"), given, STEP_KEYS);
    if let Some(id) = members.needed("id", faults) {
        id.clone_into(&mut step.id);
    }
    let called = if step.id.is_empty() { format!("/steps/{at}") } else { shown(&step.id) };
    if let Some(goal) = goal(&members, faults) {
        if asked(goal).is_empty() {
            warnings.add(format!("the goal of step {called} names no skill"));
        }
        goal.clone_into(&mut step.goal);
    }
    let mut named = BTreeSet::new();
    for on in members.texts("dependsOn", faults) {
        if named.insert(on) {
            step.depends_on.push(on.to_owned());
        } else {
            let twice = || format!("step {called} lists its dependency {} twice", shown(on));
            warnings.add_with(twice);
        }
    }
    options(&members, rules, &mut step, faults);
    members.warn_of_unknown(&format!("step {called}"), warnings);
    step
}

fn goal<'a>(members: &Members<'a>, faults: &mut PlanFaults) -> Option<&'a str> {
    let goal = members.needed("goal", faults)?;
    if goal.len() > GOAL_BYTES_MAX {
        let what =
            format!("it has {} bytes, the limit is {GOAL_BYTES_MAX}; shorten it", goal.len());
        faults.add(members.pointer("goal"), what);
    }
    Some(goal)
}

fn options(
    members: &Members<'_>,
    rules: &WorkflowRules,
    step: &mut WorkflowStep,
    faults: &mut PlanFaults,
) {
    let kind = members.text("type", faults);
    if let Some(kind) = kind.filter(|kind| *kind != STEP_KIND) {
        let what = format!("a step can't be {}; write `{STEP_KIND}` or leave it out", shown(kind));
        faults.add(members.pointer("type"), what);
    }
    let adapter = members.text("adapter", faults);
    if let Some(adapter) = adapter.filter(|adapter| !rules.adapters.contains(*adapter)) {
        let what = match rules.unusable.get(adapter) {
            Some(why) => unusable_adapter(adapter, why, &rules.adapters),
            None => unknown_adapter(adapter, &rules.adapters),
        };
        faults.add(members.pointer("adapter"), what);
    }
    let model = members.text("model", faults);
    if let Some(model) = model {
        let pointer = members.pointer("model");
        name(&pointer, model, faults);
        // The name becomes a word of a command line.
        if model.is_empty() || model.starts_with('-') || model.contains(char::is_whitespace) {
            faults.add(pointer, format!("{} is not a valid model name", shown(model)));
        }
    }
    if let Some((key, what)) = unpriced(adapter, model, rules) {
        faults.add(members.pointer(key), what);
    }
    step.kind = kind.map(str::to_owned);
    step.adapter = adapter.map(str::to_owned);
    step.model = model.map(str::to_owned);
    step.timeout_sec = timeout(members, rules, faults);
}

fn unusable_adapter(adapter: &str, why: &str, known: &BTreeSet<String>) -> String {
    format!("the adapter {} can't be used here: {why}; {}", shown(adapter), instead(known))
}

fn instead(known: &BTreeSet<String>) -> String {
    match known.is_empty() {
        true => "leave it out".to_owned(),
        false => {
            format!("leave it out or choose one of {}", listed(known.iter().map(String::as_str)))
        }
    }
}

/// The member at fault, if the cost of the step could not be known.
fn unpriced(
    adapter: Option<&str>,
    model: Option<&str>,
    rules: &WorkflowRules,
) -> Option<(&'static str, String)> {
    let prices = rules.prices.as_ref()?;
    let own_has_one = *prices.asked_of.get(adapter.unwrap_or(&prices.usual))?;
    match model {
        Some(model) if prices.models.contains(model) => None,
        Some(model) => {
            let (called, instead) = (shown(model), instead(&prices.models));
            let what =
                format!("money is limited here and the model {called} has no price; {instead}");
            Some(("model", what))
        }
        None if own_has_one => None,
        None => {
            let what = "money is limited here and the cost of this agent is unknown; \
                        leave it out";
            Some(("adapter", what.to_owned()))
        }
    }
}

fn unknown_adapter(adapter: &str, known: &BTreeSet<String>) -> String {
    let meant = nearest(adapter, known.iter().map(String::as_str));
    let meant = meant.map(|known| format!("; did you mean `{known}`?")).unwrap_or_default();
    match known.is_empty() {
        true => format!("there is no adapter {}; leave it out", shown(adapter)),
        false => format!(
            "there is no adapter {}; the adapters are {}{meant}",
            shown(adapter),
            listed(known.iter().map(String::as_str))
        ),
    }
}

fn timeout(members: &Members<'_>, rules: &WorkflowRules, faults: &mut PlanFaults) -> Option<u64> {
    let value = members.get("timeoutSec")?;
    let max = rules.timeout_sec_max;
    let seconds = whole(value).filter(|seconds| (1..=max).contains(seconds));
    if seconds.is_none() {
        let what = format!(
            "{} is not a valid time limit; write whole seconds from 1 to {max}, or leave it out",
            shown(&value.to_string())
        );
        faults.add(members.pointer("timeoutSec"), what);
    }
    seconds
}

/// Checks that a text is one short line, as messages and files show it.
fn name(pointer: &str, text: &str, faults: &mut PlanFaults) {
    if text.chars().nth(NAME_CHARS_MAX).is_some() {
        faults.add(pointer, format!("it is longer than {NAME_CHARS_MAX} letters; shorten it"));
    }
    if text.contains(char::is_control) {
        faults.add(pointer, "it has a control character; write one line of text");
    }
}

/// Checks that the ids are safe, that no two are alike, and that no later iteration would need one.
fn ids(steps: &[WorkflowStep], faults: &mut PlanFaults) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| !step.id.trim().is_empty()) {
        let pointer = || format!("/steps/{at}/id");
        let called = shown(&step.id);
        if !is_safe(&step.id) || step.id.len() > STEP_ID_CHARS_MAX {
            let what = format!(
                "{called} is not a valid id; use 1 to {STEP_ID_CHARS_MAX} of a-z, A-Z, 0-9, `-`, `_` and \
                 `.`, starting with a letter or digit, without `..`, `.` or `.lock` at the end"
            );
            faults.add(pointer(), what);
        }
        if is_of_an_iteration(&step.id) {
            let what = format!(
                "{called} looks like the name of a step of a later iteration; choose another"
            );
            faults.add(pointer(), what);
        }
        if folded(&step.id) == "run" {
            faults
                .add(pointer(), format!("{called} is the name of the run itself; choose another"));
        }
        if is_of_a_run(&folded(&step.id)) {
            faults
                .add(pointer(), format!("{called} is the name of a run's branch; choose another"));
        }
        match seen.get(&folded(&step.id)) {
            None => {
                seen.insert(folded(&step.id), at);
            }
            Some(first) if steps[*first].id == step.id => {
                faults.add(pointer(), format!("two steps have the id {called} (/steps/{first})"));
            }
            Some(first) => {
                let other = shown(&steps[*first].id);
                let what = format!("{called} and {other} (/steps/{first}) differ only by case");
                faults.add(pointer(), what);
            }
        }
    }
}

/// Whether an id ends as in `…-i2`, like the names that [`super::task_name`] makes.
fn is_of_an_iteration(id: &str) -> bool {
    let number = id.rsplit_once(['i', 'I']).filter(|(before, _)| before.ends_with('-'));
    number.is_some_and(|(_, n)| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Builds the graph of the steps. A step that could never start would block the workflow, so such a
/// workflow is not started at all.
fn graph<'a>(steps: &'a [WorkflowStep], faults: &mut PlanFaults) -> Option<TaskGraph<'a>> {
    let named = steps.iter().filter(|step| !step.id.is_empty());
    let built = TaskGraph::build(
        named.map(|step| (step.id.as_str(), step.depends_on.iter().map(String::as_str))),
    );
    let found = match built {
        Ok(graph) => return Some(graph),
        Err(found) => found,
    };
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, step) in steps.iter().enumerate() {
        places.entry(&step.id).or_insert(at);
    }
    let pointer =
        |id: &str| format!("/steps/{}/dependsOn", places.get(id).copied().unwrap_or_default());
    for fault in found {
        match fault {
            // The check of the ids has reported it, with its place.
            GraphFault::Twice(_) => {}
            GraphFault::Unknown { task, on } => {
                faults.add_with(pointer(&task), || unknown_step(&task, &on, steps));
            }
            GraphFault::Cycle(path) => {
                let first = path.first().map_or("", String::as_str);
                faults.add(pointer(first), circle(&path));
            }
        }
    }
    None
}

fn unknown_step(step: &str, on: &str, steps: &[WorkflowStep]) -> String {
    let ids = || steps.iter().map(|step| step.id.as_str()).filter(|id| !id.is_empty());
    let meant = nearest(on, ids().filter(|id| *id != step));
    let meant = meant.map(|id| format!("; did you mean {}?", shown(id))).unwrap_or_default();
    format!(
        "Workflow stuck: step {} depends on {}, which is not one of its steps; the steps are {}{meant}",
        shown(step),
        shown(on),
        listed(ids())
    )
}

fn circle(path: &[String]) -> String {
    match path {
        [step, same] if step == same => {
            format!("Workflow stuck: step {} depends on itself", shown(step))
        }
        path => {
            let plain = |id: &String| if is_safe(id) { id.clone() } else { shown(id) };
            let names: Vec<String> = path.iter().map(plain).collect();
            let path = Path(&names);
            format!("Workflow stuck: the steps wait for each other in a circle: {path}")
        }
    }
}
