//! A process that works on a run: [`open`] takes the lock, cleans up and opens the journal;
//! [`OpenRun::work`] runs the loop. The caller owns the runtime, so that one process can work on
//! several runs.

mod branch;
mod choice;
mod first_input;
mod ground;
mod hub;
mod known_run;
mod model_change;
mod needed_work;
pub(crate) mod room;

use branch::RunBranch;
pub(crate) use choice::pinned;
pub use choice::{nothing_to_resume, pinned_config};
pub(crate) use ground::JobGround;
pub use room::own_processes;
pub(crate) use room::{make_room, remove_homes, sweep_leftovers};

use crate::arrears;
use crate::begin::{self, RunRequest, Tasks};
use crate::clock;
use crate::environment::Variables;
use crate::feed::{RunFeed, SightLevel, Subscription};
use crate::flag::Flag;
use crate::inbox::LimitChange;
use crate::place::StatePaths;
use crate::replay::Player;
use crate::shell::{DoneCheck, Shell, ShellError, ShellParts, WaitPolicy};
use crate::store;
use crate::workspace::{self, WorkspaceError};
use autopilot_core::config::Config;
use autopilot_core::decide::{Refusal, rehearse};
use autopilot_core::event::{Record, RunSpec};
use autopilot_core::input::{Ask, Input};
use autopilot_core::state::State;
use autopilot_host::git::UserRepo;
use autopilot_host::lock::{Holder, Lock};
use autopilot_host::redact::RedactError;
use autopilot_host::sandbox::SandboxError;
use autopilot_journal::{Journal, SqliteJournal};
use camino::{Utf8Path, Utf8PathBuf};
use choice::ChosenRun;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

/// How often the state directory is checked to be still there.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The time that running steps get to end once the state directory is gone.
const ENDING_MAX: Duration = Duration::from_secs(15);

