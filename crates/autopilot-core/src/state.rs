//! What is known of a run: a fold over its events and nothing else.
//!
//! Invariant: only [`State::apply`] changes it, and only [`State::set_status`] changes a status, so
//! the indexes beside the tasks can't drift from them.

mod account;
mod apply;

pub use account::{Account, Hold, LaneState};

use crate::config::Options;
use crate::event::{
    Bill, Facts, Halt, Outcome, Record, RoundMark, RunSpec, SessionPrompt, SessionTotal, Skip,
    TaskEnd, TaskEntry,
};
use crate::flow::{Flow, Pipeline, RoundReason};
use crate::id::{AttemptId, Micros, TaskId, Time};
use crate::limit::Limits;
use crate::pipeline::{Stage, Switch, Work};
use crate::skill::Used;
use crate::step::Step;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Of the last record applied.
    pub seq: u64,
    pub at: Time,
    pub run: Run,
    pub tasks: Vec<Task>,
    /// What runs now, by attempt.
    pub live: BTreeMap<AttemptId, LiveAttempt>,
    bills: BTreeMap<AttemptId, Bill>,
    /// What attempts were given that have not told all they cost.
    #[serde(default)]
    pub grants: BTreeMap<AttemptId, Grant>,
    names: BTreeMap<String, TaskId>,
    index: Index,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub id: String,
    pub flow: Flow,
    pub title: String,
    pub source: String,
    pub started_by: String,
    pub base_branch: String,
    pub base: String,
    pub branch: String,
    pub switches: BTreeSet<Switch>,
    pub limits: Limits,
    pub config: String,
    pub red_base_allowed: bool,
    #[serde(default)]
    pub options: Options,
    pub plan: Option<String>,
    pub started_at: Time,
    pub moved_at: Time,
    pub epoch: u64,
    pub boots: u32,
    pub halt: Option<Halt>,
    /// What the machine is short of; no more work is begun beside what runs.
    pub short: Option<String>,
    pub spent: Bill,
    /// Time in which somebody was at work on it: not while it was halted, nor while a person was
    /// asked or an account waited for and nothing else could be done.
    pub active_ms: u64,
    /// Rounds in which a person had the review left out; never forgotten.
    pub reviews_waived_by: Vec<String>,
    /// Accounts with which something is wrong, or was and has not been proven right since.
    pub accounts: BTreeMap<String, Account>,
    /// The only task that is worked on; the run rests when it has ended.
    #[serde(default)]
    pub focus: Option<TaskId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveAttempt {
    pub task: TaskId,
    pub step: Step,
    pub lane: u32,
    pub since: Time,
}

/// Money an attempt may be spending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub task: TaskId,
    pub usd: Micros,
    /// When it was given, and what was owed for the attempt by then.
    pub at: Time,
    pub owed: Bill,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub id: TaskId,
    pub parent: Option<TaskId>,
    pub pipeline: Pipeline,
    pub spec: TaskEntry,
    pub status: Status,
    pub round: u32,
    /// The round of the task above that it was brought for.
    #[serde(default)]
    pub of_round: u32,
    /// What a person wants said in its session, until that is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<SessionPrompt>,
    pub children: Vec<TaskId>,
    pub dependants: Vec<TaskId>,
    /// Dependencies that have not closed yet.
    pub needs: u32,
    /// Children that have not settled yet.
    pub unsettled: u32,
    pub spent: Spent,
    /// What each step showed last.
    pub results: BTreeMap<Step, Shown>,
    /// The last try that broke, for the account given to a person.
    pub broken: Option<Shown>,
    /// The last attempts that were cut short, the newest last. What the newest that had done
    /// anything left behind is taken up by the next.
    pub cut_short: Vec<AttemptId>,
    pub marks: Vec<RoundMark>,
    pub reasons: Vec<RoundReason>,
    pub skipped: BTreeMap<Step, String>,
    pub notes: Vec<String>,
    /// Skills, MCP servers and sub-agents of all its builds.
    #[serde(default, skip_serializing_if = "Used::is_empty")]
    pub used: Used,
    pub sessions: BTreeMap<Step, String>,
    /// How far the vendors' own counts of its sessions have come, by session.
    #[serde(default)]
    pub totals: BTreeMap<String, SessionTotal>,
    /// Commit the work is based on, the tree it is at, and the controller's commit of it.
    pub base: Option<String>,
    pub tree: Option<String>,
    pub commit: Option<String>,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "s", rename_all = "snake_case")]
