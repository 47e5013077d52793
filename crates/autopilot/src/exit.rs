//! How a command ends: one message with the object and the next step, and the right exit code.

use crate::terminal;
use autopilot_engine::shell::ShellError;
use autopilot_engine::store::StoreError;
use autopilot_engine::workspace::WorkspaceError;
use autopilot_journal::StorageTrouble;
use autopilot_view::ExitWord;
use std::process::ExitCode;

/// Codes of the shell's own tradition: usage, unknown object; configuration.
pub const USAGE: u8 = 64;
pub const CONFIG: u8 = 78;
pub const FAILED: u8 = 10;

/// Why a command could not do what it was asked.
#[derive(Debug)]
pub struct CommandFailure {
    pub code: u8,
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl CommandFailure {
    pub fn usage(message: impl Into<String>) -> CommandFailure {
        CommandFailure { code: USAGE, message: message.into(), help: None }
    }

    pub fn config(message: impl Into<String>) -> CommandFailure {
        CommandFailure { code: CONFIG, message: message.into(), help: None }
    }

    pub fn failed(message: impl Into<String>) -> CommandFailure {
        CommandFailure { code: FAILED, message: message.into(), help: None }
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> CommandFailure {
        self.help = Some(help.into());
        self
    }
}

impl From<WorkspaceError> for CommandFailure {
    fn from(error: WorkspaceError) -> CommandFailure {
        let message = autopilot_engine::cause::chain(&error);
        match error {
            WorkspaceError::NotARepository { .. }
            | WorkspaceError::Repository(_)
            | WorkspaceError::NoRun(_) => CommandFailure::usage(message),
            WorkspaceError::NoConfig { .. }
            | WorkspaceError::ConfigUnreadable { .. }
            | WorkspaceError::Config { .. }
            | WorkspaceError::Linked { .. }
            | WorkspaceError::NotUtf8 { .. }
            | WorkspaceError::NoStateRoot => CommandFailure::config(message),
            WorkspaceError::Store(StoreError::Journal(error)) => match error.trouble() {
                Some(StorageTrouble::Full | StorageTrouble::ReadOnly) => {
                    CommandFailure::failed(message)
                        .help("make room or make the state directory writable, then run it again")
                }
                Some(StorageTrouble::Damaged) => CommandFailure::failed(message)
                    .help("`autopilot recover --journal` keeps what can be read"),
                Some(StorageTrouble::Io | StorageTrouble::Busy | StorageTrouble::Other) | None => {
                    CommandFailure::failed(message)
                }
            },
            WorkspaceError::Git(_)
            | WorkspaceError::Store(_)
            | WorkspaceError::Lock(_)
            | WorkspaceError::NotWritable { .. } => CommandFailure::failed(message),
        }
    }
}

impl From<ShellError> for CommandFailure {
    fn from(error: ShellError) -> CommandFailure {
        let text = autopilot_engine::cause::chain(&error);
        // Nothing is lost: whatever was acknowledged is on disk.
        CommandFailure { code: ExitWord::Paused.code(), message: text, help: None }
            .help("make room or make the state directory writable, then run `autopilot resume`")
    }
}

impl From<autopilot_host::git::GitError> for CommandFailure {
    fn from(error: autopilot_host::git::GitError) -> CommandFailure {
        WorkspaceError::from(error).into()
    }
}

pub fn report(failure: &CommandFailure) -> ExitCode {
    terminal::error(&failure.message);
    if let Some(help) = &failure.help {
        terminal::hint(help);
    }
    ExitCode::from(failure.code)
}

/// Help and version are no errors; everything else clap refuses is a usage error.
pub fn usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    // Where it can't be shown, the code still tells.
    let _closed = error.print();
    let asked = [
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayVersion,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    if asked.contains(&error.kind()) { ExitCode::SUCCESS } else { ExitCode::from(USAGE) }
}
