//! The rules a record must keep, event by event.

use super::account::Before;
use super::books::{BookedGrant, Books, Entry, Kind, Place};
use super::table;
use autopilot_core::event::{
    Bill, Event, Facts, HoldWhy, Outcome, Record, RunSpec, TaskEntry, Verdict,
};
use autopilot_core::flow::{Flow, Pipeline};
use autopilot_core::id::{AttemptId, TaskId, Time};
use autopilot_core::limit::ReviewGate;
use autopilot_core::pipeline::Switch;
use autopilot_core::step::Step;

/// A longer silence is taken for a sleep of the machine.
const SLEEP_MS: u64 = 120_000;

pub(super) type Kept = Result<(), String>;

pub(super) fn kept(holds: bool, what: impl FnOnce() -> String) -> Kept {
    if holds { Ok(()) } else { Err(what()) }
}

impl Books {
    pub fn enter(&mut self, record: &Record) -> Kept {
        // Effects and gates outlive whoever waits for them.
        let lasting_before: Vec<AttemptId> = self.live_where(|step| !table::is_slot(step));
        let is_boot = matches!(record.events.first(), Some(Event::Booted { .. }));
        // While a person is asked or an account waited for nobody works, nor after a stop that ended
        // everything at once.
        let is_idle = self.live_where(|step| !table::is_gate(step)).is_empty();
        let is_ended = self.halt.as_ref().is_some_and(|halt| halt.now);
        let worked = !is_ended && !is_idle && !is_boot;
        let since_ms = record.at.since_ms(self.at).min(SLEEP_MS);
        let before = Before::of(self);
        self.now = record.at;
        for (place, event) in record.events.iter().enumerate() {
            let id = AttemptId { seq: record.seq, place: place as u32 };
            self.note(event, id, record.at)?;
        }
        self.seq = record.seq;
        self.at = record.at;
        self.active_ms += if worked { since_ms } else { 0 };
        self.brought(record)?;
        self.holds_have_causes(record, &before)?;
        self.whole_record(record, &lasting_before)
    }

    pub(super) fn live_where(&self, is: impl Fn(Step) -> bool) -> Vec<AttemptId> {
        self.live.iter().filter(|(_, (_, step))| is(*step)).map(|(id, _)| *id).collect()
    }

    /// It has not begun, and would write where another that has begun writes; or it waits for another.
    pub(super) fn is_in_the_way(&self, task: &Entry) -> bool {
        // Nobody is asked about steps while a person continues one of them.
        let is_asking = |child: &TaskId| self.tasks[child.index()].place.is_under_way();
        let waits = |task: &Entry| {
            let is_needed = |other: &Entry| task.spec.depends_on.contains(&other.name);
            self.tasks.iter().any(|other| is_needed(other) && other.place.is_under_way())
        };
        if task.children.iter().any(is_asking) || self.focus.is_none() && waits(task) {
            return true;
        }
        let is_work = |kind| matches!(kind, Kind::Paired | Kind::Session);
        let writes = |task: &Entry| is_work(task.kind) && !task.spec.paths.is_empty();
        let mut begun = self.tasks.iter().filter(|other| {
            let goes_on = matches!(other.place, Place::Running(..)) || !waits(other);
            other.name != task.name && other.attempts > 0 && other.place.is_under_way() && goes_on
        });
        self.limits.overlaps_wait
            && task.attempts == 0
            && writes(task)
            && begun.any(|other| writes(other) && overlap(&task.spec.paths, &other.spec.paths))
    }

    /// What is begun comes first, then what is called important, then what most others wait for.
    pub(super) fn rank(task: &Entry, step: Step) -> (bool, i64, i64) {
        let is_new = table::is_first(step) || task.kind == Kind::Divided && step == Step::Plan;
        (is_new, -i64::from(task.spec.priority), -i64::from(task.spec.urgency))
    }

    pub(super) fn unmet(&self, task: &Entry) -> Option<TaskId> {
        task.needs.iter().copied().find(|dep| !self.is_met(&self.tasks[dep.index()]))
    }

    pub(super) fn entry(&mut self, task: TaskId) -> Result<&mut Entry, String> {
        self.tasks.get_mut(task.index()).ok_or_else(|| format!("{task} does not exist"))
    }

