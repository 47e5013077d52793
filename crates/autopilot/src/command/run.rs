//! `autopilot run`: a task file, a plan, or a queue of task files.

use super::work;
use crate::cli::{Global, PlanArgs, RunArgs, StartArgs};
use crate::exit::CommandFailure;
use crate::terminal;
use autopilot_core::config::{AgentConfig, Config, HumanGate, Mode, Options, Role};
use autopilot_core::flow::{FlowFiles, FlowInput};
use autopilot_core::limit::Limits;
use autopilot_core::plan::PlanRules;
use autopilot_core::prompt::{BuildRules, Caps, PlanPrompt, builder};
use autopilot_core::skill::{Owner, Shelf, offered};
use autopilot_core::step::Step;
use autopilot_core::task_file::TaskSpec;
use autopilot_core::workflow::workflow_prompt;
use autopilot_engine::begin::{self, PlanBody, RunRequest, Tasks, WorkSource};
use autopilot_engine::inbox::LimitChange;
use autopilot_engine::job::{Kit, opening};
use autopilot_engine::place::StatePaths;
use autopilot_engine::redaction::KnownSecrets;
use autopilot_engine::run_process::{Intent, OpenedRepository, RunProcessError};
use autopilot_engine::skill::{SkillPlaces, shelf};
use autopilot_engine::workspace;
use autopilot_host::forge;
use autopilot_host::git::{GitCommand, UserRepo};
use autopilot_view::count;
use camino::Utf8Path;
use std::collections::{BTreeMap, BTreeSet};

/// The most faults of skills that are printed before a run.
const SKILL_FAULTS_MAX: usize = 10;

/// Starts a run of files.
pub fn run(global: &Global, args: &RunArgs) -> super::Done {
    let source = source(global, args)?;
    let limits = work::limits(&args.limits)?;
    let ordered = OrderedRun { source, limits, fail_fast: false, options: Options::default() };
    begin(global, ordered, &args.start, &args.plan)
}

/// The work of a run that is to be started, and how it is to be done.
pub struct OrderedRun {
    pub source: WorkSource,
    pub limits: LimitChange,
    pub fail_fast: bool,
    pub options: Options,
}

/// Starts a run.
pub fn begin(
    global: &Global,
    ordered: OrderedRun,
    args: &StartArgs,
    plan: &PlanArgs,
) -> super::Done {
    let OrderedRun { mut source, limits, fail_fast, mut options } = ordered;
    // Nothing is written before the whole request is known to be valid.
    let may_lack_config = matches!(source, WorkSource::Text { .. });
    let (place, config) = work::configured(global, may_lack_config)?;
    let config = with_options(&config, &options)?;
    if let WorkSource::Text { text, .. } = &mut source {
        *text = without_secrets(text, &place, &config)?;
    }
    if let Some(given) = &options.out {
        options.out = Some(begin::out_dir(&global.path(Utf8Path::new(given)), &place.root)?);
    }
    let tasks = begin::read_tasks(&source, &place.root)?;
    for (path, warning) in &tasks.warnings {
        terminal::note(&format!("warning: {path}: {warning}"));
    }
    let path = std::env::var("PATH").unwrap_or_default();
    refuse_what_only_plans_have(plan, &tasks)?;
    begin::check_plan(&source, &tasks, &config)?;
    begin::check_agents(&config, &place, &path, tasks.flow)?;
    let asked = limits.applied_to(&begin::limits_of(&config, tasks.flow));
    begin::check_settings(&config, &asked, tasks.flow)?;
    if !args.dry_run {
        for said in begin::late_limits(&config, &asked, tasks.flow) {
            terminal::note(&format!("warning: {said}"));
        }
    }
    let repo = workspace::examine(&global.repo, &config)?;
    if let Some(note) = left_out(&repo).filter(|_| !global.quiet) {
        terminal::note(&note);
    }
    let shelves = skills(&place, &repo, &config)?;
    begin::check_skills(&tasks, &shelves, &place.root)?;
    if args.push || plan.pr || config.github.enabled || config.github.open_pr {
        refuse_unknown_remote(&repo, &config)?;
    }
    if (plan.pr || config.github.open_pr) && !args.dry_run {
        refuse_unknown_forge(&repo, &config)?;
    }
    let request = RunRequest {
        source,
        push: args.push,
        pr: plan.pr,
        hold_plan: plan.plan_only || plan.edit,
        gates_plan: config.gates.human == HumanGate::Three,
        fail_fast,
        allow_red_base: args.allow_red_base,
        prove_base: args.prove_base,
        options,
        limits,
        started_by: work::started_by(&repo),
    };
    if args.dry_run {
        let planner = config.agent(Role::Planner);
        let opened = OpenedRepository { place, repo, config: config.clone() };
        let planners = shelf_of(&opened.place, &opened.repo, &config, planner)?;
        let builders = shelves.into_iter().next().map(|(_, shelf)| shelf).unwrap_or_default();
        return dry_run(&opened, &tasks, &request, DryShelves { builders, planners });
    }
    work::refuse_stop_file(&place)?;
    if tasks.flow.row().files == FlowFiles::RunDirectory {
        begin::prove_out(request.options.out.as_deref(), &place.root)?;
    }
    let opened = work::adopt(repo, config)?;
    let intent =
        Intent::Begin { tasks: Box::new(tasks), request: Box::new(request), fresh: args.fresh };
    if plan.edit {
        return super::approve::edit_then_work(global, opened, intent, args.wait);
    }
    let worked = work::until_rest(global, opened, intent, args.wait)?;
    if plan.plan_only && worked.waits_at(Step::ApprovePlan) {
        return worked.planned();
    }
    worked.tell()
}

