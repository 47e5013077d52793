//! The command line: what can be asked, in clap's words. What is done is in [`crate::command`].

use camino::{Utf8Path, Utf8PathBuf};
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Takes a task to merged, proven code with coding agents, unattended.
#[derive(Debug, Parser)]
#[command(
    name = "autopilot",
    version,
    about,
    long_about = None,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    override_usage = "autopilot [OPTIONS] <COMMAND>\n       autopilot [OPTIONS] \"<GOAL OF SEVERAL WORDS>\" [OPTIONS OF goal]",
    after_help = "Begin with `autopilot init`, write a task file, then `autopilot run tasks/x.md`.\n\
                  `autopilot \"Fix the login\"` is short for `autopilot goal \"Fix the login\"`; one word is a\n\
                  command.\n\
                  `autopilot demo` shows the whole of it in a temporary folder.\n\n\
                  Exit codes: 0 done, 2 paused or stopped (resumable), 10 failed, 11 did not converge,\n\
                  12 push failed, 64 usage, 78 configuration. Where no run was begun, what lists or sums up\n\
                  is empty (0), and what is about a run or a task is a usage error (64)."
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Clone, Debug, Args)]
pub struct Global {
    /// Work in this repository instead of the current directory; files and directories named in the
    /// other arguments are looked for from there too, as with git
    #[arg(
        short = 'C',
        long = "repo",
        value_name = "DIR",
        global = true,
        default_value = ".",
        hide_default_value = true
    )]
    pub repo: Utf8PathBuf,
    /// Print machine-readable JSON where the command has any
    #[arg(long, global = true)]
    pub json: bool,
    /// Only transitions and the outcome
    #[arg(long, short = 'q', global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Stream the output of steps as they run
    #[arg(long, short = 'v', global = true)]
    pub verbose: bool,
    /// Plain lines, no live display
    #[arg(long, global = true)]
    pub no_ui: bool,
}

impl Global {
    /// A path of the command line, from where the command was started. With -C it is meant from
    /// that directory, as git does.
    pub fn path(&self, given: &Utf8Path) -> Utf8PathBuf {
        if self.repo == "." { given.to_owned() } else { self.repo.join(given) }
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Set up a repository: configuration, schemas and a task template
    Init(Init),
    /// Work on a task file, on a plan, or on a directory of task files with --queue
    Run(RunArgs),
    /// Reach a goal (`autopilot "text of several words"` does the same): a workflow is made, its
    /// steps are done by agents, and it is looked whether it is reached; if not, the next follows
    Goal(GoalArgs),
    /// Go on with the unfinished run, or with one session of an agent
    Resume(Resume),
    /// Show where the run stands
    Status(StatusArgs),
    /// Stop the run at the next step boundary
    Stop(StopArgs),
    /// Pause the run before its next step
    Pause,
    /// Take a pause back
    Unpause,
    /// Open a failed task again, or what failed of the run itself, and go on
    Retry(Retry),
    /// Leave a task out
    Skip(OneTask),
    /// Say yes at the gate a run waits at, and go on
    Approve(Approve),
    /// Say no at the gate a run waits at, with the reason
    Reject(Reject),
    /// List the runs of this repository, or sum them up with --stats
    Runs(Runs),
    /// Show what runs have cost: money and tokens, by step, task, run, day, agent or model
    Cost(Cost),
    /// List the conversations agents had in a run, and how to go on with each
    Sessions(Sessions),
    /// Watch the agent that works on a task, and speak to it while it works
    Attach(Attach),
    /// Play a run again offline from its recording, and say where decisions differ
    Replay(Replay),
    /// Write one page that tells a whole run: outcome, graph, timeline, prompts, answers, costs
    Report(ReportArgs),
    /// Draw the tasks of a run or a plan and what each waits for
    Graph(GraphArgs),
    /// Write, list and check task files
    Task(TaskArgs),
    /// Print the logs of a run, a task or a step
    Logs(Logs),
    /// Show a run or a task in full: steps, results, evidence
    Show(Show),
    /// List the skills that agents can be asked to use
    Skills,
    /// Show what a run or a task changed
    Diff(Diff),
    /// Take the branches of a run out of the repository again (kept in the state directory)
    Undo(Undo),
    /// List work that is kept safe outside of branches, or bring a piece of it back
    Recover(Recover),
    /// Remove what is no longer needed: slots, old salvage, old sessions, caches
    Gc(Gc),
    /// Check what the machine has, and say how to get what is missing
    Doctor,
    /// See it work on a small project in a temporary folder; needs no account
    Demo(Demo),
    /// Print shell completions
    Completions(Completions),
}

#[derive(Debug, Args)]
pub struct Init {
    /// The test command to configure (else detected from the project)
    #[arg(long, value_name = "COMMAND")]
    pub tests: Option<String>,
    /// Also write the shipped skills into .claude/skills and .codex/skills; changed files stay
    #[arg(long)]
    pub skills: bool,
}

/// More than a task or a goal may have in its whole life would be accepted and not kept.
fn iterations() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(autopilot_core::limit::ROUNDS_LIFETIME_MAX))
}