    pub(super) fn note(&mut self, event: &Event, id: AttemptId, at: Time) -> Kept {
        match event {
            Event::RunStarted { run } => self.begin(run),
            Event::Booted { .. } | Event::TimePassed | Event::SessionOpened { .. } => Ok(()),
            Event::RoomChanged { short } => {
                kept(self.is_short != short.is_some(), || "the room is as it was".to_owned())?;
                self.is_short = short.is_some();
                Ok(())
            }
            Event::TaskAdded { task, parent, pipeline, spec } => {
                self.added(*task, *parent, *pipeline, spec)
            }
            Event::TaskMoved { task, step, round } => self.moved(*task, *step, *round),
            Event::StageSkipped { task, step, .. } => self.stage_skipped(*task, *step),
            Event::AttemptStarted { task, step, lane } => {
                self.started(id, *task, *step)?;
                self.lane_by.insert(id, *lane);
                self.lane_taken(id, *task, *step, *lane)
            }
            Event::AttemptEnded { id, task, step, outcome, facts } => {
                if let Some(grant) = self.grants.get_mut(id) {
                    grant.ended = Some(at);
                }
                self.ended(*id, *task, *step, outcome, facts)
            }
            Event::Billed { id, task, bill, .. } => self.billed(*id, *task, *bill),
            Event::MoneyGiven { id, usd, .. } => {
                let before = self.bills.get(id).copied().unwrap_or_default();
                match usd.0 {
                    0 => self.grants.remove(id),
                    given => {
                        self.grants.insert(*id, BookedGrant { given, before, at, ended: None })
                    }
                };
                Ok(())
            }
            Event::Overruled { task, .. } => {
                self.entry(*task)?.overruled += 1;
                Ok(())
            }
            Event::RoundFailed { task, round, reasons, .. } => {
                self.says_why(*task, reasons)?;
                self.round_failed(*task, *round)
            }
            Event::RailTripped { .. } => Ok(()),
            Event::TaskSettled { task, end } => self.settled(*task, end),
            Event::TaskReopened { task } => self.reopened(*task),
            Event::TaskContinued { task, .. } => self.continued(*task),
            Event::TurnFailed { task, .. } => self.turn_failed(*task),
            Event::WaitBegan { task, step, until, .. } => {
                self.entry(*task)?.until = *until;
                self.waits_rightly(*task, *step, *until)?;
                self.waits(*task, *step, until.since_ms(at))
            }
            Event::AccountHeld { account, until, why, trips, .. } => {
                self.held(account, *until, *why, *trips);
                Ok(())
            }
            Event::AccountFreed { account } => {
                self.freed(account);
                Ok(())
            }
            Event::WaitEnded { task } => {
                let entry = self.entry(*task)?;
                let Place::Waiting(step) = entry.place else {
                    return Err(format!("I9: {} did not wait", entry.name));
                };
                entry.place = Place::At(step);
                // What it did not wait in the end it has not spent.
                entry.waited_ms -= entry.until.since_ms(at).min(entry.wait_ms);
                Ok(())
            }
            Event::Halted { halt } => {
                self.focus = None;
                self.rests_rightly(&halt.why)?;
                self.halt = Some(halt.clone());
                Ok(())
            }
            Event::Resumed => {
                self.focus = None;
                self.halt = None;
                Ok(())
            }
            Event::LimitsChanged { limits, .. } => {
                self.limits = (**limits).clone();
                Ok(())
            }
            Event::Switched { switch, on, .. } => {
                self.waivers += u32::from(*switch == Switch::Review && !on);
                if *on {
                    self.switches.insert(*switch)
                } else {
                    self.switches.remove(switch)
                };
                Ok(())
            }
        }
    }

    pub(super) fn begin(&mut self, run: &RunSpec) -> Kept {
        self.flow = Some(run.flow);
        self.limits = run.limits.clone();
        self.switches = run.switches.clone();
        Ok(())
    }

