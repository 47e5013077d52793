//! What the world tells the core. One closed list, one place that hears it.

use crate::event::{Bill, Facts, HaltWhy, Outcome, RunSpec, SessionPrompt, SessionTotal};
use crate::id::{AttemptId, Micros, TaskId};
use crate::limit::Limits;
use crate::pipeline::Switch;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The first word of a run.
    Start(Box<RunSpec>),
    /// A process took the run up again.
    Boot,
    /// The task comes along because bills count even from attempts long forgotten.
    Heard {
        id: AttemptId,
        task: TaskId,
        word: AttemptWord,
    },
    Asked(Ask),
    /// Whether the machine has room for more work at once; what it is short of, if not.
    Room {
        short: Option<String>,
    },
    /// Time has passed.
    Tick,
}

/// Said of an attempt by whoever executes it.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptWord {
    Session(String),
    Bill(Bill),
    /// It is about to be let spend this much.
    Given(Micros),
    /// A bill, and how far the vendor's own count of the session has come with it.
    Counted {
        bill: Bill,
        total: Box<SessionTotal>,
    },
    Ended {
        outcome: Outcome,
        facts: Box<Facts>,
    },
}

/// Said by a person, or by the machine the run lives on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    Halt {
        why: HaltWhy,
        now: bool,
    },
    Resume,
    Retry {
        task: String,
    },
    /// Go on with the session of a step, and with nothing else. `words` name a blob.
    Continue {
        task: String,
        words: Box<SessionPrompt>,
    },
    Skip {
        task: String,
    },
    /// The answer at an open gate. `answer` is a blob a person gave along with it.
    Approve {
        by: String,
        answer: Option<String>,
    },
    Reject {
        by: String,
        why: String,
    },
    Limit(Box<Limits>),
    /// Other models, and limits with the lanes that follow from them. `config` is a blob.
    Models {
        limits: Box<Limits>,
        config: String,
        /// A model a person named for everybody.
        model: Option<String>,
    },
    Switch {
        switch: Switch,
        on: bool,
        by: String,
    },
}

impl Ask {
    /// What has happened once the ask was carried out, in words for whoever asked.
    pub fn carried_out(&self) -> String {
        let of = |task: &str| match task {
            "" => "the run".to_owned(),
            name => format!("task `{name}`"),
        };
        match self {
            Ask::Halt { now: true, .. } => "the run is ended now".to_owned(),
            Ask::Halt { now: false, .. } => "the run stops before the next step".to_owned(),
            Ask::Resume => "the run is resumed".to_owned(),
            Ask::Retry { task } => format!("{} is retried", of(task)),
            Ask::Continue { task, .. } => format!("{} is continued", of(task)),
            Ask::Skip { task } => format!("{} is skipped", of(task)),
            Ask::Approve { .. } => "approved".to_owned(),
            Ask::Reject { .. } => "rejected".to_owned(),
            Ask::Limit(_) => "the limits are changed".to_owned(),
            Ask::Models { .. } => "the models are changed".to_owned(),
            Ask::Switch { .. } => "the setting is changed".to_owned(),
        }
    }
}
