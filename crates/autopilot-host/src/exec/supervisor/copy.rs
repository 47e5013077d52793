//! A supervisor that supervises nobody: it has started already, and copies itself on request.
//!
//! A copy costs a fraction of a start, which relocates the whole executable first. The copies are
//! children of the controller like every other supervisor. They share nothing that came from a
//! launch, because the order of a launch reaches only the copy it is for.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use super::first_message::{FirstMessage, receive};
use super::{USAGE, run};
use crate::exec::wire::{SupervisorCommand, WireLines};

/// The two of a copied process.
enum Copied {
    /// The one that goes on, with the number of the other.
    Original(i32),
    Copy,
}

/// Copies this process each time that the controller hands over the control socket of a new
/// supervisor, until there is no controller any more.
pub(super) fn serve(mut line: UnixStream, first: OwnedFd) -> io::Result<()> {
    // What is found out about the processor once is found out before there are copies.
    WireLines::default().push::<SupervisorCommand>(b"?\n");
    let mut next = first;
    loop {
        match copy()? {
            Copied::Original(pid) => {
                drop(next);
                line.write_all(&pid.to_ne_bytes())?;
            }
            Copied::Copy => {
                // Nobody may mistake this process for the one that copies itself.
                drop(line);
                // SAFETY: ends the copy without running what was registered before it was made.
                unsafe { libc::_exit(if supervise(next).is_ok() { 0 } else { USAGE }) }
            }
        }
        next = match receive(&line)? {
            FirstMessage::Copy(control) => control,
            FirstMessage::Launch(_) | FirstMessage::Nothing => return Ok(()),
        };
    }
}

fn supervise(control: OwnedFd) -> io::Result<()> {
    // As the controller does for a supervisor that it starts.
    nix::unistd::setpgid(nix::unistd::Pid::from_raw(0), nix::unistd::Pid::from_raw(0))?;
    let control = UnixStream::from(control);
    match receive(&control)? {
        FirstMessage::Launch(fds) => run(control, fds),
        FirstMessage::Copy(_) | FirstMessage::Nothing => {
            Err(io::Error::other("the launch message has no descriptors"))
        }
    }
}

/// Copies this process, which must have a single thread. The copy is a child of our parent.
fn copy() -> io::Result<Copied> {
    let flags = libc::c_long::from(libc::CLONE_PARENT | libc::SIGCHLD);
    // SAFETY: without a stack of its own the copy goes on with a copy of all memory, as after a
    // fork; the single thread leaves no lock behind that somebody else held.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0usize, 0usize, 0usize, 0usize) };
    match i32::try_from(pid).map_err(io::Error::other)? {
        0 => Ok(Copied::Copy),
        pid if pid > 0 => Ok(Copied::Original(pid)),
        _ => Err(io::Error::last_os_error()),
    }
}
