//! The limits of a run. Each kind of outcome counts against its own limit, so a crash never costs a
//! round and a full quota never costs a retry.

use crate::config::WorkBy;
use crate::id::Micros;
use crate::rows::rows;
use crate::step::Step;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The number of rounds of a task in its whole life; more can't be asked for.
pub const ROUNDS_LIFETIME_MAX: u32 = 50;

/// The limits of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The number of tasks that run at once.
    pub workers_max: u32,
    /// The number of the controller's effects that run at once.
    #[serde(default = "one")]
    pub effects_max: u32,
    /// Whether tasks with overlapping declared paths wait for each other.
    #[serde(default)]
    pub overlaps_wait: bool,
    /// The number of rounds of a task between two decisions of a person.
    pub rounds_max: u32,
    /// The number of rounds of the tasks below the run, if it differs from that of the run itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds_below_max: Option<u32>,
    /// The number of rounds of a task in its whole life; no retry resets it.
    pub rounds_lifetime_max: u32,
    /// The number of retries of a broken step in one round, by step.
    pub retries: BTreeMap<Step, u32>,
    /// The number of broken tries of a task over all its steps.
    pub retries_max: u32,
    /// The number of crashes and lost workers that a task may suffer.
    pub interruptions_max: u32,
    /// The time that a task may wait for quota in total.
    pub wait_quota_max_ms: u64,
    /// The most money that the run may cost.
    pub usd_max: Option<Micros>,
    /// The most money that one task may cost.
    pub usd_per_task_max: Option<Micros>,
    /// The time that the run may work in total; halts, questions and waiting do not count.
    pub wall_max_ms: Option<u64>,
    /// The number of failed rounds in a row that may look the same.
    pub same_failures_max: u32,
    /// The number of rounds in a row that may change nothing.
    pub no_ops_max: u32,
    /// The power of a review to block a change.
    pub review: ReviewGate,
    /// What it takes for a test of the base to fail with the change.
    #[serde(default)]
    pub yardstick_changes: YardstickChanges,
    /// The lanes of a step in the order of preference: each is the name of an account, or
    /// `account/model`. A step that is not here has its own account.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lanes: BTreeMap<Step, Vec<String>>,
    /// The lanes of each named agent, for tasks that name one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, Vec<String>>,
}

rows! {
/// The power of a review to block a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
ReviewGate -> &'static str {
    /// No change is merged without APPROVE.
    Required: "required",
    /// Only a blocker or a major issue blocks, and only if it cites a failing check, an acceptance
    /// criterion or a line of the change.
    Evidence: "evidence",
    /// A review never blocks.
    Advisory: "advisory",
}}

rows! {
/// What it takes for a test of the base to fail with the change, to be skipped by it or to be gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
YardstickChanges -> &'static str {
    /// Nothing; the person is told.
    Told: "told",
    /// The task's text or its paths name the test, or the reviewer accepts it by name.
    #[default]
    Reviewed: "reviewed",
    /// The task's text or its paths name the test, or a person accepts it.
    Person: "person",
    /// The task's text or its paths name the test.
    Refused: "refused",
}}

impl Limits {
    /// The number of retries of a step in one round.
    pub fn retries_of(&self, step: Step) -> u32 {
        self.retries.get(&step).copied().unwrap_or(1)
    }

    /// The number of rounds of the run itself, or of a task below it.
    pub fn rounds_of(&self, is_run: bool) -> u32 {
        self.rounds_below_max.filter(|_| !is_run).unwrap_or(self.rounds_max)
    }

    /// The number of lanes of a step that is done by `by`; at least one.
    pub fn lanes_by(&self, step: Step, by: &WorkBy) -> usize {
        self.known_lanes(step, by).map_or(1, <[String]>::len).max(1)
    }

    /// The name of a lane; a lane that is not in the list has its own account.
    pub fn lane_by(&self, step: Step, by: &WorkBy, lane: u32) -> Cow<'_, str> {
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
            // As in `Agent::with_model`, fallbacks of the same kind with the same model change with
            // the first.
            Some(model) if parts(name) == parts(first) => {
                Cow::Owned(format!("{}/{model}", account_of(name)))
            }
            Some(_) | None => Cow::Borrowed(name),
        }
    }

    fn known_lanes(&self, step: Step, by: &WorkBy) -> Option<&[String]> {
        let lanes = match &by.agent {
            Some(name) => self.agents.get(name),
            None => self.lanes.get(&step),
        };
        lanes.map(Vec::as_slice)
    }
}

/// The account of a lane, which may also name a model. Names of accounts have no slash.
pub fn account_of(lane: &str) -> &str {
    lane.split_once('/').map_or(lane, |(account, _)| account)
}

/// The kind of a lane's account (the part before its number) and the model.
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
            yardstick_changes: YardstickChanges::default(),
            lanes: BTreeMap::new(),
            agents: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(agent: Option<&str>, model: Option<&str>) -> WorkBy {
        WorkBy { agent: agent.map(str::to_owned), model: model.map(str::to_owned) }
    }

    fn names(limits: &Limits, by: &WorkBy) -> Vec<String> {
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
            // Only fallbacks of the same kind with the same model get the new model.
            (by(None, Some("new")), &["one/new", "one:2/new", "two"]),
            (by(Some("fast"), Some("new")), &["two/new", "two:2/small", "one"]),
            // An older journal has no lanes for the agent, so it counts as its own account.
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
