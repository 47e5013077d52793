//! The rules a record must keep, event by event.

use super::account::Before;
use super::books::{Books, Entry, Kind, Place};
use super::table;
use autopilot_core::event::{
    Bill, Event, Facts, Failure, HoldWhy, Outcome, Record, RunSpec, Skip, TaskEnd, TaskEntry,
    Verdict,
};
use autopilot_core::flow::{Flow, Pipeline};
use autopilot_core::id::{AttemptId, TaskId, Time};
use autopilot_core::limit::ReviewGate;
use autopilot_core::pipeline::Switch;
use autopilot_core::step::Step;

/// A longer silence is taken for a sleep of the machine.
const SLEEP_MS: u64 = 120_000;
/// No account rests longer unless its vendor said until when.
const PAUSE_MS: u64 = 15 * 60_000;

pub(super) type Kept = Result<(), String>;

pub(super) fn kept(holds: bool, what: impl FnOnce() -> String) -> Kept {
    if holds { Ok(()) } else { Err(what()) }
}

impl Books {
    pub fn enter(&mut self, record: &Record) -> Kept {
        // Effects and gates outlive whoever waits for them.
        let lasting_before: Vec<AttemptId> = self.live_where(|step| !table::is_slot(step));
        let is_boot = matches!(record.events.first(), Some(Event::Booted { .. }));
        // While a person is asked or an account waited for nobody works.
        let is_idle = self.live_where(|step| !table::is_gate(step)).is_empty();
        let worked = self.halt.is_none() && !is_idle && !is_boot;
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

    /// What must hold once everything that follows from a decision has been written.
    fn whole_record(&self, record: &Record, lasting_before: &[AttemptId]) -> Kept {
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
    fn nobody_overspends(&self, record: &Record) -> Kept {
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
    fn is_overspent(&self, task: TaskId) -> bool {
        let max = self.limits.usd_per_task_max.filter(|_| task != TaskId::ROOT);
        max.is_some_and(|max| self.spent_by(task) >= max.0)
    }

    /// Whoever is at work is so for a task that is at its tasks.
    fn nobody_is_outside(&self) -> Kept {
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
    fn brought(&mut self, record: &Record) -> Kept {
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
                    let is_broken = matches!(step, Step::Validate | Step::Uat) && is_whole && fails;
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
    fn rank(task: &Entry, step: Step) -> (bool, i64, i64) {
        let is_new = table::is_first(step) || task.kind == Kind::Divided && step == Step::Plan;
        (is_new, -i64::from(task.spec.priority), -i64::from(task.spec.urgency))
    }

    pub(super) fn unmet(&self, task: &Entry) -> Option<TaskId> {
        task.needs.iter().copied().find(|dep| !self.is_met(&self.tasks[dep.index()]))
    }

    pub(super) fn entry(&mut self, task: TaskId) -> Result<&mut Entry, String> {
        self.tasks.get_mut(task.index()).ok_or_else(|| format!("{task} does not exist"))
    }

    fn note(&mut self, event: &Event, id: AttemptId, at: Time) -> Kept {
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
                self.ended(*id, *task, *step, outcome, facts)
            }
            Event::Billed { id, task, bill, .. } => self.billed(*id, *task, *bill),
            Event::MoneyGiven { id, usd, .. } => {
                let before = self.bills.get(id).map_or(0, |bill| bill.usd.0);
                match usd.0 {
                    0 => self.grants.remove(id),
                    given => self.grants.insert(*id, (given, before)),
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

    fn begin(&mut self, run: &RunSpec) -> Kept {
        self.flow = Some(run.flow);
        self.limits = run.limits.clone();
        self.switches = run.switches.clone();
        Ok(())
    }

    fn added(
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
            is_given_again: false,
            validated: 0,
        });
        Ok(())
    }

    fn moved(&mut self, task: TaskId, step: Step, round: u32) -> Kept {
        let before = self.entry(task)?.clone();
        let from = before.place.step();
        let legal = match before.kind {
            Kind::Given => table::root(from),
            Kind::Planned => table::plan(from),
            Kind::Divided => table::divided(from),
            Kind::Paired => table::paired(from),
            // Back to its steps because a person continues one of them.
            Kind::Goal if step == Step::Tasks && self.is_open_before(&before) => &[Step::Tasks],
            Kind::Goal => table::goal(from),
            Kind::Session if before.is_continued && step == Step::WorkflowStep => {
                &[Step::WorkflowStep]
            }
            // What was refused is done again: a repair could leave it as it is.
            Kind::Session if from.is_none() && before.said_no(Step::WorkflowStep) => {
                &[Step::WorkflowStep]
            }
            Kind::Session => table::session(from),
        };
        kept(!before.place.is_settled() && legal.contains(&step), || {
            format!("I9: {} went from {:?} to {step}", before.name, before.place)
        })?;
        if from.is_none() && !before.is_continued {
            self.may_open(task, step, &before)?;
        }
        if step == Step::Merge {
            self.is_proven(task, before.tree.as_deref().unwrap_or_default())?;
        }
        let is_next = round == before.round + 1;
        kept(round == before.round || is_next, || "I9: a round was left out".to_owned())?;
        match before.kind {
            Kind::Paired | Kind::Session
                if matches!(step, Step::Build | Step::WorkflowStep | Step::Fix) =>
            {
                let is_asked = from.is_none() || before.is_continued;
                kept(is_next || before.rounds_ever + 1 == round || is_asked, || {
                    format!("I9: {} repeats round {round}", before.name)
                })?;
                // What is said in a round that is under way begins none.
                if is_next || !before.is_continued {
                    self.may_begin_a_round(&before)?;
                }
                let entry = self.entry(task)?;
                entry.proof.clear();
                entry.waived.clear();
            }
            Kind::Paired | Kind::Session => {}
            Kind::Given | Kind::Planned | Kind::Divided | Kind::Goal => {
                self.whole_moves(&before, from, step, is_next)?;
                if is_next {
                    let entry = self.entry(task)?;
                    entry.proof.clear();
                    entry.waived.clear();
                }
            }
        }
        let entry = self.entry(task)?;
        let is_again = !is_next && from != Some(Step::Workflow);
        if is_again && step == Step::Tasks && entry.kind == Kind::Goal {
            entry.is_given_again = true;
            entry.failed_round = 0;
            entry.finished.clear();
        } else if is_next {
            entry.is_given_again = false;
        }
        if is_next {
            entry.broke_here.clear();
            entry.finished.clear();
        }
        entry.round = round;
        entry.place = Place::At(step);
        Ok(())
    }

    fn may_begin_a_round(&self, before: &Entry) -> Kept {
        let limits = &self.limits;
        kept(before.rounds < limits.rounds_of(before.parent.is_none()), || {
            format!("I7: {} begins more rounds than it may", before.name)
        })?;
        kept(before.rounds_ever < limits.rounds_lifetime_max, || {
            format!("I7: {} lives longer than it may", before.name)
        })
    }

    /// What stands behind a step of a run, or of a task that is divided.
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing has to come before the others")]
    fn whole_moves(&self, before: &Entry, from: Option<Step>, step: Step, is_next: bool) -> Kept {
        let name = &before.name;
        let goes_back = match (from, step) {
            _ if before.kind == Kind::Goal => self.goes_back_for_the_goal(before, step),
            (Some(Step::ApprovePlan), Step::Plan) => true,
            (Some(Step::Validate | Step::Uat), Step::Tasks) => true,
            (Some(_) | None, _) => false,
        };
        kept(goes_back == is_next, || format!("I7: {name} goes from {from:?} to {step} for free"))?;
        if is_next {
            kept(before.failed_round == before.round, || {
                format!("I7: round {} of {name} failed off the record", before.round)
            })?;
            self.may_begin_a_round(before)?;
        }
        match step {
            Step::Schedule => {
                kept(before.did(Step::Plan), || format!("I6: nobody planned {name}"))?;
                let agreed = before.did(Step::ApprovePlan) || before.left_out(Step::ApprovePlan);
                kept(before.kind == Kind::Divided || agreed, || "I6: unapproved".to_owned())
            }
            Step::Push | Step::PullRequest => self.whole_is_proven(before),
            Step::Tasks if before.kind == Kind::Goal && from.is_none() => {
                self.may_go_to_its_steps(before)
            }
            Step::Validate | Step::Completion | Step::Decide if before.kind == Kind::Goal => {
                self.may_be_assessed(before, step)
            }
            _ => Ok(()),
        }
    }

    /// All tasks are in, and since the last of them the whole was proven and looked at.
    fn whole_is_proven(&self, whole: &Entry) -> Kept {
        let children = || whole.children.iter().map(|child| &self.tasks[child.index()]);
        // Of a goal whoever says that it is reached has weighed what failed.
        let is_over = |task: &Entry| match whole.kind {
            Kind::Goal => task.place.is_settled(),
            Kind::Given | Kind::Planned | Kind::Divided | Kind::Paired | Kind::Session => {
                task.place.satisfies()
            }
        };
        kept(!whole.children.is_empty() && children().all(is_over), || {
            format!("I9: {} goes on over open tasks", whole.name)
        })?;
        if whole.kind == Kind::Goal {
            self.goal_is_reached(whole)?;
        }
        let open = self.tasks[1..].iter().find(|task| !task.place.is_settled());
        kept(whole.parent.is_some() || open.is_none(), || {
            format!("I9: the run goes on over {}", open.map_or("", |task| &task.name))
        })?;
        if whole.kind == Kind::Planned {
            kept(whole.did(Step::Validate), || "I6: the whole is not validated".to_owned())?;
            let accepted =
                matches!(whole.proof.get(&Step::Uat), Some((Outcome::Skipped { .. }, _)))
                    || whole.did(Step::Uat)
                    || whole.left_out(Step::Uat);
            kept(accepted, || "I6: the whole is not accepted".to_owned())?;
        }
        if whole.kind != Kind::Divided {
            let agreed = whole.did(Step::ApproveResult) || whole.left_out(Step::ApproveResult);
            kept(agreed, || "I6: nobody agreed to the whole".to_owned())?;
        }
        Ok(())
    }

    fn may_open(&self, task: TaskId, step: Step, before: &Entry) -> Kept {
        let Some(parent) = before.parent else { return Ok(()) };
        kept(self.tasks[parent.index()].place == Place::At(Step::Tasks), || {
            format!("I9: {} begins before its time", before.name)
        })?;
        // Re-opened for the sake of a task below it, it had begun long ago.
        let goes_on = step == Step::Tasks;
        kept(goes_on || self.unmet(before).is_none(), || {
            format!("I9: {} begins before what it needs", before.name)
        })?;
        let mut others = self.tasks.iter().enumerate().skip(1);
        let is_alone = !others.any(|(at, other)| at != task.index() && other.place.is_under_way());
        kept(is_alone || self.flow != Some(Flow::Queue), || {
            format!("I9: {} begins beside another task of the queue", before.name)
        })
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing else is switched")]
    fn stage_skipped(&mut self, task: TaskId, step: Step) -> Kept {
        let switch = match step {
            Step::Preflight => Switch::Baseline,
            Step::Review => Switch::Review,
            Step::Uat => Switch::Uat,
            Step::Push => Switch::Push,
            Step::PullRequest => Switch::Pr,
            Step::ApprovePlan => Switch::PlanGate,
            Step::ApproveResult => Switch::EndGate,
            Step::Validate => Switch::HasTests,
            _ => return Err(format!("I6: {step} can't be switched off")),
        };
        let is_on =
            self.switches.contains(&switch) || self.entry(task)?.spec.switches.contains(&switch);
        kept(!is_on, || format!("I6: {step} was skipped and is on"))?;
        self.entry(task)?.waived.insert(step);
        Ok(())
    }

    fn started(&mut self, id: AttemptId, task: TaskId, step: Step) -> Kept {
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
        entry.place = Place::Running(step, id);
        self.live.insert(id, (task, step));
        self.ever.insert(id, (task, step));
        Ok(())
    }

    /// Of all that a worker could take now, it comes first.
    fn is_most_urgent(&self, task: TaskId, entry: &Entry, step: Step) -> Kept {
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
        self.lane_left(id, outcome);
        let entry = self.entry(task)?;
        kept(entry.place == Place::Running(step, id), || format!("I9: {id} is not at {step}"))?;
        entry.place = Place::At(step);
        if facts.tree.is_some() {
            entry.tree = facts.tree.clone();
        }
        match outcome {
            Outcome::Passed | Outcome::Failed { .. } | Outcome::Skipped { .. } => {
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

    fn billed(&mut self, id: AttemptId, task: TaskId, bill: Bill) -> Kept {
        let known = self.bills.entry(id).or_default();
        let before = known.usd.0;
        *known = known.max(bill);
        *self.paid.entry(task).or_default() += known.usd.0 - before;
        Ok(())
    }

    fn round_failed(&mut self, task: TaskId, round: u32) -> Kept {
        let entry = self.entry(task)?.clone();
        let said_no = |step| matches!(entry.proof.get(&step), Some((Outcome::Failed { .. }, _)));
        let steps: &[Step] = match entry.kind {
            Kind::Paired => &[Step::Merge],
            Kind::Session => &[Step::Fix, Step::Merge],
            Kind::Planned => &[Step::ApprovePlan, Step::Validate, Step::Uat],
            Kind::Goal => &[Step::Workflow, Step::Completion],
            Kind::Given | Kind::Divided => &[],
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
        kept(accepted, || format!("I6: {tree} of {} was not accepted", entry.name))
    }

    fn settled(&mut self, task: TaskId, end: &TaskEnd) -> Kept {
        let entry = self.entry(task)?.clone();
        let name = &entry.name;
        kept(!entry.place.is_settled(), || format!("I9: {name} settled twice"))?;
        kept(!matches!(entry.place, Place::Running(..)), || format!("I9: {name} still runs"))?;
        match end {
            TaskEnd::Closed => self.may_close(task, &entry)?,
            TaskEnd::Skipped { why: Skip::Asked } => {}
            TaskEnd::Skipped { why: Skip::Blocked { by } | Skip::Stopped { by } } => {
                if entry.kind == Kind::Session {
                    self.is_left_out_rightly(&entry, *by)?;
                }
                let is_around = self.is_around(*by, task);
                kept(entry.place == Place::Open || is_around, || {
                    format!("I9: {name} was blocked at work")
                })?;
            }
            TaskEnd::Skipped { why: Skip::Dropped } => {
                kept(entry.place == Place::Open, || format!("I9: {name} was dropped at work"))?;
                self.may_be_dropped(&entry)?;
            }
            TaskEnd::Failed { why } => self.may_fail(task, &entry, why)?,
        }
        self.focus = self.focus.filter(|focus| *focus != task);
        let settled = self.entry(task)?;
        settled.place = Place::of(end);
        settled.is_continued = false;
        self.forget_the_whole(entry.parent)
    }

    fn is_around(&self, above: TaskId, task: TaskId) -> bool {
        let parent = self.tasks[task.index()].parent;
        parent.is_some_and(|parent| parent == above || self.is_around(above, parent))
    }

    /// What was proven of the whole before says nothing of it now.
    fn forget_the_whole(&mut self, above: Option<TaskId>) -> Kept {
        let Some(task) = above else { return Ok(()) };
        let entry = self.entry(task)?;
        let of_the_whole =
            [Step::Validate, Step::Completion, Step::UatGenerate, Step::Uat, Step::ApproveResult];
        for step in of_the_whole {
            entry.proof.remove(&step);
        }
        let above = entry.parent;
        self.forget_the_whole(above)
    }

    fn may_close(&self, task: TaskId, entry: &Entry) -> Kept {
        let name = &entry.name;
        let Some(step) = entry.place.step() else {
            return Err(format!("I9: {name} closed without work"));
        };
        match entry.kind {
            Kind::Paired | Kind::Session => {
                let is_merged = step == Step::Merge && entry.did(Step::Merge);
                kept(is_merged, || format!("I6: {name} is not merged"))?;
                self.is_proven(task, entry.tree.as_deref().unwrap_or_default())
            }
            Kind::Divided => {
                kept(step == Step::Tasks, || format!("I9: {name} closed at {step}"))?;
                self.whole_is_proven(entry)
            }
            Kind::Given | Kind::Planned | Kind::Goal => {
                self.whole_is_proven(entry)?;
                let done = |step| entry.did(step) || entry.left_out(step);
                kept(done(Step::Push) && done(Step::PullRequest), || "I9: not pushed".to_owned())
            }
        }
    }

    fn may_fail(&self, task: TaskId, entry: &Entry, why: &Failure) -> Kept {
        let (limits, step) = (&self.limits, entry.place.step());
        let holds = match why {
            Failure::Rounds { .. } => entry.rounds >= limits.rounds_of(entry.parent.is_none()),
            Failure::Rail { .. } => entry.rounds > 0,
            Failure::Broke { step, .. } => {
                let here = entry.broke_here.get(step).copied().unwrap_or(0);
                here > limits.retries_of(*step) || entry.broke > limits.retries_max
            }
            Failure::Interrupted { .. } => entry.interruptions > limits.interruptions_max,
            Failure::Money { .. } => self.is_overspent(task),
            Failure::Refused { .. } => step.is_some_and(|step| {
                let has_a_way_back = match entry.kind {
                    Kind::Paired => true,
                    Kind::Session => step == Step::Merge,
                    Kind::Goal => {
                        matches!(step, Step::Workflow | Step::Validate | Step::Completion)
                    }
                    Kind::Given | Kind::Planned | Kind::Divided => {
                        matches!(step, Step::ApprovePlan | Step::Validate | Step::Uat)
                    }
                };
                let said_no = matches!(entry.proof.get(&step), Some((Outcome::Failed { .. }, _)));
                said_no && !has_a_way_back
            }),
            Failure::Children { failed } => {
                let open = |task: &&Entry| !task.place.satisfies();
                let children = || entry.children.iter().map(|child| &self.tasks[child.index()]);
                *failed > 0
                    && entry.kind != Kind::Goal
                    && children().all(|task| task.place.is_settled())
                    && children().filter(open).count() as u32 == *failed
            }
        };
        kept(holds, || format!("I7: {} failed ({why}) before its limit", entry.name))
    }

    fn reopened(&mut self, task: TaskId) -> Kept {
        let entry = self.entry(task)?;
        // What is around a task that was left out goes on with it, even if it was closed over it.
        let is_closed = entry.place == Place::Closed && entry.kind == Kind::Paired;
        kept(entry.place.is_settled() && !is_closed, || {
            format!("I9: {} re-opened from {:?}", entry.name, entry.place)
        })?;
        entry.place = Place::Open;
        entry.rounds = 0;
        entry.broke = 0;
        entry.broke_here.clear();
        entry.interruptions = 0;
        entry.hindered = 0;
        entry.finished.clear();
        Ok(())
    }

    fn waits(&mut self, task: TaskId, step: Step, ms: u64) -> Kept {
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
    fn said_no(&self, step: Step) -> bool {
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
fn overlap(a: &[String], b: &[String]) -> bool {
    let certain = |path: &String| {
        let parts = path.split('/').take_while(|part| !part.contains('*'));
        parts.map(|part| format!("{}/", part.to_lowercase())).collect::<String>()
    };
    let lies_in = |a: &String, b: &String| certain(a).starts_with(&certain(b));
    a.iter().any(|a| b.iter().any(|b| lies_in(a, b) || lies_in(b, a)))
}
