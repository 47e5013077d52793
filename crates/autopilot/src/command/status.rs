//! `autopilot status`: prints where the run stands. It only reads the journal, so it takes
//! milliseconds and disturbs no run.

mod watch;

use super::{Done, done, past};
use crate::cli::Global;
use crate::exit::CommandFailure;
use crate::terminal;
use autopilot_core::id::Time;
use autopilot_core::state::{State, Status as TaskStatus, Task};
use autopilot_engine::clock::now;
use autopilot_engine::place::StatePaths;
use autopilot_engine::query::failure::FailureReport;
use autopilot_engine::query::status::RunStatus;
use autopilot_engine::query::{KnownRun, RunArchive, Standing};
use autopilot_engine::views::stale;
use autopilot_host::escape::one_line;
use autopilot_host::redact::Redactor;
use autopilot_view as view;
use std::fmt::Write;
use std::time::Duration;

/// How often a watched journal is read.
const REFRESH: Duration = Duration::from_millis(250);
/// The most tasks that are shown.
const TASKS_SHOWN_MAX: usize = 60;

/// Prints the status, after watching the run with `--watch`.
pub fn status(global: &Global, watch: bool) -> Done {
    let mut shown = String::new();
    if watch && !global.json {
        watch::watch(global)?;
    }
    loop {
        let (place, archive) = past::open(global)?;
        let told = newest(archive.as_ref())?;
        let is_live = told.as_ref().is_some_and(KnownRun::is_live);
        let text = text(global, &place, archive.as_ref(), told.as_ref());
        if text != shown {
            terminal::say(&text);
        }
        if !(watch && global.json && is_live) {
            return done();
        }
        shown = text;
        std::thread::sleep(REFRESH);
    }
}

fn text(
    global: &Global,
    place: &StatePaths,
    past: Option<&RunArchive>,
    told: Option<&KnownRun>,
) -> String {
    let redactor = match (past, told) {
        (Some(past), Some(told)) => past.redactor(&told.state),
        (Some(_) | None, _) => Redactor::none(),
    };
    if global.json {
        let stale_files = told.and_then(|told| stale(place, &told.state, now()));
        let last_failure = told.and_then(|told| FailureReport::of(place, &told.state, &redactor));
        let status = RunStatus { stale_files, last_failure, ..RunStatus::known(told, &redactor) };
        return serde_json::to_string_pretty(&status).unwrap_or_default();
    }
    let screen = |told| redactor.redact(&screen(told, place, &redactor, now())).into_owned();
    told.map_or_else(|| none_yet(place), screen)
}

fn newest(past: Option<&RunArchive>) -> Result<Option<KnownRun>, CommandFailure> {
    Ok(past.map_or(Ok(None), RunArchive::newest)?)
}

fn none_yet(place: &StatePaths) -> String {
    let next = if place.config().exists() {
        "`autopilot run tasks/<name>.md` starts one"
    } else {
        "`autopilot init` sets the repository up"
    };
    format!("no run yet in {}; {next}", place.root)
}

fn screen(told: &KnownRun, place: &StatePaths, redactor: &Redactor, now: Time) -> String {
    let (state, run) = (&told.state, &told.state.run);
    let mut text = String::new();
    let _ = writeln!(text, "{}  {}", told.headline(), one_line(&told.run.title));
    let mut row = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<9}{value}");
    };
    row("run", format!("{} ({})", told.run.id, told.run.mode));
    if !run.branch.is_empty() {
        row("branch", format!("{} from {}", run.branch, run.base_branch));
    }
    let ago = view::duration(now.since_ms(told.started_at()));
    row("started", format!("{} ({ago} ago)", told.started_at().rfc3339()));
    row("worked", view::duration(run.active_ms));
    row("cost", view::money::cost_of_run(state));
    // What a dead process was doing goes on no longer.
    if told.standing() != Standing::Interrupted {
        for line in at_work(state, now) {
            row("now", line);
        }
    }
    for held in view::holds(state) {
        row("held", one_line(&held).into_owned());
    }
    if let Some(what) = view::awaited(state) {
        row("waits", format!("for a person to approve {what}"));
    }
    if let Some(halt) = &run.halt {
        row("halted", one_line(&halt.why.to_string()).into_owned());
    }
    if let Some(why) = view::unproven(state) {
        row("proof", format!("none; {}", one_line(why)));
    } else if let Some(proof) = view::LastProof::of(state) {
        row("proof", proof.sentence().to_owned());
    }
    for line in view::doubt_lines(state) {
        let _ = writeln!(text, "  {}", one_line(&line));
    }
    text.push('\n');
    text.push_str(&tasks(state));
    if let Some(failure) = FailureReport::of(place, state, redactor) {
        text.push_str(&last_failure(&failure));
    }
    let _ = writeln!(text, "\nSTATUS.md: {}", place.views().join("STATUS.md"));
    if let Some(stale) = stale(place, state, now) {
        let _ = writeln!(text, "{stale}");
    }
    let _ = write!(text, "{}", go_on(told));
    text
}

