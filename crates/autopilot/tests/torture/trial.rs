//! One run under torture, from its start to its account.

use crate::account::{Account, Price, Untouched, leftovers, settle};
use crate::processes::{self, GONE_WAIT_MAX};
use crate::stage::{BILL_MAX, Ended, Flow, Running, Stage};
use autopilot_engine::{store, workspace};
use autopilot_host::proc::ProcessIdentity;
use autopilot_testkit::small_disk::Fill;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::Duration;

/// What an undisturbed run gives.
pub struct Reference {
    pub account: Account,
    pub price: Price,
    pub time: Duration,
}

pub fn reference(flow: Flow) -> &'static Reference {
    static TASK: OnceLock<Reference> = OnceLock::new();
    static QUEUE: OnceLock<Reference> = OnceLock::new();
    let cell = match flow {
        Flow::Task => &TASK,
        Flow::Queue => &QUEUE,
    };
    cell.get_or_init(|| {
        let mut trial = Trial::new(flow);
        let ended = trial.start(None).end();
        assert_eq!(ended, Ended::Code(0), "{}", trial.log());
        let time = trial.time;
        let (account, price) = settle(&trial.stage);
        assert_eq!(account.spent["1-alpha"], (2, 0), "the first build breaks a test");
        assert_eq!(processes::left(&trial.stage.root, &BTreeSet::new(), GONE_WAIT_MAX), [""; 0]);
        assert_eq!(Untouched::of(&trial.stage), trial.before);
        trial.over = true;
        eprintln!("undisturbed {flow:?}: {time:?}, {} commits, {price:?}", account.commits);
        Reference { account, price, time }
    })
}

pub struct Trial {
    pub stage: Stage,
    pub flow: Flow,
    pub kills: u32,
    /// Signals that asked it to rest.
    pub rests: u32,
    time: Duration,
    before: Untouched,
    /// Agents that were killed; each costs its task a retry.
    agents_killed: u32,
    /// Left by a kill that took the supervisors too: the next boot must find them.
    orphans: BTreeSet<ProcessIdentity>,
    over: bool,
}

/// Who dies together with the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum With {
    Nobody,
    Supervisors,
    /// Supervisors and the controller's own git.
    Everything,
}

impl Trial {
    pub fn new(flow: Flow) -> Trial {
        Trial::on(flow, Stage::new())
    }

    pub fn on(flow: Flow, stage: Stage) -> Trial {
        let before = Untouched::of(&stage);
        let orphans = BTreeSet::new();
        Trial {
            stage,
            flow,
            kills: 0,
            rests: 0,
            agents_killed: 0,
            time: Duration::ZERO,
            before,
            orphans,
            over: false,
        }
    }

