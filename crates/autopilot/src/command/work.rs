//! The shared parts of all commands that work on a run: opening it, watching it, and its result.

use super::init;
use super::live;
use super::past;
use super::summary;
use crate::cli::{Global, LimitArgs};
use crate::exit::{CommandFailure, ExitKind, OrFailed};
use crate::terminal::{self, lines};
use autopilot_core::config::{Config, duration as parse_duration};
use autopilot_core::state::State;
use autopilot_core::step::Step;
use autopilot_engine::cause::chain;
use autopilot_engine::flag::Flag;
use autopilot_engine::host::EngineHost;
use autopilot_engine::inbox::LimitChange;
use autopilot_engine::lost_state::LostState;
use autopilot_engine::place::StatePaths;
use autopilot_engine::query::RunArchive;
use autopilot_engine::query::failure::FailureReport;
use autopilot_engine::query::status::RunStatus;
use autopilot_engine::run_process::{self, Intent, Machine, OpenedRepository};
use autopilot_engine::shell::WaitPolicy;
use autopilot_engine::store;
use autopilot_engine::workspace::{self, WorkspaceError};
use autopilot_host::git::{RepoRefusal, StateEnv, UserRepo};
use autopilot_tui::tty;
use autopilot_view::ExitWord;
use camino::Utf8PathBuf;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use tempfile::TempDir;

/// Opens the repository to resume a run with the configuration it started with, because the file
/// may have changed or gone. `any` accepts a run that has ended.
pub fn reopen(
    global: &Global,
    place: &StatePaths,
    any: bool,
) -> Result<OpenedRepository, CommandFailure> {
    workspace::refuse_linked_views(place)?;
    let (config, options) = run_process::pinned_config(place, any)?;
    let as_asked = |now: Config| now.with_options(&options).unwrap_or(now);
    match workspace::read_config(place).map(|(now, warnings)| (as_asked(now), warnings)) {
        // Changed models are adopted, with a message of their own.
        Ok((now, _)) if now.digest() == config.with_models_of(&now).0.digest() => {}
        Ok(_) => keeps_its_own(place, "has changed since the run started"),
        Err(WorkspaceError::NoConfig { .. }) => keeps_its_own(place, "does not exist"),
        Err(error) => keeps_its_own(place, &format!("can't be used ({})", chain(&error))),
    }
    let repo = workspace::examine(&global.repo, &config).map_err(|error| {
        if let WorkspaceError::Repository(RepoRefusal::NoBaseBranch { wanted, .. }) = &error {
            return without_base(place, wanted, any);
        }
        error.into()
    })?;
    adopt(repo, config)
}

/// The failure to resume a run whose base branch was deleted or renamed. The run keeps the branch that
/// it started from, so another one in the configuration would not help.
fn without_base(place: &StatePaths, branch: &str, any: bool) -> CommandFailure {
    let known = workspace::reader(place).and_then(|reader| match any {
        true => workspace::unfinished_or_newest(&reader),
        false => workspace::unfinished(&reader),
    });
    let base = known.ok().flatten().map(|(_, state)| state.run.base).unwrap_or_default();
    CommandFailure::usage(format!("there is no branch `{branch}` any more, from which the run started"))
        .hint(format!(
            "bring it back with `git branch {branch} {base}`, then try again; or set repo.base_branch to \
             another one and start anew with `autopilot run --fresh`"
        ))
}

fn keeps_its_own(place: &StatePaths, why: &str) {
    terminal::note(&format!("{} {why}; the run keeps its own configuration", place.config()));
}

