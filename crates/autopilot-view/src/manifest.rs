//! The files in `runs/autopilot/<run-id>/`: `manifest.json` with the agent calls of the run and the
//! graph of its steps, and `<run-id>.json` with its iterations and the result of each step.
//!
//! The state has the last result of each step; [`IterationHistory`] folds the results of earlier
//! iterations from the records.

#[cfg(test)]
mod tests;

use crate::sessions::session_of;
use autopilot_core::event::{Event, Facts, Outcome, Record, TaskEnd};
use autopilot_core::id::{AttemptId, TaskId};
use autopilot_core::pipeline::Switch;
use autopilot_core::prompt::cut;
use autopilot_core::session_name::current_of;
use autopilot_core::state::{State, Status, Task};
use autopilot_core::step::Step;
use autopilot_core::workflow::{
    self, Completion, PastStep, StepBody, StepResult, StepUsage, Workflow,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The directory of all run directories, relative to the checkout.
pub const RUNS_DIR: &str = "runs/autopilot";
/// The name of the manifest in a run's directory.
pub const MANIFEST_FILE: &str = "manifest.json";

/// The most warnings that are kept of one run.
const WARNINGS_MAX: usize = 500;

/// Reads a text by its hash.
pub type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The facts of a manifest that the records do not have.
#[derive(Clone, Debug, Default)]
pub struct ManifestSetting {
    pub cwd: String,
    /// The agent of steps that name none.
    pub adapter: String,
    /// None if the agent chooses.
    pub model: Option<String>,
}

/// A call of an agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecEntry {
    pub number: u32,
    pub label: String,
    /// Its directory, relative to the checkout.
    pub path: String,
    pub task: String,
    pub step: String,
    pub round: u32,
    pub attempt: String,
    pub agent: String,
    pub model: Option<String>,
    pub session: Option<String>,
    /// None while the call runs, and forever if the process died.
    pub status: Option<String>,
    pub started_at: String,
    pub ended_at: Option<String>,
    pub usage: Option<StepUsage>,
    pub cost_usd: Option<f64>,
}

/// The most bytes of a step's answer in a file that is rewritten whenever a step ends.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// The verdicts and warnings of the iterations, folded from the records in order.
#[derive(Clone, Debug, Default)]
pub struct IterationHistory {
    seq: u64,
    round: u32,
    said: BTreeMap<u32, IterationWord>,
    warnings: Vec<String>,
}

#[derive(Clone, Debug, Default)]
struct IterationWord {
    /// Blob: the reviewer's answer.
    completion: Option<String>,
    overruled: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ManifestIteration {
    index: u32,
    /// None until the planner has made a valid workflow.
    workflow: Option<Workflow>,
    steps: Vec<StepResult>,
    completion: Option<Completion>,
}

#[derive(Deserialize)]
struct GoalManifest {
    text: String,
}

impl IterationHistory {
    /// Folds in one record.
    pub fn record(&mut self, record: &Record) {
        // A process may get a record that it has read before.
        if record.seq <= self.seq {
            return;
        }
        self.seq = record.seq;
        for event in &record.events {
            self.event(event);
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "only the run as a whole is told here")]
    fn event(&mut self, event: &Event) {
        match event {
            Event::TaskMoved { task: TaskId::ROOT, round, step } => {
                self.round = *round;
                // The earlier verdict on this round no longer holds: the reviewer is asked again.
                if matches!(step, Step::Workflow | Step::Tasks) {
                    self.said.remove(round);
                }
            }
            Event::AttemptEnded { task: TaskId::ROOT, step, outcome, facts, .. } => {
                self.attempt(*step, outcome, facts);
            }
            Event::Overruled { task: TaskId::ROOT, why } => {
                self.this().overruled = Some(why.clone());
                self.warn(why);
            }
            Event::RoundFailed { task: TaskId::ROOT, reasons, .. } => {
                for reason in reasons {
                    self.warn(&reason.text);
                }
            }
            Event::TaskSettled { task: TaskId::ROOT, end: TaskEnd::Failed { why } } => {
                self.warn(&why.to_string());
            }
            _ => {}
        }
    }

