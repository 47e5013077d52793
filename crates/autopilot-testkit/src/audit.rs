//! What must hold after every input and at the end, checked without asking the code under test.
//!
//! The rules are numbered as in the list of invariants: I1 nothing acknowledged is lost, I2 an
//! effect happens once, I4 nobody is left behind, I6 done means proven, I7 counters, I9 legal moves
//! and rest, I10 ceilings, I11 replay.

pub mod account;
pub mod books;
mod coverage;
pub mod goal;
mod idle;
mod moving;
mod record;
pub mod rule;
mod settling;
pub mod table;
mod yardstick;

use crate::world::git::Git;
use crate::world::process::Processes;
use autopilot_core::decide::Refusal;
use autopilot_core::event::{Bill, Event, Outcome, Record, TaskEntry};
use autopilot_core::id::{AttemptId, Micros, TaskId, Time};
use autopilot_core::input::{Ask, AttemptWord, Input};
use autopilot_core::state::State;
use autopilot_core::step::Step;
use autopilot_core::wanted::Want;
use books::{BookedGrant, Books, Kind, Place};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub struct Audit {
    /// The first thing that did not hold.
    pub fault: Option<String>,
    books: Books,
    told: u64,
    /// The largest bill of each attempt that was said to the shell and not lost by a crash.
    owed: BTreeMap<AttemptId, Bill>,
    begun: BTreeSet<(u32, AttemptId)>,
    /// Money on the record never shrinks, not even over a crash.
    spent_durable: u64,
}

impl Audit {
    pub fn is_sound(&self) -> bool {
        self.fault.is_none()
    }

    pub fn broken(&mut self, what: &str) {
        self.fault.get_or_insert_with(|| what.to_owned());
    }

