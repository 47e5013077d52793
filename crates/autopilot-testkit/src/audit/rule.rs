//! The rules a record must keep, event by event.

use super::books::{Books, Entry, Place};
use super::table;
use autopilot_core::event::{
    Bill, End, Event, Facts, Failure, Outcome, Record, RunSpec, Skip, TaskSpec, Verdict,
};
use autopilot_core::flow::Flow;
use autopilot_core::id::{AttemptId, TaskId, Time};
use autopilot_core::limit::ReviewGate;
use autopilot_core::pipeline::Switch;
use autopilot_core::step::Step;

/// A longer silence is taken for a sleep of the machine.
const SLEEP_MS: u64 = 120_000;

type Kept = Result<(), String>;

fn kept(holds: bool, what: impl FnOnce() -> String) -> Kept {
    if holds { Ok(()) } else { Err(what()) }
}

impl Books {
    pub fn enter(&mut self, record: &Record) -> Kept {
        let serial_before: Vec<AttemptId> = self.live_where(table::is_serial);
        let is_boot = matches!(record.events.first(), Some(Event::Booted { .. }));
        let worked = self.seq > 0 && self.halt.is_none() && !is_boot;
        let since_ms = record.at.since_ms(self.at).min(SLEEP_MS);
        for (place, event) in record.events.iter().enumerate() {
            let id = AttemptId { seq: record.seq, place: place as u32 };
            self.note(event, id, record.at)?;
        }
        self.seq = record.seq;
        self.at = record.at;
        self.active_ms += if worked { since_ms } else { 0 };
        self.whole_record(record, &serial_before)
    }

    fn live_where(&self, is: impl Fn(Step) -> bool) -> Vec<AttemptId> {
        self.live.iter().filter(|(_, (_, step))| is(*step)).map(|(id, _)| *id).collect()
    }

    /// What must hold once everything that follows from a decision has been written.
    fn whole_record(&self, record: &Record, serial_before: &[AttemptId]) -> Kept {
        let has = |is: fn(&Event) -> bool| record.events.iter().any(is);
        let slots = self.live_where(|step| !table::is_serial(step));
        if has(|event| matches!(event, Event::Booted { .. })) {
            let old = slots.iter().find(|id| id.seq < record.seq);
            kept(old.is_none(), || format!("I9: {old:?} lives on after a boot"))?;
            let longest = record.at.plus_ms(self.limits.wait_quota_max_ms);
            let endless = self
                .tasks
                .iter()
                .any(|task| matches!(task.place, Place::Waiting(_)) && task.until > longest);
            kept(!endless, || "C17: a wait lasts as long as the clock went back".to_owned())?;
            let lost = serial_before.iter().find(|id| !self.live.contains_key(id));
            kept(lost.is_none(), || format!("I2: the effect {lost:?} was dropped by a boot"))?;
        }
        if self.halt.as_ref().is_some_and(|halt| halt.now) {
            kept(slots.is_empty(), || "I9: work goes on although all was to end".to_owned())?;
        }
        let begins = |is: fn(Step) -> bool| {
            let mut begun = record.events.iter();
            begun.any(|event| matches!(event, Event::AttemptStarted { step, .. } if is(*step)))
        };
        if begins(|step| !table::is_serial(step)) {
            kept(slots.len() as u32 <= self.limits.workers_max, || {
                format!("I10: {} at work, {} allowed", slots.len(), self.limits.workers_max)
            })?;
        }
        if begins(table::is_serial) {
            let serial = self.live_where(table::is_serial).len();
            kept(serial <= 1, || format!("I10: {serial} effects at once"))?;
        }
        self.nobody_idles(slots.len() as u32)
    }

