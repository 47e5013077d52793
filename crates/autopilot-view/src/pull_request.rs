//! The pull request of a run: the goal, the tasks, the evidence, and the points to look at.
//!
//! Titles, commands and notes come from files and agents. None of them may break out of its line,
//! mention a person, close an issue or give the forge an order (GitLab obeys lines that begin with a
//! slash): each is escaped and stands behind a mark of ours.

mod markdown;
#[cfg(test)]
mod tests;

use super::money;
use super::wording::review_word;
use super::{LOOK, count, doubts, duration, failure, leaves, task_word};
use autopilot_core::event::{Bill, Outcome};
use autopilot_core::evidence::SeenCommand;
use autopilot_core::id::TaskId;
use autopilot_core::state::{State, Task};
use autopilot_core::step::Step;
use markdown::{code, escaped, one_line};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The most bytes of a body: every forge accepts more, so that people can add to it.
pub const BODY_BYTES_MAX: usize = 60_000;
/// The most characters of a title; forges accept 255.
pub const TITLE_CHARS_MAX: usize = 200;
const GOAL_BYTES_MAX: usize = 8_000;
const TASKS_BYTES_MAX: usize = 19_000;
const EVIDENCE_BYTES_MAX: usize = 19_000;
const ATTENTION_BYTES_MAX: usize = 12_000;
/// The most characters of a cell in a table.
const CELL_CHARS_MAX: usize = 300;

/// The facts of a pull request that the state does not have.
#[derive(Clone, Debug, Default)]
pub struct PullRequestFacts<'a> {
    /// `github.pr_title_prefix`.
    pub prefix: &'a str,
    pub remote: &'a str,
    /// The goal in the words of the user.
    pub goal: &'a str,
    /// The commands that the controller ran for a step.
    pub checks: BTreeMap<(TaskId, Step), Vec<SeenCommand>>,
    /// The agents whose cost is not known.
    pub unpriced: &'a [String],
}

/// The title and body of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequestText {
    pub title: String,
    /// The body begins and ends with a mark that names the run; the text between them is replaced.
    pub body: String,
}

/// The text of a run's pull request.
pub fn pull_request(state: &State, known: &PullRequestFacts<'_>) -> PullRequestText {
    let run = &state.run.id;
    let parts = [
        goal(state, known),
        tasks(state, known),
        evidence(state, known),
        look_first(state),
        attention(state),
        undo(state, known),
    ];
    let body =
        format!("<!-- autopilot-run: {run} -->\n{}<!-- autopilot-end: {run} -->", parts.concat());
    PullRequestText { title: title(state, known.prefix), body }
}

fn title(state: &State, prefix: &str) -> String {
    let text = format!("{} {}", one_line(prefix).trim(), one_line(&state.run.title).trim());
    cut(text.trim(), TITLE_CHARS_MAX)
}

fn goal(state: &State, known: &PullRequestFacts<'_>) -> String {
    let words = if known.goal.trim().is_empty() { &state.run.title } else { known.goal };
    let lines = words.lines().map(str::trim_end).map(|line| {
        let (indent, text) = line.split_at(line.len() - line.trim_start().len());
        let text = escaped(&cut(text, 4 * CELL_CHARS_MAX));
        // A list item stays a list item.
        match text.strip_prefix("\\- ").or_else(|| text.strip_prefix("\\* ")) {
            Some(item) => format!("> {}- {item}\n", one_line(indent)),
            None => format!("> {text}\n"),
        }
    });
    format!("## What was asked\n\n{}\n", capped(lines, "> ", "lines", GOAL_BYTES_MAX))
}

