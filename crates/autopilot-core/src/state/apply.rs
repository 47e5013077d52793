//! The effect of each event on the state. No rule is here: the event holds the whole decision.

use super::{Grant, Hold, LiveAttempt, Run, Shown, StandingResult, State, Status, Task};
use crate::event::{
    Bill, Event, Facts, HoldWhy, Outcome, RunSpec, SessionTotal, Skip, TaskEnd, TaskEntry,
};
use crate::flow::Pipeline;
use crate::id::{AttemptId, Micros, TaskId, Time};
use crate::pipeline::{Failing, Switch, Work};
use crate::step::Step;

/// The number of attempts cut short in a row whose leftover work is considered.
const CUT_SHORT_MAX: usize = 64;
/// A silence longer than this between two records is not counted as work: the machine slept.
const ACTIVE_GAP_MAX_MS: u64 = 120_000;

impl State {
    /// Applies one event: the `place`-th of record `seq`.
    pub fn apply(&mut self, event: &Event, seq: u64, place: u32, at: Time) {
        if matches!(event, Event::Booted { .. }) {
            // Nobody worked between the two processes.
            self.at = at;
        }
        self.count_time(at);
        match event {
            Event::RunStarted { run } => self.run = Run::begin(run, at),
            Event::Booted { epoch } => {
                self.run.epoch = *epoch;
                self.run.boots += 1;
            }
            Event::TaskAdded { task, parent, pipeline, spec } => {
                self.add(*task, *parent, *pipeline, spec);
            }
            Event::TaskMoved { task, step, round } => self.moved(*task, *step, *round, at),
            Event::StageSkipped { task, step, why } => {
                self.task_mut(*task).skipped.insert(*step, why.clone());
            }
            Event::AttemptStarted { task, step, lane } => {
                let live = LiveAttempt { task: *task, step: *step, lane: *lane, since: at };
                self.started(AttemptId { seq, place }, live);
            }
            Event::AttemptEnded { id, task, step, outcome, facts } => {
                if let Some(grant) = self.grants.get_mut(id) {
                    grant.ended = Some(at);
                }
                let shown = Shown {
                    id: *id,
                    round: self.task(*task).round,
                    at,
                    outcome: outcome.clone(),
                    facts: Facts::clone(facts),
                };
                self.ended(*task, *step, shown);
            }
            Event::SessionOpened { id, task, step, session, .. } => {
                let lane = self.live.get(id).map_or(0, |live| live.lane);
                let task = self.task_mut(*task);
                task.sessions.insert(*step, session.clone());
                task.talk.opened(*step, lane, *id, session);
            }
            Event::Billed { id, task, bill, total } => {
                self.billed(*id, *task, *bill);
                if let Some(total) = total {
                    let totals = &mut self.task_mut(*task).totals;
                    totals.insert(total.session.clone(), SessionTotal::clone(total));
                }
            }
            Event::MoneyGiven { id, task, usd } => self.given(*id, *task, *usd, at),
            Event::Overruled { task, why } => self.note(*task, format!("overruled: {why}")),
            Event::RoundFailed { task, reasons, mark, .. } => {
                let task = self.task_mut(*task);
                task.spent.rounds_lived += 1;
                task.reasons = reasons.clone();
                task.marks.push(mark.clone());
            }
            Event::RailTripped { task, rail } => self.note(*task, format!("stopped: {rail}")),
            Event::TaskSettled { task, end } => self.settled(*task, end, at),
            Event::TaskReopened { task } => self.reopened(*task),
            Event::TaskContinued { task, words } => {
                self.task_mut(*task).words = Some((**words).clone());
                self.run.focus = Some(*task);
            }
            Event::TurnFailed { task, why } => self.turn_failed(*task, why),
            Event::WaitBegan { task, step, until, .. } => self.waits(*task, *step, *until, at),
            Event::WaitEnded { task } => self.waits_no_more(*task, at),
            Event::AccountHeld { account, until, why, text, trips, guess } => {
                let hold = Hold { until: *until, text: text.clone(), guess: *guess };
                self.held(account, hold, *why, *trips);
            }
            Event::AccountFreed { account } => self.freed(account, at),
            Event::Halted { halt } => {
                self.run.halt = Some(halt.clone());
                self.run.focus = None;
            }
            Event::Resumed => (self.run.halt, self.run.focus) = (None, None),
            Event::LimitsChanged { limits, config, model } => {
                self.run.limits = (**limits).clone();
                if let Some(config) = config {
                    self.run.config.clone_from(config);
                }
                if model.is_some() {
                    self.run.options.model.clone_from(model);
                }
            }
            Event::Switched { switch, on, by } => self.switched(*switch, *on, by),
            Event::RoomChanged { short } => self.run.short = short.clone(),
            Event::TimePassed => {}
        }
    }