    pub(super) fn added(
        &mut self,
        task: TaskId,
        parent: Option<TaskId>,
        pipeline: Pipeline,
        spec: &TaskEntry,
    ) -> Kept {
        let id = TaskId(self.tasks.len() as u32);
        kept(task == id, || format!("I9: {task} comes before {id}"))?;
        let named = |name: &String| self.tasks.iter().position(|task| task.name == *name);
        kept(named(&spec.name).is_none(), || format!("I2: {} exists already", spec.name))?;
        let needs: Vec<TaskId> =
            spec.depends_on.iter().filter_map(named).map(|at| TaskId(at as u32)).collect();
        kept(needs.len() == spec.depends_on.len(), || {
            format!("I9: {} needs what does not exist", spec.name)
        })?;
        let kind = match (parent, self.flow, spec.expand) {
            (None, Some(Flow::Plan), _) => Kind::Planned,
            (None, Some(Flow::Goal), _) => Kind::Goal,
            (None, _, _) => Kind::Given,
            (Some(_), Some(Flow::Goal), _) => Kind::Session,
            (Some(_), _, true) => Kind::Divided,
            (Some(_), _, false) => Kind::Paired,
        };
        let is_so = (pipeline == Pipeline::Expand) == (kind == Kind::Divided)
            && (pipeline == Pipeline::Paired) == (kind == Kind::Paired)
            && (pipeline == Pipeline::WorkflowStep) == (kind == Kind::Session);
        kept(is_so, || format!("I9: {} is to be {pipeline:?}", spec.name))?;
        let mut iteration = 0;
        if let Some(parent) = parent {
            let above = self.entry(parent)?;
            above.children.push(id);
            // What comes with a no is for the next iteration.
            iteration = above.round + u32::from(above.place == Place::At(Step::Completion));
        }
        self.tasks.push(Entry {
            name: spec.name.clone(),
            parent,
            children: Vec::new(),
            kind,
            spec: spec.clone(),
            failed_round: 0,
            is_divided: false,
            needs,
            place: Place::Open,
            round: 1,
            rounds: 0,
            rounds_ever: 0,
            interruptions: 0,
            hindered: 0,
            broke: 0,
            broke_here: Default::default(),
            waited_ms: 0,
            attempts: 0,
            proof: Default::default(),
            waived: Default::default(),
            tree: None,
            overruled: 0,
            until: Time::default(),
            wait_ms: 0,
            finished: Default::default(),
            iteration,
            continued: 0,
            is_continued: false,
            stood: None,
            stands: false,
            is_given_again: false,
            validated: 0,
            proven: 0,
        });
        Ok(())
    }

    pub(super) fn started(&mut self, id: AttemptId, task: TaskId, step: Step) -> Kept {
        let entry = self.entry(task)?.clone();
        let name = &entry.name;
        kept(entry.place == Place::At(step), || format!("I9: {name} is not at {step}"))?;
        kept(self.halt.is_none(), || format!("I9: {step} of {name} starts in a halted run"))?;
        kept(self.focus.is_none_or(|focus| focus == task), || {
            format!("I9: {step} of {name} starts beside the step that a person continues")
        })?;
        kept(!self.tasks[0].place.is_settled(), || "I9: a start after the end".to_owned())?;
        let limits = &self.limits;
        let broke = entry.broke_here.get(&step).copied().unwrap_or(0);
        kept(broke <= limits.retries_of(step) && entry.broke <= limits.retries_max, || {
            format!("I7: {step} of {name} starts after {broke} broken tries")
        })?;
        kept(entry.interruptions <= limits.interruptions_max, || {
            format!("I7: {name} starts after {} interruptions", entry.interruptions)
        })?;
        if table::is_slot(step) {
            kept(!self.is_in_the_way(&entry), || {
                format!("I10: {name} begins where another writes or before what it needs is over")
            })?;
            self.is_most_urgent(task, &entry, step)?;
            let is_paid = limits.usd_max.is_some_and(|max| self.spent() >= max.0);
            kept(!is_paid && !self.is_overspent(task), || {
                format!("I7: {step} of {name} starts without money")
            })?;
            let is_late = limits.wall_max_ms.is_some_and(|max| self.active_ms >= max);
            kept(!is_late, || format!("I7: {step} of {name} starts after the time limit"))?;
        }
        kept(!entry.finished.contains(&step), || {
            format!("I2: {step} of {name} is done and nobody asked for it again")
        })?;
        let merged = self.merged;
        let entry = self.entry(task)?;
        entry.attempts += 1;
        if step == Step::Validate {
            entry.validated = merged;
        }
        if step == Step::Prove {
            entry.proven = merged;
        }
        entry.place = Place::Running(step, id);
        self.live.insert(id, (task, step));
        self.ever.insert(id, (task, step));
        Ok(())
    }

