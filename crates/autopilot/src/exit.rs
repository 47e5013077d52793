//! How a failed command ends: the message with its causes, the hints, and the exit code.

use crate::terminal;
use autopilot_core::event::MachineFault;
use autopilot_engine::begin::{BeginError, OutFault};
use autopilot_engine::cause::chain;
use autopilot_engine::job::fault;
use autopilot_engine::run_process::RunProcessError;
use autopilot_engine::shell::ShellError;
use autopilot_engine::store::StoreError;
use autopilot_engine::workspace::WorkspaceError;
use autopilot_host::git::{CommandError, GitError};
use autopilot_host::lock::LockError;
use autopilot_host::room;
use autopilot_journal::{Error as JournalError, StorageTrouble};
use autopilot_view::ExitWord;
use serde_json::json;
use std::error::Error;
use std::io;
use std::path::Path;
use std::process::ExitCode;

type BoxedError = Box<dyn Error + Send + Sync>;

/// The kinds of failure, each with its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitKind {
    /// The command line asks for something that does not exist or does not fit.
    Usage,
    /// The configuration or the machine's setup must be changed first.
    Config,
    /// The command was understood and did not succeed.
    Failed,
    /// The run rests, and can be resumed.
    Paused,
}

impl ExitKind {
    /// The exit code; usage and configuration have those of `sysexits.h`.
    pub fn code(self) -> u8 {
        match self {
            ExitKind::Usage => 64,
            ExitKind::Config => 78,
            ExitKind::Failed => ExitWord::Failed.code(),
            ExitKind::Paused => ExitWord::Paused.code(),
        }
    }
}

impl From<ExitKind> for ExitCode {
    fn from(kind: ExitKind) -> ExitCode {
        ExitCode::from(kind.code())
    }
}

/// Why a command failed: the error with its causes, and what a person can do about it.
#[derive(Debug)]
pub struct CommandFailure {
    /// What the exit code says of it.
    pub kind: ExitKind,
    error: BoxedError,
    /// The fault of the machine behind it, if it is one.
    fault: Option<MachineFault>,
    /// What to mend first, if it is a fault of the machine.
    mend: Option<String>,
    /// A run exists that can be resumed afterwards.
    has_run: bool,
    hints: Vec<String>,
}

/// The operation that an error prevented.
#[derive(Debug, thiserror::Error)]
#[error("{operation}")]
struct FailedOperation {
    operation: String,
    source: BoxedError,
}

impl CommandFailure {
    /// A failure of this kind; a plain text is an error without a cause.
    pub fn new(kind: ExitKind, error: impl Into<BoxedError>) -> CommandFailure {
        let error = error.into();
        CommandFailure { kind, error, fault: None, mend: None, has_run: false, hints: Vec::new() }
    }

    /// A failure that a different command line avoids.
    pub fn usage(error: impl Into<BoxedError>) -> CommandFailure {
        CommandFailure::new(ExitKind::Usage, error)
    }

    /// A failure that a different configuration avoids.
    pub fn config(error: impl Into<BoxedError>) -> CommandFailure {
        CommandFailure::new(ExitKind::Config, error)
    }

    /// A failure of the work itself.
    pub fn failed(error: impl Into<BoxedError>) -> CommandFailure {
        CommandFailure::new(ExitKind::Failed, error)
    }

    /// The failed operation with its object; the error so far becomes its cause.
    #[must_use]
    pub fn context(mut self, operation: impl Into<String>) -> CommandFailure {
        self.error = Box::new(FailedOperation { operation: operation.into(), source: self.error });
        self
    }

