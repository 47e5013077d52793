//! The one-page report of a run: its outcome, graph, timeline and all agent calls.
//!
//! [`page`] selects and words the content, [`mod@html`] writes it. The page has no script and loads
//! nothing; texts of agents are shown as text or not at all (see [`words`]).

mod attempt;
mod choice;
mod html;
mod iteration;
mod outcome;
#[cfg(test)]
mod tests;
mod timeline;
pub mod words;

pub use choice::{ATTEMPTS_OF_TASK_MAX, CALLS_MAX, REMARKS_MAX, TASKS_MAX, TaskChoice, attempts};
pub use html::html;
pub use words::{Clean, Excerpt};

use super::graph::{self, GraphPicture};
use super::history::{Remark, RunHistory, history};
use super::manifest::{ExecEntry, IterationHistory, Read};
use super::sessions::sessions;
use super::{ExitWord, Standing, count, duration, failure, money, task_word};
use attempt::{ReportAttempt, attempt, tokens};
use autopilot_core::event::Record;
use autopilot_core::id::{TaskId, Time};
use autopilot_core::state::{State, Task};
use iteration::ReportIteration;
use outcome::{ReportOutcome, outcome};
use std::collections::{BTreeMap, BTreeSet};
use timeline::{Timeline, timeline};
use words::{Body, FactRows, PageWords, ReportLine};

/// The most boxes in a graph that can still be told apart.
const GRAPH_NODES_MAX: usize = 150;
/// The most warnings that a page shows.
const WARNINGS_MAX: usize = 200;

/// The facts of a report that the records do not have.
pub struct ReportFacts<'a> {
    pub standing: Standing,
    pub now: Time,
    /// The goal in the words of the user.
    pub goal: Option<String>,
    /// One line on the changes of the branch; none without a branch.
    pub change: Option<String>,
    pub calls: Vec<AgentCall>,
    /// The ways to continue a session, by its id.
    pub ways: BTreeMap<String, ResumeWay>,
    pub version: &'a str,
    pub read: Read<'a>,
    pub clean: Clean<'a>,
}

/// A call of an agent, with its prompt and output.
#[derive(Clone, Debug, Default)]
pub struct AgentCall {
    pub exec: ExecEntry,
    pub duration_ms: Option<u64>,
    /// The session id, as `autopilot sessions` shows it.
    pub session: String,
    pub prompt: Excerpt,
    pub output: Excerpt,
}

/// The command that continues a session, or the reason why none does.
#[derive(Clone, Debug, Default)]
pub struct ResumeWay {
    pub command: Option<String>,
    pub hindrance: Option<String>,
}

/// The colour of a word; the word says the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Good,
    Bad,
    /// Interrupted or blocked.
    Worse,
    Busy,
    Waits,
    Plain,
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Worse => "worse",
            Tone::Busy => "busy",
            Tone::Waits => "waits",
            Tone::Plain => "plain",
        }
    }

    fn of(word: &str) -> Tone {
        match word {
            "DONE" | "succeeded" => Tone::Good,
            "FAILED" | "failed" => Tone::Bad,
            "RUNNING" | "running" => Tone::Busy,
            "BLOCKED" => Tone::Worse,
            _ => Tone::Plain,
        }
    }
}

/// The sources of a page's content.
struct PageSource<'a> {
    state: &'a State,
    known: &'a ReportFacts<'a>,
    history: RunHistory,
    choice: TaskChoice,
    /// Whether a process works on the run, so that attempts without an end are still running.
    is_live: bool,
    words: PageWords<'a>,
}

/// Everything on the page, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportPage {
    title: ReportLine,
    run: ReportLine,
    goal: Option<Body>,
    outcome: ReportOutcome,
    facts: FactRows,
    commands: FactRows,
    /// The iterations of a run towards a goal.
    iterations: Vec<ReportIteration>,
    graph: Option<Drawn>,
    timeline: Timeline,
    tasks: Vec<ReportTask>,
    limits: Vec<Limit>,
    warnings: Vec<ReportLine>,
    remarks: Vec<(String, ReportLine, ReportLine)>,
    /// The parts for which there was no room.
    left_out: Vec<String>,
    written: String,
}

#[derive(Clone, Debug, PartialEq)]
struct Drawn {
    svg: String,
    tally: String,
    /// The number of tasks that are not in the picture.
    more: usize,
}

#[derive(Clone, Debug, PartialEq)]
struct ReportTask {
    id: TaskId,
    name: ReportLine,
    title: ReportLine,
    word: &'static str,
    tone: Tone,
    why: Option<ReportLine>,
    facts: FactRows,
    notes: Vec<ReportLine>,
    attempts: Vec<ReportAttempt>,
    /// The number of earlier attempts, which are not shown.
    before: usize,
}

#[derive(Clone, Debug, PartialEq)]
struct Limit {
    what: &'static str,
    used: String,
    max: String,
    is_hit: bool,
}

