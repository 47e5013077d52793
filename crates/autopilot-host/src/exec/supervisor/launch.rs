//! The start of an agent in its sandbox, by its supervisor: its own session, its limits, nothing
//! inherited.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command as Program, Stdio};

use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};

use crate::exec::nonblocking;
use crate::exec::wire::{LaunchFailure, LaunchOrder, LaunchStage, OsText};
use crate::proc::{self, ProcessIdentity};
use crate::sandbox::{self, SandboxPlan};

/// Starts the program with its three standard descriptors. Returns its process, and the status that
/// bubblewrap reports where it is the sandbox.
pub(super) fn start(
    order: &LaunchOrder,
    stdio: [OwnedFd; 3],
) -> Result<(ProcessIdentity, Option<File>), LaunchFailure> {
    if let Err(error) = std::fs::read_dir(&order.cwd) {
        let mut failed = LaunchFailure::at(LaunchStage::Directory, error);
        failed.message = format!("`{}`: {}", order.cwd.display(), failed.message);
        return Err(failed);
    }
    let PreparedProgram { mut program, bwrap_status, status_fd, mut ruleset } = prepare(order)?;
    let [stdin, stdout, stderr] = stdio;
    program
        .env_clear()
        .envs(order.env.iter().map(|(name, value)| (name.os(), value.os())))
        .current_dir(&order.cwd)
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr));
    let limits = order.limits.clone();
    let supervisor = nix::unistd::getpid();
    let enter = move || {
        nix::unistd::setsid()?;
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        if nix::unistd::getppid() != supervisor {
            return Err(io::Error::other("the supervisor has exited"));
        }
        forget_inheritance()?;
        if let Some(fd) = &status_fd {
            nix::fcntl::fcntl(fd, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty()))?;
        }
        crate::exec::limit::apply(&limits)?;
        match ruleset.take() {
            Some(ruleset) => sandbox::enforce(ruleset).map_err(io::Error::other),
            None => Ok(()),
        }
    };
    // SAFETY: this process has a single thread, so the child may do what any process may.
    unsafe { program.pre_exec(enter) };
    let child = program.spawn().map_err(|error| LaunchFailure::at(LaunchStage::Program, error))?;
    let pid = i32::try_from(child.id()).unwrap_or(i32::MAX);
    // An unreaped child always has its entry, also when it has ended already.
    let start_time = proc::read(pid).map_or(0, |process| process.id.start_time);
    Ok((ProcessIdentity { pid, start_time }, bwrap_status))
}

/// Resets what the agent would inherit: the supervisor blocks signals, and whoever started the
/// controller may have left descriptors open and signals ignored.
fn forget_inheritance() -> io::Result<()> {
    // SAFETY: calls without pointers; the kernel refuses to change KILL and STOP, which is fine.
    unsafe {
        libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC.cast_signed());
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
    Ok(SigSet::empty().thread_set_mask()?)
}

/// A program that is ready to be started in its sandbox.
struct PreparedProgram {
    program: Program,
    /// Our end of the pipe on which bubblewrap reports, and the end that it gets.
    bwrap_status: Option<File>,
    status_fd: Option<OwnedFd>,
    ruleset: Option<landlock::RulesetCreated>,
}

fn prepare(order: &LaunchOrder) -> Result<PreparedProgram, LaunchFailure> {
    let mut program = Program::new(order.program.os());
    program.args(order.args.iter().map(OsText::os));
    let mut prepared =
        PreparedProgram { program, bwrap_status: None, status_fd: None, ruleset: None };
    match &order.sandbox {
        SandboxPlan::Off => {}
        SandboxPlan::Jail(jail) => {
            let ruleset = sandbox::prepare(&jail.write).map_err(|error| LaunchFailure {
                stage: LaunchStage::Sandbox,
                message: crate::cause::chain(&error),
                errno: None,
            })?;
            prepared.ruleset = Some(ruleset);
        }
        SandboxPlan::Bwrap { program, write } => {
            let failed = |error| LaunchFailure::at(LaunchStage::Sandbox, error);
            let (reader, writer) = io::pipe().map_err(failed)?;
            let writer = OwnedFd::from(writer);
            prepared.bwrap_status = Some(nonblocking(reader.into()).map_err(failed)?.into());
            prepared.program = Program::new(program);
            prepared.program.args(sandbox::bwrap_args(write, &order.cwd, writer.as_raw_fd()));
            prepared.program.arg(order.program.os()).args(order.args.iter().map(OsText::os));
            prepared.status_fd = Some(writer);
        }
    }
    Ok(prepared)
}
