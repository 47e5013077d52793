//! The supervisor: one small single-threaded process per agent, which leaves no process behind when
//! it ends.
//!
//! Below a subreaper every orphan becomes a direct child, so "no children" is "nothing left"; and
//! the number of a child that nobody has waited for cannot be given to another process.

mod copy;
mod entry;
mod first_message;
mod hold;
mod init;
mod launch;
mod probe;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::MsgFlags;
use nix::unistd::Pid;

use super::tree;
use super::wire::{
    LaunchFailure, LaunchOrder, LaunchStage, SupervisorCommand, SupervisorReport, WireLines, line,
};
use crate::proc::{self, ProcessIdentity};
use crate::sandbox;
use first_message::{FirstMessage, receive};
use hold::ProgramHold;
use init::JailReport;
use launch::TreeRoot;
pub use probe::{layer as probe_layer, namespaces as probe_namespaces};

/// How long killed processes may take to disappear before they are reported as survivors.
const KILL_TIME_MAX: Duration = Duration::from_secs(10);

/// The pause between kill rounds; the next signal from a dying child ends it early.
const KILL_PAUSE: Duration = Duration::from_millis(5);

/// The exit code of a supervisor that was started by hand.
const USAGE: i32 = 64;

/// Runs `autopilot __exec` and returns the exit code of the process.
///
/// Only a controller can start a supervisor: stdin must be the control socket. This function may
/// also be called from a test function that a test binary runs in a copy of itself.
pub fn main(args: &[OsString]) -> i32 {
    let after = |word: &str| args.iter().skip_while(|arg| *arg != word).nth(1);
    let ran = if let Some(dir) = after(probe::LAYER_ARGUMENT) {
        probe::main(Some(dir.as_ref()))
    } else if args.iter().any(|arg| arg == probe::ARGUMENT) {
        probe::main(None)
    } else {
        take_control().and_then(serve)
    };
    match ran {
        Ok(()) => 0,
        Err(_) => USAGE,
    }
}

fn serve(control: UnixStream) -> io::Result<()> {
    match receive(&control)? {
        FirstMessage::Launch(fds) => run(control, fds),
        FirstMessage::Copy(first) => copy::serve(control, first),
        FirstMessage::Nothing => Err(io::Error::other("the controlling process has exited")),
    }
}

fn run(control: UnixStream, [order, stdin, stdout, stderr]: [OwnedFd; 4]) -> io::Result<()> {
    let mut json = Vec::new();
    let mut order = File::from(order);
    order.rewind()?;
    order.read_to_end(&mut json)?;
    let order: LaunchOrder = serde_json::from_slice(&json)?;

    let failed = |failure: LaunchFailure| {
        send(&control, &SupervisorReport::Failed(failure));
        io::Error::other("nothing was started")
    };
    let watch = SupervisorWatch::new(&order).map_err(failed)?;
    let hold = ProgramHold::new(&control, order.mark).map_err(failed)?;
    let started = launch::start(&order, [stdin, stdout, stderr], Some(hold));
    let (agent, root) = started.map_err(failed)?;
    control.set_nonblocking(true)?;
    send(&control, &SupervisorReport::Started { agent });
    let mut tree = ProcessTree {
        control,
        agent,
        root,
        status: String::new(),
        exited: false,
        continued: false,
        leaked: BTreeSet::new(),
        phase: Phase::Running,
        grace: Duration::from_millis(order.grace_ms),
        drain: Duration::from_millis(order.drain_ms),
        lines: WireLines::default(),
    };
    tree.supervise(&watch);
    Ok(())
}

/// Moves the control socket away from stdin, so that nothing we start can reach it.
fn take_control() -> io::Result<UnixStream> {
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    control.peer_addr()?;
    nix::unistd::dup2_stdin(File::open("/dev/null")?)?;
    Ok(control)
}

fn send(control: &UnixStream, report: &SupervisorReport) {
    // A controller that is gone or deaf must not delay the cleaning up.
    let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
    let _ = nix::sys::socket::send(control.as_raw_fd(), &line(report), flags);
}

/// The events that wake the supervisor besides the control socket.
struct SupervisorWatch {
    controller: OwnedFd,
    signals: SignalFd,
}

