//! Durable facts, in the past tense. The journal is a list of records of these and nothing else.
//!
//! There is an event for every decision that a limit or a person could have changed and for every
//! fact from outside; everything that follows from events is folded, not stored.

mod bill;
mod facts;
mod halt;

pub use bill::{Bill, SessionTotal, TokenCount};
pub use facts::{AnsweringAgent, Facts, FailedCommand, SessionEnd, StepAnswer, Verdict};
pub use halt::{Halt, HaltWhy, HoldWhy, MachineFault, THIS_MACHINE, away};

use crate::config::{Options, WorkBy};
use crate::flow::{Flow, Pipeline, RoundReason};
use crate::id::{AttemptId, Micros, TaskId, Time};
use crate::limit::Limits;
use crate::number::count;
use crate::pipeline::Switch;
use crate::rail::Rail;
use crate::step::Step;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// One decision with everything that follows from it. Nothing half-decided is ever on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub seq: u64,
    pub at: Time,
    pub events: Vec<Event>,
}

impl Record {
    /// The events with their ids. An attempt has the id of the event that started it.
    pub fn numbered(&self) -> impl Iterator<Item = (AttemptId, &Event)> {
        let id = |place: usize| AttemptId { seq: self.seq, place: place as u32 };
        self.events.iter().enumerate().map(move |(place, event)| (id(place), event))
    }
}

/// A durable fact about a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "e", rename_all = "snake_case")]
pub enum Event {
    RunStarted {
        run: Box<RunSpec>,
    },
    /// A process took over the run; the work that the one before it had on workers is lost.
    Booted {
        epoch: u64,
    },
    TaskAdded {
        task: TaskId,
        parent: Option<TaskId>,
        pipeline: Pipeline,
        spec: Box<TaskEntry>,
    },
    /// Journaled although the table implies it, so that an old journal replays alike under a newer
    /// table.
    TaskMoved {
        task: TaskId,
        step: Step,
        round: u32,
    },
    StageSkipped {
        task: TaskId,
        step: Step,
        why: String,
    },
    AttemptStarted {
        task: TaskId,
        step: Step,
        /// The index in the step's list of agents: 0 is the preferred one.
        #[serde(default, skip_serializing_if = "is_default")]
        lane: u32,
    },
    AttemptEnded {
        id: AttemptId,
        task: TaskId,
        step: Step,
        outcome: Outcome,
        #[serde(deserialize_with = "facts::stored")]
        facts: Box<Facts>,
    },
    SessionOpened {
        id: AttemptId,
        task: TaskId,
        step: Step,
        session: String,
        /// An earlier attempt of the task had the session.
        #[serde(default, skip_serializing_if = "is_default")]
        continued: bool,
    },
    /// A bill, cumulative for the attempt.
    Billed {
        id: AttemptId,
        task: TaskId,
        bill: Bill,
        /// The vendor's own total for the session, if the vendor counts by session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<Box<SessionTotal>>,
    },
    /// The money that the attempt may spend from here on; 0 once its whole cost is known. The event is
    /// durable before the attempt can spend, so that a crash in between does not make it free.
    MoneyGiven {
        id: AttemptId,
        task: TaskId,
        usd: Micros,
    },
    Overruled {
        task: TaskId,
        why: String,
    },
    RoundFailed {
        task: TaskId,
        round: u32,
        reasons: Vec<RoundReason>,
        mark: RoundMark,
    },
    RailTripped {
        task: TaskId,
        rail: Rail,
    },
    TaskSettled {
        task: TaskId,
        end: TaskEnd,
    },
    TaskReopened {
        task: TaskId,
    },
    /// A person continues the session of a step. The run does nothing else until that has ended.
    TaskContinued {
        task: TaskId,
        words: Box<SessionPrompt>,
    },
    /// A turn that a person asked for failed; the task has its earlier result again.
    TurnFailed {
        task: TaskId,
        why: String,
    },
    WaitBegan {
        task: TaskId,
        step: Step,
        until: Time,
        /// The account that the task waits for; empty in older journals.
        #[serde(default, skip_serializing_if = "is_default")]
        account: String,
        #[serde(default, skip_serializing_if = "is_default")]
        why: HoldWhy,
        #[serde(default, skip_serializing_if = "is_default")]
        guess: bool,
    },
    WaitEnded {
        task: TaskId,
    },
    /// An account, or one model of it, is not used before `until`; without a time, not before a person
    /// resumes. `trips` counts the failures in a row.
    AccountHeld {
        account: String,
        until: Option<Time>,
        why: HoldWhy,
        text: String,
        trips: u32,
        /// The end is not known; `until` is the next try.
        #[serde(default, skip_serializing_if = "is_default")]
        guess: bool,
    },
    /// The account may be tried again, by one attempt first.
    AccountFreed {
        account: String,
    },
    Halted {
        halt: Halt,
    },
    Resumed,
    LimitsChanged {
        limits: Box<Limits>,
        /// Blob: the configuration with other models, if the models changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        config: Option<String>,
        /// The model of all agents from here on, if a person named one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    Switched {
        switch: Switch,
        on: bool,
        by: String,
    },
    /// The machine is short of a resource for more parallel work, or has enough again.
    RoomChanged {
        short: Option<String>,
    },
    /// Puts the time on the record while nothing else happens.
    TimePassed,
}

