//! Whose fault it is that a job produced no outcome: the work's, a vendor's, or the machine's.
//!
//! Invariant: this is the only place that says so, and it looks at types and error numbers, never at
//! the text of a message. A fault of the machine is tried again and then rests the run; it spends
//! nothing of the task.

use super::JobError;
use crate::place::StatePaths;
use crate::recorded::RecordedError;
use crate::run_process::room;
use crate::store::StoreError;
use autopilot_core::event::{HoldWhy, MachineFault, Outcome};
use autopilot_host::exec::{LaunchStage, SpawnError};
use autopilot_host::file::FileError;
use autopilot_host::git::{CommandError, CommandStatus, GitError};
use std::error::Error;
use std::io;

/// The party that has to mend an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The agent, the change or the task: a broken try.
    Work,
    /// The agent's executable is not there: nothing but that agent waits for it.
    Program,
    Machine(MachineFault),
}

/// The outcome of an attempt that ended with an error.
pub fn outcome(error: &JobError, place: &StatePaths) -> Outcome {
    let text = crate::cause::chain(error);
    match blame(error) {
        Blame::Work => unless_the_machine(Outcome::Broke { why: text }, place),
        Blame::Program => Outcome::Away { why: HoldWhy::Program, text, until: None },
        Blame::Machine(fault) => Outcome::Away { why: HoldWhy::Machine(fault), text, until: None },
    }
}

/// The outcome of an attempt, unless the machine can't be trusted with a no: on a disk that is full,
/// read-only or gone, tests and agents fail whatever the work is.
pub fn unless_the_machine(outcome: Outcome, place: &StatePaths) -> Outcome {
    let why = match &outcome {
        Outcome::Failed { why } | Outcome::Broke { why } => why,
        Outcome::Passed
        | Outcome::Lost
        | Outcome::Quota { .. }
        | Outcome::Away { .. }
        | Outcome::Revoked
        | Outcome::Skipped { .. } => return outcome,
    };
    match room::trouble(place) {
        Some((fault, what)) => {
            let text = format!("{what}; meanwhile: {why}");
            Outcome::Away { why: HoldWhy::Machine(fault), text, until: None }
        }
        None => outcome,
    }
}

/// Whose fault an error is.
pub fn blame(error: &JobError) -> Blame {
    let by_number = || by_error_number(error).map_or(Blame::Work, Blame::Machine);
    match error {
        JobError::Integration(error) => blame(error),
        JobError::NoProgram { .. } => Blame::Program,
        JobError::Supervisor => Blame::Machine(MachineFault::Supervisor),
        JobError::Store(error) => Blame::Machine(of_store(error)),
        JobError::Spawn(error) => of_spawn(error),
        JobError::Git(error) => of_git(error, Blame::Machine(MachineFault::Git)),
        JobError::File(error) | JobError::Recorded(RecordedError::File(error)) => of_file(error),
        JobError::Directory { source, .. }
        | JobError::Recorded(RecordedError::Directory { source, .. }) => of_own_file(source),
        JobError::Home(_) => Blame::Machine(by_error_number(error).unwrap_or(MachineFault::Denied)),
        JobError::RacesLost { .. } => Blame::Machine(MachineFault::Git),
        JobError::Port(_) | JobError::Sandbox(_) => {
            Blame::Machine(by_error_number(error).unwrap_or(MachineFault::Denied))
        }
        JobError::Recorded(RecordedError::Json { .. })
        | JobError::Spec(_)
        | JobError::Json(_)
        | JobError::Schema(_)
        | JobError::NoJob { .. }
        | JobError::Thread(_)
        | JobError::Internal(_) => Blame::Machine(MachineFault::Internal),
        JobError::Session { .. }
        | JobError::Agent(_)
        | JobError::McpServer { .. }
        | JobError::NothingSaid
        | JobError::NotRecorded { .. }
        | JobError::SetupCommand { .. }
        | JobError::Skill(_)
        | JobError::Money(_)
        | JobError::NotWanted
        | JobError::NotUtf8 { .. }
        | JobError::TooManyQuestions { .. } => by_number(),
    }
}