fn at_work(state: &State, now: Time) -> Vec<String> {
    let running = state.live.values().map(|live| {
        let task = state.task(live.task);
        let name = task.label();
        let since = view::duration(now.since_ms(live.since));
        format!("{name}: {} (iteration {}) for {since}", live.step.row().doing, task.round)
    });
    let waiting = view::leaves(state).filter_map(|task| match task.status {
        TaskStatus::Waiting { step, .. } => {
            view::waits(state, task).map(|waits| format!("{}: {step} {waits}", task.name()))
        }
        TaskStatus::Open
        | TaskStatus::At { .. }
        | TaskStatus::Running { .. }
        | TaskStatus::Settled(_) => None,
    });
    running.chain(waiting).collect()
}

fn tasks(state: &State) -> String {
    let heading = ["task", "status", "iteration", "time", "cost", "result"];
    let rows = view::leaves(state).take(TASKS_SHOWN_MAX).map(|task| row(state, task));
    let mut text = terminal::table(&heading, rows);
    let more = view::leaves(state).count().saturating_sub(TASKS_SHOWN_MAX);
    if more > 0 {
        let _ = writeln!(text, "… and {more} more; `autopilot show` lists all");
    }
    text
}

fn row(state: &State, task: &Task) -> Vec<String> {
    vec![
        task.name().to_owned(),
        view::shown_word(state, task).to_owned(),
        task.round.to_string(),
        view::duration(task.spent.work_ms),
        view::money::cost_of_task(state, task),
        one_line(&view::result(state, task)).into_owned(),
    ]
}

fn last_failure(failure: &FailureReport) -> String {
    let step = failure.step.unwrap_or("a step");
    let of = if failure.task == "run" { "the run" } else { failure.task.as_str() };
    let why = one_line(&failure.why);
    let mut text =
        format!("\nlast failure: {step} of {of} (iteration {}): {why}\n", failure.iteration);
    for line in &failure.lines {
        let _ = writeln!(text, "  │ {}", one_line(line));
    }
    if let Some(log) = &failure.log {
        let _ = writeln!(text, "  log: {log}");
    }
    text
}

fn go_on(told: &KnownRun) -> String {
    match told.standing() {
        Standing::Live { .. } | Standing::Rests | Standing::Interrupted
            if view::awaited(&told.state).is_some() =>
        {
            "continue with `autopilot approve` or `autopilot reject \"why\"`".to_owned()
        }
        Standing::Live { pid } => {
            format!("process {pid} works on it; `autopilot stop` stops it after the current steps")
        }
        Standing::Interrupted => {
            "interrupted: the process that worked on it is gone; nothing is lost, \
             continue with `autopilot resume`"
                .to_owned()
        }
        Standing::Rests if told.state.run.halt.as_ref().is_some_and(view::says_how_to_continue) => {
            String::new()
        }
        Standing::Rests => format!("continue with {}", view::money::continue_command(&told.state)),
        Standing::Abandoned => {
            "given up for another run; `autopilot recover` lists its work".to_owned()
        }
        Standing::Over if view::nothing_built(&told.state).is_some() => {
            "`autopilot retry <task>` opens a skipped task again".to_owned()
        }
        Standing::Over if told.word() == "DONE" => {
            format!("look at it with `git log {}` or `autopilot diff`", told.state.run.branch)
        }
        Standing::Over => format!("`{}` tries again", view::retry_command(&told.state)),
    }
}
