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
mod work;

use crate::cli::{Cli, Command, Global};
use crate::exit::CommandFailure;
use autopilot_core::flow::Flow;
use autopilot_engine::place::StatePaths;
use autopilot_engine::workspace;
use autopilot_host::git::StateEnv;
use std::process::ExitCode;

/// The exit code of a command, or its failure.
pub type Done = Result<ExitCode, CommandFailure>;

/// Runs the command.
pub fn execute(cli: Cli) -> Done {
    let global = cli.global;
    match cli.command {
        Command::Init(args) => init::init(&global, &args),
        Command::Run(args) => run::run(&global, &args),
        Command::Goal(args) => goal::goal(&global, Flow::Goal, &args),
        Command::Resume(args) => resume::resume(&global, &args),
        Command::Status(args) => status::status(&global, &args),
        Command::Stop(args) => halt::stop(&global, &args),
        Command::Pause => halt::pause(&global),
        Command::Unpause => halt::unpause(&global),
        Command::Retry(args) => task::retry(&global, &args),
        Command::Skip(args) => task::skip(&global, &args),
        Command::Approve(args) => approve::approve(&global, &args),
        Command::Reject(args) => approve::reject(&global, &args),
        Command::Runs(args) => runs::runs(&global, &args),
        Command::Cost(args) => cost::cost(&global, &args),
        Command::Sessions(args) => sessions::sessions(&global, &args),
        Command::Attach(args) => attach::attach(&global, &args),
        Command::Replay(args) => replay::replay(&global, &args),
        Command::Report(args) => report::report(&global, &args),
        Command::Graph(args) => graph::graph(&global, &args),
        Command::Task(args) => task_file::task(&global, &args),
        Command::Logs(args) => logs::logs(&global, &args),
        Command::Show(args) => show::show(&global, &args),
        Command::Skills => skills::skills(&global),
        Command::Diff(args) => diff::diff(&global, &args),
        Command::Undo(args) => undo::undo(&global, &args),
        Command::Recover(args) => recover::recover(&global, &args),
        Command::Gc(args) => gc::gc(&global, &args),
        Command::Doctor => doctor::doctor(&global),
        Command::Demo(args) => demo::demo(&global, &args),
        Command::Completions(args) => completions::completions(&args),
    }
}

/// The repository a command is about, and whether it has a journal yet.
pub fn place(global: &Global) -> Result<(StatePaths, bool), CommandFailure> {
    Ok(workspace::find(&global.repo, &StateEnv::from_process())?)
}

/// Success without anything more to say.
pub fn done() -> Done {
    Ok(ExitCode::SUCCESS)
}
