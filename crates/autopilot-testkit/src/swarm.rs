//! What a seed draws: a run, a subset of the faults, and how often each may strike.

use crate::agent::{Agents, Drawn, Drought};
use crate::fault::{Fault, Faults};
use crate::random::{Random, mix};
use crate::world::{Plan, World};
use autopilot_core::event::{HoldWhy, MachineFault, RunSpec, TaskEnd, TaskEntry};
use autopilot_core::flow::Flow;
use autopilot_core::id::Micros;
use autopilot_core::limit::{Limits, ReviewGate, YardstickChanges};
use autopilot_core::pipeline::Switch;
use autopilot_core::state::{State, Status, Task};
use autopilot_core::step::{Role, Step};
use std::collections::{BTreeMap, BTreeSet};

const TASKS_MAX: u64 = 8;
/// Whatever keeps a run from coming to rest ends some time.
const TIMES_MAX: [(Fault, u32); 12] = [
    (Fault::BootCrash, 10),
    (Fault::WriteFails, 4),
    (Fault::Stop, 4),
    (Fault::StopNow, 4),
    (Fault::Pause, 4),
    (Fault::Clock, 2),
    (Fault::Retry, 6),
    (Fault::Skip, 3),
    (Fault::Waive, 3),
    (Fault::Limit, 3),
    (Fault::Answer, 8),
    (Fault::Continue, 5),
];

/// The verdict on one seed.
pub struct Trial {
    pub world: World,
    pub fault: Option<String>,
}

/// Runs a seed with all its faults, and again without those that must not matter.
pub fn trial(seed: u64) -> Trial {
    trial_with(seed, &drawn_faults(seed))
}

pub fn trial_with(seed: u64, faults: &Faults) -> Trial {
    let mut world = World::new(plan(seed, faults));
    world.run();
    let mut fault = world.audit.fault.clone();
    if fault.is_none() && is_comparable(&world) {
        fault = compare(&world, seed, faults);
    }
    Trial { world, fault }
}

/// C01: crashes, restarts and late words change nothing in what is made.
fn compare(world: &World, seed: u64, faults: &Faults) -> Option<String> {
    let calm = faults.iter().copied().filter(|fault| !Fault::HARMLESS.contains(fault)).collect();
    let mut still = World::new(plan(seed, &calm));
    still.run();
    if let Some(fault) = &still.audit.fault {
        return Some(format!("without crashes: {fault}"));
    }
    let (made, expected) = (made(world), made(&still));
    (made != expected).then(|| format!("C01: made {made:?}, without crashes {expected:?}"))
}

fn made(world: &World) -> Vec<String> {
    let state = State::replay(&world.disk.durable);
    if matches!(world.spec.flow, Flow::Plan | Flow::Goal) {
        return made_of_a_plan(world, &state);
    }
    let merges = world.git.merges.iter().map(|merge| format!("{} {}", merge.task, merge.tree));
    let ends = state.tasks.iter().map(|task| format!("{:?}", task.status));
    merges.chain(ends).collect()
}

/// Side by side the order is left to chance, and so is which of two failures blocks a third.
fn made_of_a_plan(world: &World, state: &State) -> Vec<String> {
    let merges = world.git.merges.iter().map(|merge| merge.tree.clone());
    let end = |task: &Task| {
        let is_skipped = matches!(task.status, Status::Settled(TaskEnd::Skipped { .. }));
        if is_skipped { "skipped".to_owned() } else { format!("{:?}", task.status) }
    };
    let ends = state.tasks.iter().map(|task| format!("{}: {}", task.name(), end(task)));
    let mut made: Vec<String> = merges.chain(ends).collect();
    made.sort();
    made
}

/// Where tasks can't change each other, with no person, price or deadline among them, only the
/// agents' answers decide.
fn is_comparable(world: &World) -> bool {
    const PEOPLE: [Fault; 9] = [
        Fault::Stop,
        Fault::StopNow,
        Fault::Pause,
        Fault::Retry,
        Fault::Skip,
        Fault::Limit,
        Fault::Waive,
        Fault::Answer,
        Fault::Continue,
    ];
    let limits = &world.spec.limits;
    matches!(world.spec.flow, Flow::Queue | Flow::Plan | Flow::Goal)
        && limits.usd_max.is_none()
        && limits.usd_per_task_max.is_none()
        && limits.interruptions_max >= 100
        && !PEOPLE.iter().any(|fault| world.faults.contains(fault))
}

pub fn drawn_faults(seed: u64) -> Faults {
    let mut random = Random::stream(seed, 2001);
    let permille = [150, 350, 700][random.below(3) as usize];
    Fault::ALL.into_iter().filter(|_| random.chance(permille)).collect()
}

