//! Which run a process works on: the unfinished one, one that is opened again, or a new one.
//!
//! The rule that a repository has one unfinished run, and that another one is refused while there
//! is one, is in [`take_up`] and nowhere else.

use super::model_change::ModelChange;
use super::{Intent, Machine, RunProcessError};
use crate::begin::{self, PreparedRun, RunRequest};
use crate::clock;
use crate::place::StatePaths;
use crate::store::{self, StoreError};
use crate::workspace::{self, WorkspaceError};
use autopilot_core::config::{Config, Options};
use autopilot_core::pipeline::Switch;
use autopilot_core::state::State;
use autopilot_host::git::{UserRepo, run_branch};
use autopilot_journal::{Journal, JournalEntry, JournalHistory, JournalRun, NewRun, SqliteJournal};

/// The run this process works on.
pub struct ChosenRun {
    pub run: String,
    pub state: State,
    pub config: Config,
    /// What its agents are asked from here on, where that was changed.
    pub models: Option<ModelChange>,
    /// Of a run that only begins.
    pub prepared: Option<PreparedRun>,
}

impl ChosenRun {
    fn new(run: String, config: Config, prepared: PreparedRun) -> ChosenRun {
        let state = State::default();
        ChosenRun { run, state, config, models: None, prepared: Some(prepared) }
    }
}

type FoundRun = Option<(JournalRun, State)>;

/// The run to go on with, if that is what was asked or what follows from it.
pub fn take_up(
    intent: &Intent,
    journal: &mut SqliteJournal,
    machine: &Machine,
) -> Result<FoundRun, RunProcessError> {
    let known = workspace::unfinished(journal)?;
    match intent {
        Intent::Begin { fresh: true, .. } => {
            abandon(journal, known.map(|(run, _)| run.id), &machine.holder)?;
            Ok(None)
        }
        Intent::Begin { tasks, request, .. } => match known {
            Some((run, state))
                if state.run.source != tasks.source || state.run.flow != tasks.flow =>
            {
                Err(RunProcessError::Unfinished { run: run.id, title: run.title })
            }
            Some((run, state)) => match not_kept(request, &state) {
                Some(flag) => {
                    Err(RunProcessError::UnderWay { run: run.id, title: run.title, flag })
                }
                None => Ok(Some((run, state))),
            },
            None => Ok(None),
        },
        Intent::Again { .. } => Ok(None),
        Intent::Resume { asks, .. } => {
            // A task that failed is re-opened in the newest run even though that run is over.
            let found = if known.is_none() && !asks.is_empty() { newest(journal)? } else { known };
            found.map(Some).ok_or(RunProcessError::NothingToResume)
        }
        Intent::Only { run, .. } => match known {
            Some((other, _)) if other.id != *run => {
                Err(RunProcessError::Unfinished { run: other.id, title: other.title })
            }
            Some(found) => Ok(Some(found)),
            None => Ok(Some(named(journal, run)?)),
        },
    }
}

fn named(journal: &dyn JournalHistory, run: &str) -> Result<(JournalRun, State), RunProcessError> {
    let none = || WorkspaceError::NoRun(run.to_owned());
    let known = workspace::pick(journal, Some(run))?.filter(|known| known.id == run);
    let known = known.ok_or_else(none)?;
    let state = store::load(journal, run).map_err(WorkspaceError::from)?;
    if state.has_begun() { Ok((known, state)) } else { Err(none().into()) }
}

/// What was asked for and can't be had any more once the run is under way.
fn not_kept(request: &RunRequest, state: &State) -> Option<&'static str> {
    let asked = [(request.push, Switch::Push, "--push"), (request.pr, Switch::Pr, "--pr")];
    for (is_asked, switch, flag) in asked {
        if is_asked && !state.run.switches.contains(&switch) {
            return Some(flag);
        }
    }
    let (asked, kept) = (&request.options, &state.run.options);
    let is_other = |asked: &Option<String>, kept| asked.is_some() && asked != kept;
    let others = [
        (request.allow_red_base && !state.run.red_base_allowed, "--allow-red-base"),
        (request.fail_fast && !state.is_failing_fast(), "--fail-fast"),
        (is_other(&asked.adapter, &kept.adapter), "--adapter"),
        (is_other(&asked.model, &kept.model), "--model"),
        (asked.r#unsafe && !kept.r#unsafe, "--unsafe"),
        (is_other(&asked.out, &kept.out), "--out"),
    ];
    others.iter().find(|(is_asked, _)| *is_asked).map(|(_, flag)| *flag)
}