    /// Of all that a worker could take now, it comes first.
    pub(super) fn is_most_urgent(&self, task: TaskId, entry: &Entry, step: Step) -> Kept {
        if self.focus.is_some() {
            return Ok(());
        }
        let own = (Self::rank(entry, step), task.index());
        for (at, other) in self.tasks.iter().enumerate() {
            let Place::At(step) = other.place else { continue };
            let before = table::is_slot(step) && (Self::rank(other, step), at) < own;
            let may_not = self.is_in_the_way(other) || !self.may_be_done(TaskId(at as u32), step);
            kept(!before || may_not, || {
                format!("I9: {} begins before {}, which is more urgent", entry.name, other.name)
            })?;
        }
        Ok(())
    }

    pub(super) fn ended(
        &mut self,
        id: AttemptId,
        task: TaskId,
        step: Step,
        outcome: &Outcome,
        facts: &Facts,
    ) -> Kept {
        let was = self.live.remove(&id);
        kept(was == Some((task, step)), || format!("I9: {id} ended and did not run"))?;
        self.lane_left(id, outcome);
        self.is_warm |= facts.warm && *outcome == Outcome::Passed;
        let entry = self.entry(task)?;
        kept(entry.place == Place::Running(step, id), || format!("I9: {id} is not at {step}"))?;
        entry.place = Place::At(step);
        if facts.tree.is_some() {
            entry.tree = facts.tree.clone();
        }
        match outcome {
            Outcome::Passed
            | Outcome::Failed { .. }
            | Outcome::Misconfigured { .. }
            | Outcome::Skipped { .. } => {
                entry.proof.insert(step, (outcome.clone(), facts.clone()));
                entry.finished.insert(step);
            }
            Outcome::Broke { .. } => {
                entry.broke += 1;
                *entry.broke_here.entry(step).or_default() += 1;
            }
            Outcome::Lost => entry.interruptions += 1,
            Outcome::Away { why: HoldWhy::Machine(_), .. } => entry.hindered += 1,
            Outcome::Quota { .. } | Outcome::Away { .. } | Outcome::Revoked => {}
        }
        self.merged += usize::from(step == Step::Merge && *outcome == Outcome::Passed);
        Ok(())
    }

    pub(super) fn billed(&mut self, id: AttemptId, task: TaskId, bill: Bill) -> Kept {
        let known = self.bills.entry(id).or_default();
        let before = known.counted().0;
        *known = known.max(bill);
        *self.paid.entry(task).or_default() += known.counted().0 - before;
        Ok(())
    }

    pub(super) fn round_failed(&mut self, task: TaskId, round: u32) -> Kept {
        let entry = self.entry(task)?.clone();
        let said_no = |step| matches!(entry.proof.get(&step), Some((Outcome::Failed { .. }, _)));
        let steps: &[Step] = match entry.kind {
            Kind::Paired => &[Step::Merge],
            Kind::Session => &[Step::Fix, Step::Merge],
            Kind::Planned => {
                &[Step::ApprovePlan, Step::Validate, Step::WholeReview, Step::Uat, Step::Prove]
            }
            Kind::Goal => &[Step::Workflow, Step::Completion, Step::Prove],
            Kind::Given => &[Step::Prove],
            Kind::Divided => &[],
        };
        let conflict = steps.iter().any(|step| entry.place == Place::At(*step) && said_no(*step));
        kept(conflict || entry.place == Place::At(Step::Decide), || {
            format!("I7: {} lost a round at {:?}", entry.name, entry.place)
        })?;
        kept(round == entry.round, || "I7: another round failed".to_owned())?;
        if !conflict && entry.kind == Kind::Goal {
            self.is_overruled_rightly(&entry)?;
        } else if !conflict {
            let tree = entry.tree.clone().unwrap_or_default();
            kept(self.is_proven(task, &tree).is_err(), || {
                format!("I7: {} lost a round although all was well", entry.name)
            })?;
            let says_yes = matches!(entry.proof.get(&Step::Review),
                Some((_, facts)) if facts.verdict() == Some(Verdict::Approve));
            let is_no = |step| matches!(entry.proof.get(&step), Some((Outcome::Failed { .. }, _)));
            let lied = says_yes && (is_no(Step::Validate) || is_no(Step::Uat));
            kept(!lied || entry.overruled > 0, || {
                format!("I6: a verdict on {} was overruled off the record", entry.name)
            })?;
        }
        let entry = self.entry(task)?;
        entry.overruled = 0;
        entry.failed_round = round;
        entry.rounds += 1;
        entry.rounds_ever += 1;
        Ok(())
    }