/// A note about changes in the checkout that are in no commit, and so not in the run.
fn left_out(repo: &UserRepo) -> Option<String> {
    let found = GitCommand::as_user("look for uncommitted changes", &repo.root)
        .args(["--no-optional-locks", "status", "--porcelain", "-z", "--untracked-files=no"])
        .arg("--no-renames")
        .ok()
        .ok()?;
    let names = found.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let files = names.filter(|name| !name.get(3..).is_some_and(|n| n.starts_with(b".autopilot/")));
    let files = files.count();
    (files > 0).then(|| {
        let (branch, tip) = (&repo.base_branch, repo.base_tip.short());
        let files = count(files, "file");
        format!("note: uncommitted changes ({files}) are not in the run, which starts from {branch} at {tip}")
    })
}

/// Hides secrets in the goal, because it goes into the journal and a later process does not know
/// them.
fn without_secrets(
    text: &str,
    place: &StatePaths,
    config: &Config,
) -> Result<String, CommandFailure> {
    let known = KnownSecrets::new(place, config, &work::variables());
    let redactor = known
        .redactor_for_agents(&config.logging.redact_patterns)
        .map_err(RunProcessError::from)?;
    Ok(redactor.redact(text).into_owned())
}

fn with_options(config: &Config, options: &Options) -> Result<Config, CommandFailure> {
    let config = config.with_options(options).map_err(|error| {
        let hint = error.help();
        CommandFailure::usage(error).hint(hint)
    })?;
    let edits = |agent: &AgentConfig| agent.mode != Mode::OpenaiApi;
    match &options.adapter {
        Some(name) if !config.candidates(Role::Builder).all(edits) => {
            Err(CommandFailure::usage(format!("the adapter `{name}` can't edit files"))
                .hint("a model behind an API only answers; choose an agent that works in a folder"))
        }
        Some(_) | None => Ok(config),
    }
}

/// The skills at the base commit for each agent that may build. Faulty skills of the repository are
/// printed as warnings.
fn skills(
    place: &StatePaths,
    repo: &UserRepo,
    config: &Config,
) -> Result<Vec<(Mode, Shelf)>, CommandFailure> {
    let mut shelves = Vec::new();
    for agent in config.candidates(Role::Builder) {
        shelves.push((agent.mode, shelf_of(place, repo, config, agent)?));
    }
    let faults = shelves.first().map(|(_, shelf)| &shelf.faults[..]).unwrap_or_default();
    let own = faults.iter().filter(|fault| fault.owner == Owner::Repository);
    for fault in own.take(SKILL_FAULTS_MAX) {
        terminal::note(&format!("warning: skill {}: {}", fault.dir, fault.text));
    }
    Ok(shelves)
}

