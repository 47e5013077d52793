//! Views of a run for people and programs: pure folds of state and events, never read back by rules.

pub mod cost;
mod doubts;
pub mod evidence;
pub mod graph;
pub mod history;
mod last_word;
pub mod manifest;
pub mod money;
pub mod notes;
pub mod plan_files;
pub mod progress;
pub mod pull_request;
pub mod report;
pub mod sessions;
pub mod state_json;
pub mod status_md;
pub mod trouble;
pub mod width;
mod wording;

pub use doubts::{LOOK, StandingDoubt, doubt_lines, doubts, doubts_of};
pub use last_word::LastProof;

use autopilot_core::event::{Facts, Failure, Halt, HaltWhy, Outcome, Skip, TaskEnd, Verdict};
use autopilot_core::pipeline::{Switch, Work};
use autopilot_core::skill::Used;
use autopilot_core::state::{Hold, LaneState, Shown, State, Status, Task};
use autopilot_core::step::Step;
use std::collections::BTreeSet;

/// The tasks that are named before one doubt or note.
const NAMES_MAX: usize = 3;

/// The outcome of a stopped or finished run for the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitWord {
    Done,
    /// Paused, stopped, or waiting for a person.
    Paused,
    Failed,
    NotConverged,
    PushFailed,
    /// The configuration has to be changed before the run can succeed.
    Misconfigured,
}

impl ExitWord {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            ExitWord::Done => 0,
            ExitWord::Paused => 2,
            ExitWord::Failed => 10,
            ExitWord::NotConverged => 11,
            ExitWord::PushFailed => 12,
            ExitWord::Misconfigured => 78,
        }
    }

    /// The outcome of a run.
    pub fn of(state: &State) -> ExitWord {
        match state.end() {
            None => ExitWord::Paused,
            Some(TaskEnd::Closed | TaskEnd::Skipped { .. }) => ExitWord::Done,
            Some(TaskEnd::Failed { why: Failure::Misconfigured { .. } }) => ExitWord::Misconfigured,
            Some(TaskEnd::Failed { why }) if why.is_push() => ExitWord::PushFailed,
            Some(TaskEnd::Failed { .. }) if only_failed_to_converge(state) => {
                ExitWord::NotConverged
            }
            Some(TaskEnd::Failed { .. }) => ExitWord::Failed,
        }
    }
}

/// The standing of a run with respect to processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A process works on the run.
    Live {
        pid: i32,
    },
    Over,
    /// The run was given up for another one; its work can be recovered.
    Abandoned,
    /// The run was stopped or paused in good order.
    Rests,
    /// The process of the run died.
    Interrupted,
}

fn only_failed_to_converge(state: &State) -> bool {
    // If the run itself has failed, its tasks were judged and are not the reason.
    match state.root().and_then(failure) {
        Some(Failure::Children { .. }) | None => {}
        Some(why) => return why.is_no_convergence(),
    }
    let failures: Vec<&Failure> = state
        .tasks
        .iter()
        .filter_map(|task| failure(task))
        // A failure of children is no reason by itself.
        .filter(|why| !matches!(why, Failure::Children { .. }))
        .collect();
    !failures.is_empty() && failures.iter().all(|why| why.is_no_convergence())
}

/// The command that tries a failed run again: by a task, or as a whole if the run itself failed.
pub fn retry_command(state: &State) -> &'static str {
    match state.root().and_then(failure) {
        Some(Failure::Children { .. }) | None if lacks_money(state) => {
            "autopilot retry <task> --max-usd-per-task <USD>"
        }
        Some(Failure::Children { .. }) | None => "autopilot retry <task>",
        Some(_) => "autopilot retry",
    }
}

/// Whether a task reached its own limit, so that a resume would end at once.
fn lacks_money(state: &State) -> bool {
    let mut failures = state.tasks.iter().filter_map(failure);
    failures.any(|why| matches!(why, Failure::Money { .. }))
}

/// The reason why a task failed, if it did.
pub fn failure(task: &Task) -> Option<&Failure> {
    match task.end()? {
        TaskEnd::Failed { why } => Some(why),
        TaskEnd::Closed | TaskEnd::Skipped { .. } => None,
    }
}

