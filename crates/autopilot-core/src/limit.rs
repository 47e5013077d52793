//! The limits a run works under. Each outcome spends its own, so a crash never costs a round and
//! a full quota never costs a retry.

use crate::config::By;
use crate::id::Micros;
use crate::step::Step;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Rounds of a task in its whole life; more can't be asked for.
pub const ROUNDS_LIFETIME_MAX: u32 = 50;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Tasks worked at once.
    pub workers_max: u32,
    /// Effects of the controller under way at once.
    #[serde(default = "one")]
    pub effects_max: u32,
    /// Tasks whose declared paths overlap are not worked on at once.
    #[serde(default)]
    pub overlaps_wait: bool,
    /// Rounds of a task between two decisions of a person.
    pub rounds_max: u32,
    /// The same of the tasks below the run, where a round of the run is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds_below_max: Option<u32>,
    /// Rounds of a task in its whole life; no retry resets it.
    pub rounds_lifetime_max: u32,
    /// Tries of a step in a round that may break, beyond the first.
    pub retries: BTreeMap<Step, u32>,
    /// Broken tries of a task over all its steps.
    pub retries_max: u32,
    /// Crashes and lost workers a task may suffer.
    pub interruptions_max: u32,
    /// Time a task may wait for quota in all.
    pub wait_quota_max_ms: u64,
    pub usd_max: Option<Micros>,
    pub usd_per_task_max: Option<Micros>,
    /// Time the run may be worked on in all; halts, questions and waiting do not count.
    pub wall_max_ms: Option<u64>,
    /// Failed rounds in a row that may look the same.
    pub same_failures_max: u32,
    /// Rounds in a row that may change nothing.
    pub no_ops_max: u32,
    pub review: ReviewGate,
    /// Who can do a step, in order of preference: the name of an account, or `account/model`. A
    /// step that is not here has an account of its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lanes: BTreeMap<Step, Vec<String>>,
    /// The same by the name of an agent, for tasks that name one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, Vec<String>>,
}

/// What a review may block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewGate {
    /// Nothing is merged without APPROVE.
    Required,
    /// Only a blocker or a major issue blocks, and only if it cites a failing check, an acceptance
    /// criterion or a line of the change.
    Evidence,
    Advisory,
}

impl Limits {
    pub fn retries_of(&self, step: Step) -> u32 {
        self.retries.get(&step).copied().unwrap_or(1)
    }

    /// Rounds of the run itself or of a task below it.
    pub fn rounds_of(&self, is_run: bool) -> u32 {
        self.rounds_below_max.filter(|_| !is_run).unwrap_or(self.rounds_max)
    }

    /// Lanes of a step when it is done by those; at least one.
    pub fn lanes_by(&self, step: Step, by: &By) -> usize {
        self.known_lanes(step, by).map_or(1, <[String]>::len).max(1)
    }

    /// The name of a lane; one that is not in the list has an account of its own.
    pub fn lane_by(&self, step: Step, by: &By, lane: u32) -> Cow<'_, str> {
        let lanes = self.known_lanes(step, by).unwrap_or_default();
        let Some(first) = lanes.first() else {
            let own = by.agent.clone().map_or(Cow::Borrowed(step.word()), Cow::Owned);
            return match &by.model {
                Some(model) => Cow::Owned(format!("{own}/{model}")),
                None => own,
            };
        };
        let name = lanes.get(lane as usize).unwrap_or(first);
        match &by.model {
            // As `Agent::with_model` has it: the same kind with the same model follows the first.
            Some(model) if parts(name) == parts(first) => {
                Cow::Owned(format!("{}/{model}", account_of(name)))
            }
            Some(_) | None => Cow::Borrowed(name),
        }
    }

    fn known_lanes(&self, step: Step, by: &By) -> Option<&[String]> {
        let lanes = match &by.agent {
            Some(name) => self.agents.get(name),
            None => self.lanes.get(&step),
        };
        lanes.map(Vec::as_slice)
    }
}

/// The account of a lane: a lane may name a model of it. Names of accounts have no slash.
pub fn account_of(lane: &str) -> &str {
    lane.split_once('/').map_or(lane, |(account, _)| account)
}

/// The kind of a lane's account, which is what stands before its number, and the model.
fn parts(lane: &str) -> (&str, Option<&str>) {
    let (account, model) = match lane.split_once('/') {
        Some((account, model)) => (account, Some(model)),
        None => (lane, None),
    };
    (account.split_once(':').map_or(account, |(kind, _)| kind), model)
}

fn one() -> u32 {
    1
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            workers_max: 3,
            effects_max: 1,
            overlaps_wait: true,
            rounds_max: 5,
            rounds_below_max: None,
            rounds_lifetime_max: ROUNDS_LIFETIME_MAX,
            retries: BTreeMap::from([(Step::Push, 2)]),
            retries_max: 8,
            interruptions_max: 20,
            wait_quota_max_ms: 6 * 3_600_000,
            usd_max: None,
            usd_per_task_max: None,
            wall_max_ms: None,
            same_failures_max: 3,
            no_ops_max: 2,
            review: ReviewGate::Required,
            lanes: BTreeMap::new(),
            agents: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(agent: Option<&str>, model: Option<&str>) -> By {
        By { agent: agent.map(str::to_owned), model: model.map(str::to_owned) }
    }

    fn names(limits: &Limits, by: &By) -> Vec<String> {
        let lanes = 0..limits.lanes_by(Step::WorkflowStep, by) as u32;
        lanes.map(|lane| limits.lane_by(Step::WorkflowStep, by, lane).into_owned()).collect()
    }

    #[test]
    fn a_task_is_held_by_the_accounts_of_its_own_agent() {
        let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let limits = Limits {
            lanes: BTreeMap::from([(Step::WorkflowStep, of(&["one/big", "one:2/big", "two"]))]),
            agents: BTreeMap::from([("fast".to_owned(), of(&["two", "two:2/small", "one"]))]),
            ..Limits::default()
        };
        for (by, wanted) in [
            (by(None, None), &["one/big", "one:2/big", "two"][..]),
            (by(Some("fast"), None), &["two", "two:2/small", "one"]),
            // The same kind with the same model follows, nobody else.
            (by(None, Some("new")), &["one/new", "one:2/new", "two"]),
            (by(Some("fast"), Some("new")), &["two/new", "two:2/small", "one"]),
            // Not known from an older journal: an account of its own.
            (by(Some("gone"), None), &["gone"]),
            (by(Some("gone"), Some("m")), &["gone/m"]),
        ] {
            assert_eq!(names(&limits, &by), wanted, "{by:?}");
        }
        let nothing = Limits::default();
        assert_eq!(names(&nothing, &by(None, None)), ["step"]);
        assert_eq!(nothing.lane_by(Step::WorkflowStep, &by(None, None), 7), "step");
        assert_eq!(limits.lane_by(Step::WorkflowStep, &by(Some("fast"), None), 7), "two");
    }

    #[test]
    fn limits_of_an_older_journal_are_read() {
        let mut old = serde_json::to_value(Limits::default()).unwrap();
        assert!(old.as_object_mut().unwrap().remove("agents").is_none(), "not written when empty");
        assert_eq!(serde_json::from_value::<Limits>(old).unwrap(), Limits::default());
    }
}
