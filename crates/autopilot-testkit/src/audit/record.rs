//! What holds of a whole record: limits of workers and money, tasks that come, and who is in the way.

use super::books::{Books, Kind, Place};
use super::rule::{Kept, kept};
use super::table;
use autopilot_core::event::{Event, Outcome, Record};
use autopilot_core::id::{AttemptId, TaskId};
use autopilot_core::step::Step;

/// No account rests longer unless its vendor said until when.
const PAUSE_MS: u64 = 15 * 60_000;

impl Books {
    /// What must hold once everything that follows from a decision has been written.
    pub(super) fn whole_record(&self, record: &Record, lasting_before: &[AttemptId]) -> Kept {
        let has = |is: fn(&Event) -> bool| record.events.iter().any(is);
        let slots = self.live_where(table::is_slot);
        if has(|event| matches!(event, Event::Booted { .. })) {
            let old = slots.iter().find(|id| id.seq < record.seq);
            kept(old.is_none(), || format!("I9: {old:?} lives on after a boot"))?;
            let longest = record.at.plus_ms(self.limits.wait_quota_max_ms);
            let endless = self
                .tasks
                .iter()
                .any(|task| matches!(task.place, Place::Waiting(_)) && task.until > longest);
            kept(!endless, || "C17: a wait lasts as long as the clock went back".to_owned())?;
            let longest = longest.max(record.at.plus_ms(PAUSE_MS));
            let mut holds = self.doubts.values().filter_map(|doubt| doubt.held.flatten());
            kept(holds.all(|until| until <= longest), || {
                "C17: a hold lasts as long as the clock went back".to_owned()
            })?;
            let lost = lasting_before.iter().find(|id| !self.live.contains_key(id));
            kept(lost.is_none(), || {
                format!("I2: {lost:?}, an effect or a gate, was dropped by a boot")
            })?;
        }
        if self.halt.as_ref().is_some_and(|halt| halt.now) {
            kept(slots.is_empty(), || "I9: work goes on although all was to end".to_owned())?;
        }
        let begins = |is: fn(Step) -> bool| {
            let mut begun = record.events.iter();
            begun.any(|event| matches!(event, Event::AttemptStarted { step, .. } if is(*step)))
        };
        if begins(table::is_slot) {
            kept(slots.len() as u32 <= self.limits.workers_max, || {
                format!("I10: {} at work, {} allowed", slots.len(), self.limits.workers_max)
            })?;
            kept(!self.is_short || slots.len() == 1, || {
                format!("I10: {} at work in a machine that is short of room", slots.len())
            })?;
        }
        if begins(table::is_serial) {
            let serial = self.live_where(table::is_serial).len();
            kept(serial as u32 <= self.limits.effects_max, || {
                format!("I10: {serial} effects at once")
            })?;
        }
        self.nobody_overspends(record)?;
        self.nobody_is_outside()?;
        self.nobody_idles(slots.len() as u32)
    }

    /// A task that has spent what one may has no worker and waits for none. Who has money left
    /// goes on, whatever others have spent: only a person or a limit of the run ends its work.
    pub(super) fn nobody_overspends(&self, record: &Record) -> Kept {
        for (at, task) in self.tasks.iter().enumerate() {
            let is_work = task.place.step().is_some_and(table::is_slot);
            kept(!is_work || !self.is_overspent(TaskId(at as u32)), || {
                format!("I7: {} goes on without money", task.name)
            })?;
        }
        let is_over = self.halt.as_ref().is_some_and(|halt| halt.now);
        for event in &record.events {
            if let Event::AttemptEnded { task, outcome: Outcome::Revoked, .. } = event {
                let task = &self.tasks[task.index()];
                kept(is_over || task.place.is_settled(), || {
                    format!("I7: the work of {} was ended for nothing", task.name)
                })?;
            }
        }
        Ok(())
    }

    /// The run itself has only the limit of the run.
    pub(super) fn is_overspent(&self, task: TaskId) -> bool {
        let max = self.limits.usd_per_task_max.filter(|_| task != TaskId::ROOT);
        max.is_some_and(|max| self.spent_by(task) >= max.0)
    }

    /// Whoever is at work is so for a task that is at its tasks.
    pub(super) fn nobody_is_outside(&self) -> Kept {
        for task in self.tasks.iter().filter(|task| task.place.is_under_way()) {
            let Some(parent) = task.parent.filter(|_| !task.is_continued) else { continue };
            let above = &self.tasks[parent.index()];
            kept(above.place == Place::At(Step::Tasks), || {
                format!("I9: {} goes on, {} is {:?}", task.name, above.name, above.place)
            })?;
        }
        Ok(())
    }

    /// Tasks come with the start, with a plan that is carried out and with a whole that does not
    /// hold; in the very record, and with nothing else.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "no other event brings tasks or makes them due"
    )]
    pub(super) fn brought(&mut self, record: &Record) -> Kept {
        let mut due: Vec<TaskId> = Vec::new();
        let mut came: Vec<TaskId> = Vec::new();
        for event in &record.events {
            match event {
                Event::RunStarted { .. } => due.push(TaskId::ROOT),
                Event::TaskAdded { parent, .. } => came.extend(parent),
                Event::AttemptEnded { task, step, outcome, .. } => {
                    let kind = self.entry(*task)?.kind;
                    if kind == Kind::Goal && self.iteration_comes(record, *task, *step, outcome)? {
                        due.push(*task);
                    }
                    let is_whole = kind == Kind::Planned;
                    let passes = *step == Step::Schedule && *outcome == Outcome::Passed;
                    let fails = matches!(outcome, Outcome::Failed { .. });
                    if passes {
                        let entry = self.entry(*task)?;
                        kept(!entry.is_divided, || format!("I2: {} is divided twice", entry.name))?;
                        entry.is_divided = true;
                    }
                    let is_mended = match step {
                        Step::Validate | Step::WholeReview | Step::Uat => is_whole,
                        Step::Prove => is_whole || kind == Kind::Given,
                        _ => false,
                    };
                    let is_broken = is_mended && fails;
                    if passes || is_broken {
                        kept(record.events.iter().any(|event| {
                            matches!(event, Event::TaskAdded { parent, .. } if *parent == Some(*task))
                        }), || format!("I6: {step} brought no tasks and counts"))?;
                        due.push(*task);
                    }
                }
                _ => {}
            }
        }
        let stray = came.iter().find(|parent| !due.contains(parent));
        kept(stray.is_none(), || "I2: tasks came that nobody was to bring".to_owned())
    }
}
