//! `autopilot retry` and `skip`: a word about one task, to the running engine or by going on.

use super::work;
use crate::cli::{Global, OneTask, Retry};
use crate::exit::Failure;
use crate::terminal;
use autopilot_core::config::nearest::nearest;
use autopilot_core::event::{End, Failure as Failed, Skip};
use autopilot_core::input::Ask;
use autopilot_core::limit::Limits;
use autopilot_core::state::{State, Status, Task};
use autopilot_engine::inbox::{self, LimitChange, Wish};
use autopilot_engine::query::QueryError;
use autopilot_engine::run_process::Intent;
use autopilot_engine::{store, workspace};
use autopilot_view::{self as view, ExitWord};

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
    may: fn(&Asked<'_>) -> Result<(), Failure>,
) -> super::Done {
    let (place, known) = super::place(global)?;
    if !known {
        return Err(QueryError::NoRunYet.into());
    }
    let state = newest(&place)?;
    let Some(task) = state.named(name) else {
        return Err(unknown(&state, name));
    };
    let holder = workspace::holder(&place);
    let after = limits.applied_to(&state.run.limits);
    may(&Asked { state: &state, task, limits: &after, is_live: holder.is_some() })?;
    if let Some(holder) = holder {
        let now = autopilot_engine::clock::now().0;
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
    let run = run.ok_or(QueryError::NoRunYet)?;
    store::load(&reader, &run.id).map_err(|error| Failure::failed(error.to_string()))
}

/// A word about a task, and what it is said to.
struct Asked<'a> {
    state: &'a State,
    task: &'a Task,
    /// With what the command itself changes.
    limits: &'a Limits,
    is_live: bool,
}

impl Asked<'_> {
    fn refused(&self, why: &str) -> Failure {
        Failure::usage(format!("{} {why}", self.shown()))
    }

    fn shown(&self) -> String {
        match self.task.parent {
            Some(_) => format!("task `{}`", self.task.name()),
            None => "the run".to_owned(),
        }
    }
}

fn may_retry(asked: &Asked<'_>) -> Result<(), Failure> {
    match &asked.task.status {
        Status::Settled(End::Failed { why: Failed::Children { .. } }) => {
            Err(asked.refused("failed because of its tasks; name the one to retry"))
        }
        // It would be blocked again at once; with that one it is opened too.
        Status::Settled(End::Skipped { why: Skip::Blocked { by } })
            if view::failure(asked.state.task(*by)).is_some() =>
        {
            let by = asked.state.task(*by).name();
            Err(asked.refused(&format!("waits for `{by}`, which failed: autopilot retry {by}")))
        }
        Status::Settled(End::Skipped { why: Skip::Dropped }) => {
            Err(asked.refused(&dropped(asked.state)))
        }
        Status::Settled(End::Failed { .. } | End::Skipped { .. }) => {
            in_time(asked)?;
            has_means(asked)
        }
        Status::Settled(End::Closed) => Err(asked.refused("is done; there is nothing to retry")),
        Status::Open | Status::At { .. } | Status::Running { .. } | Status::Waiting { .. } => {
            Err(asked.refused("has not failed; there is nothing to retry"))
        }
    }
}

/// Without rounds or money nothing would be begun; to go on in silence would look like a yes.
fn has_means(asked: &Asked<'_>) -> Result<(), Failure> {
    let spent = &asked.task.spent;
    if spent.rounds_lived >= asked.limits.rounds_lifetime_max {
        let why = format!(
            "{} has used up all the {} rounds there may ever be",
            asked.shown(),
            asked.limits.rounds_lifetime_max
        );
        let help = "what was merged stays on its branch; begin another run for what is missing";
        return Err(Failure::failed(why).help(help));
    }
    let max = asked.limits.usd_per_task_max.filter(|_| asked.task.parent.is_some());
    match max.filter(|max| spent.bill.usd >= *max) {
        None => Ok(()),
        Some(max) => {
            let name = asked.task.name();
            let why = format!("task {name} has spent {} of its limit of {max}", spent.bill.usd);
            let help = format!("autopilot retry {name} --max-usd-per-task <USD>");
            Err(Failure::failed(why).help(help))
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
fn in_time(asked: &Asked<'_>) -> Result<(), Failure> {
    if !asked.state.is_behind(asked.task.id) {
        return Ok(());
    }
    let name = asked.task.name();
    let go_on = match asked.is_live {
        true => "Wait for its end, or `autopilot stop` it",
        false => "`autopilot resume` goes on with it",
    };
    let step = match asked.task.pipeline.continues_at() {
        Some(_) if !asked.is_live => {
            " Its session can be gone on with: `autopilot resume <session> --prompt …`."
        }
        Some(_) | None => "",
    };
    Err(asked.refused(&format!(
        "can't be taken up now: the run has gone on past its tasks and judges what there is. \
         {go_on}; if it fails, `autopilot retry {name}` can be said again.{step}"
    )))
}

fn may_skip(asked: &Asked<'_>) -> Result<(), Failure> {
    match &asked.task.status {
        Status::Settled(End::Skipped { why: Skip::Dropped }) => {
            Err(asked.refused(&dropped(asked.state)))
        }
        Status::Settled(End::Closed) => Err(asked.refused("is done already")),
        Status::Settled(End::Skipped { why: Skip::Asked }) => {
            Err(asked.refused("is skipped already"))
        }
        Status::Settled(End::Failed { .. } | End::Skipped { .. }) => in_time(asked),
        Status::Open | Status::At { .. } | Status::Running { .. } | Status::Waiting { .. } => {
            Ok(())
        }
    }
}
