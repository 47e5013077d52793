//! The runs of the repository a command is asked about, and what a person reads when there is no
//! answer.

use super::{place, work};
use crate::cli::Global;
use crate::exit::Failure;
use autopilot_engine::cause::chain;
use autopilot_engine::place::Place;
use autopilot_engine::query::{QueryError, RunArchive};
use autopilot_engine::store::StoreError;
use autopilot_journal::Trouble;

/// Nothing when no run was ever begun here.
pub fn open(global: &Global) -> Result<(Place, Option<RunArchive>), Failure> {
    let (place, has_journal) = place(global)?;
    let archive = has_journal.then(|| at(&place)).transpose()?;
    Ok((place, archive))
}

pub fn at(place: &Place) -> Result<RunArchive, QueryError> {
    RunArchive::open(place, work::variables())
}

/// For commands that need a run to say anything.
pub fn must(global: &Global) -> Result<RunArchive, Failure> {
    Ok(open(global)?.1.ok_or(QueryError::NoRunYet)?)
}

pub fn unreadable(error: autopilot_journal::Error) -> Failure {
    QueryError::from(error).into()
}

impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Failure {
        let message = chain(&error);
        match error {
            QueryError::NoRunYet => Failure::usage(message)
                .help("write a task file and start with `autopilot run tasks/<name>.md`"),
            QueryError::Unknown { nearest: Some(near), .. } => {
                Failure::usage(message).help(format!("did you mean `{near}`?"))
            }
            QueryError::Unknown { nearest: None, .. } => Failure::usage(message)
                .help("`autopilot status` shows the tasks, `autopilot runs` the runs"),
            QueryError::NotARepository { .. } => Failure::usage(message),
            QueryError::NothingChanged { help, .. } => Failure::usage(message).help(help),
            QueryError::Store(StoreError::Journal(error))
                if error.trouble() == Some(Trouble::Damaged) =>
            {
                Failure::failed(message)
                    .help("`autopilot recover --journal` saves what can be read of it")
            }
            QueryError::Git(error) => error.into(),
            QueryError::Kept(_) | QueryError::Store(_) | QueryError::Write(_) => {
                Failure::failed(message)
            }
        }
    }
}
