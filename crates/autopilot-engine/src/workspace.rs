//! Opening a repository to work in it: examined, configured, locked, swept.

use crate::feed::JournalOpener;
use crate::place::StatePaths;
use crate::store::{self, StoreError};
use autopilot_core::config::{Config, ConfigFaults, Warning};
use autopilot_core::state::State;
use autopilot_host::checkout;
use autopilot_host::file;
use autopilot_host::git::{GitError, RepoRefusal, StateEnv, UserRepo, state};
use autopilot_host::lock::{self, Holder, Lock, LockError};
use autopilot_journal::{
    Journal, JournalHistory, JournalRun, LeaseClaim, SqliteJournal, SqliteReader,
};
use camino::{Utf8Path, Utf8PathBuf};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Runs looked through for an unfinished one; older ones have long been followed by others.
const RUNS_MAX: usize = 50;
/// Where all of them matter.
const RUNS_LOOKED_AT_MAX: usize = 10_000;
const CONFIG_BYTES_MAX: u64 = 256 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error("`{path}` is not inside a git repository; run `git init` and commit, or use -C")]
    NotARepository { path: Utf8PathBuf },
    #[error("{path} has a name that is not UTF-8; move the repository")]
    NotUtf8 { path: String },
    #[error(
        "no place for the state: set HOME, XDG_STATE_HOME or AUTOPILOT_STATE_DIR to an absolute path"
    )]
    NoStateRoot,
    #[error("there is no configuration at `{path}`; run `autopilot init`")]
    NoConfig { path: Utf8PathBuf },
    #[error("cannot read `{path}`")]
    ConfigUnreadable { path: Utf8PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("{}", faults.in_file(path.as_str()))]
    Config { path: Utf8PathBuf, faults: ConfigFaults },
    #[error(transparent)]
    Repository(RepoRefusal),
    #[error(transparent)]
    Git(GitError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(
        "`{path}` cannot be written: {reason}; free space or change its permissions, then try again"
    )]
    NotWritable { path: Utf8PathBuf, reason: String },
    #[error("`{path}` is a symbolic link; put a directory in its place, then try again")]
    Linked { path: Utf8PathBuf },
    #[error("no run `{0}` in this repository; `autopilot runs` lists them")]
    NoRun(String),
}

impl From<GitError> for WorkspaceError {
    fn from(error: GitError) -> WorkspaceError {
        if let GitError::Refused(refusal) = error {
            return WorkspaceError::Repository(refusal);
        }
        WorkspaceError::Git(error)
    }
}

/// Finds the repository around a directory without starting git. `state` may not exist yet.
pub fn find(dir: &Utf8Path, env: &StateEnv) -> Result<(StatePaths, bool), WorkspaceError> {
    let none = || match ["HEAD", "objects", "refs"].iter().all(|name| dir.join(name).exists()) {
        true => WorkspaceError::Repository(RepoRefusal::Bare { path: dir.into() }),
        false => WorkspaceError::NotARepository { path: dir.to_owned() },
    };
    let found = checkout::find(dir.as_std_path()).ok_or_else(none)?;
    let root = utf8(found.root.clone())?;
    match found.state(env) {
        Some(state) => {
            let state = utf8(state)?;
            let there = store::journal_path(&state).exists();
            Ok((StatePaths { root, state }, there))
        }
        None => Ok((StatePaths { root, state: Utf8PathBuf::new() }, false)),
    }
}

/// What we write must stay in the repository it is about.
pub fn refuse_linked_views(place: &StatePaths) -> Result<(), WorkspaceError> {
    let path = place.views();
    if path.is_symlink() { Err(WorkspaceError::Linked { path }) } else { Ok(()) }
}

pub fn read_config(place: &StatePaths) -> Result<(Config, Vec<Warning>), WorkspaceError> {
    refuse_linked_views(place)?;
    let path = place.config();
    if path.symlink_metadata().is_err() {
        return Err(WorkspaceError::NoConfig { path });
    }
    let unreadable = |source| WorkspaceError::ConfigUnreadable { path: path.clone(), source };
    let bytes = file::read_capped(path.as_std_path(), CONFIG_BYTES_MAX)
        .map_err(|error| unreadable(error.into()))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8".into()))?;
    Config::parse(&text).map_err(|faults| WorkspaceError::Config { path: path.clone(), faults })
}

