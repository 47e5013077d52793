//! Chooses the run a process works on: the unfinished one, a re-opened one, or a new one.
//!
//! The rule that a repository has one unfinished run, and that a second one is refused, is in
//! [`take_up`] and nowhere else.

use super::model_change::ModelChange;
use super::{Intent, Machine, RunProcessError};
use crate::begin::{self, BeginError, PreparedRun, RunRequest};
use crate::clock;
use crate::holdout;
use crate::place::StatePaths;
use crate::store::{self, StoreError};
use crate::workspace::{self, WorkspaceError};
use autopilot_core::config::{Config, Options};
use autopilot_core::event::TaskEnd;
use autopilot_core::pipeline::Switch;
use autopilot_core::state::State;
use autopilot_host::git::UserRepo;
use autopilot_journal::{Journal, JournalEntry, JournalHistory, JournalRun, NewRun, SqliteJournal};
use autopilot_view as view;

/// The run this process works on.
pub struct ChosenRun {
    pub run: String,
    pub state: State,
    pub config: Config,
    /// The models its agents use from here on, where they changed.
    pub models: Option<ModelChange>,
    /// The first record of a new run.
    pub prepared: Option<PreparedRun>,
}

type FoundRun = Option<(JournalRun, State)>;

/// The existing run to resume, if the intent asks for it or implies it.
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
            Some((run, state)) => match unavailable_option(request, &state) {
                Some(flag) => {
                    Err(RunProcessError::UnderWay { run: run.id, title: run.title, flag })
                }
                None => Ok(Some((run, state))),
            },
            None => Ok(None),
        },
        Intent::Again { .. } => Ok(None),
        Intent::Resume { asks, .. } => {
            // A failed task is re-opened in the newest run even when that run has ended.
            let found = match asks.is_empty() {
                true => known,
                false => workspace::unfinished_or_newest(journal)?,
            };
            found.map(Some).ok_or_else(|| nothing_to_resume(journal))
        }
        Intent::Only { run, .. } => match known {
            Some((other, _)) if other.id != *run => {
                Err(RunProcessError::Unfinished { run: other.id, title: other.title })
            }
            Some(found) => Ok(Some(found)),
            None => Ok(Some(by_id(journal, run)?)),
        },
    }
}

fn by_id(journal: &dyn JournalHistory, run: &str) -> Result<(JournalRun, State), RunProcessError> {
    let none = || WorkspaceError::NoRun(run.to_owned());
    let known = workspace::pick(journal, Some(run))?.ok_or_else(none)?;
    let state = store::load(journal, run).map_err(WorkspaceError::from)?;
    if state.has_begun() { Ok((known, state)) } else { Err(none().into()) }
}

/// The option of a request that can't take effect in a run that is under way.
fn unavailable_option(request: &RunRequest, state: &State) -> Option<&'static str> {
    let lacks = |switch| !state.run.switches.contains(&switch);
    let (asked, kept) = (&request.options, &state.run.options);
    let is_other = |asked: &Option<String>, kept| asked.is_some() && asked != kept;
    let changes = [
        (request.push && lacks(Switch::Push), "--push"),
        (request.pr && lacks(Switch::Pr), "--pr"),
        (request.allow_red_base && !state.run.red_base_allowed, "--allow-red-base"),
        (request.prove_base && lacks(Switch::ProveBase), "--prove-base"),
        (request.fail_fast && !state.is_failing_fast(), "--fail-fast"),
        (is_other(&asked.adapter, &kept.adapter), "--adapter"),
        (is_other(&asked.model, &kept.model), "--model"),
        (asked.r#unsafe && !kept.r#unsafe, "--unsafe"),
        (is_other(&asked.out, &kept.out), "--out"),
    ];
    changes.iter().find(|(is_change, _)| *is_change).map(|(_, flag)| *flag)
}

/// The configuration of the run that would be resumed, with its command-line options, before
/// anything is locked.
pub fn pinned_config(place: &StatePaths, any: bool) -> Result<(Config, Options), RunProcessError> {
    let reader = workspace::reader(place)?;
    let found = match any {
        true => workspace::unfinished_or_newest(&reader)?,
        false => workspace::unfinished(&reader)?,
    };
    let (_, state) = found.ok_or_else(|| nothing_to_resume(&reader))?;
    Ok((pinned(&reader, &state)?, state.run.options))
}

/// The error of a resume without an unfinished run. If the newest run has failed, it can be tried
/// again.
pub fn nothing_to_resume(history: &dyn JournalHistory) -> RunProcessError {
    let newest = workspace::unfinished_or_newest(history).ok().flatten();
    let failed = newest.filter(|(_, state)| matches!(state.end(), Some(TaskEnd::Failed { .. })));
    RunProcessError::NothingToResume { retry: failed.map(|(_, state)| view::retry_command(&state)) }
}

/// Creates a new run with its row in the journal.
pub fn new_run(
    intent: &Intent,
    journal: &mut SqliteJournal,
    (place, repo): (&StatePaths, &UserRepo),
    config: Config,
    machine: &Machine,
) -> Result<ChosenRun, RunProcessError> {
    let prepared = match intent {
        Intent::Begin { tasks, request, .. } => {
            let run = format!("{}-{}", clock::stamp(), machine.salt);
            let set = holdout::look(&config, place, &repo.common_dir).map_err(BeginError::from)?;
            if let Some(set) = &set {
                holdout::pin(set, place).map_err(BeginError::HoldoutCopy)?;
            }
            begin::prepare(tasks, request, &config, &run, repo, set.as_ref())
        }
        Intent::Again { spec, texts } => {
            PreparedRun { spec: (**spec).clone(), texts: texts.clone() }
        }
        Intent::Resume { .. } | Intent::Only { .. } => {
            return Err(nothing_to_resume(journal));
        }
    };
    create(journal, &prepared)?;
    let (run, state) = (prepared.spec.id.clone(), State::default());
    Ok(ChosenRun { run, state, config, models: None, prepared: Some(prepared) })
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

/// Marks an ended run as unfinished again, so that it is found if this process dies.
pub fn reopen(journal: &mut SqliteJournal, run: &str, epoch: u64) -> Result<(), RunProcessError> {
    let open = JournalEntry::End { run: run.to_owned(), epoch, outcome: None };
    journal.commit(&[open]).map_err(|error| WorkspaceError::from(StoreError::from(error)))?;
    Ok(())
}

/// Ends an abandoned run; work left in its slots is rescued as after a crash.
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

/// The configuration a run started with.
pub(crate) fn pinned(
    history: &dyn JournalHistory,
    state: &State,
) -> Result<Config, RunProcessError> {
    let text = store::text(history, &state.run.config).map_err(WorkspaceError::from)?;
    serde_json::from_str(&text).map_err(RunProcessError::PinnedConfig)
}
