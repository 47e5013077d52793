//! The number of tasks in each state, the tasks that may start, and those that wait for others.
//!
//! A record updates only the tasks it names, so its cost does not grow with the number of tasks.
//! [`Tally::of`] counts everything anew; a test compares the two.

use autopilot_core::event::{Event, Record};
use autopilot_core::id::TaskId;
use autopilot_core::state::{State, Status};
use autopilot_view::{leaves, task_word};
use std::collections::BTreeSet;

/// The number of tasks in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub done: usize,
    pub running: usize,
    pub pending: usize,
    pub blocked: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl Counts {
    /// The number of all tasks.
    pub fn all(self) -> usize {
        self.done + self.running + self.pending + self.blocked + self.failed + self.skipped
    }

    fn of_word(&mut self, word: &str) -> &mut usize {
        match word {
            "DONE" => &mut self.done,
            "RUNNING" => &mut self.running,
            "BLOCKED" => &mut self.blocked,
            "FAILED" => &mut self.failed,
            "SKIPPED" => &mut self.skipped,
            _ => &mut self.pending,
        }
    }
}

/// The tasks of a run, counted and sorted by state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub counts: Counts,
    /// Tasks without sub-tasks, in the order they were added.
    pub leaves: Vec<TaskId>,
    /// Tasks that have not started and wait only for a free worker.
    pub ready: BTreeSet<TaskId>,
    /// Tasks that have not started because a task they depend on is not done.
    pub waiting: BTreeSet<TaskId>,
    /// The state of each task; empty for a task that is not a leaf.
    words: Vec<&'static str>,
}

impl Tally {
    /// Counts every task of a state.
    pub fn of(state: &State) -> Tally {
        let mut tally = Tally { words: vec![""; state.tasks.len()], ..Tally::default() };
        for task in leaves(state) {
            tally.leaves.push(task.id);
            tally.put(state, task.id);
        }
        tally
    }

    /// Counts the tasks again that a record names; `state` includes the record.
    pub fn record(&mut self, record: &Record, state: &State) {
        let grows = record.events.iter().any(|event| matches!(event, Event::TaskAdded { .. }));
        if grows || self.words.len() != state.tasks.len() {
            *self = Tally::of(state);
            return;
        }
        for task in record.events.iter().filter_map(Event::moved_task) {
            self.refresh(state, task);
            if state.task(task).is_settled() || state.task(task).status == Status::Open {
                for dependant in &state.task(task).dependants {
                    self.refresh(state, *dependant);
                }
            }
        }
    }

    fn refresh(&mut self, state: &State, task: TaskId) {
        let Some(word) = self.words.get_mut(task.index()).filter(|word| !word.is_empty()) else {
            return;
        };
        let was = std::mem::take(word);
        let count = self.counts.of_word(was);
        *count = count.saturating_sub(1);
        self.ready.remove(&task);
        self.waiting.remove(&task);
        self.put(state, task);
    }

    fn put(&mut self, state: &State, id: TaskId) {
        let task = state.task(id);
        let word = task_word(task);
        *self.counts.of_word(word) += 1;
        if let Some(known) = self.words.get_mut(id.index()) {
            *known = word;
        }
        if task.status == Status::Open {
            let set = if task.needs == 0 { &mut self.ready } else { &mut self.waiting };
            set.insert(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::SampleRun;
    use autopilot_core::event::{Failure, Skip, TaskEnd};
    use autopilot_core::step::Step;

    #[test]
    fn what_is_kept_is_what_looking_at_every_task_finds() {
        let tasks: &[(&str, &[&str])] =
            &[("a", &[]), ("b", &["a"]), ("c", &["a", "b"]), ("d", &[]), ("e", &["d"])];
        let mut sample = SampleRun::planned(tasks);
        sample.start(&["a", "d"], Step::Build);
        sample.close("a");
        let (b, d, e) = (sample.id("b"), sample.id("d"), sample.id("e"));
        let why = Failure::Rounds { rounds: 3 };
        sample.ends(d, autopilot_core::event::Outcome::Passed, Default::default());
        sample.happens(vec![
            Event::TaskSettled { task: d, end: TaskEnd::Failed { why } },
            Event::TaskSettled { task: e, end: TaskEnd::Skipped { why: Skip::Blocked { by: d } } },
        ]);
        sample.happens(vec![Event::TaskSettled {
            task: b,
            end: TaskEnd::Skipped { why: Skip::Asked },
        }]);
        sample.happens(vec![Event::TaskReopened { task: d }, Event::TaskReopened { task: e }]);
        let (mut state, mut kept) = (State::default(), Tally::default());
        for record in &sample.records {
            state.apply_record(record);
            kept.record(record, &state);
            assert_eq!(kept, Tally::of(&state), "after record {}", record.seq);
        }
        assert_eq!((kept.counts.done, kept.counts.skipped, kept.counts.pending), (1, 1, 3));
        assert_eq!((kept.ready.len(), kept.waiting.len()), (2, 1));
    }
}