/// The configuration of the run that would be taken up, before anything is locked, and what it was
/// made with beside the file.
pub fn pinned_config(place: &StatePaths, any: bool) -> Result<(Config, Options), RunProcessError> {
    let reader = workspace::reader(place)?;
    let found = match workspace::unfinished(&reader)? {
        None if any => newest(&reader)?,
        found => found,
    };
    let (_, state) = found.ok_or(RunProcessError::NothingToResume)?;
    Ok((pinned(&reader, &state)?, state.run.options))
}

/// The run that is begun, with its row in the journal.
pub fn new_run(
    intent: &Intent,
    journal: &mut SqliteJournal,
    repo: &UserRepo,
    config: Config,
    machine: &Machine,
) -> Result<ChosenRun, RunProcessError> {
    let (tasks, request) = match intent {
        Intent::Begin { tasks, request, .. } => (tasks, request),
        Intent::Again { spec, texts } => {
            let prepared = PreparedRun { spec: (**spec).clone(), texts: texts.clone() };
            create(journal, &prepared)?;
            let run = prepared.spec.id.clone();
            return Ok(ChosenRun::new(run, config, prepared));
        }
        Intent::Resume { .. } | Intent::Only { .. } => {
            return Err(RunProcessError::NothingToResume);
        }
    };
    let run = format!("{}-{}", clock::stamp(), machine.salt);
    let base = begin::Base {
        run: &run,
        branch: run_branch(&run),
        base_branch: &repo.base_branch,
        base: repo.base_tip.as_str(),
    };
    let prepared = begin::prepare(tasks, request, &config, base);
    create(journal, &prepared)?;
    Ok(ChosenRun::new(run, config, prepared))
}

fn newest(journal: &dyn JournalHistory) -> Result<FoundRun, RunProcessError> {
    let Some(run) = workspace::pick(journal, None)? else { return Ok(None) };
    let state = store::load(journal, &run.id).map_err(WorkspaceError::from)?;
    Ok(Some((run, state)))
}

fn create(journal: &mut SqliteJournal, prepared: &PreparedRun) -> Result<(), RunProcessError> {
    let new = NewRun {
        id: prepared.spec.id.clone(),
        mode: prepared.spec.flow.word().to_owned(),
        title: prepared.spec.title.clone(),
        created_at_ms: clock::now().0,
    };
    journal.create_run(&new).map_err(|error| WorkspaceError::from(StoreError::from(error)))?;
    Ok(())
}

/// A run that had ended and is retried must be found again if this process dies.
pub fn reopen(journal: &mut SqliteJournal, run: &str, epoch: u64) -> Result<(), RunProcessError> {
    let open = JournalEntry::End { run: run.to_owned(), epoch, outcome: None };
    journal.commit(&[open]).map_err(|error| WorkspaceError::from(StoreError::from(error)))?;
    Ok(())
}

/// The old run is over by a person's word; what it left in slots is rescued like after a crash.
fn abandon(
    journal: &mut SqliteJournal,
    run: Option<String>,
    holder: &str,
) -> Result<(), RunProcessError> {
    let Some(run) = run else { return Ok(()) };
    let epoch = workspace::take_lease(journal, &run, holder)?;
    let end = JournalEntry::End { run, epoch, outcome: Some("ABANDONED".to_owned()) };
    journal.commit(&[end]).map_err(|error| WorkspaceError::from(StoreError::from(error)))?;
    Ok(())
}

/// A run keeps the configuration it began with.
pub(crate) fn pinned(
    history: &dyn JournalHistory,
    state: &State,
) -> Result<Config, RunProcessError> {
    let text = store::text(history, &state.run.config).map_err(WorkspaceError::from)?;
    serde_json::from_str(&text).map_err(RunProcessError::PinnedConfig)
}
