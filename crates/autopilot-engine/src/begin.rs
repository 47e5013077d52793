//! From what was asked on the command line to the first word of a run.

mod given;
mod lane;
mod out;
mod settings;
mod since;
mod skill;

pub use given::{check_plan, parse_plan};
pub use out::{out_dir, prove_out, prove_out_of};
pub use settings::{check_prices, check_settings, costs_unknown, step_rules};
pub use since::changed_since;
pub use skill::check_skills;

use crate::inbox::LimitChange;
use crate::job::{agent_of, find_program};
use crate::place::StatePaths;
use autopilot_agents::openai::{BASE_URL_VARIABLE, Model};
use autopilot_agents::{Agent, LaunchPlan, LaunchProgram};
use autopilot_core::config::{
    AgentConfig, Config, ConfigFaults, HumanGate, Mode, Options, ReviewGateConfig as ReviewConfig,
    Role, Warning,
};
use autopilot_core::event::{RunSpec, TaskEntry};
use autopilot_core::fingerprint::sha256_hex;
use autopilot_core::flow::Flow;
use autopilot_core::id::Micros;
use autopilot_core::limit::{Limits, ReviewGate};
use autopilot_core::pipeline::Switch;
use autopilot_core::step::Step;
use autopilot_core::task_file::{self, FileKind, Parsed, TaskSpec, unique_ids};
use autopilot_host::file::{self, FileError};
use autopilot_host::model_api::{ApiAddress, BASE_DEFAULT};
use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Files a queue may hold.
pub const QUEUE_MAX: usize = 10_000;
/// The longest title that a run takes from the first line of its text.
const TEXT_TITLE_CHARS_MAX: usize = 100;
/// Names in a tasks directory that are no tasks.
const NOT_TASKS: [&str; 2] = ["TEMPLATE.md", "README.md"];

/// What to work on, as given.
#[derive(Clone, Debug)]
pub enum WorkSource {
    File(Utf8PathBuf),
    Queue {
        dir: Utf8PathBuf,
        pattern: Option<String>,
    },
    /// What is to be reached, in a person's words, and the flow that works on it.
    Text {
        flow: Flow,
        text: String,
    },
    /// A plan somebody has made already, and the file it was made for.
    Plan {
        from: Utf8PathBuf,
        file: Option<Utf8PathBuf>,
    },
}

#[derive(Clone, Debug)]
pub struct RunRequest {
    pub source: WorkSource,
    pub push: bool,
    pub pr: bool,
    /// Work on a plan only when a person has approved it.
    pub hold_plan: bool,
    /// The configuration asks for it too.
    pub gates_plan: bool,
    /// What depends on something that failed is not begun.
    pub fail_fast: bool,
    pub allow_red_base: bool,
    /// What the configuration was changed by.
    pub options: Options,
    pub limits: LimitChange,
    pub started_by: String,
}

#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    #[error(transparent)]
    Unreadable(#[from] FileError),
    #[error("{}", faults.in_file(path.as_str()))]
    TaskFile { path: Utf8PathBuf, faults: ConfigFaults },
    #[error("`{path}` is a plan; a queue holds tasks: run it with `autopilot run {path}`")]
    PlanInQueue { path: Utf8PathBuf },
    #[error("`{path}` is a task; --from goes with the plan it was made for, or alone")]
    NotAPlan { path: Utf8PathBuf },
    #[error("the plan `{path}` can't be worked on:\n{}", faults.join("\n"))]
    Refused { path: Utf8PathBuf, faults: Vec<String> },
    #[error("`{path}` is a directory; use `autopilot run --queue {path}`")]
    IsDirectory { path: Utf8PathBuf },
    #[error(
        "there is no task file in `{dir}`{}; write one or check the pattern",
        pattern_words(pattern)
    )]
    EmptyQueue { dir: Utf8PathBuf, pattern: Option<String> },
    #[error("`{dir}` holds {found} task files, more than the {QUEUE_MAX} a queue may have")]
    QueueTooLong { dir: Utf8PathBuf, found: usize },
    #[error("`{pattern}` is not a file name pattern: {reason}")]
    Pattern { pattern: String, reason: String },
    #[error("{}", faults.join("\n"))]
    Settings { faults: Vec<String> },
    #[error("{}\nlooked in {}", faults.join("\n"), looked_in.join(", "))]
    Skill { faults: Vec<String>, looked_in: Vec<String> },
    #[error("--out `{path}` can't be used: {reason}")]
    Out { path: Utf8PathBuf, reason: String },
    #[error("{role}: {reason}")]
    Agent { role: &'static str, reason: String },
}

