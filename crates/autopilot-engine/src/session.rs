//! One process working on one run: lock, sweep, open, work, say how it ended.

use crate::arrears;
use crate::begin::{self, Prepared, Request, Tasks};
use crate::clock;
use crate::environment::{self, Variables};
use crate::flag::Flag;
use crate::inbox::LimitChange;
use crate::job::{Context, Workshop};
use crate::place::Place;
use crate::purse::Purse;
use crate::replay::Player;
use crate::shell::{Parts, Patience, Shell, ShellError, Teller, Watcher};
use crate::store::{self, StoreError, Texts};
use crate::workspace::{self, WorkspaceError};
use autopilot_core::config::{By, Config, Options};
use autopilot_core::event::{End, HaltWhy, RunSpec, Skip};
use autopilot_core::fingerprint::sha256_hex;
use autopilot_core::flow::Flow;
use autopilot_core::id::TaskId;
use autopilot_core::input::{Ask, Input};
use autopilot_core::limit::Limits;
use autopilot_core::pipeline::Switch;
use autopilot_core::state::{State, Status, Task};
use autopilot_core::step::Step;
use autopilot_host::git::{Hub, UserRepo, run_branch};
use autopilot_host::lock::{Holder, Lock};
use autopilot_host::redact::Redactor;
use autopilot_host::{dir, file, redact, room, sandbox, sweep};
use autopilot_journal::{Entry, History, Journal, NewRun, SqliteJournal, SqliteReader};
use autopilot_view as view;
use camino::Utf8PathBuf;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Below this not even the journal and a small worktree are safe.
const DISK_BYTES_MIN: u64 = 32 << 20;
const INODES_MIN: u64 = 5_000;
const COPIED_BYTES_MAX: u64 = 1 << 20;
/// How often it is made sure that the state directory is still there.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Given to what runs to end when the state directory has gone.
const ENDING_MAX: Duration = Duration::from_secs(15);

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Shell(#[from] ShellError),
    #[error(transparent)]
    Begin(#[from] begin::BeginError),
    #[error("run {run} ({title}) is not finished")]
    Unfinished { run: String, title: String },
    #[error("run {run} ({title}) is already under way without {flag}")]
    UnderWay { run: String, title: String, flag: &'static str },
    #[error("cannot remove {name}: {source}")]
    Flag { name: &'static str, source: std::io::Error },
    #[error(
        "the state directory `{path}` was removed while the run was under way, and its journal \
         and unmerged work with it"
    )]
    StateGone { path: Utf8PathBuf },
    #[error("there is nothing to resume in this repository")]
    NothingToResume,
    #[error("the configuration the run began with can't be read: {0}")]
    PinnedConfig(String),
    #[error("cannot start the runtime: {0}")]
    Runtime(std::io::Error),
    #[error("{0}")]
    Redaction(String),
}

/// What the caller knows of the machine and gives to every job.
pub struct Machine {
    pub variables: Variables,
    /// Our own executable.
    pub own: Utf8PathBuf,
    /// A few characters that make a run's id unique.
    pub salt: String,
    pub holder: String,
}

/// What to do with the repository that was opened.
pub enum Intent {
    Begin {
        tasks: Box<Tasks>,
        request: Box<Request>,
        fresh: bool,
    },
    /// A run that is played again as it was begun.
    Again {
        spec: Box<RunSpec>,
        texts: Vec<String>,
    },
    /// `texts` are what the asks name by their hash.
    Resume {
        asks: Vec<Ask>,
        limits: LimitChange,
        /// The model everybody uses from here on.
        model: Option<String>,
        texts: Vec<String>,
    },
    /// Nothing of the run but what is asked for is done. It may have ended.
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

    fn model(&self) -> Option<String> {
        match self {
            Intent::Resume { model, .. } => model.clone(),
            Intent::Begin { .. } | Intent::Again { .. } | Intent::Only { .. } => None,
        }
    }
}

pub struct Opened {
    pub place: Place,
    pub repo: UserRepo,
    pub config: Config,
}

/// Works on a run until it is over or rests, and returns what it came to.
pub fn work(
    opened: Opened,
    intent: Intent,
    machine: Machine,
    watcher: Box<dyn Watcher>,
    wait: Patience,
) -> Result<State, SessionError> {
    play(opened, intent, machine, watcher, wait, None)
}

/// The same with agents that say again what they said in a recording.
pub fn play(
    opened: Opened,
    intent: Intent,
    machine: Machine,
    mut watcher: Box<dyn Watcher>,
    wait: Patience,
    player: Option<Arc<Player>>,
) -> Result<State, SessionError> {
    let Opened { place, repo, config } = opened;
    make_room(&place, &mut |text: &str| watcher.notice(text))?;
    let mut lock = workspace::lock(&place, "")?;
    let mut journal = workspace::journal(&place)?;
    let found = take_up(&intent, &mut journal, &machine)?;
    let chosen = match found {
        Some((run, state)) => {
            let pinned = pinned(&journal, &state)?;
            check_prices(&intent, &state, &pinned, &pinned)?;
            if state.run.flow == Flow::Goal {
                begin::prove_out_of(&state.run, &place)?;
            }
            lower_flags(&intent, &place, watcher.as_mut())?;
            let models = match player {
                None => Models::now(&pinned, &place, &state.run.options, intent.model()),
                Some(_) => None,
            };
            if let Some(models) = &models {
                check_prices(&intent, &state, &pinned, &models.config)?;
                for change in &models.changes {
                    let whose =
                        if models.model.is_some() { "as asked for" } else { "as config.yml says" };
                    watcher.notice(&format!("{change} from here on, {whose}"));
                }
            }
            let kept = models.as_ref().map_or(&pinned, |models| &models.config);
            let config = config.with_options(&state.run.options).unwrap_or(config);
            if kept.digest() != config.digest() && pinned.digest() != config.digest() {
                watcher.notice("config.yml has changed since the run began; the run keeps its own");
            }
            tell_changes(&intent, &state, &place, watcher.as_mut());
            Chosen { run: run.id, state, config: pinned, models, prepared: None }
        }
        None => new_run(&intent, &mut journal, &repo, config, &machine)?,
    };
    lock.refresh(&Holder::us(&chosen.run)).map_err(WorkspaceError::from)?;
    sweep_leftovers(&place, &chosen.run, &mut |text: &str| watcher.notice(text));
    crate::inbox::clear_answers(&place);
    let epoch = workspace::take_lease(&mut journal, &chosen.run, &machine.holder)?;
    reopen(&mut journal, &chosen.run, epoch)?;
    let hub = Hub::open(place.state.as_std_path(), &repo).map_err(WorkspaceError::from)?;
    let workshop = Workshop::new(repo, hub);
    for saved in workshop.rescue_all().map_err(WorkspaceError::from)? {
        watcher.notice(&format!("unfinished work of an earlier process is kept at {saved}"));
    }
    let first = first_inputs(&intent, &chosen);
    let Chosen { run, mut state, config, models, prepared } = chosen;
    collect_arrears(&mut journal, epoch, &mut state, &place, &config)?;
    let texts = match (prepared, &intent) {
        (Some(prepared), _) => prepared.texts,
        (None, Intent::Resume { texts, .. } | Intent::Only { texts, .. }) => texts.clone(),
        (None, Intent::Begin { .. } | Intent::Again { .. }) => Vec::new(),
    };
    let (config, texts) = match models {
        Some(models) => (models.config, [texts, vec![models.text]].concat()),
        None => (config, texts),
    };
    let known = store::records(&journal, &run).map_err(WorkspaceError::from)?;
    let journal = Box::new(journal);
    let here = place.clone();
    let parts = Parts { place: place.clone(), run, epoch, state, journal, watcher, wait };
    let grounds = Grounds { place, config, workshop, machine, player };
    let given = grounds.given()?;
    let context = |texts, signals| grounds.with(given, texts, signals);
    let state = runtime()?.block_on(async {
        let mut shell = Shell::new(parts, context)?;
        shell.catch_up(&known);
        for text in &texts {
            shell.texts().put(text)?;
        }
        Ok::<_, ShellError>(watched(shell.work(first), &here).await)
    })?;
    drop(lock);
    state
}

/// Where jobs work and with what.
pub(crate) struct Grounds {
    pub place: Place,
    pub config: Config,
    pub workshop: Workshop,
    pub machine: Machine,
    pub player: Option<Arc<Player>>,
}

/// What has to be looked up for it, which may fail.
pub(crate) struct Given {
    redactor: Arc<Redactor>,
    history: Mutex<SqliteReader>,
    sandbox: sandbox::Probe,
}

impl Grounds {
    fn given(&self) -> Result<Given, SessionError> {
        let variables = &self.machine.variables;
        let urls = &self.workshop.repo.remote_secrets;
        let path = variables.get("PATH").map(String::as_str).unwrap_or_default();
        Ok(Given {
            redactor: Arc::new(redactor(&self.place, &self.config, variables, urls)?),
            history: Mutex::new(workspace::reader(&self.place)?),
            sandbox: sandbox::probe(path.as_ref()),
        })
    }

    fn with(self, given: Given, texts: Texts, signals: Teller) -> Context {
        Context {
            place: self.place,
            config: self.config,
            workshop: self.workshop,
            redactor: given.redactor,
            variables: self.machine.variables,
            own: self.machine.own,
            sandbox: given.sandbox,
            texts,
            history: given.history,
            signals,
            player: self.player,
            numbering: Mutex::default(),
            purse: Purse::default(),
        }
    }

    pub fn context(self, texts: Texts, signals: Teller) -> Result<Context, SessionError> {
        let given = self.given()?;
        Ok(self.with(given, texts, signals))
    }
}

/// Ends the work when the ground is taken from under it: whatever would be done from then on could
/// be neither kept nor merged.
async fn watched(
    work: impl Future<Output = Result<State, ShellError>>,
    place: &Place,
) -> Result<State, SessionError> {
    let mut work = std::pin::pin!(work);
    let gone = async {
        while place.journal().exists() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let ended = tokio::select! {
        ended = &mut work => Some(ended),
        () = gone => None,
    };
    match ended {
        Some(ended) if place.journal().exists() => Ok(ended?),
        Some(_) => Err(SessionError::StateGone { path: place.state.clone() }),
        None => {
            // What runs is ended in good order, by the same word a person has for it.
            if Flag::Stop.raised(place).is_none() && Flag::Stop.raise(place, true).is_ok() {
                let _in_vain = tokio::time::timeout(ENDING_MAX, work).await;
                let _stays = Flag::Stop.lower(place);
            }
            Err(SessionError::StateGone { path: place.state.clone() })
        }
    }
}

/// The run this process works on.
struct Chosen {
    run: String,
    state: State,
    config: Config,
    /// What its agents are asked from here on, where that was changed.
    models: Option<Models>,
    /// Of a run that only begins.
    prepared: Option<Prepared>,
}

impl Chosen {
    fn new(run: String, config: Config, prepared: Prepared) -> Chosen {
        let state = State::default();
        Chosen { run, state, config, models: None, prepared: Some(prepared) }
    }
}

/// The configuration of a run with the models that the file names now.
struct Models {
    config: Config,
    text: String,
    changes: Vec<String>,
    /// Where a person named it.
    model: Option<String>,
}

impl Models {
    /// None where nothing of it has changed, or the file can't be read: it is not needed.
    fn now(
        pinned: &Config,
        place: &Place,
        options: &Options,
        model: Option<String>,
    ) -> Option<Models> {
        let mut options = options.clone();
        options.model = model.clone().or(options.model);
        let now = match workspace::read_config(place) {
            Ok((now, _)) => now.with_options(&options).ok()?,
            // What was asked for is known without the file.
            Err(_) if model.is_some() => pinned.with_options(&options).ok()?,
            Err(_) => return None,
        };
        let (config, changes) = pinned.with_models_of(&now);
        let text = serde_json::to_string(&config).ok()?;
        (!changes.is_empty()).then_some(Models { config, text, changes, model })
    }

    fn ask(&self, limits: Limits) -> Ask {
        let Limits { lanes, agents, .. } = begin::limits(&self.config);
        let limits = Box::new(Limits { lanes, agents, ..limits });
        let config = sha256_hex(self.text.as_bytes());
        Ask::Models { limits, config, model: self.model.clone() }
    }
}

type Found = Option<(autopilot_journal::Run, State)>;

/// The run to go on with, if that is what was asked or what follows from it.
fn take_up(
    intent: &Intent,
    journal: &mut SqliteJournal,
    machine: &Machine,
) -> Result<Found, SessionError> {
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
                Err(SessionError::Unfinished { run: run.id, title: run.title })
            }
            Some((run, state)) => match not_kept(request, &state) {
                Some(flag) => Err(SessionError::UnderWay { run: run.id, title: run.title, flag }),
                None => Ok(Some((run, state))),
            },
            None => Ok(None),
        },
        Intent::Again { .. } => Ok(None),
        Intent::Resume { asks, .. } => {
            // A task that failed is re-opened in the newest run even though that run is over.
            let found = if known.is_none() && !asks.is_empty() { newest(journal)? } else { known };
            found.map(Some).ok_or(SessionError::NothingToResume)
        }
        Intent::Only { run, .. } => match known {
            Some((other, _)) if other.id != *run => {
                Err(SessionError::Unfinished { run: other.id, title: other.title })
            }
            Some(found) => Ok(Some(found)),
            None => Ok(Some(named(journal, run)?)),
        },
    }
}

