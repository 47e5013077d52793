//! Requests to a run. The process that works on the run answers; if there is none, this process
//! resumes the run with the request.

use super::{answer, work};
use crate::cli::Global;
use crate::exit::{CommandFailure, ExitKind};
use autopilot_core::decide::{Hindrance, Refusal};
use autopilot_core::input::Ask;
use autopilot_engine::ask::{AskError, AskReply, ProcessAnswer, ask};
use autopilot_engine::inbox::LimitChange;
use autopilot_engine::place::StatePaths;
use autopilot_engine::query::QueryError;
use autopilot_engine::run_process::Intent;
use serde_json::json;

/// Sends one request, after the changes of the limits.
pub fn say(
    global: &Global,
    place: &StatePaths,
    limits: LimitChange,
    asked: Ask,
    wait: bool,
) -> super::Done {
    match ask(place, &limits, std::slice::from_ref(&asked))? {
        AskReply::Answered(ProcessAnswer { text, changed }) => {
            answer(global, json!({ "changed": changed, "answer": text }), |_| text)
        }
        AskReply::Unattended(_) => {
            let opened = work::reopen(global, place, true)?;
            let intent =
                Intent::Resume { asks: vec![asked], limits, model: None, texts: Vec::new() };
            work::work(global, opened, intent, wait)
        }
    }
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
            | AskError::Unreadable { .. }
            | AskError::Flag { .. } => CommandFailure::failed(error),
            AskError::Elsewhere { .. } => {
                CommandFailure::failed(error).hint("wait for it, or `autopilot stop` it first")
            }
            AskError::Silent { is_taken: false, .. } => CommandFailure::failed(error)
                .hint("nothing was changed; `autopilot status` shows where the run stands"),
            AskError::Silent { is_taken: true, .. } | AskError::Ended { .. } => {
                CommandFailure::failed(error).hint("`autopilot status` shows where the run stands")
            }
        }
    }
}

impl From<Refusal> for CommandFailure {
    fn from(refusal: Refusal) -> CommandFailure {
        let kind = match &refusal.why {
            Hindrance::Acting
            | Hindrance::Lifetime { .. }
            | Hindrance::Money { .. }
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
