//! Requests to a run from a command, a dashboard key or a remote client.
//!
//! When a process is working on the run, the request goes to that process and its answer is
//! returned. Otherwise the request is judged by the same rules, and the caller resumes the run with
//! it.

use crate::flag::Flag;
use crate::inbox::{
    self, ANSWER_WAIT_MAX, InboxAnswer, InboxError, InboxFailure, InboxMessage, InboxRequest,
    LimitChange,
};
use crate::place::StatePaths;
use crate::workspace::{self, WorkspaceError};
use autopilot_core::decide::{Hindrance, Refusal, refusal, rehearse};
use autopilot_core::event::HaltWhy;
use autopilot_core::input::{Ask, Input};
use autopilot_core::state::State;
use autopilot_host::dir_watch::DirWatch;
use autopilot_host::lock::Holder;
use autopilot_journal::JournalRun;
use camino::Utf8PathBuf;
use std::time::{Duration, Instant};

/// How often the process is checked to be still alive.
const ALIVE_EVERY: Duration = Duration::from_millis(250);
/// How often the answer is looked for where the kernel can't report file changes.
const POLL_EVERY: Duration = Duration::from_millis(50);

/// The answer of the process that works on a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessAnswer {
    pub text: String,
    /// False when the run was already as requested.
    pub changed: bool,
}

/// The outcome of a request to a run.
#[derive(Debug)]
pub enum AskReply {
    Answered(ProcessAnswer),
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
    #[error("no process is working on run {run}")]
    NoProcess { run: String },
    #[error(transparent)]
    Failed(InboxFailure),
    #[error("the answer of process {pid} can't be read by this version")]
    Unreadable { pid: i32, source: serde_json::Error },
    #[error("process {pid} did not answer within {} s", ANSWER_WAIT_MAX.as_secs())]
    Silent {
        pid: i32,
        /// The process has taken the request and may still carry it out.
        is_taken: bool,
    },
    #[error("process {pid} ended before it answered")]
    Ended { pid: i32 },
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Inbox(#[from] InboxError),
    #[error("{} can't be changed", flag.file_name())]
    Flag { flag: Flag, source: std::io::Error },
}

impl AskError {
    /// Whether the process has taken the request, so that it may be carried out all the same.
    pub fn is_taken(&self) -> bool {
        matches!(self, AskError::Silent { is_taken: true, .. } | AskError::Ended { .. })
    }
}

/// A request to stop or pause the run that a process works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HaltRequest {
    Stop,
    StopNow,
    Pause,
}

/// The outcome of a request to stop or pause.
#[derive(Debug)]
pub enum HaltReply {
    /// No process works in this repository.
    NoProcess,
    Answered {
        pid: i32,
        answer: ProcessAnswer,
    },
    /// The process did not answer, so a flag file holds the request.
    Left {
        pid: i32,
        unanswered: AskError,
        path: Utf8PathBuf,
    },
}

/// Sends requests to the unfinished run of a repository, or else to its newest run. The limits
/// change first, so that the requests are judged under the new ones.
pub fn ask(place: &StatePaths, limits: &LimitChange, asks: &[Ask]) -> Result<AskReply, AskError> {
    let state = newest(place)?;
    let Some(holder) = workspace::holder(place) else {
        return unattended(state, limits, asks);
    };
    let request = InboxRequest::Asks { limits: limits.clone(), asks: asks.to_vec() };
    match deliver(place, &holder, Some(&state.run.id), request)? {
        Some(answer) => answered(answer).map(AskReply::Answered),
        // The process ended before it took the message.
        None => unattended(newest(place)?, limits, asks),
    }
}

/// Sends a message to the agent that works on a task, and waits until it was delivered.
pub fn tell(place: &StatePaths, run: &str, request: InboxRequest) -> Result<(), AskError> {
    let nobody = || AskError::NoProcess { run: run.to_owned() };
    let holder = workspace::holder(place).ok_or_else(nobody)?;
    let answer = deliver(place, &holder, Some(run), request)?.ok_or_else(nobody)?;
    answered(answer).map(|_told| ())
}

