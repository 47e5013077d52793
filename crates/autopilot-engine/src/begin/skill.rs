//! Checks before a run starts that the skills which its tasks ask for exist.

use super::known_plan;
use super::{BeginError, Tasks};
use crate::skill::is_uncommitted;
use autopilot_core::config::Mode;
use autopilot_core::flow::FlowInput;
use autopilot_core::plan;
use autopilot_core::skill::{Missing, Shelf};
use autopilot_core::task_file::TaskSpec;
use camino::Utf8Path;

/// Reports every missing skill at once, with the folders that were searched. `shelves` are the
/// available skills for each agent that may build.
pub fn check_skills(
    tasks: &Tasks,
    shelves: &[(Mode, Shelf)],
    root: &Utf8Path,
) -> Result<(), BeginError> {
    let mut faults = Vec::new();
    let mut looked_in = Vec::new();
    for (what, spec) in asking(tasks) {
        let asked = spec.asked_skills();
        for (mode, shelf) in shelves {
            let Err(missing) = shelf.wanted(&asked, *mode) else { continue };
            let found = missing.iter().map(|missing| fault(&what, missing, root));
            add_new(&mut faults, found);
            add_new(&mut looked_in, shelf.looked_in.iter().cloned());
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(BeginError::Skill { faults, looked_in }) }
}

/// Adds each text that is not there yet.
fn add_new(texts: &mut Vec<String>, more: impl Iterator<Item = String>) {
    for text in more {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
}

fn fault(what: &str, missing: &Missing, root: &Utf8Path) -> String {
    let mut text = format!("{what} asks for a skill: {missing}");
    if let Some(path) = is_uncommitted(root, &missing.name) {
        text.push_str(&format!(
            "; `{path}` is not committed, so no agent would see it: commit it, or name it in \
             `worktrees.copy`"
        ));
    }
    text
}

/// Every specification a person wrote or supplied.
fn asking(tasks: &Tasks) -> Vec<(String, TaskSpec)> {
    let mut asking: Vec<(String, TaskSpec)> =
        tasks.specs.iter().map(|spec| (format!("task `{}`", spec.id), spec.clone())).collect();
    // A goal names no skills itself; the steps of its workflow do.
    let whole = tasks.whole.iter().filter(|_| tasks.flow.row().input != FlowInput::Text);
    asking.extend(whole.map(|whole| ("the plan".to_owned(), whole.spec.clone())));
    for task in tasks.plan.as_deref().map(known_plan::tasks_of).unwrap_or_default() {
        let spec = plan::body(&task, &TaskSpec::default()).spec;
        asking.push((format!("task `{}` of the plan", task.id), spec));
    }
    asking
}