/// Selects and words the content of a run's report.
pub fn page(state: &State, records: &[Record], known: &ReportFacts<'_>) -> ReportPage {
    let source = PageSource {
        state,
        known,
        history: history(records),
        choice: TaskChoice::of(state),
        is_live: matches!(known.standing, Standing::Live { .. }),
        words: PageWords::new(known.clean),
    };
    let words = &source.words;
    let mut goal = IterationHistory::default();
    records.iter().for_each(|record| goal.record(record));
    let has_iterations = state.run.flow.has_iterations();
    // Longer texts get their room on the page in the order in which they are made here.
    let iterations = match has_iterations {
        true => iteration::all(&source, &goal, &sessions(&state.run.id, records)),
        false => Vec::new(),
    };
    let picture = (!has_iterations).then(|| GraphPicture::of_run(state));
    let graph = picture.and_then(|graph| drawn(&source, &graph, "g0", &source.choice));
    let tasks: Vec<ReportTask> =
        source.choice.tasks.iter().map(|id| report_task(&source, state.task(*id))).collect();
    let warnings = goal.warnings();
    ReportPage {
        title: words.cut_line(&state.run.title, 200),
        run: words.line(&state.run.id),
        goal: known.goal.as_deref().map(|goal| words.text(goal)),
        outcome: outcome(&source),
        facts: facts(&source),
        commands: commands(&source),
        iterations,
        graph,
        timeline: timeline(&source, records),
        limits: limits(state),
        warnings: words.lines(warnings.iter().take(WARNINGS_MAX)),
        remarks: remarks(&source),
        left_out: left_out(&source, warnings.len(), &tasks),
        tasks,
        written: format!("Written {} by autopilot {}.", known.now.rfc3339(), known.version),
    }
}

fn facts(source: &PageSource<'_>) -> FactRows {
    let (state, run) = (source.state, &source.state.run);
    let end = state.root().and_then(|root| root.ended_at).filter(|_| state.end().is_some());
    let base: String = run.base.chars().take(12).collect();
    source.words.rows([
        ("run", Some(run.id.clone())),
        ("flow", Some(run.flow.word().to_owned())),
        ("source", Some(run.source.clone())),
        ("started by", Some(run.started_by.clone())),
        ("started", Some(run.started_at.rfc3339())),
        ("ended", end.map(Time::rfc3339)),
        ("last change", end.is_none().then(|| run.moved_at.rfc3339())),
        ("time worked", Some(duration(run.active_ms))),
        ("cost", Some(money::cost_of_run(state))),
        ("tokens", Some(tokens(run.spent.tokens_in, run.spent.tokens_out))),
        ("branch", Some(format!("{} from {} at {base}", run.branch, run.base_branch))),
        ("pull request", super::state_json::pull_request(state).map(str::to_owned)),
        ("used", super::used(state).line()),
    ])
}

fn commands(source: &PageSource<'_>) -> FactRows {
    let (state, standing) = (source.state, source.known.standing);
    let (branch, base) = (shell_word(&state.run.branch), shell_word(&state.run.base_branch));
    let change = &source.known.change;
    let exit = ExitWord::of(state);
    let is_over = standing == Standing::Over;
    let is_done = matches!(exit, ExitWord::Done | ExitWord::PushFailed);
    let has_failed = matches!(exit, ExitWord::Failed | ExitWord::NotConverged);
    let rests = matches!(standing, Standing::Rests | Standing::Interrupted);
    let can_merge = change.is_some() && is_done && is_over;
    source.words.rows([
        ("changes", change.clone()),
        ("view", change.is_some().then(|| format!("git diff {base}...{branch}"))),
        ("merge", can_merge.then(|| format!("git merge {branch}"))),
        ("details", Some(format!("autopilot show {}", state.run.id))),
        ("resume", rests.then(|| "autopilot resume".to_owned())),
        ("retry", (is_over && has_failed).then(|| "autopilot retry".to_owned())),
    ])
}

/// The text as one word of a shell command.
fn shell_word(text: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '@' | '+');
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn drawn(
    source: &PageSource<'_>,
    graph: &GraphPicture,
    name: &str,
    choice: &TaskChoice,
) -> Option<Drawn> {
    if graph.nodes.is_empty() {
        return None;
    }
    let shown: BTreeSet<&str> = choice
        .tasks
        .iter()
        .map(|id| source.state.task(*id))
        .filter(|task| task.children.is_empty())
        .map(Task::name)
        .take(GRAPH_NODES_MAX)
        .collect();
    let mut part = graph.only(|node| shown.contains(node.id.as_str()));
    let more = graph.nodes.len() - part.nodes.len();
    let tally = graph.tally();
    part.for_each_text(|text| *text = source.words.cut_line(text, 200).as_str().to_owned());
    Some(Drawn { svg: graph::svg_part(&part, name), tally, more })
}