/// Asks the process that works in a repository to stop or to pause. The request is not lost when
/// the process does not answer: a flag file then holds it until the process looks again, or keeps
/// the next one from starting.
pub fn halt(place: &StatePaths, request: HaltRequest) -> Result<HaltReply, AskError> {
    let Some(holder) = workspace::holder(place) else { return Ok(HaltReply::NoProcess) };
    let pid = holder.process.pid;
    let unanswered = match tell_process(place, &holder, request.ask()) {
        Ok(Some(answer)) => return Ok(HaltReply::Answered { pid, answer }),
        Ok(None) => AskError::Ended { pid },
        Err(error @ AskError::Failed(InboxFailure::OutsideRun | InboxFailure::Journal { .. })) => {
            return Err(error);
        }
        Err(error) => error,
    };
    // A run that is over or at rest needs no stop, and the file would keep the next one away.
    let is_gone = matches!(unanswered, AskError::Ended { .. });
    if is_gone && needs_no_stop(place)? {
        return Ok(HaltReply::NoProcess);
    }
    let flag = request.flag();
    let failed = |source| AskError::Flag { flag, source };
    let path = flag.raise(place, request == HaltRequest::StopNow).map_err(failed)?;
    // It may have ended since, and then it looks there no more.
    if workspace::holder(place).is_none() && needs_no_stop(place)? {
        flag.lower(place).map_err(failed)?;
        return Ok(HaltReply::NoProcess);
    }
    Ok(HaltReply::Left { pid, unanswered, path })
}

/// Cancels a pause: removes its files, and asks the process that works in the repository. Returns
/// the removed files and the answer of the process, if there is one.
pub fn unpause(place: &StatePaths) -> Result<(Vec<Utf8PathBuf>, Option<ProcessAnswer>), AskError> {
    let removed = Flag::Pause.lower(place);
    let removed = removed.map_err(|source| AskError::Flag { flag: Flag::Pause, source })?;
    let Some(holder) = workspace::holder(place) else { return Ok((removed, None)) };
    match tell_process(place, &holder, Ask::Unpause) {
        Ok(answer) => Ok((removed, answer)),
        // The process notices by itself that the files are gone.
        Err(_unanswered) if !removed.is_empty() => Ok((removed, None)),
        Err(error) => Err(error),
    }
}

impl HaltRequest {
    fn ask(self) -> Ask {
        match self {
            HaltRequest::Stop => Ask::Halt { why: HaltWhy::Stop, now: false },
            HaltRequest::StopNow => Ask::Halt { why: HaltWhy::Stop, now: true },
            HaltRequest::Pause => Ask::Halt { why: HaltWhy::Pause, now: false },
        }
    }

    fn flag(self) -> Flag {
        match self {
            HaltRequest::Stop | HaltRequest::StopNow => Flag::Stop,
            HaltRequest::Pause => Flag::Pause,
        }
    }
}

/// The reply in words.
impl std::fmt::Display for HaltReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HaltReply::NoProcess => f.write_str("no run is under way; nothing was changed"),
            HaltReply::Answered { answer, .. } => f.write_str(&answer.text),
            HaltReply::Left { unanswered: unanswered @ AskError::Ended { .. }, path, .. } => {
                write!(f, "{unanswered}; `{path}` keeps the run from going on until it is resumed")
            }
            HaltReply::Left { unanswered, path, .. } => {
                write!(f, "{unanswered}; `{path}` holds the request until it looks there")
            }
        }
    }
}

/// Whether no run of the repository was cut short.
fn needs_no_stop(place: &StatePaths) -> Result<bool, AskError> {
    let unfinished = workspace::unfinished(&workspace::reader(place)?)?;
    Ok(!unfinished.is_some_and(is_interrupted))
}