#[derive(Clone, Debug, Default, Args)]
pub struct LimitArgs {
    /// Rounds of a task before it is given up
    #[arg(long, value_name = "N", value_parser = iterations())]
    pub max_iterations: Option<u32>,
    /// Money the run may spend
    #[arg(long, value_name = "USD")]
    pub max_usd: Option<f64>,
    /// Money one task may spend
    #[arg(long, value_name = "USD")]
    pub max_usd_per_task: Option<f64>,
    /// Time the run may be worked on, such as 90m or 6h
    #[arg(long, value_name = "TIME")]
    pub max_wall: Option<String>,
    /// Tasks worked on at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub max_workers: Option<u32>,
}

#[derive(Debug, Default, Args)]
pub struct RunArgs {
    /// A task file (`# Task: …`) or a plan (`# Plan: …`, plan.md)
    #[arg(value_name = "FILE", required_unless_present_any = ["queue", "from"])]
    pub path: Option<Utf8PathBuf>,
    /// A directory of task files, worked one after the other in order of name
    #[arg(long, value_name = "DIR", conflicts_with = "path")]
    pub queue: Option<Utf8PathBuf>,
    /// Of the queue, only files whose name matches
    #[arg(long, value_name = "GLOB", requires = "queue")]
    pub pattern: Option<String>,
    /// Push the branch when everything is done
    #[arg(long)]
    pub push: bool,
    /// Push, and open a pull request or update the one there is
    #[arg(long)]
    pub pr: bool,
    /// Make the plan and stop; run again without it, or `autopilot approve`, to go on
    #[arg(long, conflicts_with = "queue")]
    pub plan_only: bool,
    /// Work on this plan (plan.json) instead of having one made
    #[arg(long, value_name = "PLAN", conflicts_with = "queue")]
    pub from: Option<Utf8PathBuf>,
    /// Open the plan in $EDITOR before it is worked on
    #[arg(long, conflicts_with_all = ["queue", "plan_only", "dry_run"])]
    pub edit: bool,
    /// Give up the unfinished run (its work stays salvaged) and begin this one
    #[arg(long)]
    pub fresh: bool,
    /// Go on although the tests fail on the base; then only new failures count
    #[arg(long)]
    pub allow_red_base: bool,
    /// Show prompts, commands and limits; start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Stay and wait when paused instead of exiting with 2
    #[arg(long)]
    pub wait: bool,
    #[command(flatten)]
    pub limits: LimitArgs,
}

#[derive(Debug, Args)]
pub struct GoalArgs {
    /// What is to be reached
    #[arg(value_name = "TEXT")]
    pub text: String,
    /// Who makes workflows, does steps and looks at the result: claude, codex, builder, reviewer,
    /// planner, or a name under `agents` of the configuration
    #[arg(long, value_name = "NAME")]
    pub adapter: Option<String>,
    /// The model they use, instead of their own
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Workflows before it is given up [default: 4]
    #[arg(long, value_name = "N", value_parser = iterations())]
    pub max_iterations: Option<u32>,
    /// Steps worked on at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub concurrency: Option<u32>,
    /// Agents ask for no permissions; the sandbox still holds
    #[arg(long = "unsafe")]
    pub is_unsafe: bool,
    /// Leave out what depends on a step that failed, instead of going on without it
    #[arg(long)]
    pub fail_fast: bool,
    /// Where the files of the run go, as <DIR>/<run-id> [default: runs/autopilot in the repository]
    #[arg(long, value_name = "DIR")]
    pub out: Option<Utf8PathBuf>,
    /// Give up the unfinished run (its work stays salvaged) and begin this one
    #[arg(long)]
    pub fresh: bool,
    /// Go on although the tests fail on the base; then only new failures count
    #[arg(long)]
    pub allow_red_base: bool,
    /// Show prompts, commands and limits; start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Stay and wait when paused instead of exiting with 2
    #[arg(long)]
    pub wait: bool,
    /// Push the branch when everything is done
    #[arg(long)]
    pub push: bool,
    /// Money the run may spend
    #[arg(long, value_name = "USD")]
    pub max_usd: Option<f64>,
    /// Time the run may be worked on, such as 90m or 6h
    #[arg(long, value_name = "TIME")]
    pub max_wall: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "With the session of a step of a goal's workflow, that step is gone on with: \
                        what its agent answers\nand changes takes the place of the step's result, \
                        and then the run rests. `autopilot resume` goes\non with it from there, \
                        also where it had ended.\n\nWith any other session, or with --read-only, its \
                        agent is asked something more outside of the run:\nnothing is merged, and what \
                        it changes becomes a branch of its own.\n\nOf the limits only --max-usd and \
                        --max-usd-per-task apply to a session."
)]
pub struct Resume {
    /// Say something in this session instead, as `autopilot sessions` lists it
    #[arg(value_name = "SESSION", requires = "prompt", conflicts_with = "wait")]
    pub session: Option<String>,
    /// What to say in the session, such as "Try a different approach"
    #[arg(long, value_name = "TEXT", requires = "session")]
    pub prompt: Option<String>,
    /// In the session the agent may look and answer, and change nothing
    #[arg(long, requires = "session")]
    pub read_only: bool,
    /// The model everybody uses from here on, instead of their own
    #[arg(long, value_name = "MODEL", conflicts_with = "session")]
    pub model: Option<String>,
    /// Show where it would go on; start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Stay and wait when paused instead of exiting with 2
    #[arg(long)]
    pub wait: bool,
    #[command(flatten)]
    pub limits: LimitArgs,
}

