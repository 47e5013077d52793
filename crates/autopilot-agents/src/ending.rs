//! How a run of an agent ended, judged from all that was seen of it.

use serde::{Deserialize, Serialize};

use crate::event::Usage;

#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    pub outcome: Outcome,
    /// The agent's last word: the text of its final message, or what it printed.
    pub answer: String,
    /// The answer as the agent's own schema mechanism gave it; to be validated like any other.
    pub structured: Option<serde_json::Value>,
    pub session: Option<String>,
    pub usage: Option<Usage>,
    pub odd: Odd,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    Success,
    /// The try is spent.
    Broke {
        cause: Cause,
        why: String,
    },
    /// The account must wait, until then if the vendor said so.
    Quota {
        until_unix: Option<i64>,
        why: String,
    },
    Auth {
        why: String,
    },
    Outage {
        why: String,
    },
    /// Somebody stopped it.
    Interrupted,
}

/// Why a try is spent. The engine answers some of them differently: a lost session or a full
/// context calls for a fresh session, an unknown model for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Model,
    Context,
    OutputLimit,
    Refusal,
    Turns,
    Budget,
    Schema,
    Session,
    /// The request itself was rejected.
    Request,
    /// It ended without an answer.
    Empty,
    /// It never began: bad flag, bad file, not a repository.
    Startup,
    Crash,
    TimedOut,
    Stuck,
    Other,
}

impl Outcome {
    pub fn broke(cause: Cause, why: impl Into<String>) -> Self {
        Outcome::Broke { cause, why: why.into() }
    }

    /// Nothing is wrong with the task: every worker with this account or model would end the same.
    pub fn is_infrastructure(&self) -> bool {
        match self {
            Outcome::Auth { .. } | Outcome::Outage { .. } | Outcome::Quota { .. } => true,
            Outcome::Broke { cause, .. } => *cause == Cause::Model,
            Outcome::Success | Outcome::Interrupted => false,
        }
    }
}

/// Lines that meant nothing to the decoder. They never fail a run; a rise of them tells of a new
/// version of the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Odd {
    pub malformed: u64,
    pub unknown: u64,
    /// Longer than the host's line limit, so not decoded.
    pub cut: u64,
}

/// What the host saw of the process's end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExitFacts {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub timed_out: bool,
    pub stuck: bool,
    /// It had been told that nothing more comes, did not end, and was ended by us.
    pub lingered: bool,
}

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

impl ExitFacts {
    pub fn code(code: i32) -> Self {
        ExitFacts { code: Some(code), ..ExitFacts::default() }
    }

    pub fn signal(signal: i32) -> Self {
        ExitFacts { signal: Some(signal), ..ExitFacts::default() }
    }

    /// We ended it, and nobody else: a process that dies otherwise has not ended well, whatever was
    /// printed in its name before.
    pub fn is_by_us(&self) -> bool {
        self.timed_out || self.stuck || self.lingered
    }

    pub fn is_zero(&self) -> bool {
        self.code == Some(0)
    }

    /// What ended the process if it did not end by itself.
    pub fn forced(&self) -> Option<Outcome> {
        if self.timed_out {
            return Some(Outcome::broke(Cause::TimedOut, "it ran into the step's time limit"));
        }
        if self.stuck {
            return Some(Outcome::broke(Cause::Stuck, "it showed no sign of life"));
        }
        match self.ending_signal()? {
            SIGINT | SIGTERM => Some(Outcome::Interrupted),
            signal => {
                Some(Outcome::broke(Cause::Crash, format!("it was killed by signal {signal}")))
            }
        }
    }

    pub fn describe(&self) -> String {
        match (self.code, self.signal) {
            (Some(code), _) => format!("it exited with code {code}"),
            (None, Some(signal)) => format!("it was killed by signal {signal}"),
            (None, None) => "it ended without an exit code".to_owned(),
        }
    }

    /// Shells and runtimes report a signal as 128 plus its number.
    fn ending_signal(&self) -> Option<i32> {
        let by_code = self.code.filter(|code| (129..=159).contains(code)).map(|code| code - 128);
        self.signal.or(by_code)
    }
}
