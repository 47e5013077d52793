//! Opens the runs of a repository for reading, and turns query errors into failures.

use super::{place_of_runs, work};
use crate::cli::Global;
use crate::exit::CommandFailure;
use autopilot_engine::place::StatePaths;
use autopilot_engine::query::{QueryError, RunArchive};
use autopilot_engine::workspace::WorkspaceError;

/// The most runs that a failure names.
const RUNS_NAMED_MAX: usize = 20;

/// Opens the runs of the repository; `None` if there has never been one.
pub fn open(global: &Global) -> Result<(StatePaths, Option<RunArchive>), CommandFailure> {
    let (place, has_journal) = place_of_runs(global)?;
    let archive = has_journal.then(|| at(&place)).transpose()?;
    Ok((place, archive))
}

/// Opens the runs at these paths.
pub fn at(place: &StatePaths) -> Result<RunArchive, QueryError> {
    RunArchive::open(place, work::variables())
}

/// Opens the runs for a command that needs one.
pub fn must(global: &Global) -> Result<RunArchive, CommandFailure> {
    Ok(open(global)?.1.ok_or(QueryError::NoRunYet)?)
}

/// The failure of a journal that can't be read.
pub fn unreadable(error: autopilot_journal::Error) -> CommandFailure {
    QueryError::from(error).into()
}

impl From<QueryError> for CommandFailure {
    fn from(error: QueryError) -> CommandFailure {
        match error {
            QueryError::NoRunYet => CommandFailure::usage(error)
                .hint("write a task file and start with `autopilot run tasks/<name>.md`"),
            QueryError::Unknown { nearest: Some(ref near), .. } => {
                let hint = format!("did you mean `{near}`?");
                CommandFailure::usage(error).hint(hint)
            }
            QueryError::Unknown { nearest: None, .. } => CommandFailure::usage(error)
                .hint("`autopilot status` shows the tasks, `autopilot runs` the runs"),
            QueryError::Ambiguous { ref runs, .. } => {
                let some = runs.iter().take(RUNS_NAMED_MAX).map(String::as_str);
                let more = runs.len().saturating_sub(RUNS_NAMED_MAX);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let hint = format!("name one: {}{more}", some.collect::<Vec<_>>().join(", "));
                CommandFailure::usage(error).hint(hint)
            }
            QueryError::NotARepository { .. } => CommandFailure::usage(error),
            QueryError::NothingChanged { ref help, .. } => {
                let hint = help.clone();
                CommandFailure::usage(error).hint(hint)
            }
            QueryError::Store(error) => WorkspaceError::Store(error).into(),
            QueryError::Git(error) => error.into(),
            QueryError::Kept(_) | QueryError::Write(_) => CommandFailure::failed(error),
        }
    }
}