/// The skills at the base commit for one agent.
fn shelf_of(
    place: &StatePaths,
    repo: &UserRepo,
    config: &Config,
    agent: &AgentConfig,
) -> Result<Shelf, CommandFailure> {
    let (commit, root) = (repo.base_tip.as_str(), &place.root);
    let variables = work::variables();
    let git = &repo.common_dir;
    Ok(shelf(&SkillPlaces::new(git, commit, root, Some(config), Some(agent), &variables))?)
}

fn source(global: &Global, args: &RunArgs) -> Result<WorkSource, CommandFailure> {
    let here = |path: &camino::Utf8PathBuf| global.path(path);
    match (&args.path, &args.queue, &args.from) {
        (file, _, Some(from)) => {
            Ok(WorkSource::Plan { from: here(from), file: file.as_ref().map(here) })
        }
        (Some(path), _, None) => Ok(WorkSource::File(here(path))),
        (None, Some(dir), None) => {
            Ok(WorkSource::Queue { dir: here(dir), pattern: args.pattern.clone() })
        }
        (None, None, None) => {
            Err(CommandFailure::usage("name a task file or a plan, or a directory with --queue"))
        }
    }
}

fn refuse_what_only_plans_have(args: &PlanArgs, tasks: &Tasks) -> Result<(), CommandFailure> {
    let asked = [("--plan-only", args.plan_only), ("--edit", args.edit)];
    let is_plan = tasks.flow.row().input == FlowInput::PlanFile;
    match asked.iter().find(|(_, is_asked)| *is_asked && !is_plan) {
        Some((flag, _)) => Err(CommandFailure::usage(format!("{flag} goes with a plan"))
            .hint("a plan begins with `# Plan: <title>`")),
        None => Ok(()),
    }
}

/// Refuses an unknown remote now, before anything is built and paid for.
fn refuse_unknown_remote(repo: &UserRepo, config: &Config) -> Result<(), CommandFailure> {
    let wanted = &config.repo.remote_name;
    if repo.remotes.iter().any(|(name, _)| name == wanted) {
        return Ok(());
    }
    let add = format!("add it with `git remote add {wanted} <url>`");
    Err(CommandFailure::usage(format!("there is no remote `{wanted}` to push to"))
        .hint(format!("{add}, set repo.remote_name, or run without a push")))
}

/// Does the same for an unknown forge or a missing login.
fn refuse_unknown_forge(repo: &UserRepo, config: &Config) -> Result<(), CommandFailure> {
    let asked = forge::ForgeRequest {
        dir: &repo.root,
        remote: &config.repo.remote_name,
        variables: &work::variables(),
        timeout: config.timeout(Step::PullRequest),
        unwanted: &|| false,
    };
    match forge::choose(&asked) {
        Ok(_) => Ok(()),
        Err(error) => {
            let hint = format!("{}, or run without a pull request", error.next_step());
            Err(CommandFailure::usage(error).context("a pull request can't be opened").hint(hint))
        }
    }
}

/// The skills for the agents whose prompts a dry run shows.
struct DryShelves {
    builders: Shelf,
    planners: Shelf,
}

/// Prints what the run would do.
fn dry_run(
    opened: &OpenedRepository,
    tasks: &Tasks,
    request: &RunRequest,
    shelves: DryShelves,
) -> super::Done {
    let config = &opened.config;
    let limits = request.limits.applied_to(&begin::limits_of(config, tasks.flow));
    let mut text = format!(
        "would run {} ({}) on {} at {}\n",
        tasks.title,
        tasks.flow.word(),
        opened.repo.base_branch,
        opened.repo.base_tip.short()
    );
    for spec in &tasks.specs {
        text.push_str(&format!("\n# {} ({})\n", spec.id, spec.path));
        let commands = config.commands.all(&spec.commands);
        for name in ["tests", "lint", "format", "uat"] {
            let known = commands.iter().find(|(known, _)| *known == name);
            let line = known.map_or("– (skipped, and recorded as skipped)", |(_, line)| line);
            text.push_str(&format!("{name:<7} {line}\n"));
        }
        let prompt = first_prompt(opened, spec, shelves.builders.clone())?;
        text.push_str(&format!("prompt of the first build:\n{prompt}\n"));
    }
    if let Some(whole) = &tasks.whole {
        text.push_str(&match tasks.flow.row().input {
            FlowInput::Text => dry_goal(opened, whole, &limits, shelves)?,
            FlowInput::TaskFiles | FlowInput::PlanFile => {
                dry_plan(opened, whole, tasks.plan.is_some(), shelves.builders)
            }
        });
    }
    text.push_str(&format!(
        "\nlimits: {}, retries {}, {}, money {}, time {}, workers {}\n",
        count(limits.rounds_max as usize, "iteration"),
        limits.retries_max,
        count(limits.interruptions_max as usize, "interruption"),
        limits.usd_max.map_or("unlimited".to_owned(), |usd| usd.to_string()),
        limits.wall_max_ms.map_or("unlimited".to_owned(), autopilot_view::duration),
        limits.workers_max,
    ));
    for said in begin::late_limits(config, &limits, tasks.flow) {
        text.push_str(&format!("{said}\n"));
    }
    if let Some(rounds) = limits.rounds_below_max {
        text.push_str(&format!(
            "of a step whose merge conflicts: {}\n",
            count(rounds as usize, "iteration")
        ));
    }
    let mut told = BTreeSet::new();
    for step in tasks.flow.steps() {
        let (key, seconds) = (step.row().runs_as, config.timeout(step).as_secs());
        if told.insert(key) {
            text.push_str(&format!("timeout {key}: {seconds} s\n"));
        }
    }
    terminal::say(text.trim_end());
    super::done()
}

