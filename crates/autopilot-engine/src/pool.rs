//! Assigns slot directories to attempts. A task gets the slot it had before if that is free, so
//! that its build output is still warm.

use autopilot_core::id::TaskId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Leases slots to attempts.
#[derive(Clone, Debug, Default)]
pub struct Lessor {
    inner: Arc<Mutex<PoolInner>>,
}

#[derive(Debug, Default)]
struct PoolInner {
    taken: BTreeSet<usize>,
    last: BTreeMap<TaskId, usize>,
}

/// A slot number that is reserved until the lease is dropped.
#[derive(Debug)]
pub struct SlotLease {
    pub number: usize,
    lessor: Lessor,
}

impl Lessor {
    /// Leases a slot for a task.
    pub fn lease(&self, task: TaskId) -> SlotLease {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let before = inner.last.get(&task).copied().filter(|n| !inner.taken.contains(n));
        let spoken_for: BTreeSet<usize> = inner.last.values().copied().collect();
        let free = |inner: &PoolInner, avoid: bool| {
            let refused = |n: &usize| inner.taken.contains(n) || (avoid && spoken_for.contains(n));
            (0..).find(|n| !refused(n))
        };
        let lowest = free(&inner, false).unwrap_or(0);
        // Another task's warm slot is only taken when the pool would otherwise have to grow.
        let number = before.unwrap_or_else(|| {
            let unclaimed = free(&inner, true).unwrap_or(lowest);
            if unclaimed <= inner.taken.len() { unclaimed } else { lowest }
        });
        inner.taken.insert(number);
        inner.last.insert(task, number);
        SlotLease { number, lessor: self.clone() }
    }
}

impl Drop for SlotLease {
    fn drop(&mut self) {
        let mut inner = self.lessor.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.taken.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_comes_back_to_its_slot() {
        let lessor = Lessor::default();
        let a = lessor.lease(TaskId(1));
        let b = lessor.lease(TaskId(2));
        assert_eq!((a.number, b.number), (0, 1));
        drop(a);
        drop(b);
        assert_eq!(lessor.lease(TaskId(2)).number, 1);
    }

    #[test]
    fn nobody_shares_a_slot() {
        let lessor = Lessor::default();
        let leases: Vec<SlotLease> = (0..40).map(|task| lessor.lease(TaskId(task))).collect();
        let numbers: BTreeSet<usize> = leases.iter().map(|lease| lease.number).collect();
        assert_eq!(numbers.len(), 40);
    }

    #[test]
    fn the_pool_does_not_grow_while_a_slot_is_free() {
        let lessor = Lessor::default();
        for task in 0..100 {
            assert_eq!(lessor.lease(TaskId(task)).number, 0, "one at a time needs one slot");
        }
    }
}
