//! What a record means for the graph of tasks: which tasks start in parallel, which a finished task
//! unlocks, and what the others wait for. `autopilot_view::progress` has the lines of single steps.

use crate::tally::Tally;
use crate::word::some;
use autopilot_core::event::{Event, Record, Skip, TaskEnd};
use autopilot_core::id::TaskId;
use autopilot_core::pipeline::Work;
use autopilot_core::state::{State, Task};
use autopilot_view::count;

/// Task names in one line; the others are counted.
pub const NAMES_MAX: usize = 6;

/// Returns the lines about the graph; most records have none. `state` and `tally` include the record.
pub fn lines(record: &Record, state: &State, tally: &Tally) -> Vec<String> {
    if tally.leaves.len() < 2 {
        return Vec::new();
    }
    let mut lines: Vec<String> =
        record.events.iter().filter_map(|event| unlocked(event, state)).collect();
    let settled = record.events.iter().any(|event| settles_a_leaf(event, state));
    if settled {
        lines.push(counted(tally));
    }
    let started = dispatched(record, state);
    lines.extend(started.clone());
    if settled || started.is_some() {
        lines.extend(waiting(state, tally));
    }
    lines
}

/// The tasks that start: `3 tasks start in parallel: a, b, c`.
fn dispatched(record: &Record, state: &State) -> Option<String> {
    let is_first = |task: &&Task| task.parent.is_some() && task.spent.attempts == 1;
    let names: Vec<&str> = record
        .events
        .iter()
        .filter_map(|event| {
            let Event::AttemptStarted { task, .. } = event else { return None };
            Some(state.task(*task))
        })
        .filter(is_first)
        .map(Task::name)
        .collect();
    let live = state.live.values().filter(|live| has_worker(state.task(live.task))).count();
    match names.as_slice() {
        [] => None,
        [_] if live < 2 => None,
        [name] => Some(format!("{name} starts: {live} tasks now run in parallel")),
        many => Some(format!(
            "{} start in parallel: {}",
            count(many.len(), "task"),
            some(many, NAMES_MAX)
        )),
    }
}

/// Whether a worker does the task's step. The controller's own effects, such as a merge, need none.
fn has_worker(task: &Task) -> bool {
    task.parent.is_some() && task.stage().is_some_and(|stage| stage.work == Work::Slot)
}

/// The tasks that a settled task unlocks: `a is done: unlocks d, e`.
fn unlocked(event: &Event, state: &State) -> Option<String> {
    let Event::TaskSettled { task, end: TaskEnd::Closed | TaskEnd::Skipped { why: Skip::Asked } } =
        event
    else {
        return None;
    };
    let task = state.task(*task);
    let free: Vec<&str> = task
        .dependants
        .iter()
        .map(|id| state.task(*id))
        .filter(|dependant| dependant.needs == 0 && !dependant.is_settled())
        .map(Task::name)
        .collect();
    let over = if task.is_closed() { "is done" } else { "is skipped" };
    (!free.is_empty())
        .then(|| format!("{} {over}: unlocks {}", task.name(), some(&free, NAMES_MAX)))
}

fn settles_a_leaf(event: &Event, state: &State) -> bool {
    let Event::TaskSettled { task, .. } = event else { return false };
    let task = state.task(*task);
    task.parent.is_some() && task.children.is_empty()
}

/// The number of tasks in each state: `3 of 8 tasks done, 4 running, 1 pending`.
pub fn counted(tally: &Tally) -> String {
    let all = count(tally.leaves.len(), "task");
    let mut text = format!("{} of {all} done", tally.count("DONE"));
    for word in ["RUNNING", "PENDING", "BLOCKED", "FAILED", "SKIPPED"] {
        let count = tally.count(word);
        if count > 0 {
            text.push_str(&format!(", {count} {}", word.to_lowercase()));
        }
    }
    text
}

/// What the pending tasks wait for. Only while a worker is free do dependencies hold them up.
fn waiting(state: &State, tally: &Tally) -> Option<String> {
    let is_free = state.slots_live() < state.run.limits.workers_max;
    if !is_free || !tally.ready.is_empty() || tally.waiting.is_empty() || state.end().is_some() {
        return None;
    }
    let mut names: Vec<&str> = Vec::new();
    for id in tally.waiting.iter().take(NAMES_MAX * 4) {
        for name in needed(state, *id) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let verb = if tally.waiting.len() == 1 { "waits" } else { "wait" };
    Some(format!("{} {verb} for {}", count(tally.waiting.len(), "task"), some(&names, NAMES_MAX)))
}

/// The names of the tasks that a task depends on and that are not settled yet.
pub fn needed(state: &State, id: TaskId) -> Vec<&str> {
    let open = |name: &&String| state.named(name).is_some_and(|task| !task.is_settled());
    state.task(id).spec.depends_on.iter().filter(open).map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use crate::sample::SampleRun;
    use crate::screen::LineKind;
    use autopilot_core::step::Step;

    fn graph_lines(sample: &SampleRun) -> Vec<&str> {
        let log = sample.screen.log.iter();
        log.filter(|line| line.kind == LineKind::Graph).map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn parallel_starts_unlocks_counts_and_waits_are_told() {
        let mut sample = SampleRun::planned(&[
            ("a", &[]),
            ("b", &[]),
            ("c", &[]),
            ("d", &["a", "b"]),
            ("e", &["a"]),
        ]);
        sample.start(&["a", "b", "c"], Step::Build);
        sample.close("b");
        sample.close("a");
        sample.start(&["d", "e"], Step::Build);
        assert_eq!(
            graph_lines(&sample),
            [
                "3 tasks start in parallel: a, b, c",
                "2 tasks wait for a, b",
                "1 of 5 tasks done, 2 running, 2 pending",
                "2 tasks wait for a",
                "a is done: unlocks d, e",
                "2 of 5 tasks done, 1 running, 2 pending",
                "2 tasks start in parallel: d, e",
            ]
        );
    }

    #[test]
    fn one_that_starts_beside_others_is_told_and_a_single_task_says_nothing_of_a_graph() {
        let mut sample = SampleRun::planned(&[("a", &[]), ("b", &[])]);
        sample.start(&["a"], Step::Build);
        sample.start(&["b"], Step::Build);
        assert_eq!(graph_lines(&sample), ["b starts: 2 tasks now run in parallel"]);
        let mut sample = SampleRun::planned(&[("a", &[])]);
        sample.start(&["a"], Step::Build);
        sample.close("a");
        assert!(graph_lines(&sample).is_empty());
    }
}