    /// I6: what stands behind a merge of this tree.
    pub fn is_proven(&self, task: TaskId, tree: &str) -> Kept {
        let entry = &self.tasks[task.index()];
        if entry.kind == Kind::Session {
            return self.is_worked(entry, tree);
        }
        let validated = matches!(entry.proof.get(&Step::Validate),
            Some((Outcome::Passed, facts)) if facts.tree.as_deref() == Some(tree));
        kept(validated, || format!("I6: {tree} of {} is not validated", entry.name))?;
        let review = entry.proof.get(&Step::Review);
        let waived = entry.waived.contains(&Step::Review);
        let agrees = match (self.limits.review, review) {
            (_, None) => waived,
            (_, Some((Outcome::Skipped { .. }, _))) | (ReviewGate::Advisory, Some(_)) => true,
            (ReviewGate::Required, Some((_, facts))) => facts.verdict() == Some(Verdict::Approve),
            (ReviewGate::Evidence, Some((_, facts))) => facts.blocking() == 0,
        };
        kept(agrees, || format!("I6: nobody agreed to {tree} of {}", entry.name))?;
        let accepted = match entry.proof.get(&Step::Uat) {
            Some((outcome, _)) => matches!(outcome, Outcome::Passed | Outcome::Skipped { .. }),
            None => entry.waived.contains(&Step::Uat),
        };
        kept(accepted, || format!("I6: {tree} of {} was not accepted", entry.name))?;
        self.is_accounted_for(entry)?;
        self.is_covered(entry)?;
        kept(!entry.said_no(Step::Prove), || {
            format!("I6: {tree} of {} does not hold from nothing", entry.name)
        })
    }

    pub(super) fn waits(&mut self, task: TaskId, step: Step, ms: u64) -> Kept {
        let wait_max_ms = self.limits.wait_quota_max_ms;
        let entry = self.entry(task)?;
        kept(entry.place == Place::At(step), || format!("I9: {} waits elsewhere", entry.name))?;
        entry.place = Place::Waiting(step);
        entry.waited_ms += ms;
        entry.wait_ms = ms;
        kept(entry.waited_ms <= wait_max_ms, || format!("I7: {} waits too long", entry.name))
    }
}

impl Entry {
    pub(super) fn said_no(&self, step: Step) -> bool {
        matches!(self.proof.get(&step), Some((Outcome::Failed { .. }, _)))
    }

    pub(super) fn did(&self, step: Step) -> bool {
        matches!(self.proof.get(&step), Some((Outcome::Passed, _)))
    }

    pub(super) fn left_out(&self, step: Step) -> bool {
        self.waived.contains(&step)
    }
}

/// One of the places lies in the other, or is the same, as far as they are certain.
pub(super) fn overlap(a: &[String], b: &[String]) -> bool {
    let certain = |path: &String| {
        let parts = path.split('/').take_while(|part| !part.contains('*'));
        parts.map(|part| format!("{}/", part.to_lowercase())).collect::<String>()
    };
    let lies_in = |a: &String, b: &String| certain(a).starts_with(&certain(b));
    a.iter().any(|a| b.iter().any(|b| lies_in(a, b) || lies_in(b, a)))
}
