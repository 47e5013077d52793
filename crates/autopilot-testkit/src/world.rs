//! The simulated world: one thread, one seed, one run, one hash.
//!
//! A queue of happenings in virtual time drives the real loop as the real shell does: what is heard
//! becomes a record, a durable record becomes orders, orders start and end executors. The world may
//! kill it all between any two instants.

pub mod disk;
pub mod executor;
pub mod git;
pub mod life;
pub mod people;
pub mod process;

use crate::agent::Agents;
use crate::audit::Audit;
use crate::fault::{Fault, Faults};
use crate::random::{Random, mix};
use autopilot_core::event::RunSpec;
use autopilot_core::id::Time;
use autopilot_core::input::{Ask, AttemptWord, Input};
use autopilot_core::pilot::Pilot;
use autopilot_core::state::State;
use autopilot_core::wanted::Want;
use disk::Disk;
use executor::Running;
use git::Git;
use people::Cue;
use process::{Process, Processes};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// A run that needs more than this does not come to rest.
const HAPPENINGS_MAX: u64 = 40_000;
const EPOCH_MS: i64 = 1_780_000_000_000;

pub struct World {
    pub seed: u64,
    pub now: u64,
    /// The wall clock against virtual time.
    skew_ms: i64,
    queue: BinaryHeap<Reverse<Entry>>,
    queued: u64,
    tie: Random,
    pace: Random,
    /// What the people around a plan draw, apart from all else.
    whims: Random,
    luck: BTreeMap<Fault, Random>,
    pub faults: Faults,
    left: BTreeMap<Fault, u32>,
    pub agents: Agents,
    pub disk: Disk,
    pub git: Git,
    pub processes: Processes,
    running: BTreeMap<Process, Running>,
    shell: Option<Shell>,
    boots: u32,
    pub spec: RunSpec,
    pub audit: Audit,
    pub tally: Tally,
    pub hash: u64,
    pub trace: Option<Vec<String>>,
    pub cues: VecDeque<Cue>,
    /// What was refused, in words, in the order in which it was asked.
    pub refusals: Vec<String>,
    is_scripted: bool,
    is_done: bool,
}

struct Shell {
    pilot: Pilot,
    boot: u32,
}

/// What a campaign counts, so that a fault that never happened is seen.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub faults: BTreeMap<Fault, u64>,
    pub records: u64,
    pub happenings: u64,
    pub boots: u64,
    pub attempts: u64,
    pub merges: u64,
    pub swept: u64,
    pub outcomes: BTreeMap<String, u64>,
}

#[derive(Debug)]
pub enum Happening {
    Boot(Vec<Ask>),
    Flushed { boot: u32, seq: u64 },
    Said { by: Option<Process>, want: Want, word: AttemptWord },
    Effect(Process),
    Finish(Process),
    Killed(Process),
    Tick { boot: u32 },
    Act(people::Act),
}

struct Entry {
    at: u64,
    tie: u64,
    number: u64,
    happening: Happening,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.tie, self.number).cmp(&(other.at, other.tie, other.number))
    }
}

/// Everything a world is made from.
pub struct Plan {
    pub seed: u64,
    pub spec: RunSpec,
    pub faults: Faults,
    pub agents: Agents,
    /// How often each fault may strike.
    pub times: BTreeMap<Fault, u32>,
    /// Written by a person; nothing is left to chance.
    pub cues: Option<VecDeque<Cue>>,
}

impl World {
    pub fn new(plan: Plan) -> World {
        let seed = plan.seed;
        World {
            seed,
            now: 0,
            skew_ms: 0,
            queue: BinaryHeap::new(),
            queued: 0,
            tie: Random::stream(seed, 1001),
            pace: Random::stream(seed, 1002),
            whims: Random::stream(seed, 1003),
            luck: Fault::ALL.map(|fault| (fault, Random::stream(seed, fault as u64))).into(),
            faults: plan.faults,
            left: plan.times,
            agents: plan.agents,
            disk: Disk::default(),
            git: Git::default(),
            processes: Processes::default(),
            running: BTreeMap::new(),
            shell: None,
            boots: 0,
            spec: plan.spec,
            audit: Audit::default(),
            tally: Tally::default(),
            hash: seed,
            trace: None,
            refusals: Vec::new(),
            is_scripted: plan.cues.is_some(),
            cues: plan.cues.unwrap_or_default(),
            is_done: false,
        }
    }

