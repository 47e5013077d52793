//! Opens a repository to work in it: examines it, reads its configuration, takes the lock.

use crate::again::again;
use crate::feed::JournalOpener;
use crate::lost_state::LostState;
use crate::place::StatePaths;
use crate::store::{self, StoreError};
use autopilot_core::config::{Config, ConfigFaults, Warning};
use autopilot_core::state::State;
use autopilot_host::checkout;
use autopilot_host::file;
use autopilot_host::git::{GitError, RepoRefusal, StateEnv, UserRepo, state};
use autopilot_host::lock::{self, Holder, Lock, LockError};
use autopilot_journal::{
    Error as JournalError, Journal, JournalHistory, JournalRun, LeaseClaim, SqliteJournal,
    SqliteReader,
};
use camino::{Utf8Path, Utf8PathBuf};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Runs that are searched for an unfinished one; older runs have long been followed by others.
const RUNS_MAX: usize = 50;
/// Runs that are searched where every unfinished one matters.
const RUNS_LOOKED_AT_MAX: usize = 10_000;
const CONFIG_BYTES_MAX: u64 = 256 * 1024;

/// Why a repository can't be worked in.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error("`{path}` is not inside a git repository; run `git init` and commit, or use -C")]
    NotARepository { path: Utf8PathBuf },
    #[error("{path} has a name that is not UTF-8; move the repository")]
    NotUtf8 { path: String },
    #[error(
        "no state directory: set HOME, XDG_STATE_HOME or AUTOPILOT_STATE_DIR to an absolute path"
    )]
    NoStateRoot,
    #[error("AUTOPILOT_STATE_DIR is `{value}`, which is not an absolute path")]
    StateRootRelative { value: String },
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
    #[error(
        "Autopilot's own repository `{path}` has lost objects that the run needs ({lost} or more), \
         and your repository does not have them either"
    )]
    HubDamaged { path: Utf8PathBuf, lost: usize },
    #[error(
        "Autopilot's own repository `{path}` has lost work that the run needs, and your repository \
         does not have it either: {}", lost.join(", ")
    )]
    WorkLost { path: Utf8PathBuf, lost: Vec<String> },
    #[error(transparent)]
    Lost(#[from] LostState),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("`{path}` cannot be written")]
    NotWritable { path: Utf8PathBuf, source: std::io::Error },
    #[error("`{path}` cannot be written: only {mb_free} MB are free")]
    NoRoom { path: Utf8PathBuf, mb_free: u64 },
    #[error("`{path}` is a symbolic link; put a directory in its place, then try again")]
    Linked { path: Utf8PathBuf },
    #[error("no run `{0}` in this repository; `autopilot runs` lists them")]
    NoRun(String),
}

impl WorkspaceError {
    /// The file or directory that can't be used.
    pub fn path(&self) -> Option<&Path> {
        match self {
            WorkspaceError::Git(GitError::File { path, .. })
            | WorkspaceError::Lock(LockError::Failed { path, .. }) => Some(path),
            WorkspaceError::Store(StoreError::Journal(JournalError::Storage {
                journal, ..
            })) => Some(Path::new(journal)),
            WorkspaceError::Store(StoreError::Journal(JournalError::File { path, .. }))
            | WorkspaceError::ConfigUnreadable { path, .. }
            | WorkspaceError::NotWritable { path, .. }
            | WorkspaceError::NoRoom { path, .. } => Some(path.as_std_path()),
            WorkspaceError::Git(_)
            | WorkspaceError::Lock(_)
            | WorkspaceError::Store(_)
            | WorkspaceError::NotARepository { .. }
            | WorkspaceError::NotUtf8 { .. }
            | WorkspaceError::NoStateRoot
            | WorkspaceError::StateRootRelative { .. }
            | WorkspaceError::NoConfig { .. }
            | WorkspaceError::Config { .. }
            | WorkspaceError::Repository(_)
            | WorkspaceError::HubDamaged { .. }
            | WorkspaceError::WorkLost { .. }
            | WorkspaceError::Lost(_)
            | WorkspaceError::Linked { .. }
            | WorkspaceError::NoRun(_) => None,
        }
    }
}

impl From<GitError> for WorkspaceError {
    fn from(error: GitError) -> WorkspaceError {
        if let GitError::Refused(refusal) = error {
            return WorkspaceError::Repository(refusal);
        }
        WorkspaceError::Git(error)
    }
}