fn named(
    journal: &dyn History,
    run: &str,
) -> Result<(autopilot_journal::Run, State), SessionError> {
    let none = || WorkspaceError::NoRun(run.to_owned());
    let known = workspace::pick(journal, Some(run))?.filter(|known| known.id == run);
    let known = known.ok_or_else(none)?;
    let state = store::load(journal, run).map_err(WorkspaceError::from)?;
    if state.has_begun() { Ok((known, state)) } else { Err(none().into()) }
}

/// What was asked for and can't be had any more once the run is under way.
fn not_kept(request: &Request, state: &State) -> Option<&'static str> {
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

/// The limits and the models a run goes on with must be such as its agents can keep.
fn check_prices(
    intent: &Intent,
    state: &State,
    was: &Config,
    now: &Config,
) -> Result<(), SessionError> {
    let Some(change) = intent.limits() else { return Ok(()) };
    let limits = change.applied_to(&state.run.limits);
    let (was, now) = ((was, &state.run.limits), (now, &limits));
    Ok(begin::check_prices(was, now, state.run.flow, &open(intent, state))?)
}

/// Who does what is still to be done, where it is not whoever does it as a rule.
fn open(intent: &Intent, state: &State) -> Vec<By> {
    let asked = asked_for(intent, state);
    let is_open = |task: &&Task| !task.is_settled() || asked.contains(&task.id);
    let tasks = state.tasks.iter().filter(is_open);
    tasks.map(|task| task.spec.by.clone()).filter(|by| !by.is_anybody()).collect()
}

