//! What simulated workflows consist of, and what comes with a word on completion.
//!
//! A workflow is a function of the seed and of its iteration, never of time.

use super::planner::{count_urgency, spoilt};
use super::{Drawn, Play, Scene};
use crate::fault::Fault;
use crate::random::{Random, mix};
use autopilot_core::event::{Outcome, TaskEntry};
use autopilot_core::flow::Flow;
use autopilot_core::state::State;
use autopilot_core::step::Step;
use std::collections::BTreeSet;

const STEPS_MAX: u64 = 6;

/// Steps come with whatever end: who listens must know when they count.
#[expect(clippy::wildcard_enum_match_arm, reason = "no other step brings any")]
pub fn bring(drawn: &Drawn, scene: &Scene<'_>, fate: &mut Random, play: &mut Play) {
    if scene.state.run.flow != Flow::Goal {
        return;
    }
    let now = scene.state.task(scene.want.task);
    let steps = match scene.want.step {
        Step::Workflow => steps(drawn.seed, scene.state, now.round),
        Step::Completion if fate.chance(500) => steps(drawn.seed, scene.state, now.round + 1),
        // Nobody asked for it.
        Step::WorkflowStep | Step::Validate if fate.chance(100) => {
            steps(drawn.seed, scene.state, now.round + 7)
        }
        _ => Vec::new(),
    };
    play.facts.tasks = steps;
    let is_spoilt = drawn.has(Fault::Barren) && scene.want.step == Step::Workflow;
    if is_spoilt && fate.chance(200) {
        play.faults.push(Fault::Barren);
        play.facts.tasks = match fate.chance(300) {
            true => old(scene.state),
            false => spoilt(std::mem::take(&mut play.facts.tasks), fate),
        };
    }
    debug_assert_eq!(play.outcome, Outcome::Passed, "the end is drawn after this");
}

fn steps(seed: u64, state: &State, iteration: u32) -> Vec<TaskEntry> {
    let mut random = Random::new(mix(mix(seed, 0x60a1), u64::from(iteration)));
    let many = random.between(1, STEPS_MAX);
    let needs = random.below(3);
    // A person may have had an iteration done again.
    let heads = std::iter::once(format!("w{iteration}"))
        .chain((2..).map(|again| format!("w{iteration}x{again}")));
    let is_free = |head: &String| state.named(&format!("{head}.0")).is_none();
    let head = heads.into_iter().find(is_free).unwrap_or_default();
    let named = |at: u64| format!("{head}.{at}");
    let mut steps = Vec::new();
    for at in 0..many {
        let mut depends_on = BTreeSet::new();
        for _ in 0..random.below(needs + 1) {
            if at > 0 {
                depends_on.insert(named(random.below(at)));
            }
        }
        let depends_on = depends_on.into_iter().collect();
        steps.push(TaskEntry { name: named(at), depends_on, ..TaskEntry::default() });
    }
    count_urgency(&mut steps);
    steps
}

/// Names that earlier iterations had.
fn old(state: &State) -> Vec<TaskEntry> {
    state.tasks.iter().skip(1).take(2).map(|task| task.spec.clone()).collect()
}

/// The steps of a scenario under the names they have in an iteration.
pub fn again(steps: &[TaskEntry], iteration: u32) -> Vec<TaskEntry> {
    let name = |name: &String| autopilot_core::workflow::task_name(name, iteration);
    let step = |step: &TaskEntry| TaskEntry {
        name: name(&step.name),
        depends_on: step.depends_on.iter().map(name).collect(),
        ..step.clone()
    };
    steps.iter().map(step).collect()
}
