//! Starting the ready tasks, as far as workers, money and a halt allow: the end of every decision.

use super::RecordDraft;
use super::hold::Doors;
use crate::event::{Event, HaltWhy};
use crate::id::TaskId;
use crate::pipeline::Work;
use crate::plan::overlap;
use crate::state::{LaneState, Status, Task};

impl RecordDraft<'_> {
    pub(super) fn schedule(&mut self) {
        if self.state.run.halt.is_some() || self.state.end().is_some() {
            return;
        }
        for task in self.state.ready_aside().collect::<Vec<_>>() {
            let Some(stage) = self.state.task(task).stage().filter(|_| self.is_in_focus(task))
            else {
                continue;
            };
            let may_act = self.state.serial_live() < self.state.run.limits.effects_max
                && matches!(self.state.machine_door(), LaneState::Open { .. });
            if stage.work == Work::Person || may_act {
                self.emit(Event::AttemptStarted { task, step: stage.step, lane: 0 });
            }
        }
        while let Some((task, lane)) = self.next_for_a_worker() {
            if let Some(text) = self.money_gone() {
                return self.halt(HaltWhy::Money { text }, true);
            }
            if self.is_time_gone() {
                return self.halt(HaltWhy::Wall, true);
            }
            let Some(step) = self.state.task(task).step() else { return };
            self.emit(Event::AttemptStarted { task, step, lane });
        }
        self.wait_for_accounts();
    }

    /// The most urgent task that a worker may take now, and the lane for its step.
    fn next_for_a_worker(&self) -> Option<(TaskId, u32)> {
        let busy = self.state.slots_live();
        // Without any work the run would never end, so one task is always let in.
        let is_short = busy > 0 && self.state.run.short.is_some();
        if busy >= self.state.run.limits.workers_max || is_short {
            return None;
        }
        let mut doors = Doors::default();
        self.state.ready().filter(|task| self.is_in_focus(*task)).find_map(|task| {
            let lane = match doors.of(self.state, task)? {
                LaneState::Open { lane } => *lane,
                LaneState::Probed | LaneState::Held { .. } => return None,
            };
            (!self.is_in_the_way(task)).then_some((task, lane))
        })
    }

    /// Whether a task must wait for others: it would write to the paths of a started task, a person
    /// continues one of its children, or one of its dependencies is done again.
    pub(super) fn is_in_the_way(&self, task: TaskId) -> bool {
        let now = self.state.task(task);
        if now.children.iter().any(|child| self.state.task(*child).is_under_way()) {
            return true;
        }
        if self.state.run.focus.is_none() && self.needs_what_is_under_way(task) {
            return true;
        }
        if !self.state.run.limits.overlaps_wait || !now.writes_somewhere() {
            return false;
        }
        // A started task never waits, or two could wait for each other.
        if now.spent.attempts > 0 {
            return false;
        }
        self.state.writing().any(|other| {
            let begun = self.state.task(other);
            // One that waits for what it needs may be waiting for this very task.
            let goes_on = matches!(begun.status, Status::Running { .. })
                || !self.needs_what_is_under_way(other);
            goes_on && overlap(&now.spec.paths, &begun.spec.paths)
        })
    }

    /// Whether a dependency is under way again, because a person continued it after it was done.
    fn needs_what_is_under_way(&self, task: TaskId) -> bool {
        let needs = &self.state.task(task).spec.depends_on;
        let mut needs = needs.iter().filter_map(|name| self.state.named(name));
        needs.any(Task::is_under_way)
    }

    /// Whether the run works on this task: on all, or only on the one that a person continues.
    pub(super) fn is_in_focus(&self, task: TaskId) -> bool {
        self.state.run.focus.is_none_or(|focus| focus == task)
    }

    pub(super) fn is_time_gone(&self) -> bool {
        let run = &self.state.run;
        run.limits.wall_max_ms.is_some_and(|wall_max_ms| run.active_ms >= wall_max_ms)
    }
}