/// Reads the configuration of the repository. Work that `may_lack` one gets what `init` would write.
pub fn configured(global: &Global, may_lack: bool) -> Result<(StatePaths, Config), CommandFailure> {
    let env = StateEnv::from_process();
    let (place, known) = workspace::find(&global.repo, &env)?;
    let (config, warnings) = match workspace::read_config(&place) {
        Err(WorkspaceError::NoConfig { .. }) if may_lack => {
            let (config, told) = init::unwritten(&global.repo)?;
            terminal::note(&format!("no .autopilot/config.yml: {told}"));
            (config, Vec::new())
        }
        read => read?,
    };
    if let Some(lost) = (!known).then(|| LostState::of(&place, &env)).flatten() {
        terminal::note(&format!("warning: {lost}; {}", lost.remedy()));
    }
    for warning in warnings {
        terminal::note(&format!("warning: {}: {warning}", place.config()));
    }
    Ok((place, config))
}

/// The configuration of a repository that has none.
pub fn usual_config() -> Result<Config, CommandFailure> {
    let usual = Config::parse("commands: { tests: \"true\" }");
    usual.map(|(config, _)| config).map_err(CommandFailure::config)
}

/// Creates the state directory of the repository.
pub fn adopt(repo: UserRepo, config: Config) -> Result<OpenedRepository, CommandFailure> {
    let place = workspace::adopt(&repo, &StateEnv::from_process())?;
    Ok(OpenedRepository { place, repo, config })
}

/// Refuses to start while a stop file exists, and names the file.
pub fn refuse_stop_file(place: &StatePaths) -> Result<(), CommandFailure> {
    match Flag::Stop.raised(place) {
        None => Ok(()),
        Some(path) => {
            let message = format!("`{path}` exists, so no run was started");
            let unfinished = workspace::reader(place).and_then(|r| workspace::unfinished(&r));
            let or = match unfinished {
                Ok(Some(_)) => ", or use `autopilot resume`",
                Ok(None) | Err(_) => "",
            };
            Err(CommandFailure::new(ExitKind::Paused, message)
                .hint(format!("remove it with `rm {path}`{or}")))
        }
    }
}

/// The limits given on the command line.
pub fn limits(args: &LimitArgs) -> Result<LimitChange, CommandFailure> {
    let money = |name: &str, usd: Option<f64>| match usd {
        Some(usd) if !usd.is_finite() || usd <= 0.0 => {
            Err(CommandFailure::usage(format!("--{name} {usd} is not an amount above 0")))
        }
        other => Ok(other),
    };
    let max_wall_ms = match &args.max_wall {
        None => None,
        Some(text) => {
            let time = parse_duration(text)
                .map_err(|why| CommandFailure::usage(why).context(format!("--max-wall {text}")))?;
            Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
        }
    };
    Ok(LimitChange {
        max_iterations: args.max_iterations,
        max_usd: money("max-usd", args.max_usd)?,
        max_usd_per_task: money("max-usd-per-task", args.max_usd_per_task)?,
        max_wall_ms,
        max_workers: args.max_workers,
    })
}

/// Facts about this machine for the engine.
pub fn machine() -> Result<Machine, CommandFailure> {
    let variables = variables();
    let own = own()?;
    let salt = uuid::Uuid::now_v7().simple().to_string();
    let holder = format!("pid {}", std::process::id());
    Ok(Machine { variables, own, salt: salt[salt.len() - 4..].to_owned(), holder })
}

/// Our own executable.
pub fn own() -> Result<Utf8PathBuf, CommandFailure> {
    utf8(std::env::current_exe().or_failed("cannot find our own executable")?)
}

fn utf8(path: PathBuf) -> Result<Utf8PathBuf, CommandFailure> {
    Utf8PathBuf::from_path_buf(path)
        .map_err(|path| CommandFailure::failed(format!("{} is not UTF-8", path.display())))
}

/// A temporary folder, removed when the guard is dropped, and its path.
pub fn temporary_folder(prefix: &str) -> Result<(TempDir, Utf8PathBuf), CommandFailure> {
    let made = tempfile::Builder::new().prefix(prefix).tempdir();
    let temp = made.map_err(|error| {
        let place = std::env::temp_dir();
        CommandFailure::config(io::Error::from(error.kind()))
            .context(format!("cannot make a temporary folder in `{}`", place.display()))
            .hint("set TMPDIR to a directory that exists and that you may write")
    })?;
    let path = utf8(temp.path().to_owned())?;
    Ok((temp, path))
}

