//! The outcome of an attempt whose agent ended without an answer.

use crate::job::until;
use autopilot_agents::{AgentOutcome, Cause};
use autopilot_core::event::{HoldWhy, Outcome, SessionEnd};
use autopilot_core::id::Time;
use jiff::Zoned;

/// The reason given for an answer that can't be used.
pub const UNREADABLE: &str = "its answer could not be read";

/// The outcome of an attempt. `is_money_gone` says that the run or the task has no money left.
pub fn judged(ended: &AgentOutcome, is_money_gone: bool, now: &Zoned) -> Outcome {
    match ended {
        AgentOutcome::Success => Outcome::Broke { why: UNREADABLE.to_owned() },
        // The agent kept to the run's limit: nothing is wrong with it or with the work.
        AgentOutcome::Broke { cause: Cause::Budget, .. } if is_money_gone => Outcome::Revoked,
        AgentOutcome::Broke { cause: Cause::Model, why } => away(HoldWhy::Model, why),
        AgentOutcome::Broke { why, .. } => Outcome::Broke { why: why.clone() },
        AgentOutcome::Auth { why } => away(HoldWhy::Auth, why),
        AgentOutcome::Outage { why } => away(HoldWhy::Outage, why),
        AgentOutcome::Interrupted => Outcome::Broke { why: "it was interrupted".to_owned() },
        AgentOutcome::Quota { until_unix: Some(unix), .. } => {
            Outcome::Quota { until: Time(unix.saturating_mul(1000)) }
        }
        AgentOutcome::Quota { until_unix: None, why } => match until::told(why, now) {
            Some(until) => Outcome::Quota { until },
            None => away(HoldWhy::Quota, why),
        },
    }
}

/// How a turn ended, as far as its session is concerned.
pub fn session_end(ended: &AgentOutcome) -> SessionEnd {
    match ended {
        AgentOutcome::Success => SessionEnd::Answered,
        AgentOutcome::Quota { .. }
        | AgentOutcome::Auth { .. }
        | AgentOutcome::Outage { .. }
        | AgentOutcome::Interrupted => SessionEnd::Stopped,
        AgentOutcome::Broke { cause, .. } => match cause {
            Cause::Session => SessionEnd::Gone,
            Cause::Context => SessionEnd::Full,
            Cause::Refusal | Cause::Request => SessionEnd::Refused,
            Cause::Model => SessionEnd::Stopped,
            Cause::OutputLimit
            | Cause::Turns
            | Cause::Budget
            | Cause::Schema
            | Cause::Empty
            | Cause::Startup
            | Cause::Crash
            | Cause::TimedOut
            | Cause::Stuck
            | Cause::Other => SessionEnd::Broke,
        },
    }
}

/// The outcome when the agent is unavailable: nothing is wrong with the work.
fn away(why: HoldWhy, text: &str) -> Outcome {
    Outcome::Away { why, text: text.to_owned(), until: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(ended: AgentOutcome, is_money_gone: bool) -> Outcome {
        let now: Zoned = "2026-01-01T12:00:00+00:00[UTC]".parse().unwrap();
        judged(&ended, is_money_gone, &now)
    }

    #[test]
    fn who_is_not_there_spends_no_try_of_the_task() {
        let why = || "no".to_owned();
        let quota = |until_unix, why: &str| AgentOutcome::Quota { until_unix, why: why.into() };
        for (ended, outcome) in [
            (AgentOutcome::Auth { why: why() }, away(HoldWhy::Auth, "no")),
            (AgentOutcome::Outage { why: why() }, away(HoldWhy::Outage, "no")),
            (AgentOutcome::broke(Cause::Model, "no"), away(HoldWhy::Model, "no")),
            (quota(Some(7), "no"), Outcome::Quota { until: Time(7000) }),
            (quota(None, "no"), away(HoldWhy::Quota, "no")),
        ] {
            assert_eq!(told(ended, false), outcome);
        }
    }

    #[test]
    fn a_budget_that_is_spent_with_the_run_s_money_breaks_nothing() {
        let spent = || AgentOutcome::broke(Cause::Budget, "all spent");
        assert_eq!(told(spent(), true), Outcome::Revoked);
        assert_eq!(told(spent(), false), Outcome::Broke { why: "all spent".into() });
        let crashed = AgentOutcome::broke(Cause::Crash, "exit code 1");
        assert_eq!(told(crashed, true), Outcome::Broke { why: "exit code 1".into() });
    }

    #[test]
    fn a_session_is_given_up_only_for_what_is_wrong_with_it() {
        let broke = |cause| session_end(&AgentOutcome::broke(cause, ""));
        assert_eq!(session_end(&AgentOutcome::Success), SessionEnd::Answered);
        let why = || "no".to_owned();
        let quota = AgentOutcome::Quota { until_unix: None, why: why() };
        for away in [quota, AgentOutcome::Auth { why: why() }, AgentOutcome::Interrupted] {
            assert_eq!(session_end(&away), SessionEnd::Stopped, "{away:?}");
        }
        assert_eq!(broke(Cause::Session), SessionEnd::Gone);
        assert_eq!(broke(Cause::Context), SessionEnd::Full);
        assert_eq!(broke(Cause::Request), SessionEnd::Refused);
        assert_eq!(broke(Cause::TimedOut), SessionEnd::Broke);
    }

    #[test]
    fn an_answer_nobody_can_read_and_an_interruption_spend_a_try() {
        for ended in [AgentOutcome::Success, AgentOutcome::Interrupted] {
            assert!(matches!(told(ended, false), Outcome::Broke { .. }));
        }
    }
}
