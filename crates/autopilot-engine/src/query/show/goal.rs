//! The history of a run towards a goal: iterations, steps, reviews, files and next commands.

use super::super::diff::diffstat;
use super::super::next::next_commands;
use super::super::{KnownRun, RunArchive, Standing};
use super::outcome_word;
use crate::{report, store, views};
use autopilot_core::event::{Bill, Outcome, Record};
use autopilot_core::id::TaskId;
use autopilot_core::state::State;
use autopilot_core::step::Step;
use autopilot_core::workflow::{Completion, PastStep};
use autopilot_host::checkout;
use autopilot_view as view;
use autopilot_view::history::{PastAttempt, RunHistory};
use autopilot_view::manifest::{self, IterationHistory, PlacedStep};
use autopilot_view::sessions::{Session, last_of, sessions};
use serde::Serialize;

/// A run towards a goal, as `show --json` prints it beside the usual object of a run.
#[derive(Clone, Debug, Serialize)]
pub struct GoalHistory {
    pub iterations: Vec<ShownIteration>,
    pub warnings: Vec<String>,
    /// The directory of the run's files.
    pub artifacts: String,
    /// The path of the run's HTML report, if there is one.
    pub report_path: Option<String>,
    /// The commands a person can use next.
    pub next: Vec<String>,
}

/// One iteration of a goal.
#[derive(Clone, Debug, Serialize)]
pub struct ShownIteration {
    pub index: u32,
    pub workflow: Option<String>,
    pub steps: Vec<ShownStep>,
    /// The result of the controller's validation.
    pub validation: Option<String>,
    pub completion: Option<Completion>,
    pub overruled: bool,
}

/// One step of a workflow.
#[derive(Clone, Debug, Serialize)]
pub struct ShownStep {
    pub id: String,
    pub task: String,
    pub goal: String,
    pub depends_on: Vec<String>,
    pub status: &'static str,
    pub session: Option<String>,
    /// Seconds of work on the step.
    pub duration: f64,
    pub cost_usd: f64,
    pub tokens_in: u64,
    pub tokens_out: u64,
    pub why: Option<String>,
    #[serde(skip)]
    pub work_ms: u64,
    #[serde(skip)]
    pub bill: Bill,
    #[serde(skip)]
    pub failure: Option<String>,
}

impl GoalHistory {
    pub(super) fn of(
        archive: &RunArchive,
        known: &KnownRun,
        tried: &RunHistory,
        records: &[Record],
    ) -> GoalHistory {
        let mut history = IterationHistory::default();
        records.iter().for_each(|record| history.record(record));
        let sessions = sessions(&known.run.id, records);
        let state = &known.state;
        let read = |hash: &str| store::text(&archive.history, hash).ok();
        let steps = manifest::steps(state, &read);
        let iteration = |index: u32| {
            let own = manifest::steps_of(&steps, index);
            ShownIteration {
                index,
                workflow: own.first().map(|step| step.body.workflow.clone()),
                steps: own.iter().map(|step| shown_step(state, step, &sessions)).collect(),
                validation: validation(state, tried, index),
                completion: history.completion(index, &read),
                overruled: history.is_overruled(index),
            }
        };
        let dir = views::goal_dir(&archive.place, &state.run);
        let page = dir.join(report::FILE);
        GoalHistory {
            iterations: (1..=state.root().map_or(0, |root| root.round)).map(iteration).collect(),
            warnings: history.warnings().to_vec(),
            artifacts: dir.into_string(),
            report_path: page.is_file().then(|| page.into_string()),
            next: next(archive, known),
        }
    }
}

fn shown_step(state: &State, step: &PlacedStep<'_>, sessions: &[Session]) -> ShownStep {
    let task = step.task;
    ShownStep {
        id: step.body.step.id.clone(),
        task: task.name().to_owned(),
        goal: step.body.step.goal.clone(),
        depends_on: step.body.step.depends_on.clone(),
        status: manifest::status_word(state, task),
        session: last_of(sessions, task.id).map(str::to_owned),
        duration: task.spent.work_ms as f64 / 1000.0,
        cost_usd: task.spent.bill.usd.usd(),
        tokens_in: task.spent.bill.tokens_in,
        tokens_out: task.spent.bill.tokens_out,
        why: PastStep::of(state, task).and_then(|past| past.why),
        work_ms: task.spent.work_ms,
        bill: task.spent.bill,
        failure: view::failure(task).map(ToString::to_string),
    }
}

fn validation(state: &State, tried: &RunHistory, index: u32) -> Option<String> {
    let is_it = |tried: &&PastAttempt| tried.step == Step::Validate && tried.round == index;
    let last = tried.of_task(TaskId::ROOT).filter(is_it).last()?;
    let word = match &last.ended {
        Some((_, Outcome::Failed { why })) => {
            return Some(format!("{}: {why}", view::failed_word(&last.facts)));
        }
        Some((_, Outcome::Broke { why })) => return Some(format!("failed: {why}")),
        Some((_, Outcome::Passed)) => view::passed_word(last.step, &last.facts),
        Some((_, outcome)) => outcome_word(outcome),
        None => return Some("running".to_owned()),
    };
    Some(match is_old(state, index) {
        true => format!("{word}, before the result changed"),
        false => word.to_owned(),
    })
}

/// Returns whether a person has continued a step since.
fn is_old(state: &State, index: u32) -> bool {
    let is_last = state.root().is_some_and(|root| root.round == index);
    is_last && view::still_shown(state, Step::Validate).is_none()
}

fn next(archive: &RunArchive, known: &KnownRun) -> Vec<String> {
    match known.standing() {
        Standing::Live { .. } => {
            vec!["autopilot status --watch".to_owned(), "autopilot stop".to_owned()]
        }
        Standing::Abandoned => vec!["autopilot recover".to_owned()],
        Standing::Rests | Standing::Interrupted | Standing::Over => {
            next_commands(&known.state, branch(archive, known))
        }
    }
}

/// The branch of the run, if the repository has it.
fn branch<'a>(archive: &RunArchive, known: &'a KnownRun) -> Option<&'a str> {
    let run = &known.state.run;
    let found = checkout::find(archive.place.root.as_std_path())?;
    diffstat(&found.common_dir, &run.base, &run.branch).map(|_| run.branch.as_str())
}
