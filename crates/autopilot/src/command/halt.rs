//! `autopilot stop`, `pause` and `unpause`: the process that works on the run answers. If it can't,
//! a flag file, which works from anywhere and survives a crash, holds the request.

use super::{Done, answer};
use crate::cli::Global;
use crate::exit::CommandFailure;
use autopilot_engine::ask::{self, AskError, HaltReply, HaltRequest, ProcessAnswer};
use autopilot_engine::flag::Flag;
use autopilot_engine::place::StatePaths;
use autopilot_engine::workspace;
use camino::Utf8Path;
use serde_json::json;

/// Stops the process that works on the run.
pub fn stop(global: &Global, now: bool) -> Done {
    let (place, _) = super::place(global)?;
    let request = if now { HaltRequest::StopNow } else { HaltRequest::Stop };
    let reply = ask::halt(&place, request)?;
    let (pid, path, changed) = match &reply {
        HaltReply::NoProcess => (None, None, false),
        HaltReply::Answered { pid, answer } => (Some(pid), None, answer.changed),
        HaltReply::Left { pid, path, .. } => (Some(pid), Some(path), true),
    };
    let told = json!({
        "stopping": pid.is_some(),
        "pid": pid,
        "now": now,
        "path": path.map(|path| in_repository(path, &place)),
        "changed": changed,
        "answer": reply.to_string(),
    });
    answer(global, told, |_| reply.to_string())
}

/// Pauses the run before its next step.
pub fn pause(global: &Global) -> Done {
    let (place, _) = super::place(global)?;
    let reply = ask::halt(&place, HaltRequest::Pause)?;
    let (path, changed) = match &reply {
        HaltReply::NoProcess => {
            let raised = Flag::Pause.raise(&place, false);
            let cannot = |source| AskError::Flag { flag: Flag::Pause, source };
            (Some(raised.map_err(cannot)?), true)
        }
        HaltReply::Answered { answer, .. } => (None, answer.changed),
        HaltReply::Left { path, .. } => (Some(path.clone()), true),
    };
    let text = match (&reply, &path) {
        (HaltReply::NoProcess, Some(path)) => format!("paused before the next step ({path})"),
        _ => reply.to_string(),
    };
    let path = path.map(|path| in_repository(&path, &place));
    let told = json!({ "paused": true, "path": path, "changed": changed, "answer": text });
    answer(global, told, |_| match changed {
        true => format!("{text}; `autopilot unpause` cancels the pause"),
        false => text,
    })
}

/// Cancels the pause.
pub fn unpause(global: &Global) -> Done {
    let (place, known) = super::place(global)?;
    let (removed, reply) = ask::unpause(&place)?;
    let rests = known && workspace::holder(&place).is_none() && has_unfinished(&place)?;
    let (text, changed) = match reply {
        _ if !removed.is_empty() => ("the pause was removed".to_owned(), true),
        Some(ProcessAnswer { text, changed }) => (text, changed),
        None => ("there was no pause".to_owned(), false),
    };
    let told = json!({
        "paused": false,
        "removed": removed.iter().map(|path| in_repository(path, &place)).collect::<Vec<_>>(),
        "resumable": rests,
        "changed": changed,
        "answer": text,
    });
    answer(global, told, |_| match rests {
        true => format!("{text}\ncontinue with `autopilot resume`"),
        false => text,
    })
}

fn in_repository(path: &Utf8Path, place: &StatePaths) -> String {
    path.strip_prefix(&place.root).unwrap_or(path).to_string()
}

fn has_unfinished(place: &StatePaths) -> Result<bool, CommandFailure> {
    let reader = workspace::reader(place)?;
    Ok(workspace::unfinished(&reader)?.is_some())
}
