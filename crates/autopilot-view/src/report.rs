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
use super::history::{RunHistory, history};
use super::manifest::{ExecEntry, IterationHistory, Read};
use super::sessions::sessions;
use super::{ExitWord, Standing, duration, failure, money, task_word};
use attempt::{ReportAttempt, attempt, tokens};
use autopilot_core::event::Record;
use autopilot_core::id::{TaskId, Time};
use autopilot_core::state::{State, Task};
use iteration::ReportIteration;
use outcome::{ReportOutcome, count, outcome};
use std::collections::{BTreeMap, BTreeSet};
use timeline::{Timeline, timeline};
use words::{Body, PageWords, ReportLine};

/// The number of boxes in a graph that can still be told apart.
const GRAPH_NODES_MAX: usize = 150;
/// The number of warnings on the page.
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

/// Everything on the page, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportPage {
    title: ReportLine,
    run: ReportLine,
    goal: Option<Body>,
    outcome: ReportOutcome,
    facts: Vec<(&'static str, ReportLine)>,
    commands: Vec<(&'static str, ReportLine)>,
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
    facts: Vec<(&'static str, ReportLine)>,
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
    let words = PageWords::new(known.clean);
    let history = history(records);
    let choice = TaskChoice::of(state);
    let is_live = matches!(known.standing, Standing::Live { .. });
    let until = if is_live { known.now } else { state.at };
    let mut goal = IterationHistory::default();
    records.iter().for_each(|record| goal.record(record));
    let has_iterations = state.run.flow.has_iterations();
    let outcome = outcome(state, known, &words);
    let iterations = if has_iterations {
        let sessions = sessions(&state.run.id, records);
        iteration::all(state, &goal, &sessions, known, &words)
    } else {
        Vec::new()
    };
    let timeline = timeline(state, &history.attempts, records, &choice, until, is_live, &words);
    let graph = (!has_iterations)
        .then(|| drawn(&GraphPicture::of_run(state), "g0", &choice, state, &words));
    let told = |id: &TaskId| told(state.task(*id), &history, known, is_live, &words);
    let tasks: Vec<ReportTask> = choice.tasks.iter().map(told).collect();
    let warnings = goal.warnings();
    ReportPage {
        title: words.cut_line(&state.run.title, 200),
        run: words.line(&state.run.id),
        goal: known.goal.as_deref().map(|goal| words.text(goal)),
        outcome,
        facts: facts(state, &words),
        commands: commands(state, known, &words),
        iterations,
        graph: graph.flatten(),
        timeline,
        limits: limits(state),
        warnings: words.lines(warnings.iter().take(WARNINGS_MAX)),
        remarks: remarks(state, &history, &words),
        left_out: left_out(&choice, &history, warnings.len(), known, &tasks),
        tasks,
        written: format!("Written {} by autopilot {}.", known.now.rfc3339(), known.version),
    }
}

fn facts(state: &State, words: &PageWords<'_>) -> Vec<(&'static str, ReportLine)> {
    let run = &state.run;
    let mut rows = Vec::new();
    let mut row = |name: &'static str, value: String| rows.push((name, words.line(&value)));
    row("run", run.id.clone());
    row("flow", run.flow.word().to_owned());
    row("source", run.source.clone());
    row("started by", run.started_by.clone());
    row("started", run.started_at.rfc3339());
    match state.root().and_then(|root| root.ended_at).filter(|_| state.end().is_some()) {
        Some(at) => row("ended", at.rfc3339()),
        None => row("last change", run.moved_at.rfc3339()),
    }
    row("time worked", duration(run.active_ms));
    row("cost", money::cost(run.spent));
    row("tokens", tokens(run.spent.tokens_in, run.spent.tokens_out));
    let base: String = run.base.chars().take(12).collect();
    row("branch", format!("{} from {} at {base}", run.branch, run.base_branch));
    if let Some(url) = super::state_json::pull_request(state) {
        row("pull request", url.to_owned());
    }
    if let Some(used) = super::used(state).line() {
        row("used", used);
    }
    rows
}

fn commands(
    state: &State,
    known: &ReportFacts<'_>,
    words: &PageWords<'_>,
) -> Vec<(&'static str, ReportLine)> {
    let (branch, base) = (shell_word(&state.run.branch), shell_word(&state.run.base_branch));
    let mut rows = Vec::new();
    let mut row = |name: &'static str, value: String| rows.push((name, words.line(&value)));
    if let Some(change) = &known.change {
        row("changes", change.clone());
        row("view", format!("git diff {base}...{branch}"));
        let is_done = matches!(ExitWord::of(state), ExitWord::Done | ExitWord::PushFailed);
        if is_done && known.standing == Standing::Over {
            row("merge", format!("git merge {branch}"));
        }
    }
    row("details", format!("autopilot show {}", state.run.id));
    match known.standing {
        Standing::Rests | Standing::Interrupted => row("resume", "autopilot resume".to_owned()),
        Standing::Over
            if matches!(ExitWord::of(state), ExitWord::Failed | ExitWord::NotConverged) =>
        {
            row("retry", "autopilot retry".to_owned());
        }
        Standing::Over | Standing::Live { .. } | Standing::Abandoned => {}
    }
    rows
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
    graph: &GraphPicture,
    name: &str,
    choice: &TaskChoice,
    state: &State,
    words: &PageWords<'_>,
) -> Option<Drawn> {
    if graph.nodes.is_empty() {
        return None;
    }
    let shown: BTreeSet<&str> = choice
        .tasks
        .iter()
        .map(|id| state.task(*id))
        .filter(|task| task.children.is_empty())
        .map(Task::name)
        .take(GRAPH_NODES_MAX)
        .collect();
    let mut part = graph.only(|node| shown.contains(node.id.as_str()));
    let more = graph.nodes.len() - part.nodes.len();
    let tally = graph.tally();
    part.for_each_text(|text| *text = words.cut_line(text, 200).as_str().to_owned());
    Some(Drawn { svg: graph::svg_part(&part, name), tally, more })
}

fn told(
    task: &Task,
    history: &RunHistory,
    known: &ReportFacts<'_>,
    is_live: bool,
    words: &PageWords<'_>,
) -> ReportTask {
    let is_root = task.parent.is_none();
    let (shown, before) = attempts(&history.attempts, task.id);
    let mut facts = vec![
        ("iterations", words.line(&task.round.to_string())),
        ("attempts", words.line(&task.spent.attempts.to_string())),
        ("time worked", words.line(&duration(task.spent.work_ms))),
        ("cost", words.line(&money::cost(task.spent.bill))),
        ("tokens", words.line(&tokens(task.spent.bill.tokens_in, task.spent.bill.tokens_out))),
    ];
    facts.extend(task.commit.as_deref().map(|commit| ("commit", words.line(commit))));
    if !task.spec.depends_on.is_empty() {
        facts.push(("after", words.line(&task.spec.depends_on.join(", "))));
    }
    let word = task_word(task);
    ReportTask {
        id: task.id,
        name: if is_root { ReportLine::own("the run itself") } else { words.line(task.name()) },
        title: words.cut_line(if is_root { "" } else { &task.spec.title }, 200),
        word,
        tone: Tone::of(word),
        why: failure(task).map(|why| words.line(&why.to_string())),
        facts,
        notes: words.lines(&task.notes),
        attempts: shown.into_iter().map(|tried| attempt(tried, known, is_live, words)).collect(),
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
    let number = |what, used: u64, max: u64| Limit {
        what,
        used: used.to_string(),
        max: max.to_string(),
        is_hit: used >= max,
    };
    let mut rows = vec![
        number("iterations (highest of any task)", rounds, u64::from(limits.rounds_max)),
        number(
            "retries (highest of any task)",
            most(|task| u64::from(task.spent.retries_all)),
            u64::from(limits.retries_max),
        ),
        number(
            "interruptions (highest of any task)",
            most(|task| u64::from(task.spent.interruptions)),
            u64::from(limits.interruptions_max),
        ),
    ];
    if let Some(max) = limits.usd_max {
        let (used, is_hit) = (money::cost(run.spent), run.spent.usd >= max);
        rows.push(Limit { what: "money", used, max: max.to_string(), is_hit });
    }
    if let Some(max) = limits.usd_per_task_max {
        let most = state.tasks.iter().map(|task| task.spent.bill.usd).max().unwrap_or_default();
        let what = "money per task (highest of any task)";
        rows.push(Limit {
            what,
            used: most.to_string(),
            max: max.to_string(),
            is_hit: most >= max,
        });
    }
    if let Some(max) = limits.wall_max_ms {
        let (used, is_hit) = (duration(run.active_ms), run.active_ms >= max);
        rows.push(Limit { what: "time worked", used, max: duration(max), is_hit });
    }
    let waited = most(|task| task.spent.waited_ms);
    if waited > 0 {
        let max = limits.wait_quota_max_ms;
        rows.push(Limit {
            what: "time waiting for an account (highest of any task)",
            used: duration(waited),
            max: duration(max),
            is_hit: waited >= max,
        });
    }
    rows
}

fn remarks(
    state: &State,
    history: &RunHistory,
    words: &PageWords<'_>,
) -> Vec<(String, ReportLine, ReportLine)> {
    let before = history.remarks.len().saturating_sub(REMARKS_MAX);
    let whose = |id: Option<TaskId>| match id.map(|id| state.task(id)) {
        Some(task) if task.parent.is_some() => words.line(task.name()),
        Some(_) | None => ReportLine::own("the run"),
    };
    let row = |remark: &super::history::Remark| {
        (remark.at.rfc3339(), whose(remark.task), words.line(&remark.text))
    };
    history.remarks[before..].iter().map(row).collect()
}

fn left_out(
    choice: &TaskChoice,
    history: &RunHistory,
    warnings: usize,
    known: &ReportFacts<'_>,
    tasks: &[ReportTask],
) -> Vec<String> {
    let mut lines = Vec::new();
    if choice.left_out > 0 {
        lines.push(format!(
            "{} that succeeded or were not started; see `autopilot status --json`.",
            count(choice.left_out, "task")
        ));
    }
    let attempts: usize = tasks.iter().map(|told| told.before).sum();
    if attempts > 0 {
        lines.push(format!(
            "{} of the tasks shown; see `autopilot show`.",
            count(attempts, "earlier attempt")
        ));
    }
    let remarks = history.remarks.len().saturating_sub(REMARKS_MAX);
    if remarks > 0 {
        lines.push(format!("{}; see `autopilot show`.", count(remarks, "earlier event")));
    }
    if warnings > WARNINGS_MAX {
        lines.push(format!("{}; see manifest.json.", count(warnings - WARNINGS_MAX, "warning")));
    }
    if known.calls.len() >= CALLS_MAX {
        lines.push(format!(
            "Agent calls after the first {CALLS_MAX} of the tasks shown; their files are in \
             .autopilot/artifacts."
        ));
    }
    lines
}
