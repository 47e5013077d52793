//! What a task remembers of the conversation with its builder.

use super::{Shown, Task};
use crate::event::{Outcome, SessionEnd};
use crate::id::AttemptId;
use crate::step::{Role, Step};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most broken tries in a row whose work is looked for.
const BROKEN_MAX: usize = 64;

/// The builder's conversation about one task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BuilderTalk {
    /// The session in which the builder worked last.
    pub session: Option<BuilderSession>,
    /// The last tries that broke, the newest last. A try in the same session continues their work.
    pub broken: Vec<AttemptId>,
    /// The merged result that stands if the turn that a person asked for fails.
    pub stands: Option<Box<StandingResult>>,
    /// The reason why the last turn that a person asked for failed.
    pub failed_turn: Option<String>,
}

/// A session of a builder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuilderSession {
    pub session: String,
    /// The last attempt that used the session, and the lane of its agent.
    pub attempt: AttemptId,
    pub lane: u32,
    /// The end of its last turn; none if it is not known.
    #[serde(default)]
    pub end: Option<SessionEnd>,
    /// The number of tries in a row that broke in the session.
    #[serde(default)]
    pub breaks: u32,
}

/// The result that a task had when a person continued it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StandingResult {
    pub base: Option<String>,
    pub tree: Option<String>,
    pub commit: Option<String>,
    pub results: BTreeMap<Step, Shown>,
}

impl BuilderTalk {
    pub(super) fn is_empty(&self) -> bool {
        *self == BuilderTalk::default()
    }

    pub(super) fn opened(&mut self, step: Step, lane: u32, attempt: AttemptId, session: &str) {
        if step.role() != Some(Role::Builder) {
            return;
        }
        let same = self.session.as_ref().filter(|last| last.session == session);
        let breaks = same.map_or(0, |last| last.breaks);
        let session = session.to_owned();
        self.session = Some(BuilderSession { session, attempt, lane, end: None, breaks });
    }

    /// Notes the end of an attempt. `cut_short` are the attempts whose work it had taken over.
    pub(super) fn ended(&mut self, shown: &Shown, cut_short: &[AttemptId]) {
        let is_broken = matches!(shown.outcome, Outcome::Broke { .. });
        match shown.outcome {
            Outcome::Broke { .. } => {
                self.broken.extend(cut_short.iter().copied().chain([shown.id]));
                let from = self.broken.len().saturating_sub(BROKEN_MAX);
                self.broken.drain(..from);
            }
            Outcome::Passed | Outcome::Failed { .. } | Outcome::Skipped { .. } => {
                self.broken.clear();
            }
            Outcome::Lost
            | Outcome::Quota { .. }
            | Outcome::Away { .. }
            | Outcome::Misconfigured { .. }
            | Outcome::Revoked => {}
        }
        if let Some(session) = self.session.as_mut().filter(|last| last.attempt == shown.id) {
            session.end = shown.facts.turn;
            session.breaks = match shown.outcome {
                Outcome::Passed | Outcome::Failed { .. } => 0,
                Outcome::Broke { .. }
                | Outcome::Lost
                | Outcome::Quota { .. }
                | Outcome::Away { .. }
                | Outcome::Misconfigured { .. }
                | Outcome::Revoked
                | Outcome::Skipped { .. } => session.breaks + u32::from(is_broken),
            };
        }
    }
}

impl Task {
    /// The attempts whose work the next one continues, the newest first: those that were cut short,
    /// and in the same session those that broke too.
    pub fn left_work(&self, in_same_session: bool) -> impl Iterator<Item = AttemptId> + '_ {
        self.cut_short.iter().rev().copied().chain(self.broken_work(in_same_session))
    }

    /// The broken tries whose work the next one continues, the newest first.
    pub fn broken_work(&self, in_same_session: bool) -> impl Iterator<Item = AttemptId> + '_ {
        self.talk.broken.iter().rev().copied().filter(move |_| in_same_session)
    }

    pub(super) fn standing(&self) -> StandingResult {
        StandingResult {
            base: self.base.clone(),
            tree: self.tree.clone(),
            commit: self.commit.clone(),
            results: self.results.clone(),
        }
    }
}