    fn check(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.broken(&what());
        }
    }

    /// After every input: the record is legal, and the state is what the books say.
    pub fn heard(&mut self, input: &Input, record: Option<&Record>, ahead: &State) {
        if let Err(what) = self.people_decide(input, record) {
            self.broken(&what);
        }
        if let Input::Heard { id, word, .. } = input
            && let Some(bill) = billed(word)
        {
            let owed = self.owed.entry(*id).or_default();
            *owed = owed.max(bill);
        }
        if *input == Input::Boot {
            self.grants_are_owed(record.map_or(ahead.at, |record| record.at));
        }
        if let Some(record) = record {
            self.check(record.seq == self.books.seq + 1, || "a record is out of order".to_owned());
            if let Err(what) = self.books.enter(record) {
                self.broken(&format!("record {}: {what}", record.seq));
            }
        }
        let said_nothing = record.is_none() && !matches!(input, Input::Heard { .. });
        if said_nothing {
            return;
        }
        let paid: u64 = self.owed.values().map(|bill| bill.counted().0).sum();
        let counted = ahead.run.spent.counted().0;
        self.check(counted == paid, || {
            format!("I7: bills of {paid} were heard, {counted} are counted")
        });
        let told: u64 = self.owed.values().map(|bill| bill.usd.0).sum();
        self.check(ahead.run.spent.usd.0 == told, || {
            format!("I7: {told} was told, {} is called told", ahead.run.spent.usd.0)
        });
        if let Err(what) = self.books.agree(ahead) {
            self.broken(&what);
        }
        self.has_told_all(input);
    }

    /// Every ask is answered: one that is refused changes nothing, one that is not leaves a record.
    pub fn answered(
        &mut self,
        heard: &Result<Option<Record>, Refusal>,
        before: &State,
        after: &State,
    ) {
        match heard {
            Err(refusal) => self.check(before == after, || {
                format!("I9: an ask was refused ({refusal}) and changed something")
            }),
            Ok(record) => self.check(record.is_some(), || {
                "I9: an ask was not refused, and nothing came".to_owned()
            }),
        }
    }

    /// Who was given money by a process that died and told no cost of it owes what its time is taken
    /// to cost, and no more than it was given.
    fn grants_are_owed(&mut self, at: Time) {
        for (id, grant) in &self.books.grants {
            let BookedGrant { given, before, at: since, ended } = *grant;
            let known = self.books.bills.get(id).copied().unwrap_or_default();
            if known.counted() <= before.counted() {
                // A dollar for each minute, by begun seconds; written down here once more on purpose.
                let seconds = ended.unwrap_or(at).since_ms(since) / 1000 + 1;
                let guess = Micros(given.min((seconds * 1_000_000).div_ceil(60)));
                let owed = self.owed.entry(*id).or_default();
                owed.estimated = owed.estimated.max(before.estimated.plus(guess));
            }
        }
    }

    /// Money is out only while somebody may still spend it.
    fn has_told_all(&mut self, input: &Input) {
        let stray = match input {
            Input::Boot => self.books.grants.keys().next().copied(),
            Input::Heard { id, word: AttemptWord::Ended { .. }, .. } => {
                let is_effect = self.books.live.contains_key(id);
                self.books.grants.contains_key(id).then_some(*id).filter(|_| !is_effect)
            }
            Input::Start(_)
            | Input::Heard { .. }
            | Input::Asked(_)
            | Input::Room { .. }
            | Input::Tick => None,
        };
        if let Some(id) = stray {
            self.broken(&format!("I7: {id} can spend nothing more and is still given money"));
        }
    }

    /// A gate is ended by a person's word and by nothing else: by their answer, or because they leave
    /// its task out. Their word ends nothing else. What an executor brings is what comes.
    fn people_decide(&self, input: &Input, record: Option<&Record>) -> Result<(), String> {
        let says = match input {
            Input::Asked(Ask::Approve { .. }) => Some(true),
            Input::Asked(Ask::Reject { .. }) => Some(false),
            Input::Start(_)
            | Input::Boot
            | Input::Heard { .. }
            | Input::Asked(_)
            | Input::Room { .. }
            | Input::Tick => None,
        };
        if says.is_some() && self.books.gate().is_none() && record.is_some() {
            return Err("I9: an answer to nothing changed something".to_owned());
        }
        for event in record.iter().flat_map(|record| &record.events) {
            if let Event::AttemptEnded { task, step, outcome, .. } = event
                && table::is_gate(*step)
                && says != Some(*outcome == Outcome::Passed)
                && !self.is_left_out_by(input, *task, outcome)
            {
                return Err(format!("I9: {step} ended as {outcome:?} by {input:?}"));
            }
            if let Event::TaskReopened { task } = event
                && let is_done = self.books.is_done(*task)
                && !may_reopen(input, is_done)
            {
                return Err(format!(
                    "I9: nobody asked for what was over, and it goes on by {input:?}"
                ));
            }
            if let Event::TaskAdded { parent: Some(_), spec, .. } = event
                && !brings(input).contains(spec)
            {
                return Err(format!("I9: nobody brought {}", spec.name));
            }
        }
        goal::next_is_kept(brings(input), record)
    }

    /// Whether a gate ends without an answer because a person skips its task, or what that is in.
    fn is_left_out_by(&self, input: &Input, task: TaskId, outcome: &Outcome) -> bool {
        let Input::Asked(Ask::Skip { task: name }) = input else { return false };
        let tasks = &self.books.tasks;
        let mut above = Some(task).and_then(|task| tasks.get(task.index()));
        while let Some(entry) = above {
            if entry.name == *name && entry.parent.is_some() {
                return *outcome == Outcome::Revoked;
            }
            above = entry.parent.and_then(|parent| tasks.get(parent.index()));
        }
        false
    }

    /// A record is shown to people only when it is on disk.
    pub fn told(&mut self, record: Record, durable: &[Record]) {
        let place = record.seq as usize - 1;
        self.check(durable.get(place) == Some(&record), || {
            format!("I1: record {} was shown before it was durable", record.seq)
        });
        self.told = self.told.max(record.seq);
    }

    /// An executor begins only what is on disk, and is alone at its task.
    pub fn begun(&mut self, want: Want, boot: u32, durable: &[Record], processes: &Processes) {
        let record = want.id.seq.checked_sub(1).and_then(|place| durable.get(place as usize));
        let event = record.and_then(|record| record.events.get(want.id.place as usize));
        let Want { task, step, lane, .. } = want;
        let is_durable = event == Some(&Event::AttemptStarted { task, step, lane });
        self.check(is_durable, || {
            format!("I1: {} of {} began before its start was durable", want.step, want.task)
        });
        self.check(!table::is_gate(want.step), || {
            format!("I9: {} is for a person and was given to an executor", want.step)
        });
        self.check(!processes.is_anyone_at(want.task), || {
            format!("I4: two executors are at {} at once", want.task)
        });
        let is_first = self.begun.insert((boot, want.id));
        // An effect that was ended by a stop goes on under its own id; work never does.
        self.check(is_first || table::is_serial(want.step), || {
            format!("I2: {} of {} was begun twice as {}", want.step, want.task, want.id)
        });
        self.check(self.books.live.contains_key(&want.id) || self.books.seq > want.id.seq, || {
            format!("{} began and was never started", want.id)
        });
    }

    /// Holds end when their time has come.
    pub fn ticked(&mut self, now: Time) {
        let mut held = self.books.doubts.iter();
        let late = held.find(|(_, doubt)| doubt.held.flatten().is_some_and(|until| until <= now));
        let late = late.map(|(account, _)| account.clone());
        self.check(late.is_none(), || {
            format!("A16: {} is held beyond its time", late.unwrap_or_default())
        });
    }

    pub fn swept(&mut self, processes: &Processes) {
        let left = processes.ours().count();
        self.check(left == 0, || format!("I4: {left} executors outlived the sweep"));
        let strangers = processes.strangers_killed;
        self.check(strangers == 0, || format!("P14: {strangers} strangers were killed"));
    }

    pub fn exited(&mut self, processes: &Processes) {
        let left = processes.ours().count();
        self.check(left == 0, || format!("I4: {left} executors were left behind"));
        let is_over = self.books.tasks.first().is_none_or(|root| root.place.is_settled());
        let may_rest = is_over || self.books.halt.is_some() || self.books.gate().is_some();
        self.check(may_rest, || "I9: the run rests and nobody is asked".to_owned());
        // An answer is not needed for what time alone brings.
        let early =
            self.books.goes_on_by_itself().filter(|_| !is_over && self.books.halt.is_none());
        self.check(early.is_none(), || {
            format!("I9: the run rests and {} would go on by itself", early.unwrap_or_default())
        });
    }

    /// Checks the merge that an attempt has just made, or has found made by an earlier one.
    pub fn merged(&mut self, git: &Git, task: TaskId, tree: &str) {
        let times = git.merges.iter().filter(|merge| merge.task == task).count();
        // Whoever continues a step has what comes of it merged as well.
        let asked = self.books.tasks[task.index()].continued as usize;
        self.check(times <= 1 + asked, || format!("I2: {task} was merged {times} times"));
        if let Err(what) = self.books.is_proven(task, tree) {
            self.broken(&format!("I6: {task} was merged, but {what}"));
        }
    }

    pub fn pushed(&mut self, git: &Git) {
        let mut pushes = git.pushes.clone();
        pushes.dedup();
        self.check(pushes.len() == git.pushes.len(), || "I2: the same was pushed twice".to_owned());
    }

    /// After a crash only the disk counts; nothing that was shown may be missing from it.
    pub fn crashed(&mut self, durable: &[Record]) {
        let told = self.told;
        self.check(told <= durable.len() as u64, || {
            format!("I1: record {told} was shown and is lost")
        });
        match Books::of(durable) {
            Ok(books) => self.books = books,
            Err(what) => self.broken(&what),
        }
        self.owed = self.books.bills.clone();
        let spent = self.books.spent();
        self.check(spent >= self.spent_durable, || "I7: money was forgotten".to_owned());
        self.spent_durable = spent;
    }

    /// A snapshot and the records after it, as text, give what all records give.
    pub fn remembered(&mut self, records: &[Record], from: usize, whole: &State) {
        let text = |state: &State| serde_json::to_string(state).unwrap_or_default();
        let snapshot = State::replay(&records[..from]);
        let Ok(mut state) = serde_json::from_str::<State>(&text(&snapshot)) else {
            return self.broken("I11: a snapshot can't be read back");
        };
        self.check(state == snapshot, || "I11: a snapshot reads back as another".to_owned());
        for record in &records[from..] {
            state.apply_record(record);
        }
        self.check(state == *whole, || "I11: a snapshot leads to another state".to_owned());
    }

    pub fn over(&mut self, durable: &[Record], git: &Git, may_rest: bool) {
        if !self.is_sound() {
            return;
        }
        for record in durable {
            let again = serde_json::to_string(record)
                .ok()
                .and_then(|text| serde_json::from_str::<Record>(&text).ok());
            self.check(again.as_ref() == Some(record), || {
                format!("I11: record {} reads back as another", record.seq)
            });
        }
        let state = State::replay(durable);
        if let Err(what) = self.books.agree(&state) {
            self.broken(&format!("I11: after a replay {what}"));
        }
        self.check(may_rest || state.end().is_some(), || "I9: the run did not end".to_owned());
        for (place, task) in self.books.tasks.iter().enumerate().skip(1) {
            let merged = git.merges.iter().any(|merge| merge.task.index() == place);
            let is_work = matches!(task.kind, Kind::Paired | Kind::Session);
            let closed = task.place == Place::Closed && is_work;
            let is_right = merged == closed || merged && (may_rest || task.continued > 0);
            if !is_right {
                let text = format!("I2: {} merged {merged}, closed {closed}", task.name);
                return self.broken(&text);
            }
        }
    }

    pub fn tree_of(&self, task: TaskId) -> String {
        self.books.tasks[task.index()].tree.clone().unwrap_or_default()
    }

    pub fn name_of(&self, task: TaskId) -> String {
        self.books.tasks.get(task.index()).map(|task| task.name.clone()).unwrap_or_default()
    }

    /// The newest attempt of a step that no longer runs.
    pub fn last_dead(&self, name: &str, step: Step) -> Option<(AttemptId, TaskId)> {
        let dead = self.books.ever.iter().rev().find(|(id, (task, at))| {
            *at == step && self.name_of(*task) == name && !self.books.live.contains_key(id)
        });
        dead.map(|(id, (task, _))| (*id, *task))
    }

    /// The newest attempt of a task.
    pub fn last_of(&self, name: &str) -> Option<AttemptId> {
        let mut ever = self.books.ever.iter().rev();
        ever.find(|(_, (task, _))| self.name_of(*task) == name).map(|(id, _)| *id)
    }

    pub fn books(&self) -> &Books {
        &self.books
    }
}

