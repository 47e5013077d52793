//! Queries about the runs of a repository, answered as data from the journal, without a lock and
//! without git. Any number of runs can be read while one of them is in progress.
//!
//! Commands print the data that the modules in this folder return; other clients get the same data.

pub mod cost;
pub mod diff;
pub mod failure;
pub mod graph;
pub mod log;
pub mod next;
pub mod report;
pub mod runs;
pub mod sessions;
pub mod show;
pub mod stats;
pub mod status;
pub mod verify;

use crate::environment::Variables;
use crate::feed::{GrowthWatch, Subscription};
use crate::place::StatePaths;
use crate::redaction;
use crate::store::{self, StoreError};
use crate::workspace;
use autopilot_core::config::Config;
use autopilot_core::config::nearest::nearest;
use autopilot_core::event::{Event, Record};
use autopilot_core::id::{AttemptId, TaskId, Time};
use autopilot_core::state::State;
use autopilot_host::git::GitError;
use autopilot_host::lock::Holder;
use autopilot_host::redact::Redactor;
use autopilot_journal::{JournalHistory, JournalRun, SqliteReader};
use autopilot_view as view;
pub use autopilot_view::Standing;

/// Runs that are searched for a task by name.
const RUNS_SEARCHED_MAX: usize = 50;
/// Runs that are searched for an id.
const RUNS_KNOWN_MAX: usize = 10_000;
/// A shorter prefix of an id is more likely a misspelt task name.
const PREFIX_CHARS_MIN: usize = 4;