pub fn plan(seed: u64, faults: &Faults) -> Plan {
    let mut random = Random::stream(seed, 2002);
    let mut spec = run(&mut random);
    if is_goal(seed) {
        become_goal(&mut spec, &mut Random::stream(seed, 2010));
    } else if is_planned(seed) {
        become_planned(&mut spec, &mut Random::stream(seed, 2005));
    }
    spec.limits.lanes = lanes(&mut Random::stream(seed, 2006));
    let policies = YardstickChanges::ALL;
    spec.limits.yardstick_changes = policies[mix(seed, 2012) as usize % policies.len()];
    if spec.flow == Flow::Plan && mix(seed, 2013).is_multiple_of(2) {
        spec.switches.insert(Switch::WholeReview);
    }
    if is_proven_cold(seed) {
        spec.switches.insert(Switch::ColdProof);
    }
    if needs_red_tests(seed)
        && (spec.flow != Flow::Goal || spec.switches.contains(&Switch::HasTests))
    {
        spec.switches.insert(Switch::RedGreen);
    }
    if seed % 10 == 3 {
        give_agents(&mut spec, &mut Random::stream(seed, 2010));
    }
    let crashes = if random.chance(150) { 40 } else { random.between(1, 6) as u32 };
    let mut times = BTreeMap::from(Fault::ALL.map(|fault| (fault, u32::MAX)));
    times.extend(TIMES_MAX);
    times.insert(Fault::Crash, crashes);
    Plan {
        seed,
        agents: Agents::Drawn(Drawn {
            seed,
            faults: faults.clone(),
            droughts: droughts(seed, faults),
            luck: Random::stream(seed, 2003),
        }),
        spec,
        faults: faults.clone(),
        times,
        cues: None,
    }
}

/// Seeds of plans. The rest draw what they drew before there were plans, so that the seeds of the
/// corpus keep their meaning.
fn is_planned(seed: u64) -> bool {
    matches!(seed % 10, 0 | 1 | 5 | 7)
}

/// Seeds of goals: none of the corpus was one when they came.
fn is_goal(seed: u64) -> bool {
    matches!(seed % 20, 0 | 5 | 6 | 18 | 19)
}

/// Seeds of runs whose result is proven from nothing: none of the corpus was one when they came.
pub fn is_proven_cold(seed: u64) -> bool {
    matches!(seed % 27, 8 | 10 | 11 | 14..=19 | 23)
}

/// Seeds of runs in which each criterion needs a failing test: none of the corpus was one when they came.
fn needs_red_tests(seed: u64) -> bool {
    matches!(seed % 29, 3 | 4 | 9 | 10 | 17 | 20 | 27)
}

/// The steps come with the workflows.
fn become_goal(spec: &mut RunSpec, random: &mut Random) {
    spec.flow = Flow::Goal;
    spec.tasks.clear();
    let drawn = [
        (Switch::HasTests, 700),
        (Switch::FailFast, 400),
        (Switch::EndGate, 250),
        (Switch::Pr, 300),
    ];
    for (switch, permille) in drawn {
        if random.chance(permille) {
            spec.switches.insert(switch);
        }
    }
    spec.limits.effects_max = random.between(1, 3) as u32;
}

/// The tasks come with the plan; what the run is given is only what it is to be divided into.
fn become_planned(spec: &mut RunSpec, random: &mut Random) {
    spec.flow = Flow::Plan;
    spec.tasks.clear();
    for (switch, permille) in [(Switch::Pr, 400), (Switch::PlanGate, 500), (Switch::EndGate, 400)] {
        if random.chance(permille) {
            spec.switches.insert(switch);
        }
    }
    spec.limits.effects_max = random.between(1, 3) as u32;
    spec.limits.overlaps_wait = random.chance(700);
    // Where the whole may write is no reason for a task of it to wait.
    if random.chance(300) {
        spec.whole.paths = vec!["src".into()];
    }
}

/// Times in which an account is of no use, one after the other for each reason.
fn droughts(seed: u64, faults: &Faults) -> Vec<Drought> {
    const HOUR_MS: u64 = 3_600_000;
    let kinds = [
        (Fault::Quota, HoldWhy::Quota, 2004, 12 * HOUR_MS),
        (Fault::Auth, HoldWhy::Auth, 2007, 4 * HOUR_MS),
        (Fault::Outage, HoldWhy::Outage, 2008, 4 * HOUR_MS),
        (Fault::Model, HoldWhy::Model, 2009, 4 * HOUR_MS),
        // Long enough that a person is needed, or gone before.
        (Fault::Machine, HoldWhy::Machine(MachineFault::DiskFull), 2011, HOUR_MS / 6),
    ];
    let mut droughts = Vec::new();
    for (_, why, stream, longest) in kinds.into_iter().filter(|(fault, ..)| faults.contains(fault))
    {
        let mut random = Random::stream(seed, stream);
        let mut which = Random::stream(seed, stream + 100);
        let mut from = 0;
        for _ in 0..random.between(1, 3) {
            from += random.below(1_200_000);
            let until = from + random.between(60_000, longest);
            let lanes = ["", "one", "two", "one/big"][which.below(4) as usize].to_owned();
            let is_told = which.chance(700);
            droughts.push(Drought { lanes, from, until, why, is_told });
            from = until;
        }
    }
    droughts
}