    /// Whatever could go on does: a run that is neither over nor halted never waits for nothing.
    fn nobody_idles(&self, slots: u32) -> Kept {
        if self.halt.is_some() || self.tasks.first().is_none_or(|root| root.place.is_settled()) {
            return Ok(());
        }
        let serial = self.live_where(table::is_serial).len();
        for task in &self.tasks {
            let Place::At(step) = task.place else { continue };
            if !table::is_worked(step) {
                continue;
            }
            let has_room =
                if table::is_serial(step) { serial == 0 } else { slots < self.limits.workers_max };
            kept(!has_room, || format!("I9: {} is left idle at {step}", task.name))?;
        }
        if self.tasks[0].place != Place::At(Step::Tasks) {
            return Ok(());
        }
        let children = &self.tasks[1..];
        let at_work = children.iter().any(|task| task.place.is_under_way());
        let one_by_one = self.flow == Some(Flow::Queue);
        let openable = children.iter().find(|task| {
            task.place == Place::Open && self.unmet(task).is_none() && !(one_by_one && at_work)
        });
        kept(openable.is_none(), || {
            format!("I9: {} could begin and does not", openable.map_or("", |task| &task.name))
        })?;
        kept(at_work || !children.iter().all(|task| task.place.is_settled()), || {
            "I9: all tasks are settled and the run goes nowhere".to_owned()
        })?;
        kept(at_work, || "I9: nothing is under way".to_owned())
    }

    fn unmet(&self, task: &Entry) -> Option<TaskId> {
        task.needs.iter().copied().find(|dep| !self.tasks[dep.index()].place.satisfies())
    }

    fn entry(&mut self, task: TaskId) -> Result<&mut Entry, String> {
        self.tasks.get_mut(task.index()).ok_or_else(|| format!("{task} does not exist"))
    }