/// What is over and is opened again by what is asked, with what it stands in the way of.
fn asked_for(intent: &Intent, state: &State) -> BTreeSet<TaskId> {
    let asks = match intent {
        Intent::Begin { .. } | Intent::Again { .. } => &[],
        Intent::Resume { asks, .. } => asks.as_slice(),
        Intent::Only { ask, .. } => std::slice::from_ref(ask),
    };
    let named = |ask: &Ask| match ask {
        Ask::Retry { task } | Ask::Continue { task, .. } => state.named(task).map(|task| task.id),
        Ask::Halt { .. }
        | Ask::Resume
        | Ask::Skip { .. }
        | Ask::Approve { .. }
        | Ask::Reject { .. }
        | Ask::Limit(_)
        | Ask::Models { .. }
        | Ask::Switch { .. } => None,
    };
    let mut found: BTreeSet<TaskId> = asks.iter().filter_map(named).collect();
    for task in &state.tasks {
        if let Status::Settled(End::Skipped { why: Skip::Blocked { by } | Skip::Stopped { by } }) =
            &task.status
            && found.contains(by)
        {
            found.insert(task.id);
        }
    }
    found
}

/// Whoever resumes takes a stop and a pause back; not before nobody else works on the run.
fn lower_flags(
    intent: &Intent,
    place: &Place,
    watcher: &mut dyn Watcher,
) -> Result<(), SessionError> {
    let is_taken_back = match intent {
        Intent::Resume { asks, .. } => asks.is_empty(),
        Intent::Only { .. } => true,
        Intent::Begin { .. } | Intent::Again { .. } => false,
    };
    if !is_taken_back {
        return Ok(());
    }
    for flag in [Flag::Stop, Flag::Pause] {
        let name = flag.file_name();
        let lowered = flag.lower(place).map_err(|source| SessionError::Flag { name, source })?;
        for path in lowered {
            watcher.notice(&format!("removed {path}"));
        }
    }
    Ok(())
}

