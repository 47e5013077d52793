//! The summary at the end of a process: the result of each task, where the work is, and how to
//! continue.

use super::work::WorkedRun;
use crate::terminal;
use autopilot_core::event::{Bill, Failure as Failed, Skip, TaskEnd};
use autopilot_core::id::Micros;
use autopilot_core::state::{State, Status, Task};
use autopilot_core::step::Step;
use autopilot_engine::begin::costs_unknown;
use autopilot_engine::place::StatePaths;
use autopilot_engine::query::diff::diffstat;
use autopilot_engine::query::failure::FailureReport;
use autopilot_engine::query::status::RunStatus;
use autopilot_host::escape::one_line;
use autopilot_host::git::{GitCommand, UserRepo};
use autopilot_view::{self as view, ExitWord};
use serde_json::Value;

/// The most characters of a review; `show` has all of it.
const SAID_CHARS_MAX: usize = 300;
/// The most tasks in the summary.
const TASKS_TOLD_MAX: usize = 60;

/// Prints the summary. `told` is the same as JSON, with facts that the state does not have.
pub fn print(worked: &WorkedRun, told: &RunStatus) {
    let WorkedRun { state, repo, place, .. } = worked;
    let mut text = format!("\n{}: {}\n", view::run_word(state), told.title());
    text.push_str(&task_lines(state));
    if let Some((iteration, most)) = view::iteration(state) {
        text.push_str(&format!(
            "iteration {iteration} of {most}{}\n",
            said(told.completion.as_ref())
        ));
    }
    text.push_str(&cost_lines(worked));
    text.push_str(&branch_lines(repo, state));
    if let Some(why) = view::unproven(state) {
        text.push_str(&format!("proof: none; {why}\n"));
    } else if let Some(what) = view::excused(state) {
        text.push_str(&format!(
            "proof: only that nothing more fails than on the base; on the result {what}\n"
        ));
    }
    if let Some(proof) = view::LastProof::of(state) {
        text.push_str(&format!("proof: {}\n", proof.sentence()));
    }
    if let Some(report) = &told.report_path {
        text.push_str(&format!("report: {report}\n"));
    }
    for line in view::doubt_lines(state) {
        text.push_str(&format!("{}\n", one_line(&line)));
    }
    for note in notes(repo, state) {
        text.push_str(&format!("note:  {note}\n"));
    }
    text.push_str(&next_lines(place, state, told.last_failure.as_ref()));
    terminal::say(text.trim_end());
}

/// A line for each task, and one for the tasks that are left out.
fn task_lines(state: &State) -> String {
    let (shown, more) = worth_a_line(state);
    let mut text = String::new();
    for task in shown {
        let detail = view::result(state, task);
        text.push_str(&format!(
            "  {:<24} {:<8} {:<12}  {}  {}  {detail}\n",
            task.name(),
            view::shown_word(state, task),
            view::count(task.round as usize, "iteration"),
            view::duration(task.spent.work_ms),
            view::money::cost_of_task(state, task),
        ));
    }
    if more > 0 {
        text.push_str(&format!("  and {more} more: `autopilot status --json`\n"));
    }
    text
}

/// The tasks that are shown, failed ones first, and how many are left out.
fn worth_a_line(state: &State) -> (Vec<&Task>, usize) {
    let tasks = || view::leaves(state);
    let count = tasks().count();
    if count <= TASKS_TOLD_MAX {
        return (tasks().collect(), 0);
    }
    let failed = tasks().filter(|task| view::failure(task).is_some());
    let others = tasks().filter(|task| view::failure(task).is_none());
    let shown: Vec<&Task> = failed.chain(others).take(TASKS_TOLD_MAX).collect();
    let more = count - shown.len();
    (shown, more)
}

/// The last review of a goal, in a line.
fn said(completion: Option<&Value>) -> String {
    let Some(completion) = completion else { return String::new() };
    let Some(is_done) = completion["done"].as_bool() else { return String::new() };
    let (word, why) = if is_done { ("done", "summary") } else { ("not done", "reason") };
    let why: String =
        completion[why].as_str().unwrap_or_default().chars().take(SAID_CHARS_MAX).collect();
    let why = one_line(&why).into_owned();
    format!("; reviewer: {word}{}{why}", if why.is_empty() { "" } else { ": " })
}

fn cost_lines(worked: &WorkedRun) -> String {
    let run = &worked.state.run;
    let cost = match costs_unknown(&worked.config, run.flow).as_slice() {
        [] => view::money::cost_of_run(&worked.state),
        some => {
            let known = Bill { unpriced: false, ..run.spent };
            let unknown = format!("{} + unknown ({})", view::money::cost(known), some.join(", "));
            match worked.state.reserved(None) {
                Micros(0) => unknown,
                reserved => format!("{unknown}, {reserved} reserved"),
            }
        }
    };
    let active = view::duration(run.active_ms);
    let mut text = format!("cost: {cost}   active: {active}\n");
    if let Some(used) = view::used(&worked.state).line() {
        text.push_str(&format!("used: {}\n", one_line(&used)));
    }
    text
}

