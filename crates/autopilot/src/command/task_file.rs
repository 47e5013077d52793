//! `autopilot task`: writes, lists and checks task files.

mod lint;
mod list;
mod new;

use super::Done;
use crate::cli::{Global, TaskCommand};
use crate::exit::CommandFailure;
use autopilot_core::task_file::{self, ConfigFaults, Parsed};
use autopilot_engine::begin::{self, QUEUE_MAX};
use autopilot_engine::cause::chain;
use autopilot_host::file;
use camino::{Utf8Path, Utf8PathBuf};

/// The default folder of task files.
const DIR: &str = "tasks";
const TEMPLATE: &str = "TEMPLATE.md";

/// Runs the subcommand.
pub fn task(global: &Global, command: &TaskCommand) -> Done {
    match command {
        TaskCommand::New(args) => new::new(global, args),
        TaskCommand::List { dir } => list::list(global, dir.as_ref()),
        TaskCommand::Lint(args) => lint::lint(global, args),
    }
}

/// The given folder, else the repository's own.
fn dir(global: &Global, given: Option<&Utf8PathBuf>) -> Result<Utf8PathBuf, CommandFailure> {
    match given {
        Some(dir) => Ok(global.path(dir)),
        None => {
            let (place, _) = super::place(global)?;
            Ok(near(&place.root.join(DIR)))
        }
    }
}

/// The path relative to the current directory, if it is below it.
fn near(path: &Utf8Path) -> Utf8PathBuf {
    let here = std::env::current_dir().ok().and_then(|dir| Utf8PathBuf::try_from(dir).ok());
    let short = here.and_then(|here| path.strip_prefix(here).ok().map(Utf8Path::to_owned));
    short.filter(|short| !short.as_str().is_empty()).unwrap_or_else(|| path.to_owned())
}

/// The files that a queue of this directory would take, in its order.
fn files(dir: &Utf8Path) -> Result<Vec<Utf8PathBuf>, CommandFailure> {
    let unreadable = |error: std::io::Error| {
        CommandFailure::usage(error)
            .context(format!("cannot read the directory `{dir}`"))
            .hint("`autopilot task new \"Title\"` makes it, or name another with --dir")
    };
    let mut files = Vec::new();
    for entry in dir.read_dir_utf8().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.into_path();
        let Some(name) = path.file_name() else { continue };
        if begin::is_task_name(name) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    if files.len() > QUEUE_MAX {
        return Err(CommandFailure::failed(format!(
            "`{dir}` holds {} task files, more than the {QUEUE_MAX} a queue may have",
            files.len()
        ))
        .hint("divide them into several directories"));
    }
    Ok(files)
}

/// A task file as the parser reads it.
enum Read {
    Parsed(Box<Parsed>, String),
    Faulty(ConfigFaults),
    Unreadable(String),
}

fn read(path: &Utf8Path) -> Read {
    let bytes_max = task_file::TASK_BYTES_MAX as u64 + 1;
    let bytes = match file::read_capped(path.as_std_path(), bytes_max) {
        Ok(bytes) => bytes,
        Err(error) => return Read::Unreadable(chain(&error)),
    };
    match task_file::parse(path, &bytes) {
        Ok(parsed) => Read::Parsed(Box::new(parsed), String::from_utf8_lossy(&bytes).into_owned()),
        Err(faults) => Read::Faulty(faults),
    }
}
