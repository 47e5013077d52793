//! Halts of a run and holds of an account, with the messages about them.

use super::is_default;
use crate::id::Time;
use serde::{Deserialize, Serialize};

/// A stop of a run that is not over. Every halted run can be resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halt {
    pub why: HaltWhy,
    /// Running steps are ended instead of waited for.
    pub now: bool,
}

/// The reason why a run was halted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum HaltWhy {
    Stop,
    Pause,
    /// A step was continued, and nothing else was asked for.
    Continued,
    Money {
        text: String,
    },
    Wall,
    /// The account's quota resets later than the run may wait.
    Quota {
        until: Time,
        #[serde(default, skip_serializing_if = "is_default")]
        guess: bool,
    },
    /// None of the agents for the work can be reached, and waiting does not help.
    Away {
        account: String,
        hold: HoldWhy,
        text: String,
    },
    /// The machine can't host the run now: full disk, read-only directory.
    Host {
        text: String,
    },
}

impl HaltWhy {
    /// Whether the turn that a person asked for is over with the halt. It could not be taken up
    /// without other limits or another agent; after any other halt it is.
    pub fn ends_a_turn(&self) -> bool {
        match self {
            HaltWhy::Money { .. } | HaltWhy::Wall => true,
            HaltWhy::Away { hold, .. } => match hold {
                HoldWhy::Model | HoldWhy::Program => true,
                HoldWhy::Quota | HoldWhy::Auth | HoldWhy::Outage | HoldWhy::Machine(_) => false,
            },
            HaltWhy::Stop
            | HaltWhy::Pause
            | HaltWhy::Continued
            | HaltWhy::Quota { .. }
            | HaltWhy::Host { .. } => false,
        }
    }
}

impl std::fmt::Display for HaltWhy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HaltWhy::Stop => f.write_str("stopped"),
            HaltWhy::Pause => f.write_str("paused"),
            HaltWhy::Continued => f.write_str("the step was continued, as asked"),
            HaltWhy::Money { text } | HaltWhy::Host { text } => f.write_str(text),
            HaltWhy::Quota { until, guess: true } => write!(
                f,
                "its agents are unavailable for an unknown time; the next try, about {}, would be \
                 later than allowed",
                until.rfc3339()
            ),
            HaltWhy::Quota { until, guess: false } => {
                write!(f, "the quota resets at {}, later than allowed", until.rfc3339())
            }
            HaltWhy::Away { account, hold, text } => {
                write!(f, "{}; {}", away(account, *hold, text), hold.remedy())
            }
            HaltWhy::Wall => f.write_str("the run has reached its time limit"),
        }
    }
}

/// The message for an account that can't be used, such as
/// `claude_code_cli is unavailable (not logged in): Please run /login`.
pub fn away(account: &str, why: HoldWhy, text: &str) -> String {
    let colon = if text.is_empty() { "" } else { ": " };
    match why {
        HoldWhy::Machine(fault) => format!("{}{colon}{text}", fault.word()),
        HoldWhy::Quota | HoldWhy::Auth | HoldWhy::Outage | HoldWhy::Model | HoldWhy::Program => {
            format!("{account} is unavailable ({}){colon}{text}", why.word())
        }
    }
}

/// The name under which the machine is held, beside the accounts of vendors. All work needs it.
pub const THIS_MACHINE: &str = "this machine";

/// The reason why an account is not used for now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldWhy {
    #[default]
    Quota,
    /// The agent is not logged in, or its key is not accepted.
    Auth,
    /// The service or the network is down.
    Outage,
    /// The service does not know the model.
    Model,
    /// The agent's executable is not there.
    Program,
    /// The machine, or Autopilot itself, can't do its part of the work.
    Machine(MachineFault),
}

/// A fault that is neither the work's nor a vendor's. It never counts against a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MachineFault {
    DiskFull,
    NoInodes,
    DiskQuota,
    ReadOnly,
    /// The disk reported an error.
    DiskError,
    OpenFiles,
    Memory,
    /// The machine can't start more processes.
    Processes,
    Denied,
    /// A directory of ours is gone: a mount vanished, or somebody removed it.
    Missing,
    /// Something else is at the path of a file of ours.
    InTheWay,
    /// Git was killed, could not be started or failed in our own repository.
    Git,
    /// The process that supervises an agent or a command died.
    Supervisor,
    /// The journal can't be read or written.
    Journal,
    /// Autopilot itself is wrong.
    Internal,
}

impl MachineFault {
    /// A few words for messages.
    pub fn word(self) -> &'static str {
        match self {
            MachineFault::DiskFull => "the disk is full",
            MachineFault::NoInodes => "the file system has no inodes left",
            MachineFault::DiskQuota => "the disk quota is used up",
            MachineFault::ReadOnly => "the file system is read-only",
            MachineFault::DiskError => "the disk reported an error",
            MachineFault::OpenFiles => "too many files are open",
            MachineFault::Memory => "the machine is out of memory",
            MachineFault::Processes => "no more processes can be started",
            MachineFault::Denied => "a file of Autopilot's may not be accessed",
            MachineFault::Missing => "a directory of Autopilot's is gone",
            MachineFault::InTheWay => "something is in the place of a file of Autopilot's",
            MachineFault::Git => "git failed in Autopilot's own repository",
            MachineFault::Supervisor => "the supervisor of a process died",
            MachineFault::Journal => "the journal failed",
            MachineFault::Internal => "an internal error",
        }
    }

    /// What a person can do about it.
    pub fn mend(self) -> &'static str {
        match self {
            MachineFault::DiskFull | MachineFault::NoInodes | MachineFault::DiskQuota => {
                "make room (`autopilot gc` removes what is no longer needed)"
            }
            MachineFault::ReadOnly | MachineFault::Denied => "make the path writable",
            MachineFault::Missing => "put it back, or mount its file system",
            MachineFault::InTheWay => "move it away",
            MachineFault::DiskError => "check the disk",
            MachineFault::OpenFiles => {
                "raise the limit of open files (`ulimit -n`) or use fewer workers"
            }
            MachineFault::Memory | MachineFault::Processes => {
                "end other programs or use fewer workers"
            }
            MachineFault::Git => "run `autopilot doctor` to see what hinders git",
            MachineFault::Supervisor => "find out what ends processes on this machine",
            MachineFault::Journal => "run `autopilot recover`",
            MachineFault::Internal => "please report it",
        }
    }

    /// The advice for a person whose run rests.
    pub fn remedy(self) -> String {
        format!("{}, then run `autopilot resume`", self.mend())
    }
}

impl HoldWhy {
    /// A few words for messages.
    pub fn word(self) -> &'static str {
        match self {
            HoldWhy::Quota => "no quota",
            HoldWhy::Auth => "not logged in",
            HoldWhy::Outage => "service not available",
            HoldWhy::Model => "unknown model",
            HoldWhy::Program => "not installed",
            HoldWhy::Machine(fault) => fault.word(),
        }
    }

    /// The advice for a person if waiting does not help.
    pub fn remedy(self) -> String {
        let advice = match self {
            HoldWhy::Quota | HoldWhy::Outage => "try again later with `autopilot resume`",
            HoldWhy::Auth => "log in to that agent, then run `autopilot resume`",
            HoldWhy::Model => {
                "set up the model for that agent or name another in .autopilot/config.yml, then run \
                 `autopilot resume` (with `--model` if the command line named it)"
            }
            HoldWhy::Program => {
                "install that agent or set its `executable`, then run `autopilot resume`"
            }
            HoldWhy::Machine(fault) => return fault.remedy(),
        };
        advice.to_owned()
    }
}
