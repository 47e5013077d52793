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
use crate::workspace::WorkspaceError;
use autopilot_core::event::{HoldWhy, MachineFault, Outcome};
use autopilot_host::exec::{LaunchStage, SpawnError};
use autopilot_host::file::FileError;
use autopilot_host::git::{CommandError, CommandStatus, GitError};
use autopilot_host::lock::LockError;
use autopilot_host::warm::WarmError;
use autopilot_journal::StorageTrouble;
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
        Blame::Work => unless_the_machine(Outcome::Broke { why: text }, room::trouble(place)),
        Blame::Program => Outcome::Away { why: HoldWhy::Program, text, until: None },
        Blame::Machine(fault) => Outcome::Away { why: HoldWhy::Machine(fault), text, until: None },
    }
}

/// The outcome of an attempt, unless the machine can't be trusted with a no: on a disk that is full,
/// read-only or gone, tests and agents fail whatever the work is.
pub fn unless_the_machine(outcome: Outcome, trouble: Option<(MachineFault, String)>) -> Outcome {
    let why = match &outcome {
        Outcome::Failed { why } | Outcome::Misconfigured { why } | Outcome::Broke { why } => why,
        Outcome::Passed
        | Outcome::Lost
        | Outcome::Quota { .. }
        | Outcome::Away { .. }
        | Outcome::Revoked
        | Outcome::Skipped { .. } => return outcome,
    };
    match trouble {
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
        JobError::Warm(WarmError::Git(error)) => of_git(error, Blame::Machine(MachineFault::Git)),
        JobError::Warm(WarmError::File { source, .. }) => {
            Blame::Machine(of_own_file(source, MachineFault::Internal))
        }
        JobError::Warm(WarmError::NotSealed(_) | WarmError::GoCold(_)) => {
            Blame::Machine(MachineFault::Internal)
        }
        JobError::File(error) | JobError::Recorded(RecordedError::File(error)) => of_file(error),
        JobError::Directory { source, .. }
        | JobError::Recorded(RecordedError::Directory { source, .. }) => {
            Blame::Machine(of_own_file(source, MachineFault::Internal))
        }
        JobError::Home(_) => Blame::Machine(by_error_number(error).unwrap_or(MachineFault::Denied)),
        JobError::RacesLost { .. } => Blame::Machine(MachineFault::Git),
        JobError::Port(_) => Blame::Machine(by_error_number(error).unwrap_or(MachineFault::Denied)),
        JobError::Recorded(RecordedError::Json { .. })
        | JobError::Spec(_)
        | JobError::Json(_)
        | JobError::Schema(_)
        | JobError::NoJob { .. }
        | JobError::NoHoldout
        | JobError::Panicked
        | JobError::Internal(_) => Blame::Machine(MachineFault::Internal),
        // A sandbox that was asked for and is not there is a matter of the configuration.
        JobError::Sandbox(_)
        | JobError::Session { .. }
        | JobError::Agent(_)
        | JobError::McpServer { .. }
        | JobError::NothingSaid
        | JobError::NotRecorded { .. }
        | JobError::SetupCommand { .. }
        // Only a setup that changes what is proven can make it so.
        | JobError::Warm(WarmError::NotRestored { .. })
        | JobError::Skill(_)
        | JobError::Money(_)
        | JobError::NotWanted
        | JobError::NotUtf8 { .. }
        | JobError::TooManyQuestions { .. } => by_number(),
    }
}

