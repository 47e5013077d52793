//! The flows: one table each, and the words the outside knows them by.
//!
//! Everything that is particular to a flow is in this folder. The machine reads the tables and
//! calls the gate of a pipeline; it names none of them.

pub mod builder_session;
pub mod goal;
pub mod merging;
pub mod paired;
pub mod plan;
pub mod review;
pub mod root;
pub mod whole_review;
pub mod workflow_step;

use crate::event::TaskEntry;
use crate::event::{Skip, TaskEnd};
use crate::pipeline::{Else, Stage, Switch, When, Work};
use crate::rows::rows;
use crate::state::{State, Status, Task};
use crate::step::{Role, Step};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Everything that is particular to a flow. No code outside of this folder asks which flow a run
/// has, except where a command line is read.
#[derive(Clone, Copy, Debug)]
pub struct FlowRow {
    /// The name of the flow in files and messages.
    pub word: &'static str,
    pub root: Pipeline,
    /// The pipeline of the tasks of such a run.
    pub task: Pipeline,
    pub input: FlowInput,
    /// Whether a run is refused if no `tests` command is configured. Otherwise it starts, and says
    /// that nothing was proven.
    pub needs_tests: bool,
    /// The default number of iterations of the whole run. Without it the rounds of each task are
    /// counted, and the configuration limits them.
    pub iterations_max: Option<u32>,
    pub files: FlowFiles,
    /// The words of `state.json` for a task at a step.
    pub worker_words: &'static [(Step, &'static str)],
}

/// The form in which a user states the work of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowInput {
    /// One file per task.
    TaskFiles,
    /// One file for the whole run; its tasks have no files.
    PlanFile,
    /// Words on the command line.
    Text,
}

/// The files that a run writes in addition to those of every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowFiles {
    None,
    /// `.autopilot/plan/`.
    Plan,
    /// The directory of the run (`runs/autopilot/<run-id>/`): manifest, sessions, and a report.
    RunDirectory,
}

rows! {
/// The kind of a run: how it divides its work and when the work is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
Flow -> FlowRow {
    #[default]
    Task: root::TASK_FLOW,
    Queue: root::QUEUE_FLOW,
    Plan: plan::FLOW,
    Goal: goal::FLOW,
}}

impl Flow {
    /// The name of the flow in files and messages.
    pub fn word(self) -> &'static str {
        self.row().word
    }

    /// Whether the whole run repeats in iterations, rather than each task by itself.
    pub fn has_iterations(self) -> bool {
        self.row().iterations_max.is_some()
    }

    /// Whether its tasks have a review that a person can switch off.
    pub fn has_reviews_to_waive(self) -> bool {
        self.stages().any(|stage| stage.when == When::On(Switch::Review))
    }

    /// Whether its result can be reviewed as a whole.
    pub fn has_whole_review(self) -> bool {
        self.row().root.place(Step::WholeReview).is_some()
    }

    /// The roles of agents that the flow needs.
    pub fn roles(self) -> BTreeSet<Role> {
        self.steps().into_iter().filter_map(Step::role).collect()
    }

    /// The steps of the flow that have limits, each once.
    pub fn steps(self) -> BTreeSet<Step> {
        self.stages().map(|stage| stage.step).filter(|step| step.row().limits.is_some()).collect()
    }

    fn stages(self) -> impl Iterator<Item = &'static Stage> {
        self.row().root.stages().iter().chain(self.row().task.stages())
    }
}

/// Everything that is particular to a pipeline.
#[derive(Clone, Copy, Debug)]
pub struct PipelineRow {
    pub stages: &'static [Stage],
    /// The function that judges a round at the decision stage; without one every round is good.
    pub gate: Option<fn(&State, &Task) -> Weighed>,
    /// The step whose session a person may continue as part of the run.
    pub continues_at: Option<Step>,
}

const fn table(stages: &'static [Stage]) -> PipelineRow {
    PipelineRow { stages, gate: None, continues_at: None }
}

impl PipelineRow {
    const fn gate(self, gate: fn(&State, &Task) -> Weighed) -> PipelineRow {
        PipelineRow { gate: Some(gate), ..self }
    }

    const fn continues_at(self, step: Step) -> PipelineRow {
        PipelineRow { continues_at: Some(step), ..self }
    }
}

rows! {
/// The name of a table of stages. Journals hold names, because they outlive the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
Pipeline -> PipelineRow {
    #[default]
    OneTask: table(root::ONE_TASK),
    Queue: table(root::QUEUE),
    Plan: table(plan::PLAN),
    /// A task that is divided into further tasks when its turn comes.
    Expand: table(plan::EXPAND),
    Paired: table(paired::PAIRED).gate(paired::weigh),
    Goal: table(goal::GOAL).gate(goal::weigh),
    #[serde(rename = "session")]
    WorkflowStep: table(goal::WORKFLOW_STEP).continues_at(Step::WorkflowStep),
}}

impl Pipeline {
    /// The pipeline of a task in a flow whose tasks have this pipeline.
    pub fn of(self, spec: &TaskEntry) -> Pipeline {
        if spec.expand { Pipeline::Expand } else { self }
    }

