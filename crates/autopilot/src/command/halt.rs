//! `autopilot stop`, `pause`, `unpause`: by files, so that they work from anywhere and survive.

use crate::cli::{Global, Stop};
use crate::exit::Failure;
use crate::terminal;
use autopilot_engine::flag::Flag;
use autopilot_engine::place::Place;
use autopilot_engine::workspace;

pub fn stop(global: &Global, args: &Stop) -> super::Done {
    let (place, _) = super::place(global)?;
    let Some(holder) = workspace::holder(&place) else {
        terminal::say("no run is under way; nothing was changed");
        return super::done();
    };
    let path = Flag::Stop.raise(&place, args.now).map_err(|error| cannot(Flag::Stop, &error))?;
    let how = if args.now { "is ended now" } else { "stops at the next step boundary" };
    terminal::say(&format!("the run of process {} {how} ({path})", holder.process.pid));
    super::done()
}

pub fn pause(global: &Global) -> super::Done {
    let (place, _) = super::place(global)?;
    let path = Flag::Pause.raise(&place, false).map_err(|error| cannot(Flag::Pause, &error))?;
    terminal::say(&format!(
        "paused before the next step ({path}); `autopilot unpause` takes it back"
    ));
    super::done()
}

pub fn unpause(global: &Global) -> super::Done {
    let (place, known) = super::place(global)?;
    let gone = Flag::Pause.lower(&place).map_err(|error| cannot(Flag::Pause, &error))?;
    if gone.is_empty() {
        terminal::say("there was no pause");
    } else {
        terminal::say("the pause is taken back");
    }
    if known && workspace::holder(&place).is_none() && has_unfinished(&place)? {
        terminal::say("go on with `autopilot resume`");
    }
    super::done()
}

fn has_unfinished(place: &Place) -> Result<bool, Failure> {
    let reader = workspace::reader(place)?;
    Ok(workspace::unfinished(&reader)?.is_some())
}

fn cannot(flag: Flag, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot change {}: {error}", flag.file_name()))
}