impl SupervisorWatch {
    fn new(order: &LaunchOrder) -> Result<SupervisorWatch, LaunchFailure> {
        let failed = |error| LaunchFailure::at(LaunchStage::Supervisor, error);
        let refused = |errno: Errno| failed(errno.into());
        prctl::set_child_subreaper(true).map_err(refused)?;
        let controller = proc::open_pidfd(order.controller_pid).map_err(failed)?;
        // Only a living parent keeps its number for sure; after this the descriptor is bound to it.
        if nix::unistd::getppid().as_raw() != order.controller_pid {
            return Err(failed(io::Error::other("the controlling process has exited")));
        }
        let mask = SigSet::all();
        mask.thread_block().map_err(refused)?;
        let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .map_err(refused)?;
        Ok(SupervisorWatch { controller, signals })
    }
}

/// The phase of a supervised tree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// The agent was asked to end and is killed at that time.
    Ending(Instant),
    /// The agent has ended; the processes it left may finish until that time.
    Draining(Instant),
    /// Everything is being killed; `leaks` if that is because it outlived the agent.
    Killing {
        since: Instant,
        leaks: bool,
    },
}

/// The process tree of one agent.
struct ProcessTree {
    control: UnixStream,
    agent: ProcessIdentity,
    root: TreeRoot,
    status: String,
    exited: bool,
    continued: bool,
    leaked: BTreeSet<i32>,
    phase: Phase,
    grace: Duration,
    drain: Duration,
    lines: WireLines,
}

