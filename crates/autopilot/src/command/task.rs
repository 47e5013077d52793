//! `autopilot retry` and `skip`: a word about one task, to the running engine or by going on.

use super::past::no_run;
use super::work;
use crate::cli::{Global, OneTask, Retry};
use crate::exit::Failure;
use crate::terminal;
use autopilot_core::config::nearest::nearest;
use autopilot_core::event::{End, Failure as Failed, Skip};
use autopilot_core::input::Ask;
use autopilot_core::state::{State, Status, Task};
use autopilot_core::view::{self, ExitWord};
use autopilot_engine::inbox::{self, LimitChange, Wish};
use autopilot_engine::session::Intent;
use autopilot_engine::{store, workspace};

/// Task names in a message.
const NAMES_MAX: usize = 20;

pub fn retry(global: &Global, args: &Retry) -> super::Done {
    // The run itself is the task without a name.
    let task = args.task.clone().unwrap_or_default();
    let words = (Wish::Retry { task: task.clone() }, Ask::Retry { task: task.clone() });
    let limits = work::limits(&args.limits)?;
    say(global, &task, args.wait, limits, words, may_retry)
}

pub fn skip(global: &Global, args: &OneTask) -> super::Done {
    let task = args.task.clone();
    if task.is_empty() {
        return Err(Failure::usage("name the task to leave out"));
    }
    let words = (Wish::Skip { task: task.clone() }, Ask::Skip { task: task.clone() });
    say(global, &task, args.wait, LimitChange::default(), words, may_skip)
}

fn say(
    global: &Global,
    name: &str,
    wait: bool,
    limits: LimitChange,
    (wish, ask): (Wish, Ask),
    may: fn(&State, &Task) -> Result<(), String>,
) -> super::Done {
    let (place, known) = super::place(global)?;
    if !known {
        return Err(no_run());
    }
    let state = newest(&place)?;
    let Some(task) = state.named(name) else {
        return Err(unknown(&state, name));
    };
    let shown = if task.parent.is_some() { format!("task `{name}`") } else { "the run".to_owned() };
    may(&state, task).map_err(|why| Failure::usage(format!("{shown} {why}")))?;
    if let Some(holder) = workspace::holder(&place) {
        let now = autopilot_engine::shell::now().0;
        // The limits first: without them it would fail again at once.
        let change = (!limits.is_empty()).then(|| Wish::Limit(limits.clone()));
        for (place_in_line, wish) in change.iter().chain([&wish]).enumerate() {
            let stamp = format!("{now:020}-{place_in_line}");
            inbox::put(&place, &stamp, wish).map_err(|error| Failure::failed(error.to_string()))?;
        }
        terminal::say(&format!("told the running process {}", holder.process.pid));
        return super::done();
    }
    let opened = work::reopen(global, &place, true)?;
    let intent = Intent::Resume { asks: vec![ask], limits, model: None, texts: Vec::new() };
    work::work(global, opened, intent, wait)
}

fn unknown(state: &State, name: &str) -> Failure {
    let names: Vec<&str> = view::leaves(state).map(|task| task.name()).collect();
    let guess = nearest(name, names.iter().copied());
    let guess = guess.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    let more = names.len().saturating_sub(NAMES_MAX);
    let named = names[..names.len().min(NAMES_MAX)].join(", ");
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Failure::usage(format!("there is no task `{name}` in run {}{guess}", state.run.id))
        .help(format!("its tasks are: {named}{more}"))
}

fn newest(place: &autopilot_engine::place::Place) -> Result<State, Failure> {
    let reader = workspace::reader(place)?;
    if let Some((_, state)) = workspace::unfinished(&reader)? {
        return Ok(state);
    }
    let run = workspace::pick(&reader, None)?;
    let run = run.ok_or_else(no_run)?;
    store::load(&reader, &run.id).map_err(|error| Failure::failed(error.to_string()))
}

fn may_retry(state: &State, task: &Task) -> Result<(), String> {
    match &task.status {
        Status::Settled(End::Failed { why: Failed::Children { .. } }) => {
            Err("failed because of its tasks; name the one to retry".to_owned())
        }
        // It would be blocked again at once; with that one it is opened too.
        Status::Settled(End::Skipped { why: Skip::Blocked { by } })
            if view::failure(state.task(*by)).is_some() =>
        {
            let by = state.task(*by).name();
            Err(format!("waits for `{by}`, which failed: autopilot retry {by}"))
        }
        Status::Settled(End::Skipped { why: Skip::Dropped }) => Err(dropped(state)),
        Status::Settled(End::Failed { .. } | End::Skipped { .. }) => in_time(state, task),
        Status::Settled(End::Closed) => Err("is done; there is nothing to retry".to_owned()),
        Status::Open | Status::At { .. } | Status::Running { .. } | Status::Waiting { .. } => {
            Err("has not failed; there is nothing to retry".to_owned())
        }
    }
}

/// What a person may do instead.
fn dropped(state: &State) -> String {
    let instead = match ExitWord::of(state) {
        ExitWord::Done => {
            "say what is missing in a session of `autopilot sessions`, with `autopilot resume \
             <session> --prompt …`, or begin another goal"
        }
        ExitWord::Failed | ExitWord::NotConverged | ExitWord::PushFailed => {
            "`autopilot retry` goes on with the run"
        }
        ExitWord::Paused => "`autopilot resume` goes on with the run",
    };
    format!(
        "was dropped: its workflow was not begun, as the one before it was judged once more; \
         {instead}"
    )
}

/// What the run has gone past is judged as it is; to say nothing of that would look like a yes.
fn in_time(state: &State, task: &Task) -> Result<(), String> {
    if !state.is_behind(task.id) {
        return Ok(());
    }
    let name = task.name();
    let step = match task.pipeline.continues_at() {
        Some(_) => " Its session can be gone on with: `autopilot resume <session> --prompt …`.",
        None => "",
    };
    Err(format!(
        "can't be taken up now: the run has gone on past its tasks and judges what there is. \
         `autopilot resume` goes on with it; if that fails, `autopilot retry {name}` can be said \
         again.{step}"
    ))
}

fn may_skip(state: &State, task: &Task) -> Result<(), String> {
    match &task.status {
        Status::Settled(End::Skipped { why: Skip::Dropped }) => Err(dropped(state)),
        Status::Settled(End::Closed) => Err("is done already".to_owned()),
        Status::Settled(End::Skipped { why: Skip::Asked }) => Err("is skipped already".to_owned()),
        Status::Settled(End::Failed { .. } | End::Skipped { .. }) => in_time(state, task),
        Status::Open | Status::At { .. } | Status::Running { .. } | Status::Waiting { .. } => {
            Ok(())
        }
    }
}
