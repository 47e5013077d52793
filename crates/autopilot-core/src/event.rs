//! Durable facts, in the past tense. The journal is a list of records of these and nothing else.
//!
//! There is an event for every decision that a limit or a person could have made otherwise and for
//! every fact from outside; what follows from them is folded, not stored.

mod facts;

pub use facts::{Facts, StepAnswer, Verdict};

use crate::config::{Options, WorkBy};
use crate::flow::{Flow, Pipeline, RoundReason};
use crate::id::{AttemptId, Micros, TaskId, Time};
use crate::limit::Limits;
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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "e", rename_all = "snake_case")]
pub enum Event {
    RunStarted {
        run: Box<RunSpec>,
    },
    /// A process took the run up; whatever the one before it had on workers is gone.
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
        /// Place in the list of those who can do the step: 0 is the preferred one.
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
    },
    /// Cumulative for the attempt.
    Billed {
        id: AttemptId,
        task: TaskId,
        bill: Bill,
        /// What the vendor has counted for the whole session by then, where it counts so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<Box<SessionTotal>>,
    },
    /// What the attempt may cost from here on; nothing once it has told all it costs. Durable before
    /// it can spend any of it, so that a death in between does not make it free.
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
    /// A person goes on with the session of a step. The run does nothing else until that has ended.
    TaskContinued {
        task: TaskId,
        words: Box<SessionPrompt>,
    },
    WaitBegan {
        task: TaskId,
        step: Step,
        until: Time,
        /// What it waits for; older journals do not say it.
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
    /// Nothing is started on an account, or on one model of it, until then; without a time until
    /// somebody says so. `trips` counts how often in a row it went wrong.
    AccountHeld {
        account: String,
        until: Option<Time>,
        why: HoldWhy,
        text: String,
        trips: u32,
        /// No end is known; `until` is when it is tried again.
        #[serde(default, skip_serializing_if = "is_default")]
        guess: bool,
    },
    /// It may be tried again, by one attempt first.
    AccountFreed {
        account: String,
    },
    Halted {
        halt: Halt,
    },
    Resumed,
    LimitsChanged {
        limits: Box<Limits>,
        /// Blob: the configuration with other models, where those were changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        config: Option<String>,
        /// The model everybody uses from here on, where a person named one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    Switched {
        switch: Switch,
        on: bool,
        by: String,
    },
    /// The machine has too little left for more work at once, or has enough again.
    RoomChanged {
        short: Option<String>,
    },
    /// So that time is on the record even when nothing else happens.
    TimePassed,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    pub id: String,
    pub flow: Flow,
    pub title: String,
    /// What was given on the command line, as given.
    pub source: String,
    pub started_by: String,
    pub base_branch: String,
    pub base: String,
    pub branch: String,
    pub switches: BTreeSet<Switch>,
    pub limits: Limits,
    /// Digest of the configuration the run is pinned to, and the blob that holds it.
    pub config: String,
    /// Failures of the base are known and only new ones count.
    pub red_base_allowed: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub options: Options,
    /// What there is of the whole beside its tasks: its specification and its own switches.
    #[serde(default, skip_serializing_if = "is_default")]
    pub whole: TaskEntry,
    /// Blob with a plan somebody gave instead of having one made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    pub tasks: Vec<TaskEntry>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskEntry {
    /// The name people and agents use; unique in its run.
    pub name: String,
    pub title: String,
    pub source: String,
    /// Blob with the whole specification.
    pub body: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub switches: BTreeSet<Switch>,
    /// Planned and divided when its turn comes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub expand: bool,
    /// Of those that could begin, the higher begins first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i32,
    /// Tasks in the longest chain that waits for it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub urgency: u32,
    /// Where it may write, as far as it was said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Who does its work, where it says so.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by: WorkBy,
}

/// What a person says in a session, and whose session it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPrompt {
    /// Blob: what is said.
    pub prompt: String,
    pub session: String,
    /// The agent itself knows the session by that name.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_its_own: bool,
    /// The attempt that had the session last, and which of the step's agents that was.
    pub attempt: AttemptId,
    #[serde(default, skip_serializing_if = "is_default")]
    pub lane: u32,
}

