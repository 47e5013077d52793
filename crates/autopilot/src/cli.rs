//! The command line: its commands and options, as clap reads them. [`crate::command`] does the work.

mod inspect;

pub use inspect::{
    Completions, Cost, CostBy, Gc, GraphArgs, GraphFormat, LogStreamArg, Logs, Recover, Replay,
    ReportArgs, Runs, TaskCommand, TaskLint, TaskNew, VerifyArgs,
};

use camino::{Utf8Path, Utf8PathBuf};
use clap::{Args, Parser, Subcommand};

/// Take a goal, a task or a plan to merged, proven code with coding agents, unattended
#[derive(Debug, Parser)]
#[command(
    name = "autopilot",
    version,
    about,
    long_about = None,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    override_usage = "autopilot [OPTIONS] <COMMAND>\n       autopilot [OPTIONS] \"<GOAL OF SEVERAL WORDS>\" [OPTIONS OF goal]",
    after_help = "Start with `autopilot init`, write a task file, then run `autopilot run tasks/x.md`.\n\
                  `autopilot \"Fix the login\"` is short for `autopilot goal \"Fix the login\"`; a single word is\n\
                  always a command.\n\
                  `autopilot demo` shows how it works in a temporary folder.\n\n\
                  Exit codes: 0 done, 2 paused or stopped (resumable), 10 failed, 11 did not converge,\n\
                  12 push failed, 64 usage, 78 configuration. In a repository without runs, commands that\n\
                  list or sum up succeed (0), and commands about a run or a task are usage errors (64)."
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Clone, Debug, Args)]
pub struct Global {
    /// Work in this repository instead of the current directory; paths in the other arguments are
    /// relative to it too, as with git
    #[arg(short = 'C', long = "repo", value_name = "DIR", global = true)]
    #[arg(default_value = ".", hide_default_value = true)]
    pub repo: Utf8PathBuf,
    /// Print JSON, if the command supports it
    #[arg(long, global = true)]
    pub json: bool,
    /// Print only state changes and the outcome
    #[arg(long, short = 'q', global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Stream the output of steps while they run
    #[arg(long, short = 'v', global = true)]
    pub verbose: bool,
    /// Print plain lines instead of the live dashboard
    #[arg(long, global = true)]
    pub no_ui: bool,
}

impl Global {
    /// Returns a path of the command line, relative to the directory of -C if there is one.
    pub fn path(&self, given: &Utf8Path) -> Utf8PathBuf {
        if self.repo == "." { given.to_owned() } else { self.repo.join(given) }
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Set up a repository: configuration, schemas and a task template
    Init(Init),
    /// Run a task file, a plan, or a directory of task files with --queue
    Run(RunArgs),
    /// Reach a goal (same as `autopilot "text of several words"`): plan a workflow, run its steps
    /// with agents, and repeat until the goal is met
    Goal(GoalArgs),
    /// Resume the unfinished run, or continue an agent session
    Resume(Resume),
    /// Show the state of the run
    Status {
        /// Refresh until the run has ended
        #[arg(long, short = 'w')]
        watch: bool,
    },
    /// Stop the run after its current steps
    Stop {
        /// Stop at once instead of after the current steps
        #[arg(long)]
        now: bool,
    },
    /// Pause the run before its next step
    Pause,
    /// Cancel a pause
    Unpause,
    /// Retry a failed task, or the run's own failed step
    Retry(Retry),
    /// Skip a task
    Skip(OneTask),
    /// Approve the plan or result the run is waiting on
    Approve(Approve),
    /// Reject the plan or result the run is waiting on, with a reason
    Reject(Reject),
    /// List the runs of this repository, or summarize them with --stats
    Runs(Runs),
    /// Show the money and tokens that runs have cost, by step, task, run, day, agent or model
    Cost(Cost),
    /// List the agent sessions of a run, and how to continue each
    Sessions {
        /// Run id or its beginning [default: the newest run]
        run: Option<String>,
    },
    /// Watch the agent that works on a task, and send it messages
    Attach(Attach),
    /// Replay a run offline from its recording, and report decisions that differ
    Replay(Replay),
    /// Write a one-page HTML report of a run: outcome, graph, timeline, prompts, answers, costs
    Report(ReportArgs),
    /// Draw the tasks of a run or a plan and their dependencies
    Graph(GraphArgs),
    /// Create, list and check task files
    Task {
        #[command(subcommand)]
        command: TaskCommand,
    },
    /// Print the logs of the controller or of a task
    Logs(Logs),
    /// Show a run or a task in full: steps, results, evidence
    Show {
        /// Run or task id [default: the newest run]
        id: Option<String>,
    },
    /// Check the evidence of merged commits: their notes against git and, if it is here, the journal
    Verify(VerifyArgs),
    /// List the skills agents can use
    Skills,
    /// Show what a run or a task changed
    Diff {
        /// Run or task id [default: the newest run]
        id: Option<String>,
        /// Show only the list of files
        #[arg(long)]
        stat: bool,
    },
    /// Remove the branches of a run from the repository (the state directory keeps a copy)
    Undo {
        /// Run id or its beginning [default: the newest run]
        run: Option<String>,
    },
    /// List work that was saved outside of branches, or restore a piece of it
    Recover(Recover),
    /// Remove what is no longer needed: worktrees, old salvaged work, old sessions, caches
    Gc(Gc),
    /// Check this machine for what autopilot needs, and say how to get what is missing
    Doctor,
    /// Run a small sample project in a temporary folder; needs no account
    Demo {
        /// Keep the temporary folder to look around in
        #[arg(long)]
        keep: bool,
    },
    /// Print shell completions
    Completions(Completions),
}

#[derive(Debug, Args)]
pub struct Init {
    /// Test command to configure [default: detected from the project]
    #[arg(long, value_name = "COMMAND")]
    pub tests: Option<String>,
    /// Agent for all roles [default: those that are installed and logged in]
    #[arg(long, value_name = "AGENT", value_parser = agent_names())]
    pub agent: Option<String>,
    /// Also write the built-in skills to .claude/skills and .codex/skills; keep files you changed
    #[arg(long)]
    pub skills: bool,
}

/// The agents that need no settings of their own.
fn agent_names() -> clap::builder::PossibleValuesParser {
    autopilot_core::config::KINDS.map(|(name, _)| name).into()
}

/// A number of iterations, at most as many as a task or a goal may ever have.
fn iterations() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(autopilot_core::limit::ROUNDS_LIFETIME_MAX))
}

