//! What a pipeline is: a constant table of stages that one machine reads.
//!
//! A new stage is one line in a table and a new flow one table; the machine never asks which flow
//! it is running.

use crate::flow::Pipeline;
use crate::step::Step;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug)]
pub struct Stage {
    pub step: Step,
    pub work: Work,
    pub when: When,
    pub fails: Else,
    /// The pipeline of the tasks its work brings. Work that should bring tasks and brings none has
    /// broken, it has not succeeded.
    pub spawns: Option<Pipeline>,
}

/// Who does the work of a stage, and what becomes of it when its doer dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// An agent or a command on a worker. Lost with it; the next try is a new attempt.
    Slot,
    /// An effect of the controller, one at a time in a run. It outlives a boot under the same
    /// attempt id, looks for its own trace and does only what is missing.
    Serial,
    /// A person, whose word ends the attempt. It holds nothing and outlives everything.
    Person,
    /// The tasks below this one, in this order.
    Children(ChildOrder, Failing),
    /// The core weighs what the round has shown; takes no time.
    Decide,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildOrder {
    /// As soon as their dependencies are closed.
    Parallel,
    /// In order of creation, each on top of the last.
    OneByOne,
}

/// What a failed child means for its siblings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// Nothing else is begun.
    Stop,
    /// What does not depend on it goes on.
    Independent,
    /// Whoever looks at all of them weighs it. What depends on it goes on with what it left, or is
    /// left out where [`Switch::FailFast`] is on.
    Assess,
}

/// When a stage is taken. A stage not taken because of a switch is recorded as skipped, so that a
/// reader sees what was not proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Always,
    FirstRound,
    LaterRounds,
    On(Switch),
}

/// What configuration and people may switch. The tables themselves are not configurable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    Baseline,
    Review,
    Uat,
    Push,
    /// A pull request is opened or updated.
    Pr,
    /// A person approves the plan before it is worked on.
    PlanGate,
    /// A person approves the result before it leaves the machine.
    EndGate,
    /// There are tests to prove the whole with.
    #[serde(rename = "proof")]
    HasTests,
    /// What depends on something that failed is not begun.
    FailFast,
}

impl Switch {
    /// Said of a stage that was left out because of it.
    pub fn why_off(self) -> &'static str {
        match self {
            Switch::Baseline => "the base was not asked to be proven",
            Switch::Review => "a person switched the review off",
            Switch::Uat => "no `uat` command is configured",
            Switch::Push => "nobody asked for a push",
            Switch::Pr => "nobody asked for a pull request",
            Switch::PlanGate => "nobody asked to approve the plan",
            Switch::EndGate => "nobody asked to approve the result",
            Switch::HasTests => "no `tests` command is configured, so nothing was proven",
            Switch::FailFast => "nobody asked to leave out what depends on a failure",
        }
    }
}

/// What follows when the work of a stage was done and its answer is no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Else {
    /// Noted for the round's decision; the pipeline goes on.
    Note,
    Fail,
    /// Another round from this step, if the limits and rails allow it.
    Again(Step),
    /// The tasks it brings repair it: another round from the children on, if the limits allow it.
    FixBy(Pipeline),
    /// The tasks it brings are the next round; if it brings none, that begins at a step.
    Next {
        again: Step,
        brings: Pipeline,
    },
}

const fn stage(step: Step, work: Work) -> Stage {
    Stage { step, work, when: When::Always, fails: Else::Fail, spawns: None }
}

pub const fn slot(step: Step) -> Stage {
    stage(step, Work::Slot)
}

pub const fn serial(step: Step) -> Stage {
    stage(step, Work::Serial)
}

pub const fn person(step: Step) -> Stage {
    stage(step, Work::Person)
}

pub const fn children(step: Step, order: ChildOrder, failing: Failing) -> Stage {
    stage(step, Work::Children(order, failing))
}

pub const fn decide(step: Step) -> Stage {
    stage(step, Work::Decide)
}

impl Stage {
    pub const fn when(mut self, when: When) -> Stage {
        self.when = when;
        self
    }

    pub const fn fails(mut self, fails: Else) -> Stage {
        self.fails = fails;
        self
    }

    pub const fn spawns(mut self, pipeline: Pipeline) -> Stage {
        self.spawns = Some(pipeline);
        self
    }

    /// Whether it may bring no tasks and has still done its work.
    pub fn may_bring_none(&self, passed: bool) -> bool {
        match self.fails {
            Else::Next { .. } => !passed,
            Else::Note | Else::Fail | Else::Again(_) | Else::FixBy(_) => false,
        }
    }

    /// The pipeline of the tasks this stage brings when its answer is yes, or no.
    pub fn brings(&self, passed: bool) -> Option<Pipeline> {
        match (passed, self.fails) {
            (true, _) => self.spawns,
            (false, Else::FixBy(pipeline) | Else::Next { brings: pipeline, .. }) => Some(pipeline),
            (false, Else::Note | Else::Fail | Else::Again(_)) => None,
        }
    }
}