fn tell_changes(intent: &Intent, state: &State, place: &Place, watcher: &mut dyn Watcher) {
    for path in begin::changed_since(state, &place.root) {
        watcher.notice(&format!(
            "`{path}` has changed since the run began; the run keeps what it began with"
        ));
    }
    let Intent::Begin { tasks, .. } = intent else { return };
    let known: BTreeSet<&str> = view::leaves(state).map(|t| t.spec.source.as_str()).collect();
    for spec in tasks.specs.iter().filter(|spec| !known.contains(spec.path.as_str())) {
        watcher.notice(&format!(
            "`{}` came after the run began; the run keeps what it began with",
            spec.path
        ));
    }
}

/// The configuration of the run that would be taken up, before anything is locked, and what it was
/// made with beside the file.
pub fn pinned_config(place: &Place, any: bool) -> Result<(Config, Options), SessionError> {
    let reader = workspace::reader(place)?;
    let found = match workspace::unfinished(&reader)? {
        None if any => newest(&reader)?,
        found => found,
    };
    let (_, state) = found.ok_or(SessionError::NothingToResume)?;
    Ok((pinned(&reader, &state)?, state.run.options))
}

fn new_run(
    intent: &Intent,
    journal: &mut SqliteJournal,
    repo: &UserRepo,
    config: Config,
    machine: &Machine,
) -> Result<Chosen, SessionError> {
    let (tasks, request) = match intent {
        Intent::Begin { tasks, request, .. } => (tasks, request),
        Intent::Again { spec, texts } => {
            let prepared = Prepared { spec: (**spec).clone(), texts: texts.clone() };
            create(journal, &prepared)?;
            let run = prepared.spec.id.clone();
            return Ok(Chosen::new(run, config, prepared));
        }
        Intent::Resume { .. } | Intent::Only { .. } => return Err(SessionError::NothingToResume),
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
    Ok(Chosen::new(run, config, prepared))
}

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, SessionError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(SessionError::Runtime)
}