    /// Ends a record whose events were applied one by one.
    pub fn seal(&mut self, seq: u64, at: Time) {
        self.count_time(at);
        self.seq = seq;
    }

    /// Counts the time since the last record, before anything changes, if something was at work. A
    /// rest, a question and a wait for an account are not work.
    fn count_time(&mut self, at: Time) {
        if self.is_at_work() {
            self.run.active_ms += at.since_ms(self.at).min(ACTIVE_GAP_MAX_MS);
        }
        self.at = at;
    }

    fn add(&mut self, id: TaskId, parent: Option<TaskId>, pipeline: Pipeline, spec: &TaskEntry) {
        let before: Vec<TaskId> =
            spec.depends_on.iter().filter_map(|name| self.names.get(name).copied()).collect();
        let is_met =
            |dep: &TaskId| self.task(*dep).end().is_some_and(|end| self.satisfies(*dep, end));
        let needs = before.iter().filter(|dep| !is_met(dep)).count() as u32;
        let of_round = parent.map_or(0, |parent| self.round_of_what_it_brings(parent));
        for dep in before {
            self.task_mut(dep).dependants.push(id);
        }
        if let Some(parent) = parent {
            let parent = self.task_mut(parent);
            parent.children.push(id);
            parent.unsettled += 1;
        }
        self.names.insert(spec.name.clone(), id);
        let (spec, round) = (spec.clone(), 1);
        self.tasks.push(Task {
            id,
            parent,
            pipeline,
            spec,
            round,
            of_round,
            needs,
            ..Task::default()
        });
    }

    /// The round of new child tasks: those brought after the tasks of a round are for the next one.
    fn round_of_what_it_brings(&self, task: TaskId) -> u32 {
        let now = self.task(task);
        now.round + u32::from(now.is_past_children())
    }

    fn moved(&mut self, id: TaskId, step: Step, round: u32, at: Time) {
        self.run.moved_at = at;
        let task = self.task_mut(id);
        if task.status == Status::Open {
            // The task starts or was re-opened by a person: the rounds before are forgiven.
            task.spent.rounds_forgiven = round.saturating_sub(1);
        }
        if task.round != round {
            task.spent.retries.clear();
            task.skipped.clear();
        }
        task.round = round;
        task.spent.tries = 0;
        task.started_at.get_or_insert(at);
        self.set_status(id, Status::At { step });
    }

    fn started(&mut self, attempt: AttemptId, live: LiveAttempt) {
        self.probes(attempt, &live);
        let LiveAttempt { task, step, since: at, .. } = live;
        let spent = &mut self.task_mut(task).spent;
        spent.attempts += 1;
        spent.tries += 1;
        self.run.moved_at = at;
        self.set_status(task, Status::Running { step, attempt });
        self.live.insert(attempt, live);
    }