/// What is over goes on because a person asks for it; what is merged, only by going on with it.
fn may_reopen(input: &Input, is_done: bool) -> bool {
    match input {
        Input::Asked(Ask::Continue { .. }) => true,
        Input::Asked(Ask::Retry { .. } | Ask::Skip { .. }) => !is_done,
        Input::Asked(
            Ask::Halt { .. }
            | Ask::Resume
            | Ask::Unpause
            | Ask::Approve { .. }
            | Ask::Reject { .. }
            | Ask::Limit(_)
            | Ask::Models { .. }
            | Ask::Switch { .. },
        )
        | Input::Start(_)
        | Input::Boot
        | Input::Heard { .. }
        | Input::Room { .. }
        | Input::Tick => false,
    }
}

fn brings(input: &Input) -> &[TaskEntry] {
    match input {
        Input::Heard { word: AttemptWord::Ended { facts, .. }, .. } => &facts.tasks,
        Input::Start(run) => &run.tasks,
        Input::Heard { .. } | Input::Boot | Input::Asked(_) | Input::Room { .. } | Input::Tick => {
            &[]
        }
    }
}

/// What a word says is owed, whoever says it.
fn billed(word: &AttemptWord) -> Option<Bill> {
    match word {
        AttemptWord::Bill(bill) | AttemptWord::Counted { bill, .. } => Some(*bill),
        AttemptWord::Ended { facts, .. } => facts.bill,
        AttemptWord::Session(_) | AttemptWord::Given(_) => None,
    }
}
