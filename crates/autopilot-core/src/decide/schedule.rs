//! Starting what is ready, as far as workers, money and a halt allow: the last act of a decision.

use super::Draft;
use crate::event::{Event, HaltWhy};
use crate::id::TaskId;
use crate::pipeline::Work;

impl Draft<'_> {
    pub(super) fn schedule(&mut self) {
        if self.state.run.halt.is_some() || self.state.end().is_some() {
            return;
        }
        let ready: Vec<TaskId> = self.state.ready().collect();
        for task in ready {
            let Some(stage) = self.state.task(task).stage() else { continue };
            let has_room = match stage.work {
                Work::Slot => self.state.slots_live() < self.state.run.limits.workers_max,
                Work::Serial => self.state.serial_live() == 0,
                Work::Children(..) | Work::Decide => false,
            };
            if !has_room {
                continue;
            }
            if stage.work == Work::Slot {
                if let Some(text) = self.money_gone(task) {
                    return self.halt(HaltWhy::Money { text }, true);
                }
                if self.is_time_gone() {
                    return self.halt(HaltWhy::Wall, true);
                }
            }
            self.emit(Event::AttemptStarted { task, step: stage.step });
        }
    }

    pub(super) fn is_time_gone(&self) -> bool {
        let run = &self.state.run;
        run.limits.wall_max_ms.is_some_and(|wall_max_ms| run.active_ms >= wall_max_ms)
    }

    /// The money limit that is used up, in words, if one is.
    pub(super) fn money_gone(&self, task: TaskId) -> Option<String> {
        let limits = &self.state.run.limits;
        let task = self.state.task(task);
        if let Some(max) = limits.usd_max
            && self.state.run.spent.usd >= max
        {
            let spent = self.state.run.spent.usd;
            return Some(format!("the run has spent {spent} of its limit of {max}"));
        }
        if let Some(max) = limits.usd_per_task_max
            && task.spent.bill.usd >= max
        {
            let spent = task.spent.bill.usd;
            return Some(format!("task {} has spent {spent} of its limit of {max}", task.name()));
        }
        None
    }
}
