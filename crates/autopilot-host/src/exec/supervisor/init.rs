//! The init of a jail: process 1 of its namespaces, and the parent of the program.
//!
//! It is a copy of the supervisor and never becomes another program. It builds the jail, starts the
//! program, collects every orphan, passes TERM and CONT on, and reports how the program ended. It
//! ends when nobody is left; when it is killed, the kernel kills all the others with it.

use std::cell::Cell;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, recvmsg, sendmsg,
    setsockopt, socketpair, sockopt,
};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::entry::{self, Confinement, EntryParent, ProgramEntry};
use super::hold::ProgramHold;
use crate::exec::wire::{LaunchFailure, LaunchOrder, LaunchStage, OsText};
use crate::jail::{self, JailNetwork, JailPlan};
use crate::proc::{self, ProcessIdentity};

/// The longest message on the socket.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// The supervisor's word to a program that waits to be known.
const GO_ON: &[u8] = b"g";

/// The supervisor's side of an init.
pub(super) struct JailInit {
    /// The number of the init, outside of its namespaces.
    pub pid: i32,
    socket: OwnedFd,
    is_silent: Cell<bool>,
}

/// A report of an init to its supervisor.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JailReport {
    /// The process that sends this is about to become the program.
    Entered,
    /// The program runs.
    Started,
    /// The jail could not be built or the program not be started.
    Failed(LaunchFailure),
    /// The program was stopped by a signal.
    Stopped,
    /// The program has ended.
    Exited { code: Option<i32>, signal: Option<i32> },
}

/// Starts an init and waits until it has started the program. Returns the program's process as this
/// process sees it.
pub(super) fn start(
    order: &LaunchOrder,
    plan: &JailPlan,
    stdio: [OwnedFd; 3],
    hold: Option<&ProgramHold>,
) -> Result<(ProcessIdentity, JailInit), LaunchFailure> {
    let failed = |errno: Errno| LaunchFailure::at(LaunchStage::Sandbox, errno);
    let (ours, theirs) =
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
            .map_err(failed)?;
    setsockopt(&ours, sockopt::PassCred, &true).map_err(failed)?;
    let ids = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    let mut flags =
        libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC;
    if plan.network == JailNetwork::Off {
        flags |= libc::CLONE_NEWNET;
    }
    // A fork into new namespaces. The library's `fork` can't do that in one step, and a second
    // process between us and the init would have to die at the right moment.
    // SAFETY: this process has a single thread and its copy gets a copy of the stack.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags | libc::SIGCHLD, 0, 0, 0, 0) };
    if pid < 0 {
        // "No space left" means here that there may be no more namespaces; it says nothing of disks.
        let errno = Some(Errno::last()).filter(|errno| *errno != Errno::ENOSPC);
        let message = format!("the kernel refused the jail's namespaces: {}", Errno::last().desc());
        let errno = errno.map(|errno| errno as i32);
        return Err(LaunchFailure { stage: LaunchStage::Sandbox, message, errno });
    }
    if pid == 0 {
        drop(ours);
        be_init(order, plan, stdio, &theirs, ids);
    }
    drop((theirs, stdio));
    let pid = i32::try_from(pid).unwrap_or(i32::MAX);
    let init = JailInit { pid, socket: ours, is_silent: Cell::new(false) };
    let agent = init.await_start(hold)?;
    Ok((agent, init))
}

impl JailInit {
    fn await_start(&self, hold: Option<&ProgramHold>) -> Result<ProcessIdentity, LaunchFailure> {
        let mut agent = None;
        loop {
            match (self.receive(MsgFlags::empty()), agent) {
                (Ok(Some((JailReport::Entered, pid))), _) => {
                    // It waits for our word, so it is there to be looked at.
                    agent = proc::read(pid).map(|process| process.id);
                    self.wait_for(hold).map_err(|failure| self.end(failure))?;
                    send(&self.socket, GO_ON);
                }
                (Ok(Some((JailReport::Started, _))), Some(agent)) => return Ok(agent),
                (Ok(Some((JailReport::Failed(failure), _))), _) => return Err(self.end(failure)),
                (Ok(Some((JailReport::Stopped | JailReport::Exited { .. }, _))), _) => {}
                (Ok(Some((JailReport::Started, _)) | None) | Err(_), _) => {
                    let lost = io::Error::other("its init exited before the program was started");
                    return Err(self.end(LaunchFailure::at(LaunchStage::Supervisor, lost)));
                }
            }
        }
    }

    /// Waits until the controller has registered the init, with which everything in the jail ends.
    fn wait_for(&self, hold: Option<&ProgramHold>) -> Result<(), LaunchFailure> {
        let Some(hold) = hold else { return Ok(()) };
        let lost = || io::Error::other("its init exited before the program was started");
        let init = proc::read(self.pid).map(|process| process.id).ok_or_else(lost);
        let held = init.and_then(|init| hold.wait(init));
        held.map_err(|error| LaunchFailure::at(LaunchStage::Supervisor, error))
    }

    /// Returns what the init has reported since, oldest first.
    pub fn reports(&self) -> Vec<JailReport> {
        let next = || self.receive(MsgFlags::MSG_DONTWAIT).ok().flatten();
        std::iter::from_fn(next).map(|(report, _)| report).collect()
    }

