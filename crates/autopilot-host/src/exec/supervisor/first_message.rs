//! The first message of the controller to a supervisor, which says what the process is for.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, UnixAddr, recvmsg};

use crate::exec::wire::COPY;

/// The first word of the controller to a process.
pub(super) enum FirstMessage {
    /// Supervise the program of this order, with its three standard descriptors.
    Launch([OwnedFd; 4]),
    /// Make a copy of yourself, which gets this control socket.
    Copy(OwnedFd),
    /// The controller is gone.
    Nothing,
}

/// Waits for the first message of the controller on this control socket.
pub(super) fn receive(control: &UnixStream) -> io::Result<FirstMessage> {
    let mut byte = [0u8; 1];
    let mut iov = [IoSliceMut::new(&mut byte)];
    let mut space = cmsg_space!([i32; 4]);
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<UnixAddr>(control.as_raw_fd(), &mut iov, Some(&mut space), flags)?;
    if message.bytes == 0 {
        return Ok(FirstMessage::Nothing);
    }
    let mut fds = Vec::new();
    for part in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(received) = part {
            // SAFETY: the kernel has just installed these descriptors for us alone.
            fds.extend(received.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    let unknown = |_| io::Error::other("the message has other descriptors than it should");
    match byte {
        [COPY] => fds
            .try_into()
            .map_err(unknown)
            .map(|[control]: [OwnedFd; 1]| FirstMessage::Copy(control)),
        _ => fds.try_into().map_err(unknown).map(FirstMessage::Launch),
    }
}