fn tasks(state: &State, known: &PullRequestFacts<'_>) -> String {
    let mut text = "## What was done\n\n| task | title | outcome | iterations | time | cost |\n\
                    |---|---|---|---|---|---|\n"
        .to_owned();
    let rows = leaves(state).map(|task| {
        format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            code(&cut(task.name(), CELL_CHARS_MAX)),
            escaped(&cut(&task.spec.title, CELL_CHARS_MAX)),
            task_word(task),
            task.round,
            duration(task.spent.work_ms),
            money::cost(task.spent.bill),
        )
    });
    text.push_str(&capped(rows, "| ", "tasks", TASKS_BYTES_MAX));
    // Whose cost is unknown is said behind it.
    let usd = money::cost(Bill { unpriced: false, ..state.run.spent });
    let active = duration(state.run.active_ms);
    let _ = write!(text, "\n{active} of work, {usd}");
    if !known.unpriced.is_empty() {
        let _ = write!(text, " and an unknown amount for {}", escaped(&known.unpriced.join(", ")));
    }
    text.push_str(".\n\n");
    text
}

fn evidence(state: &State, known: &PullRequestFacts<'_>) -> String {
    let mut text = "## What proves it\n\nThe controller ran these commands itself, on exactly the \
                    commits of this branch.\n\n| task | validation | acceptance | review | commit |\n\
                    |---|---|---|---|---|\n"
        .to_owned();
    let mut rows = Vec::new();
    if let Some(root) = state.root() {
        if root.last(Step::Preflight).is_some() {
            let base = ran(root, Step::Preflight, known);
            rows.push(format!(
                "| the base, before | {base} | | | {} |\n",
                short(Some(&state.run.base))
            ));
        }
        if root.last(Step::Validate).is_some() || root.last(Step::Uat).is_some() {
            let (validation, uat) = (ran(root, Step::Validate, known), ran(root, Step::Uat, known));
            let is_reviewed = root.last(Step::WholeReview).is_some();
            let is_told = is_reviewed || root.skipped.contains_key(&Step::WholeReview);
            let review = match is_told {
                true => reviewed(root, Step::WholeReview),
                false => String::new(),
            };
            rows.push(format!("| all together | {validation} | {uat} | {review} | |\n"));
        }
    }
    rows.extend(leaves(state).filter(|task| task.is_closed()).map(|task| {
        format!(
            "| {} | {} | {} | {} | {} |\n",
            code(&cut(task.name(), CELL_CHARS_MAX)),
            ran(task, Step::Validate, known),
            ran(task, Step::Uat, known),
            reviewed(task, Step::Review),
            short(task.commit.as_deref()),
        )
    }));
    text.push_str(&capped(rows.into_iter(), "| ", "tasks", EVIDENCE_BYTES_MAX));
    text.push('\n');
    text
}

/// The commands of a step with their exit codes, or why there is none.
fn ran(task: &Task, step: Step, known: &PullRequestFacts<'_>) -> String {
    if let Some(skipped) = skipped(task, step) {
        return skipped;
    }
    let Some(shown) = task.last(step) else { return "not run".to_owned() };
    let exit = |code: Option<i32>| {
        code.map_or("ended without a code".to_owned(), |code| format!("exit {code}"))
    };
    match known.checks.get(&(task.id, step)).map(Vec::as_slice) {
        Some([]) | None => match (&shown.outcome, shown.facts.exit) {
            (_, Some(code)) => exit(Some(code)),
            (Outcome::Passed, None) => "passed".to_owned(),
            (_, None) => "no result".to_owned(),
        },
        Some(checks) => {
            let one = |check: &SeenCommand| {
                format!("{} {}", code(&cut(&check.command, CELL_CHARS_MAX)), exit(check.exit_code))
            };
            checks.iter().map(one).collect::<Vec<_>>().join("<br>")
        }
    }
}

fn reviewed(task: &Task, step: Step) -> String {
    if let Some(skipped) = skipped(task, step) {
        return skipped;
    }
    let facts = task.last(step).map(|shown| &shown.facts);
    match facts.and_then(|facts| Some((review_word(facts.verdict()?), facts.issues()))) {
        None => "none".to_owned(),
        Some((verdict, 0)) => verdict.to_owned(),
        Some((verdict, issues)) => format!("{verdict}, {}", count(issues as usize, "remark")),
    }
}

