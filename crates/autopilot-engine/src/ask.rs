//! Requests to a run from a command, a dashboard key or a remote client.
//!
//! When a process is working on the run, the request goes to that process and its answer is
//! returned. Otherwise the request is judged by the same rules, and the caller resumes the run with
//! it.

use crate::inbox::{
    self, ANSWER_WAIT_MAX, InboxAnswer, InboxError, InboxMessage, InboxRequest, LimitChange,
};
use crate::place::StatePaths;
use crate::workspace::{self, WorkspaceError};
use autopilot_core::decide::{Refusal, refusal, rehearse};
use autopilot_core::input::{Ask, Input};
use autopilot_core::state::State;
use autopilot_host::dir_watch::DirWatch;
use autopilot_host::lock::Holder;
use std::time::{Duration, Instant};

/// How often the process is checked to be still alive.
const ALIVE_EVERY: Duration = Duration::from_millis(250);
/// How often the answer is looked for where the kernel can't report file changes.
const POLL_EVERY: Duration = Duration::from_millis(50);

/// The outcome of a request to a run.
#[derive(Debug)]
pub enum AskReply {
    /// The process's answer; `changed` is false when the run was already as requested.
    Answered { text: String, changed: bool },
    /// No process works on the run and the request is legal: the caller resumes the run with it.
    /// Holds the current state of the run.
    Unattended(Box<State>),
}

/// Why a request to a run was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("no runs in this repository yet")]
    NoRun,
    #[error("{0}")]
    Refused(Refusal),
    #[error("process {pid} is working on another run in this repository, not on {run}")]
    Elsewhere { pid: i32, run: String },
    #[error("{why}")]
    Failed { why: String },
    #[error(
        "process {pid} did not answer within {} s, so nothing was changed",
        ANSWER_WAIT_MAX.as_secs()
    )]
    Silent { pid: i32 },
    #[error("process {pid} ended before it answered")]
    Ended { pid: i32 },
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Inbox(#[from] InboxError),
}

/// Sends requests to the unfinished run of a repository, or else to its newest run. The limits
/// change first, so that the requests are judged under the new ones.
pub fn ask(place: &StatePaths, limits: &LimitChange, asks: &[Ask]) -> Result<AskReply, AskError> {
    let state = newest(place)?;
    let Some(holder) = workspace::holder(place) else {
        return unattended(state, limits, asks);
    };
    let request = InboxRequest::Asks { limits: limits.clone(), asks: asks.to_vec() };
    match deliver(place, &holder, &state.run.id, request)? {
        Some(answer) => {
            answered(answer).map(|(text, changed)| AskReply::Answered { text, changed })
        }
        // The process ended before it took the message.
        None => unattended(newest(place)?, limits, asks),
    }
}

/// Sends a message to the agent that works on a task, and waits until it was delivered.
pub fn tell(place: &StatePaths, run: &str, request: InboxRequest) -> Result<(), AskError> {
    let nobody = || AskError::Failed { why: format!("no process is working on run {run}") };
    let holder = workspace::holder(place).ok_or_else(nobody)?;
    let answer = deliver(place, &holder, run, request)?.ok_or_else(nobody)?;
    answered(answer).map(|_told| ())
}

/// The unfinished run, or else the newest one.
fn newest(place: &StatePaths) -> Result<State, AskError> {
    let found = workspace::unfinished_or_newest(&workspace::reader(place)?)?;
    found.map(|(_, state)| state).ok_or(AskError::NoRun)
}

/// Judges the requests as the process that resumes the run will judge them.
fn unattended(state: State, limits: &LimitChange, asks: &[Ask]) -> Result<AskReply, AskError> {
    let now = crate::clock::now();
    let change = limits.ask(&state.run.limits).map(Input::Asked);
    let booted = rehearse(&state, [Input::Boot].into_iter().chain(change), now);
    let booted = booted.map_err(AskError::Refused)?;
    if let [only] = asks
        && let Some(refusal) = refusal(&booted, only)
        && refusal.is_already_so()
    {
        return Ok(AskReply::Answered { text: refusal.to_string(), changed: false });
    }
    rehearse(&booted, asks.iter().cloned().map(Input::Asked), now).map_err(AskError::Refused)?;
    Ok(AskReply::Unattended(Box::new(state)))
}

/// Leaves a message for the process and waits for its answer. Returns `None` when the process ended
/// without taking the message.
fn deliver(
    place: &StatePaths,
    holder: &Holder,
    run: &str,
    request: InboxRequest,
) -> Result<Option<InboxAnswer>, AskError> {
    let pid = holder.process.pid;
    // A process that is still starting has not recorded yet which run it works on.
    if !holder.run.is_empty() && holder.run != run {
        return Err(AskError::Elsewhere { pid, run: run.to_owned() });
    }
    inbox::create(place)?;
    // Watch before the message is written, or its answer could be missed.
    let watch = DirWatch::new(place.inbox().as_std_path());
    let sent = inbox::put(place, &InboxMessage { run: run.to_owned(), request })?;
    let began = Instant::now();
    while began.elapsed() < ANSWER_WAIT_MAX {
        let is_there = workspace::holder(place).is_some();
        if let Some(answer) = sent.answered() {
            return Ok(Some(answer));
        }
        if !is_there {
            return if sent.withdraw() { Ok(None) } else { Err(AskError::Ended { pid }) };
        }
        let woken = watch.as_ref().map(|watch| watch.wait(ALIVE_EVERY).is_ok());
        if !woken.unwrap_or(false) {
            std::thread::sleep(POLL_EVERY);
        }
    }
    sent.withdraw();
    Err(AskError::Silent { pid })
}

/// The answer as text, and whether it changed anything.
fn answered(answer: InboxAnswer) -> Result<(String, bool), AskError> {
    match answer {
        InboxAnswer::Done { text } => Ok((text, true)),
        InboxAnswer::Unchanged { text } => Ok((text, false)),
        InboxAnswer::Refused(refusal) => Err(AskError::Refused(refusal)),
        InboxAnswer::Failed { why } => Err(AskError::Failed { why }),
    }
}