#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Refresh until the run is over
    #[arg(long, short = 'w')]
    pub watch: bool,
}

#[derive(Debug, Args)]
pub struct StopArgs {
    /// End what runs at once instead of at the step boundary
    #[arg(long)]
    pub now: bool,
}

#[derive(Debug, Args)]
pub struct Retry {
    /// The task's id, as `autopilot status` shows it; without it, the run's own failed step
    pub task: Option<String>,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Stay and wait when paused instead of exiting with 2
    #[arg(long)]
    pub wait: bool,
}

#[derive(Debug, Args)]
pub struct OneTask {
    /// The task's id, as `autopilot status` shows it
    pub task: String,
    /// Stay and wait when paused instead of exiting with 2
    #[arg(long)]
    pub wait: bool,
}

#[derive(Debug, Args)]
pub struct Approve {
    /// Open the plan in $EDITOR first; what you make of it is what is approved
    #[arg(long)]
    pub edit: bool,
    /// Stay and wait when paused instead of exiting with 2
    #[arg(long)]
    pub wait: bool,
}

#[derive(Debug, Args)]
pub struct Reject {
    /// What is wrong with it; the planner is told
    pub why: String,
    /// Stay and wait when paused instead of exiting with 2
    #[arg(long)]
    pub wait: bool,
}

#[derive(Debug, Args)]
pub struct Attach {
    /// The task; `run` for the planner of the run itself
    pub task: String,
    /// Say this to its agent and leave
    #[arg(long, short = 'm', value_name = "TEXT")]
    pub message: Option<String>,
    /// Ask its agent to stop what it does and end its turn
    #[arg(long, conflicts_with = "message")]
    pub interrupt: bool,
}

#[derive(Debug, Args)]
pub struct Replay {
    /// The run, by its id or the beginning of it [default: the newest]
    pub run: Option<String>,
    /// Keep the folder it was played in
    #[arg(long)]
    pub keep: bool,
}

#[derive(Debug, Args)]
pub struct Runs {
    /// At most this many, newest first [default: 20; with --stats 1000]
    #[arg(long, short = 'n')]
    pub number: Option<usize>,
    /// Sum them up: outcomes, iterations, time, cost
    #[arg(long)]
    pub stats: bool,
    /// Only runs begun since then: 12h, 7d, or a day such as 2026-01-31 (UTC)
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CostBy {
    Step,
    Task,
    Run,
    /// The day (UTC) on which it was told
    Day,
    /// The agent's mode
    Agent,
    /// The model as configured
    Model,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Without anything: the newest run by task and step, then today and the last \
                        7 days of all runs.\nWhat an agent did not tell is said to be unknown; \
                        it is in no sum."
)]
pub struct Cost {
    /// A run's id or the beginning of it; without it, all runs where --by or --since is given
    pub run: Option<String>,
    /// What to sum by
    #[arg(long, value_enum)]
    pub by: Option<CostBy>,
    /// Only what was spent since then: 12h, 7d, or a day such as 2026-01-31 (UTC)
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
}

