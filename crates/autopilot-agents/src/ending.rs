//! How one launch of an agent ended, judged from all that was seen of it.

use serde::{Deserialize, Serialize};

use crate::event::AgentUsage;

/// The end of one launch.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentEnding {
    pub outcome: AgentOutcome,
    /// The text of the agent's final message, or its whole output.
    pub answer: String,
    /// The value from the agent's own schema mechanism, to be validated like any other answer.
    pub structured: Option<serde_json::Value>,
    /// The id under which the session can be resumed.
    pub session: Option<String>,
    /// The last report of tokens and cost; `None` if there was none.
    pub usage: Option<AgentUsage>,
    /// The lines that could not be decoded.
    pub odd: OddLines,
}

impl AgentEnding {
    /// The end of a launch of which nothing but its outcome is known.
    pub fn new(outcome: AgentOutcome) -> Self {
        let (answer, odd) = (String::new(), OddLines::default());
        AgentEnding { outcome, answer, structured: None, session: None, usage: None, odd }
    }
}

/// The judgement on a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum AgentOutcome {
    /// The agent finished its turn.
    Success,
    /// The agent failed, and the try is spent.
    Broke { cause: Cause, why: String },
    /// The account reached a limit and must wait, until the given time if the vendor named one.
    Quota { until_unix: Option<i64>, why: String },
    /// The login or the key was rejected.
    Auth { why: String },
    /// The vendor's service could not be reached.
    Outage { why: String },
    /// The agent was stopped by somebody.
    Interrupted,
}

/// The cause for which a try is spent. The engine answers some of them differently: a lost session
/// or a full context calls for a fresh session, an unknown model for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The model does not exist, or the account may not use it.
    Model,
    /// The prompt did not fit into the model's context.
    Context,
    /// The answer reached the model's length limit.
    OutputLimit,
    /// The model refused to answer.
    Refusal,
    /// The agent reached its limit of turns.
    Turns,
    /// The agent reached its limit of money.
    Budget,
    /// The agent gave up on an answer that satisfies the schema.
    Schema,
    /// The session to resume is gone.
    Session,
    /// The vendor rejected the request itself.
    Request,
    /// The agent ended without an answer.
    Empty,
    /// The agent never started: bad flag, bad file, not a repository.
    Startup,
    /// The process failed or was killed.
    Crash,
    /// The step's time limit was reached.
    TimedOut,
    /// The process showed no activity for too long.
    Stuck,
    /// Any other cause.
    Other,
}

impl AgentOutcome {
    /// A spent try with its cause and a reason for people.
    pub fn broke(cause: Cause, why: impl Into<String>) -> Self {
        AgentOutcome::Broke { cause, why: why.into() }
    }

    /// Whether the trouble lies outside the task: every worker with this account or model would end
    /// the same.
    pub fn is_infrastructure(&self) -> bool {
        match self {
            AgentOutcome::Auth { .. }
            | AgentOutcome::Outage { .. }
            | AgentOutcome::Quota { .. } => true,
            AgentOutcome::Broke { cause, .. } => *cause == Cause::Model,
            AgentOutcome::Success | AgentOutcome::Interrupted => false,
        }
    }
}

/// The number of lines that the decoder could not use. They never fail a launch; a rise hints at a
/// new version of the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OddLines {
    /// Lines that are not a JSON object where one is expected.
    pub malformed: u64,
    /// Events of an unknown type.
    pub unknown: u64,
    /// Lines longer than the host's limit, which were not decoded.
    pub cut: u64,
}

/// The end of a process as the host saw it, and as the record of a call keeps it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExitFacts {
    #[serde(rename = "exit")]
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// The process was killed at the step's time limit.
    pub timed_out: bool,
    /// The process was killed because it showed no activity.
    pub stuck: bool,
    /// The process was told that nothing more comes, did not end, and was killed by us.
    pub lingered: bool,
}

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

impl ExitFacts {
    /// A process that ended by itself with this exit code.
    pub fn code(code: i32) -> Self {
        ExitFacts { code: Some(code), ..ExitFacts::default() }
    }

    /// A process that was killed by this signal.
    pub fn signal(signal: i32) -> Self {
        ExitFacts { signal: Some(signal), ..ExitFacts::default() }
    }

    /// Whether we ended the process, and nobody else did: a process that dies otherwise has not
    /// ended well, whatever it printed before.
    pub fn is_by_us(&self) -> bool {
        self.timed_out || self.stuck || self.lingered
    }

    /// Whether the process exited with code 0.
    pub fn is_zero(&self) -> bool {
        self.code == Some(0)
    }

    /// The outcome if the process did not end by itself.
    pub fn forced(&self) -> Option<AgentOutcome> {
        if self.timed_out {
            return Some(AgentOutcome::broke(
                Cause::TimedOut,
                "the agent hit the step's time limit",
            ));
        }
        if self.stuck {
            return Some(AgentOutcome::broke(Cause::Stuck, "the agent showed no sign of life"));
        }
        match self.ending_signal()? {
            SIGINT | SIGTERM => Some(AgentOutcome::Interrupted),
            signal => Some(AgentOutcome::broke(
                Cause::Crash,
                format!("the agent was killed by signal {signal}"),
            )),
        }
    }

    /// Says how the process ended, as the rest of a sentence about it.
    pub fn describe(&self) -> String {
        match (self.code, self.signal) {
            (Some(code), _) => format!("exited with code {code}"),
            (None, Some(signal)) => format!("was killed by signal {signal}"),
            (None, None) => "ended without an exit code".to_owned(),
        }
    }

    /// The signal that ended the process. Shells and runtimes report one as 128 plus its number.
    fn ending_signal(&self) -> Option<i32> {
        let by_code = self.code.filter(|code| (129..=159).contains(code)).map(|code| code - 128);
        self.signal.or(by_code)
    }
}