    /// Adds what a person can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> CommandFailure {
        self.hints.push(hint.into());
        self
    }

    /// Whether another process holds the lock of the repository.
    pub fn is_locked_out(&self) -> bool {
        let error = self.error.downcast_ref::<WorkspaceError>();
        matches!(error, Some(WorkspaceError::Lock(LockError::Held { .. })))
    }

    /// A fault of the machine, with what to do about it. `path` is what the error is about.
    fn of_machine(
        fault: MachineFault,
        path: Option<&Path>,
        error: impl Into<BoxedError>,
    ) -> CommandFailure {
        let closed = match fault {
            MachineFault::Denied | MachineFault::ReadOnly => path.and_then(room::unwritable_part),
            MachineFault::DiskFull
            | MachineFault::NoInodes
            | MachineFault::DiskQuota
            | MachineFault::DiskError
            | MachineFault::OpenFiles
            | MachineFault::Memory
            | MachineFault::Processes
            | MachineFault::Missing
            | MachineFault::InTheWay
            | MachineFault::Git
            | MachineFault::Supervisor
            | MachineFault::Journal
            | MachineFault::Internal => None,
        };
        let mend = closed.map(|part| format!("make `{}` writable", part.display()));
        let mend = mend.unwrap_or_else(|| fault.mend().to_owned());
        let failure = CommandFailure::config(error);
        CommandFailure { fault: Some(fault), mend: Some(mend), ..failure }
    }

    /// The same if it keeps a run from going on or from beginning: the run rests until it is mended.
    #[must_use]
    pub fn of_run(mut self) -> CommandFailure {
        if self.fault.is_some() {
            self.kind = ExitKind::Paused;
        }
        self
    }

    /// The same if a run exists that rests meanwhile.
    #[must_use]
    pub fn of_existing_run(self) -> CommandFailure {
        CommandFailure { has_run: true, ..self }
    }

    /// What a person can do about it.
    pub fn help(&self) -> Vec<String> {
        let next = if self.has_run { "run `autopilot resume`" } else { "try again" };
        let mend = self.mend.iter().map(|mend| format!("{mend}, then {next}"));
        mend.chain(self.hints.iter().cloned()).collect()
    }

    /// The message and its causes on one line.
    pub fn message(&self) -> String {
        chain(&*self.error)
    }
}

/// Turns an error into the failure of an operation.
pub trait OrFailed<T> {
    /// Names the operation and its object: "cannot write `x`".
    fn or_failed(self, operation: impl Into<String>) -> Result<T, CommandFailure>;
}

impl<T, E: Into<BoxedError>> OrFailed<T> for Result<T, E> {
    fn or_failed(self, operation: impl Into<String>) -> Result<T, CommandFailure> {
        self.map_err(|error| CommandFailure::failed(error).context(operation))
    }
}

impl From<WorkspaceError> for CommandFailure {
    fn from(error: WorkspaceError) -> CommandFailure {
        if let Some(fault) = fault::at_start(&error) {
            let path = error.path().map(Path::to_owned);
            return CommandFailure::of_machine(fault, path.as_deref(), error);
        }
        match &error {
            WorkspaceError::NotARepository { .. }
            | WorkspaceError::Repository(_)
            | WorkspaceError::NoRun(_) => CommandFailure::usage(error),
            WorkspaceError::StateRootRelative { .. } => {
                CommandFailure::config(error).hint("set it to an absolute path, or unset it")
            }
            WorkspaceError::NoConfig { .. }
            | WorkspaceError::ConfigUnreadable { .. }
            | WorkspaceError::Config { .. }
            | WorkspaceError::Linked { .. }
            | WorkspaceError::NotUtf8 { .. }
            | WorkspaceError::Git(GitError::Command(CommandError::NoGit))
            | WorkspaceError::NoStateRoot => CommandFailure::config(error),
            WorkspaceError::Lost(lost) => {
                let remedy = lost.remedy();
                CommandFailure::failed(error).hint(remedy)
            }
            WorkspaceError::WorkLost { .. } => CommandFailure::failed(error).hint(
                "put it back from a backup, or see with `autopilot recover` what is left and start \
                 anew with `autopilot run --fresh`",
            ),
            WorkspaceError::HubDamaged { .. } => CommandFailure::failed(error).hint(
                "put it back from a backup; or see with `autopilot recover` what is left, move it away, \
                 and start anew with `autopilot run --fresh`",
            ),
            WorkspaceError::Store(StoreError::Journal(journal))
                if journal.trouble() == Some(StorageTrouble::Damaged) =>
            {
                let is_all = matches!(journal, JournalError::Damaged { readable, .. } if readable.is_empty());
                let hint = if is_all {
                    "put it back from a backup; without one, `autopilot recover --journal` keeps it \
                     aside and puts a journal in its place with which runs work again"
                } else {
                    "`autopilot recover --journal` rebuilds it from what can still be read"
                };
                CommandFailure::failed(error).hint(hint)
            }
            WorkspaceError::Lock(LockError::Held { holder: Some(_), .. }) => {
                CommandFailure::failed(error).hint(
                    "`autopilot status` shows where it stands, `autopilot unpause` ends a pause; \
                     otherwise stop it first with `autopilot stop`, then try again",
                )
            }
            WorkspaceError::NotWritable { .. }
            | WorkspaceError::NoRoom { .. }
            | WorkspaceError::Git(_)
            | WorkspaceError::Store(_)
            | WorkspaceError::Lock(_) => CommandFailure::failed(error),
        }
    }
}