#[derive(Clone, Debug, Default, Args)]
pub struct LimitArgs {
    /// Maximum number of iterations of a task
    #[arg(long, value_name = "N", value_parser = iterations())]
    pub max_iterations: Option<u32>,
    /// Maximum cost of the run
    #[arg(long, value_name = "USD")]
    pub max_usd: Option<f64>,
    /// Maximum cost of one task
    #[arg(long, value_name = "USD")]
    pub max_usd_per_task: Option<f64>,
    /// Maximum working time of the run, such as 90m or 6h
    #[arg(long, value_name = "TIME")]
    pub max_wall: Option<String>,
    /// Maximum number of tasks in parallel
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub max_workers: Option<u32>,
}

/// The options of every command that starts a run.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// Push the branch when everything is done
    #[arg(long)]
    pub push: bool,
    /// Give up the unfinished run (its work is salvaged) and start this one
    #[arg(long)]
    pub fresh: bool,
    /// Run although the tests fail on the base; only new failures count
    #[arg(long)]
    pub allow_red_base: bool,
    /// Prove the base although an earlier run proved it
    #[arg(long)]
    pub prove_base: bool,
    /// Show prompts, commands and limits; start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Wait when paused instead of exiting with 2
    #[arg(long)]
    pub wait: bool,
}

/// The options of a run of files that a goal does not have.
#[derive(Debug, Default, Args)]
pub struct PlanArgs {
    /// Push the branch, and open or update its pull request
    #[arg(long)]
    pub pr: bool,
    /// Make the plan and stop; `autopilot approve`, or a run without this option, carries it out
    #[arg(long, conflicts_with = "queue")]
    pub plan_only: bool,
    /// Open the plan in $EDITOR before it is carried out
    #[arg(long, conflicts_with_all = ["queue", "plan_only", "dry_run"])]
    pub edit: bool,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// Task file (`# Task: …`) or plan (`# Plan: …`, plan.md)
    #[arg(value_name = "FILE", required_unless_present_any = ["queue", "from"])]
    pub path: Option<Utf8PathBuf>,
    /// Run all task files of a directory, one after the other, in order of name
    #[arg(long, value_name = "DIR", conflicts_with = "path")]
    pub queue: Option<Utf8PathBuf>,
    /// Only files of the queue whose name matches
    #[arg(long, value_name = "GLOB", requires = "queue")]
    pub pattern: Option<String>,
    /// Use this plan (plan.json) instead of asking the planner for one
    #[arg(long, value_name = "PLAN", conflicts_with = "queue")]
    pub from: Option<Utf8PathBuf>,
    #[command(flatten)]
    pub plan: PlanArgs,
    #[command(flatten)]
    pub start: StartArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
}