fn is_interrupted((_, state): (JournalRun, State)) -> bool {
    !state.is_at_rest()
}

/// Sends a request about whichever run the process works on. Returns its answer, or `None` when the
/// process ended without taking the request.
fn tell_process(
    place: &StatePaths,
    holder: &Holder,
    ask: Ask,
) -> Result<Option<ProcessAnswer>, AskError> {
    let request = InboxRequest::Asks { limits: LimitChange::default(), asks: vec![ask] };
    deliver(place, holder, None, request)?.map(answered).transpose()
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
    let booted = booted.map_err(without_process)?;
    if let [only] = asks
        && let Some(refusal) = refusal(&booted, only)
        && refusal.is_already_so()
    {
        let answer = ProcessAnswer { text: refusal.to_string(), changed: false };
        return Ok(AskReply::Answered(answer));
    }
    rehearse(&booted, asks.iter().cloned().map(Input::Asked), now).map_err(without_process)?;
    Ok(AskReply::Unattended(Box::new(state)))
}

/// A refusal with the advice for a run that nobody works on: waiting for its end does not help.
fn without_process(mut refusal: Refusal) -> AskError {
    if let Hindrance::Behind { is_stopped, .. } = &mut refusal.why {
        *is_stopped = true;
    }
    AskError::Refused(refusal)
}

/// Leaves a message for the process and waits for its answer. Returns `None` when the process ended
/// without taking the message.
fn deliver(
    place: &StatePaths,
    holder: &Holder,
    run: Option<&str>,
    request: InboxRequest,
) -> Result<Option<InboxAnswer>, AskError> {
    let pid = holder.process.pid;
    let run = run.map(str::to_owned);
    // A process that is still starting has not recorded yet which run it works on.
    if let Some(run) = &run
        && !holder.run.is_empty()
        && holder.run != *run
    {
        return Err(AskError::Elsewhere { pid, run: run.clone() });
    }
    inbox::create(place)?;
    // Watch before the message is written, or its answer could be missed.
    let watch = DirWatch::new(place.inbox().as_std_path());
    let sent = inbox::put(place, &InboxMessage::new(run, request))?;
    let began = Instant::now();
    while began.elapsed() < ANSWER_WAIT_MAX {
        let is_there = workspace::holder(place).is_some();
        if let Some(answer) = sent.answered() {
            return answer.map(Some).map_err(|source| AskError::Unreadable { pid, source });
        }
        if !is_there {
            return if sent.withdraw() { Ok(None) } else { Err(AskError::Ended { pid }) };
        }
        let woken = watch.as_ref().map(|watch| watch.wait(ALIVE_EVERY).is_ok());
        if !woken.unwrap_or(false) {
            std::thread::sleep(POLL_EVERY);
        }
    }
    let is_taken = !sent.withdraw();
    Err(AskError::Silent { pid, is_taken })
}

fn answered(answer: InboxAnswer) -> Result<ProcessAnswer, AskError> {
    match answer {
        InboxAnswer::Done { text } => Ok(ProcessAnswer { text, changed: true }),
        InboxAnswer::Unchanged { text } => Ok(ProcessAnswer { text, changed: false }),
        InboxAnswer::Refused(refusal) => Err(AskError::Refused(refusal)),
        InboxAnswer::Failed(failure) => Err(AskError::Failed(failure)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use autopilot_core::decide::Deed;

    #[test]
    fn nobody_is_told_to_wait_for_the_end_of_a_run_without_a_process() {
        let why = Hindrance::Behind { is_stopped: false, has_session: true };
        let refusal = Refusal { task: Some("a".to_owned()), deed: Deed::Retry, why };
        assert!(refusal.remedy().unwrap().starts_with("wait for the run to end"));
        let AskError::Refused(refusal) = without_process(refusal) else { panic!("another error") };
        let remedy = refusal.remedy().unwrap();
        assert!(remedy.starts_with("let `autopilot resume` finish the run"), "{remedy}");
    }
}