/// Why a flag file, or anything else that only Autopilot writes, can't be changed.
pub fn unchangeable(error: impl Into<BoxedError>) -> CommandFailure {
    let error = error.into();
    match fault::of_own_error(&*error) {
        Some(fault) => CommandFailure::of_machine(fault, None, error),
        None => CommandFailure::failed(error),
    }
}

impl From<ShellError> for CommandFailure {
    fn from(error: ShellError) -> CommandFailure {
        // Every acknowledged record is on disk, so the run can be resumed. What git could not do is
        // told as a failure of git.
        CommandFailure::new(ExitKind::Paused, error).hint(
            "free disk space or make the state directory writable, then run `autopilot resume`",
        )
    }
}

impl From<GitError> for CommandFailure {
    fn from(error: GitError) -> CommandFailure {
        WorkspaceError::from(error).into()
    }
}

impl From<RunProcessError> for CommandFailure {
    fn from(error: RunProcessError) -> CommandFailure {
        let (kind, hint) = match error {
            RunProcessError::Workspace(error) => return error.into(),
            RunProcessError::Shell(error) => return error.into(),
            RunProcessError::Begin(error) => return error.into(),
            RunProcessError::Unfinished { ref run, .. } => (
                ExitKind::Failed,
                format!(
                    "continue with `autopilot resume`, look at it with `autopilot show {run}`, \
                     or abandon it with --fresh"
                ),
            ),
            RunProcessError::UnderWay { ref run, flag, .. } => (
                ExitKind::Usage,
                format!(
                    "continue without {flag}, look at it with `autopilot show {run}`, or \
                     abandon it with --fresh"
                ),
            ),
            RunProcessError::StateGone { .. } => (
                ExitKind::Failed,
                "merged work is on its branch; `autopilot recover` lists what is left, \
                 `autopilot run` starts again"
                    .to_owned(),
            ),
            RunProcessError::StateUnmounted { .. } => (
                ExitKind::Paused,
                "mount it again, then run `autopilot resume`; nothing that was recorded is lost"
                    .to_owned(),
            ),
            RunProcessError::Refused(refusal) => return refusal.into(),
            RunProcessError::NothingToResume { retry: None } => {
                (ExitKind::Usage, "start one with `autopilot run tasks/<task>.md`".to_owned())
            }
            RunProcessError::NothingToResume { retry: Some(retry) } => (
                ExitKind::Usage,
                format!(
                    "the last run has failed: `{retry}` tries again, \
                     `autopilot run tasks/<task>.md` starts another"
                ),
            ),
            RunProcessError::PinnedConfig(_)
            | RunProcessError::Redaction(_)
            | RunProcessError::Sandbox(_) => {
                return CommandFailure::config(error);
            }
            RunProcessError::Flag { .. } | RunProcessError::Runtime(_) => {
                return unchangeable(error);
            }
            RunProcessError::Loop(_) => return CommandFailure::failed(error),
        };
        CommandFailure::new(kind, error).hint(hint)
    }
}

