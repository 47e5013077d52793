//! The check of every ask. An ask is either carried out, or refused with the reason and with advice
//! on what to do instead.
//!
//! Invariant: if [`refusal`] returns one, [`decide`] changes nothing; otherwise the ask leaves a
//! record. No other code says what may be asked of a run.

mod session;
mod words;

#[cfg(test)]
mod tests;

pub use session::{SessionFacts, SessionHindrance, session_hindrance};

use super::decide;
use super::money::{MoneyGone, own_money_gone};
use crate::config::nearest::nearest;
use crate::event::{Failure, HaltWhy, SessionPrompt, Skip, TaskEnd};
use crate::id::{TaskId, Time};
use crate::input::{Ask, Input};
use crate::limit::Limits;
use crate::pipeline::Work;
use crate::rows::rows;
use crate::state::{State, Status, Task};
use serde::{Deserialize, Serialize};

/// The number of task names that a refusal lists.
const NAMES_MAX: usize = 20;

/// The answer to an ask that is not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The name of the task; none if the ask is about the run itself.
    pub task: Option<String>,
    pub deed: Deed,
    pub why: Hindrance,
}

rows! {
/// The kind of an ask, with its verb and the participle of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
Deed -> (&'static str, &'static str) {
    Stop: ("stop", "stopped"),
    Pause: ("pause", "paused"),
    Resume: ("resume", "resumed"),
    Unpause: ("unpause", "unpaused"),
    Retry: ("retry", "retried"),
    Continue: ("continue", "continued"),
    Skip: ("skip", "skipped"),
    Approve: ("approve", "approved"),
    Reject: ("reject", "rejected"),
    Change: ("change", "changed"),
}}

/// The reason why an ask is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hindrance {
    /// Nothing would change: the run is already as asked.
    AlreadySo,
    /// The run has no task of that name.
    Unknown {
        run: String,
        meant: Option<String>,
        known: Vec<String>,
        more: usize,
    },
    /// The ask needs a task, and the run itself was named.
    TheRun,
    Done,
    /// The task has not started or is being worked on.
    NotFailed,
    /// The task failed because one of its children did.
    ItsTasks {
        failed: Option<String>,
    },
    /// A dependency of the task has failed.
    Blocked {
        by: String,
    },
    /// The task was brought for a round that never started.
    Dropped {
        run: RunStanding,
    },
    /// The task was skipped together with its parent.
    LeftOut {
        with: String,
    },
    /// The run has moved past its tasks and judges or publishes the result.
    Behind {
        is_stopped: bool,
        has_session: bool,
    },
    /// The merge or another effect of the task has started and may have happened.
    Acting,
    /// All rounds of the task's lifetime are used up.
    Lifetime {
        rounds_max: u32,
    },
    /// The task has spent its limit.
    Money(MoneyGone),
    /// The task has no session that a person could continue.
    NotAStep,
    NeverBegun,
    AtWork,
    /// The work of the task is about to be merged.
    Merging,
    /// The run has been found good and is about to be shown to people or to leave the machine.
    Publishing,
    /// No gate is open.
    NoGate,
    /// A rejection without a reason.
    NoReason,
    /// A limit under which nothing could ever be done.
    Nonsense {
        limit: String,
    },
}

/// The state of the run, as far as the advice depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStanding {
    Done,
    Failed,
    Unfinished,
}

/// Returns the refusal of an ask; none if it will be carried out.
pub fn refusal(state: &State, ask: &Ask) -> Option<Refusal> {
    let already = |is_so: bool| is_so.then_some(Hindrance::AlreadySo);
    let (task, deed, why) = match ask {
        Ask::Halt { why, now } => {
            let deed = if *why == HaltWhy::Pause { Deed::Pause } else { Deed::Stop };
            (None, deed, already(!may_halt(state, why, *now)))
        }
        Ask::Resume => {
            let is_going = state.run.halt.is_none() && state.run.focus.is_none();
            (None, Deed::Resume, already(is_going))
        }
        Ask::Unpause => (None, Deed::Unpause, already(!is_paused(state))),
        Ask::Retry { task } => (Some(task), Deed::Retry, of_task(state, task, retrying)),
        Ask::Skip { task } => (Some(task), Deed::Skip, of_task(state, task, skipping)),
        Ask::Continue { task, words } => {
            let why = of_task(state, task, |state, now| continuing(state, now, words));
            (Some(task), Deed::Continue, why)
        }
        Ask::Approve { .. } => (None, Deed::Approve, no_gate(state)),
        Ask::Reject { why, .. } => {
            let no_reason = why.trim().is_empty().then_some(Hindrance::NoReason);
            (None, Deed::Reject, no_gate(state).or(no_reason))
        }
        Ask::Limit(limits) => {
            let why = nonsense(limits).or(already(state.run.limits == **limits));
            (None, Deed::Change, why)
        }
        Ask::Models { limits, config, .. } => {
            (None, Deed::Change, nonsense(limits).or(already(state.run.config == *config)))
        }
        Ask::Switch { switch, on, .. } => {
            (None, Deed::Change, already(state.run.switches.contains(switch) == *on))
        }
    };
    let task = task.filter(|name| !name.is_empty()).cloned();
    why.map(|why| Refusal { task, deed, why })
}

