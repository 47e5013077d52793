//! The way from a fork to the program: its own session, its limits, its jail, nothing inherited.

use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command as Program, Stdio};

use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{ForkResult, Pid, fork};

use super::hold::{ProgramHold, own_identity};
use crate::exec::wire::{LaunchFailure, LaunchOrder, LaunchStage, OsText, ProcessLimits};
use crate::jail::{self, CallFilters};
use crate::sandbox;

/// Everything that the process takes on before it becomes the program.
pub(super) struct ProgramEntry {
    pub parent: EntryParent,
    /// The hold on a program that is a child of its supervisor; an init has its own.
    pub hold: Option<ProgramHold>,
    /// A descriptor that the program keeps.
    pub kept: Option<OwnedFd>,
    pub limits: ProcessLimits,
    pub confinement: Option<Confinement>,
}

/// The process that starts the program.
pub(super) enum EntryParent {
    Supervisor(Pid),
    /// The init of a jail, with the socket on which the supervisor learns the program's number, and
    /// the pipe on which the init says that it has given up what it was allowed to do.
    Init {
        socket: OwnedFd,
        powerless: PipeReader,
    },
}

/// The init's word that it has no privilege any more.
const POWERLESS: &[u8] = b"p";

/// The rules that a program can't shed.
pub(super) struct Confinement {
    pub ruleset: Option<landlock::RulesetCreated>,
    pub filters: CallFilters,
}

impl Confinement {
    /// Prepares the rules, with descriptors of the paths as they are seen now.
    pub fn new(write: &[std::path::PathBuf], namespaces: bool) -> Result<Self, LaunchFailure> {
        let ruleset = sandbox::prepare(write).map_err(|error| LaunchFailure {
            stage: LaunchStage::Sandbox,
            message: crate::cause::chain(&error),
            errno: None,
        })?;
        let filters = CallFilters::new(namespaces)
            .map_err(|error| LaunchFailure::at(LaunchStage::Sandbox, error))?;
        Ok(Confinement { ruleset: Some(ruleset), filters })
    }
}

/// Returns the program of the order, with its arguments.
pub(super) fn program(order: &LaunchOrder) -> Program {
    let mut program = Program::new(order.program.os());
    program.args(order.args.iter().map(OsText::os));
    program
}

/// Starts the program and returns its process number.
pub(super) fn spawn(
    program: Program,
    order: &LaunchOrder,
    stdio: [OwnedFd; 3],
    entry: ProgramEntry,
) -> Result<i32, LaunchFailure> {
    let ours = |error| LaunchFailure::at(LaunchStage::Supervisor, error);
    let (told, tell) = io::pipe().map_err(ours)?;
    let mut told = crate::exec::nonblocking(told.into()).map(File::from).map_err(ours)?;
    match prepared(program, order, stdio, entry, tell.into()).spawn() {
        Ok(child) => Ok(i32::try_from(child.id()).unwrap_or(i32::MAX)),
        Err(error) => {
            let mut json = Vec::new();
            let _ = told.read_to_end(&mut json);
            Err(first_failure(&json)
                .unwrap_or_else(|| LaunchFailure::at(LaunchStage::Program, error)))
        }
    }
}

/// Starts the program as the child of an init and returns its process number. The init gives up its
/// privileges by `give_up` while the program waits, so that nobody in the jail has any once it runs:
/// the library's own way returns only when it runs already.
pub(super) fn spawn_below_init(
    order: &LaunchOrder,
    stdio: [OwnedFd; 3],
    entry: ProgramEntry,
    mut powerless: io::PipeWriter,
    give_up: impl FnOnce() -> io::Result<()>,
) -> Result<i32, LaunchFailure> {
    let ours = |error| LaunchFailure::at(LaunchStage::Supervisor, error);
    let (mut told, tell) = io::pipe().map_err(ours)?;
    let mut last_word = tell.try_clone().map_err(ours)?;
    let mut program = prepared(program(order), order, stdio, entry, tell.into());
    // SAFETY: this process has a single thread, so its copy may do what any process may.
    let child = match unsafe { fork() }.map_err(|errno| ours(errno.into()))? {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            drop(powerless);
            let failure = LaunchFailure::at(LaunchStage::Program, program.exec());
            let _ = last_word.write_all(&serde_json::to_vec(&failure).unwrap_or_default());
            // SAFETY: ends this copy without running what the init registered for its own end.
            unsafe { libc::_exit(1) }
        }
    };
    drop((program, last_word));
    give_up().map_err(|error| LaunchFailure::at(LaunchStage::Sandbox, error))?;
    powerless.write_all(POWERLESS).map_err(ours)?;
    drop(powerless);
    // The pipe closes when the child becomes the program.
    let mut json = Vec::new();
    told.read_to_end(&mut json).map_err(ours)?;
    first_failure(&json).map_or(Ok(child.as_raw()), Err)
}

