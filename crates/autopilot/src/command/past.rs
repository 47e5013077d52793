//! The runs of the repository a command is asked about, and what a person reads when there is no
//! answer.

use super::{place, work};
use crate::cli::Global;
use crate::exit::CommandFailure;
use autopilot_engine::place::StatePaths;
use autopilot_engine::query::{QueryError, RunArchive};
use autopilot_engine::store::StoreError;
use autopilot_journal::StorageTrouble;

/// Nothing when no run was ever begun here.
pub fn open(global: &Global) -> Result<(StatePaths, Option<RunArchive>), CommandFailure> {
    let (place, has_journal) = place(global)?;
    let archive = has_journal.then(|| at(&place)).transpose()?;
    Ok((place, archive))
}

pub fn at(place: &StatePaths) -> Result<RunArchive, QueryError> {
    RunArchive::open(place, work::variables())
}

/// For commands that need a run to say anything.
pub fn must(global: &Global) -> Result<RunArchive, CommandFailure> {
    Ok(open(global)?.1.ok_or(QueryError::NoRunYet)?)
}

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
            QueryError::NotARepository { .. } => CommandFailure::usage(error),
            QueryError::NothingChanged { ref help, .. } => {
                let hint = help.clone();
                CommandFailure::usage(error).hint(hint)
            }
            QueryError::Store(StoreError::Journal(ref journal))
                if journal.trouble() == Some(StorageTrouble::Damaged) =>
            {
                CommandFailure::failed(error)
                    .hint("`autopilot recover --journal` saves what can be read of it")
            }
            QueryError::Git(error) => error.into(),
            QueryError::Kept(_) | QueryError::Store(_) | QueryError::Write(_) => {
                CommandFailure::failed(error)
            }
        }
    }
}