fn skipped(task: &Task, step: Step) -> Option<String> {
    let why = task.skipped.get(&step)?;
    Some(format!("skipped: {}", escaped(&cut(why, CELL_CHARS_MAX))))
}

fn short(commit: Option<&str>) -> String {
    commit.map(|commit| code(&commit.chars().take(10).collect::<String>())).unwrap_or_default()
}

/// Lists what a person should look at, the worst first.
fn look_first(state: &State) -> String {
    let doubts = doubts(state);
    let mut lines: Vec<String> =
        doubts.iter().map(|standing| escaped(&standing.sentence())).collect();
    if lines.is_empty() {
        lines.push("nothing beyond the change itself".to_owned());
    }
    let lines = lines.iter().map(|line| format!("- {}\n", cut(line, 2 * CELL_CHARS_MAX)));
    format!("## {LOOK}\n\n{}\n", capped(lines, "- ", "doubts", ATTENTION_BYTES_MAX))
}

/// Lists what was not done or not proven, and the notes on all tasks.
fn attention(state: &State) -> String {
    let mut lines = Vec::new();
    for task in leaves(state).filter(|task| !task.is_closed()) {
        let why = failure(task).map(ToString::to_string).unwrap_or_default();
        let (name, word) = (code(task.name()), task_word(task).to_lowercase());
        let why = if why.is_empty() { why } else { format!(": {}", escaped(&why)) };
        lines.push(format!("{name} is not in this branch, {word}{why}"));
    }
    for task in leaves(state).filter(|task| task.is_closed()) {
        let name = code(task.name());
        let skipped = task.skipped.get(&Step::Uat);
        lines.extend(skipped.map(|why| format!("{name}: acceptance skipped: {}", escaped(why))));
    }
    if let Some(root) = state.root() {
        for step in [Step::Preflight, Step::Validate, Step::Uat] {
            if let Some(why) = root.skipped.get(&step) {
                lines.push(format!("the whole: {step} skipped: {}", escaped(why)));
            }
        }
    }
    lines.extend(notes_on_the_whole(state).map(|note| format!("the whole: {}", escaped(note))));
    for task in state.tasks.iter().filter(|task| task.parent.is_some()) {
        let name = code(task.name());
        lines.extend(
            crate::notes(task).into_iter().map(|note| format!("{name}: {}", escaped(note))),
        );
    }
    if lines.is_empty() {
        return String::new();
    }
    let lines = lines.iter().map(|line| format!("- {}\n", cut(line, 2 * CELL_CHARS_MAX)));
    format!("## Worth knowing\n\n{}\n", capped(lines, "- ", "remarks", ATTENTION_BYTES_MAX))
}

/// The notes on the whole, without those on publishing: they name files of this machine.
fn notes_on_the_whole(state: &State) -> impl Iterator<Item = &String> {
    let results = state.root().into_iter().flat_map(|root| &root.results);
    results.filter(|(step, _)| !step.row().leaves_machine).flat_map(|(_, shown)| &shown.facts.notes)
}

fn undo(state: &State, known: &PullRequestFacts<'_>) -> String {
    let (run, branch, base) = (&state.run.id, &state.run.branch, &state.run.base_branch);
    let delete = code(&format!("git push {} --delete {branch}", known.remote));
    format!(
        "## How to undo it\n\n- before it is merged: close this, then {delete} and {}\n\
         - after it was merged into {}: {}\n\n",
        code(&format!("autopilot undo {run}")),
        code(base),
        code("git revert -m 1 <the merge commit>"),
    )
}

/// The lines that fit, and the number of those that do not.
fn capped(lines: impl Iterator<Item = String>, mark: &str, what: &str, bytes_max: usize) -> String {
    let mut text = String::new();
    let mut left_out = 0;
    for line in lines {
        if left_out == 0 && text.len() + line.len() <= bytes_max {
            text.push_str(&line);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        let _ = writeln!(text, "{mark}… and {left_out} more {what}");
    }
    text
}

fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
