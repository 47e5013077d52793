//! The limits a run works under. Each outcome spends its own, so a crash never costs a round and
//! a full quota never costs a retry.

use crate::id::Micros;
use crate::step::Step;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
}

/// What a review may block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewGate {
    /// Nothing is merged without APPROVE.
    Required,
    /// Only findings backed by a failing test or an acceptance criterion block.
    Evidence,
    Advisory,
}

impl Limits {
    pub fn retries_of(&self, step: Step) -> u32 {
        self.retries.get(&step).copied().unwrap_or(1)
    }
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
            rounds_lifetime_max: 50,
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
        }
    }
}