    /// Waits for the end of the program and of the init, and returns whether the program exited
    /// with code 0.
    pub fn await_success(&self) -> bool {
        let mut succeeded = false;
        while let Ok(Some((report, _))) = self.receive(MsgFlags::empty()) {
            if let JailReport::Exited { code, .. } = report {
                succeeded = code == Some(0);
            }
        }
        self.kill();
        succeeded
    }

    /// Passes a signal to the init, which passes it on.
    pub fn signal(&self, signal: Signal) {
        // Our unreaped child keeps its number.
        let _ = kill(Pid::from_raw(self.pid), signal);
    }

    /// Returns the descriptor that becomes readable with the next report; none when the init has
    /// closed its end, which it does a while before it is gone.
    pub fn fd(&self) -> Option<&OwnedFd> {
        (!self.is_silent.get()).then_some(&self.socket)
    }

    fn end(&self, failure: LaunchFailure) -> LaunchFailure {
        self.kill();
        failure
    }

    /// Ends the init and all below it, and waits for it.
    fn kill(&self) {
        self.signal(Signal::SIGKILL);
        // SAFETY: the status may be null by contract of the call.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }

    /// Returns the next report and the number of its sender; `None` when the init is gone.
    fn receive(&self, flags: MsgFlags) -> io::Result<Option<(JailReport, i32)>> {
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        let mut iov = [IoSliceMut::new(&mut buffer)];
        let mut space = cmsg_space!(nix::sys::socket::UnixCredentials);
        let fd = self.socket.as_raw_fd();
        let (count, sender) = loop {
            let message = match recvmsg::<UnixAddr>(fd, &mut iov, Some(&mut space), flags) {
                Err(Errno::EINTR) => continue,
                message => message?,
            };
            let mut sender = None;
            for part in message.cmsgs()? {
                if let ControlMessageOwned::ScmCredentials(found) = part {
                    sender = Some(found.pid());
                }
            }
            break (message.bytes, sender);
        };
        if count == 0 {
            self.is_silent.set(true);
            return Ok(None);
        }
        let report = serde_json::from_slice(&buffer[..count])?;
        Ok(Some((report, sender.unwrap_or(0))))
    }
}

/// Tells the supervisor which process becomes the program, and waits until it has looked.
pub(super) fn introduce(socket: &OwnedFd) -> io::Result<()> {
    tell(socket, &JailReport::Entered);
    let mut word = [0; 1];
    loop {
        match nix::unistd::read(socket, &mut word) {
            Err(Errno::EINTR) => {}
            Ok(count) if count == GO_ON.len() => return Ok(()),
            Ok(_) => return Err(io::Error::other("the supervisor has exited")),
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn tell(socket: &OwnedFd, report: &JailReport) {
    send(socket, &serde_json::to_vec(report).unwrap_or_default());
}

fn send(socket: &OwnedFd, bytes: &[u8]) {
    // One whose other side is gone is about to end as well.
    let flags = MsgFlags::MSG_NOSIGNAL;
    let _ = sendmsg::<UnixAddr>(socket.as_raw_fd(), &[IoSlice::new(bytes)], &[], flags, None);
}

/// The whole life of an init.
fn be_init(
    order: &LaunchOrder,
    plan: &JailPlan,
    stdio: [OwnedFd; 3],
    socket: &OwnedFd,
    ids: (u32, u32),
) -> ! {
    let life = std::panic::AssertUnwindSafe(|| match begin(order, plan, stdio, socket, ids) {
        Ok((program, signals)) => {
            tell(socket, &JailReport::Started);
            attend(program, socket, &signals);
        }
        Err(failure) => tell(socket, &JailReport::Failed(failure)),
    });
    // A panic must not unwind into the supervisor's code, of which this process is a copy.
    let _ = std::panic::catch_unwind(life);
    // SAFETY: ends this process without running what the supervisor registered for its own end.
    unsafe { libc::_exit(0) }
}

fn begin(
    order: &LaunchOrder,
    plan: &JailPlan,
    stdio: [OwnedFd; 3],
    socket: &OwnedFd,
    (user, group): (u32, u32),
) -> Result<(i32, SignalFd), LaunchFailure> {
    let ours = |error: io::Error| LaunchFailure::at(LaunchStage::Supervisor, error);
    let refused = |error: io::Error| LaunchFailure::at(LaunchStage::Sandbox, error);
    stay_with_the_supervisor(socket).map_err(ours)?;
    close_all_but(&[&stdio[0], &stdio[1], &stdio[2], socket]);
    let mask = SigSet::all();
    mask.thread_block().map_err(|errno| ours(errno.into()))?;
    let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(|errno| ours(errno.into()))?;
    map_ids(user, group).map_err(refused)?;
    if plan.network == JailNetwork::Off {
        raise_loopback().map_err(refused)?;
    }
    let mut open = jail::build(plan, &named(order, plan)).map_err(|error| LaunchFailure {
        stage: LaunchStage::Sandbox,
        errno: error.source.raw_os_error(),
        message: crate::cause::chain(&error),
    })?;
    // The process table is sealed for root.
    open.retain(|path| user != 0 || path != std::path::Path::new("/proc"));
    let confinement = Some(Confinement::new(&open, true)?);
    let (waits, powerless) = io::pipe().map_err(ours)?;
    let parent = EntryParent::Init { socket: socket.try_clone().map_err(ours)?, powerless: waits };
    let limits = order.limits.clone();
    let entry = ProgramEntry { parent, hold: None, kept: None, limits, confinement };
    // It needs no privilege to wait, and nobody may look into it.
    let give_up = || {
        jail::drop_all()?;
        Ok(prctl::set_dumpable(false)?)
    };
    let program = entry::spawn_below_init(order, stdio, entry, powerless, give_up)?;
    Ok((program, signals))
}

/// Makes this process die with its supervisor.
fn stay_with_the_supervisor(socket: &OwnedFd) -> io::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    if is_hung_up(socket, PollTimeout::ZERO) {
        return Err(io::Error::other("the supervisor has exited"));
    }
    nix::unistd::setsid()?;
    Ok(())
}

/// Closes what the supervisor has open: its line to the controller above all.
fn close_all_but(kept: &[&OwnedFd]) {
    let mut kept: Vec<u32> = kept.iter().map(|fd| fd.as_raw_fd().cast_unsigned()).collect();
    kept.sort_unstable();
    let mut first = 3;
    for last in kept.into_iter().chain([u32::MAX]) {
        if last > first {
            // SAFETY: none of these descriptors is used again in this process.
            unsafe { libc::close_range(first, last - 1, 0) };
        }
        first = last.saturating_add(1).max(first);
    }
}

/// Maps the user and the group to themselves, and nobody else.
fn map_ids(user: u32, group: u32) -> io::Result<()> {
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Raises the loopback interface of a new network namespace, in which it is down.
fn raise_loopback() -> io::Result<()> {
    // Any socket will do to speak to the kernel about an interface.
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: all zeros is a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, letter) in request.ifr_name.iter_mut().zip(b"lo") {
        *place = libc::c_char::try_from(*letter).unwrap_or_default();
    }
    request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP).unwrap_or(1);
    // SAFETY: the request outlives the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns every path that the program needs to find.
fn named(order: &LaunchOrder, plan: &JailPlan) -> Vec<PathBuf> {
    let variable = |name: &str| {
        let found = order.env.iter().find(|(key, _)| key.os() == name);
        found.map(|(_, value)| OsText::os(value).to_owned()).unwrap_or_default()
    };
    let program = order.cwd.join(order.program.os());
    let places = plan.mounts.iter().map(|mount| mount.at().clone());
    let given = plan.write.iter().chain(&plan.show).chain(&plan.sockets).cloned();
    let of_environment = std::env::split_paths(&variable("PATH"))
        .map(|dir| order.cwd.join(dir))
        .chain([PathBuf::from(variable("HOME"))])
        .collect::<Vec<_>>();
    jail::both_ways(given.chain(places).chain([order.cwd.clone(), program]).chain(of_environment))
}

/// Waits for the program and for every orphan, until nobody is left or the supervisor is gone.
fn attend(program: i32, socket: &OwnedFd, signals: &SignalFd) {
    let mut runs = true;
    loop {
        loop {
            let mut status = 0;
            // SAFETY: `status` outlives the call.
            let pid =
                unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::WUNTRACED) };
            if pid < 0 && Errno::last() == Errno::ECHILD {
                return;
            }
            if pid <= 0 {
                break;
            }
            if pid != program {
                continue;
            }
            if libc::WIFSTOPPED(status) {
                tell(socket, &JailReport::Stopped);
            } else if libc::WIFEXITED(status) {
                runs = false;
                let code = Some(libc::WEXITSTATUS(status));
                tell(socket, &JailReport::Exited { code, signal: None });
            } else if libc::WIFSIGNALED(status) {
                runs = false;
                let signal = Some(libc::WTERMSIG(status));
                tell(socket, &JailReport::Exited { code: None, signal });
            }
        }
        let mut fds = [
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(socket.as_fd(), PollFlags::empty()),
        ];
        let _ = poll(&mut fds, PollTimeout::NONE);
        while let Ok(Some(signal)) = signals.read_signal() {
            // Until it is waited for, the program keeps its number and that of its group.
            if runs {
                pass_on(Pid::from_raw(program), i32::try_from(signal.ssi_signo).unwrap_or(0));
            }
        }
        if is_hung_up(socket, PollTimeout::ZERO) {
            return;
        }
    }
}

fn pass_on(program: Pid, signal: i32) {
    if signal == libc::SIGTERM {
        let _ = killpg(program, Signal::SIGTERM);
    }
    // A stopped program receives TERM only when it is continued.
    if signal == libc::SIGTERM || signal == libc::SIGCONT {
        let _ = kill(program, Signal::SIGCONT);
    }
}

fn is_hung_up(socket: &OwnedFd, timeout: PollTimeout) -> bool {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::empty())];
    let _ = poll(&mut fds, timeout);
    fds[0].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP))
}