fn pattern_words(pattern: &Option<String>) -> String {
    pattern.as_ref().map(|pattern| format!(" that matches `{pattern}`")).unwrap_or_default()
}

/// A plan as it is kept with the run: what was understood of it, and its text for the planner.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PlanBody {
    #[serde(flatten)]
    pub spec: TaskSpec,
    pub text: String,
}

/// The tasks of a request, all of them readable and right.
pub struct Tasks {
    pub flow: Flow,
    pub title: String,
    pub source: String,
    pub specs: Vec<TaskSpec>,
    /// Of a plan: what it asks for as a whole.
    pub whole: Option<PlanBody>,
    /// A plan that is given instead of being made, as JSON.
    pub plan: Option<String>,
    pub warnings: Vec<(Utf8PathBuf, Warning)>,
}

/// Paths are as given: relative to the directory the command was started in. What is kept of them
/// is relative to the repository, so that the same file is the same task from anywhere.
pub fn read_tasks(source: &WorkSource, root: &Utf8Path) -> Result<Tasks, BeginError> {
    match source {
        WorkSource::File(path) => {
            let (mut parsed, warnings) = read_file(path)?;
            parsed.spec.path = in_repository(path, root);
            let (title, source) = (parsed.spec.title.clone(), parsed.spec.path.to_string());
            let (flow, specs, whole) = match parsed.kind {
                FileKind::Task => (Flow::Task, vec![parsed.spec], None),
                FileKind::Plan => {
                    let whole = PlanBody { spec: parsed.spec, text: parsed.body };
                    (Flow::Plan, Vec::new(), Some(whole))
                }
            };
            Ok(Tasks { flow, title, source, specs, whole, plan: None, warnings })
        }
        WorkSource::Queue { dir, pattern } => {
            let mut specs = Vec::new();
            let mut warnings = Vec::new();
            for path in queue_files(dir, pattern.as_deref())? {
                let (parsed, more) = read_file(&path)?;
                if parsed.kind == FileKind::Plan {
                    return Err(BeginError::PlanInQueue { path });
                }
                let mut spec = parsed.spec;
                spec.path = in_repository(&path, root);
                specs.push(spec);
                warnings.extend(more);
            }
            let ids = unique_ids(specs.iter().map(|spec: &TaskSpec| spec.id.clone()));
            for (spec, id) in specs.iter_mut().zip(ids) {
                spec.id = id;
            }
            let title = format!("queue of {} tasks in {dir}", specs.len());
            let dir = in_repository(dir, root);
            let source = match pattern {
                Some(pattern) => format!("{dir} --pattern {pattern}"),
                None => dir.to_string(),
            };
            let (whole, plan) = (None, None);
            Ok(Tasks { flow: Flow::Queue, title, source, specs, whole, plan, warnings })
        }
        WorkSource::Plan { from, file } => given::read(from, file.as_deref(), root),
        WorkSource::Text { flow, text } => Ok(from_text(*flow, text)),
    }
}

fn from_text(flow: Flow, text: &str) -> Tasks {
    let text = text.trim().to_owned();
    let line = text.lines().next().unwrap_or_default();
    let title: String = line.chars().take(TEXT_TITLE_CHARS_MAX).collect();
    let spec = TaskSpec { title: title.clone(), goal: text.clone(), ..TaskSpec::default() };
    Tasks {
        flow,
        title,
        source: text.clone(),
        specs: Vec::new(),
        whole: Some(PlanBody { spec, text }),
        plan: None,
        warnings: Vec::new(),
    }
}

