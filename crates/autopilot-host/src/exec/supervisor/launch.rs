//! The start of an agent in its sandbox, by its supervisor: its own session, its limits, nothing
//! inherited.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command as Program, Stdio};

use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;

use crate::exec::wire::{
    LaunchFailure, LaunchOrder, LaunchStage, OsText, SupervisorCommand, SupervisorReport,
    WireLines, line,
};
use crate::exec::{limit, nonblocking};
use crate::proc::{self, ProcessIdentity};
use crate::register::RegisteredTree;
use crate::sandbox::{self, SandboxPlan};

/// Starts the program with its three standard descriptors. Returns its process, and the status that
/// bubblewrap reports where it is the sandbox.
pub(super) fn start(
    order: &LaunchOrder,
    stdio: [OwnedFd; 3],
    control: &UnixStream,
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
    let (limits, mark) = (order.limits.clone(), order.mark);
    let control = control.try_clone().map_err(|e| LaunchFailure::at(LaunchStage::Supervisor, e))?;
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
        limit::apply(&limits)?;
        hold(&control, limit::mark(mark))?;
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

/// Waits until the controller has registered this process, which is about to become the program.
/// Nobody else reads from the control socket meanwhile: the supervisor waits for the program.
fn hold(mut control: &UnixStream, mark: Option<u64>) -> io::Result<()> {
    let own = |pid: Pid| {
        let found = proc::read(pid.as_raw()).map(|process| process.id);
        found.ok_or_else(|| io::Error::other("`/proc` can't be read"))
    };
    let tree = RegisteredTree {
        table: proc::table_name(),
        supervisor: own(nix::unistd::getppid())?,
        program: own(nix::unistd::getpid())?,
        mark,
    };
    control.write_all(&line(&SupervisorReport::Held(tree)))?;
    let mut lines = WireLines::default();
    loop {
        let mut byte = [0];
        control.read_exact(&mut byte)?;
        match lines.push::<SupervisorCommand>(&byte).first() {
            None => {}
            Some(SupervisorCommand::Go) => return Ok(()),
            Some(SupervisorCommand::Terminate { .. } | SupervisorCommand::Kill) => {
                return Err(io::Error::other("it was ended before it began"));
            }
        }
    }
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
