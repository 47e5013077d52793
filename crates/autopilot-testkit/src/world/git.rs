//! The simulated repository: a run branch as a list of merges, and the remote it is pushed to.

use autopilot_core::id::{AttemptId, TaskId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    pub task: TaskId,
    /// The trailer of the commit.
    pub attempt: AttemptId,
    pub tree: String,
}

#[derive(Debug, Default)]
pub struct Git {
    pub merges: Vec<Merge>,
    /// The number of merges each push brought to the remote, in order.
    pub pushes: Vec<usize>,
}

impl Git {
    /// Looks for the trace of this attempt, or of an earlier one that merged the very same work and
    /// could not say so any more, and does only what is missing.
    pub fn merge(&mut self, task: TaskId, attempt: AttemptId, tree: &str) {
        let is_done =
            |merge: &Merge| merge.attempt == attempt || merge.task == task && merge.tree == tree;
        if self.merges.iter().any(is_done) {
            return;
        }
        self.merges.push(Merge { task, attempt, tree: tree.to_owned() });
    }

    /// Compares the remote with the branch first.
    pub fn push(&mut self) {
        if self.pushes.last() != Some(&self.merges.len()) {
            self.pushes.push(self.merges.len());
        }
    }
}