/// The environment variables that are valid UTF-8.
pub fn variables() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The person's editor, if one is set.
pub fn editor() -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    set("VISUAL").or_else(|| set("EDITOR"))
}

/// The name of the user who starts the run.
pub fn started_by(repo: &UserRepo) -> String {
    user().unwrap_or_else(|| repo.identity.name.clone())
}

/// The login name of the user, if the environment has it.
pub fn user() -> Option<String> {
    std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok()
}

/// Works until the run ends or pauses, and prints the summary.
pub fn work(global: &Global, opened: OpenedRepository, intent: Intent, wait: bool) -> super::Done {
    until_rest(global, opened, intent, wait)?.tell()
}

/// Works until the run ends or pauses.
pub fn until_rest<'a>(
    global: &'a Global,
    opened: OpenedRepository,
    intent: Intent,
    wait: bool,
) -> Result<WorkedRun<'a>, CommandFailure> {
    let (place, repo, config) = (opened.place.clone(), opened.repo.clone(), opened.config.clone());
    // With the dashboard a pause keeps the process, because a key of the dashboard ends it.
    let is_live = live::is_wanted(global);
    let wait = WaitPolicy { paused: wait || is_live, asked: wait };
    let run = run_process::open(opened, intent, machine()?, None, &mut terminal::note)?;
    tty::obey_signals(false);
    let watching =
        if is_live { live::watch(global, &place, &run) } else { lines::watch(global, &run) };
    let host = EngineHost::new()?;
    let ended = host.start(run, wait).join();
    watching.drain();
    tty::obey_signals(true);
    Ok(WorkedRun { global, place, repo, config, state: ended? })
}

/// A run after this process has worked on it.
pub struct WorkedRun<'a> {
    global: &'a Global,
    pub place: StatePaths,
    pub repo: UserRepo,
    pub config: Config,
    pub state: State,
}

impl WorkedRun<'_> {
    /// Whether the run waits for a person at this gate.
    pub fn waits_at(&self, step: Step) -> bool {
        self.state.run.halt.is_none()
            && self.state.gate().is_some_and(|(_, live)| live.step == step)
    }

    /// Prints the summary, sends the notifications and returns the exit code.
    pub fn tell(&self) -> super::Done {
        let word = ExitWord::of(&self.state);
        let archive = past::at(&self.place)?;
        let report = super::report::at_end(&self.place, &self.state);
        let redactor = archive.redactor(&self.state);
        let told = RunStatus {
            completion: self.completion(&archive),
            report_path: report.map(Utf8PathBuf::into_string),
            last_failure: FailureReport::of(&self.place, &self.state, &redactor),
            ..RunStatus::of(&self.state, &redactor)
        };
        if self.global.json {
            terminal::json(&told);
        } else {
            summary::print(self, &told);
        }
        super::notify::tell(&self.config.notify, &self.place, &self.state, word, &told);
        Ok(ExitCode::from(word.code()))
    }

    /// The last answer to whether the goal is met.
    fn completion(&self, archive: &RunArchive) -> Option<Value> {
        let shown = self.state.root()?.last(Step::Completion)?;
        let text = store::text(&archive.history, shown.facts.answer.as_deref()?).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Prints where the plan is, for a run that was to stop after it.
    pub fn planned(&self) -> super::Done {
        if self.global.json {
            let redactor = past::at(&self.place)?.redactor(&self.state);
            terminal::json(&RunStatus::of(&self.state, &redactor));
        } else {
            let plan = self.place.views().join("plan/plan.json");
            terminal::say(&format!(
                "the plan is ready: {plan}\nlook:  autopilot graph --plan {plan}\n\
                 then:  autopilot approve, autopilot approve --edit, or autopilot reject \"why\""
            ));
        }
        super::done()
    }
}