#[derive(Debug, Args)]
pub struct GoalArgs {
    /// The goal to reach
    #[arg(value_name = "TEXT")]
    pub text: String,
    /// Agent that plans workflows, does steps and reviews the result: claude, codex, builder,
    /// reviewer, planner, or a name under `agents` in the configuration
    #[arg(long, value_name = "NAME")]
    pub adapter: Option<String>,
    /// Model to use instead of the configured ones
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Maximum number of workflows [default: 4]
    #[arg(long, value_name = "N", value_parser = iterations())]
    pub max_iterations: Option<u32>,
    /// Maximum number of steps in parallel
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub concurrency: Option<u32>,
    /// Turn off the agents' own permission checks; the sandbox still applies
    #[arg(long = "unsafe")]
    pub is_unsafe: bool,
    /// Skip steps that depend on a failed step, instead of running them without it
    #[arg(long)]
    pub fail_fast: bool,
    /// Write the run's files to <DIR>/<run-id> [default: runs/autopilot in the repository]
    #[arg(long, value_name = "DIR")]
    pub out: Option<Utf8PathBuf>,
    #[command(flatten)]
    pub start: StartArgs,
    /// Maximum cost of the run
    #[arg(long, value_name = "USD")]
    pub max_usd: Option<f64>,
    /// Maximum working time of the run, such as 90m or 6h
    #[arg(long, value_name = "TIME")]
    pub max_wall: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The session of a goal's workflow step continues that step: the agent's new answer \
                        and changes\nreplace the step's result, and then the run stops. \
                        `autopilot resume` continues the run from there,\neven if it had ended.\n\n\
                        Any other session, or any session with --read-only, continues outside of the \
                        run: nothing is\nmerged, and the agent's changes go to a separate branch.\n\n\
                        Of the limits, only --max-usd and --max-usd-per-task apply to a session."
)]
pub struct Resume {
    /// Continue this session instead of the run; `autopilot sessions` lists them
    #[arg(value_name = "SESSION", requires = "prompt", conflicts_with = "wait")]
    pub session: Option<String>,
    /// Message to the session's agent, such as "Try a different approach"
    #[arg(long, value_name = "TEXT", requires = "session")]
    pub prompt: Option<String>,
    /// Let the session's agent read and answer, but change nothing
    #[arg(long, requires = "session")]
    pub read_only: bool,
    /// Model all agents use from now on, instead of the configured ones
    #[arg(long, value_name = "MODEL", conflicts_with = "session")]
    pub model: Option<String>,
    /// Show where the run would resume; start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Wait when paused instead of exiting with 2
    #[arg(long)]
    pub wait: bool,
    #[command(flatten)]
    pub limits: LimitArgs,
}

#[derive(Debug, Args)]
pub struct Retry {
    /// Task id, as `autopilot status` shows it [default: the run's own failed step]
    pub task: Option<String>,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Wait when paused instead of exiting with 2
    #[arg(long)]
    pub wait: bool,
}

#[derive(Debug, Args)]
pub struct OneTask {
    /// Task id, as `autopilot status` shows it
    pub task: String,
    /// Wait when paused instead of exiting with 2
    #[arg(long)]
    pub wait: bool,
}

#[derive(Debug, Args)]
pub struct Approve {
    /// Open the plan in $EDITOR first, and approve the edited plan
    #[arg(long)]
    pub edit: bool,
    /// Wait when paused instead of exiting with 2
    #[arg(long)]
    pub wait: bool,
}

#[derive(Debug, Args)]
pub struct Reject {
    /// What is wrong with it; the planner gets to read this
    pub why: String,
    /// Wait when paused instead of exiting with 2
    #[arg(long)]
    pub wait: bool,
}

#[derive(Debug, Args)]
pub struct Attach {
    /// Task id, or `run` for the planner of the run itself
    pub task: String,
    /// Send this message to the agent and leave
    #[arg(long, short = 'm', value_name = "TEXT")]
    pub message: Option<String>,
    /// Ask the agent to end its turn now
    #[arg(long, conflicts_with = "message")]
    pub interrupt: bool,
}
