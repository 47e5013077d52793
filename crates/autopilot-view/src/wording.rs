//! The words for events and accounts, the same wherever a person reads of them.

use autopilot_core::event::{Event, HoldWhy, Verdict, away};
use autopilot_core::id::Time;
use autopilot_core::pipeline::Switch;

/// What happened, without the name of the task. None for events that progress lines and the history
/// tell in words of their own, or not at all.
pub(super) fn happened(event: &Event) -> Option<String> {
    Some(match event {
        Event::StageSkipped { step, why, .. } => format!("{step} skipped: {why}"),
        Event::TaskReopened { .. } => "reopened".to_owned(),
        Event::TaskContinued { words, .. } => {
            format!("a person continues session {}", words.session)
        }
        Event::TurnFailed { why, .. } => {
            format!("this turn failed: {why}; its earlier result stands")
        }
        Event::WaitBegan { until, account, why, guess, .. } => waits(account, *why, *until, *guess),
        Event::AccountHeld { account, until, why, text, guess, .. } => {
            held(account, *until, *why, text, *guess)
        }
        Event::AccountFreed { account } => format!("trying {account} again"),
        Event::Resumed => "resumed".to_owned(),
        Event::LimitsChanged { config: Some(_), .. } => "models changed".to_owned(),
        Event::LimitsChanged { config: None, .. } => "limits changed".to_owned(),
        Event::Switched { switch, on, by } => switched(*switch, *on, by),
        Event::RoomChanged { short: Some(short) } => format!("not starting more workers: {short}"),
        Event::RoomChanged { short: None } => "enough room for more workers again".to_owned(),
        Event::RunStarted { .. }
        | Event::Booted { .. }
        | Event::TaskAdded { .. }
        | Event::TaskMoved { .. }
        | Event::AttemptStarted { .. }
        | Event::AttemptEnded { .. }
        | Event::SessionOpened { .. }
        | Event::Billed { .. }
        | Event::MoneyGiven { .. }
        | Event::Overruled { .. }
        | Event::RoundFailed { .. }
        | Event::RailTripped { .. }
        | Event::TaskSettled { .. }
        | Event::WaitEnded { .. }
        | Event::Halted { .. }
        | Event::TimePassed => return None,
    })
}

/// The message for a waiting task. `account` is empty in older journals; a `guess` is not a known end.
pub(super) fn waits(account: &str, why: HoldWhy, until: Time, guess: bool) -> String {
    let of = if account.is_empty() { String::new() } else { format!(" of {account}") };
    let word = why.word();
    match (why, guess) {
        (HoldWhy::Quota, false) => format!("waiting for quota{of} until {}", until.rfc3339()),
        (HoldWhy::Quota, true) => format!("waiting for quota{of}; {}", next_try(until)),
        (HoldWhy::Machine(_), _) => format!("{word}; next try at {}", until.rfc3339()),
        (HoldWhy::Auth | HoldWhy::Outage | HoldWhy::Model | HoldWhy::Program, false) => {
            format!("waiting for {account} until {} ({word})", until.rfc3339())
        }
        (HoldWhy::Auth | HoldWhy::Outage | HoldWhy::Model | HoldWhy::Program, true) => {
            format!("waiting for {account} ({word}); {}", next_try(until))
        }
    }
}

/// The message for a held account; without a time, a person has to free it.
pub(super) fn held(
    account: &str,
    until: Option<Time>,
    why: HoldWhy,
    text: &str,
    guess: bool,
) -> String {
    match (why, until) {
        (HoldWhy::Quota, Some(until)) if !guess => {
            format!("{account} has no quota until {}", until.rfc3339())
        }
        (HoldWhy::Quota, Some(until)) => {
            format!("{account} has no quota; {}", next_try(until))
        }
        (_, Some(until)) => {
            format!("{}; next try at {}", away(account, why, text), until.rfc3339())
        }
        (_, None) => away(account, why, text),
    }
}

fn next_try(until: Time) -> String {
    format!("reset time unknown; next try about {}", until.rfc3339())
}

/// The verdict of a review.
pub(super) fn review_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Approve => "approved",
        Verdict::RequestChanges => "changes requested",
    }
}

/// The message for a changed switch. `by` may be a path and is not changed.
/// What a person switched on or off.
pub fn switched(switch: Switch, on: bool, by: &str) -> String {
    let what = match switch {
        Switch::Baseline => "baseline",
        Switch::Review => "review",
        Switch::Uat => "uat",
        Switch::Push => "push",
        Switch::Pr => "pull request",
        Switch::PlanGate => "approval of the plan",
        Switch::EndGate => "approval of the result",
        Switch::HasTests => "validation of the whole",
        Switch::FailFast => "fail-fast",
        Switch::SpareReview => "sparing reviews after failed tests",
        Switch::SpareCases => "sparing acceptance cases that nothing runs",
        Switch::ColdProof => "the proof from nothing",
        Switch::ProveBase => "the proof of the base",
        Switch::RedGreen => "a failing test of each criterion",
        Switch::ThreeRuns => "running the base's tests over a change",
        Switch::WholeReview => "the review of the whole result",
    };
    format!("{what} switched {} ({by})", if on { "on" } else { "off" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_nobody_named_is_not_told_as_one() {
        let at = Time(1_794_817_860_000);
        assert_eq!(
            held("codex", Some(at), HoldWhy::Quota, "", false),
            "codex has no quota until 2026-11-16T08:31:00Z"
        );
        let guess = "codex has no quota; reset time unknown; next try about 2026-11-16T08:31:00Z";
        assert_eq!(held("codex", Some(at), HoldWhy::Quota, "", true), guess);
        assert_eq!(
            waits("codex", HoldWhy::Quota, at, false),
            "waiting for quota of codex until 2026-11-16T08:31:00Z"
        );
        let guess =
            "waiting for quota of codex; reset time unknown; next try about 2026-11-16T08:31:00Z";
        assert_eq!(waits("codex", HoldWhy::Quota, at, true), guess);
        let guess = "waiting for codex (service not available); reset time unknown; next try about 2026-11-16T08:31:00Z";
        assert_eq!(waits("codex", HoldWhy::Outage, at, true), guess);
        let halted = |guess| autopilot_core::event::HaltWhy::Quota { until: at, guess }.to_string();
        assert!(halted(false).starts_with("the quota resets at 2026-11-16T08:31:00Z"));
        assert!(halted(true).contains("for an unknown time; the next try, about 2026"));
    }
}