pub enum Status {
    Open,
    At { step: Step },
    Running { step: Step, attempt: AttemptId },
    Waiting { step: Step, until: Time },
    Settled(TaskEnd),
}

/// What a task has used of each limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Rounds that no longer count because a person re-opened the task.
    pub rounds_forgiven: u32,
    pub rounds_lived: u32,
    /// Broken tries of a step in this round.
    pub retries: BTreeMap<Step, u32>,
    pub retries_all: u32,
    pub interruptions: u32,
    pub waited_ms: u64,
    /// Of it the wait it is in, or was in last.
    pub wait_ms: u64,
    pub bill: Bill,
    /// Attempts of any step, ever.
    pub attempts: u32,
    /// Attempts of the current step in this round.
    pub tries: u32,
    pub work_ms: u64,
}

/// The result of one attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    pub id: AttemptId,
    pub round: u32,
    pub at: Time,
    pub outcome: Outcome,
    pub facts: Facts,
}

/// Sets that could be found by looking at every task; kept because there may be 100,000.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Index {
    /// Tasks at a step that a worker has to do, the most urgent first.
    ready: BTreeSet<Rank>,
    /// Tasks at a step that the controller or a person has to do.
    ready_aside: BTreeSet<TaskId>,
    /// Tasks that were begun, are not over, and said where they write.
    writing: BTreeSet<TaskId>,
    waiting: BTreeSet<(Time, TaskId)>,
    slots_live: u32,
    serial_live: u32,
    people_live: u32,
}

/// What is begun is finished first, then what a person or the planner called important, then what
/// the longest chain of others waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Rank {
    under_way: Reverse<bool>,
    priority: Reverse<i32>,
    urgency: Reverse<u32>,
    task: TaskId,
}

