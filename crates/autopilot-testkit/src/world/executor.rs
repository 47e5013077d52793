//! Executors in the simulated world: they begin by order, say things, act, and end or are ended.

use super::process::{Job, Process};
use super::{Happening, World};
use crate::agent::{Play, Scene};
use crate::audit::table::is_serial;
use crate::fault::Fault;
use autopilot_core::event::{Bill, HoldWhy, Outcome};
use autopilot_core::id::{AttemptId, Micros};
use autopilot_core::input::{AttemptWord, Input};
use autopilot_core::pilot::PilotOrder;
use autopilot_core::step::Step;
use autopilot_core::wanted::Want;

pub struct Running {
    pub play: Play,
    pub is_done: bool,
}

impl World {
    pub(super) fn obey(&mut self, orders: Vec<PilotOrder>) {
        for order in orders {
            if self.shell.is_none() {
                return;
            }
            if self.strikes(Fault::Crash, 6) {
                return self.crash();
            }
            match order {
                PilotOrder::Tell(record) => self.audit.told(record, &self.disk.durable),
                PilotOrder::Start(want) => self.begin(want),
                PilotOrder::End(id) => self.end(id),
            }
        }
    }

    fn begin(&mut self, want: Want) {
        let Some(boot) = self.shell.as_ref().map(|shell| shell.boot) else { return };
        self.audit.begun(want, boot, &self.disk.durable, &self.processes);
        let (now, clock) = (self.now, self.clock());
        let Some(shell) = &self.shell else { return };
        let scene = Scene { state: shell.pilot.settled(), want, now, clock };
        let play = self.agents.play(&scene);
        let process = self.processes.spawn(Job { want, boot });
        self.tally.attempts += 1;
        self.note(|| format!("begin {} of {} as {} ({process:?})", want.step, want.task, want.id));
        for (ms, word) in play.words.clone() {
            self.later(ms, Happening::Said { by: Some(process), want, word });
        }
        if play.has_effect {
            self.later(play.ms / 2, Happening::Effect(process));
        }
        self.later(play.ms, Happening::Finish(process));
        self.cue_for(want, play.ms);
        self.running.insert(process, Running { play, is_done: false });
    }

    /// Told to end, an executor is given a moment, in which it may still act and speak.
    fn end(&mut self, id: AttemptId) {
        let found = self.processes.ours().find(|(_, job)| job.want.id == id);
        let Some(process) = found.map(|(process, _)| process) else { return };
        let grace = if self.is_scripted { 100 } else { self.pace.below(5_000) };
        self.later(grace, Happening::Killed(process));
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "no other step changes the repository")]
    pub(super) fn effect(&mut self, process: Process) {
        let Some(want) = self.processes.job(process).map(|job| job.want) else { return };
        let Some(running) = self.running.get_mut(&process).filter(|running| !running.is_done)
        else {
            return;
        };
        running.is_done = true;
        match want.step {
            Step::Merge => {
                let merged = self.audit.tree_of(want.task);
                self.git.merge(want.task, want.id, &merged);
                self.audit.merged(&self.git, want.task, &merged);
                self.note(|| format!("merged {} by {}", want.task, want.id));
            }
            Step::Push => {
                self.git.push();
                self.audit.pushed(&self.git);
                self.note(|| format!("pushed by {}", want.id));
            }
            _ => {}
        }
    }

    pub(super) fn said(&mut self, by: Option<Process>, want: Want, word: AttemptWord) {
        if let Some(process) = by {
            let job = self.processes.job(process);
            let is_heard = job.is_some_and(|job| self.is_life(job.boot));
            if !is_heard && !self.strikes(Fault::LateWord, 500) {
                return;
            }
        }
        if let AttemptWord::Bill(_) = word {
            self.count(Fault::Bills);
        }
        self.hear(Input::Heard { id: want.id, task: want.task, word });
    }

    pub(super) fn finish_job(&mut self, process: Process) {
        let Some(job) = self.processes.job(process).cloned() else { return };
        let Some(running) = self.running.remove(&process) else { return };
        self.processes.ended(process);
        let want = job.want;
        let play = running.play;
        let ended = || AttemptWord::Ended {
            outcome: play.outcome.clone(),
            facts: Box::new(play.facts.clone()),
        };
        // An effect keeps its id over a boot: its words come from inside the process and die with it.
        let is_fenced = !is_serial(want.step);
        if !self.is_life(job.boot) {
            if is_fenced && self.strikes(Fault::LateWord, 700) {
                self.later(30_000, Happening::Said { by: None, want, word: ended() });
            }
            return;
        }
        if self.crash_cue_after(want) {
            return self.crash();
        }
        self.agents.played(&self.audit.name_of(want.task), want.step);
        let word = play.outcome_word();
        *self.tally.outcomes.entry(format!("{} {word}", want.step)).or_default() += 1;
        for fault in &play.faults {
            self.count(*fault);
        }
        if is_fenced && self.strikes(Fault::DoubledWord, 200) {
            let ms = self.pace.below(300_000);
            self.later(ms, Happening::Said { by: None, want, word: ended() });
        }
        self.hear(Input::Heard { id: want.id, task: want.task, word: ended() });
        self.forget(want.id);
    }

    pub(super) fn killed(&mut self, process: Process) {
        let Some(job) = self.processes.job(process).cloned() else { return };
        let running = self.running.remove(&process);
        self.processes.ended(process);
        let want = job.want;
        if !self.is_life(job.boot) {
            return;
        }
        self.note(|| format!("ended {}", want.id));
        // Done or not, all it knows is that it was told to end.
        let is_effect = running.is_some_and(|running| running.play.has_effect);
        if is_effect && (self.is_scripted || self.pace.chance(500)) {
            let word = AttemptWord::Ended { outcome: Outcome::Revoked, facts: Box::default() };
            self.hear(Input::Heard { id: want.id, task: want.task, word });
        }
        if self.faults.contains(&Fault::Bills) && self.pace.chance(500) {
            let bill =
                Bill { usd: Micros(2_000_000), tokens_in: 9, tokens_out: 9, ..Bill::default() };
            self.later(2_000, Happening::Said { by: None, want, word: AttemptWord::Bill(bill) });
        }
        self.forget(want.id);
    }

    fn forget(&mut self, id: AttemptId) {
        let Some(shell) = &mut self.shell else { return };
        shell.pilot.gone(id);
        let orders = shell.pilot.catch_up();
        self.obey(orders);
    }

    pub(super) fn count(&mut self, fault: Fault) {
        *self.tally.faults.entry(fault).or_default() += 1;
    }
}

impl Play {
    fn outcome_word(&self) -> &'static str {
        match self.outcome {
            Outcome::Passed => "passed",
            Outcome::Failed { .. } => "failed",
            Outcome::Misconfigured { .. } => "misconfigured",
            Outcome::Broke { .. } => "broke",
            Outcome::Lost => "lost",
            Outcome::Quota { .. } => "quota",
            Outcome::Away { why, .. } => match why {
                HoldWhy::Quota => "quota without a time",
                HoldWhy::Auth => "not logged in",
                HoldWhy::Outage => "outage",
                HoldWhy::Model => "unknown model",
                HoldWhy::Program => "not installed",
                HoldWhy::Machine(_) => "hindered by the machine",
            },
            Outcome::Revoked => "revoked",
            Outcome::Skipped { .. } => "skipped",
        }
    }
}
