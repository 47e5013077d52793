//! The board a scenario is judged by: one line of words.

use autopilot_core::event::{Skip, TaskEnd};
use autopilot_core::flow::Flow;
use autopilot_core::state::{State, Status, Task};
use autopilot_core::step::Step;

pub fn board(state: &State) -> String {
    let tasks: Vec<String> = state.tasks.iter().skip(1).map(|task| line(state, task)).collect();
    format!("{} — run {}", tasks.join(" · "), run(state))
}

fn run(state: &State) -> String {
    let Some(root) = state.root() else { return "not begun".to_owned() };
    match (&root.status, &state.run.halt) {
        // A run towards a goal has iterations, tries and costs of its own.
        (Status::Settled(_), _) if state.run.flow == Flow::Goal => {
            format!("{}{}", word(state, root), details(root))
        }
        (Status::Settled(_), _) => word(state, root),
        (_, Some(halt)) => format!("rests: {}", halt.why),
        (Status::Running { step, .. }, None) if state.gate().is_some() => {
            format!("asks: {step}")
        }
        (
            Status::Open | Status::At { .. } | Status::Running { .. } | Status::Waiting { .. },
            None,
        ) => "goes on".to_owned(),
    }
}

fn line(state: &State, task: &Task) -> String {
    format!("{} {}{}", task.name(), word(state, task), details(task))
}

fn word(state: &State, task: &Task) -> String {
    match &task.status {
        Status::Open => "open".to_owned(),
        Status::At { step } => format!("at {step}"),
        Status::Running { step, .. } => format!("running {step}"),
        Status::Waiting { step, .. } => format!("waiting at {step}"),
        Status::Settled(TaskEnd::Closed) => "done".to_owned(),
        Status::Settled(TaskEnd::Failed { why }) => format!("failed: {why}"),
        Status::Settled(TaskEnd::Skipped { why }) => match why {
            Skip::Asked => "skipped".to_owned(),
            Skip::Dropped => "dropped".to_owned(),
            Skip::Blocked { by } => format!("blocked by {}", state.task(*by).name()),
            Skip::Stopped { by } => format!("stopped by {}", state.task(*by).name()),
        },
    }
}

fn details(task: &Task) -> String {
    let spent = &task.spent;
    let mut details = Vec::new();
    let mut say = |times: u32, one: &str, many: &str| match times {
        0 => {}
        1 => details.push(format!("1 {one}")),
        times => details.push(format!("{times} {many}")),
    };
    say(if task.round > 1 { task.round } else { 0 }, "round", "rounds");
    say(spent.retries_all, "retry", "retries");
    say(spent.interruptions, "interruption", "interruptions");
    if spent.bill.usd.0 > 0 {
        details.push(spent.bill.usd.to_string());
    }
    if spent.bill.estimated.0 > 0 {
        details.push(format!("about {}", spent.bill.estimated));
    }
    if task.skipped.contains_key(&Step::Review) {
        details.push("review left out".to_owned());
    }
    if task.notes.iter().any(|note| note.starts_with("overruled")) {
        details.push("overruled".to_owned());
    }
    if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) }
}
