//! Attempts on the network.

use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use nix::errno::Errno;

use crate::call::{ErrnoResult, past, sys};
use crate::scene::Scene;
use crate::table::{
    Alone, AttemptRow, Expected, Layer, POWERLESS, Promise, TrialNeed, all, both, refused, row,
};

pub const ROWS: &[AttemptRow] = &[
    row(
        "network-agent",
        "reach the network, and servers of this machine, as an agent",
        reach,
        all(Expected::Through),
    )
    .promise(Promise::No),
    row(
        "network-gate",
        "reach it as a gate with `sandbox.network: off`",
        reach,
        both(refused(Layer::NetworkNamespace, Errno::ECONNREFUSED), Expected::Through),
    )
    .promise(Promise::WithNamespaces)
    .needs(TrialNeed::NetworkOff),
    row("network-raw", "read and forge packets (`SOCK_RAW`)", raw, POWERLESS).inside().of_root(),
    row("network-packet", "listen to an interface (`AF_PACKET`)", packet, POWERLESS)
        .inside()
        .of_root(),
    row("network-interface", "change an interface (`SIOCSIFFLAGS`)", interface, POWERLESS)
        .inside()
        .of_root(),
    row("network-route", "change the routes (netlink)", route, POWERLESS).inside().of_root(),
    row(
        "port-low",
        "serve on a port below 1024",
        low_port,
        all(refused(Layer::NoCapability, Errno::EACCES)),
    )
    .inside()
    .alone(Alone::Works, Alone::Varies),
];

fn reach(scene: &Scene) -> Result<(), Errno> {
    TcpStream::connect(("127.0.0.1", scene.port)).plain().map(drop)
}

fn raw(_: &Scene) -> Result<(), Errno> {
    sys!(libc::SYS_socket, libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP).map(drop)
}

fn packet(_: &Scene) -> Result<(), Errno> {
    sys!(libc::SYS_socket, libc::AF_PACKET, libc::SOCK_DGRAM, 0).map(drop)
}

/// Gives the loopback interface the flags that it has.
fn interface(_: &Scene) -> Result<(), Errno> {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").plain()?;
    // SAFETY: all zeros is a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, letter) in request.ifr_name.iter_mut().zip(b"lo") {
        *place = letter.cast_signed();
    }
    sys!(libc::SYS_ioctl, socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request)?;
    sys!(libc::SYS_ioctl, socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request).map(drop)
}

/// Asks for a route to nowhere, which the kernel finds faulty after it has asked for the privilege.
fn route(_: &Scene) -> Result<(), Errno> {
    const NEW_ROUTE: u16 = 24;
    const REQUEST_AND_ANSWER: u16 = 1 | 4;
    const BYTES: usize = 16 + 12;
    let socket = sys!(libc::SYS_socket, libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
    let mut message = Vec::with_capacity(BYTES);
    message.extend(u32::try_from(BYTES).unwrap().to_ne_bytes());
    message.extend(NEW_ROUTE.to_ne_bytes());
    message.extend(REQUEST_AND_ANSWER.to_ne_bytes());
    message.resize(BYTES, 0);
    let nobody = std::ptr::null::<u8>();
    sys!(libc::SYS_sendto, socket, message.as_ptr(), message.len(), 0, nobody, 0)?;
    let mut answer = [0u8; 256];
    let sender = std::ptr::null_mut::<u8>();
    sys!(libc::SYS_recvfrom, socket, answer.as_mut_ptr(), answer.len(), 0, sender, sender)?;
    let number = i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]);
    let result = if number == 0 { Ok(()) } else { Err(Errno::from_raw(-number)) };
    past(result, &[Errno::EINVAL, Errno::EAFNOSUPPORT, Errno::EOPNOTSUPP])
}

/// A port that no service has.
fn low_port(_: &Scene) -> Result<(), Errno> {
    TcpListener::bind("127.0.0.1:4").plain().map(drop)
}