    /// The stages in order.
    pub fn stages(self) -> &'static [Stage] {
        self.row().stages
    }

    /// The index of a step's stage.
    pub fn place(self, step: Step) -> Option<usize> {
        self.stages().iter().position(|stage| stage.step == step)
    }

    /// The step at which the child tasks run, if the pipeline has one.
    pub fn children(self) -> Option<Step> {
        let is_children = |stage: &&Stage| matches!(stage.work, Work::Children(..));
        self.stages().iter().find(is_children).map(|stage| stage.step)
    }

    /// The step at which the next round starts if the answer was no and brought no tasks, for
    /// pipelines whose rounds have their own tasks.
    pub fn next(self) -> Option<Step> {
        self.stages().iter().find_map(|stage| match stage.fails {
            Else::Next { again, .. } => Some(again),
            Else::Note | Else::Fail | Else::FixBy(_) | Else::Again(_) => None,
        })
    }

    /// The step at which a re-opened task continues: where a failed round leads, otherwise the first.
    pub fn reopens_at(self) -> Step {
        let again = self.stages().iter().find_map(|stage| match stage.fails {
            Else::Again(step) => Some(step),
            Else::Note | Else::Fail | Else::FixBy(_) | Else::Next { .. } => None,
        });
        again.unwrap_or(self.stages()[0].step)
    }

    /// The step whose session a person may continue as part of the run.
    pub fn continues_at(self) -> Option<Step> {
        self.row().continues_at
    }

    /// Whether each round has its own tasks.
    pub fn has_tasks_by_round(self) -> bool {
        self.next().is_some()
    }

    /// Judges the round of a task by the pipeline's own gate.
    pub fn weigh(self, state: &State, task: &Task) -> Weighed {
        self.row().gate.map(|gate| gate(state, task)).unwrap_or_default()
    }
}

/// The state of a task in `state.json`, in the words of the run's flow.
pub fn worker_word(state: &State, task: &Task) -> &'static str {
    let words = state.run.flow.row().worker_words;
    let at = |step: Step| words.iter().find(|(of, _)| *of == step).map(|(_, word)| *word);
    match &task.status {
        Status::Open => "TASK_INIT",
        Status::At { step } | Status::Running { step, .. } | Status::Waiting { step, .. } => {
            at(*step).unwrap_or("TASK_INIT")
        }
        Status::Settled(TaskEnd::Closed) => "TASK_DONE",
        Status::Settled(TaskEnd::Skipped { why: Skip::Asked }) => "TASK_SKIPPED",
        Status::Settled(TaskEnd::Skipped { .. }) => "TASK_BLOCKED",
        Status::Settled(TaskEnd::Failed { .. }) => "TASK_FAILED",
    }
}

/// The status of a task as one word: PENDING, RUNNING, DONE, FAILED, BLOCKED.
pub fn task_word(task: &Task) -> &'static str {
    match &task.status {
        Status::Open => "PENDING",
        // The task is ready and no worker is free yet.
        Status::At { .. } if task.spent.attempts == 0 && task.children.is_empty() => "PENDING",
        Status::At { .. } | Status::Running { .. } | Status::Waiting { .. } => "RUNNING",
        Status::Settled(TaskEnd::Closed) => "DONE",
        Status::Settled(TaskEnd::Skipped { why }) => match why {
            Skip::Asked | Skip::Dropped => "SKIPPED",
            Skip::Blocked { .. } | Skip::Stopped { .. } => "BLOCKED",
        },
        Status::Settled(TaskEnd::Failed { .. }) => "FAILED",
    }
}

/// The answer of a gate; it is yes if there are no reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weighed {
    pub reasons: Vec<RoundReason>,
    /// The approval that the evidence contradicts; recorded, because someone may trust the reviewer.
    pub overruled: Option<String>,
}

/// One reason why a round failed, and the step that showed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundReason {
    pub step: Step,
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_task_is_at_has_a_word_of_its_flow() {
        for flow in Flow::ALL {
            let words = flow.row().worker_words;
            for stage in flow.row().task.stages() {
                let is_told = words.iter().any(|(step, _)| *step == stage.step);
                assert!(is_told, "{}: nothing tells that a task is at {}", flow.word(), stage.step);
            }
        }
    }

    #[test]
    fn a_flow_needs_the_agents_of_its_tables() {
        use Role::{Builder, Planner, Reviewer};
        let of = |flow: Flow| flow.roles().into_iter().collect::<Vec<_>>();
        assert_eq!(of(Flow::Task), [Builder, Reviewer]);
        assert_eq!(of(Flow::Queue), [Builder, Reviewer]);
        assert_eq!(of(Flow::Plan), [Builder, Reviewer, Planner]);
        assert_eq!(of(Flow::Goal), [Builder, Reviewer, Planner]);
    }

    #[test]
    fn a_review_can_be_left_out_only_where_there_is_one() {
        for flow in [Flow::Task, Flow::Queue, Flow::Plan] {
            assert!(flow.has_reviews_to_waive(), "{}", flow.word());
        }
        assert!(!Flow::Goal.has_reviews_to_waive());
    }

    #[test]
    fn names_on_disk_stay() {
        assert_eq!(serde_json::to_string(&Pipeline::WorkflowStep).unwrap(), "\"session\"");
        assert_eq!(serde_json::to_string(&Switch::HasTests).unwrap(), "\"proof\"");
        assert_eq!(serde_json::to_string(&Step::WorkflowStep).unwrap(), "\"workflow_step\"");
    }

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
                let is_gate = stage.work == Work::Person;
                assert_eq!(
                    is_gate,
                    stage.step.row().gate.is_some(),
                    "{pipeline:?}: {}",
                    stage.step
                );
                if stage.work == Work::Decide {
                    assert_ne!(stage.fails, Else::Note, "{pipeline:?}: a decision must lead away");
                }
            }
        }
    }
}
