//! The rules: an input, a state and the time make a record.
//!
//! Every rule changes the state only through [`RecordDraft::emit`], so the next rule sees what the
//! one before it decided. Every decision ends by starting the tasks that are ready.

mod ask;
mod further;
mod hold;
mod machine;
mod money;
mod outcome;
mod refusal;
mod schedule;
#[cfg(test)]
mod tests;

pub use money::{MoneyGone, estimate, money_gone, untold};
pub use refusal::{
    Deed, Hindrance, Refusal, RunStanding, SessionFacts, SessionHindrance, refusal, rehearse,
    session_hindrance,
};

use crate::event::{
    Bill, Event, Facts, Halt, HaltWhy, Outcome, Record, RunSpec, SessionTotal, TaskEntry,
};
use crate::id::{AttemptId, Micros, TaskId, Time};
use crate::input::{AttemptWord, Input};
use crate::pipeline::Work;
use crate::state::State;

/// The interval at which time alone makes a record while something is at work.
const TIME_RECORD_MS: u64 = 60_000;

/// Decides on an input and applies the decision. Without a change there is no record; a refused ask
/// changes nothing at all.
pub fn decide(state: &mut State, input: Input, now: Time) -> Result<Option<Record>, Refusal> {
    if let Input::Asked(ask) = &input
        && let Some(refusal) = refusal(state, ask)
    {
        return Err(refusal);
    }
    let mut draft = RecordDraft { seq: state.seq + 1, now, events: Vec::new(), state };
    draft.hear(input);
    draft.end_overspent();
    draft.schedule();
    Ok(draft.sealed())
}

/// Records a bill for an attempt of a run that no process works on. Nothing is started, ended or
/// halted by it.
pub fn owe(
    state: &mut State,
    (id, task): (AttemptId, TaskId),
    bill: Bill,
    total: Option<Box<SessionTotal>>,
    now: Time,
) -> Option<Record> {
    let mut draft = RecordDraft { seq: state.seq + 1, now, events: Vec::new(), state };
    draft.charge(id, task, bill, total);
    draft.sealed()
}

/// Records money that is reserved for a turn of an attempt of a run that no process works on; none
/// once its whole cost is known.
pub fn reserve(
    state: &mut State,
    (id, task): (AttemptId, TaskId),
    usd: Micros,
    now: Time,
) -> Option<Record> {
    let mut draft = RecordDraft { seq: state.seq + 1, now, events: Vec::new(), state };
    if usd > Micros(0) {
        draft.emit(Event::MoneyGiven { id, task, usd });
    } else {
        draft.close_grant(id);
    }
    draft.sealed()
}

/// Settles what is reserved for attempts that ended, in a run that no process works on: a process
/// died in a turn beside the run.
pub fn settle_ended(state: &mut State, now: Time) -> Option<Record> {
    let mut draft = RecordDraft { seq: state.seq + 1, now, events: Vec::new(), state };
    let ended = |state: &State, id| !state.live.contains_key(&id);
    // The attempts have ended, so that nobody is left to write a note on.
    let _notes = draft.charge_grants(ended);
    draft.sealed()
}

/// A record being written.
struct RecordDraft<'a> {
    seq: u64,
    now: Time,
    events: Vec<Event>,
    state: &'a mut State,
}