    pub fn start(&mut self, failpoint: Option<&str>) -> Controller<'_> {
        let running = self.stage.start(self.flow.args(), failpoint);
        Controller { running, trial: self }
    }

    pub fn start_with(&mut self, args: &[&str], failpoint: Option<&str>) -> Controller<'_> {
        let running = self.stage.start(args, failpoint);
        Controller { running, trial: self }
    }

    /// The test has judged it by itself: nothing is kept.
    pub fn forget(mut self) {
        self.over = true;
    }

    /// By `resume`; a run that was killed before its first record can only be begun again.
    pub fn resume(&mut self) -> Controller<'_> {
        self.take_up(None)
    }

    pub fn resume_to(&mut self, failpoint: &str) -> Controller<'_> {
        self.take_up(Some(failpoint))
    }

    fn take_up(&mut self, failpoint: Option<&str>) -> Controller<'_> {
        let args: &[&str] = if self.has_begun() { &["resume"] } else { self.flow.args() };
        let running = self.stage.start(args, failpoint);
        Controller { running, trial: self }
    }

    fn has_begun(&self) -> bool {
        let place = crate::account::place(&self.stage);
        let Ok(reader) = workspace::reader(&place) else { return false };
        let Some(run) = workspace::pick(&reader, None).unwrap() else { return false };
        store::load(&reader, &run.id).unwrap().has_begun()
    }

    /// Killed after the last thing it had to do: there is nothing to resume.
    pub fn is_over(&self) -> bool {
        let Ok(reader) = workspace::reader(&crate::account::place(&self.stage)) else {
            return false;
        };
        workspace::pick(&reader, None).unwrap().is_some_and(|run| run.ended.is_some())
    }

    /// The run has ended well after faults it went on from, or rested for.
    pub fn judge_after(mut self, faults: u32, rests: u32) {
        // A fault cuts an attempt short as a signal does. A process that could not write its journal
        // any more has ended like one that was killed.
        self.rests += faults;
        self.kills += rests;
        self.judge();
    }

    /// The run has ended well: it must look like one that nobody disturbed.
    pub fn judge(mut self) {
        let wanted = reference(self.flow);
        let left = processes::left(&self.stage.root, &BTreeSet::new(), GONE_WAIT_MAX);
        assert_eq!(left, [""; 0], "left behind after the end");
        assert_eq!(Untouched::of(&self.stage), self.before, "the user's own part has changed");
        let (mut account, price) = settle(&self.stage);
        let retries: u32 = account.spent.values().map(|(_, retries)| retries).sum();
        assert!(retries <= self.agents_killed, "{:?}: a fault of ours was paid for", account.spent);
        for (_, retries) in account.spent.values_mut() {
            *retries = 0;
        }
        assert_eq!(account, wanted.account);
        assert_eq!(leftovers(&self.stage), [""; 0], "left behind");
        // A run that was only asked to rest was not interrupted; its last step may be done again.
        assert!(price.interruptions <= self.kills, "{price:?} after {} kills", self.kills);
        let cuts = u64::from(self.kills + self.rests);
        assert!(price.micros >= wanted.price.micros, "{price:?}: money was forgotten");
        assert!(price.micros <= wanted.price.micros + cuts * BILL_MAX, "{price:?}: billed twice");
        assert!(price.salvaged as u64 <= wanted.price.salvaged as u64 + cuts, "{price:?}");
        self.over = true;
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.stage.root.join("log.txt")).unwrap_or_default()
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if !self.over {
            let log = self.log();
            let kept = self.stage.keep();
            eprintln!("the trial is kept in {kept}; the binary said:\n{log}");
        }
    }
}

pub struct Controller<'a> {
    running: Running,
    trial: &'a mut Trial,
}

impl Controller<'_> {
    pub fn ended_before(&mut self, instant: Duration) -> Option<Ended> {
        self.running.ended_before(instant).map(Ended::of)
    }

    /// Waits for its end, which may be the one a failpoint brings.
    pub fn wait(&mut self) -> Ended {
        let ended = self.running.end();
        self.trial.time = self.running.elapsed();
        ended
    }

    pub fn end(mut self) -> Ended {
        self.wait()
    }

    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// How long ago it was started.
    pub fn elapsed(&self) -> Duration {
        self.running.elapsed()
    }

    /// An agent of it was killed, if one was there.
    pub fn agent_died(&mut self, struck: bool) {
        self.trial.agents_killed += u32::from(struck);
    }

    /// Uses up its disk for a while.
    pub fn fill_disk(&mut self, what: Fill, broken: Duration) {
        let disk = self.trial.stage.disk.as_ref().unwrap();
        disk.fill(what);
        std::thread::sleep(broken);
        disk.empty();
    }

    /// Asks it to rest and waits: one signal lets the step end, a second ends everything at once.
    pub fn rest(&mut self, name: &str, twice: bool) {
        self.trial.rests += 1;
        let pid = i32::try_from(self.running.pid()).unwrap();
        processes::signal(name, &[pid]);
        if twice {
            processes::signal(name, &[pid]);
        }
        self.wait();
    }

    /// It has died of a signal by itself, or of ours.
    pub fn died(&mut self) {
        self.trial.kills += 1;
        let left = processes::left(&self.trial.stage.root, &self.trial.orphans, GONE_WAIT_MAX);
        assert_eq!(left, [""; 0], "left behind by a controller that was killed");
    }

    pub fn kill(mut self, with: With) {
        self.strike(with);
    }

    /// Kills it, and whoever dies together with it.
    pub fn strike(&mut self, with: With) {
        let helpers = match with {
            With::Nobody => Vec::new(),
            With::Supervisors => processes::helpers(self.running.pid(), false),
            With::Everything => processes::helpers(self.running.pid(), true),
        };
        let controller = i32::try_from(self.running.pid()).unwrap();
        processes::signal("KILL", &[vec![controller], helpers].concat());
        self.running.child.wait().unwrap();
        match with {
            With::Nobody => self.died(),
            With::Supervisors | With::Everything => {
                self.trial.kills += 1;
                self.trial.orphans = processes::alive(&self.trial.stage.root);
            }
        }
    }
}