/// The one name of a file: from the top of the repository, or absolute outside of it.
fn in_repository(path: &Utf8Path, root: &Utf8Path) -> Utf8PathBuf {
    let Ok(real) = path.canonicalize_utf8() else { return path.to_owned() };
    let root = root.canonicalize_utf8().unwrap_or_else(|_| root.to_owned());
    match real.strip_prefix(&root) {
        Ok(inside) if inside.as_str().is_empty() => ".".into(),
        Ok(inside) => inside.to_owned(),
        Err(_) => real,
    }
}

type Read = (Parsed, Vec<(Utf8PathBuf, Warning)>);

fn read_file(path: &Utf8Path) -> Result<Read, BeginError> {
    if path.is_dir() {
        return Err(BeginError::IsDirectory { path: path.to_owned() });
    }
    let bytes_max = task_file::TASK_BYTES_MAX as u64 + 1;
    let bytes = file::read_capped(path.as_std_path(), bytes_max)?;
    let mut parsed = task_file::parse(path, &bytes)
        .map_err(|faults| BeginError::TaskFile { path: path.to_owned(), faults })?;
    let warnings = std::mem::take(&mut parsed.warnings);
    let warnings = warnings.into_iter().map(|warning| (path.to_owned(), warning)).collect();
    Ok((parsed, warnings))
}

/// Whether a file of a tasks directory is taken for a task by its name.
pub fn is_task_name(name: &str) -> bool {
    name.ends_with(".md") && !name.starts_with('.') && !NOT_TASKS.contains(&name)
}

fn queue_files(dir: &Utf8Path, pattern: Option<&str>) -> Result<Vec<Utf8PathBuf>, BeginError> {
    let unreadable = |source| FileError::Failed { what: "read", path: dir.into(), source };
    let matcher = match pattern {
        None => None,
        Some(pattern) => Some(
            globset::Glob::new(pattern)
                .map_err(|error| BeginError::Pattern {
                    pattern: pattern.to_owned(),
                    reason: error.kind().to_string(),
                })?
                .compile_matcher(),
        ),
    };
    let mut files = Vec::new();
    for entry in dir.read_dir_utf8().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.into_path();
        let Some(name) = path.file_name() else { continue };
        let wanted = match &matcher {
            Some(matcher) => matcher.is_match(name),
            None => is_task_name(name),
        };
        if wanted && !name.starts_with('.') && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        let pattern = pattern.map(str::to_owned);
        return Err(BeginError::EmptyQueue { dir: dir.to_owned(), pattern });
    }
    if files.len() > QUEUE_MAX {
        return Err(BeginError::QueueTooLong { dir: dir.to_owned(), found: files.len() });
    }
    Ok(files)
}

/// Every agent the run will need can be started: its executable is there.
pub fn check_agents(
    config: &Config,
    place: &StatePaths,
    path: &str,
    flow: Flow,
) -> Result<Vec<(Role, LaunchPlan)>, BeginError> {
    let mut plans = Vec::new();
    for role in flow.roles() {
        let name = role.word();
        for settings in config.candidates(role) {
            let failed = |reason| BeginError::Agent { role: name, reason };
            let plan = check_agent(settings, name, place, path).map_err(failed)?;
            plans.push((role, plan));
        }
    }
    Ok(plans)
}

fn check_agent(
    settings: &AgentConfig,
    name: &str,
    place: &StatePaths,
    path: &str,
) -> Result<LaunchPlan, String> {
    let agent = agent_of(settings, &place.root).map_err(|error| error.to_string())?;
    if let Agent::Script { file } = &agent
        && !file.is_file()
    {
        return Err(format!("the script `{file}` does not exist"));
    }
    address_ready(&agent, settings)?;
    let plan = agent.launch(&autopilot_agents::LaunchRequest::new("", &place.root));
    if let LaunchProgram::Named(program) = &plan.program
        && find_program(program, path, &place.root).is_none()
    {
        let mode = settings.mode.word();
        let key = match settings.mode {
            Mode::Acp | Mode::Command => "command",
            Mode::ClaudeCodeCli | Mode::CodexCli | Mode::OpenaiApi | Mode::Script => "executable",
        };
        return Err(format!(
            "the executable `{program}` of mode {mode} was not found; install it, or set \
             `{name}.{key}` in .autopilot/config.yml"
        ));
    }
    Ok(plan)
}