/// Returns what the child told first, which is the cause of what it told afterwards.
fn first_failure(json: &[u8]) -> Option<LaunchFailure> {
    serde_json::Deserializer::from_slice(json).into_iter().next()?.ok()
}

fn prepared(
    mut program: Program,
    order: &LaunchOrder,
    [stdin, stdout, stderr]: [OwnedFd; 3],
    mut entry: ProgramEntry,
    tell: OwnedFd,
) -> Program {
    let mut tell = File::from(tell);
    program
        .env_clear()
        .envs(order.env.iter().map(|(name, value)| (name.os(), value.os())))
        .current_dir(&order.cwd)
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr));
    let enter = move || {
        entry.enter().map_err(|failure| {
            // The way of the library carries an error number and no more.
            let _ = tell.write_all(&serde_json::to_vec(&failure).unwrap_or_default());
            io::Error::from_raw_os_error(failure.errno.unwrap_or(libc::EPERM))
        })
    };
    // SAFETY: this process has a single thread, so the child may do what any process may.
    unsafe { program.pre_exec(enter) };
    program
}

impl ProgramEntry {
    fn enter(&mut self) -> Result<(), LaunchFailure> {
        let ours = |error: io::Error| LaunchFailure::at(LaunchStage::Supervisor, error);
        let sandbox = |error: io::Error| LaunchFailure::at(LaunchStage::Sandbox, error);
        nix::unistd::setsid().map_err(|errno| ours(errno.into()))?;
        if let EntryParent::Supervisor(supervisor) = self.parent {
            prctl::set_pdeathsig(Signal::SIGKILL).map_err(|errno| ours(errno.into()))?;
            if nix::unistd::getppid() != supervisor {
                return Err(ours(io::Error::other("the supervisor has exited")));
            }
        }
        self.forget_inheritance().map_err(ours)?;
        if let EntryParent::Init { socket, powerless } = &mut self.parent {
            powerless.read_exact(&mut [0; POWERLESS.len()]).map_err(ours)?;
            super::init::introduce(socket).map_err(ours)?;
        }
        if let Some(hold) = self.hold.take() {
            own_identity().and_then(|program| hold.wait(program)).map_err(ours)?;
        }
        crate::exec::limit::apply(&self.limits).map_err(ours)?;
        let Some(confinement) = &mut self.confinement else { return Ok(()) };
        if matches!(self.parent, EntryParent::Init { .. }) && nix::unistd::geteuid().is_root() {
            jail::seal_processes().map_err(sandbox)?;
        }
        jail::drop_all().map_err(sandbox)?;
        if let Some(ruleset) = confinement.ruleset.take() {
            sandbox::enforce(ruleset).map_err(|error| sandbox(io::Error::other(error)))?;
        }
        confinement.filters.enforce().map_err(sandbox)
    }

    /// Resets what the program would inherit: the supervisor blocks signals, and whoever started the
    /// controller may have left descriptors open and signals ignored.
    fn forget_inheritance(&self) -> io::Result<()> {
        // SAFETY: calls without pointers; the kernel refuses to change KILL and STOP, which is fine.
        unsafe {
            libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC.cast_signed());
            for signal in 1..=libc::SIGRTMAX() {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
        if let Some(fd) = &self.kept {
            nix::fcntl::fcntl(fd, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty()))?;
        }
        Ok(SigSet::empty().thread_set_mask()?)
    }
}
