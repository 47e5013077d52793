//! TCP ports for work that runs side by side: taken in blocks that no other process of this kind
//! has, outside the range from which the system gives ports to outgoing connections.
//!
//! A block is claimed by listening on an abstract socket named after it. The claim is seen by every
//! process of the machine, needs no file, and ends with the process however that ends.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::ops::RangeInclusive;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};

/// The most ports one attempt can have; also the size of a block.
pub const PORTS_MAX: u16 = 64;
/// The lowest port of a block; below are the ports that people's own servers like to use.
const LOWEST: u16 = 10_000;
/// The file that names the system's range for outgoing connections.
const EPHEMERAL: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// The usual range, where the system does not say.
const EPHEMERAL_USUAL: RangeInclusive<u16> = 32_768..=60_999;

/// The reason why ports could not be leased.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// Every block is claimed by another process or has too many ports in use.
    #[error("cannot lease {wanted} ports: no block in {first}–{last} has that many free")]
    NoneFree { wanted: u16, first: u16, last: u16 },
    /// More ports are wanted than a block has.
    #[error("cannot lease {wanted} ports: the limit is {PORTS_MAX}")]
    TooMany { wanted: u16 },
    /// The system's own range leaves no block free.
    #[error(
        "cannot lease ports: the system's own range {first}–{last} leaves no room beside it (see \
         {EPHEMERAL})"
    )]
    NoRoom { first: u16, last: u16 },
    /// The socket that claims a block could not be made.
    #[error("cannot claim the block of ports at {block}")]
    Claim { block: u16, source: io::Error },
}

/// Ports that are leased to nobody else until this is dropped.
#[derive(Debug)]
pub struct PortLease {
    /// The ports.
    pub ports: Vec<u16>,
    _claim: UnixListener,
}

/// Leases ports that nothing listens on.
pub fn lease(wanted: u16) -> Result<PortLease, PortError> {
    if wanted > PORTS_MAX {
        return Err(PortError::TooMany { wanted });
    }
    lease_in(&room_beside(&ephemeral())?, wanted)
}

fn lease_in(room: &RangeInclusive<u16>, wanted: u16) -> Result<PortLease, PortError> {
    let (first, last) = (*room.start(), *room.end());
    let mut start = first;
    while last - start >= PORTS_MAX - 1 {
        if let Some(claim) = claim(start)? {
            let free = (start..start + PORTS_MAX).filter(|port| is_free(*port));
            let ports: Vec<u16> = free.take(usize::from(wanted)).collect();
            if ports.len() == usize::from(wanted) {
                return Ok(PortLease { ports, _claim: claim });
            }
        }
        let Some(next) = start.checked_add(PORTS_MAX).filter(|next| *next <= last) else { break };
        start = next;
    }
    Err(PortError::NoneFree { wanted, first, last })
}

/// Claims the block; `None` when another process has it.
fn claim(block: u16) -> Result<Option<UnixListener>, PortError> {
    let failed = |source| PortError::Claim { block, source };
    let name = format!("autopilot-ports-{block}");
    let address = UnixAddr::from_abstract_name(name).map_err(failed)?;
    match UnixListener::bind_addr(&address) {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
        Err(source) => Err(failed(source)),
    }
}

/// Returns whether nothing listens on the port at any address. Without IPv6 only IPv4 counts.
fn is_free(port: u16) -> bool {
    let in_use = |address: SocketAddr| {
        TcpListener::bind(address).is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
    };
    let four = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok();
    four && !in_use((Ipv6Addr::UNSPECIFIED, port).into())
}

/// Returns the larger range of ports outside the system's own. It begins at a multiple of the block
/// size, so that blocks of processes with other settings do not overlap.
fn room_beside(ephemeral: &RangeInclusive<u16>) -> Result<RangeInclusive<u16>, PortError> {
    let aligned = |port: u16| port.checked_next_multiple_of(PORTS_MAX);
    let below = (aligned(LOWEST), ephemeral.start().checked_sub(1));
    let above = (ephemeral.end().checked_add(1).and_then(aligned), Some(u16::MAX));
    let rooms = [below, above].into_iter().filter_map(|(first, last)| Some(first?..=last?));
    let size = |room: &RangeInclusive<u16>| room.end().saturating_sub(*room.start());
    rooms
        .max_by_key(size)
        .filter(|room| size(room) >= PORTS_MAX - 1)
        .ok_or(PortError::NoRoom { first: *ephemeral.start(), last: *ephemeral.end() })
}

fn ephemeral() -> RangeInclusive<u16> {
    let read = || {
        let text = fs::read_to_string(EPHEMERAL).ok()?;
        let mut words = text.split_whitespace().map(str::parse::<u16>);
        Some(words.next()?.ok()?..=words.next()?.ok()?)
    };
    read().unwrap_or(EPHEMERAL_USUAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn live_leases_share_no_port_and_all_can_be_bound() {
        let leases: Vec<PortLease> = (0..40).map(|_| lease(3).unwrap()).collect();
        let ports: BTreeSet<u16> = leases.iter().flat_map(|lease| lease.ports.clone()).collect();
        assert_eq!(ports.len(), 120);
        let range = ephemeral();
        for port in ports {
            assert!(!range.contains(&port), "{port}");
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        }
    }

    /// A separate range, so that other tests on this machine do not take the blocks.
    fn quiet_room() -> RangeInclusive<u16> {
        let room = room_beside(&ephemeral()).unwrap();
        let blocks = (room.end() - room.start()) / PORTS_MAX;
        let first = room.start() + (blocks - 2) * PORTS_MAX;
        first..=first + 2 * PORTS_MAX - 1
    }

    #[test]
    fn a_port_in_use_is_left_out_and_a_lease_ends_when_it_is_dropped() {
        let room = quiet_room();
        let first = lease_in(&room, 2).unwrap();
        let taken = first.ports[0];
        drop(first);
        let _somebody = TcpListener::bind((Ipv4Addr::LOCALHOST, taken)).unwrap();
        let second = lease_in(&room, 2).unwrap();
        assert!(!second.ports.contains(&taken), "{:?}", second.ports);
        let _rest = lease_in(&room, 1).unwrap();
        let none = lease_in(&room, 1).unwrap_err();
        assert!(matches!(none, PortError::NoneFree { wanted: 1, .. }), "{none}");
        drop(second);
        lease_in(&room, 1).unwrap();
    }

    #[test]
    fn room_is_beside_what_the_system_uses_and_in_whole_blocks() {
        assert_eq!(room_beside(&(32_768..=60_999)).unwrap(), 10_048..=32_767);
        assert_eq!(room_beside(&(1_024..=20_000)).unwrap(), 20_032..=u16::MAX);
        let none = room_beside(&(1_024..=u16::MAX)).unwrap_err();
        assert!(none.to_string().contains("1024–65535"), "{none}");
        assert!(matches!(lease(65), Err(PortError::TooMany { wanted: 65 })));
    }
}
