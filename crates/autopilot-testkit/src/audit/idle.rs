//! Nobody idles: whatever could go on does.

use super::books::{Books, Entry, Place};
use super::rule::{Kept, kept};
use super::table;
use autopilot_core::flow::Flow;
use autopilot_core::id::TaskId;
use autopilot_core::step::Step;

impl Books {
    /// Whatever could go on does: a run that is neither over nor halted never waits for nothing.
    pub(super) fn nobody_idles(&self, slots: u32) -> Kept {
        if self.halt.is_some() || self.tasks.first().is_none_or(|root| root.place.is_settled()) {
            return Ok(());
        }
        if self.focus.is_some() {
            return self.something_goes_on();
        }
        let serial = self.live_where(table::is_serial).len() as u32;
        let has_worker = slots < self.limits.workers_max && !(self.is_short && slots > 0);
        for (at, task) in self.tasks.iter().enumerate() {
            let Place::At(step) = task.place else { continue };
            let may_go = if table::is_gate(step) {
                true
            } else if table::is_serial(step) {
                serial < self.limits.effects_max && self.machine_is_open()
            } else {
                table::is_slot(step)
                    && has_worker
                    && self.may_be_done(TaskId(at as u32), step)
                    && !self.is_in_the_way(task)
            };
            kept(!may_go, || format!("I9: {} is left idle at {step}", task.name))?;
            if step == Step::Tasks {
                self.children_go_on(task)?;
            }
        }
        self.something_goes_on()
    }

    /// A task that goes on when its time has come, also if nobody says anything.
    pub fn goes_on_by_itself(&self) -> Option<String> {
        let found = self.tasks.iter().find(|task| match task.place {
            Place::Waiting(_) => true,
            Place::At(step) => table::is_serial(step) && !self.machine_is_open(),
            Place::Running(step, _) => !table::is_gate(step),
            Place::Open
            | Place::Closed
            | Place::SkippedByAsk
            | Place::SkippedFor(_)
            | Place::Failed => false,
        });
        found.map(|task| task.name.clone())
    }

    fn children_go_on(&self, task: &Entry) -> Kept {
        let children = || task.children.iter().map(|child| &self.tasks[child.index()]);
        let at_work = children().any(|task| task.place.is_under_way());
        let one_by_one = self.flow == Some(Flow::Queue);
        let openable = children().find(|task| {
            task.place == Place::Open && self.unmet(task).is_none() && !(one_by_one && at_work)
        });
        kept(openable.is_none(), || {
            format!("I9: {} could begin and does not", openable.map_or("", |task| &task.name))
        })?;
        kept(at_work, || format!("I9: nothing is under way in {}", task.name))
    }
}