/// The fault of the machine that keeps a process from its work, if it is one: nothing was done yet,
/// so no task can have caused it. What is lost, damaged or set wrongly is none.
pub fn at_start(error: &WorkspaceError) -> Option<MachineFault> {
    match error {
        WorkspaceError::Git(error) => git_at_start(error),
        WorkspaceError::Store(StoreError::Journal(error)) => of_journal(error),
        WorkspaceError::Store(error) => by_error_number(error),
        WorkspaceError::Lock(LockError::Failed { source, .. }) => {
            Some(of_own_file(source, MachineFault::Denied))
        }
        WorkspaceError::Lock(LockError::Restless { .. }) => Some(MachineFault::Denied),
        WorkspaceError::NotWritable { source, .. } => {
            Some(of_own_error(source).unwrap_or(MachineFault::Denied))
        }
        WorkspaceError::NoRoom { .. } => Some(MachineFault::DiskFull),
        WorkspaceError::ConfigUnreadable { source, .. } => by_error_number(&**source),
        WorkspaceError::Lock(LockError::Held { .. } | LockError::Unsupported { .. })
        | WorkspaceError::NotARepository { .. }
        | WorkspaceError::NotUtf8 { .. }
        | WorkspaceError::NoStateRoot
        | WorkspaceError::StateRootRelative { .. }
        | WorkspaceError::NoConfig { .. }
        | WorkspaceError::Config { .. }
        | WorkspaceError::Repository(_)
        | WorkspaceError::HubDamaged { .. }
        | WorkspaceError::WorkLost { .. }
        | WorkspaceError::Lost(_)
        | WorkspaceError::Linked { .. }
        | WorkspaceError::NoRun(_) => None,
    }
}

/// The fault behind a git that fails before any work: whatever it refuses, no task is to blame.
fn git_at_start(error: &GitError) -> Option<MachineFault> {
    let blame = match error {
        GitError::Command(CommandError::NoGit) => return None,
        GitError::Worktree(error) => return git_at_start(error),
        GitError::File { source, .. } => return Some(of_own_file(source, MachineFault::Git)),
        GitError::Command(_)
        | GitError::ProofDiffers { .. }
        | GitError::SlotMissing { .. }
        | GitError::TooManyCommits { .. }
        | GitError::Withheld { .. }
        | GitError::Oversize(_)
        | GitError::Refused(_)
        | GitError::Unreadable { .. }
        | GitError::RefMoved { .. }
        | GitError::Tampered { .. }
        | GitError::NotFound { .. } => of_git(error, Blame::Machine(MachineFault::Git)),
    };
    match blame {
        Blame::Machine(fault) => Some(fault),
        Blame::Work | Blame::Program => None,
    }
}

/// The fault behind a journal that can't be used now. One that is damaged or of another version
/// stays so.
fn of_journal(error: &autopilot_journal::Error) -> Option<MachineFault> {
    if let Some(fault) = of_own_error(error) {
        return Some(fault);
    }
    error.trouble().and_then(|trouble| match trouble {
        StorageTrouble::Full => Some(MachineFault::DiskFull),
        StorageTrouble::Io => Some(MachineFault::DiskError),
        StorageTrouble::ReadOnly => Some(MachineFault::ReadOnly),
        StorageTrouble::Denied => Some(MachineFault::Denied),
        StorageTrouble::Busy => Some(MachineFault::Journal),
        StorageTrouble::Damaged | StorageTrouble::Other => None,
    })
}

/// The faults that error numbers stand for, whatever was being done: no work can cause these
/// without them being true of the machine.
const NUMBERS: [(i32, MachineFault); 10] = [
    (libc::ENOSPC, MachineFault::DiskFull),
    (libc::EDQUOT, MachineFault::DiskQuota),
    (libc::EROFS, MachineFault::ReadOnly),
    (libc::EIO, MachineFault::DiskError),
    (libc::EMFILE, MachineFault::OpenFiles),
    (libc::ENFILE, MachineFault::OpenFiles),
    (libc::ENOMEM, MachineFault::Memory),
    (libc::ESTALE, MachineFault::Missing),
    (libc::ENOTCONN, MachineFault::Missing),
    (libc::ENODEV, MachineFault::Missing),
];
/// The same for errors that a library has wrapped, of which only the kind is left.
const KINDS: [(io::ErrorKind, MachineFault); 4] = [
    (io::ErrorKind::StorageFull, MachineFault::DiskFull),
    (io::ErrorKind::QuotaExceeded, MachineFault::DiskQuota),
    (io::ErrorKind::ReadOnlyFilesystem, MachineFault::ReadOnly),
    (io::ErrorKind::OutOfMemory, MachineFault::Memory),
];
/// The faults that are the machine's only where nobody but Autopilot writes.
const OWN_KINDS: [(io::ErrorKind, MachineFault); 4] = [
    (io::ErrorKind::PermissionDenied, MachineFault::Denied),
    (io::ErrorKind::NotFound, MachineFault::Missing),
    (io::ErrorKind::NotADirectory, MachineFault::Missing),
    (io::ErrorKind::IsADirectory, MachineFault::InTheWay),
];