impl ProcessTree {
    fn supervise(&mut self, watch: &SupervisorWatch) {
        // This descriptor tells of the child's end also where a second thread (a test binary)
        // swallows SIGCHLD.
        let child = proc::open_pidfd(self.child()).ok();
        loop {
            match self.reap() {
                Left::Somebody => {}
                Left::Nobody => return self.gone(0),
                // Without a last word the controller knows that nobody saw the agent's end.
                Left::Unseen => return,
            }
            self.advance(Instant::now());
            if let Phase::Killing { since, leaks } = self.phase {
                self.kill(leaks);
                if since.elapsed() > KILL_TIME_MAX {
                    let left = proc::descendants(own_pid()).len();
                    return self.gone(u32::try_from(left).unwrap_or(u32::MAX));
                }
            }
            self.wait(watch, child.as_ref().filter(|_| !self.is_child_gone()));
            while let Ok(Some(signal)) = watch.signals.read_signal() {
                if i32::try_from(signal.ssi_signo) == Ok(libc::SIGTERM) {
                    self.hear(SupervisorCommand::Terminate {
                        grace_ms: u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX),
                    });
                }
            }
            self.listen();
            if readable(watch.controller.as_fd()) {
                self.hear(SupervisorCommand::Kill);
            }
        }
    }

    /// Returns the number of our own child: the agent, bubblewrap or the init of a jail.
    fn child(&self) -> i32 {
        match &self.root {
            TreeRoot::Program | TreeRoot::Bwrap(_) => self.agent.pid,
            TreeRoot::Init(init) => init.pid,
        }
    }

    /// Returns whether our own child has been waited for. We end as soon as an init has.
    fn is_child_gone(&self) -> bool {
        match &self.root {
            TreeRoot::Program | TreeRoot::Bwrap(_) => self.exited,
            TreeRoot::Init(_) => false,
        }
    }

    /// Collects every child that has ended and returns whether any is left.
    fn reap(&mut self) -> Left {
        self.hear_init();
        loop {
            let mut status = 0;
            // The plain call: a wrapper that names signals fails on real-time ones, after the
            // status has been taken.
            // SAFETY: `status` outlives the call.
            let pid =
                unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::WUNTRACED) };
            if pid < 0 {
                return match Errno::last() == Errno::ECHILD {
                    true if self.exited => Left::Nobody,
                    true => Left::Unseen,
                    false => Left::Somebody,
                };
            }
            if pid == 0 {
                return Left::Somebody;
            }
            if let TreeRoot::Init(_) = self.root {
                self.init_ended(pid, status);
            } else if pid != self.agent.pid {
                // An orphan, of which nobody asks how it ended.
            } else if libc::WIFEXITED(status) {
                self.ended(Some(libc::WEXITSTATUS(status)), None);
            } else if libc::WIFSIGNALED(status) {
                self.ended(None, Some(libc::WTERMSIG(status)));
            } else if libc::WIFSTOPPED(status) {
                self.stopped();
            }
        }
    }

    /// Takes in what the init of a jail has reported.
    fn hear_init(&mut self) {
        let TreeRoot::Init(init) = &self.root else { return };
        for report in init.reports() {
            match report {
                JailReport::Exited { code, signal } => self.ended(code, signal),
                JailReport::Stopped => self.stopped(),
                JailReport::Entered | JailReport::Started | JailReport::Failed(_) => {}
            }
        }
    }

    /// Notes the end of an init. If we killed it, the kernel has killed the agent with it; if
    /// somebody else did, nobody saw how the agent ended.
    fn init_ended(&mut self, pid: i32, status: i32) {
        if pid != self.child() || libc::WIFSTOPPED(status) {
            return;
        }
        self.hear_init();
        if matches!(self.phase, Phase::Killing { .. }) {
            self.ended(None, Some(libc::SIGKILL));
        }
    }

    fn ended(&mut self, code: Option<i32>, signal: Option<i32>) {
        if self.exited {
            return;
        }
        self.exited = true;
        send(&self.control, &SupervisorReport::Exited { code, signal });
        let now = Instant::now();
        self.phase = match self.phase {
            Phase::Running => Phase::Draining(now + self.drain),
            Phase::Ending(_) => Phase::Killing { since: now, leaks: false },
            Phase::Draining(_) | Phase::Killing { .. } => self.phase,
        };
    }

    fn stopped(&mut self) {
        if matches!(self.phase, Phase::Killing { .. }) {
            return;
        }
        let resumed = !self.continued;
        self.continued = true;
        if resumed {
            // An init passes it on.
            let _ = kill(Pid::from_raw(self.child()), Signal::SIGCONT);
        }
        send(&self.control, &SupervisorReport::Stopped { resumed });
    }

    fn advance(&mut self, now: Instant) {
        self.phase = match self.phase {
            Phase::Ending(at) if now >= at => Phase::Killing { since: now, leaks: false },
            Phase::Draining(at) if now >= at => Phase::Killing { since: now, leaks: true },
            Phase::Running | Phase::Ending(_) | Phase::Draining(_) | Phase::Killing { .. } => {
                self.phase
            }
        };
    }

    fn kill(&mut self, leaks: bool) {
        if let TreeRoot::Init(init) = &self.root {
            // With the init the kernel kills all its namespace, in which nobody can fork any more.
            if leaks {
                let left = proc::descendants(init.pid).into_iter();
                self.leaked.extend(left.filter(|left| !left.is_zombie()).map(|left| left.id.pid));
            }
            return init.signal(Signal::SIGKILL);
        }
        // The whole group at once and before the slow look at everybody, so that a bomb loses its
        // processors first. It also works where `/proc` cannot be read. Our unreaped child keeps
        // the group's number from being given away.
        self.signal_group(Signal::SIGSTOP);
        let us = own_pid();
        let killed = tree::kill_round(|| proc::descendants(us));
        self.signal_group(Signal::SIGKILL);
        if leaks {
            self.leaked.extend(killed.into_iter().map(|id| id.pid));
        }
    }

    fn signal_group(&self, signal: Signal) {
        if !self.exited {
            let _ = nix::sys::signal::killpg(Pid::from_raw(self.agent.pid), signal);
        }
    }

    fn hear(&mut self, command: SupervisorCommand) {
        let now = Instant::now();
        match (command, self.phase) {
            (SupervisorCommand::Go, _) | (_, Phase::Killing { .. }) => {}
            (SupervisorCommand::Kill, Phase::Draining(_)) => {
                self.phase = Phase::Killing { since: now, leaks: true };
            }
            (SupervisorCommand::Kill, Phase::Running | Phase::Ending(_)) => {
                self.phase = Phase::Killing { since: now, leaks: false };
            }
            (SupervisorCommand::Terminate { .. }, Phase::Draining(_)) => {}
            (SupervisorCommand::Terminate { grace_ms }, Phase::Running | Phase::Ending(_)) => {
                self.terminate();
                let at = now + Duration::from_millis(grace_ms);
                self.phase = match self.phase {
                    Phase::Ending(earlier) => Phase::Ending(earlier.min(at)),
                    Phase::Running | Phase::Draining(_) | Phase::Killing { .. } => {
                        Phase::Ending(at)
                    }
                };
            }
        }
    }

    fn terminate(&mut self) {
        if let TreeRoot::Init(init) = &self.root {
            return init.signal(Signal::SIGTERM);
        }
        match self.inner() {
            // TERM for the outer bubblewrap would kill all at once. The inner process is the init
            // of its namespace, which ignores TERM, so the agent is among those below it.
            Some(inner) => {
                for process in proc::descendants(inner) {
                    let _ = proc::signal(process.id, Signal::SIGTERM);
                }
            }
            None if matches!(self.root, TreeRoot::Program) => {
                self.signal_group(Signal::SIGTERM);
            }
            // Bubblewrap is still setting up: there is no agent yet to be asked.
            None => {
                let _ = kill(Pid::from_raw(self.agent.pid), Signal::SIGTERM);
            }
        }
        // A stopped agent receives TERM only when it is continued.
        let _ = kill(Pid::from_raw(self.agent.pid), Signal::SIGCONT);
    }

    /// Returns the inner process of bubblewrap, once bubblewrap has named it.
    fn inner(&mut self) -> Option<i32> {
        let mut buffer = [0u8; 4096];
        if let TreeRoot::Bwrap(file) = &mut self.root
            && let Ok(count) = file.read(&mut buffer)
        {
            self.status.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        sandbox::bwrap_inner(&self.status)
    }

    fn listen(&mut self) {
        let mut buffer = [0u8; 1024];
        loop {
            match (&self.control).read(&mut buffer) {
                // All handles of the controller are gone: nobody waits for this agent any more.
                Ok(0) => return self.hear(SupervisorCommand::Kill),
                Ok(count) => {
                    for command in self.lines.push(&buffer[..count]) {
                        self.hear(command);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.hear(SupervisorCommand::Kill),
            }
        }
    }

    fn wait(&self, watch: &SupervisorWatch, child: Option<&OwnedFd>) {
        let now = Instant::now();
        let timeout = match self.phase {
            Phase::Running => PollTimeout::NONE,
            Phase::Ending(at) | Phase::Draining(at) => {
                milliseconds(at.saturating_duration_since(now))
            }
            Phase::Killing { .. } => milliseconds(KILL_PAUSE),
        };
        let mut fds = vec![PollFd::new(watch.signals.as_fd(), PollFlags::POLLIN)];
        fds.extend(child.map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)));
        if let TreeRoot::Init(init) = &self.root {
            fds.extend(init.fd().map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)));
        }
        // While killing, a closed socket or a dead controller would make this a busy loop.
        if !matches!(self.phase, Phase::Killing { .. }) {
            fds.push(PollFd::new(self.control.as_fd(), PollFlags::POLLIN));
            fds.push(PollFd::new(watch.controller.as_fd(), PollFlags::POLLIN));
        }
        let _ = poll(&mut fds, timeout);
    }

    fn gone(&self, survivors: u32) {
        let leaked = u32::try_from(self.leaked.len()).unwrap_or(u32::MAX);
        send(&self.control, &SupervisorReport::Gone { leaked, survivors });
    }
}

#[derive(PartialEq, Eq)]
enum Left {
    Somebody,
    Nobody,
    /// Nobody, and the init of the jail was killed before it told how the agent ended.
    Unseen,
}

fn own_pid() -> i32 {
    nix::unistd::getpid().as_raw()
}

/// Returns the duration rounded up, so that a deadline is over when the wait for it ends.
fn milliseconds(duration: Duration) -> PollTimeout {
    PollTimeout::try_from(duration.as_millis() + 1).unwrap_or(PollTimeout::MAX)
}

fn readable(fd: std::os::fd::BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}
