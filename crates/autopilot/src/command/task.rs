//! `autopilot retry` and `skip`: a word about one task, to the running engine or by going on.

use super::work;
use crate::cli::{Global, OneTask};
use crate::exit::Failure;
use crate::terminal;
use autopilot_core::config::nearest::nearest;
use autopilot_core::event::{End, Skip};
use autopilot_core::input::Ask;
use autopilot_core::state::{State, Status};
use autopilot_core::view;
use autopilot_engine::inbox::{self, Wish};
use autopilot_engine::session::Intent;
use autopilot_engine::{store, workspace};

pub fn retry(global: &Global, args: &OneTask) -> super::Done {
    let task = args.task.clone();
    say(global, args, Wish::Retry { task: task.clone() }, Ask::Retry { task }, may_retry)
}

pub fn skip(global: &Global, args: &OneTask) -> super::Done {
    let task = args.task.clone();
    say(global, args, Wish::Skip { task: task.clone() }, Ask::Skip { task }, may_skip)
}

fn say(
    global: &Global,
    args: &OneTask,
    wish: Wish,
    ask: Ask,
    may: fn(&Status) -> Result<(), &'static str>,
) -> super::Done {
    let (place, known) = super::place(global)?;
    if !known {
        return Err(Failure::usage("there is no run in this repository yet"));
    }
    let state = newest(&place)?;
    let found = state.named(&args.task).filter(|task| task.parent.is_some());
    let Some(task) = found else {
        let names: Vec<&str> = view::leaves(&state).map(|task| task.name()).collect();
        let guess = nearest(&args.task, names.iter().copied());
        let guess = guess.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        return Err(Failure::usage(format!(
            "there is no task `{}` in run {}{guess}",
            args.task, state.run.id
        ))
        .help(format!("its tasks are: {}", names.join(", "))));
    };
    may(&task.status).map_err(|why| Failure::usage(format!("task `{}` {why}", args.task)))?;
    if let Some(holder) = workspace::holder(&place) {
        let stamp = format!("{:020}", autopilot_engine::shell::now().0);
        inbox::put(&place, &stamp, &wish).map_err(|error| Failure::failed(error.to_string()))?;
        terminal::say(&format!("told the running process {}", holder.process.pid));
        return super::done();
    }
    let opened = work::reopen(global, &place, true)?;
    let intent = Intent::Resume { asks: vec![ask], limits: Default::default(), texts: Vec::new() };
    work::work(global, opened, intent, args.wait)
}

fn newest(place: &autopilot_engine::place::Place) -> Result<State, Failure> {
    let reader = workspace::reader(place)?;
    if let Some((_, state)) = workspace::unfinished(&reader)? {
        return Ok(state);
    }
    let run = workspace::pick(&reader, None)?;
    let run = run.ok_or_else(|| Failure::usage("there is no run in this repository yet"))?;
    store::load(&reader, &run.id).map_err(|error| Failure::failed(error.to_string()))
}

fn may_retry(status: &Status) -> Result<(), &'static str> {
    match status {
        Status::Settled(End::Failed { .. } | End::Skipped { .. }) => Ok(()),
        Status::Settled(End::Closed) => Err("is done; there is nothing to retry"),
        Status::Open | Status::At { .. } | Status::Running { .. } | Status::Waiting { .. } => {
            Err("has not failed; there is nothing to retry")
        }
    }
}

fn may_skip(status: &Status) -> Result<(), &'static str> {
    match status {
        Status::Settled(End::Closed) => Err("is done already"),
        Status::Settled(End::Skipped { why: Skip::Asked }) => Err("is skipped already"),
        Status::Settled(End::Failed { .. } | End::Skipped { .. })
        | Status::Open
        | Status::At { .. }
        | Status::Running { .. }
        | Status::Waiting { .. } => Ok(()),
    }
}
