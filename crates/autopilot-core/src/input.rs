//! The inputs of the core: one closed list, heard in one place.

use crate::event::{Bill, Facts, HaltWhy, Outcome, RunSpec, SessionPrompt, SessionTotal};
use crate::id::{AttemptId, Micros, TaskId};
use crate::limit::Limits;
use crate::pipeline::Switch;
use serde::{Deserialize, Serialize};

/// Something that happened outside of the core.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The first input of a run.
    Start(Box<RunSpec>),
    /// A new process has taken over the run.
    Boot,
    /// A report on an attempt. It names the task, because late bills of forgotten attempts count too.
    Heard {
        id: AttemptId,
        task: TaskId,
        word: AttemptWord,
    },
    Asked(Ask),
    /// The resource that the machine is short of; none if it has room for more parallel work.
    Room {
        short: Option<String>,
    },
    /// Time has passed.
    Tick,
}

/// A report on an attempt from its executor.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptWord {
    Session(String),
    Bill(Bill),
    /// The amount that the attempt may spend from now on.
    Given(Micros),
    /// A bill together with the vendor's own total for the session.
    Counted {
        bill: Bill,
        total: Box<SessionTotal>,
    },
    Ended {
        outcome: Outcome,
        facts: Box<Facts>,
    },
}

/// A request from a person, or from the machine that hosts the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    Halt {
        why: HaltWhy,
        now: bool,
    },
    Resume,
    /// Continue a run that a person paused, and no other.
    Unpause,
    Retry {
        task: String,
    },
    /// Continue the session of a workflow step, and nothing else. `words` name a blob.
    Continue {
        task: String,
        words: Box<SessionPrompt>,
    },
    Skip {
        task: String,
    },
    /// The approval at an open gate. `answer` is a blob that the person gave along with it.
    Approve {
        by: String,
        answer: Option<String>,
    },
    Reject {
        by: String,
        why: String,
    },
    Limit(Box<Limits>),
    /// Other models, and limits with the lanes of those models. `config` is a blob.
    Models {
        limits: Box<Limits>,
        config: String,
        /// The model that a person named for all agents.
        model: Option<String>,
    },
    Switch {
        switch: Switch,
        on: bool,
        by: String,
    },
}

impl Ask {
    /// The confirmation for the person who asked.
    pub fn carried_out(&self) -> String {
        let of = |task: &str| match task {
            "" => "the run".to_owned(),
            name => format!("task `{name}`"),
        };
        match self {
            Ask::Halt { why: HaltWhy::Pause, .. } => {
                "pausing the run before its next step".to_owned()
            }
            Ask::Halt { now: true, .. } => "stopping the run now".to_owned(),
            Ask::Halt { now: false, .. } => "stopping the run after the current steps".to_owned(),
            Ask::Resume => "resuming the run".to_owned(),
            Ask::Unpause => "the pause is cancelled".to_owned(),
            Ask::Retry { task } => format!("retrying {}", of(task)),
            Ask::Continue { task, .. } => format!("continuing {}", of(task)),
            Ask::Skip { task } => format!("skipped {}", of(task)),
            Ask::Approve { .. } => "approved".to_owned(),
            Ask::Reject { .. } => "rejected".to_owned(),
            Ask::Limit(_) => "limits changed".to_owned(),
            Ask::Models { .. } => "models changed".to_owned(),
            Ask::Switch { .. } => "setting changed".to_owned(),
        }
    }
}