impl From<BeginError> for CommandFailure {
    fn from(error: BeginError) -> CommandFailure {
        match error {
            BeginError::Agent { .. } | BeginError::Settings { .. } | BeginError::Holdout(_) => {
                CommandFailure::config(error)
            }
            BeginError::HoldoutCopy(_) => CommandFailure::failed(error),
            BeginError::Skill { .. } => CommandFailure::config(error).hint(
                "`autopilot skills` lists those there are; a text that means something else says \
                 so with `skills: []` in its front matter",
            ),
            BeginError::Refused { .. } => CommandFailure::failed(error),
            BeginError::Out { source: OutFault::NotWritable(_), .. } => {
                CommandFailure::usage(error).hint("make it writable, then try again")
            }
            BeginError::Unreadable { .. }
            | BeginError::TaskFile { .. }
            | BeginError::PlanInQueue { .. }
            | BeginError::NotAPlan { .. }
            | BeginError::IsDirectory { .. }
            | BeginError::EmptyQueue { .. }
            | BeginError::QueueTooLong { .. }
            | BeginError::Pattern { .. }
            | BeginError::Out { .. } => CommandFailure::usage(error),
        }
    }
}

/// Prints a failure, with `json` also as a last line of JSON, and returns its exit code. Standard
/// output is for results and stays empty.
pub fn report(failure: &CommandFailure, json: bool) -> ExitCode {
    terminal::error(&failure.message());
    failure.help().iter().for_each(|hint| terminal::hint(hint));
    if json {
        let told = json!({ "error": failure.message(), "help": failure.help() });
        terminal::note(&told.to_string());
    }
    failure.kind.into()
}

/// Prints a failure that does not keep the command from going on.
pub fn warn(failure: &CommandFailure) {
    terminal::note(&format!("warning: {}", failure.message()));
    failure.help().iter().for_each(|hint| terminal::hint(hint));
}

/// The exit code of a command, or a failure if it succeeded and what it said could not be written.
pub fn unless_lost(code: ExitCode, json: bool) -> ExitCode {
    match terminal::lost().filter(|_| code == ExitCode::SUCCESS) {
        Some(error) => report(&unwritable(error), json),
        None => code,
    }
}

fn unwritable(error: &io::Error) -> CommandFailure {
    CommandFailure::failed(error.to_string()).context("cannot write to standard output")
}

/// Prints clap's message. Help and version are not errors; the rest are usage errors.
pub fn usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    let printed = error.print().or_else(terminal::unless_closed);
    let asked = [
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayVersion,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    match printed {
        // If an error can't be printed, the exit code still says what happened.
        _ if !asked.contains(&error.kind()) => ExitKind::Usage.into(),
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let code = report(&unwritable(&error), false);
            terminal::flush();
            code
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_tells_its_causes_and_hints_in_order() {
        let failure = CommandFailure::failed(io::Error::other("disk full"))
            .context("cannot write `plan.md`")
            .context("cannot keep the plan")
            .hint("make room")
            .hint("name another file");
        assert_eq!(failure.message(), "cannot keep the plan: cannot write `plan.md`: disk full");
        assert_eq!(failure.hints, ["make room", "name another file"]);
        let root = failure.error.source().and_then(Error::source);
        assert!(root.is_some_and(|root| root.is::<io::Error>()), "the causes stay errors");
    }

    #[test]
    fn a_cause_that_the_message_contains_is_not_repeated() {
        let told = |cause: &str, operation: &str| {
            CommandFailure::usage(cause).context(operation).message()
        };
        let whole = "cannot read `x`: No such file";
        assert_eq!(told(whole, "cannot read `x`"), whole);
        assert_eq!(told("No such file", whole), whole);
        assert_eq!(told("cannot read", "cannot read `x`"), "cannot read `x`");
    }

    #[test]
    fn every_kind_has_its_exit_code() {
        use ExitKind::{Config, Failed, Paused, Usage};
        assert_eq!([Usage, Config, Failed, Paused].map(ExitKind::code), [64, 78, 10, 2]);
        assert_eq!(
            CommandFailure::from(RunProcessError::NothingToResume { retry: None }).kind,
            Usage
        );
    }
}
