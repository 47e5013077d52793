//! The process of a supervisor, and how it comes to be: as a copy of one that has started already
//! ([`super::supervisor`]), or where that fails by starting the executable.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, IoSlice, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::Supervisor;
use super::wire::{COPY, LAUNCH};
use crate::proc;

/// How long a process may take to copy itself. It takes far less than a thousandth of that.
const COPY_TIME_MAX: Duration = Duration::from_secs(2);

/// After how many failures of a process that copies itself no more is tried.
const FAILURES_MAX: usize = 3;

/// The process of a supervisor, a child of this process. Dropping it lets it go on.
#[derive(Debug)]
pub struct SupervisorProcess {
    /// Its number, until somebody has waited for it.
    pid: Option<i32>,
}

impl SupervisorProcess {
    /// Returns the number of the process, until it has been waited for.
    pub fn id(&self) -> Option<i32> {
        self.pid
    }

    /// Waits for the end of the process. Nothing is lost when the future is dropped.
    pub async fn wait(&mut self) {
        let Some(pid) = self.pid else { return };
        if !has_ended(pid, WaitPidFlag::WNOHANG) {
            if let Err(_no_descriptor_left) = readable_at_end(pid).await {
                let wait = move || has_ended(pid, WaitPidFlag::empty());
                let _ = tokio::task::spawn_blocking(wait).await;
            }
            has_ended(pid, WaitPidFlag::empty());
        }
        self.pid = None;
    }

    /// Kills the process.
    pub fn start_kill(&self) {
        if let Some(pid) = self.pid {
            // Until we wait for it, its number is its own.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }

    /// Kills the process and waits for its end.
    pub async fn kill(&mut self) {
        self.start_kill();
        self.wait().await;
    }
}

impl Drop for SupervisorProcess {
    fn drop(&mut self) {
        // Nobody has its control socket any more, so it ends soon; but until somebody has waited for
        // it, it would stay in the process table.
        if let Some(pid) = self.pid
            && !has_ended(pid, WaitPidFlag::WNOHANG)
        {
            let wait = move || has_ended(pid, WaitPidFlag::empty());
            let _ = std::thread::Builder::new().name("ending".into()).spawn(wait);
        }
    }
}

/// Waits until a child has ended, and leaves it in the process table.
async fn readable_at_end(pid: i32) -> io::Result<()> {
    let pidfd = proc::open_pidfd(pid)?;
    // SAFETY: the descriptor is owned by what watches it, and nobody else has it.
    let watched = unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) };
    watched.map_err(io::Error::from)?.readable().await.map(|mut ready| ready.retain_ready())
}

/// Takes the end of a child out of the process table; returns whether nothing is left to wait for.
fn has_ended(pid: i32, how: WaitPidFlag) -> bool {
    let waited = waitid(Id::Pid(Pid::from_raw(pid)), WaitPidFlag::WEXITED | how);
    !matches!(waited, Ok(WaitStatus::StillAlive))
}

/// The processes of which supervisors are copies, by their command lines.
static COPIED: Mutex<BTreeMap<SupervisorCommandLine, CopySource>> = Mutex::new(BTreeMap::new());

type SupervisorCommandLine = (PathBuf, Vec<OsString>);

/// Returns a new supervisor and our end of its control socket.
pub fn start(supervisor: &Supervisor) -> io::Result<(UnixStream, SupervisorProcess)> {
    let command_line = (supervisor.program.clone(), supervisor.args.clone());
    let mut known = COPIED.lock().unwrap_or_else(PoisonError::into_inner);
    let copied = known.entry(command_line).or_default().copy(supervisor);
    drop(known);
    let (control, pid) = match copied {
        Some(copied) => copied,
        None => {
            let (ours, theirs) = UnixStream::pair()?;
            (ours, execute(supervisor, theirs)?)
        }
    };
    Ok((control, SupervisorProcess { pid: Some(pid) }))
}

/// Returns the process of which the supervisors of this command line are copies.
#[cfg(test)]
pub fn copied_process(supervisor: &Supervisor) -> Option<i32> {
    let known = COPIED.lock().unwrap_or_else(PoisonError::into_inner);
    let source = known.get(&(supervisor.program.clone(), supervisor.args.clone()))?;
    source.process.as_ref().map(|process| process.pid)
}

/// The process of which the supervisors of one executable are copies.
#[derive(Default)]
struct CopySource {
    process: Option<CopyProcess>,
    failures: usize,
}

impl CopySource {
    /// Returns a copy, and our end of its control socket; `None` where it has to be started.
    fn copy(&mut self, supervisor: &Supervisor) -> Option<(UnixStream, i32)> {
        if self.process.is_none() && self.failures < FAILURES_MAX {
            self.process = CopyProcess::start(supervisor).ok();
        }
        let copied = self.process.as_mut()?.copy();
        if copied.is_err() {
            self.failures += 1;
            self.process = None;
        }
        copied.ok()
    }
}

/// A supervisor that copies itself on request.
struct CopyProcess {
    pid: i32,
    line: UnixStream,
}

impl CopyProcess {
    fn start(supervisor: &Supervisor) -> io::Result<CopyProcess> {
        let (line, theirs) = UnixStream::pair()?;
        line.set_read_timeout(Some(COPY_TIME_MAX))?;
        Ok(CopyProcess { pid: execute(supervisor, theirs)?, line })
    }

    fn copy(&mut self) -> io::Result<(UnixStream, i32)> {
        // A program may have stopped it. Until we wait for it, its number is its own.
        kill(Pid::from_raw(self.pid), Signal::SIGCONT)?;
        let (ours, theirs) = UnixStream::pair()?;
        hand_over(&self.line, COPY, &[&theirs.into()])?;
        let mut pid = [0; size_of::<i32>()];
        self.line.read_exact(&mut pid)?;
        Ok((ours, i32::from_ne_bytes(pid)))
    }
}

impl Drop for CopyProcess {
    fn drop(&mut self) {
        // A copy that was made without a word of it ends at once: nobody has its control socket.
        let _ = kill(Pid::from_raw(self.pid), Signal::SIGKILL);
        has_ended(self.pid, WaitPidFlag::empty());
    }
}

/// Starts the executable of a supervisor and returns the number of its process.
fn execute(supervisor: &Supervisor, control: UnixStream) -> io::Result<i32> {
    // No `pre_exec` here: it would cost a full fork of this process instead of a vfork.
    let child = Command::new(&supervisor.program)
        .args(&supervisor.args)
        .arg0("autopilot")
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(control)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    i32::try_from(child.id()).map_err(io::Error::other)
}

/// Sends the launch order and the three standard descriptors to a supervisor.
pub fn hand_over_launch(control: &UnixStream, fds: [&OwnedFd; 4]) -> io::Result<()> {
    hand_over(control, LAUNCH, &fds)
}

fn hand_over(control: &UnixStream, message: u8, fds: &[&OwnedFd]) -> io::Result<()> {
    let raw: Vec<i32> = fds.iter().map(|fd| fd.as_raw_fd()).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let flags = MsgFlags::MSG_NOSIGNAL;
    sendmsg::<UnixAddr>(control.as_raw_fd(), &[IoSlice::new(&[message])], &rights, flags, None)?;
    Ok(())
}