    fn note(&mut self, event: &Event, id: AttemptId, at: Time) -> Kept {
        match event {
            Event::RunStarted { run } => self.begin(run),
            Event::Booted { .. }
            | Event::TimePassed
            | Event::RoomChanged { .. }
            | Event::SessionOpened { .. } => Ok(()),
            Event::TaskAdded { parent, spec, .. } => self.added(*parent, spec),
            Event::TaskMoved { task, step, round } => self.moved(*task, *step, *round),
            Event::StageSkipped { task, step, .. } => self.stage_skipped(*task, *step),
            Event::AttemptStarted { task, step } => self.started(id, *task, *step),
            Event::AttemptEnded { id, task, step, outcome, facts } => {
                self.ended(*id, *task, *step, outcome, facts)
            }
            Event::Billed { id, task, bill } => self.billed(*id, *task, *bill),
            Event::Overruled { task, .. } => {
                self.entry(*task)?.overruled += 1;
                Ok(())
            }
            Event::RoundFailed { task, round, .. } => self.round_failed(*task, *round),
            Event::RailTripped { .. } => Ok(()),
            Event::TaskSettled { task, end } => self.settled(*task, end),
            Event::TaskReopened { task } => self.reopened(*task),
            Event::WaitBegan { task, step, until } => {
                self.entry(*task)?.until = *until;
                self.waits(*task, *step, until.since_ms(at))
            }
            Event::WaitEnded { task } => {
                let entry = self.entry(*task)?;
                let Place::Waiting(step) = entry.place else {
                    return Err(format!("I9: {} did not wait", entry.name));
                };
                entry.place = Place::At(step);
                Ok(())
            }
            Event::Halted { halt } => {
                self.halt = Some(halt.clone());
                Ok(())
            }
            Event::Resumed => {
                self.halt = None;
                Ok(())
            }
            Event::LimitsChanged { limits } => {
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

    fn begin(&mut self, run: &RunSpec) -> Kept {
        self.flow = Some(run.flow);
        self.limits = run.limits.clone();
        self.switches = run.switches.clone();
        Ok(())
    }

    fn added(&mut self, parent: Option<TaskId>, spec: &TaskSpec) -> Kept {
        let named = |name: &String| self.tasks.iter().position(|task| task.name == *name);
        let needs = spec.depends_on.iter().filter_map(named).map(|at| TaskId(at as u32)).collect();
        self.tasks.push(Entry {
            name: spec.name.clone(),
            parent,
            needs,
            place: Place::Open,
            round: 1,
            rounds: 0,
            rounds_ever: 0,
            interruptions: 0,
            broke: 0,
            broke_here: Default::default(),
            waited_ms: 0,
            attempts: 0,
            proof: Default::default(),
            waived: Default::default(),
            tree: None,
            overruled: 0,
            until: Time::default(),
        });
        Ok(())
    }

    fn moved(&mut self, task: TaskId, step: Step, round: u32) -> Kept {
        let before = self.entry(task)?.clone();
        let from = before.place.step();
        let legal = match before.parent {
            Some(_) => table::paired(from),
            None => table::root(from),
        };
        kept(!before.place.is_settled() && legal.contains(&step), || {
            format!("I9: {} went from {:?} to {step}", before.name, before.place)
        })?;
        if from.is_none() {
            self.may_open(task, &before)?;
        }
        if step == Step::Merge {
            self.is_proven(task, before.tree.as_deref().unwrap_or_default())?;
        }
        let is_next = round == before.round + 1;
        kept(round == before.round || is_next, || "I9: a round was left out".to_owned())?;
        if before.parent.is_some() && matches!(step, Step::Build | Step::Fix) {
            kept(is_next || before.rounds_ever + 1 == round || from.is_none(), || {
                format!("I9: {} repeats round {round}", before.name)
            })?;
            let limits = &self.limits;
            kept(before.rounds < limits.rounds_max, || {
                format!("I7: {} begins more rounds than it may", before.name)
            })?;
            kept(before.rounds_ever < limits.rounds_lifetime_max, || {
                format!("I7: {} lives longer than it may", before.name)
            })?;
            let entry = self.entry(task)?;
            entry.proof.clear();
            entry.waived.clear();
            if is_next {
                entry.broke_here.clear();
            }
        }
        let entry = self.entry(task)?;
        entry.round = round;
        entry.place = Place::At(step);
        Ok(())
    }

    fn may_open(&self, task: TaskId, before: &Entry) -> Kept {
        let Some(parent) = before.parent else { return Ok(()) };
        kept(self.tasks[parent.index()].place == Place::At(Step::Tasks), || {
            format!("I9: {} begins before its time", before.name)
        })?;
        kept(self.unmet(before).is_none(), || {
            format!("I9: {} begins before what it needs", before.name)
        })?;
        let mut others = self.tasks.iter().enumerate().skip(1);
        let is_alone = !others.any(|(at, other)| at != task.index() && other.place.is_under_way());
        kept(is_alone || self.flow != Some(Flow::Queue), || {
            format!("I9: {} begins beside another task of the queue", before.name)
        })
    }

    fn stage_skipped(&mut self, task: TaskId, step: Step) -> Kept {
        let switch = match step {
            Step::Preflight => Switch::Baseline,
            Step::Review => Switch::Review,
            Step::Uat => Switch::Uat,
            Step::Push => Switch::Push,
            Step::PullRequest => Switch::Pr,
            Step::ApprovePlan => Switch::PlanGate,
            Step::ApproveResult => Switch::EndGate,
            Step::Plan
            | Step::Schedule
            | Step::Tasks
            | Step::Build
            | Step::Fix
            | Step::Validate
            | Step::UatGenerate
            | Step::Decide
            | Step::Merge => return Err(format!("I6: {step} can't be switched off")),
        };
        kept(!self.switches.contains(&switch), || format!("I6: {step} was skipped and is on"))?;
        self.entry(task)?.waived.insert(step);
        Ok(())
    }

    fn started(&mut self, id: AttemptId, task: TaskId, step: Step) -> Kept {
        let entry = self.entry(task)?.clone();
        let name = &entry.name;
        kept(entry.place == Place::At(step), || format!("I9: {name} is not at {step}"))?;
        kept(self.halt.is_none(), || format!("I9: {step} of {name} starts in a halted run"))?;
        kept(!self.tasks[0].place.is_settled(), || "I9: a start after the end".to_owned())?;
        let limits = &self.limits;
        let broke = entry.broke_here.get(&step).copied().unwrap_or(0);
        kept(broke <= limits.retries_of(step) && entry.broke <= limits.retries_max, || {
            format!("I7: {step} of {name} starts after {broke} broken tries")
        })?;
        kept(entry.interruptions <= limits.interruptions_max, || {
            format!("I7: {name} starts after {} interruptions", entry.interruptions)
        })?;
        if !table::is_serial(step) {
            let is_paid = limits.usd_max.is_some_and(|max| self.spent() >= max.0);
            let task_paid = limits.usd_per_task_max.is_some_and(|max| self.spent_by(task) >= max.0);
            kept(!is_paid && !task_paid, || format!("I7: {step} of {name} starts without money"))?;
            let is_late = limits.wall_max_ms.is_some_and(|max| self.active_ms >= max);
            kept(!is_late, || format!("I7: {step} of {name} starts after the time limit"))?;
        }
        let entry = self.entry(task)?;
        entry.attempts += 1;
        entry.place = Place::Running(step, id);
        self.live.insert(id, (task, step));
        self.ever.insert(id, (task, step));
        Ok(())
    }

    fn ended(
        &mut self,
        id: AttemptId,
        task: TaskId,
        step: Step,
        outcome: &Outcome,
        facts: &Facts,
    ) -> Kept {
        let was = self.live.remove(&id);
        kept(was == Some((task, step)), || format!("I9: {id} ended and did not run"))?;
        let entry = self.entry(task)?;
        kept(entry.place == Place::Running(step, id), || format!("I9: {id} is not at {step}"))?;
        entry.place = Place::At(step);
        if facts.tree.is_some() {
            entry.tree = facts.tree.clone();
        }
        match outcome {
            Outcome::Passed | Outcome::Failed { .. } | Outcome::Skipped { .. } => {
                entry.proof.insert(step, (outcome.clone(), facts.clone()));
            }
            Outcome::Broke { .. } => {
                entry.broke += 1;
                *entry.broke_here.entry(step).or_default() += 1;
            }
            Outcome::Lost => entry.interruptions += 1,
            Outcome::Quota { .. } | Outcome::Revoked => {}
        }
        Ok(())
    }

    fn billed(&mut self, id: AttemptId, task: TaskId, bill: Bill) -> Kept {
        let known = self.bills.entry(id).or_default();
        let before = known.usd.0;
        *known = known.max(bill);
        *self.paid.entry(task).or_default() += known.usd.0 - before;
        Ok(())
    }

    fn round_failed(&mut self, task: TaskId, round: u32) -> Kept {
        let entry = self.entry(task)?.clone();
        let conflict = entry.place == Place::At(Step::Merge)
            && matches!(entry.proof.get(&Step::Merge), Some((Outcome::Failed { .. }, _)));
        kept(conflict || entry.place == Place::At(Step::Decide), || {
            format!("I7: {} lost a round at {:?}", entry.name, entry.place)
        })?;
        kept(round == entry.round, || "I7: another round failed".to_owned())?;
        if !conflict {
            let tree = entry.tree.clone().unwrap_or_default();
            kept(self.is_proven(task, &tree).is_err(), || {
                format!("I7: {} lost a round although all was well", entry.name)
            })?;
            let says_yes = matches!(entry.proof.get(&Step::Review),
                Some((_, facts)) if facts.verdict == Some(Verdict::Approve));
            let is_no = |step| matches!(entry.proof.get(&step), Some((Outcome::Failed { .. }, _)));
            let lied = says_yes && (is_no(Step::Validate) || is_no(Step::Uat));
            kept(!lied || entry.overruled > 0, || {
                format!("I6: a verdict on {} was overruled off the record", entry.name)
            })?;
        }
        let entry = self.entry(task)?;
        entry.overruled = 0;
        entry.rounds += 1;
        entry.rounds_ever += 1;
        Ok(())
    }

    /// I6: what stands behind a merge of this tree.
    pub fn is_proven(&self, task: TaskId, tree: &str) -> Kept {
        let entry = &self.tasks[task.index()];
        let validated = matches!(entry.proof.get(&Step::Validate),
            Some((Outcome::Passed, facts)) if facts.tree.as_deref() == Some(tree));
        kept(validated, || format!("I6: {tree} of {} is not validated", entry.name))?;
        let review = entry.proof.get(&Step::Review);
        let waived = entry.waived.contains(&Step::Review);
        let agrees = match (self.limits.review, review) {
            (_, None) => waived,
            (_, Some((Outcome::Skipped { .. }, _))) | (ReviewGate::Advisory, Some(_)) => true,
            (ReviewGate::Required, Some((_, facts))) => facts.verdict == Some(Verdict::Approve),
            (ReviewGate::Evidence, Some((_, facts))) => facts.blocking == 0,
        };
        kept(agrees, || format!("I6: nobody agreed to {tree} of {}", entry.name))?;
        let accepted = match entry.proof.get(&Step::Uat) {
            Some((outcome, _)) => matches!(outcome, Outcome::Passed | Outcome::Skipped { .. }),
            None => entry.waived.contains(&Step::Uat),
        };
        kept(accepted, || format!("I6: {tree} of {} was not accepted", entry.name))
    }

    fn settled(&mut self, task: TaskId, end: &End) -> Kept {
        let entry = self.entry(task)?.clone();
        let name = &entry.name;
        kept(!entry.place.is_settled(), || format!("I9: {name} settled twice"))?;
        kept(!matches!(entry.place, Place::Running(..)), || format!("I9: {name} still runs"))?;
        let step = entry.place.step();
        let place = match end {
            End::Closed => {
                self.may_close(task, &entry)?;
                Place::Closed
            }
            End::Skipped { why: Skip::Asked } => Place::SkippedByAsk,
            End::Skipped { why: Skip::Blocked { by } | Skip::Stopped { by } } => {
                kept(entry.place == Place::Open, || format!("I9: {name} was blocked at work"))?;
                Place::SkippedFor(*by)
            }
            End::Failed { why } => {
                self.may_fail(&entry, step, why)?;
                Place::Failed
            }
        };
        self.entry(task)?.place = place;
        Ok(())
    }

    fn may_close(&self, task: TaskId, entry: &Entry) -> Kept {
        let name = &entry.name;
        let Some(step) = entry.place.step() else {
            return Err(format!("I9: {name} closed without work"));
        };
        let did = |step| matches!(entry.proof.get(&step), Some((Outcome::Passed, _)));
        if entry.parent.is_some() {
            kept(step == Step::Merge && did(Step::Merge), || format!("I6: {name} is not merged"))?;
            return self.is_proven(task, entry.tree.as_deref().unwrap_or_default());
        }
        kept(self.tasks[1..].iter().all(|task| task.place.satisfies()), || {
            "I9: the run closed over open tasks".to_owned()
        })?;
        kept(entry.waived.contains(&Step::Push) || did(Step::Push), || "I9: not pushed".to_owned())
    }

    fn may_fail(&self, entry: &Entry, step: Option<Step>, why: &Failure) -> Kept {
        let limits = &self.limits;
        let holds = match why {
            Failure::Rounds { .. } => entry.rounds >= limits.rounds_max,
            Failure::Rail { .. } => entry.rounds > 0,
            Failure::Broke { step, .. } => {
                let here = entry.broke_here.get(step).copied().unwrap_or(0);
                here > limits.retries_of(*step) || entry.broke > limits.retries_max
            }
            Failure::Interrupted { .. } => entry.interruptions > limits.interruptions_max,
            Failure::Refused { .. } => step.is_some(),
            Failure::Children { failed } => {
                let open = |task: &&Entry| !task.place.satisfies();
                *failed > 0 && self.tasks[1..].iter().filter(open).count() as u32 == *failed
            }
        };
        kept(holds, || format!("I7: {} failed ({why}) before its limit", entry.name))
    }

    fn reopened(&mut self, task: TaskId) -> Kept {
        let entry = self.entry(task)?;
        let is_closed = entry.place == Place::Closed && entry.parent.is_some();
        kept(entry.place.is_settled() && !is_closed, || {
            format!("I9: {} re-opened from {:?}", entry.name, entry.place)
        })?;
        entry.place = Place::Open;
        entry.rounds = 0;
        entry.broke = 0;
        entry.broke_here.clear();
        entry.interruptions = 0;
        Ok(())
    }

    fn waits(&mut self, task: TaskId, step: Step, ms: u64) -> Kept {
        let wait_max_ms = self.limits.wait_quota_max_ms;
        let entry = self.entry(task)?;
        kept(entry.place == Place::At(step), || format!("I9: {} waits elsewhere", entry.name))?;
        entry.place = Place::Waiting(step);
        entry.waited_ms += ms;
        kept(entry.waited_ms <= wait_max_ms, || format!("I7: {} waits too long", entry.name))
    }
}