/// Who does what: everybody an account of their own, one for all, or a list to fall back on.
fn lanes(random: &mut Random) -> BTreeMap<Step, Vec<String>> {
    const LISTS: [&[&str]; 6] = [
        &["one"],
        &["two"],
        &["one", "two"],
        &["two", "one"],
        &["one/big", "one/small"],
        &["one/big", "one/small", "two"],
    ];
    if random.chance(250) {
        return BTreeMap::new();
    }
    let mut lanes = BTreeMap::new();
    for role in [Role::Builder, Role::Reviewer, Role::Planner] {
        let list = LISTS[random.below(LISTS.len() as u64) as usize];
        let list: Vec<String> = list.iter().map(|&name| name.to_owned()).collect();
        let steps = Step::ALL.into_iter().filter(|step| step.role() == Some(role));
        lanes.extend(steps.map(|step| (step, list.clone())));
    }
    lanes
}

/// Tasks that say who does their work, or with which model.
fn give_agents(spec: &mut RunSpec, random: &mut Random) {
    const LISTS: [&[&str]; 4] = [&["one"], &["two"], &["two", "one"], &["one/big", "two"]];
    for name in ["x", "y"] {
        let list = LISTS[random.below(LISTS.len() as u64) as usize];
        let list = list.iter().map(|&lane| lane.to_owned()).collect();
        spec.limits.agents.insert(name.to_owned(), list);
    }
    for task in &mut spec.tasks {
        let agent = ["x", "y", ""][random.below(3) as usize];
        task.by.agent = Some(agent.to_owned()).filter(|agent| !agent.is_empty());
        task.by.model = random.chance(300).then(|| "big".to_owned());
    }
}

fn run(random: &mut Random) -> RunSpec {
    let flow = if random.chance(650) { Flow::Queue } else { Flow::Task };
    let many = random.between(1, TASKS_MAX);
    let has_needs = random.chance(400);
    let mut tasks: Vec<TaskEntry> = Vec::new();
    for at in 0..many {
        let mut depends_on = BTreeSet::new();
        if has_needs && at > 0 {
            for _ in 0..random.below(3) {
                depends_on.insert(format!("t{}", random.below(at)));
            }
        }
        let depends_on = depends_on.into_iter().collect();
        tasks.push(TaskEntry { name: format!("t{at}"), depends_on, ..TaskEntry::default() });
    }
    let all = [Switch::Baseline, Switch::Review, Switch::Uat, Switch::Push];
    let mut switches: BTreeSet<Switch> = all.into_iter().filter(|_| random.chance(700)).collect();
    let spared = [Switch::SpareReview, Switch::SpareCases];
    switches.extend(spared.into_iter().filter(|_| random.chance(300)));
    RunSpec {
        id: "run".into(),
        flow,
        title: "simulated".into(),
        source: "tasks/".into(),
        started_by: "nobody".into(),
        base_branch: "main".into(),
        base: "b0".into(),
        branch: "autopilot/run".into(),
        switches,
        limits: limits(random),
        config: "c".into(),
        red_base_allowed: false,
        holdout: None,
        options: Default::default(),
        whole: TaskEntry::default(),
        plan: None,
        tasks,
    }
}

fn limits(random: &mut Random) -> Limits {
    let usd = |random: &mut Random, most: u64| Micros(random.between(1, most) * 250_000);
    Limits {
        workers_max: random.between(1, 4) as u32,
        rounds_max: random.between(1, 5) as u32,
        rounds_lifetime_max: random.between(3, 12) as u32,
        retries_max: random.between(1, 8) as u32,
        interruptions_max: if random.chance(300) { random.below(4) as u32 } else { 1000 },
        wait_quota_max_ms: random.between(1, 24) * 3_600_000,
        usd_max: random.chance(250).then(|| usd(random, 40)),
        usd_per_task_max: random.chance(250).then(|| usd(random, 15)),
        wall_max_ms: random.chance(200).then(|| random.between(1, 120) * 60_000),
        same_failures_max: random.between(2, 4) as u32,
        no_ops_max: random.between(1, 3) as u32,
        review: match random.below(5) {
            0 => ReviewGate::Evidence,
            1 => ReviewGate::Advisory,
            _ => ReviewGate::Required,
        },
        ..Limits::default()
    }
}