fn first_inputs(intent: &Intent, chosen: &Chosen) -> Vec<Input> {
    match (intent, &chosen.prepared) {
        (_, Some(prepared)) => vec![Input::Start(Box::new(prepared.spec.clone()))],
        (Intent::Begin { request, .. }, None) => {
            let mut asks = approval(request, &chosen.state);
            asks.push(Ask::Resume);
            taking_up(chosen, &request.limits, asks)
        }
        (Intent::Again { .. }, None) => vec![Input::Boot],
        (Intent::Resume { asks, limits, .. }, None) => {
            taking_up(chosen, limits, [&asks[..], &[Ask::Resume]].concat())
        }
        (Intent::Only { ask, limits, .. }, None) => {
            // What an interrupted process left under way is not begun again by taking it up.
            let rests = Ask::Halt { why: HaltWhy::Stop, now: false };
            let mut inputs = vec![Input::Asked(rests)];
            inputs.extend(taking_up(chosen, limits, vec![ask.clone()]));
            inputs
        }
    }
}

/// A plan that was held only because of `--plan-only` is approved by running it without.
fn approval(request: &Request, state: &State) -> Vec<Ask> {
    let at_plan = state.gate().is_some_and(|(_, live)| live.step == Step::ApprovePlan);
    let approves = at_plan && !request.hold_plan && !request.gates_plan;
    let by = request.started_by.clone();
    if approves { vec![Ask::Approve { by, answer: None }] } else { Vec::new() }
}

fn taking_up(chosen: &Chosen, limits: &LimitChange, asks: Vec<Ask>) -> Vec<Input> {
    let mut inputs = vec![Input::Boot];
    let wanted = limits.applied_to(&chosen.state.run.limits);
    match &chosen.models {
        Some(models) => inputs.push(Input::Asked(models.ask(wanted))),
        None if limits.is_empty() => {}
        None => inputs.push(Input::Asked(Ask::Limit(Box::new(wanted)))),
    }
    inputs.extend(asks.into_iter().map(Input::Asked));
    inputs
}