    fn ended(&mut self, id: TaskId, step: Step, shown: Shown) {
        self.run.moved_at = shown.at;
        self.set_status(id, Status::At { step });
        self.probed(shown.id, &shown.outcome);
        if let Some(tip) = &shown.facts.tip {
            self.run.tip = Some(tip.clone());
        }
        self.run.gates.note(shown.id, &shown.outcome, &shown.facts);
        self.run.seeds.is_used |= shown.facts.warm && shown.outcome == Outcome::Passed;
        self.run.seeds.is_refuted |= step == Step::Prove && shown.outcome.failure().is_some();
        let task = self.task_mut(id);
        task.spent.work_ms += shown.facts.ms;
        task.notes.extend(shown.facts.notes.iter().cloned());
        shown.facts.used.iter().for_each(|used| task.used.add(used));
        if let Some(base) = &shown.facts.base {
            task.base = Some(base.clone());
        }
        if let Some(tree) = &shown.facts.tree {
            task.tree = Some(tree.clone());
        }
        if let Some(commit) = &shown.facts.commit {
            task.commit = Some(commit.clone());
        }
        task.talk.ended(&shown, &task.cut_short);
        match shown.outcome {
            Outcome::Lost | Outcome::Revoked | Outcome::Quota { .. } | Outcome::Away { .. } => {
                if task.cut_short.len() == CUT_SHORT_MAX {
                    task.cut_short.remove(0);
                }
                task.cut_short.push(shown.id);
            }
            Outcome::Passed
            | Outcome::Failed { .. }
            | Outcome::Misconfigured { .. }
            | Outcome::Broke { .. }
            | Outcome::Skipped { .. } => task.cut_short.clear(),
        }
        match shown.outcome {
            Outcome::Passed
            | Outcome::Failed { .. }
            | Outcome::Misconfigured { .. }
            | Outcome::Skipped { .. } => {
                if let Outcome::Skipped { why } = &shown.outcome {
                    task.skipped.insert(step, why.clone());
                }
                task.words = None;
                task.broken_at = None;
                task.results.insert(step, shown);
            }
            Outcome::Broke { .. } => {
                *task.spent.retries.entry(step).or_default() += 1;
                task.spent.retries_all += 1;
                task.broken = Some(shown);
                task.broken_at = Some(step);
            }
            Outcome::Lost => task.spent.interruptions += 1,
            Outcome::Away { why: HoldWhy::Machine(_), .. } => task.spent.hindered += 1,
            Outcome::Quota { .. } | Outcome::Away { .. } | Outcome::Revoked => {}
        }
    }

    fn billed(&mut self, id: AttemptId, task: TaskId, bill: Bill) {
        let before = self.bill_of(id);
        let after = before.max(bill);
        self.bills.insert(id, after);
        let rise = after.since(before);
        self.run.spent = self.run.spent.plus(rise);
        let spent = &mut self.task_mut(task).spent;
        spent.bill = spent.bill.plus(rise);
    }

    fn given(&mut self, id: AttemptId, task: TaskId, usd: Micros, at: Time) {
        if usd == Micros(0) {
            self.grants.remove(&id);
        } else {
            self.grants.insert(id, Grant { task, usd, at, owed: self.bill_of(id), ended: None });
        }
    }

    fn waits(&mut self, id: TaskId, step: Step, until: Time, at: Time) {
        let waits = until.since_ms(at);
        let spent = &mut self.task_mut(id).spent;
        spent.waited_ms += waits;
        spent.wait_ms = waits;
        self.set_status(id, Status::Waiting { step, until });
    }

    fn waits_no_more(&mut self, id: TaskId, at: Time) {
        if let Status::Waiting { step, until } = self.task(id).status {
            let spent = &mut self.task_mut(id).spent;
            spent.waited_ms -= until.since_ms(at).min(spent.wait_ms);
            self.set_status(id, Status::At { step });
        }
    }

    fn settled(&mut self, id: TaskId, end: &TaskEnd, at: Time) {
        self.run.moved_at = at;
        self.set_status(id, Status::Settled(end.clone()));
        if self.run.focus == Some(id) {
            self.run.focus = None;
        }
        let task = self.task_mut(id);
        task.ended_at = Some(at);
        task.words = None;
        task.talk.stands = None;
        let parent = task.parent;
        let dependants = task.dependants.clone();
        if let Some(parent) = parent {
            self.task_mut(parent).unsettled -= 1;
        }
        if self.satisfies(id, end) {
            for dependant in dependants {
                self.task_mut(dependant).needs -= 1;
            }
        }
    }