#[derive(Debug, Args)]
pub struct Sessions {
    /// A run's id or the beginning of it; without it, the newest run
    pub run: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The page is one file without scripts that asks for nothing from anywhere: it \
                        opens from disk\nand can be sent. Secrets are hidden in it as in logs. \
                        Without --out it is written beside the\nother files of the run. Its path is \
                        printed; with --json an object: run_id, path (absolute), bytes.\n`--out -` \
                        prints the page itself, so it can't be asked for together with --json."
)]
pub struct ReportArgs {
    /// A run's id or the beginning of it; without it, the newest run
    pub run: Option<String>,
    /// Write it to this file; `-` prints it
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: Option<Utf8PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// For the terminal
    Text,
    /// A picture for browsers and documents
    Svg,
    /// A flowchart for Markdown
    Mermaid,
    /// For Graphviz
    Dot,
    /// Data
    Json,
}

#[derive(Debug, Args)]
#[command(after_help = "Marks: ✓ done, ▶ running, ◷ waiting, · pending, ✗ failed, \
                        ! blocked by a failure, - skipped.")]
pub struct GraphArgs {
    /// A run's id or the beginning of it; without it, the newest run
    pub run: Option<String>,
    /// Draw a plan file (JSON) instead of a run
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    pub plan: Option<Utf8PathBuf>,
    /// The form [default: by the name given with --out, else text]
    #[arg(long, short = 'f', value_enum)]
    pub format: Option<GraphFormat>,
    /// Write it to this file instead of printing it
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: Option<Utf8PathBuf>,
    /// As text: every task of every level, however many
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct TaskArgs {
    #[command(subcommand)]
    pub command: TaskCommand,
}

#[derive(Debug, Subcommand)]
pub enum TaskCommand {
    /// Write a task file with today's date from the template; never overwrites
    New(TaskNew),
    /// List the task files: id, how each stood last, title
    List(TaskList),
    /// Check task files; exits 10 when one has a fault
    Lint(TaskLint),
}

#[derive(Debug, Args)]
pub struct TaskNew {
    /// What the task is called
    pub title: String,
    /// The directory to write to [default: tasks in the repository]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<Utf8PathBuf>,
    /// Begin with this file [default: TEMPLATE.md of the directory]
    #[arg(long, value_name = "FILE")]
    pub template: Option<Utf8PathBuf>,
    /// Open it in $VISUAL or $EDITOR
    #[arg(long, short = 'e')]
    pub edit: bool,
}

#[derive(Debug, Args)]
pub struct TaskList {
    /// The directory to look in [default: tasks in the repository]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<Utf8PathBuf>,
}

#[derive(Debug, Args)]
pub struct TaskLint {
    /// Task files, or directories of them
    #[arg(value_name = "FILE")]
    pub files: Vec<Utf8PathBuf>,
    /// Every task file of this directory [default: tasks in the repository]
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    pub dir: Option<Utf8PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogStreamArg {
    Controller,
    Builder,
    Reviewer,
    Validation,
}

#[derive(Debug, Args)]
pub struct Logs {
    /// A task's id; without it, the controller's own log
    pub task: Option<String>,
    /// Only this stream
    #[arg(long, value_enum)]
    pub stream: Option<LogStreamArg>,
    /// Only the last lines
    #[arg(long, short = 'n', value_name = "LINES")]
    pub tail: Option<usize>,
    /// Keep printing as the log grows
    #[arg(long, short = 'f')]
    pub follow: bool,
    /// What agents printed as they printed it, and not in words
    #[arg(long)]
    pub raw: bool,
}

#[derive(Debug, Args)]
pub struct Show {
    /// A run or task id; without it, the newest run
    pub id: Option<String>,
}

#[derive(Debug, Args)]
pub struct Diff {
    /// A run or task id; without it, the newest run
    pub id: Option<String>,
    /// Only the list of files
    #[arg(long)]
    pub stat: bool,
}

#[derive(Debug, Args)]
pub struct Undo {
    /// The run; without it, the newest
    pub run: Option<String>,
}

#[derive(Debug, Args)]
pub struct Recover {
    /// What to bring back, as the list names it: <task>/<attempt>
    pub id: Option<String>,
    /// Rebuild the journal from what is readable of a damaged one
    #[arg(long, conflicts_with = "id")]
    pub journal: bool,
}

#[derive(Debug, Args)]
pub struct Gc {
    /// Say what would go; remove nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Package caches of agents and commands go too; they fill again
    #[arg(long)]
    pub caches: bool,
    /// Salvaged work older than this many days goes too
    #[arg(long, value_name = "DAYS")]
    pub salvage_older_than: Option<u32>,
}

#[derive(Debug, Args)]
pub struct Demo {
    /// Keep the temporary folder to look around in
    #[arg(long)]
    pub keep: bool,
}

#[derive(Debug, Args)]
pub struct Completions {
    pub shell: clap_complete::Shell,
}