/// Looks at the repository and writes nothing.
pub fn examine(dir: &Utf8Path, config: &Config) -> Result<UserRepo, WorkspaceError> {
    let (base, filters) = (&config.repo.base_branch, &config.git.filters);
    Ok(UserRepo::examine(dir.as_std_path(), base, filters)?)
}

/// Makes sure the repository has a state directory.
pub fn adopt(repo: &UserRepo, env: &StateEnv) -> Result<StatePaths, WorkspaceError> {
    let states = autopilot_host::git::state_root(env).ok_or(WorkspaceError::NoStateRoot)?;
    let (_, state, _) = state::adopt(&repo.common_dir, &states)?;
    Ok(StatePaths { root: utf8(repo.root.clone())?, state: utf8(state)? })
}

/// Nobody else works on this repository while this is held.
pub fn lock(place: &StatePaths, run: &str) -> Result<Lock, WorkspaceError> {
    Ok(lock::acquire(place.state.as_std_path(), &Holder::us(run))?)
}

/// Who works on it now, if anybody.
pub fn holder(place: &StatePaths) -> Option<Holder> {
    if place.state.as_str().is_empty() {
        return None;
    }
    lock::holder(place.state.as_std_path()).ok().flatten()
}

pub fn reader(place: &StatePaths) -> Result<SqliteReader, WorkspaceError> {
    Ok(SqliteReader::open(&place.journal()).map_err(StoreError::from)?)
}

/// Opens the journal for whoever follows a run and has fallen behind.
pub fn opener(place: &StatePaths) -> JournalOpener {
    let path = place.journal();
    Arc::new(move || Ok(Box::new(SqliteReader::open(&path)?)))
}

pub fn journal(place: &StatePaths) -> Result<SqliteJournal, WorkspaceError> {
    Ok(SqliteJournal::open_or_create(&place.journal()).map_err(StoreError::from)?)
}

/// The newest run that is not over, with its state. A run whose tasks have all settled is over only
/// when that was written down: a crash just before leaves views to be brought up to date.
pub fn unfinished(
    history: &dyn JournalHistory,
) -> Result<Option<(JournalRun, State)>, WorkspaceError> {
    for run in history.runs(RUNS_MAX).map_err(StoreError::from)? {
        if run.ended.is_some() {
            continue;
        }
        let state = store::load(history, &run.id)?;
        if state.has_begun() {
            return Ok(Some((run, state)));
        }
    }
    Ok(None)
}

/// The ids of all runs of which it was not written down that they are over.
pub fn not_ended(history: &dyn JournalHistory) -> Result<BTreeSet<String>, WorkspaceError> {
    let runs = history.runs(RUNS_LOOKED_AT_MAX).map_err(StoreError::from)?;
    Ok(runs.into_iter().filter(|run| run.ended.is_none()).map(|run| run.id).collect())
}

/// A run by its id or the beginning of it; without one, the newest.
pub fn pick(
    history: &dyn JournalHistory,
    id: Option<&str>,
) -> Result<Option<JournalRun>, WorkspaceError> {
    let runs = history.runs(RUNS_LOOKED_AT_MAX).map_err(StoreError::from)?;
    match id {
        None => Ok(runs.into_iter().next()),
        Some(id) => {
            let exact = runs.iter().find(|run| run.id == id).cloned();
            let begins = || runs.iter().find(|run| run.id.starts_with(id)).cloned();
            Ok(exact.or_else(begins))
        }
    }
}

/// Takes the run's lease. We hold the lock, so whoever had it before is dead.
pub fn take_lease(
    journal: &mut dyn Journal,
    run: &str,
    holder: &str,
) -> Result<u64, WorkspaceError> {
    let now = crate::clock::now().0;
    let lease = journal
        .take_lease(run, holder, LeaseClaim::Force, now, i64::MAX)
        .map_err(StoreError::from)?;
    Ok(lease.epoch)
}

fn utf8(path: std::path::PathBuf) -> Result<Utf8PathBuf, WorkspaceError> {
    Utf8PathBuf::from_path_buf(path)
        .map_err(|path| WorkspaceError::NotUtf8 { path: path.display().to_string() })
}