/// Tries inputs in order on a copy, exactly as [`decide`] will. Returns the state after them, or the
/// first real refusal.
pub fn rehearse(
    state: &State,
    inputs: impl IntoIterator<Item = Input>,
    now: Time,
) -> Result<State, Refusal> {
    let mut state = state.clone();
    for input in inputs {
        match decide(&mut state, input, now) {
            Err(refusal) if !refusal.is_already_so() => return Err(refusal),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(state)
}

/// Whether a halt would change anything. Asking again can only make it more urgent, or end a pause
/// for good: a process may wait for the end of a pause, but not after a stop.
pub(super) fn may_halt(state: &State, why: &HaltWhy, now: bool) -> bool {
    let ends_pause = *why == HaltWhy::Stop && is_paused(state);
    let is_halted = state.run.halt.as_ref().is_some_and(|halt| halt.now || !now);
    (ends_pause || !is_halted) && state.end().is_none()
}

fn is_paused(state: &State) -> bool {
    state.run.halt.as_ref().is_some_and(|halt| halt.why == HaltWhy::Pause)
}

fn of_task(
    state: &State,
    name: &str,
    judge: impl FnOnce(&State, &Task) -> Option<Hindrance>,
) -> Option<Hindrance> {
    match state.named(name) {
        Some(task) => judge(state, task),
        None => Some(unknown(state, name)),
    }
}

fn unknown(state: &State, name: &str) -> Hindrance {
    let leaves = state.tasks.iter().filter(|task| task.parent.is_some());
    let names: Vec<&str> = leaves.filter(|task| task.children.is_empty()).map(Task::name).collect();
    Hindrance::Unknown {
        run: state.run.id.clone(),
        meant: nearest(name, names.iter().copied()).map(str::to_owned),
        known: names.iter().take(NAMES_MAX).map(|name| (*name).to_owned()).collect(),
        more: names.len().saturating_sub(NAMES_MAX),
    }
}

fn retrying(state: &State, now: &Task) -> Option<Hindrance> {
    match now.end() {
        // A retry helps only after one of the children is retried.
        Some(TaskEnd::Failed { why: Failure::Children { .. } }) => {
            let failed = failed_below(state, now).map(|task| task.name().to_owned());
            Some(Hindrance::ItsTasks { failed })
        }
        // The round of the task never started and will not.
        Some(TaskEnd::Skipped { why: Skip::Dropped }) => Some(dropped(state)),
        Some(TaskEnd::Failed { .. } | TaskEnd::Skipped { .. }) => reopening(state, now),
        Some(TaskEnd::Closed) => Some(Hindrance::Done),
        None => Some(Hindrance::NotFailed),
    }
}

/// The reason not to re-open a task: a failed dependency, a run that has moved past its tasks, no
/// rounds left in its lifetime, or no money left.
fn reopening(state: &State, now: &Task) -> Option<Hindrance> {
    if let Some(by) = blocker(state, now.id) {
        return Some(Hindrance::Blocked { by: state.task(by).name().to_owned() });
    }
    behind(state, now).or_else(|| lifetime(state, now)).or_else(|| own_money_gone(state, now))
}

/// The failed task that keeps a task from ever starting, if there is one.
pub(super) fn blocker(state: &State, task: TaskId) -> Option<TaskId> {
    let needs = state.task(task).spec.depends_on.iter();
    let needs = needs.filter_map(|name| state.named(name));
    let mut unmet = needs.filter(|need| state.is_dead_end(need.id));
    unmet.find_map(|need| match need.end()? {
        TaskEnd::Failed { .. } => Some(need.id),
        TaskEnd::Skipped { why: Skip::Blocked { by } | Skip::Stopped { by } } => Some(*by),
        TaskEnd::Closed | TaskEnd::Skipped { why: Skip::Asked | Skip::Dropped } => None,
    })
}

fn skipping(state: &State, now: &Task) -> Option<Hindrance> {
    if now.parent.is_none() {
        return Some(Hindrance::TheRun);
    }
    match now.end() {
        Some(TaskEnd::Closed) => Some(Hindrance::Done),
        Some(TaskEnd::Skipped { why: Skip::Asked }) => Some(Hindrance::AlreadySo),
        Some(TaskEnd::Skipped { why: Skip::Dropped }) => Some(dropped(state)),
        Some(TaskEnd::Skipped { .. } | TaskEnd::Failed { .. }) => {
            left_out(state, now).or_else(|| behind(state, now))
        }
        None => {
            let acting = is_acting(state, now).then_some(Hindrance::Acting);
            left_out(state, now).or(acting)
        }
    }
}

/// The refusal for a task that was skipped together with its parent: skipping it again would re-open
/// the parent.
fn left_out(state: &State, now: &Task) -> Option<Hindrance> {
    let above = state.task(now.parent?);
    match above.end() {
        Some(TaskEnd::Skipped { .. }) => Some(Hindrance::LeftOut { with: above.name().to_owned() }),
        Some(TaskEnd::Closed | TaskEnd::Failed { .. }) | None => left_out(state, above),
    }
}

/// Whether the task or one of its children is at a started effect: that may have happened already,
/// also if a fault of the machine ended it, so the task can't count as skipped.
fn is_acting(state: &State, now: &Task) -> bool {
    let has_begun = now.spent.tries > 0;
    has_begun && now.is_at_an_effect()
        || now.children.iter().any(|child| is_acting(state, state.task(*child)))
}

fn continuing(state: &State, now: &Task, words: &SessionPrompt) -> Option<Hindrance> {
    let above = now.parent.map(|parent| state.task(parent));
    let Some(above) = above.filter(|_| now.pipeline.continues_at().is_some()) else {
        return Some(Hindrance::NotAStep);
    };
    let is_said = now.words.as_ref().is_some_and(|known| known.say_the_same_as(words));
    if is_said && state.run.halt.is_none() && state.run.focus == Some(now.id) {
        return Some(Hindrance::AlreadySo);
    }
    let worn = || {
        let run = Some(above).filter(|above| above.is_settled());
        lifetime(state, now).or_else(|| lifetime(state, run?))
    };
    session_of(now).or_else(|| around(above)).or_else(worn).or_else(|| own_money_gone(state, now))
}

/// The reason in the step itself not to continue its session.
fn session_of(now: &Task) -> Option<Hindrance> {
    if now.spent.attempts == 0 {
        return Some(Hindrance::NeverBegun);
    }
    match &now.status {
        Status::Settled(
            TaskEnd::Closed | TaskEnd::Failed { .. } | TaskEnd::Skipped { why: Skip::Asked },
        ) => None,
        Status::Settled(TaskEnd::Skipped {
            why: Skip::Blocked { .. } | Skip::Stopped { .. } | Skip::Dropped,
        })
        | Status::Open => Some(Hindrance::NeverBegun),
        Status::Running { .. } => Some(Hindrance::AtWork),
        Status::At { .. } | Status::Waiting { .. } => {
            let is_work = now.stage().is_some_and(|stage| stage.work == Work::Slot);
            (!is_work).then_some(Hindrance::Merging)
        }
    }
}

/// The reason in the parent of a step not to continue its session.
fn around(above: &Task) -> Option<Hindrance> {
    let is_running = matches!(above.status, Status::Running { .. });
    match above.stage().map(|stage| stage.work) {
        Some(Work::Serial | Work::Person) => Some(Hindrance::Publishing),
        Some(Work::Slot | Work::Decide | Work::Children(..)) | None => {
            is_running.then_some(Hindrance::AtWork)
        }
    }
}

fn behind(state: &State, now: &Task) -> Option<Hindrance> {
    let is_stopped = state.run.halt.is_some();
    let has_session = now.pipeline.continues_at().is_some();
    state.is_behind(now.id).then_some(Hindrance::Behind { is_stopped, has_session })
}

fn lifetime(state: &State, now: &Task) -> Option<Hindrance> {
    let rounds_max = state.run.limits.rounds_lifetime_max;
    (now.spent.rounds_lived >= rounds_max).then_some(Hindrance::Lifetime { rounds_max })
}

fn dropped(state: &State) -> Hindrance {
    let run = match state.end() {
        Some(TaskEnd::Closed) => RunStanding::Done,
        Some(TaskEnd::Failed { .. } | TaskEnd::Skipped { .. }) => RunStanding::Failed,
        None => RunStanding::Unfinished,
    };
    Hindrance::Dropped { run }
}

/// The first child, at any depth, that failed by itself.
fn failed_below<'a>(state: &'a State, now: &Task) -> Option<&'a Task> {
    now.children.iter().map(|child| state.task(*child)).find_map(|child| match child.end()? {
        TaskEnd::Failed { why: Failure::Children { .. } } => failed_below(state, child),
        TaskEnd::Failed { .. } => Some(child),
        TaskEnd::Closed | TaskEnd::Skipped { .. } => None,
    })
}

fn no_gate(state: &State) -> Option<Hindrance> {
    state.gate().is_none().then_some(Hindrance::NoGate)
}

fn nonsense(limits: &Limits) -> Option<Hindrance> {
    let zero = [
        ("workers_max", limits.workers_max == 0),
        ("effects_max", limits.effects_max == 0),
        ("rounds_max", limits.rounds_max == 0),
        ("rounds_below_max", limits.rounds_below_max == Some(0)),
    ];
    let (limit, _) = zero.into_iter().find(|(_, is_zero)| *is_zero)?;
    Some(Hindrance::Nonsense { limit: limit.to_owned() })
}