    fn attempt(&mut self, step: Step, outcome: &Outcome, facts: &Facts) {
        if !matches!(step, Step::Workflow | Step::Completion) {
            return;
        }
        facts.notes.iter().for_each(|note| self.warn(note));
        if let Outcome::Broke { why } = outcome {
            self.warn(&format!("{step} broke: {why}"));
        }
        if step == Step::Completion && facts.answer.is_some() {
            let this = self.this();
            this.completion.clone_from(&facts.answer);
            // The overruling of an earlier answer does not hold for this one.
            this.overruled = None;
        }
    }

    /// Whether the controller overruled the reviewer's yes.
    pub fn is_overruled(&self, iteration: u32) -> bool {
        self.said.get(&iteration).is_some_and(|said| said.overruled.is_some())
    }

    /// The warnings of all iterations.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn this(&mut self) -> &mut IterationWord {
        self.said.entry(self.round.max(1)).or_default()
    }

    fn warn(&mut self, text: &str) {
        let warning = format!("iteration {}: {text}", self.round.max(1));
        let before = self.warnings.len();
        if self.warnings.contains(&warning) || before > WARNINGS_MAX {
            return;
        }
        let is_last = before == WARNINGS_MAX;
        self.warnings.push(if is_last {
            "further warnings were dropped".to_owned()
        } else {
            warning
        });
    }

    /// The reviewer's last answer in an iteration, or the controller's correction of it.
    pub fn completion(&self, iteration: u32, read: Read<'_>) -> Option<Completion> {
        let said = self.said.get(&iteration)?;
        let text = said.completion.as_deref().and_then(read)?;
        let completion: Completion = serde_json::from_str(&text).ok()?;
        Some(match &said.overruled {
            Some(why) => completion.overruled(why.clone()),
            None => completion,
        })
    }
}

/// A task that is a step of a workflow.
pub struct PlacedStep<'a> {
    pub task: &'a Task,
    pub body: StepBody,
}

/// Returns the steps in the order of the iterations and of their workflows.
pub fn steps<'a>(state: &'a State, read: Read<'_>) -> Vec<PlacedStep<'a>> {
    let children = state.root().into_iter().flat_map(|root| &root.children);
    let placed = children.filter_map(|child| {
        let task = state.task(*child);
        let body = serde_json::from_str(&read(&task.spec.body)?).ok()?;
        Some(PlacedStep { task, body })
    });
    let mut steps: Vec<PlacedStep<'_>> = placed.collect();
    steps.sort_by_key(|step| (step.body.iteration, step.body.place));
    steps
}

/// The steps of an iteration, without those of a workflow that was never started.
pub fn steps_of<'a>(steps: &'a [PlacedStep<'a>], iteration: u32) -> Vec<&'a PlacedStep<'a>> {
    let is_own =
        |step: &&PlacedStep<'_>| step.body.iteration == iteration && !step.task.is_dropped();
    steps.iter().filter(is_own).collect()
}

/// The content of `manifest.json`.
pub fn manifest(
    state: &State,
    history: &IterationHistory,
    setting: &ManifestSetting,
    execs: &[ExecEntry],
    read: Read<'_>,
) -> Value {
    let steps = steps(state, read);
    let finished = state.root().filter(|root| root.is_settled()).and_then(|root| root.ended_at);
    let mut manifest = json!({
        "runId": state.run.id,
        "startedAt": state.run.started_at.rfc3339(),
        "cwd": setting.cwd,
        "options": options(state, setting),
        "execs": execs.iter().map(|exec| entry(state, exec, &steps)).collect::<Vec<_>>(),
        "graph": {
            "nodes": steps.iter().map(|step| node(state, step)).collect::<Vec<_>>(),
            "edges": steps.iter().flat_map(edges).collect::<Vec<_>>(),
            "warnings": history.warnings,
        },
    });
    if let Some(at) = finished {
        manifest["finishedAt"] = at.rfc3339().into();
    }
    manifest
}

fn options(state: &State, setting: &ManifestSetting) -> Value {
    let (run, limits) = (&state.run, &state.run.limits);
    json!({
        "adapter": adapter(state, setting),
        "model": setting.model,
        "maxIterations": limits.rounds_max,
        "concurrency": limits.workers_max,
        "unsafe": run.options.r#unsafe,
        "failFast": state.is_failing_fast(),
        "out": run.options.out.as_deref().unwrap_or(RUNS_DIR),
        "maxWallMs": limits.wall_max_ms,
        "maxUsd": limits.usd_max.map(|usd| usd.usd()),
        "maxUsdPerStep": limits.usd_per_task_max.map(|usd| usd.usd()),
        "push": run.switches.contains(&Switch::Push),
        "pullRequest": run.switches.contains(&Switch::Pr),
        "baseBranch": run.base_branch,
        "base": run.base,
        "branch": run.branch,
    })
}

