//! What simulated planners divide the work into, and what mends the whole.
//!
//! A plan is a function of the seed and of what is planned, never of time.

use super::{Drawn, Play, Scene};
use crate::fault::Fault;
use crate::random::{Random, mix, mix_bytes};
use autopilot_core::event::TaskEntry;
use autopilot_core::flow::Flow;
use autopilot_core::pipeline::Switch;
use autopilot_core::state::{State, Task};
use autopilot_core::step::Step;
use std::collections::BTreeSet;

const TASKS_MAX: u64 = 12;
const TASKS_BELOW_MAX: u64 = 4;
/// How often a task is divided further, in a thousand, by how deep it lies.
const EXPANDS: [u64; 2] = [150, 100];
const PATHS: [&str; 8] =
    ["src", "src/a", "src/b", "SRC/a/**", "docs", "docs/guide.md", "lib/x/*.rs", "lib/x"];

/// What comes with the end of an attempt. It comes whatever that end is: who listens must know when
/// it counts.
#[expect(clippy::wildcard_enum_match_arm, reason = "no other step brings any")]
pub fn bring(drawn: &Drawn, scene: &Scene<'_>, fate: &mut Random, play: &mut Play) {
    if scene.state.run.flow == Flow::Goal {
        return;
    }
    let now = scene.state.task(scene.want.task);
    let tasks = match scene.want.step {
        Step::Schedule => plan(drawn.seed, now, depth(scene.state, now)),
        Step::Validate | Step::WholeReview | Step::Uat | Step::Prove if now.parent.is_none() => {
            mends(scene.state, fate)
        }
        _ if scene.state.run.flow != Flow::Plan => Vec::new(),
        // Nobody asked for it.
        Step::Build | Step::Validate if fate.chance(100) => vec![mending_task(scene.state)],
        _ => Vec::new(),
    };
    let is_spoilt = drawn.has(Fault::Barren) && !tasks.is_empty() && fate.chance(200);
    if is_spoilt {
        play.faults.push(Fault::Barren);
        play.facts.tasks = spoilt(tasks, fate);
    } else {
        play.facts.tasks = tasks;
    }
}

fn depth(state: &State, task: &Task) -> usize {
    task.parent.map_or(0, |parent| 1 + depth(state, state.task(parent)))
}

fn plan(seed: u64, whole: &Task, depth: usize) -> Vec<TaskEntry> {
    let name = whole.name();
    let mut random = Random::new(mix_bytes(mix(seed, 0x9a7), name.as_bytes()));
    let most = if random.chance(400) { TASKS_MAX } else { TASKS_BELOW_MAX };
    let many = random.between(1, if depth == 0 { most } else { TASKS_BELOW_MAX });
    let needs = random.below(3);
    let named = |at: u64| match name {
        "" => format!("p{at}"),
        name => format!("{name}.{at}"),
    };
    let mut tasks = Vec::new();
    for at in 0..many {
        let mut depends_on = BTreeSet::new();
        for _ in 0..random.below(needs + 1) {
            if at > 0 {
                depends_on.insert(named(random.below(at)));
            }
        }
        let expand = random.chance(EXPANDS.get(depth).copied().unwrap_or(0));
        tasks.push(TaskEntry {
            name: named(at),
            depends_on: depends_on.into_iter().collect(),
            switches: random.chance(300).then_some(Switch::Uat).into_iter().collect(),
            expand,
            priority: if random.chance(300) { random.below(5) as i32 - 2 } else { 0 },
            paths: paths(&mut random),
            ..TaskEntry::default()
        });
    }
    count_urgency(&mut tasks);
    tasks
}

fn paths(random: &mut Random) -> Vec<String> {
    let many = if random.chance(500) { random.between(1, 2) } else { 0 };
    (0..many).map(|_| PATHS[random.below(PATHS.len() as u64) as usize].to_owned()).collect()
}

/// The longest chain that waits for each; whatever a task needs comes before it.
pub fn count_urgency(tasks: &mut [TaskEntry]) {
    for at in (0..tasks.len()).rev() {
        let (before, rest) = tasks.split_at_mut(at);
        let last = &rest[0];
        for need in before.iter_mut().filter(|task| last.depends_on.contains(&task.name)) {
            need.urgency = need.urgency.max(last.urgency + 1);
        }
    }
}

fn mends(state: &State, fate: &mut Random) -> Vec<TaskEntry> {
    let mut task = mending_task(state);
    task.paths = paths(fate);
    task.expand = fate.chance(50);
    // It may build on what is there, also on what a person vouched for.
    if let Some(root) = state.root().filter(|_| fate.chance(300)) {
        let on = root.children.get(fate.below(root.children.len() as u64) as usize);
        task.depends_on = on.map(|on| state.task(*on).name().to_owned()).into_iter().collect();
    }
    vec![task]
}

/// A task under the first name that is free.
pub fn mending_task(state: &State) -> TaskEntry {
    let name = (1..).map(|number| format!("mend-{number}"));
    let free = name.into_iter().find(|name| state.named(name).is_none());
    TaskEntry { name: free.unwrap_or_default(), mends: true, ..TaskEntry::default() }
}

/// None, one twice, or in an order in which nobody could know what it waits for.
pub fn spoilt(mut tasks: Vec<TaskEntry>, fate: &mut Random) -> Vec<TaskEntry> {
    match (fate.below(3), tasks.first().cloned()) {
        (0, _) | (_, None) => Vec::new(),
        (1, Some(first)) => {
            tasks.push(first);
            tasks
        }
        (_, Some(_)) => {
            tasks.reverse();
            tasks
        }
    }
}