/// The fault of the machine that is somewhere in the chain of causes.
pub fn by_error_number(error: &(dyn Error + 'static)) -> Option<MachineFault> {
    in_chain(error, of_io)
}

/// The same for an error about files that only Autopilot writes.
pub fn of_own_error(error: &(dyn Error + 'static)) -> Option<MachineFault> {
    in_chain(error, |error| of_io(error).or_else(|| of_kind(error, &OWN_KINDS)))
}

fn in_chain(
    error: &(dyn Error + 'static),
    fault: impl Fn(&io::Error) -> Option<MachineFault>,
) -> Option<MachineFault> {
    let mut cause = Some(error);
    while let Some(now) = cause {
        if let Some(fault) = now.downcast_ref::<io::Error>().and_then(&fault) {
            return Some(fault);
        }
        cause = now.source();
    }
    None
}

fn of_io(error: &io::Error) -> Option<MachineFault> {
    error.raw_os_error().and_then(of_number).or_else(|| of_kind(error, &KINDS))
}

fn of_number(number: i32) -> Option<MachineFault> {
    NUMBERS.iter().find(|(known, _)| *known == number).map(|(_, fault)| *fault)
}

fn of_kind(error: &io::Error, kinds: &[(io::ErrorKind, MachineFault)]) -> Option<MachineFault> {
    kinds.iter().find(|(kind, _)| *kind == error.kind()).map(|(_, fault)| *fault)
}

/// The fault behind an operation on a file or directory that only Autopilot writes.
fn of_own_file(error: &io::Error, otherwise: MachineFault) -> MachineFault {
    of_io(error).or_else(|| of_kind(error, &OWN_KINDS)).unwrap_or(otherwise)
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
        FileError::Failed { source, .. } => {
            Blame::Machine(of_own_file(source, MachineFault::Internal))
        }
        FileError::Link { .. } | FileError::Name { .. } | FileError::TooLarge { .. } => Blame::Work,
    }
}

fn of_store(error: &StoreError) -> MachineFault {
    let by_journal = match error {
        StoreError::Journal(error) => of_journal(error),
        StoreError::Record { .. }
        | StoreError::Encode { .. }
        | StoreError::Stopped(_)
        | StoreError::NoBlob { .. } => None,
    };
    by_journal.or_else(|| by_error_number(error)).unwrap_or(MachineFault::Journal)
}

fn of_spawn(error: &SpawnError) -> Blame {
    match error {
        SpawnError::Prepare { source, .. } | SpawnError::Supervisor { source, .. } => {
            Blame::Machine(of_own_file(source, MachineFault::Processes))
        }
        SpawnError::Register { source, .. } => {
            Blame::Machine(of_own_file(source, MachineFault::Denied))
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
            CommandError::Spawn { source, .. } => {
                Blame::Machine(of_own_file(source, MachineFault::Git))
            }
            CommandError::Failed { status: CommandStatus::Signal(_), .. } => {
                Blame::Machine(MachineFault::Git)
            }
            CommandError::Failed { status: CommandStatus::Code(_), .. }
            | CommandError::TimedOut { .. }
            | CommandError::TooLong { .. } => failed,
            // The attempt that was cancelled is revoked; to any other it says nothing about the work.
            CommandError::Unwanted { .. } => Blame::Machine(MachineFault::Git),
        },
        GitError::File { source, .. } => match of_io(source) {
            Some(fault) => Blame::Machine(fault),
            None => failed,
        },
        // The change itself can make git write other files than were committed, and an agent can
        // remove its own directory.
        GitError::ProofDiffers { .. } | GitError::SlotMissing { .. } => Blame::Work,
        GitError::TooManyCommits { .. } | GitError::Withheld { .. } | GitError::Oversize(_) => {
            Blame::Work
        }
        GitError::Refused(_)
        | GitError::Unreadable { .. }
        | GitError::RefMoved { .. }
        | GitError::Tampered { .. }
        | GitError::NotFound { .. } => failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::sync::Arc;

    fn number(number: i32) -> io::Error {
        io::Error::from_raw_os_error(number)
    }

    fn git(status: CommandStatus) -> GitError {
        let (called, stderr) = ("`git add`".to_owned(), "No space left on device".to_owned());
        GitError::Command(CommandError::Failed { called, status, stderr })
    }

    fn in_a_file(source: io::Error) -> GitError {
        GitError::File { operation: "read", path: PathBuf::from("x"), source }
    }

    #[test]
    fn a_number_of_the_machine_is_its_fault_however_deep_it_is() {
        for (known, fault) in NUMBERS {
            let direct = JobError::directory("create", "a/b")(number(known));
            assert_eq!(blame(&direct), Blame::Machine(fault), "{known}");
            let file = FileError::Failed { what: "write", path: "x".into(), source: number(known) };
            let deep = JobError::Integration(Arc::new(JobError::File(file)));
            assert_eq!(blame(&deep), Blame::Machine(fault), "{known}");
            let session = JobError::Session { session: "s".into(), source: number(known) };
            assert_eq!(blame(&session), Blame::Machine(fault), "{known}");
            let worktree = GitError::Worktree(Box::new(in_a_file(number(known))));
            assert_eq!(blame(&worktree.into()), Blame::Machine(fault), "{known}");
        }
        let wrapped = io::Error::new(io::ErrorKind::StorageFull, "wrapped by a library");
        let error = JobError::directory("create", "a/b")(wrapped);
        assert_eq!(blame(&error), Blame::Machine(MachineFault::DiskFull));
    }

    #[test]
    fn a_git_of_ours_that_dies_or_refuses_is_never_the_work_and_one_over_its_files_may_be() {
        let (killed, refused) = (CommandStatus::Signal(9), CommandStatus::Code(128));
        let ours = Blame::Machine(MachineFault::Git);
        assert_eq!(blame(&git(killed).into()), ours);
        assert_eq!(blame(&git(refused).into()), ours);
        let over_files = |status| JobError::Git(GitError::Worktree(Box::new(git(status))));
        assert_eq!(blame(&over_files(killed)), ours);
        assert_eq!(blame(&over_files(refused)), Blame::Work, "and never by what it printed");
        let denied = GitError::Worktree(Box::new(in_a_file(number(libc::EACCES))));
        assert_eq!(blame(&denied.into()), Blame::Work, "an agent may lock its own files");
    }

    #[test]
    fn what_is_missing_or_may_not_be_written_is_ours_only_where_nobody_else_writes() {
        for (code, fault) in [
            (libc::EACCES, MachineFault::Denied),
            (libc::EPERM, MachineFault::Denied),
            (libc::ENOENT, MachineFault::Missing),
            (libc::ENOTDIR, MachineFault::Missing),
        ] {
            let own = JobError::directory("create", "a")(number(code));
            assert_eq!(blame(&own), Blame::Machine(fault), "{code}");
            let session = JobError::Session { session: "s".into(), source: number(code) };
            assert_eq!(blame(&session), Blame::Work, "{code}");
        }
    }

    #[test]
    fn an_agent_that_is_not_installed_holds_that_agent_and_a_dead_supervisor_the_machine() {
        assert_eq!(blame(&JobError::NoProgram { name: "claude".into() }), Blame::Program);
        assert_eq!(blame(&JobError::Supervisor), Blame::Machine(MachineFault::Supervisor));
        let died = SpawnError::Died { program: "sh".into() };
        assert_eq!(blame(&died.into()), Blame::Machine(MachineFault::Supervisor));
        let setup = JobError::SetupCommand {
            failure: "setup failed".into(),
            log: "x".into(),
            not_run: None,
        };
        assert_eq!(blame(&setup), Blame::Work);
    }
}