/// An address or a key of the configuration's own: is there all that asking there needs? In words,
/// for an agent that has one.
pub fn address_ready(agent: &Agent, settings: &AgentConfig) -> Result<Option<String>, String> {
    let gateway = match agent {
        Agent::OpenAi(model) => return model_ready(model, settings).map(Some),
        Agent::ClaudeCode { gateway, .. } | Agent::Codex { gateway, .. } => gateway,
        Agent::Acp { .. } | Agent::Command { .. } | Agent::Script { .. } => return Ok(None),
    };
    let Some(base) = &gateway.base_url else {
        return match &gateway.key_env {
            Some(key) if variable(settings, key).is_none() => Err(unset(key)),
            Some(key) => Ok(Some(format!("key from {key}"))),
            None => Ok(None),
        };
    };
    let address = ApiAddress::parse(base)
        .map_err(|why| format!("the base address of its model can't be used: it {why}"))?;
    let key = gateway.key_env.as_deref();
    key_ready(&address, key, settings).map(|key| Some(format!("at {address}, {key}")))
}

fn variable(settings: &AgentConfig, name: &str) -> Option<String> {
    let own = settings.env.get(name).cloned().or_else(|| std::env::var(name).ok());
    own.filter(|value| !value.trim().is_empty())
}

fn unset(key: &str) -> String {
    format!(
        "its `api_key_env` is `{key}`, and this environment variable is not set: export it, or \
         name another in .autopilot/config.yml"
    )
}

/// `key` is the variable that may be sent there.
fn key_ready(
    address: &ApiAddress,
    key: Option<&str>,
    settings: &AgentConfig,
) -> Result<String, String> {
    match key {
        Some(key) if variable(settings, key).is_some() => Ok(format!("key from {key}")),
        Some(key) if settings.api_key_env.is_some() => {
            Err(format!("there is no key for {address}: {}", unset(key)))
        }
        Some(_) | None if address.is_local() => Ok("without a key".to_owned()),
        Some(key) => Err(format!(
            "there is no key for {address}: set the environment variable `{key}`, or name another \
             as `api_key_env` in .autopilot/config.yml"
        )),
        None => Err(format!(
            "no key is named for {address}, and yours is for its own vendor only: name the \
             environment variable that holds one as `api_key_env` in .autopilot/config.yml"
        )),
    }
}

/// Which model is asked where, in words, if there is all that asking needs. Nobody is asked.
fn model_ready(model: &Model, settings: &AgentConfig) -> Result<String, String> {
    let variable = |name: &str| variable(settings, name);
    let base = model.base_url.clone().or_else(|| variable(BASE_URL_VARIABLE));
    let base = base.as_deref().unwrap_or(BASE_DEFAULT);
    let address = ApiAddress::parse(base)
        .map_err(|why| format!("the base address of its model can't be used: it {why}"))?;
    let key = key_ready(&address, model.key_variable(), settings)?;
    Ok(format!("{} at {address}, {key}", model.name))
}

/// A run that is about to begin, with the texts its first record names.
pub struct PreparedRun {
    pub spec: RunSpec,
    pub texts: Vec<String>,
}

pub struct Base<'a> {
    pub run: &'a str,
    pub branch: String,
    pub base_branch: &'a str,
    pub base: &'a str,
}