/// Why a run can't be worked on.
#[derive(Debug, thiserror::Error)]
pub enum RunProcessError {
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Shell(#[from] ShellError),
    #[error(transparent)]
    Begin(#[from] begin::BeginError),
    #[error("run {run} ({title}) is not finished")]
    Unfinished { run: String, title: String },
    #[error("run {run} ({title}) was started without {flag}")]
    UnderWay { run: String, title: String, flag: &'static str },
    #[error("cannot remove {name}")]
    Flag { name: &'static str, source: std::io::Error },
    #[error(
        "the state directory `{path}` was removed during the run, and its journal and unmerged \
         work with it"
    )]
    StateGone { path: Utf8PathBuf },
    #[error("the file system of the state directory `{path}` is gone; the run rests")]
    StateUnmounted { path: Utf8PathBuf },
    #[error("nothing to resume in this repository")]
    NothingToResume {
        /// The command that tries the last run again, if it has failed.
        retry: Option<&'static str>,
    },
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("the configuration the run started with can't be read")]
    PinnedConfig(#[source] serde_json::Error),
    #[error("cannot start the runtime")]
    Runtime(#[source] std::io::Error),
    #[error("the loop of the run failed")]
    Loop(#[source] tokio::task::JoinError),
    #[error(transparent)]
    Redaction(#[from] RedactError),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

/// Facts about the machine that the caller passes to every job.
pub struct Machine {
    pub variables: Variables,
    /// Autopilot's own executable.
    pub own: Utf8PathBuf,
    /// A few characters that make a run's id unique.
    pub salt: String,
    pub holder: String,
}

/// What to do with the opened repository.
pub enum Intent {
    Begin {
        tasks: Box<Tasks>,
        request: Box<RunRequest>,
        fresh: bool,
    },
    /// Replay a run as it was started.
    Again {
        spec: Box<RunSpec>,
        texts: Vec<String>,
    },
    /// Resume the run. `texts` are the texts that the asks name by their hashes.
    Resume {
        asks: Vec<Ask>,
        limits: LimitChange,
        /// The model that all agents use from here on.
        model: Option<String>,
        texts: Vec<String>,
    },
    /// Do only what is asked, and nothing else of the run, which may have ended.
    Only {
        run: String,
        ask: Ask,
        limits: LimitChange,
        texts: Vec<String>,
    },
}

impl Intent {
    fn limits(&self) -> Option<&LimitChange> {
        match self {
            Intent::Begin { request, .. } => Some(&request.limits),
            Intent::Again { .. } => None,
            Intent::Resume { limits, .. } | Intent::Only { limits, .. } => Some(limits),
        }
    }

    fn has_asks(&self) -> bool {
        matches!(self, Intent::Resume { asks, .. } if !asks.is_empty())
    }

    fn model(&self) -> Option<String> {
        match self {
            Intent::Resume { model, .. } => model.clone(),
            Intent::Begin { .. } | Intent::Again { .. } | Intent::Only { .. } => None,
        }
    }
}

/// An examined repository with its state directory and configuration.
pub struct OpenedRepository {
    pub place: StatePaths,
    pub repo: UserRepo,
    pub config: Config,
}

/// A run that this process has opened and locked, but not started.
pub struct OpenRun {
    parts: ShellParts,
    ground: JobGround,
    branch: RunBranch,
    first: Vec<Input>,
    texts: Vec<String>,
    lock: Lock,
}

/// Opens a run: takes the lock, cleans up after a dead process, opens journal and hub. With a
/// `player`, agents repeat their recorded answers.
pub fn open(
    opened: OpenedRepository,
    intent: Intent,
    machine: Machine,
    player: Option<Arc<Player>>,
    notice: &mut dyn FnMut(&str),
) -> Result<OpenRun, RunProcessError> {
    let OpenedRepository { place, repo, config } = opened;
    room::make_room(&place, notice)?;
    let mut lock = workspace::lock(&place, "")?;
    let mut journal = workspace::journal(&place)?;
    let found = choice::take_up(&intent, &mut journal, &machine)?;
    let chosen = match found {
        Some(found) => {
            let is_replay = player.is_some();
            known_run::go_on(found, &journal, &intent, &place, config, is_replay, notice)?
        }
        None => choice::new_run(&intent, &mut journal, (&place, &repo), config, &machine)?,
    };
    let first = first_input::first_inputs(&intent, &chosen);
    if intent.has_asks() {
        // Another process may have changed the run after the asks were judged.
        rehearse(&chosen.state, first.iter().cloned(), clock::now())?;
    }
    lock.refresh(&Holder::us(&chosen.run)).map_err(WorkspaceError::from)?;
    room::sweep_leftovers(&place, &chosen.run, notice);
    crate::exposure::clear(&place, notice);
    crate::inbox::sweep(&place);
    let epoch = workspace::take_lease(&mut journal, &chosen.run, &machine.holder)?;
    choice::reopen(&mut journal, &chosen.run, epoch)?;
    let (workshop, branch) = hub::open(&place, repo, &chosen, notice)?;
    let ChosenRun { run, mut state, config, models, prepared } = chosen;
    collect_arrears(&mut journal, epoch, &mut state, &place, &config)?;
    room::remove_homes(&place);
    let texts = match (prepared, intent) {
        (Some(prepared), _) => prepared.texts,
        (None, Intent::Resume { texts, .. } | Intent::Only { texts, .. }) => texts,
        (None, Intent::Begin { .. } | Intent::Again { .. }) => Vec::new(),
    };
    let (config, texts) = match models {
        Some(models) => (models.config, [texts, vec![models.text]].concat()),
        None => (config, texts),
    };
    let known = store::records(&journal, &run).map_err(WorkspaceError::from)?;
    let feed = RunFeed::new(&run, state.seq, workspace::opener(&place));
    let journal = Box::new(journal);
    let ground = JobGround::new(place.clone(), config, workshop, machine, player, notice)?;
    let check = done_check(&branch, &ground, &place);
    let parts = ShellParts { place, run, epoch, state, journal, feed, known, check };
    Ok(OpenRun { parts, ground, branch, first, texts, lock })
}

/// The look at the branches and their evidence before a run is called done.
fn done_check(branch: &RunBranch, ground: &JobGround, place: &StatePaths) -> DoneCheck {
    let (branch, place) = (branch.clone(), place.clone());
    let (border, redactor) = (Arc::clone(&ground.border), Arc::clone(&ground.redactor));
    Box::new(move |state| {
        let mut notices = branch.restore_done(state, &border)?;
        notices.extend(branch.publish_evidence(state, &place, &border, &redactor));
        Ok(notices)
    })
}

impl OpenRun {
    /// The id of the run.
    pub fn id(&self) -> &str {
        &self.parts.run
    }

    /// The feed of the run.
    pub fn feed(&self) -> &RunFeed {
        &self.parts.feed
    }

    /// A subscription to all records from here on, with the state before them.
    pub fn follow(&self, level: SightLevel) -> (Subscription, State) {
        let state = self.parts.state.clone();
        (self.parts.feed.subscribe(state.seq + 1, level), state)
    }

    /// Works on the run until it ends or pauses, and returns its state.
    pub async fn work(self, wait: WaitPolicy) -> Result<State, RunProcessError> {
        let OpenRun { parts, ground, branch, first, texts, lock } = self;
        let place = parts.place.clone();
        let _told = EndOfFeed(parts.feed.clone());
        let shell = Shell::new(parts, wait, |texts, signals| ground.context(texts, signals))?;
        for text in &texts {
            shell.texts().put(text).map_err(ShellError::from)?;
        }
        let ended = watched(shell.work(first), &place).await?;
        if ended.end().is_some() {
            // A stop that came too late would only keep the next run from starting.
            let _stays = Flag::Stop.lower(&place);
        }
        branch.tidy();
        drop(lock);
        Ok(ended)
    }
}

/// Ends the feed when the work ends, for whatever reason.
struct EndOfFeed(RunFeed);

impl Drop for EndOfFeed {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Stops the work when the state directory is removed: nothing done after that could be kept or
/// merged.
async fn watched(
    work: impl Future<Output = Result<State, ShellError>>,
    place: &StatePaths,
) -> Result<State, RunProcessError> {
    let mut work = std::pin::pin!(work);
    let device = device_of(&place.state);
    // An error of the disk is none of these: the journal's writer sees it too.
    let is_gone = || matches!(place.journal().try_exists(), Ok(false));
    let gone = async {
        while !is_gone() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let ended = tokio::select! {
        ended = &mut work => Some(ended),
        () = gone => None,
    };
    let path = place.state.clone();
    let lost = || match device_of(&place.state) == device {
        true => RunProcessError::StateGone { path },
        false => RunProcessError::StateUnmounted { path },
    };
    match ended {
        // What git says is told as at a start.
        Some(Err(ShellError::NotChecked(error))) if !is_gone() => {
            Err(WorkspaceError::from(error).into())
        }
        Some(ended) if !is_gone() => Ok(ended?),
        Some(_) => Err(lost()),
        None => {
            // Running steps are stopped in good order, by the same flag a person would use.
            if Flag::Stop.raised(place).is_none() && Flag::Stop.raise(place, true).is_ok() {
                let _in_vain = tokio::time::timeout(ENDING_MAX, work).await;
                let _stays = Flag::Stop.lower(place);
            }
            Err(lost())
        }
    }
}

/// The file system of a directory, or of the one above it that exists.
fn device_of(dir: &Utf8Path) -> Option<u64> {
    dir.ancestors().find_map(|dir| dir.metadata().ok()).map(|meta| meta.dev())
}

/// Records the costs that were reported to the process before this one.
pub(crate) fn collect_arrears(
    journal: &mut SqliteJournal,
    epoch: u64,
    state: &mut State,
    place: &StatePaths,
    config: &Config,
) -> Result<(), RunProcessError> {
    commit(journal, epoch, &state.run.id.clone(), arrears::collect(state, place, config))
}

/// Settles what is reserved for turns beside the run whose process died.
pub(crate) fn settle_ended(
    journal: &mut SqliteJournal,
    epoch: u64,
    state: &mut State,
) -> Result<(), RunProcessError> {
    let record = autopilot_core::decide::settle_ended(state, clock::now());
    commit(journal, epoch, &state.run.id, record.into_iter().collect())
}

fn commit(
    journal: &mut SqliteJournal,
    epoch: u64,
    run: &str,
    records: Vec<Record>,
) -> Result<(), RunProcessError> {
    let failed = |error| RunProcessError::Workspace(WorkspaceError::Store(error));
    for record in records {
        let entry = store::encode(run, epoch, &record).map_err(failed)?;
        journal.commit(&[entry]).map_err(|error| failed(error.into()))?;
    }
    Ok(())
}