/// How to look at the branch and merge it; empty if nothing was merged or the branch was undone.
fn branch_lines(repo: &UserRepo, state: &State) -> String {
    let (branch, base) = (&state.run.branch, &state.run.base_branch);
    let Some(stat) = diffstat(&repo.common_dir, &state.run.base, branch) else {
        return String::new();
    };
    let look = format!(
        "branch {branch}: {stat}\nlook:  git log --oneline {base}..{branch}\n       git diff {base}...{branch}\n"
    );
    match ExitWord::of(state) {
        ExitWord::Done | ExitWord::PushFailed => format!("{look}merge: git merge {branch}\n"),
        // An unfinished run's branch can be looked at, not merged.
        ExitWord::Paused | ExitWord::Failed | ExitWord::NotConverged | ExitWord::Misconfigured => {
            look
        }
    }
}

/// What the user should know before merging.
fn notes(repo: &UserRepo, state: &State) -> Vec<String> {
    let mut notes: Vec<String> = base_moved(repo, state).into_iter().collect();
    let left_out = Status::Settled(TaskEnd::Skipped { why: Skip::Asked });
    let left_out = view::leaves(state).filter(|task| task.status == left_out);
    notes.extend(left_out.map(|task| format!("{}: skipped by a person", task.name())));
    notes.extend(view::notes_of_all(state));
    notes
}

/// A note if the base branch has moved since the run started.
fn base_moved(repo: &UserRepo, state: &State) -> Option<String> {
    let base = &state.run.base_branch;
    let count = GitCommand::isolated("look at the base branch", &repo.common_dir)
        .args(["rev-list", "--count", "--end-of-options"])
        .arg(format!("{}..refs/heads/{base}", state.run.base))
        .line()
        .ok()?;
    let count = count.trim().parse().ok().filter(|count| *count > 0)?;
    let commits = view::count(count, "new commit");
    Some(format!("{base} has {commits} since the run started; look before you merge"))
}

/// Why the run is not done, and what the user can do about it.
fn next_lines(place: &StatePaths, state: &State, last: Option<&FailureReport>) -> String {
    match ExitWord::of(state) {
        ExitWord::Done => String::new(),
        ExitWord::Paused => rests(state),
        ExitWord::Failed | ExitWord::NotConverged => {
            let root = state.root().and_then(view::failure);
            let name = last.map_or("<task>", |last| last.task.as_str());
            let again = view::retry_command(state).replace("<task>", name);
            format!(
                "why:   {}{}see {}\n{}then:  `autopilot logs {name}`, `{again}`, `autopilot recover`\n",
                root.map(|why| format!("{why}; ")).unwrap_or_default(),
                against(state).map(|last| format!("last: {last}; ")).unwrap_or_default(),
                place.views().join("STATUS.md"),
                last.map(reason).unwrap_or_default(),
            )
        }
        ExitWord::Misconfigured => {
            let why = state.root().and_then(view::failure).map(ToString::to_string);
            format!(
                "why:   {}\nthen:  `autopilot doctor` checks the setup; `autopilot retry` tries the \
                 same commands again, a new `autopilot run` reads the configuration anew\n",
                why.unwrap_or_default()
            )
        }
        ExitWord::PushFailed => {
            let why = state.root().and_then(view::failure).map(ToString::to_string);
            format!(
                "sent:  not all of it: {}; the patch and the bundle hold everything\n",
                why.unwrap_or_default()
            )
        }
    }
}

/// What failed last, in the words of the command or the agent.
fn reason(last: &FailureReport) -> String {
    if last.lines.is_empty() {
        return String::new();
    }
    let step = last.step.unwrap_or("a step");
    let lines = last.lines.iter().map(|line| format!("  │ {}\n", one_line(line)));
    format!("last:  {step} of {}:\n{}", last.task, lines.collect::<String>())
}

fn rests(state: &State) -> String {
    match (&state.run.halt, view::awaited(state)) {
        (None, Some(what)) => format!(
            "waits: for a person to approve {what}; answer with `autopilot approve` or `autopilot reject \"why\"`\n"
        ),
        (halt, awaited) => {
            let why = halt.as_ref().map(|halt| halt.why.to_string()).unwrap_or_default();
            let then = match (awaited, halt) {
                (Some(what), _) => format!("; a person has to approve {what}: `autopilot approve`"),
                (None, Some(halt)) if view::says_how_to_continue(halt) => String::new(),
                (None, _) => format!("; continue with {}", view::money::continue_command(state)),
            };
            format!("why:   {why}{then}\n")
        }
    }
}

/// The problems of the last iteration of a run that did not converge.
fn against(state: &State) -> Option<String> {
    let root = state.root()?;
    // The review is printed above.
    let mut reasons = root.reasons.iter().filter(|reason| reason.step != Step::Completion);
    let text = match view::failure(root)? {
        Failed::Rounds { .. } | Failed::Rail { .. } => &reasons.next()?.text,
        Failed::Broke { .. }
        | Failed::Interrupted { .. }
        | Failed::Money { .. }
        | Failed::Refused { .. }
        | Failed::Misconfigured { .. }
        | Failed::Children { .. } => return None,
    };
    let line = one_line(text.trim());
    let cut: String = line.chars().take(SAID_CHARS_MAX).collect();
    Some(if cut.len() < line.len() { format!("{cut}…") } else { cut })
}
