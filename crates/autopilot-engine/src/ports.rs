//! TCP ports leased to running attempts, whose programs get them as `AUTOPILOT_PORT_0` and so on.

use crate::environment::Variables;
use autopilot_core::id::AttemptId;
use autopilot_host::port::{self, PortError};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The ports leased to attempts.
#[derive(Clone, Debug, Default)]
pub struct Ports {
    leases: Arc<Mutex<BTreeMap<AttemptId, port::PortLease>>>,
}

/// Returns the ports of an attempt when it is dropped.
#[derive(Debug)]
pub struct Held {
    ports: Ports,
    id: AttemptId,
}

impl Ports {
    /// Leases `count` ports to an attempt; `None` when it needs none.
    pub fn lease(&self, id: AttemptId, count: u32) -> Result<Option<Held>, PortError> {
        if count == 0 {
            return Ok(None);
        }
        let lease = port::lease(u16::try_from(count).unwrap_or(u16::MAX))?;
        self.leases.lock().unwrap_or_else(PoisonError::into_inner).insert(id, lease);
        Ok(Some(Held { ports: self.clone(), id }))
    }

    /// Adds the ports of an attempt to its variables.
    pub fn name(&self, id: AttemptId, variables: &mut Variables) {
        let leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        for (n, port) in leases.get(&id).into_iter().flat_map(|lease| &lease.ports).enumerate() {
            variables.insert(format!("AUTOPILOT_PORT_{n}"), port.to_string());
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.ports.leases.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(seq: u64) -> AttemptId {
        AttemptId { seq, place: 0 }
    }

    fn named(ports: &Ports, attempt: AttemptId) -> Vec<(String, String)> {
        let mut variables = Variables::new();
        ports.name(attempt, &mut variables);
        variables.into_iter().collect()
    }

    #[test]
    fn a_live_attempt_has_its_own_ports_until_it_ends() {
        let ports = Ports::default();
        let one = ports.lease(id(1), 2).unwrap();
        let _two = ports.lease(id(2), 2).unwrap();
        let (first, second) = (named(&ports, id(1)), named(&ports, id(2)));
        let names: Vec<&str> = first.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["AUTOPILOT_PORT_0", "AUTOPILOT_PORT_1"]);
        assert!(first.iter().all(|(_, port)| second.iter().all(|(_, other)| other != port)));
        drop(one);
        assert_eq!(named(&ports, id(1)), []);
    }

    #[test]
    fn nothing_is_leased_where_nothing_is_asked_for() {
        let ports = Ports::default();
        assert!(ports.lease(id(1), 0).unwrap().is_none());
        assert_eq!(named(&ports, id(1)), []);
        assert!(ports.lease(id(1), 65).is_err());
    }
}
