//! Faults by kind at random instants: of the controller, of its supervisors, its git and its agents,
//! of the disk, of the branches and of the journal. Whatever strikes, the run ends as one that nobody
//! disturbed.
//!
//! `AUTOPILOT_TORTURE_FAULTS` says how many faults of each kind, `AUTOPILOT_TORTURE_KINDS` which
//! kinds (words with commas between), `AUTOPILOT_TORTURE_SEED` replays the draws.

use crate::damage;
use crate::draw::{Draw, number, seed};
use crate::processes;
use crate::stage::{Ended, Flow, Stage};
use crate::trial::{Controller, Trial, With, reference};
use autopilot_testkit::small_disk::Fill;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

/// The kinds of faults, with the words by which they are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FaultKind {
    Controller,
    Supervisor,
    Git,
    Agent,
    DiskFull,
    Inodes,
    ReadOnly,
    RefDamage,
    JournalDamage,
}

const KINDS: [(&str, FaultKind); 9] = [
    ("controller", FaultKind::Controller),
    ("supervisor", FaultKind::Supervisor),
    ("git", FaultKind::Git),
    ("agent", FaultKind::Agent),
    ("disk-full", FaultKind::DiskFull),
    ("inodes", FaultKind::Inodes),
    ("read-only", FaultKind::ReadOnly),
    ("ref-damage", FaultKind::RefDamage),
    ("journal-damage", FaultKind::JournalDamage),
];

const FAULTS_DEFAULT: u64 = 3;
const FAULTS_PER_RUN_MAX: u32 = 5;
/// Every fault is over soon, so a run that rests more often does not get over one.
const RESTS_PER_RUN_MAX: u32 = 2 * FAULTS_PER_RUN_MAX;
/// As many as the smallest machine has cores.
const THREADS: usize = 2;
/// How long a process of the wanted kind is waited for; steps that have none are common.
const PREY_WAIT_MAX: Duration = Duration::from_millis(400);
/// How long a disk stays broken at most: longer than the first pause before another try.
const BROKEN_TIME_MAX: Duration = Duration::from_millis(1500);

/// The faults that struck, the runs they struck, and the rests of those runs, by kind.
#[derive(Default)]
struct Tally {
    faults: u64,
    runs: u64,
    rests: u64,
}

#[test]
fn a_run_struck_by_faults_of_any_kind_ends_like_an_undisturbed_one() {
    let wanted = number("AUTOPILOT_TORTURE_FAULTS", FAULTS_DEFAULT);
    let (seed, kinds) = (seed(), kinds());
    for flow in [Flow::Task, Flow::Queue] {
        reference(flow);
    }
    let tallies: Mutex<BTreeMap<FaultKind, Tally>> = Mutex::default();
    // A kind is given to a thread as long as it has struck too little.
    let next = |case: u64| {
        let tallies = tallies.lock().unwrap();
        let struck = |kind: &FaultKind| tallies.get(kind).map_or(0, |tally| tally.faults);
        let open: Vec<FaultKind> =
            kinds.iter().copied().filter(|kind| struck(kind) < wanted).collect();
        (!open.is_empty()).then(|| open[case as usize % open.len()])
    };
    let cases = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let case = cases.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    let Some(kind) = next(case) else { return };
                    let told = format!("case {case} of AUTOPILOT_TORTURE_SEED={seed}: {kind:?}");
                    let on_panic = Told(told);
                    let (faults, rests) = torture(kind, &mut Draw::of(seed, case));
                    std::mem::forget(on_panic);
                    let mut tallies = tallies.lock().unwrap();
                    let tally = tallies.entry(kind).or_default();
                    tally.faults += u64::from(faults);
                    tally.runs += 1;
                    tally.rests += u64::from(rests);
                }
            });
        }
    });
    for (kind, tally) in tallies.into_inner().unwrap() {
        let Tally { faults, runs, rests } = tally;
        eprintln!("{kind:?}: {faults} faults in {runs} runs, {rests} rests");
        assert!(faults >= wanted, "{kind:?} struck {faults} times only");
    }
}

/// Names the case that broke.
struct Told(String);

impl Drop for Told {
    fn drop(&mut self) {
        eprintln!("{}", self.0);
    }
}

fn kinds() -> Vec<FaultKind> {
    let Ok(words) = std::env::var("AUTOPILOT_TORTURE_KINDS") else {
        return KINDS.iter().map(|(_, kind)| *kind).collect();
    };
    let find = |word: &str| {
        let known = KINDS.iter().find(|(name, _)| *name == word);
        known.unwrap_or_else(|| panic!("`{word}` is not a kind of fault: {KINDS:?}")).1
    };
    words.split(',').map(find).collect()
}