impl RecordDraft<'_> {
    fn sealed(self) -> Option<Record> {
        let RecordDraft { seq, now, events, state } = self;
        if events.is_empty() {
            return None;
        }
        state.seal(seq, now);
        Some(Record { seq, at: now, events })
    }

    fn emit(&mut self, event: Event) {
        let place = self.events.len() as u32;
        self.state.apply(&event, self.seq, place, self.now);
        self.events.push(event);
    }

    fn hear(&mut self, input: Input) {
        match input {
            Input::Start(spec) if !self.state.has_begun() => self.start(*spec),
            Input::Start(_) => {}
            Input::Boot => self.boot(),
            Input::Heard { id, task, word } => self.heard(id, task, word),
            Input::Asked(ask) => self.asked(ask),
            Input::Room { short } => self.room(short),
            Input::Tick => self.tick(),
        }
    }

    fn start(&mut self, mut spec: RunSpec) {
        let tasks = std::mem::take(&mut spec.tasks);
        let flow = spec.flow;
        let root = TaskEntry {
            name: String::new(),
            title: spec.title.clone(),
            source: spec.source.clone(),
            ..spec.whole.clone()
        };
        self.emit(Event::RunStarted { run: Box::new(spec) });
        self.add(None, flow.row().root, root);
        for task in tasks {
            let pipeline = flow.row().task.of(&task);
            self.add(Some(TaskId::ROOT), pipeline, task);
        }
        self.enter(TaskId::ROOT, 0, 1);
    }

    fn add(&mut self, parent: Option<TaskId>, pipeline: crate::flow::Pipeline, spec: TaskEntry) {
        let task = TaskId(self.state.tasks.len() as u32);
        self.emit(Event::TaskAdded { task, parent, pipeline, spec: Box::new(spec) });
    }

    /// Takes over a run: work on workers died with the last process; effects keep their attempt id.
    fn boot(&mut self) {
        self.emit(Event::Booted { epoch: self.state.run.epoch + 1 });
        let mut notes = self.charge_grants(|_, _| true);
        for id in self.live_on_slots() {
            let notes = notes.remove(&id).into_iter().collect();
            self.end(id, Outcome::Lost, Box::new(Facts { notes, ..Facts::default() }));
        }
        // After a clock that went back a wait would last that much longer.
        let wait_max_ms = self.state.run.limits.wait_quota_max_ms;
        for task in self.state.waiting_beyond(self.now.plus_ms(wait_max_ms)) {
            self.emit(Event::WaitEnded { task });
        }
        self.free_beyond(wait_max_ms);
    }

    fn heard(&mut self, id: AttemptId, task: TaskId, word: AttemptWord) {
        match word {
            // Money is owed even if the attempt is no longer live.
            AttemptWord::Bill(bill) => self.bill(id, task, bill, None),
            AttemptWord::Counted { bill, total } => self.bill(id, task, bill, Some(total)),
            AttemptWord::Given(usd) => {
                if self.state.live.contains_key(&id) && usd > Micros(0) {
                    self.emit(Event::MoneyGiven { id, task, usd });
                }
            }
            AttemptWord::Session(session) => {
                if let Some(live) = self.state.live.get(&id) {
                    let step = live.step;
                    let last = self.state.task(task).talk.session.as_ref();
                    let continued =
                        last.is_some_and(|last| last.session == session && last.attempt != id);
                    self.emit(Event::SessionOpened { id, task, step, session, continued });
                }
            }
            // A stopped effect may have happened: it stays wanted under its own id, by which it finds
            // its trace when the run is resumed.
            AttemptWord::Ended { outcome: Outcome::Revoked, .. } if self.is_effect(id) => {}
            AttemptWord::Ended { outcome, facts } if self.state.live.contains_key(&id) => {
                self.end(id, outcome, facts);
                self.close_grant(id);
            }
            // The end of an attempt that is no longer live moves nothing, but its bill counts.
            AttemptWord::Ended { facts, .. } => {
                if let Some(bill) = facts.bill {
                    self.bill(id, task, bill, facts.total);
                }
                self.close_grant(id);
            }
        }
    }

    fn end(&mut self, id: AttemptId, outcome: Outcome, mut facts: Box<Facts>) {
        let Some(live) = self.state.live.get(&id).cloned() else { return };
        let (task, step) = (live.task, live.step);
        let (bill, total) = (facts.bill.take(), facts.total.take());
        let brought = std::mem::take(&mut facts.tasks);
        let outcome = self.as_brought(task, outcome, &brought);
        let held = self.trip(id, &live, &outcome);
        self.emit(Event::AttemptEnded { id, task, step, outcome: outcome.clone(), facts });
        // The attempt is paid for and done: a limit reached now stops the next one, not this one.
        if let Some(bill) = bill {
            self.bill(id, task, bill, total);
        }
        if let Some(held) = held {
            self.emit(held);
        }
        self.spawn(task, &outcome, brought);
        self.follow(task, step, outcome);
    }

    fn bill(&mut self, id: AttemptId, task: TaskId, bill: Bill, total: Option<Box<SessionTotal>>) {
        if self.charge(id, task, bill, total)
            && let Some(text) = self.money_gone()
        {
            self.halt(HaltWhy::Money { text }, true);
        }
    }

    /// Records a bill; false if it was known already.
    fn charge(
        &mut self,
        id: AttemptId,
        task: TaskId,
        bill: Bill,
        total: Option<Box<SessionTotal>>,
    ) -> bool {
        if task.index() >= self.state.tasks.len() {
            return false;
        }
        let known = self.state.bill_of(id);
        let is_counted =
            |total: &SessionTotal| self.state.task(task).totals.get(&total.session) == Some(total);
        if known.max(bill) == known && total.as_deref().is_none_or(is_counted) {
            return false;
        }
        self.emit(Event::Billed { id, task, bill, total });
        true
    }

    fn room(&mut self, short: Option<String>) {
        // The resource may change every second; only being short at all matters.
        if self.state.run.short.is_some() != short.is_some() && self.state.end().is_none() {
            self.emit(Event::RoomChanged { short });
        }
    }

    fn tick(&mut self) {
        self.free_due();
        while let Some((until, task)) = self.state.next_wake() {
            if until > self.now {
                break;
            }
            self.emit(Event::WaitEnded { task });
        }
        let is_at_work = self.state.is_at_work();
        if self.state.run.halt.is_some() && !is_at_work || self.state.end().is_some() {
            return;
        }
        let wall_max_ms = self.state.run.limits.wall_max_ms.unwrap_or(u64::MAX);
        let is_quiet = self.now.since_ms(self.state.at) >= TIME_RECORD_MS.min(wall_max_ms);
        if self.is_time_gone() {
            self.halt(HaltWhy::Wall, true);
        } else if is_quiet && is_at_work {
            self.emit(Event::TimePassed);
        }
    }

    /// Halts the run; `now` also ends its running attempts.
    fn halt(&mut self, why: HaltWhy, now: bool) {
        if !refusal::may_halt(self.state, &why, now) {
            return;
        }
        let turn = self.turn_ended_by(&why);
        self.emit(Event::Halted { halt: Halt { why, now } });
        if now {
            for id in self.live_on_slots() {
                self.end(id, Outcome::Revoked, Box::default());
            }
        }
        if let Some((task, why)) = turn {
            self.end_turn(task, why);
        }
    }

    fn is_effect(&self, id: AttemptId) -> bool {
        self.state.live.get(&id).is_some_and(|live| self.state.task(live.task).is_at_an_effect())
    }

    fn live_on_slots(&self) -> Vec<AttemptId> {
        let on_slot = |task: TaskId| {
            self.state.task(task).stage().is_some_and(|stage| stage.work == Work::Slot)
        };
        self.state.live.iter().filter(|(_, live)| on_slot(live.task)).map(|(id, _)| *id).collect()
    }
}