impl State {
    /// Rebuilds the state from records in order.
    pub fn replay<'a>(records: impl IntoIterator<Item = &'a Record>) -> State {
        let mut state = State::default();
        for record in records {
            state.apply_record(record);
        }
        state
    }

    pub fn apply_record(&mut self, record: &Record) {
        for (place, event) in record.events.iter().enumerate() {
            self.apply(event, record.seq, place as u32, record.at);
        }
        self.seal(record.seq, record.at);
    }

    pub fn has_begun(&self) -> bool {
        !self.tasks.is_empty()
    }

    pub fn task(&self, id: TaskId) -> &Task {
        &self.tasks[id.index()]
    }

    pub fn root(&self) -> Option<&Task> {
        self.tasks.first()
    }

    pub fn named(&self, name: &str) -> Option<&Task> {
        self.names.get(name).map(|id| self.task(*id))
    }

    /// How the run ended, if it is over.
    pub fn end(&self) -> Option<&TaskEnd> {
        match &self.root()?.status {
            Status::Settled(end) => Some(end),
            Status::Open | Status::At { .. } | Status::Running { .. } | Status::Waiting { .. } => {
                None
            }
        }
    }

    /// Nothing is running and nothing will be until somebody says so.
    pub fn is_at_rest(&self) -> bool {
        let nobody_works = self.live.len() as u32 == self.index.people_live;
        let is_asking = self.is_only_asking();
        nobody_works && (self.end().is_some() || self.run.halt.is_some() || is_asking)
            || self.run.halt.as_ref().is_some_and(|halt| halt.now)
    }

    /// A person is asked and there is nothing else to do.
    pub fn is_only_asking(&self) -> bool {
        self.index.people_live > 0
            && self.live.len() as u32 == self.index.people_live
            && self.index.waiting.is_empty()
            && self.index.ready.is_empty()
            && self.index.ready_aside.is_empty()
    }

    /// Tasks a worker could be given, the most urgent first.
    pub fn ready(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.index.ready.iter().map(|rank| rank.task)
    }

    /// Tasks at an effect of the controller or at a person's gate.
    pub fn ready_aside(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.index.ready_aside.iter().copied()
    }

    /// Tasks that were begun, are not over, and said where they write.
    pub fn writing(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.index.writing.iter().copied()
    }

    /// The gate a person is asked at, if one is open.
    pub fn gate(&self) -> Option<(AttemptId, &LiveAttempt)> {
        if self.index.people_live == 0 {
            return None;
        }
        self.live.iter().find(|(_, live)| self.is_gate(live)).map(|(id, live)| (*id, live))
    }

    /// Whether an attempt is ended by a person's word.
    pub fn is_gate(&self, live: &LiveAttempt) -> bool {
        self.task(live.task).stage().is_some_and(|stage| stage.work == Work::Person)
    }

    pub fn slots_live(&self) -> u32 {
        self.index.slots_live
    }

    pub fn serial_live(&self) -> u32 {
        self.index.serial_live
    }

    /// The earliest wait that ends by itself.
    pub fn next_wake(&self) -> Option<(Time, TaskId)> {
        self.index.waiting.first().copied()
    }

    /// Tasks that wait.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = TaskId> + '_ {
        self.index.waiting.iter().map(|(_, task)| *task)
    }

    /// Whether anybody but a person is at work.
    pub fn is_at_work(&self) -> bool {
        self.live.len() as u32 > self.index.people_live
    }

    pub fn waiting_beyond(&self, at: Time) -> Vec<TaskId> {
        let beyond = (at, TaskId(u32::MAX));
        self.index.waiting.range(beyond..).map(|(_, task)| *task).collect()
    }

    pub fn bill_of(&self, id: AttemptId) -> Bill {
        self.bills.get(&id).copied().unwrap_or_default()
    }

    pub fn is_on(&self, switch: Switch, task: &Task) -> bool {
        self.run.switches.contains(&switch) || task.spec.switches.contains(&switch)
    }

    pub fn is_failing_fast(&self) -> bool {
        self.run.switches.contains(&Switch::FailFast)
    }

    /// The indexes agree with what looking at every task finds.
    pub fn index_is_true(&self) -> bool {
        let mut slow = Index::default();
        for task in &self.tasks {
            slow.put(task);
        }
        slow == self.index
            && self.live.iter().all(|(id, live)| {
                self.task(live.task).status == Status::Running { step: live.step, attempt: *id }
            })
            && self.live.len() as u32
                == self.index.slots_live + self.index.serial_live + self.index.people_live
    }

    fn task_mut(&mut self, id: TaskId) -> &mut Task {
        &mut self.tasks[id.index()]
    }

    /// The one place where a status changes.
    fn set_status(&mut self, id: TaskId, status: Status) {
        let task = &mut self.tasks[id.index()];
        self.index.take(task);
        if let Status::Running { attempt, .. } = task.status {
            self.live.remove(&attempt);
        }
        task.status = status;
        self.index.put(task);
    }
}

impl Index {
    fn put(&mut self, task: &Task) {
        match &task.status {
            Status::At { step } => match task.stage().map(|stage| stage.work) {
                Some(Work::Slot) => {
                    self.ready.insert(Rank::of(task, *step));
                }
                Some(Work::Serial | Work::Person) => {
                    self.ready_aside.insert(task.id);
                }
                Some(Work::Children(..) | Work::Decide) | None => {}
            },
            Status::Waiting { until, .. } => {
                self.waiting.insert((*until, task.id));
            }
            Status::Running { .. } => *self.live(task) += 1,
            Status::Open | Status::Settled(_) => {}
        }
        if task.step().is_some() && task.spent.attempts > 0 && task.writes_somewhere() {
            self.writing.insert(task.id);
        }
    }

