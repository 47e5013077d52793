//! Turns a command line's request into the first record of a run.

mod agent;
mod given;
pub mod known_plan;
mod lane;
mod out;
mod settings;
mod since;
mod skill;

pub use agent::{AgentFault, address_ready, check_agents};
pub use given::{check_plan, parse_plan};
pub use out::{OutFault, out_dir, prove_out, prove_out_of};
pub use settings::{check_prices, check_settings, costs_unknown, late_limits, step_rules};
pub use since::changed_since;
pub use skill::check_skills;

use crate::holdout::HeldOutSet;
use crate::inbox::LimitChange;
use autopilot_core::config::{
    Config, ConfigFaults, GenerateCases, HumanGate, Options, ProofGate, Warning,
};
use autopilot_core::event::{RunSpec, TaskEntry};
use autopilot_core::fingerprint::sha256_hex;
use autopilot_core::flow::Flow;
use autopilot_core::holdout::HoldoutFault;
use autopilot_core::id::Micros;
use autopilot_core::limit::Limits;
use autopilot_core::number::count;
use autopilot_core::pipeline::Switch;
use autopilot_core::step::Step;
use autopilot_core::task_file::{self, FileKind, Parsed, TaskSpec, unique_ids};
use autopilot_core::warmth::needs_cold_proof;
use autopilot_host::file::{self, FileError};
use autopilot_host::git::{UserRepo, run_branch};
use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of files in a queue.
pub const QUEUE_MAX: usize = 10_000;
/// The maximum length of a run's title that is taken from the first line of its text.
const TEXT_TITLE_CHARS_MAX: usize = 100;
/// File names in a tasks directory that are not task files.
const NOT_TASKS: [&str; 2] = ["TEMPLATE.md", "README.md"];

/// The work that a command line names.
#[derive(Clone, Debug)]
pub enum WorkSource {
    File(Utf8PathBuf),
    Queue {
        dir: Utf8PathBuf,
        pattern: Option<String>,
    },
    /// A person's own words, and the flow that works on them.
    Text {
        flow: Flow,
        text: String,
    },
    /// An existing plan as JSON, and the plan file it was made for.
    Plan {
        from: Utf8PathBuf,
        file: Option<Utf8PathBuf>,
    },
}

/// A request to start a run, as given on the command line.
#[derive(Clone, Debug)]
pub struct RunRequest {
    pub source: WorkSource,
    pub push: bool,
    pub pr: bool,
    /// A person must approve the plan before any task starts (`--plan-only`).
    pub hold_plan: bool,
    /// The configuration also has a gate for plans.
    pub gates_plan: bool,
    /// Tasks that depend on a failed task are not started.
    pub fail_fast: bool,
    pub allow_red_base: bool,
    /// The base is proven although an earlier run proved it.
    pub prove_base: bool,
    /// The command-line options that override the configuration.
    pub options: Options,
    pub limits: LimitChange,
    pub started_by: String,
}