/// Finds the repository around a directory without starting git. The returned flag says whether it
/// has a journal.
pub fn find(dir: &Utf8Path, env: &StateEnv) -> Result<(StatePaths, bool), WorkspaceError> {
    if let Some(value) = env.relative_state_dir() {
        return Err(WorkspaceError::StateRootRelative { value: value.display().to_string() });
    }
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

/// Fails if the repository has had runs and lost what is known of them.
pub fn refuse_lost(place: &StatePaths, env: &StateEnv) -> Result<(), WorkspaceError> {
    LostState::of(place, env).map_or(Ok(()), |lost| Err(lost.into()))
}

/// Refuses a `.autopilot` that is a symbolic link: files must stay in the repository they are
/// about.
pub fn refuse_linked_views(place: &StatePaths) -> Result<(), WorkspaceError> {
    let path = place.views();
    if path.is_symlink() { Err(WorkspaceError::Linked { path }) } else { Ok(()) }
}

/// Reads and checks the configuration file.
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

/// Examines the repository without writing anything.
pub fn examine(dir: &Utf8Path, config: &Config) -> Result<UserRepo, WorkspaceError> {
    let (base, filters) = (&config.repo.base_branch, &config.git.filters);
    Ok(again(|| UserRepo::examine(dir.as_std_path(), base, filters))?)
}

/// Creates the repository's state directory if it is missing.
pub fn adopt(repo: &UserRepo, env: &StateEnv) -> Result<StatePaths, WorkspaceError> {
    let states = autopilot_host::git::state_root(env).ok_or(WorkspaceError::NoStateRoot)?;
    let (_, state, _) = again(|| state::adopt(&repo.common_dir, &states))?;
    Ok(StatePaths { root: utf8(repo.root.clone())?, state: utf8(state)? })
}

/// Takes the lock, so that no other process works on this repository while it is held.
pub fn lock(place: &StatePaths, run: &str) -> Result<Lock, WorkspaceError> {
    Ok(lock::acquire(place.state.as_std_path(), &Holder::us(run))?)
}

/// The process that holds the lock, if any.
pub fn holder(place: &StatePaths) -> Option<Holder> {
    if place.state.as_str().is_empty() {
        return None;
    }
    lock::holder(place.state.as_std_path()).ok().flatten()
}

/// Opens the journal for reading.
pub fn reader(place: &StatePaths) -> Result<SqliteReader, WorkspaceError> {
    Ok(SqliteReader::open(&place.journal()).map_err(StoreError::from)?)
}

/// Opens the journal for a subscriber that has fallen behind.
pub fn opener(place: &StatePaths) -> JournalOpener {
    let path = place.journal();
    Arc::new(move || Ok(Box::new(SqliteReader::open(&path)?)))
}

/// Opens the journal for writing.
pub fn journal(place: &StatePaths) -> Result<SqliteJournal, WorkspaceError> {
    Ok(SqliteJournal::open_or_create(&place.journal()).map_err(StoreError::from)?)
}

/// The newest unfinished run with its state. A run whose tasks have all settled is finished only
/// when its end is recorded: a crash just before leaves views to bring up to date.
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

/// The unfinished run, or else the newest one, with its state.
pub fn unfinished_or_newest(
    history: &dyn JournalHistory,
) -> Result<Option<(JournalRun, State)>, WorkspaceError> {
    if let Some(found) = unfinished(history)? {
        return Ok(Some(found));
    }
    let Some(run) = pick(history, None)? else { return Ok(None) };
    let state = store::load(history, &run.id)?;
    Ok(Some((run, state)))
}

/// The ids of all runs whose end is not recorded.
pub fn not_ended(history: &dyn JournalHistory) -> Result<BTreeSet<String>, WorkspaceError> {
    let runs = history.runs(RUNS_LOOKED_AT_MAX).map_err(StoreError::from)?;
    Ok(runs.into_iter().filter(|run| run.ended.is_none()).map(|run| run.id).collect())
}

/// Finds a run by its id; without an id, the newest run.
pub fn pick(
    history: &dyn JournalHistory,
    id: Option<&str>,
) -> Result<Option<JournalRun>, WorkspaceError> {
    let runs = history.runs(RUNS_LOOKED_AT_MAX).map_err(StoreError::from)?;
    Ok(runs.into_iter().find(|run| id.is_none_or(|id| run.id == id)))
}

/// Takes the run's lease. This process holds the lock, so the previous owner of the lease is dead.
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