/// The state of the run as one word of `state.json`.
pub fn run_word(state: &State) -> &'static str {
    let Some(root) = state.root() else { return "INIT" };
    if let Some(end) = state.end() {
        return match end {
            TaskEnd::Closed | TaskEnd::Skipped { .. } => "DONE",
            TaskEnd::Failed { .. } => "FAILED",
        };
    }
    if state.is_at_rest() {
        return "PAUSED";
    }
    match root.stage().map(|stage| (stage.work, stage.step.row().run_word)) {
        Some((Work::Person, _)) => "PAUSED",
        Some((_, Some(word))) => word,
        Some(_) if state.live.values().any(|live| live.step == Step::Merge) => "COMMIT",
        Some(_) if state.live.is_empty() => "DISPATCH",
        Some(_) => "MONITOR",
        None => "INIT",
    }
}

/// Like [`run_word`], but WAITING for a run in which all tasks wait for an account.
pub fn state_word(state: &State) -> &'static str {
    if all_wait(state).is_some() { "WAITING" } else { run_word(state) }
}

/// The current activity or the outcome of a run, in words for a person.
pub fn headline(state: &State) -> String {
    let word = state_word(state);
    if matches!(word, "DONE" | "FAILED" | "PAUSED" | "WAITING") {
        return word.to_owned();
    }
    let Some(stage) = state.root().and_then(Task::stage) else { return "starting".to_owned() };
    match (stage.work, state.live.len()) {
        (Work::Children(..), 0) => "starting the next task".to_owned(),
        (Work::Children(..), live) => format!("{} running", count(live, "task")),
        (Work::Slot | Work::Serial | Work::Person | Work::Decide, _) => {
            stage.step.row().doing.to_owned()
        }
    }
}

/// The current activity or the outcome of a task, in words for a person.
pub fn activity(task: &Task) -> &'static str {
    match &task.status {
        Status::Open => "not started",
        Status::At { .. } if task_word(task) == "PENDING" => "not started",
        Status::At { step } | Status::Running { step, .. } | Status::Waiting { step, .. } => {
            step.row().doing
        }
        Status::Settled(TaskEnd::Closed) => "done",
        Status::Settled(TaskEnd::Skipped { why: Skip::Asked }) => "skipped",
        Status::Settled(TaskEnd::Skipped { .. }) => "not started",
        Status::Settled(TaskEnd::Failed { .. }) => "failed",
    }
}

/// The result of a task so far, in words for a person.
pub fn result(state: &State, task: &Task) -> String {
    match (failure(task), &task.commit) {
        (Some(why), _) => why.to_string(),
        (None, Some(commit)) if task.is_closed() => commit.chars().take(10).collect(),
        (None, _) if shown_word(state, task) == "STOPPED" => format!("next: {}", activity(task)),
        (None, _) => activity(task).to_owned(),
    }
}

/// The task that continues first, if nothing is at work because all tasks wait for an account.
pub fn all_wait(state: &State) -> Option<&Task> {
    let is_idle = state.end().is_none() && state.run.halt.is_none() && state.live.is_empty();
    let first = state.waiting().next().filter(|_| is_idle)?;
    Some(state.task(first))
}

/// The object that a person has to approve, if any, and where to look at it.
pub fn awaited(state: &State) -> Option<String> {
    let (_, live) = state.gate()?;
    let gate = live.step.row().gate?;
    Some(format!("the {} ({})", gate.what, gate.look_at))
}

pub use autopilot_core::flow::{task_word, worker_word};
pub use autopilot_core::number::count;
pub use wording::switched;

/// The status of a task for people: a task of a run that is halted is not running.
pub fn shown_word(state: &State, task: &Task) -> &'static str {
    match task_word(task) {
        "RUNNING" if state.is_at_rest() => "STOPPED",
        word => word,
    }
}

/// The current iteration and the most iterations of a run, for flows with iterations.
pub fn iteration(state: &State) -> Option<(u32, u32)> {
    let root = state.root().filter(|_| state.run.flow.has_iterations())?;
    // A retry forgives the iterations before it.
    Some((root.round, state.run.limits.rounds_max + root.spent.rounds_forgiven))
}

