//! Accounts in trouble: held for a time, then tried by one attempt at a time.
//!
//! A vendor that refuses one task refuses all of them, so the account is held and not the task. Only
//! accounts in trouble are kept; an account that is not here can be used.

use super::{LiveAttempt, State, Task};
use crate::config::WorkBy;
use crate::event::{HoldWhy, Outcome, THIS_MACHINE};
use crate::id::{AttemptId, TaskId, Time};
use crate::limit::account_of;
use crate::step::{Role, Step};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// An account in trouble.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// The reason of the last hold.
    pub why: HoldWhy,
    /// The number of failures in a row.
    pub trips: u32,
    pub held: Option<Hold>,
    /// The attempt that finds out whether the account works again.
    pub probe: Option<AttemptId>,
}

/// The time during which an account is not used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hold {
    /// None if the hold does not end by itself.
    pub until: Option<Time>,
    pub text: String,
    /// The vendor named no end; `until` is the next try.
    #[serde(default)]
    pub guess: bool,
}

/// The availability of an agent for a step.
#[derive(Clone, Debug, PartialEq)]
pub enum LaneState {
    Open {
        lane: u32,
    },
    /// An attempt is finding out whether the account works again.
    Probed,
    /// All agents are held. `account` is the one that may be tried first, and `until` is that time.
    Held {
        account: String,
        why: HoldWhy,
        text: String,
        until: Option<Time>,
        guess: bool,
    },
}

impl Task {
    /// The agent that the task names for a step. It names one for its own work, not for reviews.
    pub fn by(&self, step: Step) -> &WorkBy {
        const ANYBODY: &WorkBy = &WorkBy { agent: None, model: None };
        match step.role() {
            Some(Role::Builder) => &self.spec.by,
            Some(Role::Reviewer | Role::Planner) | None => ANYBODY,
        }
    }
}

impl State {
    /// The account, or `account/model`, of a lane of a task's step.
    pub fn lane_name(&self, task: TaskId, step: Step, lane: u32) -> Cow<'_, str> {
        self.run.limits.lane_by(step, self.task(task).by(step), lane)
    }

    /// The account, or `account/model`, that an attempt works with.
    pub fn lane_of(&self, live: &LiveAttempt) -> Cow<'_, str> {
        self.lane_name(live.task, live.step, live.lane)
    }

    /// Like [`State::door`], but prefers the lane on which the work was started, if it is open.
    pub fn door_by(&self, step: Step, by: &WorkBy, lane: Option<u32>) -> LaneState {
        let limits = &self.run.limits;
        let known = lane.filter(|lane| (*lane as usize) < limits.lanes_by(step, by));
        let is_open = |lane: &u32| self.door_of(&limits.lane_by(step, by, *lane)).is_none();
        known.filter(is_open).map_or_else(|| self.door(step, by), |lane| LaneState::Open { lane })
    }

    /// The availability of an agent for a step that is done by `by`.
    pub fn door(&self, step: Step, by: &WorkBy) -> LaneState {
        if self.run.accounts.is_empty() {
            return LaneState::Open { lane: 0 };
        }
        let lanes = self.run.limits.lanes_by(step, by);
        let mut doors = Vec::new();
        for lane in 0..lanes as u32 {
            match self.door_of(&self.run.limits.lane_by(step, by, lane)) {
                None => return LaneState::Open { lane },
                Some(door) => doors.push(door),
            }
        }
        doors.into_iter().min_by_key(rank).unwrap_or(LaneState::Open { lane: 0 })
    }

    /// Whether the machine can do work now, for steps that need no agent.
    pub fn machine_door(&self) -> LaneState {
        self.worst_of([THIS_MACHINE]).unwrap_or(LaneState::Open { lane: 0 })
    }

    /// The state of a lane; none if it is open.
    fn door_of(&self, lane: &str) -> Option<LaneState> {
        // The machine, the account and its model must all be free.
        self.worst_of([THIS_MACHINE, account_of(lane), lane])
    }

    fn worst_of<const N: usize>(&self, names: [&str; N]) -> Option<LaneState> {
        let doors = names.into_iter().filter_map(|name| {
            let account = self.run.accounts.get(name)?;
            match (&account.held, account.probe) {
                (Some(hold), _) => Some(LaneState::Held {
                    account: name.to_owned(),
                    why: account.why,
                    text: hold.text.clone(),
                    until: hold.until,
                    guess: hold.guess,
                }),
                (None, Some(_)) => Some(LaneState::Probed),
                (None, None) => None,
            }
        });
        doors.max_by_key(rank)
    }

    /// The accounts that are held, with the reason and the hold.
    pub fn holds(&self) -> impl Iterator<Item = (&str, HoldWhy, &Hold)> + '_ {
        self.run.accounts.iter().filter_map(|(name, account)| {
            Some((name.as_str(), account.why, account.held.as_ref()?))
        })
    }

    pub(super) fn held(&mut self, account: &str, hold: Hold, why: HoldWhy, trips: u32) {
        let before = self.run.accounts.remove(account);
        // A probe that is under way continues; its result still counts.
        let probe = before.and_then(|account| account.probe);
        let account_now = Account { why, trips, held: Some(hold), probe };
        self.run.accounts.insert(account.to_owned(), account_now);
    }

    pub(super) fn freed(&mut self, account: &str, at: Time) {
        let Some(account) = self.run.accounts.get_mut(account) else { return };
        let Some(hold) = account.held.take() else { return };
        // Freed before its time means that a person said so, who knows more than the count.
        if hold.until.is_none_or(|until| at < until) {
            account.trips = 1;
        }
    }

    /// Makes a starting attempt the probe of its account, if that account is in trouble.
    pub(super) fn probes(&mut self, attempt: AttemptId, live: &LiveAttempt) {
        if self.run.accounts.is_empty() {
            return;
        }
        let lane = self.lane_of(live).into_owned();
        for (name, account) in &mut self.run.accounts {
            if *name == lane || name == account_of(&lane) || name == THIS_MACHINE {
                account.probe.get_or_insert(attempt);
            }
        }
    }

    pub(super) fn probed(&mut self, attempt: AttemptId, outcome: &Outcome) {
        let (agent_works, machine_works) = match outcome {
            Outcome::Passed | Outcome::Failed { .. } => (true, true),
            Outcome::Misconfigured { .. }
            | Outcome::Broke { .. }
            | Outcome::Quota { .. }
            | Outcome::Skipped { .. } => (false, true),
            Outcome::Away { why, .. } => (false, !matches!(why, HoldWhy::Machine(_))),
            Outcome::Lost | Outcome::Revoked => (false, false),
        };
        self.run.accounts.retain(|name, account| {
            if account.probe != Some(attempt) {
                return true;
            }
            account.probe = None;
            let works = if name == THIS_MACHINE { machine_works } else { agent_works };
            !works || account.held.is_some()
        });
    }
}

/// The order of lane states: the sooner a lane may open, the smaller.
fn rank(door: &LaneState) -> (u8, Option<Time>) {
    match door {
        LaneState::Open { .. } => (0, None),
        LaneState::Probed => (1, None),
        LaneState::Held { until: Some(until), .. } => (2, Some(*until)),
        LaneState::Held { until: None, .. } => (3, None),
    }
}
