//! The flows: one table each, and the words the outside knows them by.
//!
//! Everything that is particular to a flow is in this folder. The machine reads the tables and
//! calls the gate of a pipeline; it names none of them.

pub mod goal;
pub mod paired;
pub mod plan;
pub mod root;

use crate::event::TaskSpec;
use crate::event::{End, Skip};
use crate::pipeline::{Stage, Work};
use crate::state::{State, Status, Task};
use crate::step::Step;
use serde::{Deserialize, Serialize};

/// How a run was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flow {
    Task,
    Queue,
    Plan,
    Goal,
}

impl Flow {
    pub fn word(self) -> &'static str {
        match self {
            Flow::Task => "task",
            Flow::Queue => "queue",
            Flow::Plan => "plan",
            Flow::Goal => "goal",
        }
    }

    pub fn root(self) -> Pipeline {
        match self {
            Flow::Task => Pipeline::OneTask,
            Flow::Queue => Pipeline::Queue,
            Flow::Plan => Pipeline::Plan,
            Flow::Goal => Pipeline::Goal,
        }
    }

    /// The pipeline of the tasks such a run is given.
    pub fn task(self) -> Pipeline {
        match self {
            Flow::Task | Flow::Queue | Flow::Plan => Pipeline::Paired,
            Flow::Goal => Pipeline::Session,
        }
    }
}

/// A table by name, because a journal outlives the code that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pipeline {
    OneTask,
    Queue,
    Plan,
    /// A task that is planned and divided when its turn comes.
    Expand,
    Paired,
    Goal,
    /// A step of a workflow.
    Session,
}

impl Pipeline {
    pub const ALL: [Pipeline; 7] = [
        Pipeline::OneTask,
        Pipeline::Queue,
        Pipeline::Plan,
        Pipeline::Expand,
        Pipeline::Paired,
        Pipeline::Goal,
        Pipeline::Session,
    ];

    /// What a task that was to have this pipeline gets.
    pub fn of(self, spec: &TaskSpec) -> Pipeline {
        if spec.expand { Pipeline::Expand } else { self }
    }

    pub fn stages(self) -> &'static [Stage] {
        match self {
            Pipeline::OneTask => root::ONE_TASK,
            Pipeline::Queue => root::QUEUE,
            Pipeline::Plan => plan::PLAN,
            Pipeline::Expand => plan::EXPAND,
            Pipeline::Paired => paired::PAIRED,
            Pipeline::Goal => goal::GOAL,
            Pipeline::Session => goal::SESSION,
        }
    }

    pub fn place(self, step: Step) -> Option<usize> {
        self.stages().iter().position(|stage| stage.step == step)
    }

    /// The stage at which the tasks below are worked on, if there is one.
    pub fn children(self) -> Option<Step> {
        let is_children = |stage: &&Stage| matches!(stage.work, Work::Children(..));
        self.stages().iter().find(is_children).map(|stage| stage.step)
    }

    /// Where another round begins after a no that brought no tasks, in a pipeline in which it may.
    pub fn next(self) -> Option<Step> {
        use crate::pipeline::Else;
        self.stages().iter().find_map(|stage| match stage.fails {
            Else::Next { again, .. } => Some(again),
            Else::Note | Else::Fail | Else::FixBy(_) | Else::Again(_) => None,
        })
    }

    /// Where a task goes on when a person re-opens it: where a failed round would lead, else at the
    /// beginning.
    pub fn reopens_at(self) -> Step {
        use crate::pipeline::Else;
        let again = self.stages().iter().find_map(|stage| match stage.fails {
            Else::Again(step) => Some(step),
            Else::Note | Else::Fail | Else::FixBy(_) | Else::Next { .. } => None,
        });
        again.unwrap_or(self.stages()[0].step)
    }

    /// The step whose session a person may go on with, as part of the run.
    pub fn continues_at(self) -> Option<Step> {
        match self {
            Pipeline::Session => Some(Step::WorkflowStep),
            Pipeline::OneTask
            | Pipeline::Queue
            | Pipeline::Plan
            | Pipeline::Expand
            | Pipeline::Paired
            | Pipeline::Goal => None,
        }
    }

    /// Whether its rounds each have tasks of their own.
    pub fn has_tasks_by_round(self) -> bool {
        use crate::pipeline::Else;
        self.stages().iter().any(|stage| matches!(stage.fails, Else::Next { .. }))
    }

    /// What the round has shown, weighed by the pipeline's own gate.
    pub fn weigh(self, state: &State, task: &Task) -> Weighed {
        match self {
            Pipeline::OneTask
            | Pipeline::Queue
            | Pipeline::Plan
            | Pipeline::Expand
            | Pipeline::Session => Weighed::default(),
            Pipeline::Goal => goal::weigh(task),
            Pipeline::Paired => paired::weigh(state, task),
        }
    }
}

/// A task in the scheduler's words: PENDING, RUNNING, DONE, FAILED, BLOCKED.
pub fn task_word(task: &Task) -> &'static str {
    match &task.status {
        Status::Open => "PENDING",
        // Its turn has come and no worker is free yet.
        Status::At { .. } if task.spent.attempts == 0 && task.children.is_empty() => "PENDING",
        Status::At { .. } | Status::Running { .. } | Status::Waiting { .. } => "RUNNING",
        Status::Settled(End::Closed) => "DONE",
        Status::Settled(End::Skipped { why }) => match why {
            Skip::Asked | Skip::Dropped => "SKIPPED",
            Skip::Blocked { .. } | Skip::Stopped { .. } => "BLOCKED",
        },
        Status::Settled(End::Failed { .. }) => "FAILED",
    }
}

/// The answer of a gate: no reasons means yes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weighed {
    pub reasons: Vec<Reason>,
    /// A word that the evidence contradicts; recorded, because someone may trust that speaker.
    pub overruled: Option<String>,
}

/// One thing that was not good enough, by the step that showed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub step: Step,
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::{Else, When};

    #[test]
    fn every_table_is_sound() {
        for pipeline in Pipeline::ALL {
            let stages = pipeline.stages();
            assert!(!stages.is_empty(), "{pipeline:?}");
            for (place, stage) in stages.iter().enumerate() {
                assert_eq!(pipeline.place(stage.step), Some(place), "{pipeline:?}: a step twice");
                if let Else::Again(step) = stage.fails {
                    let back = pipeline.place(step).expect("a round begins at a step of the table");
                    let leads_on = stages[back].when == When::LaterRounds;
                    assert!(back <= place || leads_on, "{pipeline:?}: {step} comes later");
                }
                let children = pipeline.children().and_then(|step| pipeline.place(step));
                if stage.spawns.is_some() {
                    assert!(children > Some(place), "{pipeline:?}: its tasks are never worked on");
                }
                if let Else::FixBy(_) | Else::Next { .. } = stage.fails {
                    assert!(children.is_some_and(|children| children < place), "{pipeline:?}");
                }
                if stage.work == Work::Decide {
                    assert_ne!(stage.fails, Else::Note, "{pipeline:?}: a decision must lead away");
                }
            }
        }
    }
}
