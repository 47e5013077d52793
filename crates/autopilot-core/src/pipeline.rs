//! Pipelines: constant tables of stages that one state machine reads.
//!
//! A new stage is one line in a table and a new flow one table; the machine never asks which flow
//! it is running.

use crate::flow::Pipeline;
use crate::rows::rows;
use crate::step::Step;
use serde::{Deserialize, Serialize};

/// One row of a pipeline's table.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    pub step: Step,
    pub work: Work,
    pub when: When,
    /// The condition under which a setting saves the stage, whose result would decide nothing.
    pub spared: Option<Sparing>,
    pub fails: Else,
    /// The pipeline of the tasks that the stage brings. A stage that should bring tasks and brings
    /// none is broken.
    pub spawns: Option<Pipeline>,
}

/// The kind of worker that does a stage, and the fate of the work if that worker dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// An agent or a command on a worker. Its work is lost with it; the next try is a new attempt.
    Slot,
    /// An effect of the controller, one at a time in a run. It survives a restart under the same
    /// attempt id, looks for its own trace and does only the missing part.
    Serial,
    /// A person, whose answer ends the attempt. Such an attempt holds no worker and survives restarts.
    Person,
    /// The child tasks, in this order.
    Children(ChildOrder, Failing),
    /// The core judges the results of the round; takes no time.
    Decide,
}

/// The order in which child tasks start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildOrder {
    /// Each child starts as soon as its dependencies are closed.
    Parallel,
    /// Children run in order of creation, each on top of the last.
    OneByOne,
}

/// The effect of a failed child on its siblings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// No other child is started.
    Stop,
    /// Siblings that do not depend on the failed child continue.
    Independent,
    /// The reviewer weighs the failure with all other results. Dependants continue with what it left,
    /// or are skipped if [`Switch::FailFast`] is on.
    Assess,
}

/// The condition for a stage. A stage that a switch turns off is recorded as skipped, so that a
/// reader sees what was not proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Always,
    FirstRound,
    LaterRounds,
    On(Switch),
    /// The switch is on. A run without it is not told of the stage: it proves nothing less, or began
    /// before there was such a stage.
    Silently(Switch),
    /// The task's tree becomes the result of the run, and was not yet proven from nothing. A task to
    /// which that does not apply is not told of the stage.
    LastWord,
    /// A test of the base does not pass as it did, and the run asks a person about such tests. A task to
    /// which that does not apply is not told of the stage.
    TestsAreOpen,
}

/// The reason for which the last proof is saved.
pub const ALL_COLD: &str = "every gate started from nothing";

/// A switch that saves a stage, and the condition for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sparing {
    /// The switch is on, and this step has said no in the same round.
    AfterNo(Switch, Step),
    /// The switch is on, and the second one is off.
    Without(Switch, Switch),
    /// The switch is off, and no test of the base waits for whoever the stage asks.
    Waived(Switch),
    /// No gate of the run passed over a seed.
    AllCold,
    /// The validation said no, or the task is a repair that its commands prove.
    NothingToCover,
}

rows! {
/// The settings that configuration and people may switch, each with the reason why a stage is
/// skipped: while it is off, or by a [`Sparing`] while it is on. The tables themselves are not configurable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
Switch -> &'static str {
    Baseline: "nobody asked to check the base",
    Review: "a person switched the review off",
    Uat: "no `uat` command is configured",
    Push: "nobody asked for a push",
    /// A pull request is opened or updated.
    Pr: "nobody asked for a pull request",
    /// A person approves the plan before its tasks start.
    PlanGate: "nobody asked to approve the plan",
    /// A person approves the result before it leaves the machine.
    EndGate: "nobody asked to approve the result",
    /// A `tests` command is configured, with which the whole can be validated.
    #[serde(rename = "proof")]
    HasTests: "no `tests` command is configured, so nothing was proven",
    /// Tasks that depend on a failed one are not started.
    FailFast: "nobody asked to skip the tasks that depend on a failure",
    /// No review is paid for after failed tests (`loop.review_on_red: false`).
    SpareReview: "the validation failed, and `loop.review_on_red` is false",
    /// Acceptance cases are written only where a command runs them (`uat.generate: auto`).
    SpareCases: "no `uat` command would run the cases, and `uat.generate` is auto",
    /// Gates may run over a seed, so the result is proven once more from nothing.
    ColdProof: "nobody asked to prove the result from nothing",
    /// The base is proven although an earlier run proved it (`--prove-base`).
    ProveBase: "nobody asked to prove the base again",
    /// A change of what decides its verdict is proven with the base's tests as well. Runs that began under
    /// an older version do without.
    ThreeRuns: "the run began before tests of the base were run over the change",
    /// The result of a plan is reviewed as a whole. Runs that began under an older version do without.
    WholeReview: "`gates.whole_review` is false",
    /// Each criterion needs a test that fails without the change (`gates.proof: red_green`).
    RedGreen: "nobody asked for a failing test of each criterion",
}}

impl Switch {
    /// The reason given for a stage that was skipped because of the switch.
    pub fn why_skipped(self) -> &'static str {
        self.row()
    }
}

/// The consequence of a no from a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Else {
    /// The no is noted for the round's decision; the pipeline continues.
    Note,
    Fail,
    /// Another round starts at this step, if the limits and rails allow it.
    Again(Step),
    /// The stage brings tasks that repair the result: another round starts with them, if the limits
    /// allow it.
    FixBy(Pipeline),
    /// The stage brings the tasks of the next round; without any, that round starts at `again`.
    Next {
        again: Step,
        brings: Pipeline,
    },
}

const fn stage(step: Step, work: Work) -> Stage {
    Stage { step, work, when: When::Always, spared: None, fails: Else::Fail, spawns: None }
}

/// A stage for an agent or a command on a worker.
pub const fn slot(step: Step) -> Stage {
    stage(step, Work::Slot)
}

/// A stage for an effect of the controller.
pub const fn serial(step: Step) -> Stage {
    stage(step, Work::Serial)
}

/// A stage at which a person answers.
pub const fn person(step: Step) -> Stage {
    stage(step, Work::Person)
}

/// A stage at which the child tasks run.
pub const fn children(step: Step, order: ChildOrder, failing: Failing) -> Stage {
    stage(step, Work::Children(order, failing))
}

/// A stage at which the core judges the round.
pub const fn decide(step: Step) -> Stage {
    stage(step, Work::Decide)
}

impl Stage {
    /// The same stage under a condition.
    pub const fn when(mut self, when: When) -> Stage {
        self.when = when;
        self
    }

    /// The same stage, saved by a setting under a condition.
    pub const fn spared(mut self, spared: Sparing) -> Stage {
        self.spared = Some(spared);
        self
    }

    /// The same stage with another consequence of a no.
    pub const fn fails(mut self, fails: Else) -> Stage {
        self.fails = fails;
        self
    }

    /// The same stage, bringing tasks with this pipeline.
    pub const fn spawns(mut self, pipeline: Pipeline) -> Stage {
        self.spawns = Some(pipeline);
        self
    }

    /// Whether the stage may bring no tasks and has still done its work.
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
