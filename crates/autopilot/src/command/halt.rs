//! `autopilot stop`, `pause` and `unpause`: by flag files, which work from anywhere and survive a
//! crash.

use crate::cli::{Global, StopArgs};
use crate::exit::{CommandFailure, OrFailed};
use crate::terminal;
use autopilot_engine::flag::Flag;
use autopilot_engine::place::StatePaths;
use autopilot_engine::workspace;
use camino::Utf8Path;
use serde_json::json;

/// Stops the process that works on the run.
pub fn stop(global: &Global, args: &StopArgs) -> super::Done {
    let (place, _) = super::place(global)?;
    let Some(holder) = workspace::holder(&place) else {
        if global.json {
            terminal::json(
                &json!({ "stopping": false, "pid": null, "now": args.now, "path": null }),
            );
            return super::done();
        }
        terminal::say("no run is under way; nothing was changed");
        return super::done();
    };
    let path = Flag::Stop.raise(&place, args.now).or_failed(cannot_change(Flag::Stop))?;
    let pid = holder.process.pid;
    if global.json {
        let path = in_repository(&path, &place);
        terminal::json(&json!({ "stopping": true, "pid": pid, "now": args.now, "path": path }));
        return super::done();
    }
    let how = if args.now { "stops now" } else { "stops at the next step boundary" };
    terminal::say(&format!("the run of process {pid} {how} ({path})"));
    super::done()
}

/// Pauses the run before its next step.
pub fn pause(global: &Global) -> super::Done {
    let (place, _) = super::place(global)?;
    let path = Flag::Pause.raise(&place, false).or_failed(cannot_change(Flag::Pause))?;
    if global.json {
        terminal::json(&json!({ "paused": true, "path": in_repository(&path, &place) }));
        return super::done();
    }
    terminal::say(&format!(
        "paused before the next step ({path}); `autopilot unpause` removes the pause"
    ));
    super::done()
}

/// Removes the pause.
pub fn unpause(global: &Global) -> super::Done {
    let (place, known) = super::place(global)?;
    let gone = Flag::Pause.lower(&place).or_failed(cannot_change(Flag::Pause))?;
    let rests = known && workspace::holder(&place).is_none() && has_unfinished(&place)?;
    if global.json {
        let gone: Vec<String> = gone.iter().map(|path| in_repository(path, &place)).collect();
        terminal::json(&json!({ "paused": false, "removed": gone, "resumable": rests }));
        return super::done();
    }
    if gone.is_empty() {
        terminal::say("there was no pause");
    } else {
        terminal::say("the pause was removed");
    }
    if rests {
        terminal::say("continue with `autopilot resume`");
    }
    super::done()
}

fn in_repository(path: &Utf8Path, place: &StatePaths) -> String {
    path.strip_prefix(&place.root).unwrap_or(path).to_string()
}

fn has_unfinished(place: &StatePaths) -> Result<bool, CommandFailure> {
    let reader = workspace::reader(place)?;
    Ok(workspace::unfinished(&reader)?.is_some())
}

fn cannot_change(flag: Flag) -> String {
    format!("cannot change {}", flag.file_name())
}