    fn take(&mut self, task: &Task) {
        match &task.status {
            Status::At { step } => {
                self.ready.remove(&Rank::of(task, *step));
                self.ready_aside.remove(&task.id);
            }
            Status::Waiting { until, .. } => {
                self.waiting.remove(&(*until, task.id));
            }
            Status::Running { .. } => *self.live(task) -= 1,
            Status::Open | Status::Settled(_) => {}
        }
        self.writing.remove(&task.id);
    }

    fn live(&mut self, task: &Task) -> &mut u32 {
        match task.stage().map(|stage| stage.work) {
            Some(Work::Serial) => &mut self.serial_live,
            Some(Work::Person) => &mut self.people_live,
            // Nothing else runs; a table that changed since counts as work.
            Some(Work::Slot | Work::Children(..) | Work::Decide) | None => &mut self.slots_live,
        }
    }
}

impl Rank {
    fn of(task: &Task, step: Step) -> Rank {
        Rank {
            under_way: Reverse(task.pipeline.place(step) != Some(0)),
            priority: Reverse(task.spec.priority),
            urgency: Reverse(task.spec.urgency),
            task: task.id,
        }
    }
}

impl Task {
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// The name people, logs and refs know it by; the run itself is `run`.
    pub fn label(&self) -> &str {
        if self.parent.is_some() { self.name() } else { "run" }
    }

    pub fn step(&self) -> Option<Step> {
        match self.status {
            Status::At { step } | Status::Running { step, .. } | Status::Waiting { step, .. } => {
                Some(step)
            }
            Status::Open | Status::Settled(_) => None,
        }
    }

    /// The row of the table it is at.
    pub fn stage(&self) -> Option<&'static Stage> {
        let step = self.step()?;
        self.pipeline.stages().iter().find(|stage| stage.step == step)
    }

    /// It is at a stage after the one at which the tasks below are worked on.
    pub fn is_past_children(&self) -> bool {
        let place = |step: Step| self.pipeline.place(step);
        let children = self.pipeline.children().and_then(place);
        children.is_some() && self.step().and_then(place) > children
    }

    /// What a step showed in this round.
    pub fn shown(&self, step: Step) -> Option<&Shown> {
        self.results.get(&step).filter(|shown| shown.round == self.round)
    }

    /// What a step showed last, in whatever round.
    pub fn last(&self, step: Step) -> Option<&Shown> {
        self.results.get(&step)
    }

    /// The last time it was done.
    pub fn has_failed(&self, step: Step) -> bool {
        self.last(step).is_some_and(|shown| matches!(shown.outcome, Outcome::Failed { .. }))
    }

    /// It said where it writes, and writes itself: a task with tasks below leaves that to them.
    pub fn writes_somewhere(&self) -> bool {
        !self.spec.paths.is_empty() && self.pipeline.children().is_none()
    }

    pub fn is_settled(&self) -> bool {
        matches!(self.status, Status::Settled(_))
    }

    /// It was brought for a round that was never begun.
    pub fn is_dropped(&self) -> bool {
        self.status == Status::Settled(TaskEnd::Skipped { why: Skip::Dropped })
    }

    pub fn is_closed(&self) -> bool {
        self.status == Status::Settled(TaskEnd::Closed)
    }

    /// Rounds used of those a person granted.
    pub fn rounds_used(&self) -> u32 {
        self.round.saturating_sub(self.spent.rounds_forgiven)
    }
}

impl Run {
    fn begin(spec: &RunSpec, at: Time) -> Run {
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
            options: spec.options.clone(),
            plan: spec.plan.clone(),
            started_at: at,
            moved_at: at,
            ..Run::default()
        }
    }
}
