//! `autopilot stop`, `pause` and `unpause`: the process that works on the run answers. If it can't,
//! a flag file, which works from anywhere and survives a crash, holds the request.

use crate::cli::{Global, StopArgs};
use crate::exit::CommandFailure;
use crate::terminal;
use autopilot_engine::ask::{self, AskError, HaltReply, HaltRequest};
use autopilot_engine::flag::Flag;
use autopilot_engine::place::StatePaths;
use autopilot_engine::workspace;
use camino::Utf8Path;
use serde_json::json;

/// Stops the process that works on the run.
pub fn stop(global: &Global, args: &StopArgs) -> super::Done {
    let (place, _) = super::place(global)?;
    let request = if args.now { HaltRequest::StopNow } else { HaltRequest::Stop };
    let reply = ask::halt(&place, request)?;
    let (pid, path, changed) = match &reply {
        HaltReply::NoProcess => (None, None, false),
        HaltReply::Answered { pid, changed, .. } => (Some(pid), None, *changed),
        HaltReply::Left { pid, path, .. } => (Some(pid), Some(path), true),
    };
    let answer = reply.to_string();
    terminal::either(global.json, &answer, || {
        json!({
            "stopping": pid.is_some(),
            "pid": pid,
            "now": args.now,
            "path": path.map(|path| in_repository(path, &place)),
            "changed": changed,
            "answer": answer,
        })
    });
    super::done()
}

/// Pauses the run before its next step.
pub fn pause(global: &Global) -> super::Done {
    let (place, _) = super::place(global)?;
    let reply = ask::halt(&place, HaltRequest::Pause)?;
    let (path, changed) = match &reply {
        HaltReply::NoProcess => {
            let raised = Flag::Pause.raise(&place, false);
            let cannot = |source| AskError::Flag { flag: Flag::Pause, source };
            (Some(raised.map_err(cannot)?), true)
        }
        HaltReply::Answered { changed, .. } => (None, *changed),
        HaltReply::Left { path, .. } => (Some(path.clone()), true),
    };
    let answer = match (&reply, &path) {
        (HaltReply::NoProcess, Some(path)) => format!("paused before the next step ({path})"),
        _ => reply.to_string(),
    };
    let text = match changed {
        true => format!("{answer}; `autopilot unpause` cancels the pause"),
        false => answer.clone(),
    };
    terminal::either(global.json, &text, || {
        let path = path.map(|path| in_repository(&path, &place));
        json!({ "paused": true, "path": path, "changed": changed, "answer": answer })
    });
    super::done()
}

/// Cancels the pause.
pub fn unpause(global: &Global) -> super::Done {
    let (place, known) = super::place(global)?;
    let (removed, answer) = ask::unpause(&place)?;
    let rests = known && workspace::holder(&place).is_none() && has_unfinished(&place)?;
    let changed = !removed.is_empty() || answer.as_ref().is_some_and(|(_, changed)| *changed);
    let answer = match answer {
        _ if !removed.is_empty() => "the pause was removed".to_owned(),
        Some((text, _)) => text,
        None => "there was no pause".to_owned(),
    };
    let text = match rests {
        true => format!("{answer}\ncontinue with `autopilot resume`"),
        false => answer.clone(),
    };
    terminal::either(global.json, &text, || {
        let removed: Vec<String> = removed.iter().map(|path| in_repository(path, &place)).collect();
        json!({
            "paused": false,
            "removed": removed,
            "resumable": rests,
            "changed": changed,
            "answer": answer,
        })
    });
    super::done()
}

fn in_repository(path: &Utf8Path, place: &StatePaths) -> String {
    path.strip_prefix(&place.root).unwrap_or(path).to_string()
}

fn has_unfinished(place: &StatePaths) -> Result<bool, CommandFailure> {
    let reader = workspace::reader(place)?;
    Ok(workspace::unfinished(&reader)?.is_some())
}
