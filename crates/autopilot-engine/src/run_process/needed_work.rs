//! What a run needs of the hub: the commits that were merged, and the work of open tasks.

use crate::workspace::WorkspaceError;
use autopilot_core::state::{State, Task};
use autopilot_core::step::Step;
use autopilot_host::git::{AttemptName, GitError, Hub, Oid};
use camino::Utf8Path;

/// An object without which the run can't go on, and what a person calls it.
pub(super) struct NeededWork {
    pub object: Oid,
    name: String,
}

/// Lists what the run needs. Of a task that is done this is its merge, whatever it was made from.
pub(super) fn of(state: &State) -> Result<Vec<NeededWork>, GitError> {
    let mut needed = Vec::new();
    let mut need = |object: Option<&str>, name: String| -> Result<(), GitError> {
        let object = object.filter(|object| !object.is_empty()).map(Oid::parse).transpose()?;
        needed.extend(object.map(|object| NeededWork { object, name }));
        Ok(())
    };
    need(Some(&state.run.base), "the commit that the run started from".to_owned())?;
    for task in state.tasks.iter().filter(|task| task.parent.is_some()) {
        let merge = task.last(Step::Merge).map(|shown| &shown.facts);
        let merged = format!("the merged work of {}", task.name());
        need(merge.and_then(|facts| facts.commit.as_deref()), merged.clone())?;
        need(merge.and_then(|facts| facts.tip.as_deref()), merged)?;
        if task.end().is_none() {
            for object in [&task.base, &task.tree, &task.commit] {
                need(object.as_deref(), format!("the unfinished work of {}", task.name()))?;
            }
        }
    }
    Ok(needed)
}

/// Fails if the hub lacks something that the run needs, and names it.
pub(super) fn refuse_lost(
    hub: &Hub,
    needed: &[NeededWork],
    path: &Utf8Path,
) -> Result<(), WorkspaceError> {
    let objects: Vec<Oid> = needed.iter().map(|work| work.object.clone()).collect();
    let lacking = hub.lacking(&objects)?;
    let mut lost: Vec<String> = Vec::new();
    for NeededWork { object, name } in needed.iter().filter(|work| lacking.contains(&work.object)) {
        if !lost.iter().any(|text| text.starts_with(name)) {
            lost.push(format!("{name} ({})", object.short()));
        }
    }
    if lost.is_empty() { Ok(()) } else { Err(WorkspaceError::WorkLost { path: path.into(), lost }) }
}

/// Names the unfinished work of tasks that a hub which is gone may have kept: that of attempts which
/// were cut short, and that of tasks which failed.
pub(super) fn lost_salvage(hub: &Hub, state: &State) -> Result<Vec<String>, GitError> {
    let mut lost = Vec::new();
    for task in state.tasks.iter().filter(|task| task.parent.is_some() && may_have_left(task)) {
        let mut is_kept = false;
        for id in &task.cut_short {
            let id = format!("{}-{id}", state.run.id);
            is_kept |=
                hub.resolve(&AttemptName { task: task.label(), id: &id }.salvage_ref())?.is_some();
        }
        let commit = task.commit.as_deref().map(Oid::parse).transpose()?;
        let is_gone = match commit {
            Some(commit) => !hub.lacking(&[commit])?.is_empty(),
            None => !task.cut_short.is_empty(),
        };
        if is_gone && !is_kept {
            lost.push(format!("the unfinished work of {} is lost with it", task.name()));
        }
    }
    Ok(lost)
}

/// Whether a task is not merged and something of it may have been saved.
fn may_have_left(task: &Task) -> bool {
    task.last(Step::Merge).is_none_or(|shown| shown.facts.commit.is_none())
        && (task.commit.is_some() || !task.cut_short.is_empty())
}