impl Event {
    /// The task that the event is about; none for an event about the run or an account.
    pub fn task(&self) -> Option<TaskId> {
        match self {
            Event::TaskAdded { task, .. }
            | Event::TaskMoved { task, .. }
            | Event::StageSkipped { task, .. }
            | Event::AttemptStarted { task, .. }
            | Event::AttemptEnded { task, .. }
            | Event::SessionOpened { task, .. }
            | Event::Billed { task, .. }
            | Event::MoneyGiven { task, .. }
            | Event::Overruled { task, .. }
            | Event::RoundFailed { task, .. }
            | Event::RailTripped { task, .. }
            | Event::TaskSettled { task, .. }
            | Event::TaskReopened { task }
            | Event::TaskContinued { task, .. }
            | Event::TurnFailed { task, .. }
            | Event::WaitBegan { task, .. }
            | Event::WaitEnded { task } => Some(*task),
            Event::RunStarted { .. }
            | Event::Booted { .. }
            | Event::AccountHeld { .. }
            | Event::AccountFreed { .. }
            | Event::Halted { .. }
            | Event::Resumed
            | Event::LimitsChanged { .. }
            | Event::Switched { .. }
            | Event::RoomChanged { .. }
            | Event::TimePassed => None,
        }
    }

    /// The task whose status the event may have changed.
    pub fn changed_task(&self) -> Option<TaskId> {
        let leaves_the_status = matches!(
            self,
            Event::StageSkipped { .. }
                | Event::SessionOpened { .. }
                | Event::Billed { .. }
                | Event::MoneyGiven { .. }
                | Event::Overruled { .. }
                | Event::RoundFailed { .. }
                | Event::RailTripped { .. }
        );
        self.task().filter(|_| !leaves_the_status)
    }
}

/// The specification of a run, fixed when it starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    pub id: String,
    pub flow: Flow,
    pub title: String,
    /// The file or text from the command line, as given.
    pub source: String,
    pub started_by: String,
    pub base_branch: String,
    pub base: String,
    pub branch: String,
    pub switches: BTreeSet<Switch>,
    pub limits: Limits,
    /// The digest of the configuration that the run is pinned to, which also names its blob.
    pub config: String,
    /// Failures of the base are allowed and only new ones count.
    pub red_base_allowed: bool,
    /// The digest of the held-out tests, which also names the copy that the run is judged by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdout: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub options: Options,
    /// The specification and the switches of the run itself, besides those of its tasks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub whole: TaskEntry,
    /// Blob: a plan that was given instead of having the planner make one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    pub tasks: Vec<TaskEntry>,
}

/// The specification of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskEntry {
    /// The name people and agents use; unique in its run.
    pub name: String,
    pub title: String,
    pub source: String,
    /// Blob: the whole specification.
    pub body: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub switches: BTreeSet<Switch>,
    /// The task is divided into further tasks when its turn comes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub expand: bool,
    /// The controller asks for the task, to repair what commands have shown to be broken.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mends: bool,
    /// The task with the higher priority starts first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i32,
    /// The length of the longest chain of tasks that waits for this one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub urgency: u32,
    /// The paths that the task may write, if declared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The agent and model for its work, if it names them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by: WorkBy,
}

/// A person's prompt for an agent's session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPrompt {
    /// Blob: the prompt.
    pub prompt: String,
    pub session: String,
    /// The session id is the agent's own, not one made here.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_its_own: bool,
    /// The attempt that had the session last, and the lane of its agent.
    pub attempt: AttemptId,
    #[serde(default, skip_serializing_if = "is_default")]
    pub lane: u32,
}