/// Why a query can't be answered.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    #[error("no runs in this repository yet")]
    NoRunYet,
    #[error("no {what} `{id}` in this repository")]
    Unknown { what: &'static str, id: String, nearest: Option<String> },
    #[error("`{id}` is the beginning of more than one run")]
    Ambiguous { id: String, runs: Vec<String> },
    #[error("cannot read a text of the run: {0}")]
    Kept(serde_json::Error),
    #[error("`{path}` is not inside a git repository")]
    NotARepository { path: String },
    #[error("{what}")]
    NothingChanged { what: String, help: String },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Write(#[from] autopilot_host::file::FileError),
}

impl From<autopilot_journal::Error> for QueryError {
    fn from(error: autopilot_journal::Error) -> QueryError {
        QueryError::Store(StoreError::Journal(error))
    }
}

/// The runs in one repository's journal.
pub struct RunArchive {
    pub place: StatePaths,
    pub history: SqliteReader,
    /// The environment, whose secrets are redacted.
    variables: Variables,
}

/// A run with its state and the process that works on it.
pub struct KnownRun {
    pub run: JournalRun,
    pub state: State,
    pub holder: Option<Holder>,
}

/// The configurations of a run, by record number: its models may change when it is resumed.
pub struct RunConfigs(Vec<(u64, Option<Config>)>);

impl RunConfigs {
    /// Reads the configurations of a run. One that can't be read is skipped.
    pub fn of(past: &RunArchive, records: &[Record]) -> RunConfigs {
        let mut all = Vec::new();
        for record in records {
            for event in &record.events {
                if let Some(hash) = config_of(event) {
                    all.push((record.seq, past.kept(hash).ok()));
                }
            }
        }
        RunConfigs(all)
    }

    /// The configuration an attempt was made with.
    pub fn at(&self, attempt: AttemptId) -> Option<&Config> {
        let known = self.0.iter().rev().find(|(seq, _)| *seq <= attempt.seq);
        known.and_then(|(_, config)| config.as_ref())
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "no other event has to do with it")]
fn config_of(event: &Event) -> Option<&str> {
    match event {
        Event::RunStarted { run } => Some(&run.config),
        Event::LimitsChanged { config, .. } => config.as_deref(),
        _ => None,
    }
}

/// The run or task that an id on the command line names.
pub enum NamedEntry {
    Run(KnownRun),
    Task(KnownRun, TaskId),
}

impl RunArchive {
    /// Opens the journal of a repository.
    pub fn open(place: &StatePaths, variables: Variables) -> Result<RunArchive, QueryError> {
        let history = SqliteReader::open(&place.journal())?;
        Ok(RunArchive { place: place.clone(), history, variables })
    }

    /// The newest runs, at most `runs_max`.
    pub fn runs(&self, runs_max: usize) -> Result<Vec<JournalRun>, QueryError> {
        Ok(self.history.runs(runs_max)?)
    }

    /// Loads a run's state and looks up the process that works on it.
    pub fn tell(&self, run: JournalRun) -> Result<KnownRun, QueryError> {
        let state = store::load(&self.history, &run.id)?;
        let holder = workspace::holder(&self.place);
        Ok(KnownRun { run, state, holder })
    }

    /// The run that was started last.
    pub fn newest(&self) -> Result<Option<KnownRun>, QueryError> {
        self.runs(1)?.into_iter().next().map(|run| self.tell(run)).transpose()
    }

    /// Every record of a run, oldest first.
    pub fn records(&self, run: &str) -> Result<Vec<Record>, QueryError> {
        Ok(store::records(&self.history, run)?)
    }

    /// Subscribes to a run of any process, from the known state on.
    pub fn follow(&self, told: &KnownRun) -> Result<Subscription, QueryError> {
        let history = Box::new(SqliteReader::open(&self.place.journal())?);
        let (place, run) = (self.place.clone(), told.run.id.clone());
        let is_ours = move |holder: Holder| holder.run == run || holder.run.is_empty();
        let at_work = Box::new(move || Ok(workspace::holder(&place).is_some_and(&is_ours)));
        let growth = GrowthWatch::of([self.place.state.as_path()]);
        Ok(Subscription::of_journal(history, &told.run.id, told.state.seq + 1, at_work, growth))
    }

    /// Reads a text that the run keeps under a hash, as JSON.
    pub fn kept<T: serde::de::DeserializeOwned>(&self, hash: &str) -> Result<T, QueryError> {
        let text = store::text(&self.history, hash)?;
        serde_json::from_str(&text).map_err(QueryError::Kept)
    }

    /// The redactor of the run, used for everything that is shown of it.
    pub fn redactor(&self, state: &State) -> Redactor {
        let variables = &self.variables;
        let redactor = redaction::redactor_of(&self.place, &self.history, state, variables);
        // The journal is redacted already, and a run with a damaged configuration must still be
        // shown.
        redactor.unwrap_or_else(|_| Redactor::none())
    }

    /// Finds a run by its id or a prefix of it; without an id, the newest run.
    pub fn run(&self, id: Option<&str>) -> Result<KnownRun, QueryError> {
        let Some(id) = id else { return self.newest()?.ok_or(QueryError::NoRunYet) };
        let runs = self.runs(RUNS_KNOWN_MAX)?;
        match by_id(&runs, id)? {
            Some(run) => self.tell(run),
            None => Err(unknown("run", id, runs.iter().map(|run| run.id.as_str()))),
        }
    }

    /// Finds a task by name in the newest run that has it.
    pub fn task(&self, name: &str) -> Result<(KnownRun, TaskId), QueryError> {
        match self.find_task(name)? {
            Some(found) => Ok(found),
            None => Err(unknown("task", name, self.task_names()?.iter().map(String::as_str))),
        }
    }

    /// Finds the run or task that an id names; without an id, the newest run.
    pub fn named(&self, id: Option<&str>) -> Result<NamedEntry, QueryError> {
        let Some(id) = id else { return Ok(NamedEntry::Run(self.run(None)?)) };
        let runs = self.runs(RUNS_KNOWN_MAX)?;
        if let Some(run) = runs.iter().find(|run| run.id == id) {
            return Ok(NamedEntry::Run(self.tell(run.clone())?));
        }
        if let Some((told, task)) = self.find_task(id)? {
            return Ok(NamedEntry::Task(told, task));
        }
        if let Some(run) = by_id(&runs, id)? {
            return Ok(NamedEntry::Run(self.tell(run)?));
        }
        let tasks = self.task_names()?;
        let known = tasks.iter().map(String::as_str).chain(runs.iter().map(|run| run.id.as_str()));
        Err(unknown("run or task", id, known))
    }

    fn find_task(&self, name: &str) -> Result<Option<(KnownRun, TaskId)>, QueryError> {
        for run in self.runs(RUNS_SEARCHED_MAX)? {
            let told = self.tell(run)?;
            let found = view::leaves(&told.state).find(|task| task.name() == name);
            if let Some(task) = found.map(|task| task.id) {
                return Ok(Some((told, task)));
            }
        }
        Ok(None)
    }

    fn task_names(&self) -> Result<Vec<String>, QueryError> {
        let newest = self.newest()?;
        let names = newest.iter().flat_map(|told| view::leaves(&told.state));
        Ok(names.map(|task| task.name().to_owned()).collect())
    }
}

impl KnownRun {
    /// How the run stands.
    pub fn standing(&self) -> Standing {
        standing(&self.run, &self.state, self.holder.as_ref())
    }

    /// The process that works on the run, if there is one.
    pub fn pid(&self) -> Option<i32> {
        match self.standing() {
            Standing::Live { pid } => Some(pid),
            Standing::Over | Standing::Rests | Standing::Abandoned | Standing::Interrupted => None,
        }
    }

    /// Whether a process works on the run.
    pub fn is_live(&self) -> bool {
        self.pid().is_some()
    }

    /// When the run started; the journal knows of it a moment before its first record.
    pub fn started_at(&self) -> Time {
        let started = self.state.has_begun().then_some(self.state.run.started_at);
        started.unwrap_or(Time(self.run.created_at_ms))
    }

    /// How the run stands, as a sentence for people.
    pub fn headline(&self) -> String {
        if self.is_live() { view::headline(&self.state) } else { self.word().to_owned() }
    }

    /// The redacted name of a task; the run itself is told apart.
    fn task_label(&self, task: TaskId, redactor: &Redactor) -> String {
        match self.state.tasks.get(task.index()).filter(|task| task.parent.is_some()) {
            Some(task) => redactor.redact(task.name()).into_owned(),
            None => "(the run itself)".to_owned(),
        }
    }

    /// How the run stands in a word, also when no process works on it.
    pub fn word(&self) -> &'static str {
        match self.standing() {
            Standing::Live { .. } | Standing::Over | Standing::Rests => {
                view::state_word(&self.state)
            }
            Standing::Abandoned => "ABANDONED",
            Standing::Interrupted => "INTERRUPTED",
        }
    }
}

