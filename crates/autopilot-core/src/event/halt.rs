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
    format!("{account} is unavailable ({}){colon}{text}", why.word())
}

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
}

impl HoldWhy {
    /// A few words for messages.
    pub fn word(self) -> &'static str {
        match self {
            HoldWhy::Quota => "no quota",
            HoldWhy::Auth => "not logged in",
            HoldWhy::Outage => "service not available",
            HoldWhy::Model => "unknown model",
        }
    }

    /// The advice for a person if waiting does not help.
    pub fn remedy(self) -> &'static str {
        match self {
            HoldWhy::Quota | HoldWhy::Outage => "try again later with `autopilot resume`",
            HoldWhy::Auth => "log in to that agent, then run `autopilot resume`",
            HoldWhy::Model => {
                "set up the model for that agent or name another in .autopilot/config.yml, then run \
                 `autopilot resume` (with `--model` if the command line named it)"
            }
        }
    }
}
