//! The state of a run: a fold over its events and nothing else.
//!
//! Invariant: only [`State::apply`] changes the state, and only [`State::set_status`] changes a
//! status, so the indexes beside the tasks can't drift from them.

mod account;
mod apply;
mod grant;
mod index;
mod talk;

pub use account::{Account, Hold, LaneState};
pub use grant::Grant;
pub use talk::{BuilderSession, BuilderTalk, StandingResult};

use crate::config::Options;
use crate::event::{
    Bill, Facts, Halt, Outcome, Record, RoundMark, SessionPrompt, SessionTotal, Skip, TaskEnd,
    TaskEntry,
};
use crate::flow::{Flow, Pipeline, RoundReason};
use crate::gate_book::GateBook;
use crate::id::{AttemptId, TaskId, Time};
use crate::limit::Limits;
use crate::pipeline::{Stage, Switch, Work};
use crate::skill::Used;
use crate::step::Step;
use crate::warmth::SeedTrust;
use index::Index;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Everything that is known of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The number of the last applied record.
    pub seq: u64,
    pub at: Time,
    pub run: Run,
    pub tasks: Vec<Task>,
    /// The attempts that run now.
    pub live: BTreeMap<AttemptId, LiveAttempt>,
    bills: BTreeMap<AttemptId, Bill>,
    /// The money given to attempts whose whole cost is not known yet.
    #[serde(default)]
    pub grants: BTreeMap<AttemptId, Grant>,
    names: BTreeMap<String, TaskId>,
    index: Index,
}

/// The run as a whole: its specification as it stands now, and its progress.
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
    /// The tip of the branch after the last merge that is on the record; none in older journals.
    #[serde(default)]
    pub tip: Option<String>,
    pub switches: BTreeSet<Switch>,
    pub limits: Limits,
    pub config: String,
    pub red_base_allowed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdout: Option<String>,
    #[serde(default)]
    pub options: Options,
    pub plan: Option<String>,
    pub started_at: Time,
    pub moved_at: Time,
    pub epoch: u64,
    pub boots: u32,
    pub halt: Option<Halt>,
    /// The resource that the machine is short of; meanwhile no more parallel work is started.
    pub short: Option<String>,
    pub spent: Bill,
    /// The time in which an agent or a command was at work, also on what a stop let finish. Rests,
    /// questions to a person and waits for an account do not count.
    pub active_ms: u64,
    /// The names of those who switched the review off; never forgotten.
    pub reviews_waived_by: Vec<String>,
    /// The accounts that are in trouble, or were and have not worked since.
    pub accounts: BTreeMap<String, Account>,
    /// The only task that is worked on; the run halts when it has ended.
    #[serde(default)]
    pub focus: Option<TaskId>,
    /// The gates that were run.
    #[serde(default, skip_serializing_if = "GateBook::is_empty")]
    pub gates: GateBook,
    /// What gates over seeds have shown.
    #[serde(default, skip_serializing_if = "SeedTrust::is_unused")]
    pub seeds: SeedTrust,
}

/// An attempt that runs now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveAttempt {
    pub task: TaskId,
    pub step: Step,
    pub lane: u32,
    pub since: Time,
}

/// A task of the run, or the run itself as the root of all tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub id: TaskId,
    pub parent: Option<TaskId>,
    pub pipeline: Pipeline,
    pub spec: TaskEntry,
    pub status: Status,
    pub round: u32,
    /// The round of the parent task for which this task was brought.
    #[serde(default)]
    pub of_round: u32,
    /// A person's prompt for its session, until the agent has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<SessionPrompt>,
    pub children: Vec<TaskId>,
    pub dependants: Vec<TaskId>,
    /// The number of dependencies that have not closed yet.
    pub needs: u32,
    /// The number of children that have not settled yet.
    pub unsettled: u32,
    pub spent: Spent,
    /// The last result of each step.
    pub results: BTreeMap<Step, Shown>,
    /// The last broken try, for messages to a person.
    pub broken: Option<Shown>,
    /// The step that broke last, if nothing has ended in any other way since.
    #[serde(default)]
    pub broken_at: Option<Step>,
    /// The last attempts that were cut short, the newest last. The next attempt continues with the
    /// work of the newest that had done any.
    pub cut_short: Vec<AttemptId>,
    pub marks: Vec<RoundMark>,
    pub reasons: Vec<RoundReason>,
    pub skipped: BTreeMap<Step, String>,
    pub notes: Vec<String>,
    /// The skills, MCP servers and sub-agents that its builds used.
    #[serde(default, skip_serializing_if = "Used::is_empty")]
    pub used: Used,
    pub sessions: BTreeMap<Step, String>,
    #[serde(default, skip_serializing_if = "BuilderTalk::is_empty")]
    pub talk: BuilderTalk,
    /// The vendors' own totals, by session.
    #[serde(default)]
    pub totals: BTreeMap<String, SessionTotal>,
    /// The commit that the work is based on, its current tree, and the controller's commit of it.
    pub base: Option<String>,
    pub tree: Option<String>,
    pub commit: Option<String>,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
}