fn newest(journal: &dyn History) -> Result<Found, SessionError> {
    let Some(run) = workspace::pick(journal, None)? else { return Ok(None) };
    let state = store::load(journal, &run.id).map_err(WorkspaceError::from)?;
    Ok(Some((run, state)))
}

fn create(journal: &mut SqliteJournal, prepared: &Prepared) -> Result<(), SessionError> {
    let new = NewRun {
        id: prepared.spec.id.clone(),
        mode: prepared.spec.flow.word().to_owned(),
        title: prepared.spec.title.clone(),
        created_at_ms: clock::now().0,
    };
    journal.create_run(&new).map_err(|error| WorkspaceError::from(StoreError::from(error)))?;
    Ok(())
}

/// What the process before was told and did not come to record.
fn collect_arrears(
    journal: &mut SqliteJournal,
    epoch: u64,
    state: &mut State,
    place: &Place,
    config: &Config,
) -> Result<(), SessionError> {
    let failed = |error| SessionError::Workspace(WorkspaceError::Store(error));
    for record in arrears::collect(state, place, config) {
        let entry = store::encode(&state.run.id, epoch, &record).map_err(failed)?;
        journal.commit(&[entry]).map_err(|error| failed(error.into()))?;
    }
    Ok(())
}

/// A run that had ended and is retried must be found again if this process dies.
fn reopen(journal: &mut SqliteJournal, run: &str, epoch: u64) -> Result<(), SessionError> {
    let open = Entry::End { run: run.to_owned(), epoch, outcome: None };
    journal.commit(&[open]).map_err(|error| WorkspaceError::from(StoreError::from(error)))?;
    Ok(())
}

/// The old run is over by a person's word; what it left in slots is rescued like after a crash.
fn abandon(
    journal: &mut SqliteJournal,
    run: Option<String>,
    holder: &str,
) -> Result<(), SessionError> {
    let Some(run) = run else { return Ok(()) };
    let epoch = workspace::take_lease(journal, &run, holder)?;
    let end = Entry::End { run, epoch, outcome: Some("ABANDONED".to_owned()) };
    journal.commit(&[end]).map_err(|error| WorkspaceError::from(StoreError::from(error)))?;
    Ok(())
}

/// A run keeps the configuration it began with.
fn pinned(history: &dyn History, state: &State) -> Result<Config, SessionError> {
    let text = store::text(history, &state.run.config).map_err(WorkspaceError::from)?;
    serde_json::from_str(&text).map_err(|error| SessionError::PinnedConfig(error.to_string()))
}

/// Refuses to begin what the machine can't carry, and takes what it gives.
pub(crate) fn make_room(place: &Place, notice: &mut dyn FnMut(&str)) -> Result<(), SessionError> {
    // Both are kindnesses of the system; without them the run still works.
    let _as_it_is = room::raise_descriptors();
    let _as_it_is = room::protect_from_oom();
    workspace::refuse_linked_views(place)?;
    let views = place.views();
    if let Err(error) = crate::views::prove_writable(&views) {
        let reason = error.to_string();
        return Err(WorkspaceError::NotWritable { path: views, reason }.into());
    }
    let Ok(disk) = room::disk(place.state.as_std_path()) else { return Ok(()) };
    if disk.bytes_free < DISK_BYTES_MIN {
        let reason = format!("only {} MB are free", disk.bytes_free >> 20);
        return Err(WorkspaceError::NotWritable { path: place.state.clone(), reason }.into());
    }
    if disk.inodes_free.is_some_and(|inodes| inodes < INODES_MIN) {
        notice("few inodes are left where the state is kept; worktrees may not fit");
    }
    Ok(())
}