/// One run from its start to its end; how many faults struck it, and how often it rested.
fn torture(kind: FaultKind, draw: &mut Draw) -> (u32, u32) {
    let flow = if draw.chance(50) { Flow::Task } else { Flow::Queue };
    let time = reference(flow).time;
    let mut trial = Trial::on(flow, stage_for(kind));
    let (mut faults, mut rests) = (0, 0);
    loop {
        let mut controller = if faults + rests == 0 { trial.start(None) } else { trial.resume() };
        let mut ended = None;
        while ended.is_none() && faults < FAULTS_PER_RUN_MAX && (faults == 0 || draw.chance(60)) {
            let instant =
                controller.elapsed() + Duration::from_micros(draw.below(time.as_micros() as u64));
            ended = controller.ended_before(instant);
            if ended.is_none() && strike_alive(kind, &mut controller, draw) {
                faults += 1;
            }
            if is_of_the_dead(kind) {
                break;
            }
        }
        if ended.is_none() && is_of_the_dead(kind) && faults < FAULTS_PER_RUN_MAX {
            controller.kill(With::Nobody);
            if trial.is_over() {
                break;
            }
            if strike_dead(kind, &mut trial, draw) {
                faults += 1;
            }
            continue;
        }
        match ended.unwrap_or_else(|| controller.end()) {
            Ended::Code(0) => break,
            // A fault of the machine that lasted: the run rests, and the fault is over by now.
            Ended::Code(2) => {
                rests += 1;
                assert!(rests <= RESTS_PER_RUN_MAX, "it rests again and again:\n{}", trial.log());
            }
            Ended::Signal(9) if kind == FaultKind::Controller => {
                if trial.is_over() {
                    break;
                }
            }
            other => panic!("ended as {other:?} after {faults} faults:\n{}", trial.log()),
        }
    }
    trial.judge_after(faults, rests);
    (faults, rests)
}

fn stage_for(kind: FaultKind) -> Stage {
    match kind {
        FaultKind::DiskFull | FaultKind::ReadOnly => Stage::on_a_small_disk("size=256m"),
        FaultKind::Inodes => Stage::on_a_small_disk("size=256m,nr_inodes=6000"),
        FaultKind::Controller
        | FaultKind::Supervisor
        | FaultKind::Git
        | FaultKind::Agent
        | FaultKind::RefDamage
        | FaultKind::JournalDamage => Stage::new(),
    }
}

/// Whether the fault strikes while no controller is alive.
fn is_of_the_dead(kind: FaultKind) -> bool {
    matches!(kind, FaultKind::ReadOnly | FaultKind::RefDamage | FaultKind::JournalDamage)
}

/// Lets the fault strike a living controller; false when there was nothing to strike.
fn strike_alive(kind: FaultKind, controller: &mut Controller<'_>, draw: &mut Draw) -> bool {
    let pid = controller.pid();
    let mut strike = |find: &dyn Fn() -> Vec<i32>| {
        let prey = processes::wait_for(PREY_WAIT_MAX, find);
        let struck = prey.get(draw.below(prey.len() as u64) as usize).copied();
        processes::signal("KILL", struck.as_slice());
        struck.is_some()
    };
    match kind {
        FaultKind::Controller => {
            let with = [With::Nobody, With::Supervisors, With::Everything];
            controller.strike(with[draw.below(3) as usize]);
            true
        }
        FaultKind::Supervisor => strike(&|| processes::helpers(pid, false)),
        FaultKind::Git => strike(&|| processes::git_below(pid)),
        FaultKind::Agent => {
            let struck = strike(&|| processes::agents_below(pid));
            controller.agent_died(struck);
            struck
        }
        FaultKind::DiskFull | FaultKind::Inodes => {
            let what = if kind == FaultKind::DiskFull { Fill::Bytes } else { Fill::Inodes };
            let broken = Duration::from_micros(draw.below(BROKEN_TIME_MAX.as_micros() as u64));
            controller.fill_disk(what, broken);
            true
        }
        FaultKind::ReadOnly | FaultKind::RefDamage | FaultKind::JournalDamage => false,
    }
}

/// Lets the fault strike what a dead controller left; false when there was nothing to strike.
fn strike_dead(kind: FaultKind, trial: &mut Trial, draw: &mut Draw) -> bool {
    match kind {
        FaultKind::ReadOnly => damage::read_only_for_a_while(trial),
        FaultKind::RefDamage => damage::a_branch(&trial.stage, draw),
        FaultKind::JournalDamage => damage::the_journal_for_a_while(trial, draw),
        FaultKind::Controller
        | FaultKind::Supervisor
        | FaultKind::Git
        | FaultKind::Agent
        | FaultKind::DiskFull
        | FaultKind::Inodes => false,
    }
}