/// The status of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "s", rename_all = "snake_case")]
pub enum Status {
    #[default]
    Open,
    At {
        step: Step,
    },
    Running {
        step: Step,
        attempt: AttemptId,
    },
    Waiting {
        step: Step,
        until: Time,
    },
    Settled(TaskEnd),
}

/// The amounts that a task has used of each limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// The rounds that no longer count because a person re-opened the task.
    pub rounds_forgiven: u32,
    pub rounds_lived: u32,
    /// The broken tries in this round, by step.
    pub retries: BTreeMap<Step, u32>,
    pub retries_all: u32,
    pub interruptions: u32,
    /// The number of attempts that a fault of the machine ended. They never fail the task.
    #[serde(default)]
    pub hindered: u32,
    pub waited_ms: u64,
    /// The length of the current or last wait, which `waited_ms` includes.
    pub wait_ms: u64,
    pub bill: Bill,
    /// The number of attempts of all steps.
    pub attempts: u32,
    /// The number of attempts of the current step in this round.
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

impl State {
    /// Rebuilds the state from records in order.
    pub fn replay<'a>(records: impl IntoIterator<Item = &'a Record>) -> State {
        let mut state = State::default();
        for record in records {
            state.apply_record(record);
        }
        state
    }

    /// Applies all events of a record.
    pub fn apply_record(&mut self, record: &Record) {
        for (place, event) in record.events.iter().enumerate() {
            self.apply(event, record.seq, place as u32, record.at);
        }
        self.seal(record.seq, record.at);
    }

    /// Whether the run has been started.
    pub fn has_begun(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// The task with this id; panics if there is none.
    pub fn task(&self, id: TaskId) -> &Task {
        &self.tasks[id.index()]
    }

    /// The run itself as a task.
    pub fn root(&self) -> Option<&Task> {
        self.tasks.first()
    }

    /// The task with this name; the empty name is the run itself.
    pub fn named(&self, name: &str) -> Option<&Task> {
        self.names.get(name).map(|id| self.task(*id))
    }

    /// The tips of the run's branch that merges have recorded.
    pub fn merged_tips(&self) -> impl Iterator<Item = &str> {
        let merges = self.tasks.iter().filter_map(|task| task.last(Step::Merge));
        merges.filter_map(|shown| shown.facts.tip.as_deref())
    }

    /// The names of the run's tasks, each with the commit by which it was merged, if it was.
    pub fn task_commits(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let tasks = self.tasks.iter().filter(|task| task.parent.is_some());
        tasks.map(|task| {
            let merge = task.last(Step::Merge);
            (task.name(), merge.and_then(|shown| shown.facts.commit.as_deref()))
        })
    }

    /// The end of the run, if it is over.
    pub fn end(&self) -> Option<&TaskEnd> {
        self.root()?.end()
    }

    /// Whether nothing runs and nothing will, until a person acts.
    pub fn is_at_rest(&self) -> bool {
        let nobody_works = self.live.len() as u32 == self.index.people_live;
        let is_asking = self.is_only_asking();
        nobody_works && (self.end().is_some() || self.run.halt.is_some() || is_asking)
            || self.run.halt.as_ref().is_some_and(|halt| halt.now)
    }

    /// Whether the run waits for a person's answer and has nothing else to do. Each decision starts
    /// the ready tasks that can start, so with nobody at work those left over are in the way of the
    /// asked one. Effects are different: they may wait for the machine, which time alone frees.
    pub fn is_only_asking(&self) -> bool {
        self.index.people_live > 0
            && self.live.len() as u32 == self.index.people_live
            && self.index.waiting.is_empty()
            && self.index.ready_aside.is_empty()
    }

    /// The tasks for which a worker is needed, the most urgent first.
    pub fn ready(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.index.ready.iter().map(|rank| rank.task)
    }

    /// The tasks at an effect of the controller or at a person's gate.
    pub fn ready_aside(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.index.ready_aside.iter().copied()
    }

    /// The started, unfinished tasks that declare the paths they write.
    pub fn writing(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.index.writing.iter().copied()
    }

    /// The open gate at which a person has to answer, if there is one.
    pub fn gate(&self) -> Option<(AttemptId, &LiveAttempt)> {
        if self.index.people_live == 0 {
            return None;
        }
        self.live.iter().find(|(_, live)| self.is_gate(live)).map(|(id, live)| (*id, live))
    }

    /// Whether an attempt waits for a person's answer.
    pub fn is_gate(&self, live: &LiveAttempt) -> bool {
        self.task(live.task).stage().is_some_and(|stage| stage.work == Work::Person)
    }

    /// The number of workers at work.
    pub fn slots_live(&self) -> u32 {
        self.index.slots_live
    }

    /// The number of running effects of the controller.
    pub fn serial_live(&self) -> u32 {
        self.index.serial_live
    }

    /// The wait that ends first, and its task.
    pub fn next_wake(&self) -> Option<(Time, TaskId)> {
        self.index.waiting.first().copied()
    }

    /// The waiting tasks, the first to continue first.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = TaskId> + '_ {
        self.index.waiting.iter().map(|(_, task)| *task)
    }

    /// Whether an agent, a command or an effect is at work. A stop lets the steps that have begun go
    /// on, unless it ends everything at once: an effect that is live then waits for the next process.
    pub fn is_at_work(&self) -> bool {
        let is_all_ended = self.run.halt.as_ref().is_some_and(|halt| halt.now);
        !is_all_ended && self.live.len() as u32 > self.index.people_live
    }

    /// The tasks that wait beyond a time.
    pub fn waiting_beyond(&self, at: Time) -> Vec<TaskId> {
        let beyond = (at, TaskId(u32::MAX));
        self.index.waiting.range(beyond..).map(|(_, task)| *task).collect()
    }

    /// Whether a switch is on for a task, by the run or by the task itself.
    pub fn is_on(&self, switch: Switch, task: &Task) -> bool {
        self.run.switches.contains(&switch) || task.spec.switches.contains(&switch)
    }

    /// Whether tasks that depend on a failed one are skipped.
    pub fn is_failing_fast(&self) -> bool {
        self.run.switches.contains(&Switch::FailFast)
    }

    /// Whether the indexes agree with a look at every task.
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