/// How a run stands, judged by the lock's holder and the records.
pub fn standing(run: &JournalRun, state: &State, holder: Option<&Holder>) -> Standing {
    let ours = |holder: &&Holder| holder.run == run.id || holder.run.is_empty();
    let over = state.end().is_some();
    match holder.filter(ours) {
        Some(holder) if !over => Standing::Live { pid: holder.process.pid },
        Some(_) | None if over => Standing::Over,
        Some(_) | None if run.ended.is_some() => Standing::Abandoned,
        Some(_) | None if state.has_begun() && !state.is_at_rest() => Standing::Interrupted,
        Some(_) | None => Standing::Rests,
    }
}

/// Finds the run of this id, or the only one whose id begins like it.
fn by_id(runs: &[JournalRun], id: &str) -> Result<Option<JournalRun>, QueryError> {
    if let Some(exact) = runs.iter().find(|run| run.id == id) {
        return Ok(Some(exact.clone()));
    }
    let long_enough = id.chars().count() >= PREFIX_CHARS_MIN;
    let begins: Vec<_> = runs.iter().filter(|run| long_enough && run.id.starts_with(id)).collect();
    if begins.len() > 1 {
        let runs = begins.iter().map(|run| run.id.clone()).collect();
        return Err(QueryError::Ambiguous { id: id.to_owned(), runs });
    }
    Ok(begins.first().copied().cloned())
}

fn unknown<'a>(
    what: &'static str,
    id: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> QueryError {
    let nearest = nearest(id, known).map(str::to_owned);
    QueryError::Unknown { what, id: id.to_owned(), nearest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str) -> JournalRun {
        JournalRun {
            id: id.to_owned(),
            mode: "task".to_owned(),
            title: String::new(),
            created_at_ms: 0,
            ended: None,
            lease: None,
            last_seq: 0,
        }
    }

    #[test]
    fn a_run_is_found_by_the_beginning_of_its_id_unless_that_is_too_short() {
        let runs = [run("20260102-abc"), run("20260101-xyz"), run("20260101-xyz-2")];
        let found = |id: &str| by_id(&runs, id).unwrap().map(|run| run.id);
        assert_eq!(found("20260101-xyz").as_deref(), Some("20260101-xyz"));
        assert_eq!(found("20260102").as_deref(), Some("20260102-abc"));
        assert_eq!(found("202"), None);
    }

    #[test]
    fn a_beginning_that_several_runs_share_is_refused_with_all_of_them() {
        let all = [run("20260102-abc"), run("20260101-xyz")];
        let Err(QueryError::Ambiguous { runs, .. }) = by_id(&all, "2026") else { panic!("found") };
        assert_eq!(runs, ["20260102-abc", "20260101-xyz"]);
    }

    #[test]
    fn an_unknown_id_names_the_nearest_one() {
        let error = unknown("task", "add-haeder", ["add-header", "fix"]);
        let QueryError::Unknown { nearest, .. } = error else { panic!("{error}") };
        assert_eq!(nearest.as_deref(), Some("add-header"));
    }
}
