//! What the journal tells of this repository's runs, read without a lock and without git.

use super::place;
use crate::cli::Global;
use crate::exit::Failure;
use autopilot_core::config::Config;
use autopilot_core::config::nearest::nearest;
use autopilot_core::event::{Event, Record};
use autopilot_core::id::{AttemptId, TaskId};
use autopilot_core::state::State;
use autopilot_engine::feed::Subscription;
use autopilot_engine::place::Place;
use autopilot_engine::redaction;
use autopilot_engine::store::{self, StoreError};
use autopilot_engine::workspace;
use autopilot_host::lock::Holder;
use autopilot_host::redact::Redactor;
use autopilot_journal::{History, Run, SqliteReader, Trouble};
use autopilot_view as view;
pub use autopilot_view::Standing;

/// Runs looked through for a task of a given name.
const RUNS_SEARCHED_MAX: usize = 50;
/// Runs whose ids can be asked for.
const RUNS_KNOWN_MAX: usize = 10_000;
/// A shorter beginning of an id is more likely a misspelt task.
const PREFIX_CHARS_MIN: usize = 4;

pub struct Past {
    pub place: Place,
    pub history: SqliteReader,
}

/// A run with its state, and who works on it.
pub struct Told {
    pub run: Run,
    pub state: State,
    pub holder: Option<Holder>,
}

/// The configurations of a run: which models its agents ask may change while it goes on.
pub struct Configs(Vec<(u64, Option<Config>)>);

impl Configs {
    /// One that can't be read any more tells nothing; the rest of the run still does.
    pub fn of(past: &Past, records: &[Record]) -> Configs {
        let mut all = Vec::new();
        for record in records {
            for event in &record.events {
                if let Some(hash) = config_of(event) {
                    all.push((record.seq, past.kept(hash).ok()));
                }
            }
        }
        Configs(all)
    }

    /// The one an attempt was made with.
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

/// What an id on the command line names.
pub enum Named {
    Run(Told),
    Task(Told, TaskId),
}

impl Past {
    /// Nothing when no run was ever begun here.
    pub fn open(global: &Global) -> Result<(Place, Option<Past>), Failure> {
        let (place, has_journal) = place(global)?;
        if !has_journal {
            return Ok((place, None));
        }
        Ok((place.clone(), Some(Past::at(&place)?)))
    }

    pub fn at(place: &Place) -> Result<Past, Failure> {
        let history = SqliteReader::open(&place.journal()).map_err(unreadable)?;
        Ok(Past { place: place.clone(), history })
    }

    /// For commands that need a run to say anything.
    pub fn must(global: &Global) -> Result<Past, Failure> {
        Past::open(global)?.1.ok_or_else(no_run)
    }

    pub fn runs(&self, runs_max: usize) -> Result<Vec<Run>, Failure> {
        self.history.runs(runs_max).map_err(unreadable)
    }

    pub fn tell(&self, run: Run) -> Result<Told, Failure> {
        let state = store::load(&self.history, &run.id).map_err(unfoldable)?;
        let holder = workspace::holder(&self.place);
        Ok(Told { run, state, holder })
    }

    pub fn newest(&self) -> Result<Option<Told>, Failure> {
        self.runs(1)?.into_iter().next().map(|run| self.tell(run)).transpose()
    }

    pub fn records(&self, run: &str) -> Result<Vec<Record>, Failure> {
        store::records(&self.history, run).map_err(unfoldable)
    }

    /// The run as it goes on in whatever process works on it, from what is known of it on.
    pub fn follow(&self, told: &Told) -> Result<Subscription, Failure> {
        let history = Box::new(SqliteReader::open(&self.place.journal()).map_err(unreadable)?);
        let (place, run) = (self.place.clone(), told.run.id.clone());
        let is_ours = move |holder: Holder| holder.run == run || holder.run.is_empty();
        let at_work = Box::new(move || Ok(workspace::holder(&place).is_some_and(&is_ours)));
        Ok(Subscription::of_journal(history, &told.run.id, told.state.seq + 1, at_work))
    }

    /// What a run keeps under a hash, as JSON.
    pub fn kept<T: serde::de::DeserializeOwned>(&self, hash: &str) -> Result<T, Failure> {
        let text = store::text(&self.history, hash).map_err(unfoldable)?;
        serde_json::from_str(&text)
            .map_err(|error| Failure::failed(format!("what the run keeps can't be read: {error}")))
    }

    /// What the run hides, hidden also from whoever asks about it.
    pub fn redactor(&self, state: &State) -> Redactor {
        let variables = super::work::variables();
        let redactor = redaction::redactor_of(&self.place, &self.history, state, &variables);
        // What the run wrote is redacted in the journal; a damaged one must still be told of.
        redactor.unwrap_or_else(|_| Redactor::none())
    }

