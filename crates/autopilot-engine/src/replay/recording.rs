//! What was kept of a run, read so that it can be played.

use super::decision::{Decisions, decisions, is_about_work, named};
use super::player::{Played, Player};
use crate::job::{METADATA, STDOUT};
use crate::place::StatePaths;
use crate::recorded::{RecordedError, RecordedRun};
use crate::store::{self, StoreError};
use autopilot_core::config::Config;
use autopilot_core::event::{Event, Outcome, Record, RunSpec, SessionPrompt};
use autopilot_core::id::TaskId;
use autopilot_core::input::Ask;
use autopilot_core::pipeline::Switch;
use autopilot_core::state::State;
use autopilot_core::step::Step;
use autopilot_host::git::Hub;
use autopilot_journal::JournalHistory;
use camino::Utf8Path;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("run {run} was never begun")]
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

pub struct Recording {
    pub spec: RunSpec,
    pub config: Config,
    /// Texts the specification and people's answers name.
    pub texts: Vec<String>,
    /// What people answered at gates, in order.
    pub answers: VecDeque<Ask>,
    /// What people said in sessions of steps, and how many attempts had ended by then.
    pub visits: VecDeque<(usize, Ask)>,
    pub decisions: Decisions,
    /// What people did to the run besides; it is not done again.
    pub interventions: Vec<String>,
    /// Questions whose answers can't be played.
    pub missing: Vec<String>,
    pub turns: usize,
    turns_of: BTreeMap<(String, Step), VecDeque<Played>>,
    order: Vec<(String, Step)>,
    adapters: BTreeSet<String>,
}

impl Recording {
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
        // Nothing leaves the machine, and what the limits on money and time stopped, people let go
        // on; what it came to is what is compared.
        spec.switches.remove(&Switch::Push);
        spec.switches.remove(&Switch::Pr);
        spec.limits = state.run.limits.clone();
        (spec.limits.usd_max, spec.limits.usd_per_task_max) = (None, None);
        spec.limits.wall_max_ms = None;
        let heard = RecordedEnds::of(&records);
        let hashes = [Some(spec.config.clone()), Some(spec.whole.body.clone()), spec.plan.clone()];
        let bodies = spec.tasks.iter().map(|task| task.body.clone());
        let hashes = hashes.into_iter().flatten().chain(bodies).chain(heard.texts);
        let mut texts = Vec::new();
        for hash in hashes.filter(|hash| !hash.is_empty()) {
            texts.push(store::text(history, &hash)?);
        }
        let kept = KeptTurns::read(&place.views(), run, &heard.ended)?;
        Ok(Recording {
            spec,
            config,
            texts,
            answers: heard.answers,
            visits: heard.visits,
            decisions: decisions(&records),
            interventions: heard.interventions,
            missing: kept.missing,
            turns: kept.count,
            turns_of: kept.turns,
            order: heard.order,
            adapters: heard.adapters,
        })
    }

    pub fn player(&self, hub: Hub) -> Player {
        let visits = self.visits.iter().map(|(after, _)| *after).collect();
        Player::new(hub, self.adapters.clone(), self.turns_of.clone(), self.order.clone(), visits)
    }
}

/// The specification with the tasks it began with.
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

/// What the journal tells of ends and of people.
#[derive(Default)]
struct RecordedEnds {
    order: Vec<(String, Step)>,
    /// Agents that tasks were given to by name.
    adapters: BTreeSet<String>,
    answers: VecDeque<Ask>,
    visits: VecDeque<(usize, Ask)>,
    /// Tasks with words in their session that nobody has answered.
    spoken_to: BTreeSet<TaskId>,
    texts: Vec<String>,
    interventions: Vec<String>,
    /// Attempts whose end says something about the work.
    ended: BTreeMap<String, (String, Step)>,
}

impl RecordedEnds {
    fn of(records: &[Record]) -> RecordedEnds {
        let mut heard = RecordedEnds::default();
        let mut names = BTreeMap::new();
        for record in records {
            let is_continued = |event: &Event| matches!(event, Event::TaskContinued { .. });
            // What is opened again with it is opened again by it.
            let is_visit = record.events.iter().any(is_continued);
            let is_told = |event: &Event| is_visit && matches!(event, Event::TaskReopened { .. });
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
            Event::Switched { switch, on, by } => {
                self.interventions.push(format!("{by} switched {switch:?} to {on}"));
            }
            Event::LimitsChanged { .. } => {
                self.interventions.push("the limits were changed".to_owned());
            }
            _ => {}
        }
    }

    /// Said once more to whoever was cut short, it is answered once.
    fn spoken(&mut self, name: String, task: TaskId, words: &SessionPrompt) {
        if self.spoken_to.insert(task) {
            let ask = Ask::Continue { task: name, words: Box::new(words.clone()) };
            self.visits.push_back((self.order.len(), ask));
            self.texts.push(words.prompt.clone());
        }
    }

    fn answer(&mut self, outcome: &Outcome, answer: Option<String>) {
        let by = "the recording".to_owned();
        match outcome {
            Outcome::Passed => {
                self.texts.extend(answer.clone());
                self.answers.push_back(Ask::Approve { by, answer });
            }
            Outcome::Failed { why } => {
                self.answers.push_back(Ask::Reject { by, why: why.clone() });
            }
            Outcome::Broke { .. }
            | Outcome::Lost
            | Outcome::Quota { .. }
            | Outcome::Away { .. }
            | Outcome::Revoked
            | Outcome::Skipped { .. } => {}
        }
    }
}

/// What the directories of the questions hold.
#[derive(Default)]
struct KeptTurns {
    turns: BTreeMap<(String, Step), VecDeque<Played>>,
    missing: Vec<String>,
    count: usize,
}

impl KeptTurns {
    fn read(
        views: &Utf8Path,
        run: &str,
        ended: &BTreeMap<String, (String, Step)>,
    ) -> Result<KeptTurns, RecordingError> {
        let recorded = RecordedRun::open(views, run)?;
        let mut kept = KeptTurns::default();
        for exec in recorded.execs()? {
            let path = recorded.dir(&exec);
            // Whoever was begun with it was killed before that was written, and asked again.
            if !path.join(METADATA).exists() {
                continue;
            }
            let metadata = recorded.metadata(&exec)?;
            // What was cut short says nothing, and was asked again.
            let Some(key) = ended.get(&metadata.attempt) else { continue };
            if !path.join(STDOUT).exists() {
                kept.missing.push(exec.name);
                continue;
            }
            let worktree = recorded.worktree(&exec).ok().map(|change| (change.from, change.to));
            kept.count += 1;
            let turns = kept.turns.entry(key.clone()).or_default();
            turns.push_back(Played::new(path, &metadata, worktree));
        }
        if kept.count == 0 {
            let (run, dir) = (run.to_owned(), recorded.path.to_string());
            return Err(RecordingError::NotRecorded { run, dir });
        }
        Ok(kept)
    }
}
