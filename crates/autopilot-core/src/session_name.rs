//! The name of an agent's session: the agent's own, or one of ours, made of the run and the
//! attempt.

use crate::event::{Facts, Outcome};
use crate::id::AttemptId;
use crate::state::{State, Status, Task};
use crate::step::Step;

/// The prefix of sessions that only we keep; another attempt may have one of the same name.
pub const TOLD: &str = "told:";

/// The session that a step of a workflow used last, as far as the state alone knows it.
pub fn current_of(state: &State, task: &Task) -> Option<String> {
    let shown = [Step::WorkflowStep, Step::Fix].into_iter().filter_map(|step| {
        let shown = task.last(step)?;
        let has_opened = task.sessions.get(&step).is_some_and(|session| is_its_own(session));
        let has_asked = has_opened || asked_something(&shown.outcome, &shown.facts);
        has_asked.then_some((shown.id, step))
    });
    let now = match task.status {
        Status::Running { step, attempt } if step.role().is_some() => Some((attempt, step)),
        Status::Running { .. }
        | Status::Open
        | Status::At { .. }
        | Status::Waiting { .. }
        | Status::Settled(_) => None,
    };
    let (attempt, step) = shown.chain(now).max()?;
    Some(name(&state.run.id, attempt, task.sessions.get(&step).map(String::as_str)))
}

/// The name under which a session is listed: the agent's own, if it has one.
pub fn name(run: &str, attempt: AttemptId, session: Option<&str>) -> String {
    match session.filter(|session| is_its_own(session)) {
        Some(session) => session.to_owned(),
        None => own_name(run, attempt),
    }
}

/// Whether the agent itself knows the session by this name.
fn is_its_own(session: &str) -> bool {
    !session.is_empty() && !session.starts_with(TOLD)
}

/// The name of a session for which its agent has none.
pub fn own_name(run: &str, attempt: AttemptId) -> String {
    format!("{run}-{attempt}")
}

/// Whether the agent was asked anything before its attempt ended in this way.
pub fn asked_something(outcome: &Outcome, facts: &Facts) -> bool {
    match outcome {
        // Every launch leaves a log.
        Outcome::Passed
        | Outcome::Failed { .. }
        | Outcome::Misconfigured { .. }
        | Outcome::Broke { .. }
        | Outcome::Quota { .. }
        | Outcome::Away { .. } => facts.log.is_some(),
        // An agent that died or was stopped may have spent something first.
        Outcome::Lost | Outcome::Revoked => true,
        Outcome::Skipped { .. } => false,
    }
}