    /// A run by its id or the beginning of it; without one, the newest.
    pub fn run(&self, id: Option<&str>) -> Result<Told, Failure> {
        let Some(id) = id else { return self.newest()?.ok_or_else(no_run) };
        let runs = self.runs(RUNS_KNOWN_MAX)?;
        match by_id(&runs, id) {
            Some(run) => self.tell(run),
            None => Err(unknown("run", id, runs.iter().map(|run| run.id.as_str()))),
        }
    }

    /// A task of the newest run that has it.
    pub fn task(&self, name: &str) -> Result<(Told, TaskId), Failure> {
        match self.find_task(name)? {
            Some(found) => Ok(found),
            None => Err(unknown("task", name, self.task_names()?.iter().map(String::as_str))),
        }
    }

    pub fn named(&self, id: Option<&str>) -> Result<Named, Failure> {
        let Some(id) = id else { return Ok(Named::Run(self.run(None)?)) };
        let runs = self.runs(RUNS_KNOWN_MAX)?;
        if let Some(run) = runs.iter().find(|run| run.id == id) {
            return Ok(Named::Run(self.tell(run.clone())?));
        }
        if let Some((told, task)) = self.find_task(id)? {
            return Ok(Named::Task(told, task));
        }
        if let Some(run) = by_id(&runs, id) {
            return Ok(Named::Run(self.tell(run)?));
        }
        let tasks = self.task_names()?;
        let known = tasks.iter().map(String::as_str).chain(runs.iter().map(|run| run.id.as_str()));
        Err(unknown("run or task", id, known))
    }

    fn find_task(&self, name: &str) -> Result<Option<(Told, TaskId)>, Failure> {
        for run in self.runs(RUNS_SEARCHED_MAX)? {
            let told = self.tell(run)?;
            let found = view::leaves(&told.state).find(|task| task.name() == name);
            if let Some(task) = found.map(|task| task.id) {
                return Ok(Some((told, task)));
            }
        }
        Ok(None)
    }

    fn task_names(&self) -> Result<Vec<String>, Failure> {
        let newest = self.newest()?;
        let names = newest.iter().flat_map(|told| view::leaves(&told.state));
        Ok(names.map(|task| task.name().to_owned()).collect())
    }
}

impl Told {
    pub fn standing(&self) -> Standing {
        standing(&self.run, &self.state, self.holder.as_ref())
    }

    /// The state of the run in a word, true also when nobody is there to work on it.
    pub fn word(&self) -> &'static str {
        match self.standing() {
            Standing::Live { .. } | Standing::Over | Standing::Rests => view::headline(&self.state),
            Standing::Abandoned => "ABANDONED",
            Standing::Interrupted => "INTERRUPTED",
        }
    }
}

pub fn standing(run: &Run, state: &State, holder: Option<&Holder>) -> Standing {
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

fn by_id(runs: &[Run], id: &str) -> Option<Run> {
    let long_enough = id.chars().count() >= PREFIX_CHARS_MIN;
    let exact = runs.iter().find(|run| run.id == id);
    let begins = || runs.iter().find(|run| long_enough && run.id.starts_with(id));
    exact.or_else(begins).cloned()
}

fn unknown<'a>(what: &str, id: &str, known: impl IntoIterator<Item = &'a str>) -> Failure {
    let failure = Failure::usage(format!("there is no {what} `{id}` in this repository"));
    match nearest(id, known) {
        Some(near) => failure.help(format!("did you mean `{near}`?")),
        None => failure.help("`autopilot status` shows the tasks, `autopilot runs` the runs"),
    }
}

pub fn no_run() -> Failure {
    Failure::usage("no run was begun in this repository yet")
        .help("write a task file and start with `autopilot run tasks/<name>.md`")
}

pub fn unreadable(error: autopilot_journal::Error) -> Failure {
    let damaged = error.trouble() == Some(Trouble::Damaged);
    let failure = Failure::failed(autopilot_engine::cause::chain(&error));
    if damaged {
        failure.help("`autopilot recover --journal` saves what can be read of it")
    } else {
        failure
    }
}

pub fn unfoldable(error: StoreError) -> Failure {
    match error {
        StoreError::Journal(error) => unreadable(error),
        other @ (StoreError::Record { .. }
        | StoreError::Encode { .. }
        | StoreError::Stopped { .. }
        | StoreError::NoBlob { .. }) => Failure::failed(autopilot_engine::cause::chain(&other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str) -> Run {
        Run {
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
        let runs = [run("20260102-abc"), run("20260101-xyz")];
        let found = |id: &str| by_id(&runs, id).map(|run| run.id);
        assert_eq!(found("20260101-xyz").as_deref(), Some("20260101-xyz"));
        assert_eq!(found("20260101").as_deref(), Some("20260101-xyz"));
        assert_eq!(found("2026").as_deref(), Some("20260102-abc"), "the newest comes first");
        assert_eq!(found("202"), None);
    }

    #[test]
    fn an_unknown_id_is_a_usage_error_with_the_nearest_one() {
        let failure = unknown("task", "add-haeder", ["add-header", "fix"]);
        assert_eq!(failure.code, crate::exit::USAGE);
        assert_eq!(failure.help.as_deref(), Some("did you mean `add-header`?"));
    }
}