/// The last result of a step of the run itself, if no task has produced anything since.
pub fn still_shown(state: &State, step: Step) -> Option<&Shown> {
    let shown = state.root()?.last(step)?;
    let is_newer = |task: &Task| {
        let steps = [Step::WorkflowStep, Step::Build, Step::Fix, Step::Merge];
        task.parent.is_some()
            && steps.iter().filter_map(|step| task.last(*step)).any(|other| other.id > shown.id)
    };
    (!state.tasks.iter().any(is_newer)).then_some(shown)
}

/// The reason why the whole result was not validated, if it was not.
pub fn unproven(state: &State) -> Option<&str> {
    let skipped = state.root()?.skipped.get(&Step::Validate).map(String::as_str);
    nothing_built(state).or(skipped)
}

/// The reason why a run that is done has built nothing, if it has not. A goal may be met without
/// any work, and its result is judged as a whole.
pub fn nothing_built(state: &State) -> Option<&'static str> {
    let is_done = match state.end()? {
        TaskEnd::Closed | TaskEnd::Skipped { .. } => !state.run.flow.has_iterations(),
        TaskEnd::Failed { .. } => false,
    };
    (is_done && !leaves(state).any(Task::is_closed))
        .then_some("every task was skipped, so nothing was built")
}

/// The reason why the result of all tasks was not reviewed as a whole, in a flow that has such a review.
pub fn unreviewed(state: &State) -> Option<&str> {
    let switches = &state.run.switches;
    let skipped = state.root()?.skipped.get(&Step::WholeReview).map(String::as_str);
    let off = match switches.contains(&Switch::ThreeRuns) {
        true => Switch::WholeReview.why_skipped(),
        // The tests of the base came first.
        false => "the run began before the results of plans were reviewed as a whole",
    };
    let is_off = state.run.flow.has_whole_review() && !switches.contains(&Switch::WholeReview);
    skipped.or_else(|| is_off.then_some(off))
}

/// The names of those who switched the review off; none for a goal, which has no such review.
pub fn waivers(state: &State) -> &[String] {
    if state.run.flow.has_reviews_to_waive() { &state.run.reviews_waived_by } else { &[] }
}

/// The failures of the result that were excused because they occur on the base of the run as well.
pub fn excused(state: &State) -> Option<String> {
    let whole = still_shown(state, Step::Validate).and_then(let_pass);
    let parts = leaves(state).filter(|task| task.is_closed());
    let parts = parts.filter_map(|task| task.last(Step::Validate).and_then(let_pass));
    let all: BTreeSet<String> = whole.into_iter().chain(parts).collect();
    (!all.is_empty()).then(|| all.into_iter().collect::<Vec<_>>().join("; "))
}

/// The reason that an outcome gives.
pub fn why(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Failed { why }
        | Outcome::Misconfigured { why }
        | Outcome::Broke { why }
        | Outcome::Skipped { why } => Some(why),
        Outcome::Away { text, .. } => Some(text),
        Outcome::Passed | Outcome::Lost | Outcome::Quota { .. } | Outcome::Revoked => None,
    }
}

/// The excused failures of a step that passed.
pub fn let_pass(shown: &Shown) -> Option<String> {
    let excused = &shown.facts.excused;
    (shown.outcome == Outcome::Passed && !excused.is_empty()).then(|| excused.join("; "))
}

/// The word for a passed step; never just `passed` if failures were excused.
pub fn passed_word(step: Step, facts: &Facts) -> &'static str {
    match (facts.excused.is_empty(), step == Step::Preflight) {
        // A judge said no, and it did not count.
        (true, _) if facts.verdict() == Some(Verdict::RequestChanges) => "overruled",
        (true, _) if facts.warm => "passed (warm)",
        (true, _) if step == Step::Prove => "passed (cold)",
        (true, _) => "passed",
        (false, true) => "failing (allowed)",
        (false, false) => "fails only as on the base",
    }
}

/// The word for a step that failed; a gate that did not start from nothing says so.
pub fn failed_word(facts: &Facts) -> &'static str {
    if facts.warm { "failed (warm)" } else { "failed" }
}

/// The notes of a task, each once: rounds repeat what has not changed.
pub fn notes(task: &Task) -> Vec<&str> {
    let mut known = BTreeSet::new();
    task.notes.iter().map(String::as_str).filter(|note| known.insert(*note)).collect()
}