    fn reopened(&mut self, id: TaskId) {
        let Some(end) = self.task(id).end().cloned() else { return };
        self.set_status(id, Status::Open);
        let task = self.task_mut(id);
        task.ended_at = None;
        task.talk.failed_turn = None;
        // Only a person who continues a step re-opens one that is done.
        if end == TaskEnd::Closed && task.pipeline.continues_at().is_some() {
            task.talk.stands = Some(Box::new(task.standing()));
        }
        task.marks.clear();
        task.spent.retries.clear();
        task.spent.retries_all = 0;
        task.spent.interruptions = 0;
        task.spent.hindered = 0;
        let parent = task.parent;
        let dependants = task.dependants.clone();
        if let Some(parent) = parent {
            self.task_mut(parent).unsettled += 1;
        }
        if self.satisfies(id, &end) {
            for dependant in dependants {
                self.task_mut(dependant).needs += 1;
            }
        }
    }

    fn turn_failed(&mut self, id: TaskId, why: &str) {
        let task = self.task_mut(id);
        if let Some(stands) = task.talk.stands.take() {
            let StandingResult { base, tree, commit, results } = *stands;
            (task.base, task.tree, task.commit) = (base, tree, commit);
            task.results = results;
        }
        let text = format!("this turn failed: {why}; its earlier result stands");
        task.notes.push(text.clone());
        task.talk.failed_turn = Some(text);
    }

    fn switched(&mut self, switch: Switch, on: bool, by: &str) {
        if on {
            self.run.switches.insert(switch);
        } else {
            self.run.switches.remove(&switch);
            if switch == Switch::Review {
                self.run.reviews_waived_by.push(by.to_owned());
            }
        }
    }

    fn note(&mut self, task: TaskId, text: String) {
        self.task_mut(task).notes.push(text);
    }

    /// Whether a task above has moved past its children, which are being judged or published.
    pub fn is_behind(&self, task: TaskId) -> bool {
        let mut above = self.task(task).parent.map(|parent| self.task(parent));
        while let Some(parent) = above {
            if parent.is_past_children() {
                return true;
            }
            above = parent.parent.map(|parent| self.task(parent));
        }
        false
    }

    /// Whether the dependants of a task will never start, unless a person retries it.
    pub(crate) fn is_dead_end(&self, task: TaskId) -> bool {
        self.task(task).end().is_some_and(|end| !self.satisfies(task, end))
    }

    /// Whether the dependants of a task with this end may start. A task skipped by a person counts as
    /// done: they vouch for it. So does a failure that a reviewer weighs later, unless failing fast.
    fn satisfies(&self, task: TaskId, end: &TaskEnd) -> bool {
        match end {
            TaskEnd::Closed | TaskEnd::Skipped { why: Skip::Asked } => true,
            TaskEnd::Failed { .. } => self.is_assessed(task) && !self.is_failing_fast(),
            TaskEnd::Skipped {
                why: Skip::Blocked { .. } | Skip::Stopped { .. } | Skip::Dropped,
            } => false,
        }
    }

    fn is_assessed(&self, task: TaskId) -> bool {
        let Some(parent) = self.task(task).parent else { return false };
        let stages = self.task(parent).pipeline.stages();
        stages.iter().any(|stage| matches!(stage.work, Work::Children(_, Failing::Assess)))
    }
}

impl Run {
    pub(super) fn begin(spec: &RunSpec, at: Time) -> Run {
        Run {
            id: spec.id.clone(),
            flow: spec.flow,
            title: spec.title.clone(),
            source: spec.source.clone(),
            started_by: spec.started_by.clone(),
            base_branch: spec.base_branch.clone(),
            base: spec.base.clone(),
            branch: spec.branch.clone(),
            switches: spec.switches.clone(),
            limits: spec.limits.clone(),
            config: spec.config.clone(),
            red_base_allowed: spec.red_base_allowed,
            holdout: spec.holdout.clone(),
            options: spec.options.clone(),
            plan: spec.plan.clone(),
            started_at: at,
            moved_at: at,
            ..Run::default()
        }
    }
}