pub fn prepare(
    tasks: &Tasks,
    request: &RunRequest,
    config: &Config,
    base: Base<'_>,
) -> PreparedRun {
    let mut texts = Vec::new();
    let mut keep = |text: String| {
        let hash = sha256_hex(text.as_bytes());
        texts.push(text);
        hash
    };
    let entries = tasks
        .specs
        .iter()
        .map(|spec| {
            let body = keep(body_of(spec));
            let has_uat = spec.commands.uat.is_some() || config.commands.uat.is_some();
            TaskEntry {
                name: spec.id.clone(),
                title: spec.title.clone(),
                source: spec.path.to_string(),
                body,
                // A queue is worked in order; only a graph has dependencies of its own.
                depends_on: Vec::new(),
                switches: has_uat.then_some(Switch::Uat).into_iter().collect(),
                paths: spec.allowed_paths.clone(),
                ..TaskEntry::default()
            }
        })
        .collect();
    let whole = match &tasks.whole {
        None => TaskEntry::default(),
        Some(plan) => {
            let has_uat = plan.spec.commands.uat.is_some() || config.commands.uat.is_some();
            TaskEntry {
                body: keep(serde_json::to_string(plan).unwrap_or_default()),
                switches: has_uat.then_some(Switch::Uat).into_iter().collect(),
                ..TaskEntry::default()
            }
        }
    };
    let plan = tasks.plan.clone().map(&mut keep);
    let pinned = keep(serde_json::to_string(config).unwrap_or_default());
    let mut switches = BTreeSet::from([Switch::Baseline, Switch::Review]);
    switches.extend(asked_for(request, config));
    if !tasks.flow.row().needs_tests {
        let has_tests = config.commands.has_tests();
        switches.extend(has_tests.then_some(Switch::HasTests));
        if !has_tests {
            switches.remove(&Switch::Baseline);
        }
    }
    let spec = RunSpec {
        id: base.run.to_owned(),
        flow: tasks.flow,
        title: tasks.title.clone(),
        source: tasks.source.clone(),
        started_by: request.started_by.clone(),
        base_branch: base.base_branch.to_owned(),
        base: base.base.to_owned(),
        branch: base.branch,
        switches,
        limits: request.limits.applied_to(&limits_of(config, tasks.flow)),
        config: pinned,
        red_base_allowed: request.allow_red_base,
        options: request.options.clone(),
        whole,
        plan,
        tasks: entries,
    };
    PreparedRun { spec, texts }
}

/// What leaves the machine, and where a person is asked before it goes on.
fn asked_for(request: &RunRequest, config: &Config) -> Vec<Switch> {
    let pr = request.pr || config.github.open_pr;
    let push = pr || request.push || config.github.enabled;
    let (plan_gate, end_gate) = match config.gates.human {
        HumanGate::None => (false, false),
        HumanGate::Deferred => (false, true),
        HumanGate::Three => (true, true),
    };
    let asked = [
        (Switch::Push, push),
        (Switch::Pr, pr),
        (Switch::PlanGate, plan_gate || request.hold_plan),
        (Switch::EndGate, end_gate),
        (Switch::FailFast, request.fail_fast),
    ];
    asked.into_iter().filter(|(_, on)| *on).map(|(switch, _)| switch).collect()
}

/// A task as it is kept with the run.
fn body_of(spec: &TaskSpec) -> String {
    serde_json::to_string(spec).unwrap_or_default()
}

/// The same for a flow. A round of a goal is a whole workflow, not another try of a task, so the
/// configured number is not meant for it.
pub fn limits_of(config: &Config, flow: Flow) -> Limits {
    let limits = limits(config);
    match flow.row().iterations_max {
        Some(rounds_max) => {
            Limits { rounds_max, rounds_below_max: Some(limits.rounds_max), ..limits }
        }
        None => limits,
    }
}

/// The limits a configuration asks for.
pub fn limits(config: &Config) -> Limits {
    let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let retries: BTreeMap<Step, u32> =
        Step::ALL.iter().map(|step| (*step, config.retries(*step))).collect();
    let lanes = lane::lanes(config);
    Limits {
        workers_max: config.orchestrator.max_workers,
        effects_max: config.integration.batch.max(1),
        overlaps_wait: config.orchestrator.serialize_overlapping,
        rounds_max: config.rounds.max_iterations,
        retries,
        retries_max: config.budget.retries,
        interruptions_max: config.budget.interruptions,
        wait_quota_max_ms: ms(config.budget.max_wait_quota),
        usd_max: config.budget.max_usd.map(Micros::from_usd),
        usd_per_task_max: config.budget.max_usd_per_task.map(Micros::from_usd),
        wall_max_ms: config.budget.max_wall.map(ms),
        review: match config.gates.review {
            ReviewConfig::Required => ReviewGate::Required,
            ReviewConfig::Evidence => ReviewGate::Evidence,
            ReviewConfig::Advisory => ReviewGate::Advisory,
        },
        lanes: lanes.steps,
        agents: lanes.agents,
        ..Limits::default()
    }
}