/// The fault that an error number in the chain of causes stands for, whatever was being done: no
/// work can cause these on purpose without them being true of the machine.
fn by_error_number(error: &(dyn Error + 'static)) -> Option<MachineFault> {
    let mut cause = Some(error);
    while let Some(now) = cause {
        let number = now.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        if let Some(fault) = number.and_then(of_number) {
            return Some(fault);
        }
        cause = now.source();
    }
    None
}

fn of_number(number: i32) -> Option<MachineFault> {
    match number {
        libc::ENOSPC => Some(MachineFault::DiskFull),
        libc::EDQUOT => Some(MachineFault::DiskQuota),
        libc::EROFS => Some(MachineFault::ReadOnly),
        libc::EIO => Some(MachineFault::DiskError),
        libc::EMFILE | libc::ENFILE => Some(MachineFault::OpenFiles),
        libc::ENOMEM => Some(MachineFault::Memory),
        libc::ESTALE | libc::ENOTCONN | libc::ENODEV => Some(MachineFault::Missing),
        _ => None,
    }
}

/// The blame for a file or directory that only Autopilot writes.
fn of_own_file(error: &io::Error) -> Blame {
    let fault = error.raw_os_error().and_then(of_number).unwrap_or(match error.kind() {
        io::ErrorKind::PermissionDenied => MachineFault::Denied,
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => MachineFault::Missing,
        _ => MachineFault::Internal,
    });
    Blame::Machine(fault)
}

/// The fault of the machine for a file of Autopilot's that could not be written.
pub fn of_own_path(error: &FileError) -> MachineFault {
    match of_file(error) {
        Blame::Machine(fault) => fault,
        Blame::Work | Blame::Program => MachineFault::Denied,
    }
}

fn of_file(error: &FileError) -> Blame {
    match error {
        FileError::Failed { source, .. } => of_own_file(source),
        FileError::Link { .. } | FileError::Name { .. } | FileError::TooLarge { .. } => Blame::Work,
    }
}

fn of_store(error: &StoreError) -> MachineFault {
    by_error_number(error).unwrap_or(MachineFault::Journal)
}

fn of_spawn(error: &SpawnError) -> Blame {
    match error {
        SpawnError::Prepare { source, .. } | SpawnError::Supervisor { source, .. } => {
            match source.raw_os_error() {
                Some(libc::EAGAIN) => Blame::Machine(MachineFault::Processes),
                _ => of_own_file(source),
            }
        }
        SpawnError::Died { .. } | SpawnError::Deaf { .. } => {
            Blame::Machine(MachineFault::Supervisor)
        }
        SpawnError::Start { failure, .. } if failure.errno == Some(libc::EAGAIN) => {
            Blame::Machine(MachineFault::Processes)
        }
        SpawnError::Start { failure, .. } => {
            match (failure.errno.and_then(of_number), failure.stage) {
                (Some(fault), _) => Blame::Machine(fault),
                (None, LaunchStage::Program) => Blame::Work,
                (None, LaunchStage::Supervisor | LaunchStage::Directory | LaunchStage::Sandbox) => {
                    Blame::Machine(MachineFault::Denied)
                }
            }
        }
    }
}

/// `failed` is the blame for a git that ended by itself and said no.
fn of_git(error: &GitError, failed: Blame) -> Blame {
    match error {
        // Git fails on files that the agent made, such as one it may not read.
        GitError::Worktree(error) => of_git(error, Blame::Work),
        GitError::Command(command) => match command {
            CommandError::NoGit => Blame::Machine(MachineFault::Git),
            CommandError::Spawn { source, .. } => match of_own_file(source) {
                Blame::Machine(MachineFault::Internal) => Blame::Machine(MachineFault::Git),
                known => known,
            },
            CommandError::Failed { status: CommandStatus::Signal(_), .. } => {
                Blame::Machine(MachineFault::Git)
            }
            CommandError::Failed { status: CommandStatus::Code(_), .. }
            | CommandError::TimedOut { .. }
            | CommandError::TooLong { .. } => failed,
            CommandError::Unwanted { .. } => Blame::Work,
        },
        GitError::File { source, .. } => match source.raw_os_error().and_then(of_number) {
            Some(fault) => Blame::Machine(fault),
            None => failed,
        },
        // The change itself can make git write other files than were committed, and an agent can
        // remove its own directory.
        GitError::ProofDiffers { .. } | GitError::SlotMissing { .. } => Blame::Work,
        GitError::TooManyCommits { .. } => Blame::Work,
        GitError::Refused(_)
        | GitError::Unreadable { .. }
        | GitError::RefMoved { .. }
        | GitError::Tampered { .. }
        | GitError::NotFound { .. } => failed,
    }
}
