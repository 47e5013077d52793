//! Reads a recorded run so that it can be replayed.

use super::decision::{Decisions, decisions, is_about_work, named};
use super::player::{Played, Player};
use crate::job::{METADATA, STDOUT};
use crate::place::StatePaths;
use crate::recorded::{RecordedError, RecordedRun};
use crate::store::{self, StoreError};
use autopilot_core::config::Config;
use autopilot_core::event::{
    Event, HaltWhy, Outcome, Record, RunSpec, SessionPrompt, Skip, TaskEnd,
};
use autopilot_core::id::TaskId;
use autopilot_core::input::Ask;
use autopilot_core::pipeline::Switch;
use autopilot_core::state::State;
use autopilot_core::step::Step;
use autopilot_host::git::Hub;
use autopilot_journal::JournalHistory;
use camino::Utf8Path;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Why a recorded run can't be replayed.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("run {run} never started")]
    Empty { run: String },
    #[error("the configuration of run {run} can't be read")]
    Config { run: String, source: serde_json::Error },
    #[error(transparent)]
    Recorded(#[from] RecordedError),
    #[error(
        "nothing is recorded of what the agents of run {run} said: {dir} has no questions with \
         their output"
    )]
    NotRecorded { run: String, dir: String },
}

/// A recorded run.
pub struct Recording {
    pub spec: RunSpec,
    pub config: Config,
    /// The texts that the specification and people's answers name.
    pub texts: Vec<String>,
    pub decisions: Decisions,
    /// The tip of the run's branch, if anything was merged.
    pub tip: Option<String>,
    pub ends: RecordedEnds,
    pub turns: RecordedTurns,
}

impl Recording {
    /// Reads the recording of a run from its journal and artifacts.
    pub fn read(
        place: &StatePaths,
        history: &dyn JournalHistory,
        run: &str,
    ) -> Result<Recording, RecordingError> {
        let records = store::records(history, run)?;
        let state = State::replay(&records);
        let mut spec = begun(&records).ok_or(RecordingError::Empty { run: run.to_owned() })?;
        let text = store::text(history, &spec.config)?;
        let config = serde_json::from_str(&text)
            .map_err(|source| RecordingError::Config { run: run.to_owned(), source })?;
        // A replay does not push, and has no limits on money and time: people resumed the run when
        // those stopped it, and only the results are compared.
        spec.switches.remove(&Switch::Push);
        spec.switches.remove(&Switch::Pr);
        spec.limits = state.run.limits.clone();
        (spec.limits.usd_max, spec.limits.usd_per_task_max) = (None, None);
        spec.limits.wall_max_ms = None;
        let mut ends = RecordedEnds::of(&records);
        let halt = state.run.halt.as_ref().filter(|halt| halt.why != HaltWhy::Continued);
        if let Some(halt) = halt {
            let text = format!("the run was stopped before it was finished: {}", halt.why);
            ends.interventions.push(text);
        }
        let hashes = [Some(spec.config.clone()), Some(spec.whole.body.clone()), spec.plan.clone()];
        let bodies = spec.tasks.iter().map(|task| task.body.clone());
        let hashes = hashes.into_iter().flatten().chain(bodies).chain(ends.texts.clone());
        let mut texts = Vec::new();
        for hash in hashes.filter(|hash| !hash.is_empty()) {
            texts.push(store::text(history, &hash)?);
        }
        let turns = RecordedTurns::read(&place.views(), run, &ends.ended)?;
        let (tip, decisions) = (state.run.tip.clone(), decisions(&records));
        Ok(Recording { spec, config, texts, decisions, tip, ends, turns })
    }

    /// A player of the recording.
    pub fn player(&self, hub: Hub) -> Player {
        let RecordedEnds { order, adapters, visits, .. } = &self.ends;
        let visits = visits.iter().map(|(after, _)| *after).collect();
        Player::new(hub, adapters.clone(), self.turns.by_step.clone(), order.clone(), visits)
    }
}

/// The run's specification with the tasks it started with.
fn begun(records: &[Record]) -> Option<RunSpec> {
    let first = &records.first()?.events;
    let mut begun = None;
    let mut tasks = Vec::new();
    for event in first {
        if let Event::RunStarted { run } = event {
            begun = Some((**run).clone());
        }
        if let Event::TaskAdded { parent: Some(TaskId::ROOT), spec, .. } = event {
            tasks.push((**spec).clone());
        }
    }
    Some(RunSpec { tasks, ..begun? })
}

/// What the journal records about the ends of attempts and about people.
#[derive(Default)]
pub struct RecordedEnds {
    order: Vec<(String, Step)>,
    /// The agents that tasks name.
    adapters: BTreeSet<String>,
    /// People's answers at gates, in order.
    pub answers: VecDeque<Ask>,
    /// People's messages in sessions of steps and their retries, and the number of attempts that
    /// had ended by then.
    pub visits: VecDeque<(usize, Ask)>,
    /// Tasks with a message in their session that was not answered yet.
    spoken_to: BTreeSet<TaskId>,
    texts: Vec<String>,
    /// People's other interventions, which are not replayed.
    pub interventions: Vec<String>,
    /// Attempts whose outcome says something about the work.
    ended: BTreeMap<String, (String, Step)>,
}