impl SessionPrompt {
    /// Whoever says so twice means it once.
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
    /// The agent crashed, hung or could not be understood: spends a retry.
    Broke {
        why: String,
    },
    /// Our process or the worker died: spends an interruption.
    Lost,
    /// The account is used up: spends waiting time.
    Quota {
        until: Time,
    },
    /// Whoever would do the work can't be reached, whatever the task: spends waiting time.
    Away {
        why: HoldWhy,
        text: String,
        /// When to ask again, if somebody said it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Time>,
    },
    /// We ended it ourselves: spends nothing.
    Revoked,
    Skipped {
        why: String,
    },
}

/// Why nothing is started on an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldWhy {
    #[default]
    Quota,
    /// Not logged in, or the key is not accepted.
    Auth,
    /// The service or the way to it is down.
    Outage,
    /// The service knows no such model.
    Model,
}

impl HoldWhy {
    pub fn word(self) -> &'static str {
        match self {
            HoldWhy::Quota => "no quota",
            HoldWhy::Auth => "not logged in",
            HoldWhy::Outage => "service not available",
            HoldWhy::Model => "unknown model",
        }
    }

    /// What a person can do where waiting does not help.
    pub fn remedy(self) -> &'static str {
        match self {
            HoldWhy::Quota | HoldWhy::Outage => "try again later with `autopilot resume`",
            HoldWhy::Auth => "log that agent in, then `autopilot resume`",
            HoldWhy::Model => {
                "make the model known to that agent or name another in .autopilot/config.yml, \
                 then `autopilot resume` (`--model` where the command line named it)"
            }
        }
    }
}

/// Cumulative over the attempt; of two bills the larger counts, figure by figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bill {
    pub usd: Micros,
    pub tokens_in: u64,
    pub tokens_out: u64,
    /// Of `tokens_in`, those that came from the vendor's cache.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cached: u64,
    /// Something was used whose price nobody knows: `usd` is without it or, under a limit on money,
    /// has in its place the most it can have been.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unpriced: bool,
}

impl Bill {
    #[must_use]
    pub fn max(self, other: Bill) -> Bill {
        Bill {
            usd: self.usd.max(other.usd),
            tokens_in: self.tokens_in.max(other.tokens_in),
            tokens_out: self.tokens_out.max(other.tokens_out),
            cached: self.cached.max(other.cached),
            unpriced: self.unpriced || other.unpriced,
        }
    }

    /// Of two attempts, or of two turns of one.
    #[must_use]
    pub fn plus(self, other: Bill) -> Bill {
        Bill {
            usd: self.usd.plus(other.usd),
            tokens_in: self.tokens_in.saturating_add(other.tokens_in),
            tokens_out: self.tokens_out.saturating_add(other.tokens_out),
            cached: self.cached.saturating_add(other.cached),
            unpriced: self.unpriced || other.unpriced,
        }
    }

    /// What it has risen by since `before`, of which it is a later figure.
    #[must_use]
    pub fn since(self, before: Bill) -> Bill {
        Bill {
            usd: Micros(self.usd.0.saturating_sub(before.usd.0)),
            tokens_in: self.tokens_in.saturating_sub(before.tokens_in),
            tokens_out: self.tokens_out.saturating_sub(before.tokens_out),
            cached: self.cached.saturating_sub(before.cached),
            unpriced: self.unpriced,
        }
    }
}

/// A vendor's own count over all turns of a session, whoever asked for them. Whoever resumes the
/// session owes only what it rises by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTotal {
    pub session: String,
    /// Nothing where the vendor tells no cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<Micros>,
    /// Nothing where the vendor counts each turn for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenTotal>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenTotal {
    pub input: u64,
    pub output: u64,
    pub cached: u64,
}

