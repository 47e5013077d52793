//! Requests to a run. The process that works on the run answers; if there is none, this process
//! resumes the run with the request.

use super::{answer, work};
use crate::cli::Global;
use crate::exit::{CommandFailure, ExitKind, unchangeable};
use autopilot_core::decide::{Hindrance, Refusal};
use autopilot_core::input::Ask;
use autopilot_engine::ask::{AskError, AskReply, ProcessAnswer, ask};
use autopilot_engine::inbox::LimitChange;
use autopilot_engine::place::StatePaths;
use autopilot_engine::query::QueryError;
use autopilot_engine::run_process::Intent;
use serde_json::json;
use std::time::Duration;

/// How often a request is sent again because another process has just taken the run up.
const TRIES_MAX: u32 = 50;
/// The time that such a process gets to write its name or to end.
const TRY_EVERY: Duration = Duration::from_millis(50);

/// Sends one request, after the changes of the limits.
pub fn say(
    global: &Global,
    place: &StatePaths,
    limits: LimitChange,
    asked: Ask,
    wait: bool,
) -> super::Done {
    for _ in 0..TRIES_MAX {
        match ask(place, &limits, std::slice::from_ref(&asked))? {
            AskReply::Answered(ProcessAnswer { text, changed }) => {
                return answer(global, json!({ "changed": changed, "answer": text }), |_| text);
            }
            AskReply::Unattended(_) => match resume(global, place, &limits, &asked, wait) {
                // The process that was faster answers.
                Err(failure) if failure.is_locked_out() => std::thread::sleep(TRY_EVERY),
                done => return done,
            },
        }
    }
    resume(global, place, &limits, &asked, wait)
}

/// Resumes the run with the request.
fn resume(
    global: &Global,
    place: &StatePaths,
    limits: &LimitChange,
    asked: &Ask,
    wait: bool,
) -> super::Done {
    let opened = work::reopen(global, place, true)?;
    let (asks, limits) = (vec![asked.clone()], limits.clone());
    let intent = Intent::Resume { asks, limits, model: None, texts: Vec::new() };
    work::work(global, opened, intent, wait)
}

impl From<AskError> for CommandFailure {
    fn from(error: AskError) -> CommandFailure {
        match error {
            AskError::NoRun => QueryError::NoRunYet.into(),
            AskError::Refused(refusal) => refusal.into(),
            AskError::Workspace(error) => error.into(),
            AskError::Inbox(_)
            | AskError::NoProcess { .. }
            | AskError::Failed(_)
            | AskError::Unreadable { .. } => CommandFailure::failed(error),
            AskError::Flag { .. } => unchangeable(error),
            AskError::Elsewhere { .. } => {
                CommandFailure::failed(error).hint("wait for it, or `autopilot stop` it first")
            }
            AskError::Silent { is_taken: false, .. } => CommandFailure::failed(error)
                .hint("nothing was changed; `autopilot status` shows where the run stands"),
            AskError::Silent { is_taken: true, .. } => CommandFailure::failed(error).hint(
                "it has taken the request and may still carry it out; `autopilot status` shows \
                 where the run stands",
            ),
            AskError::Ended { .. } => CommandFailure::failed(error).hint(
                "it had taken the request and may have carried it out; `autopilot status` shows \
                 where the run stands",
            ),
        }
    }
}

impl From<Refusal> for CommandFailure {
    fn from(refusal: Refusal) -> CommandFailure {
        let kind = match &refusal.why {
            Hindrance::Acting
            | Hindrance::Lifetime { .. }
            | Hindrance::Money(_)
            | Hindrance::AtWork
            | Hindrance::Merging
            | Hindrance::Publishing => ExitKind::Failed,
            Hindrance::AlreadySo
            | Hindrance::Unknown { .. }
            | Hindrance::TheRun
            | Hindrance::Done
            | Hindrance::NotFailed
            | Hindrance::ItsTasks { .. }
            | Hindrance::Blocked { .. }
            | Hindrance::Dropped { .. }
            | Hindrance::LeftOut { .. }
            | Hindrance::Behind { .. }
            | Hindrance::NotAStep
            | Hindrance::NeverBegun
            | Hindrance::NoGate
            | Hindrance::NoReason
            | Hindrance::Nonsense { .. } => ExitKind::Usage,
        };
        let remedy = refusal.remedy();
        let failure = CommandFailure::new(kind, refusal);
        match remedy {
            Some(remedy) => failure.hint(remedy),
            None => failure,
        }
    }
}