impl SessionPrompt {
    /// Whether two requests are the same one: a prompt sent twice counts once.
    pub fn say_the_same_as(&self, other: &SessionPrompt) -> bool {
        self.prompt == other.prompt && self.session == other.session
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// How an attempt ended; each spends its own limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "o", rename_all = "snake_case")]
pub enum Outcome {
    Passed,
    /// The work was done and its answer is no: spends a round.
    Failed {
        why: String,
    },
    /// The configuration makes the step impossible, whatever the work is: ends the task at once.
    Misconfigured {
        why: String,
    },
    /// The agent crashed, hung or could not be understood: spends a retry.
    Broke {
        why: String,
    },
    /// Our process or the worker died: spends an interruption.
    Lost,
    /// The quota of the account is used up: spends waiting time.
    Quota {
        until: Time,
    },
    /// The agent can't be reached or the machine can't do its part, whatever the task: spends
    /// waiting time.
    Away {
        why: HoldWhy,
        text: String,
        /// The time of the next try, if the vendor named one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Time>,
    },
    /// The controller ended the attempt: spends nothing.
    Revoked,
    Skipped {
        why: String,
    },
}

impl Outcome {
    /// The outcome of work against which these reasons were found.
    pub fn weighed(reasons: &[String]) -> Outcome {
        if reasons.is_empty() {
            Outcome::Passed
        } else {
            Outcome::Failed { why: reasons.join("; ") }
        }
    }

    /// The reason why the work was found not good enough.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Outcome::Failed { why } => Some(why),
            Outcome::Passed
            | Outcome::Misconfigured { .. }
            | Outcome::Broke { .. }
            | Outcome::Lost
            | Outcome::Quota { .. }
            | Outcome::Away { .. }
            | Outcome::Revoked
            | Outcome::Skipped { .. } => None,
        }
    }
}

/// The tree and the failure of a round, which the rails compare from round to round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundMark {
    pub tree: Option<String>,
    pub failure: String,
}

/// The end of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum TaskEnd {
    Closed,
    Skipped { why: Skip },
    Failed { why: Failure },
}

/// The reason why a task was skipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// A person asked for it.
    Asked,
    /// The task needs one that failed.
    Blocked { by: TaskId },
    /// A sibling failed and the flow stops at the first failure, or the parent task was skipped.
    Stopped { by: TaskId },
    /// The task was brought for a round that never started, because the one before is judged again.
    Dropped,
}

/// The reason why a task failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Failure {
    /// The rounds are used up.
    #[error("did not converge in {}", count(*rounds as usize, "iteration"))]
    Rounds { rounds: u32 },
    #[error("stopped: {rail}")]
    Rail { rail: Rail },
    /// A step broke more often than the limits allow.
    #[error("{step} broke: {why}")]
    Broke { step: Step, why: String },
    #[error("interrupted {}", count(*times as usize, "time"))]
    Interrupted { times: u32 },
    /// The money of this task is used up; other tasks may have some left.
    #[error("{text}")]
    Money { text: String },
    /// A stage without a way back said no.
    #[error("{step} failed: {why}")]
    Refused { step: Step, why: String },
    /// The configuration has to be changed first: exit code 78.
    #[error("{step} can't be done as configured: {why}")]
    Misconfigured { step: Step, why: String },
    /// Tasks below failed; none if all were blocked by failures elsewhere.
    #[error("{}", match failed {
        0 => "its tasks are blocked".to_owned(),
        1 => "1 task failed".to_owned(),
        failed => format!("{failed} tasks failed"),
    })]
    Children { failed: u32 },
}

impl Failure {
    /// Whether only publishing failed, which leaves finished work behind: exit code 12.
    pub fn is_push(&self) -> bool {
        match self {
            Failure::Refused { step, .. } | Failure::Broke { step, .. } => {
                step.row().leaves_machine
            }
            Failure::Rounds { .. }
            | Failure::Rail { .. }
            | Failure::Interrupted { .. }
            | Failure::Money { .. }
            | Failure::Misconfigured { .. }
            | Failure::Children { .. } => false,
        }
    }

    /// Whether the limits of the loop ended the task: exit code 11.
    pub fn is_no_convergence(&self) -> bool {
        match self {
            Failure::Rounds { .. } | Failure::Rail { .. } => true,
            Failure::Broke { .. }
            | Failure::Interrupted { .. }
            | Failure::Money { .. }
            | Failure::Refused { .. }
            | Failure::Misconfigured { .. }
            | Failure::Children { .. } => false,
        }
    }
}