impl RecordedEnds {
    fn of(records: &[Record]) -> RecordedEnds {
        let mut heard = RecordedEnds::default();
        let mut names = BTreeMap::new();
        for record in records {
            let is_continued = |event: &Event| matches!(event, Event::TaskContinued { .. });
            // Tasks re-opened by the same record belong to the intervention.
            let is_visit = record.events.iter().any(is_continued);
            let is_retry = !is_visit && !record.events.iter().any(is_skipped);
            let mut reopened = record.events.iter().filter_map(|event| match event {
                Event::TaskReopened { task } => Some(*task),
                _ => None,
            });
            // The first one is the task that was asked for.
            if let Some(task) = reopened.next().filter(|_| is_retry) {
                heard.retried(named(&names, task));
            }
            let is_told = |event: &Event| {
                (is_visit || is_retry) && matches!(event, Event::TaskReopened { .. })
            };
            for event in record.events.iter().filter(|event| !is_told(event)) {
                heard.event(event, &mut names);
            }
        }
        heard
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest follows from what is heard")]
    fn event(&mut self, event: &Event, names: &mut BTreeMap<TaskId, String>) {
        match event {
            Event::TaskAdded { task, spec, .. } => {
                names.insert(*task, spec.name.clone());
                self.adapters.extend(spec.by.agent.clone());
            }
            Event::AttemptEnded { id, task, step, outcome, facts } => {
                if step.row().gate.is_some() {
                    return self.answer(outcome, facts.answer.clone());
                }
                if is_about_work(outcome) {
                    self.spoken_to.remove(task);
                }
                if is_about_work(outcome) && !step.row().leaves_machine {
                    let name = named(names, *task);
                    self.ended.insert(id.to_string(), (name.clone(), *step));
                    self.order.push((name, *step));
                }
            }
            Event::TaskContinued { task, words } => self.spoken(named(names, *task), *task, words),
            Event::TaskReopened { task } => {
                self.interventions.push(format!("{} was re-opened", named(names, *task)));
            }
            Event::TaskSettled { task, end: TaskEnd::Skipped { why: Skip::Asked } } => {
                self.interventions.push(format!("{} was skipped by a person", named(names, *task)));
            }
            Event::Switched { switch, on, by } => {
                self.interventions.push(autopilot_view::switched(*switch, *on, by));
            }
            Event::LimitsChanged { .. } => {
                self.interventions.push("the limits were changed".to_owned());
            }
            _ => {}
        }
    }

    /// A person tried a task, or the whole run, again.
    fn retried(&mut self, name: String) {
        let task = if name == "run" { String::new() } else { name };
        self.visits.push_back((self.order.len(), Ask::Retry { task }));
    }

    /// A message that was repeated after an interruption is answered only once.
    fn spoken(&mut self, name: String, task: TaskId, words: &SessionPrompt) {
        if self.spoken_to.insert(task) {
            let ask = Ask::Continue { task: name, words: Box::new(words.clone()) };
            self.visits.push_back((self.order.len(), ask));
            self.texts.push(words.prompt.clone());
        }
    }

    fn answer(&mut self, outcome: &Outcome, answer: Option<String>) {
        let by = "the recording".to_owned();
        if *outcome == Outcome::Passed {
            self.texts.extend(answer.clone());
            self.answers.push_back(Ask::Approve { by, answer });
        } else if let Some(why) = outcome.failure() {
            self.answers.push_back(Ask::Reject { by, why: why.to_owned() });
        }
    }
}

fn is_skipped(event: &Event) -> bool {
    matches!(event, Event::TaskSettled { end: TaskEnd::Skipped { why: Skip::Asked }, .. })
}

/// The recorded turns in the questions' directories.
#[derive(Default)]
pub struct RecordedTurns {
    by_step: BTreeMap<(String, Step), VecDeque<Played>>,
    /// Questions whose answers can't be replayed.
    pub missing: Vec<String>,
    /// The number of answers that can be replayed.
    pub count: usize,
}

impl RecordedTurns {
    fn read(
        views: &Utf8Path,
        run: &str,
        ended: &BTreeMap<String, (String, Step)>,
    ) -> Result<RecordedTurns, RecordingError> {
        let recorded = RecordedRun::open(views, run)?;
        let mut kept = RecordedTurns::default();
        for exec in recorded.execs()? {
            let path = recorded.dir(&exec);
            // The attempt was killed before its metadata was written, and was asked again.
            if !path.join(METADATA).exists() {
                continue;
            }
            let metadata = recorded.metadata(&exec)?;
            // An interrupted attempt says nothing, and was asked again.
            let Some(key) = ended.get(&metadata.attempt) else { continue };
            if !path.join(STDOUT).exists() {
                kept.missing.push(exec.name);
                continue;
            }
            let worktree = recorded.worktree(&exec).ok().map(|change| (change.from, change.to));
            kept.count += 1;
            let turns = kept.by_step.entry(key.clone()).or_default();
            turns.push_back(Played::new(path, &metadata, worktree));
        }
        if kept.count == 0 {
            let (run, dir) = (run.to_owned(), recorded.path.to_string());
            return Err(RecordingError::NotRecorded { run, dir });
        }
        Ok(kept)
    }
}
