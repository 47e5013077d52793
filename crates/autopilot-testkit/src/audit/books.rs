//! A second set of books: the same records counted by other code than the one under test.

use super::account::Doubt;
use super::table;
use autopilot_core::event::{Bill, Facts, Halt, Outcome, Record, Skip, TaskEnd, TaskEntry};
use autopilot_core::flow::Flow;
use autopilot_core::id::{AttemptId, TaskId, Time};
use autopilot_core::limit::Limits;
use autopilot_core::pipeline::Switch;
use autopilot_core::state::{State, Status};
use autopilot_core::step::Step;
use std::collections::{BTreeMap, BTreeSet};

/// The tree of a task and what its steps showed, before a person continued it.
pub type StoodResult = (Option<String>, BTreeMap<Step, (Outcome, Facts)>);

/// What an attempt was given in millionths, what it had cost before, and from when to when it had it.
#[derive(Clone, Copy, Debug)]
pub struct BookedGrant {
    pub given: u64,
    pub before: Bill,
    pub at: Time,
    pub ended: Option<Time>,
}

#[derive(Clone, Debug, Default)]
pub struct Books {
    pub seq: u64,
    pub at: Time,
    pub flow: Option<Flow>,
    pub limits: Limits,
    pub switches: BTreeSet<Switch>,
    pub halt: Option<Halt>,
    pub tasks: Vec<Entry>,
    pub live: BTreeMap<AttemptId, (TaskId, Step)>,
    /// Every attempt ever started.
    pub ever: BTreeMap<AttemptId, (TaskId, Step)>,
    pub bills: BTreeMap<AttemptId, Bill>,
    pub grants: BTreeMap<AttemptId, BookedGrant>,
    /// By task, in millionths.
    pub paid: BTreeMap<TaskId, u64>,
    pub waivers: u32,
    /// The machine is short of something.
    pub is_short: bool,
    /// The time in which anybody worked on the run.
    pub active_ms: u64,
    pub doubts: BTreeMap<String, Doubt>,
    /// The lane of each attempt ever started.
    pub lane_by: BTreeMap<AttemptId, u32>,
    /// The time of the record that is being entered.
    pub now: Time,
    /// The step that a person continues; nothing else is begun.
    pub focus: Option<TaskId>,
    /// Merges heard of.
    pub merged: usize,
    /// A gate passed that did not start from nothing.
    pub is_warm: bool,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub name: String,
    pub parent: Option<TaskId>,
    pub children: Vec<TaskId>,
    pub kind: Kind,
    pub spec: TaskEntry,
    /// The round that failed last.
    pub failed_round: u32,
    /// Its tasks were made.
    pub is_divided: bool,
    pub needs: Vec<TaskId>,
    pub place: Place,
    pub round: u32,
    /// Failed rounds since a person last re-opened it, and ever.
    pub rounds: u32,
    pub rounds_ever: u32,
    pub interruptions: u32,
    /// How often the machine kept it from its work, since a person last re-opened it.
    pub hindered: u32,
    pub broke: u32,
    pub broke_here: BTreeMap<Step, u32>,
    pub waited_ms: u64,
    pub attempts: u32,
    /// What this round has shown.
    pub proof: StepProof,
    pub waived: BTreeSet<Step>,
    pub tree: Option<String>,
    pub overruled: u32,
    pub until: Time,
    /// What the wait it is in was booked with.
    pub wait_ms: u64,
    /// What was done to its end in this round, since a person last re-opened it.
    pub finished: BTreeSet<Step>,
    /// The iteration of a goal a step is for.
    pub iteration: u32,
    /// How often a person went on with its session, and whether they do.
    pub continued: u32,
    pub is_continued: bool,
    /// The tree and the proof it was done with when a person continued it.
    pub stood: Option<StoodResult>,
    /// The turn of a person has failed, and it is done as before.
    pub stands: bool,
    /// A person had one of its steps done again in this iteration.
    pub is_given_again: bool,
    /// What was on the run branch when the whole was last validated, and proven from nothing.
    pub validated: usize,
    pub proven: usize,
}

/// What each step has shown.
pub type StepProof = BTreeMap<Step, (Outcome, Facts)>;

/// What kind of task it is, by what has to be done in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The run over tasks that were given, or over a plan.
    Given,
    Planned,
    /// Divided when its turn comes.
    Divided,
    Paired,
    /// The run towards a goal, and a step of one of its workflows.
    Goal,
    Session,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    Open,
    At(Step),
    Running(Step, AttemptId),
    Waiting(Step),
    Closed,
    SkippedByAsk,
    SkippedFor(TaskId),
    Failed,
}

impl Place {
    pub fn of(end: &TaskEnd) -> Place {
        match end {
            TaskEnd::Closed => Place::Closed,
            TaskEnd::Skipped { why: Skip::Asked } => Place::SkippedByAsk,
            TaskEnd::Skipped { why: Skip::Blocked { by } | Skip::Stopped { by } } => {
                Place::SkippedFor(*by)
            }
            TaskEnd::Skipped { why: Skip::Dropped } => Place::SkippedFor(TaskId::ROOT),
            TaskEnd::Failed { .. } => Place::Failed,
        }
    }