/// The commands that prove a goal, and its first prompt.
fn dry_goal(
    opened: &OpenedRepository,
    whole: &PlanBody,
    limits: &Limits,
    shelves: DryShelves,
) -> Result<String, CommandFailure> {
    let config = &opened.config;
    let mut text = String::from("\n# the result of every iteration\n");
    match config.commands.all(&whole.spec.commands).as_slice() {
        [] => text.push_str("no `tests` command is configured, so nothing would be proven\n"),
        some => some.iter().for_each(|(name, line)| text.push_str(&format!("{name:<7} {line}\n"))),
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let rules = begin::step_rules(config, limits, &opened.place, &path);
    let (known, caps) = (offered(&shelves.builders), Caps::of(&config.logging));
    let prompt = workflow_prompt(&opening::workflow_facts(whole, &rules, &known), caps);
    let kit = Kit::new(shelves.planners, &opening::asking_spec(&prompt), config.planner.mode);
    let prompt = opening::with_named_skill(prompt, &kit, caps).map_err(CommandFailure::failed)?;
    text.push_str(&format!("prompt of the first workflow:\n{prompt}\n"));
    Ok(text)
}

/// The commands and the first prompt of a plan.
fn dry_plan(opened: &OpenedRepository, whole: &PlanBody, is_given: bool, shelf: Shelf) -> String {
    let config = &opened.config;
    let spec = &whole.spec;
    let commands = config.commands.all(&spec.commands);
    let mut text = String::from("\n# every task, and the whole at the end\n");
    for (name, line) in &commands {
        text.push_str(&format!("{name:<7} {line}\n"));
    }
    if config.gates.whole_review {
        text.push_str("the reviewer then judges the whole against the plan's goal and criteria\n");
    }
    if is_given {
        text.push_str("the plan is given; no planner is asked\n");
        return text;
    }
    let rules = PlanRules::of(config, spec, BTreeMap::new());
    let kit = Kit::new(shelf, spec, config.planner.mode);
    let rest = PlanPrompt {
        repo_status: &opening::based_on(&opened.repo.base_tip, &opened.repo.base_branch),
        tree: "(a summary of the file names)",
        ..PlanPrompt::default()
    };
    let prompt = opening::plan_prompt(config, whole, &rules, &kit, rest);
    text.push_str(&format!("prompt of the planner:\n{prompt}\n"));
    text
}

/// The prompt of a task's first build, on the branch as it is now.
fn first_prompt(
    opened: &OpenedRepository,
    spec: &TaskSpec,
    shelf: Shelf,
) -> Result<String, CommandFailure> {
    let (config, repo) = (&opened.config, &opened.repo);
    let kit = Kit::new(shelf, spec, config.builder.mode);
    let known = kit.listed(config.builder.skill_policy);
    let status = opening::work_status(&spec.id, &repo.base_tip, &repo.base_tip, &repo.base_branch);
    let rules = BuildRules::of(config, spec);
    let build = opening::build_facts(spec, &config.builder, &known, &status, &rules);
    let caps = Caps::of(&config.logging);
    kit.give(builder(&build, caps), caps).map_err(CommandFailure::failed)
}