/// Why a run can't start.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    #[error(transparent)]
    Unreadable(#[from] FileError),
    #[error("{}", faults.in_file(path.as_str()))]
    TaskFile { path: Utf8PathBuf, faults: ConfigFaults },
    #[error("`{path}` is a plan, but a queue takes task files; run it with `autopilot run {path}`")]
    PlanInQueue { path: Utf8PathBuf },
    #[error("`{path}` is a task file; use --from with the plan file it was made for, or alone")]
    NotAPlan { path: Utf8PathBuf },
    #[error("the plan `{path}` is not valid:\n{}", faults.join("\n"))]
    Refused { path: Utf8PathBuf, faults: Vec<String> },
    #[error("`{path}` is a directory; use `autopilot run --queue {path}`")]
    IsDirectory { path: Utf8PathBuf },
    #[error("no task file in `{dir}`{}; write one or check the pattern", pattern_words(pattern))]
    EmptyQueue { dir: Utf8PathBuf, pattern: Option<String> },
    #[error("`{dir}` holds {found} task files, more than the {QUEUE_MAX} a queue may have")]
    QueueTooLong { dir: Utf8PathBuf, found: usize },
    #[error("`{}` is not a file name pattern: {}", .0.glob().unwrap_or_default(), .0.kind())]
    Pattern(globset::Error),
    #[error("{}", faults.join("\n"))]
    Settings { faults: Vec<String> },
    #[error("{}\nlooked in {}", faults.join("\n"), looked_in.join(", "))]
    Skill { faults: Vec<String>, looked_in: Vec<String> },
    #[error(transparent)]
    Holdout(#[from] HoldoutFault),
    #[error("cannot keep a copy of the held-out tests in the state directory")]
    HoldoutCopy(#[source] std::io::Error),
    #[error("--out `{path}` can't be used")]
    Out { path: Utf8PathBuf, source: OutFault },
    #[error("{role}")]
    Agent { role: &'static str, source: AgentFault },
}

fn pattern_words(pattern: &Option<String>) -> String {
    pattern.as_ref().map(|pattern| format!(" that matches `{pattern}`")).unwrap_or_default()
}

/// A plan file as it is kept with the run: its parsed specification, and its text for the planner.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PlanBody {
    #[serde(flatten)]
    pub spec: TaskSpec,
    pub text: String,
}

/// The valid tasks of a request.
pub struct Tasks {
    pub flow: Flow,
    pub title: String,
    pub source: String,
    pub specs: Vec<TaskSpec>,
    /// The specification of the whole plan or goal.
    pub whole: Option<PlanBody>,
    /// An existing plan, as JSON.
    pub plan: Option<String>,
    pub warnings: Vec<(Utf8PathBuf, Warning)>,
}

/// Reads and checks the task files of a request. Given paths are relative to the current directory;
/// kept paths are relative to the repository, so that a file is the same task from anywhere.
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
            let title = format!("queue of {} in {dir}", count(specs.len(), "task"));
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

/// A file's path relative to the repository, or absolute when the file is outside of it.
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

/// Returns whether a file name in a tasks directory looks like a task file.
pub fn is_task_name(name: &str) -> bool {
    name.ends_with(".md") && !name.starts_with('.') && !NOT_TASKS.contains(&name)
}

fn queue_files(dir: &Utf8Path, pattern: Option<&str>) -> Result<Vec<Utf8PathBuf>, BeginError> {
    let unreadable = |source| FileError::Failed { what: "read", path: dir.into(), source };
    let glob = pattern.map(globset::Glob::new).transpose().map_err(BeginError::Pattern)?;
    let matcher = glob.map(|glob| glob.compile_matcher());
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

/// A run that is about to start, with the texts its first record names.
pub struct PreparedRun {
    pub spec: RunSpec,
    pub texts: Vec<String>,
}

/// Builds the first record of a run from its id, tasks, configuration and base commit.
pub fn prepare(
    tasks: &Tasks,
    request: &RunRequest,
    config: &Config,
    run: &str,
    repo: &UserRepo,
    holdout: Option<&HeldOutSet>,
) -> PreparedRun {
    let mut texts = Vec::new();
    let mut keep = |text: String| {
        let hash = sha256_hex(text.as_bytes());
        texts.push(text);
        hash
    };
    let entry = |spec: &TaskSpec, body: String| {
        let has_uat = spec.commands.uat.is_some() || config.commands.uat.is_some();
        let switches = has_uat.then_some(Switch::Uat).into_iter().collect();
        TaskEntry { body, switches, ..TaskEntry::default() }
    };
    // A queue runs in order; only a plan has dependencies.
    let task = |spec: &TaskSpec| TaskEntry {
        name: spec.id.clone(),
        title: spec.title.clone(),
        source: spec.path.to_string(),
        paths: spec.allowed_paths.clone(),
        ..entry(spec, keep(body_of(spec)))
    };
    let entries = tasks.specs.iter().map(task).collect();
    let whole = tasks.whole.as_ref().map_or_else(TaskEntry::default, |plan| {
        entry(&plan.spec, keep(serde_json::to_string(plan).unwrap_or_default()))
    });
    let plan = tasks.plan.clone().map(&mut keep);
    let pinned = keep(serde_json::to_string(config).unwrap_or_default());
    let mut switches = BTreeSet::from([Switch::Baseline, Switch::Review]);
    switches.extend(switches_of(request, config));
    let is_reviewed = config.gates.whole_review && tasks.flow.has_whole_review();
    switches.extend(is_reviewed.then_some(Switch::WholeReview));
    if !tasks.flow.row().needs_tests {
        let has_tests = config.commands.has_tests();
        switches.extend(has_tests.then_some(Switch::HasTests));
        if !has_tests {
            switches.remove(&Switch::Baseline);
        }
    }
    let spec = RunSpec {
        id: run.to_owned(),
        flow: tasks.flow,
        title: tasks.title.clone(),
        source: tasks.source.clone(),
        started_by: request.started_by.clone(),
        base_branch: repo.base_branch.clone(),
        base: repo.base_tip.to_string(),
        branch: run_branch(run),
        switches,
        limits: request.limits.applied_to(&limits_of(config, tasks.flow)),
        config: pinned,
        red_base_allowed: request.allow_red_base,
        holdout: holdout.map(|set| set.tests.digest.clone()),
        options: request.options.clone(),
        whole,
        plan,
        tasks: entries,
    };
    PreparedRun { spec, texts }
}

/// The switches of a run: results that leave the machine, and gates that wait for a person.
fn switches_of(request: &RunRequest, config: &Config) -> Vec<Switch> {
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
        (Switch::ProveBase, request.prove_base),
        (Switch::ThreeRuns, config.commands.has_tests()),
        (Switch::RedGreen, config.gates.proof == ProofGate::RedGreen),
        (Switch::SpareReview, !config.rounds.review_on_red),
        (Switch::SpareCases, config.uat.generate == GenerateCases::Auto),
        (
            Switch::ColdProof,
            needs_cold_proof(config.gates.warm, config.gates.last_word, config.worktrees.keep),
        ),
    ];
    asked.into_iter().filter(|(_, on)| *on).map(|(switch, _)| switch).collect()
}

/// A task's specification as it is kept with the run.
fn body_of(spec: &TaskSpec) -> String {
    serde_json::to_string(spec).unwrap_or_default()
}

/// The limits of a run of this flow. A round of a goal is a whole workflow, so the configured
/// number of tries does not apply to it.
pub fn limits_of(config: &Config, flow: Flow) -> Limits {
    let limits = limits(config);
    match flow.row().iterations_max {
        Some(rounds_max) => {
            Limits { rounds_max, rounds_below_max: Some(limits.rounds_max), ..limits }
        }
        None => limits,
    }
}

/// The limits that a configuration sets.
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
        review: config.gates.review,
        yardstick_changes: config.gates.yardstick_changes,
        lanes: lanes.steps,
        agents: lanes.agents,
        ..Limits::default()
    }
}