    pub fn is_under_way(&self) -> bool {
        matches!(self, Place::At(_) | Place::Running(..) | Place::Waiting(_))
    }

    pub fn is_settled(&self) -> bool {
        !self.is_under_way() && *self != Place::Open
    }

    pub fn satisfies(&self) -> bool {
        matches!(self, Place::Closed | Place::SkippedByAsk)
    }

    pub fn step(&self) -> Option<Step> {
        match self {
            Place::At(step) | Place::Running(step, _) | Place::Waiting(step) => Some(*step),
            Place::Open
            | Place::Closed
            | Place::SkippedByAsk
            | Place::SkippedFor(_)
            | Place::Failed => None,
        }
    }
}

impl Books {
    pub fn of(records: &[Record]) -> Result<Books, String> {
        let mut books = Books::default();
        for record in records {
            books.enter(record).map_err(|what| format!("record {}: {what}", record.seq))?;
        }
        Ok(books)
    }

    /// The gate that is open.
    pub fn gate(&self) -> Option<AttemptId> {
        self.live.iter().find(|(_, (_, step))| table::is_gate(*step)).map(|(id, _)| *id)
    }

    /// Its work is on the run branch.
    pub fn is_done(&self, task: TaskId) -> bool {
        let is_work = |entry: &Entry| matches!(entry.kind, Kind::Paired | Kind::Session);
        let entry = self.tasks.get(task.index());
        entry.is_some_and(|entry| is_work(entry) && entry.place == Place::Closed)
    }

    pub fn spent(&self) -> u64 {
        self.paid.values().sum()
    }

    pub fn spent_by(&self, task: TaskId) -> u64 {
        self.paid.get(&task).copied().unwrap_or(0)
    }

    /// The state under test against these books: I7, I10, I11.
    pub fn agree(&self, state: &State) -> Result<(), String> {
        let same = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
        same(state.index_is_true(), "I11: the indexes have drifted")?;
        same(state.seq == self.seq, "I11: another sequence number")?;
        same(state.run.halt == self.halt, "I9: another halt")?;
        same(state.run.short.is_some() == self.is_short, "I10: another account of the room")?;
        same(state.gate().map(|(id, _)| id) == self.gate(), "I9: another gate")?;
        same(state.run.limits == self.limits, "I7: other limits")?;
        same(state.run.active_ms == self.active_ms, "I7: another time of work")?;
        same(state.run.spent.counted().0 == self.spent(), "I7: another sum of money")?;
        same(
            state.run.reviews_waived_by.len() as u32 == self.waivers,
            "I6: a waived review is not on the record",
        )?;
        let alive = state.live.iter().map(|(id, live)| (*id, (live.task, live.step)));
        if !alive.eq(self.live.iter().map(|(id, at)| (*id, *at))) {
            return Err(format!("I9: {:?} are alive, not {:?}", state.live, self.live));
        }
        let lanes = state.live.iter().map(|(id, live)| (*id, live.lane));
        same(
            lanes.into_iter().all(|(id, lane)| self.lane_by.get(&id) == Some(&lane)),
            "C28: another lane",
        )?;
        let held = state.holds().map(|(name, _, hold)| (name.to_owned(), hold.until));
        let booked =
            self.doubts.iter().filter_map(|(name, doubt)| Some((name.clone(), doubt.held?)));
        same(held.eq(booked), "A16: other accounts are held")?;
        for (task, entry) in state.tasks.iter().zip(&self.tasks) {
            let spent = &task.spent;
            for (what, counted, booked) in [
                ("interruptions", spent.interruptions, entry.interruptions),
                ("hindered", spent.hindered, entry.hindered),
                ("broken tries", spent.retries_all, entry.broke),
                ("rounds ever", spent.rounds_lived, entry.rounds_ever),
                ("attempts", spent.attempts, entry.attempts),
                ("round", task.round, entry.round),
            ] {
                if counted != booked {
                    return Err(format!(
                        "I7: {what} of {} are {counted}, not {booked}",
                        entry.name
                    ));
                }
            }
            let paid = self.spent_by(task.id);
            let is_exact = spent.bill.counted().0 == paid && spent.waited_ms == entry.waited_ms;
            if !is_exact {
                return Err(format!("I7: {} has another bill or wait", entry.name));
            }
            let step = match &task.status {
                Status::At { step }
                | Status::Running { step, .. }
                | Status::Waiting { step, .. } => Some(*step),
                Status::Open | Status::Settled(_) => None,
            };
            let end = match &task.status {
                Status::Settled(end) => Some(Place::of(end)),
                Status::Open
                | Status::At { .. }
                | Status::Running { .. }
                | Status::Waiting { .. } => None,
            };
            let booked = entry.place.is_settled().then(|| entry.place.clone());
            if step != entry.place.step() || end != booked {
                let (is, booked) = (&task.status, &entry.place);
                return Err(format!("I9: {} is {is:?}, not {booked:?}", entry.name));
            }
        }
        same(state.tasks.len() == self.tasks.len(), "I11: another number of tasks")
    }
}
