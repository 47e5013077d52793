//! One file per command.

mod approve;
mod ask;
mod attach;
mod completions;
mod cost;
mod demo;
mod diff;
mod doctor;
mod equipment;
mod gc;
mod goal;
mod graph;
mod ground;
mod halt;
mod init;
mod live;
mod logs;
mod notify;
mod past;
mod recover;
mod replay;
mod report;
mod resume;
mod run;
mod runs;
mod sessions;
mod show;
mod skills;
mod status;
mod summary;
mod task;
mod task_file;
mod undo;
mod verify;
mod work;

use crate::cli::{Cli, Command, Global};
use crate::exit::CommandFailure;
use crate::terminal;
use autopilot_core::flow::Flow;
use autopilot_engine::place::StatePaths;
use autopilot_engine::workspace;
use autopilot_host::git::StateEnv;
use serde::Serialize;
use std::process::ExitCode;

/// The exit code of a command, or its failure.
pub type Done = Result<ExitCode, CommandFailure>;

/// Runs the command.
pub fn execute(cli: Cli) -> Done {
    let global = cli.global;
    if !global.repo.is_dir() {
        let wrong = if global.repo.exists() { "is not a directory" } else { "does not exist" };
        return Err(CommandFailure::usage(format!("`{}` {wrong}", global.repo)));
    }
    let is_work = works_on_run(&cli.command);
    let done = match cli.command {
        Command::Init(args) => init::init(&global, &args),
        Command::Run(args) => run::run(&global, &args),
        Command::Goal(args) => goal::goal(&global, Flow::Goal, &args),
        Command::Resume(args) => {
            resume::resume(&global, &args).map_err(CommandFailure::of_existing_run)
        }
        Command::Status { watch } => status::status(&global, watch),
        Command::Stop { now } => halt::stop(&global, now),
        Command::Pause => halt::pause(&global),
        Command::Unpause => halt::unpause(&global),
        Command::Retry(args) => task::retry(&global, &args),
        Command::Skip(args) => task::skip(&global, &args),
        Command::Approve(args) => approve::approve(&global, &args),
        Command::Reject(args) => approve::reject(&global, &args),
        Command::Runs(args) => runs::runs(&global, &args),
        Command::Cost(args) => cost::cost(&global, &args),
        Command::Sessions { run } => sessions::sessions(&global, run.as_deref()),
        Command::Attach(args) => attach::attach(&global, &args),
        Command::Replay(args) => replay::replay(&global, &args),
        Command::Report(args) => report::report(&global, &args),
        Command::Graph(args) => graph::graph(&global, &args),
        Command::Task { command } => task_file::task(&global, &command),
        Command::Logs(args) => logs::logs(&global, &args),
        Command::Show { id } => show::show(&global, id.as_deref()),
        Command::Verify(args) => verify::verify(&global, &args),
        Command::Skills => skills::skills(&global),
        Command::Diff { id, stat } => diff::diff(&global, id.as_deref(), stat),
        Command::Undo { run } => undo::undo(&global, run.as_deref()),
        Command::Recover(args) => recover::recover(&global, &args),
        Command::Gc(args) => gc::gc(&global, &args),
        Command::Doctor => doctor::doctor(&global),
        Command::Demo { keep } => demo::demo(&global, keep),
        Command::Completions(args) => completions::completions(&args),
    };
    done.map_err(|failure| if is_work { failure.of_run() } else { failure })
}

/// Whether a command begins a run or goes on with one.
fn works_on_run(command: &Command) -> bool {
    matches!(
        command,
        Command::Run(_)
            | Command::Goal(_)
            | Command::Resume(_)
            | Command::Retry(_)
            | Command::Skip(_)
            | Command::Approve(_)
            | Command::Reject(_)
    )
}

/// The repository a command is about, and whether it has a journal yet.
pub fn place(global: &Global) -> Result<(StatePaths, bool), CommandFailure> {
    Ok(workspace::find(&global.repo, &StateEnv::from_process())?)
}

/// The same for commands about runs: fails if there were runs and what is known of them is gone.
pub fn place_of_runs(global: &Global) -> Result<(StatePaths, bool), CommandFailure> {
    let (place, known) = place(global)?;
    if !known {
        workspace::refuse_lost(&place, &StateEnv::from_process())?;
    }
    Ok((place, known))
}

/// Prints the answer of a command, as JSON if that is asked for.
pub fn answer<T: Serialize>(global: &Global, value: T, text: impl FnOnce(&T) -> String) -> Done {
    if global.json {
        terminal::json(&value);
    } else {
        terminal::say(text(&value).trim_end());
    }
    done()
}

/// Success without anything more to say.
pub fn done() -> Done {
    Ok(ExitCode::SUCCESS)
}
