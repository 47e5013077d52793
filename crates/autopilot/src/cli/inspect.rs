//! The arguments of commands that look at runs and files and of housekeeping.

use camino::Utf8PathBuf;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
pub struct Replay {
    /// Run id or its beginning [default: the newest run]
    pub run: Option<String>,
    /// Keep the folder of the replay
    #[arg(long)]
    pub keep: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "In CI, fetch the notes and check the commit that was built:\n  \
                        git fetch origin refs/notes/autopilot:refs/notes/autopilot && autopilot verify HEAD\n\n\
                        Exit codes: 0 the evidence holds, 1 it does not, 2 it can't be checked (no note, or a \
                        clone\nwithout the history), 64 no such commit or run. Without the journal of the \
                        run, evidence that\nholds is consistent, and no more.")]
pub struct VerifyArgs {
    /// Commit, branch, or run id [default: the newest run, or HEAD where there are no runs]
    #[arg(value_name = "COMMIT|RUN")]
    pub id: Option<String>,
    /// Also run the commands of the note again, in a fresh checkout of the commit
    #[arg(long)]
    pub rerun: bool,
}

#[derive(Debug, Args)]
pub struct Runs {
    /// Maximum number of runs, newest first [default: 20; with --stats 1000]
    #[arg(long, short = 'n', value_parser = clap::value_parser!(u32).range(1..))]
    pub number: Option<u32>,
    /// Summarize the runs: outcomes, iterations, time, cost
    #[arg(long)]
    pub stats: bool,
    /// Only runs started since then: 12h, 7d, or a day such as 2026-01-31 (UTC)
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
}

/// What costs are summed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CostBy {
    Step,
    Task,
    Run,
    /// The day (UTC) on which the cost was reported
    Day,
    /// The agent's mode
    Agent,
    /// The model as configured
    Model,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Without arguments: the newest run by task and step, then today and the last \
                        7 days of all runs.\nCosts an agent didn't report are shown as unknown \
                        and are not part of any sum."
)]
pub struct Cost {
    /// Run id or its beginning [default: the newest run; all runs with --by or --since]
    pub run: Option<String>,
    /// Sum up costs by this
    #[arg(long, value_enum)]
    pub by: Option<CostBy>,
    /// Only costs since then: 12h, 7d, or a day such as 2026-01-31 (UTC)
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The page is one file without scripts that loads nothing: it opens from disk and \
                        can be sent.\nSecrets are hidden in it as in logs. Without --out it is \
                        written next to the other files of the run.\nThe command prints its path; \
                        with --json an object: run_id, path (absolute), bytes.\n`--out -` prints \
                        the page itself and can't be combined with --json."
)]
pub struct ReportArgs {
    /// Run id or its beginning [default: the newest run]
    pub run: Option<String>,
    /// Write the page to this file; `-` prints it
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: Option<Utf8PathBuf>,
}

/// How a graph is drawn.
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
    /// Run id or its beginning [default: the newest run]
    pub run: Option<String>,
    /// Draw a plan file (JSON) instead of a run
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    pub plan: Option<Utf8PathBuf>,
    /// Output format [default: by the file name of --out, else text]
    #[arg(long, short = 'f', value_enum)]
    pub format: Option<GraphFormat>,
    /// Write the graph to this file instead of printing it
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: Option<Utf8PathBuf>,
    /// List every task of every level in the text format, however many
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Subcommand)]
pub enum TaskCommand {
    /// Create a task file with today's date from the template; never overwrite one
    New(TaskNew),
    /// List the task files: id, last known state, title
    List {
        /// Directory to look in [default: tasks in the repository]
        #[arg(long, value_name = "DIR")]
        dir: Option<Utf8PathBuf>,
    },
    /// Check task files; exit with 10 if one is invalid
    Lint(TaskLint),
}

#[derive(Debug, Args)]
pub struct TaskNew {
    /// Title of the task
    pub title: String,
    /// Directory to write to [default: tasks in the repository]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<Utf8PathBuf>,
    /// Template file [default: TEMPLATE.md in the directory]
    #[arg(long, value_name = "FILE")]
    pub template: Option<Utf8PathBuf>,
    /// Open the new file in $VISUAL or $EDITOR
    #[arg(long, short = 'e')]
    pub edit: bool,
}

#[derive(Debug, Args)]
pub struct TaskLint {
    /// Task files, or directories of them
    #[arg(value_name = "FILE")]
    pub files: Vec<Utf8PathBuf>,
    /// Check every task file of this directory [default: tasks in the repository]
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    pub dir: Option<Utf8PathBuf>,
}

/// A stream of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogStreamArg {
    Controller,
    Builder,
    Reviewer,
    Validation,
}

#[derive(Debug, Args)]
pub struct Logs {
    /// Task id, or `run` for the checks of the run itself [default: the controller's own log]
    pub task: Option<String>,
    /// Print only this stream
    #[arg(long, value_enum)]
    pub stream: Option<LogStreamArg>,
    /// Print only the last lines
    #[arg(long, short = 'n', value_name = "LINES")]
    pub tail: Option<usize>,
    /// Keep printing as the log grows
    #[arg(long, short = 'f')]
    pub follow: bool,
    /// Print raw agent output
    #[arg(long)]
    pub raw: bool,
}

#[derive(Debug, Args)]
pub struct Recover {
    /// Work to restore, as the list names it: <task>/<attempt>
    pub id: Option<String>,
    /// Rebuild a damaged journal from what can still be read of it, or empty if nothing can; the
    /// damaged file is kept
    #[arg(long, conflicts_with = "id")]
    pub journal: bool,
    /// Take the state directory again that belongs to this repository, whose id is gone
    #[arg(long, conflicts_with_all = ["id", "journal"])]
    pub state: bool,
}

#[derive(Debug, Args)]
pub struct Gc {
    /// Show what would be removed; remove nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Also remove package caches and what the base built for warm gates; they fill again
    #[arg(long)]
    pub caches: bool,
    /// Also remove files that were too large to be captured (worktrees.bytes_max, files_max)
    #[arg(long)]
    pub oversize: bool,
    /// Also remove salvaged work older than this many days
    #[arg(long, value_name = "DAYS")]
    pub salvage_older_than: Option<u32>,
}

#[derive(Debug, Args)]
pub struct Completions {
    pub shell: clap_complete::Shell,
}