/// The agent as the user named it, else its kind.
fn adapter<'a>(state: &'a State, setting: &'a ManifestSetting) -> &'a str {
    state.run.options.adapter.as_ref().unwrap_or(&setting.adapter)
}

fn entry(state: &State, exec: &ExecEntry, steps: &[PlacedStep<'_>]) -> Value {
    let placed = steps.iter().find(|step| step.task.name() == exec.task);
    let is_live = |id: &AttemptId| id.to_string() == exec.attempt;
    let status = match &exec.status {
        Some(status) => status,
        None if state.live.keys().any(is_live) => "running",
        None => "interrupted",
    };
    // The files of a call do not name its session until it ends.
    let opened = || {
        let task = placed.map(|step| step.task).or(state.root())?;
        let (_, opened) = task.sessions.iter().find(|(step, _)| step.word() == exec.step)?;
        exec.status.is_none().then_some(opened.as_str())
    };
    let session = exec.session.as_deref().or_else(opened);
    json!({
        "number": exec.number,
        "label": exec.label,
        "path": exec.path,
        "kind": exec.step,
        "stepId": placed.map(|step| &step.body.step.id),
        "iteration": placed.map_or(exec.round, |step| step.body.iteration),
        "adapter": exec.agent,
        "model": exec.model,
        "sessionId": session_of(&state.run.id, &exec.attempt, session),
        "status": status,
        "startedAt": exec.started_at,
        "endedAt": exec.ended_at,
        "usage": exec.usage,
        "costUsd": exec.cost_usd,
    })
}

fn node(state: &State, step: &PlacedStep<'_>) -> Value {
    json!({
        "id": step.task.name(),
        "iteration": step.body.iteration,
        "stepId": step.body.step.id,
        "status": status_word(state, step.task),
        "sessionId": current_of(state, step.task).unwrap_or_default(),
    })
}

/// The status of a step as a word of the manifest.
pub fn status_word(state: &State, task: &Task) -> &'static str {
    match &task.status {
        Status::Open => "pending",
        Status::At { .. } if task.spent.attempts == 0 => "pending",
        Status::At { .. } | Status::Running { .. } | Status::Waiting { .. } => "running",
        Status::Settled(_) => {
            PastStep::of(state, task).map_or("skipped", |past| past.status.word())
        }
    }
}

fn edges(step: &PlacedStep<'_>) -> Vec<Value> {
    let to = step.task.name();
    step.task.spec.depends_on.iter().map(|from| json!({ "from": from, "to": to })).collect()
}

/// The content of `<run-id>.json`.
pub fn run_state(
    state: &State,
    history: &IterationHistory,
    setting: &ManifestSetting,
    read: Read<'_>,
) -> Value {
    let steps = steps(state, read);
    let body = state.root().and_then(|root| read(&root.spec.body));
    let goal = body.and_then(|text| serde_json::from_str::<GoalManifest>(&text).ok());
    let last = state.root().map_or(0, |root| root.round);
    let iterations: Vec<ManifestIteration> =
        (1..=last).map(|index| iteration(index, state, &steps, history, read)).collect();
    json!({
        "task": goal.map_or_else(|| state.run.title.clone(), |goal| goal.text),
        "model": setting.model,
        "adapter": adapter(state, setting),
        "iterations": iterations,
    })
}

fn iteration(
    index: u32,
    state: &State,
    steps: &[PlacedStep<'_>],
    history: &IterationHistory,
    read: Read<'_>,
) -> ManifestIteration {
    let own = steps_of(steps, index);
    let workflow = own.first().map(|first| Workflow {
        version: workflow::VERSION,
        id: first.body.workflow.clone(),
        steps: own.iter().map(|step| step.body.step.clone()).collect(),
    });
    let result = |step: &&PlacedStep<'_>| {
        let past = PastStep::of(state, step.task)?;
        let said = past.answer.as_deref().and_then(read);
        // The file of the call has the whole answer.
        let said = said.map(|said| cut(&said, OUTPUT_BYTES_MAX));
        Some(past.result(&step.body.step.id, said))
    };
    ManifestIteration {
        index,
        workflow,
        steps: own.iter().filter_map(result).collect(),
        completion: history.completion(index, read),
    }
}