    /// Runs until the run is over and nobody wants anything more of it.
    pub fn run(&mut self) {
        self.later(0, Happening::Boot(Vec::new()));
        while !self.is_done && self.audit.is_sound() {
            let Some(Reverse(entry)) = self.queue.pop() else {
                self.audit.broken("the world ran out of happenings before the run was over");
                break;
            };
            self.now = self.now.max(entry.at);
            self.tally.happenings += 1;
            if self.tally.happenings > HAPPENINGS_MAX {
                self.audit.broken("I9: the run does not come to rest");
            }
            self.hash = mix(mix(self.hash, self.now), entry.number);
            if self.shell.is_some() && self.strikes(Fault::Crash, 12) {
                self.crash();
            }
            self.happen(entry.happening);
            self.meddle();
            self.look_for_rest();
        }
        self.finish();
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Boot(asks) => self.boot(asks),
            Happening::Flushed { boot, seq } => {
                if self.is_life(boot) {
                    self.flushed(seq);
                }
            }
            Happening::Said { by, want, word } => self.said(by, want, word),
            Happening::Effect(process) => self.effect(process),
            Happening::Finish(process) => self.finish_job(process),
            Happening::Killed(process) => self.killed(process),
            Happening::Tick { boot } => {
                if self.is_life(boot) {
                    self.tick();
                }
            }
            Happening::Act(act) => self.act(act),
        }
    }

    fn is_life(&self, boot: u32) -> bool {
        self.shell.as_ref().is_some_and(|shell| shell.boot == boot)
    }

    pub fn clock(&self) -> Time {
        Time(EPOCH_MS + self.now as i64 + self.skew_ms)
    }

    /// The state the shell decides on, or what the journal holds when there is no shell.
    pub fn state(&self) -> State {
        match &self.shell {
            Some(shell) => shell.pilot.ahead().clone(),
            None => State::replay(&self.disk.durable),
        }
    }

    pub(crate) fn later(&mut self, ms: u64, happening: Happening) {
        self.queued += 1;
        let tie = if self.is_scripted { 0 } else { self.tie.draw() };
        let entry = Entry { at: self.now + ms, tie, number: self.queued, happening };
        self.queue.push(Reverse(entry));
    }

    /// Whether a fault happens here and now.
    fn strikes(&mut self, fault: Fault, permille: u64) -> bool {
        if !self.faults.contains(&fault) {
            return false;
        }
        let hit = self.luck.get_mut(&fault).is_some_and(|luck| luck.chance(permille));
        if !hit {
            return false;
        }
        let Some(left) = self.left.get_mut(&fault).filter(|left| **left > 0) else { return false };
        *left -= 1;
        self.struck(fault);
        true
    }

    fn struck(&mut self, fault: Fault) {
        *self.tally.faults.entry(fault).or_default() += 1;
        self.note(|| format!("fault {fault:?}"));
    }

    pub(crate) fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>9}.{:03}  {}", self.now / 1000, self.now % 1000, text()));
        }
    }

    /// As the shell does: the record goes to the disk, its orders come back when it is durable.
    fn hear(&mut self, input: Input) -> bool {
        let clock = self.clock();
        let Some(shell) = &mut self.shell else { return false };
        let before = matches!(input, Input::Asked(_)).then(|| shell.pilot.ahead().clone());
        let heard = shell.pilot.hear(input.clone(), clock);
        if let Some(before) = before {
            self.audit.answered(&heard, &before, shell.pilot.ahead());
        }
        let record = heard.unwrap_or_else(|refusal| {
            self.refusals.push(refusal.to_string());
            None
        });
        self.audit.heard(&input, record.as_ref(), shell.pilot.ahead());
        let Some(record) = record else { return false };
        self.note(|| format!("record {} {:?}", record.seq, record.events));
        self.disk.pending.push_back(record);
        self.flush();
        true
    }
}