/// The notes on all tasks as sentences: one that several tasks have is told once, with their names.
pub fn notes_of_all(state: &State) -> Vec<String> {
    let mut told: Vec<(&str, Vec<String>)> = Vec::new();
    for task in state.tasks.iter() {
        for note in notes(task) {
            match told.iter_mut().find(|(known, _)| *known == note) {
                Some((_, names)) => names.push(task.label().to_owned()),
                None => told.push((note, vec![task.label().to_owned()])),
            }
        }
    }
    told.into_iter().map(|(note, names)| format!("{}: {note}", name_list(&names))).collect()
}

/// Names in a sentence, of which only the first are written out.
pub fn name_list(names: &[String]) -> String {
    let more = match names.len().saturating_sub(NAMES_MAX) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let first: Vec<&str> = names.iter().take(NAMES_MAX).map(String::as_str).collect();
    format!("{}{more}", first.join(", "))
}

/// The skills, MCP servers and sub-agents that the whole run used.
pub fn used(state: &State) -> Used {
    let mut all = Used::default();
    state.tasks.iter().for_each(|task| all.add(&task.used));
    all
}

/// One sentence for each held account, except the one that the halt of the run names already.
pub fn holds(state: &State) -> Vec<String> {
    let is_named = |account: &str| {
        let halt = state.run.halt.as_ref().map(|halt| &halt.why);
        matches!(halt, Some(HaltWhy::Away { account: named, .. }) if named == account)
    };
    let told = |(account, why, hold): (&str, _, &Hold)| {
        wording::held(account, hold.until, why, &hold.text, hold.guess)
    };
    state.holds().filter(|(account, ..)| !is_named(account)).map(told).collect()
}

/// Whether the reason of a halt already says how to continue.
pub fn says_how_to_continue(halt: &Halt) -> bool {
    matches!(halt.why, HaltWhy::Away { .. })
}

/// The account and time that a task waits for, if it waits.
pub fn waits(state: &State, task: &Task) -> Option<String> {
    let Status::Waiting { step, until } = task.status else { return None };
    Some(match state.door(step, task.by(step)) {
        LaneState::Held { account, why, guess, .. } => wording::waits(&account, why, until, guess),
        LaneState::Open { .. } | LaneState::Probed => format!("waiting until {}", until.rfc3339()),
    })
}

/// The leaves of the task tree, which a person calls the tasks.
pub fn leaves(state: &State) -> impl Iterator<Item = &Task> {
    state.tasks.iter().filter(|task| task.parent.is_some() && task.children.is_empty())
}

/// The task that the run works on, or worked on last.
pub fn current(state: &State) -> Option<&Task> {
    let busy = leaves(state).find(|task| task.step().is_some());
    busy.or_else(|| leaves(state).filter(|task| task.started_at.is_some()).last())
        .or_else(|| leaves(state).next())
}

/// The text without line ends and control characters: titles and messages come from files and
/// agents, and must not break out of their line.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A duration for people: `1h 02m`, `3m 05s`, `4.2s`.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{}.{}s", seconds, ms % 1000 / 100),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use autopilot_core::id::TaskId;

    #[test]
    fn durations_read_as_people_say_them() {
        let said: Vec<String> = [4_230, 185_000, 3_720_000].into_iter().map(duration).collect();
        assert_eq!(said, ["4.2s", "3m 05s", "1h 02m"]);
    }

    #[test]
    fn a_note_of_several_tasks_is_told_once_with_their_names() {
        let task = |id: u32, name: &str, notes: &[&str]| {
            let notes = notes.iter().map(|note| (*note).to_owned()).collect();
            let mut task = Task { id: TaskId(id), notes, ..Task::default() };
            task.parent = (id > 0).then_some(TaskId::ROOT);
            name.clone_into(&mut task.spec.name);
            task
        };
        let mut state = State::default();
        state.tasks = vec![
            task(0, "", &[]),
            task(1, "a", &["x", "x"]),
            task(2, "b", &["y", "x"]),
            task(3, "c", &["x"]),
            task(4, "d", &["x"]),
        ]
        .into_iter()
        .collect();
        assert_eq!(notes_of_all(&state), ["a, b, c and 1 more: x", "b: y"]);
    }
}