/// What the rails compare from round to round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundMark {
    pub tree: Option<String>,
    pub failure: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum TaskEnd {
    Closed,
    Skipped { why: Skip },
    Failed { why: Failure },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// A person said so.
    Asked,
    /// It needs a task that did not close.
    Blocked { by: TaskId },
    /// A sibling failed and the flow stops at the first failure, or the task around it was left
    /// out.
    Stopped { by: TaskId },
    /// It was brought for a round that was never begun, and the one before it is judged anew.
    Dropped,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Failure {
    /// The rounds are used up.
    Rounds {
        rounds: u32,
    },
    Rail {
        rail: Rail,
    },
    /// A step broke more often than it may.
    Broke {
        step: Step,
        why: String,
    },
    Interrupted {
        times: u32,
    },
    /// The money of the task is used up; others may have some left.
    Money {
        text: String,
    },
    /// A stage without a way back said no.
    Refused {
        step: Step,
        why: String,
    },
    Children {
        failed: u32,
    },
}

impl Failure {
    /// A push that failed leaves finished work behind: exit code 12.
    pub fn is_push(&self) -> bool {
        match self {
            Failure::Refused { step, .. } | Failure::Broke { step, .. } => {
                step.row().leaves_machine
            }
            Failure::Rounds { .. }
            | Failure::Rail { .. }
            | Failure::Interrupted { .. }
            | Failure::Money { .. }
            | Failure::Children { .. } => false,
        }
    }

    /// It could go on, but the limits of the loop say no: exit code 11.
    pub fn is_no_convergence(&self) -> bool {
        match self {
            Failure::Rounds { .. } | Failure::Rail { .. } => true,
            Failure::Broke { .. }
            | Failure::Interrupted { .. }
            | Failure::Money { .. }
            | Failure::Refused { .. }
            | Failure::Children { .. } => false,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Rounds { rounds } => write!(f, "did not converge in {rounds} iterations"),
            Failure::Rail { rail } => write!(f, "halted: {rail}"),
            Failure::Broke { step, why } => write!(f, "{step} broke: {why}"),
            Failure::Interrupted { times } => write!(f, "interrupted {times} times"),
            Failure::Money { text } => f.write_str(text),
            Failure::Refused { step, why } => write!(f, "{step} failed: {why}"),
            Failure::Children { failed: 1 } => f.write_str("1 task did not close"),
            Failure::Children { failed } => write!(f, "{failed} tasks did not close"),
        }
    }
}

/// Why a run rests although it is not over. Resumable, all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halt {
    pub why: HaltWhy,
    /// End what runs instead of waiting for the step boundary.
    pub now: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum HaltWhy {
    Stop,
    Pause,
    /// A step was gone on with, which was all that was asked for.
    Continued,
    Money {
        text: String,
    },
    Wall,
    /// The account's quota comes back later than the run may wait.
    Quota {
        until: Time,
        #[serde(default, skip_serializing_if = "is_default")]
        guess: bool,
    },
    /// Nobody who could do the work can be reached, and waiting does not help.
    Away {
        account: String,
        hold: HoldWhy,
        text: String,
    },
    /// The machine can't carry the run now: full disk, read-only directory.
    Host {
        text: String,
    },
}

impl std::fmt::Display for HaltWhy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HaltWhy::Stop => f.write_str("stopped"),
            HaltWhy::Pause => f.write_str("paused"),
            HaltWhy::Continued => f.write_str("a step was gone on with, as asked"),
            HaltWhy::Money { text } | HaltWhy::Host { text } => f.write_str(text),
            HaltWhy::Quota { until, guess: true } => write!(
                f,
                "its agents are away and nobody said until when; the next try, about {}, would be \
                 later than allowed",
                until.rfc3339()
            ),
            HaltWhy::Quota { until, guess: false } => {
                write!(f, "the quota comes back at {}, later than allowed", until.rfc3339())
            }
            HaltWhy::Away { account, hold, text } => {
                write!(f, "{}; {}", away(account, *hold, text), hold.remedy())
            }
            HaltWhy::Wall => f.write_str("the time limit of the run is used up"),
        }
    }
}

/// `claude_code_cli is away (not logged in): Please run /login`
pub fn away(account: &str, why: HoldWhy, text: &str) -> String {
    let colon = if text.is_empty() { "" } else { ": " };
    format!("{account} is away ({}){colon}{text}", why.word())
}