pub(crate) fn sweep_leftovers(place: &Place, run: &str, notice: &mut dyn FnMut(&str)) {
    // A git that outlived its controller would write beside ours; nobody else works in the hub.
    let hub = format!("GIT_DIR={}", place.state.join("hub.git"));
    let markers = vec![format!("AUTOPILOT_RUN_ID={run}"), hub];
    let traces = sweep::Traces { markers, ..Default::default() };
    let swept = sweep::sweep(&traces);
    if !swept.killed.is_empty() {
        let count = swept.killed.len();
        notice(&format!("{count} processes of an interrupted attempt were ended"));
    }
    if !swept.left.is_empty() {
        notice(&format!("{} processes could not be ended", swept.left.len()));
    }
    crate::job::put_back_left(place, notice);
    // Scratch of attempts that no longer run.
    let _next_time = dir::remove(place.state.join("tmp").as_std_path());
    // Each run fills its own, from its own base.
    if let Ok(seeds) = place.caches().join("proof").read_dir_utf8() {
        for seed in seeds.flatten().filter(|seed| seed.file_name() != run) {
            let _next_time = dir::remove(seed.path().as_std_path());
        }
    }
}

/// Hides what the run's configuration asks for, and every secret that can be known: of the
/// environment, of files copied into worktrees, and `known`.
pub fn redactor(
    place: &Place,
    config: &Config,
    variables: &Variables,
    known: &[String],
) -> Result<Redactor, SessionError> {
    let mut secrets: Vec<String> =
        redact::secrets_of(variables.iter().map(|(name, value)| (name.as_str(), value.clone())));
    secrets.extend(variables.values().flat_map(|value| redact::secrets_of_url(value)));
    secrets.extend(known.iter().cloned());
    // A key is one whatever its variable is called.
    secrets
        .extend(environment::key_variables(config).filter_map(|key| variables.get(key).cloned()));
    for (name, value) in environment::given(config, variables) {
        secrets.extend(redact::secrets_of_url(&value));
        if redact::is_secret_value(&name, &value) {
            secrets.push(value);
        }
    }
    for path in &config.worktrees.copy {
        let bytes = file::read_capped(place.root.join(path).as_std_path(), COPIED_BYTES_MAX);
        let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        secrets.extend(text.as_deref().map(assigned_values).unwrap_or_default());
    }
    Redactor::new(&config.logging.redact_patterns, &secrets)
        .map_err(|error| SessionError::Redaction(error.to_string()))
}

/// The same for a run that was begun, with the configuration it began with.
pub fn redactor_of(
    place: &Place,
    history: &dyn History,
    state: &State,
    variables: &Variables,
) -> Result<Redactor, SessionError> {
    if !state.has_begun() {
        return Ok(Redactor::none());
    }
    redactor(place, &pinned(history, state)?, variables, &[])
}

/// The secrets among the values of `NAME=value` lines, as in `.env`: not every setting is one, and
/// a hidden word such as `production` hides what was said about it too.
fn assigned_values(text: &str) -> Vec<String> {
    let mut secrets = Vec::new();
    for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
        let name = name.trim().trim_start_matches("export ").trim();
        let value = value.trim();
        let is_quoted = value.starts_with(['"', '\'']);
        let value = if is_quoted { value } else { value.split(" #").next().unwrap_or(value) };
        let value = value.trim().trim_matches(['"', '\'']);
        secrets.extend(redact::secrets_of_url(value));
        if redact::is_secret_value(name, value) {
            secrets.push(value.to_owned());
        }
    }
    secrets
}

/// Held for the time of a command that changes the repository's state without working on a run.
pub fn exclusive(place: &Place) -> Result<Lock, WorkspaceError> {
    workspace::lock(place, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_an_env_file_are_told_from_settings() {
        let text = "# comment\nA=short\nTOKEN=\"abcdef123\"\nexport PASS='longer value'\nno\n\
            DB_PASSWORD=hunter22 # of the test\nX=k3yWithoutAName0815\n\
            DATABASE_URL=postgres://app:pg-secret@localhost:5432/app\n\
            OTHER_URL=postgres://postgres:postgres@localhost/app\n";
        let found = ["abcdef123", "longer value", "hunter22", "k3yWithoutAName0815", "pg-secret"];
        assert_eq!(assigned_values(text), found);
        let text = "APP_MODE=APPROVE\nNODE_ENV=production\nHOST=localhost\nA_TOKEN=short\n\
            LOG_FILE=/var/log/app/2026.log\nURL=http://localhost:8080/v1/users\n\
            NAME=a name of many words\n";
        assert_eq!(assigned_values(text), [""; 0]);
    }
}