fn report_task(source: &PageSource<'_>, task: &Task) -> ReportTask {
    let (words, bill) = (&source.words, task.spent.bill);
    let is_root = task.parent.is_none();
    let (shown, before) = attempts(&source.history.attempts, task.id);
    let after = &task.spec.depends_on;
    let word = task_word(task);
    ReportTask {
        id: task.id,
        name: words.task_name(task, "the run itself"),
        title: words.cut_line(if is_root { "" } else { &task.spec.title }, 200),
        word,
        tone: Tone::of(word),
        why: failure(task).map(|why| words.line(&why.to_string())),
        facts: words.rows([
            ("iterations", Some(task.round.to_string())),
            ("attempts", Some(task.spent.attempts.to_string())),
            ("time worked", Some(duration(task.spent.work_ms))),
            ("cost", Some(money::cost_of_task(source.state, task))),
            ("tokens", Some(tokens(bill.tokens_in, bill.tokens_out))),
            ("commit", task.commit.clone()),
            ("after", (!after.is_empty()).then(|| after.join(", "))),
        ]),
        notes: words.lines(crate::notes(task)),
        attempts: shown.into_iter().map(|tried| attempt(source, tried)).collect(),
        before,
    }
}

fn limits(state: &State) -> Vec<Limit> {
    let (run, limits) = (&state.run, &state.run.limits);
    let most = |of: fn(&Task) -> u64| state.tasks.iter().map(of).max().unwrap_or(0);
    let rounds = match run.flow.has_iterations() {
        true => state.root().map_or(0, |root| u64::from(root.rounds_used())),
        false => most(|task| u64::from(task.rounds_used())),
    };
    let limit = |what, used: String, max: String, is_hit| Limit { what, used, max, is_hit };
    let number = |what, used: u64, max: u32| {
        limit(what, used.to_string(), max.to_string(), used >= u64::from(max))
    };
    let time = |what, used, max| limit(what, duration(used), duration(max), used >= max);
    let retries = most(|task| u64::from(task.spent.retries_all));
    let interruptions = most(|task| u64::from(task.spent.interruptions));
    let mut rows = vec![
        number("iterations (highest of any task)", rounds, limits.rounds_max),
        number("retries (highest of any task)", retries, limits.retries_max),
        number("interruptions (highest of any task)", interruptions, limits.interruptions_max),
    ];
    if let Some(max) = limits.usd_max {
        let is_hit = run.spent.counted() >= max;
        rows.push(limit("money", money::cost_of_run(state), max.to_string(), is_hit));
    }
    if let Some(max) = limits.usd_per_task_max {
        let most = state.tasks.iter().map(|task| task.spent.bill);
        let most = most.max_by_key(|bill| bill.counted()).unwrap_or_default();
        let what = "money per task (highest of any task)";
        rows.push(limit(what, money::cost(most), max.to_string(), most.counted() >= max));
    }
    rows.extend(limits.wall_max_ms.map(|max| time("time worked", run.active_ms, max)));
    let waited = most(|task| task.spent.waited_ms);
    if waited > 0 {
        let what = "time waiting for an account (highest of any task)";
        rows.push(time(what, waited, limits.wait_quota_max_ms));
    }
    rows
}

fn remarks(source: &PageSource<'_>) -> Vec<(String, ReportLine, ReportLine)> {
    let (words, remarks) = (&source.words, &source.history.remarks);
    let before = remarks.len().saturating_sub(REMARKS_MAX);
    let row = |remark: &Remark| {
        let task = remark.task.map(|id| words.task_name(source.state.task(id), "the run"));
        let whose = task.unwrap_or_else(|| ReportLine::own("the run"));
        (remark.at.rfc3339(), whose, words.line(&remark.text))
    };
    remarks[before..].iter().map(row).collect()
}

fn left_out(source: &PageSource<'_>, warnings: usize, tasks: &[ReportTask]) -> Vec<String> {
    let attempts: usize = tasks.iter().map(|told| told.before).sum();
    let remarks = source.history.remarks.len().saturating_sub(REMARKS_MAX);
    let parts = [
        (
            source.choice.left_out,
            "task",
            " that succeeded or were not started; see `autopilot status --json`.",
        ),
        (attempts, "earlier attempt", " of the tasks shown; see `autopilot show`."),
        (remarks, "earlier event", "; see `autopilot show`."),
        (warnings.saturating_sub(WARNINGS_MAX), "warning", "; see manifest.json."),
    ];
    let parts = parts.into_iter().filter(|(number, ..)| *number > 0);
    let mut lines: Vec<String> =
        parts.map(|(number, what, rest)| format!("{}{rest}", count(number, what))).collect();
    if source.known.calls.len() >= CALLS_MAX {
        lines.push(format!(
            "Agent calls after the first {CALLS_MAX} of the tasks shown; their files are in \
             .autopilot/artifacts."
        ));
    }
    lines
}
