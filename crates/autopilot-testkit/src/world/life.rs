//! Lives of the controller: boot, the way to the disk, the ways to die, and rest.

use super::{Happening, Shell, World};
use crate::fault::Fault;
use autopilot_core::id::Time;
use autopilot_core::input::{Ask, Input};
use autopilot_core::pilot::Pilot;
use autopilot_core::state::State;

const TICK_MS: u64 = 60_000;
const YEAR_MS: i64 = 365 * 24 * 3_600_000;
const DAY_MS: i64 = 24 * 3_600_000;

impl World {
    /// Sweep, replay, one synchronous record, then the orders that follow from it.
    pub(super) fn boot(&mut self, asks: Vec<Ask>) {
        if self.shell.is_some() {
            return;
        }
        if self.strikes(Fault::BootCrash, 80) {
            return self.later(1_000, Happening::Boot(asks));
        }
        self.tally.swept += u64::from(self.processes.sweep());
        self.audit.swept(&self.processes);
        self.running.clear();
        self.boots += 1;
        self.tally.boots += 1;
        let mut pilot = Pilot::resume(self.remembered());
        let input = match self.disk.durable.is_empty() {
            true => Input::Start(Box::new(self.spec.clone())),
            false => Input::Boot,
        };
        let record = pilot.hear(input.clone(), self.clock()).unwrap_or_default();
        self.audit.heard(&input, record.as_ref(), pilot.ahead());
        let boots = self.boots;
        self.note(|| format!("boot {boots} {record:?}"));
        let dies_before = self.strikes(Fault::BootCrash, 80);
        let Some(record) = record.filter(|_| !dies_before) else {
            self.audit.crashed(&self.disk.durable);
            return self.later(1_000, Happening::Boot(asks));
        };
        let seq = record.seq;
        self.disk.append_now(record);
        self.shell = Some(Shell { pilot, boot: self.boots });
        if self.strikes(Fault::BootCrash, 80) {
            self.crash();
            return;
        }
        self.orders_of(seq);
        for ask in asks {
            self.hear(Input::Asked(ask));
        }
        let boot = self.boots;
        self.later(TICK_MS, Happening::Tick { boot });
    }

    /// What the journal holds, by way of a snapshot and of text as the real one is.
    fn remembered(&mut self) -> State {
        let records = &self.disk.durable;
        let whole = State::replay(records);
        // Text is slow; a few boots of each run are enough to see it go wrong.
        if self.boots % 4 == 3 {
            let from = self.now as usize % (records.len() + 1);
            self.audit.remembered(records, from, &whole);
        }
        whole
    }

    pub(super) fn flush(&mut self) {
        let Some(last) = self.disk.pending.back().filter(|_| !self.disk.is_flushing) else {
            return;
        };
        let seq = last.seq;
        self.disk.is_flushing = true;
        let ms = match (self.is_scripted, self.strikes(Fault::SlowDisk, 200)) {
            (true, _) => 1,
            (false, true) => self.pace.between(1_000, 60_000),
            (false, false) => self.pace.between(1, 20),
        };
        let boot = self.boots;
        self.later(ms, Happening::Flushed { boot, seq });
    }

    pub(super) fn flushed(&mut self, seq: u64) {
        if self.strikes(Fault::WriteFails, 15) {
            return self.give_up();
        }
        self.disk.settle(seq);
        if self.strikes(Fault::Crash, 6) {
            return self.crash();
        }
        self.orders_of(seq);
        self.flush();
    }

    fn orders_of(&mut self, seq: u64) {
        let orders = self.shell.as_mut().map(|shell| shell.pilot.durable(seq)).unwrap_or_default();
        self.obey(orders);
    }

    pub(super) fn tick(&mut self) {
        self.hear(Input::Tick);
        self.audit.ticked(self.clock());
        let boot = self.boots;
        if self.queue.is_empty() && self.is_stuck() {
            self.audit.broken("I9: nothing runs, nothing is awaited, and the run is not at rest");
        }
        self.later(TICK_MS, Happening::Tick { boot });
    }

    fn is_stuck(&self) -> bool {
        let Some(shell) = &self.shell else { return false };
        self.disk.pending.is_empty()
            && shell.pilot.ahead().next_wake().is_none()
            && shell.pilot.ahead().holds().next().is_none()
            && !shell.pilot.is_over()
    }

    /// The journal can't be written: nothing was promised, so everything is ended and we go.
    fn give_up(&mut self) {
        self.running.clear();
        self.processes.sweep();
        self.down();
    }

    /// kill -9, or the power.
    pub(super) fn crash(&mut self) {
        let at_work: Vec<_> = self.processes.ours().map(|(process, _)| process).collect();
        for process in at_work {
            let is_acting = self
                .running
                .get(&process)
                .is_some_and(|running| running.play.has_effect && !running.is_done);
            if is_acting && !self.is_scripted && self.pace.chance(400) {
                self.effect(process);
            }
            if !self.strikes(Fault::Orphan, 500) {
                self.processes.ended(process);
                self.running.remove(&process);
            }
        }
        for _ in 0..self.pace.below(3) {
            self.processes.spawn_stranger();
        }
        self.down();
    }

    fn down(&mut self) {
        let kept = match self.is_scripted {
            true => 0,
            false => self.pace.below(self.disk.pending.len() as u64 + 1) as usize,
        };
        self.disk.crash(kept);
        self.shell = None;
        self.audit.crashed(&self.disk.durable);
        let records = self.disk.durable.len();
        self.note(|| format!("down, {records} records on disk"));
        if self.strikes(Fault::Clock, 500) {
            self.skew_ms += if self.pace.chance(500) { YEAR_MS } else { -DAY_MS };
        }
        let ms = if self.is_scripted { 1_000 } else { self.pace.between(1_000, 90_000) };
        self.later(ms, Happening::Boot(Vec::new()));
    }

    pub(super) fn look_for_rest(&mut self) {
        let Some(shell) = &self.shell else { return };
        if !shell.pilot.is_over() {
            return;
        }
        self.audit.exited(&self.processes);
        self.shell = None;
        self.note(|| "at rest".to_owned());
        let state = State::replay(&self.disk.durable);
        match self.next_wish(&state) {
            Some(asks) => {
                let ms =
                    if self.is_scripted { 60_000 } else { self.pace.between(1_000, 7_200_000) };
                self.later(ms, Happening::Boot(asks));
            }
            None => self.is_done = true,
        }
    }

    pub(super) fn finish(&mut self) {
        self.tally.records = self.disk.durable.len() as u64;
        self.tally.merges = self.git.merges.len() as u64;
        if self.shell.is_none() {
            self.audit.over(&self.disk.durable, &self.git, self.is_scripted);
        }
        for record in &self.disk.durable {
            let Time(at) = record.at;
            self.hash = crate::random::mix(self.hash, at as u64 ^ record.events.len() as u64);
        }
    }
}
