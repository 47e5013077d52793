//! Attempts to talk to other programs by their sockets.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;

use crate::call::{ErrnoResult, sys};
use crate::scene::Scene;
use crate::table::{
    Alone, AttemptRow, Expected, FILTERED, Layer, Promise, TrialNeed, UNWRITABLE, all, both,
    refused, row,
};

const SCOPE: [Expected; 4] = all(refused(Layer::LandlockScope, Errno::EPERM));

const fn masked(errno: Errno) -> [Expected; 4] {
    both(refused(Layer::Masked, errno), Expected::Through)
}

pub const ROWS: &[AttemptRow] = &[
    row("socket-abstract", "talk to an abstract socket (D-Bus, X11)", abstract_stream, SCOPE),
    row("socket-abstract-datagram", "send a message to one", abstract_datagram, SCOPE),
    row(
        "socket-run",
        "talk to a service in `/run` (`docker.sock`, D-Bus)",
        in_run,
        masked(Errno::ENOENT),
    )
    .promise(Promise::WithNamespaces),
    row(
        "socket-tmp",
        "talk to a service in `/tmp` (`ssh-agent`, X11)",
        in_tmp,
        masked(Errno::ENOENT),
    )
    .promise(Promise::WithNamespaces),
    row(
        "socket-home",
        "talk to a service in the user's home",
        in_home,
        masked(Errno::ECONNREFUSED),
    )
    .promise(Promise::WithNamespaces),
    row(
        "socket-relative",
        "talk to one there that named its socket by a relative path",
        relative,
        all(Expected::Through),
    )
    .promise(Promise::No),
    row(
        "socket-late",
        "talk to one there that was started later than the attempt",
        late,
        all(Expected::Through),
    )
    .promise(Promise::No)
    .needs(TrialNeed::LateSocket),
    row("socket-bind", "offer a service in the user's directories", bind, UNWRITABLE),
    row(
        "socket-host",
        "talk to the host of a virtual machine (`AF_VSOCK`)",
        virtual_host,
        FILTERED,
    )
    .inside()
    .alone(Alone::Varies, Alone::Varies),
    row(
        "descriptors",
        "find any descriptor but its input and output",
        descriptors,
        all(refused(Layer::NothingInherited, Errno::EBADF)),
    )
    .inside()
    .alone(Alone::Supervised, Alone::Supervised),
    row(
        "inherited",
        "use a descriptor that the controller left open",
        inherited,
        all(refused(Layer::NothingInherited, Errno::EBADF)),
    )
    .alone(Alone::Supervised, Alone::Supervised),
];

fn abstract_stream(scene: &Scene) -> Result<(), Errno> {
    let address = SocketAddr::from_abstract_name(scene.abstract_name()).unwrap();
    UnixStream::connect_addr(&address).plain().map(drop)
}

/// The name of the abstract socket that takes messages.
pub fn datagram_name(scene: &Scene) -> String {
    format!("{}-messages", scene.abstract_name())
}

fn abstract_datagram(scene: &Scene) -> Result<(), Errno> {
    let address = SocketAddr::from_abstract_name(datagram_name(scene)).unwrap();
    let socket = UnixDatagram::unbound().plain()?;
    socket.send_to_addr(b"#", &address).plain().map(drop)
}

fn connect(path: &Path) -> Result<(), Errno> {
    UnixStream::connect(path).plain().map(drop)
}

fn in_run(scene: &Scene) -> Result<(), Errno> {
    connect(&scene.socket_in_run())
}

fn in_tmp(scene: &Scene) -> Result<(), Errno> {
    connect(&scene.socket_in_tmp())
}

fn in_home(scene: &Scene) -> Result<(), Errno> {
    connect(&scene.socket_in_home())
}

fn relative(scene: &Scene) -> Result<(), Errno> {
    connect(&scene.socket_relative())
}

/// Waits for the socket to come.
fn late(scene: &Scene) -> Result<(), Errno> {
    const WAIT_MAX: Duration = Duration::from_secs(5);
    let started = Instant::now();
    loop {
        match connect(&scene.socket_late()) {
            Err(Errno::ENOENT) if started.elapsed() < WAIT_MAX => {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

fn bind(scene: &Scene) -> Result<(), Errno> {
    UnixListener::bind(scene.outside.join("service.sock")).plain().map(drop)
}

fn virtual_host(_: &Scene) -> Result<(), Errno> {
    sys!(libc::SYS_socket, libc::AF_VSOCK, libc::SOCK_STREAM, 0).map(drop)
}

fn descriptors(_: &Scene) -> Result<(), Errno> {
    const OWN: std::ops::RangeInclusive<i32> = 0..=2;
    const LAST: i32 = 4096;
    let is_open = |fd: &i32| sys!(libc::SYS_fcntl, *fd, libc::F_GETFD).is_ok();
    let found = (OWN.end() + 1..LAST).find(is_open);
    found.map(drop).ok_or(Errno::EBADF)
}

fn inherited(scene: &Scene) -> Result<(), Errno> {
    sys!(libc::SYS_write, scene.inherited_fd, b"#".as_ptr(), 1).map(drop)
}