impl Task {
    /// The name of the task; empty for the run itself.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// The name in messages, logs and refs; the run itself is `run`.
    pub fn label(&self) -> &str {
        if self.parent.is_some() { self.name() } else { "run" }
    }

    /// The step that the task is at; none before its start and after its end.
    pub fn step(&self) -> Option<Step> {
        match self.status {
            Status::At { step } | Status::Running { step, .. } | Status::Waiting { step, .. } => {
                Some(step)
            }
            Status::Open | Status::Settled(_) => None,
        }
    }

    /// The stage of the pipeline that the task is at.
    pub fn stage(&self) -> Option<&'static Stage> {
        let step = self.step()?;
        self.pipeline.stages().iter().find(|stage| stage.step == step)
    }

    /// Whether the task is at a stage after the one at which its children run.
    pub fn is_past_children(&self) -> bool {
        let place = |step: Step| self.pipeline.place(step);
        let children = self.pipeline.children().and_then(place);
        children.is_some() && self.step().and_then(place) > children
    }

    /// Whether a stage after the one of its children has a result in this round.
    pub fn has_judged_its_children(&self) -> bool {
        let stages = self.pipeline.stages().iter().rev();
        let mut after = stages.take_while(|stage| !matches!(stage.work, Work::Children(..)));
        after.any(|stage| self.shown(stage.step).is_some())
    }

    /// The result of a step in this round.
    pub fn shown(&self, step: Step) -> Option<&Shown> {
        self.results.get(&step).filter(|shown| shown.round == self.round)
    }

    /// The last result of a step, in any round.
    pub fn last(&self, step: Step) -> Option<&Shown> {
        self.results.get(&step)
    }

    /// Whether the last result of a step is a failure.
    pub fn has_failed(&self, step: Step) -> bool {
        self.last(step).is_some_and(|shown| matches!(shown.outcome, Outcome::Failed { .. }))
    }

    /// Whether the task declares paths and writes them itself, not through child tasks.
    pub fn writes_somewhere(&self) -> bool {
        !self.spec.paths.is_empty() && self.pipeline.children().is_none()
    }

    /// The end of the task, if it is over.
    pub fn end(&self) -> Option<&TaskEnd> {
        match &self.status {
            Status::Settled(end) => Some(end),
            Status::Open | Status::At { .. } | Status::Running { .. } | Status::Waiting { .. } => {
                None
            }
        }
    }

    /// Whether the task is over.
    pub fn is_settled(&self) -> bool {
        self.end().is_some()
    }

    /// Whether the task was brought for a round that never started.
    pub fn is_dropped(&self) -> bool {
        self.status == Status::Settled(TaskEnd::Skipped { why: Skip::Dropped })
    }

    /// Whether the task is done.
    pub fn is_closed(&self) -> bool {
        self.status == Status::Settled(TaskEnd::Closed)
    }

    /// The rounds used since a person last re-opened the task.
    pub fn rounds_used(&self) -> u32 {
        self.round.saturating_sub(self.spent.rounds_forgiven)
    }
}
