//! Why a job failed before it could produce an outcome.

use crate::recorded::RecordedError;
use crate::store::StoreError;
use autopilot_agents::AgentError;
use autopilot_agents::answer::SchemaError;
use autopilot_agents::words::WordsError;
use autopilot_core::skill::Missing;
use autopilot_core::step::Step;
use autopilot_host::agent_home::HomeError;
use autopilot_host::exec::SpawnError;
use autopilot_host::file::FileError;
use autopilot_host::git::GitError;
use autopilot_host::port::PortError;
use autopilot_host::sandbox::SandboxError;
use autopilot_host::warm::WarmError;
use camino::Utf8PathBuf;
use std::path::PathBuf;
use std::sync::Arc;

/// The error of a job, which counts as a failed try. Causes are kept until the outcome is put into
/// words.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Warm(#[from] WarmError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Recorded(#[from] RecordedError),
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Port(#[from] PortError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("cannot {what} `{path}`")]
    Directory { what: &'static str, path: Utf8PathBuf, source: std::io::Error },
    #[error("the task's specification can't be read")]
    Spec(#[source] serde_json::Error),
    #[error("internal: cannot write JSON")]
    Json(#[source] serde_json::Error),
    #[error("MCP server {name}")]
    McpServer { name: String, source: WordsError },
    #[error("session {session}")]
    Session { session: String, source: std::io::Error },
    #[error("nothing of this session is kept, so it can't be resumed")]
    NothingSaid,
    #[error("the recording has no further answer for {name} at {step}")]
    NotRecorded { name: String, step: Step },
    #[error("the executable `{name}` was not found")]
    NoProgram { name: String },
    #[error("{failure} (log: .autopilot/{log})")]
    SetupCommand {
        failure: String,
        log: String,
        /// Why the shell could not run it, if it could not.
        not_run: Option<String>,
    },
    #[error("the task asks for a skill: {}", .0.iter().map(Missing::to_string).collect::<Vec<_>>().join("; "))]
    Skill(Vec<Missing>),
    #[error(transparent)]
    Money(#[from] super::billing::BudgetGone),
    #[error("the process that supervised it was killed")]
    Supervisor,
    #[error(
        "the copy of the held-out tests that the run began with is gone from the state directory"
    )]
    NoHoldout,
    #[error("the attempt was cancelled")]
    NotWanted,
    #[error("{} is not UTF-8", .path.display())]
    NotUtf8 { path: PathBuf },
    #[error("more than {max} questions in one run")]
    TooManyQuestions { max: u32 },
    #[error("the run's branch was moved by someone else {times} times in a row")]
    RacesLost { times: u32 },
    /// The error of the job that led the merge of several tasks.
    #[error(transparent)]
    Integration(Arc<JobError>),
    #[error("internal: no job does step {step}")]
    NoJob { step: Step },
    #[error("internal: the work panicked")]
    Panicked,
    #[error("internal: {0}")]
    Internal(&'static str),
}

impl JobError {
    /// Adds the operation and the path to an error of the file system.
    pub(super) fn directory(
        what: &'static str,
        path: impl Into<Utf8PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> JobError {
        let path = path.into();
        move |source| JobError::Directory { what, path, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::chain;
    use std::io;

    #[test]
    fn a_cause_is_kept_and_told_once() {
        let source = io::Error::other("no space left");
        let error = JobError::directory("create", "a/b")(source);
        let cause = std::error::Error::source(&error).and_then(|it| it.downcast_ref::<io::Error>());
        assert!(cause.is_some(), "the cause can still be asked for its kind");
        let shared = JobError::Integration(Arc::new(error));
        assert_eq!(chain(&shared), "cannot create `a/b`: no space left");
    }
}
