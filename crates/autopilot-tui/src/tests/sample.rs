//! Sample runs for tests, made of the records of a real run.

use crate::draw::draw;
use crate::screen::{Manner, Screen, Seat};
use autopilot_core::event::{
    Bill, Event, Facts, Halt, HaltWhy, Outcome, Record, RunSpec, TaskEnd, TaskEntry,
};
use autopilot_core::flow::{Flow, Pipeline};
use autopilot_core::id::{AttemptId, Micros, TaskId, Time};
use autopilot_core::limit::Limits;
use autopilot_core::state::State;
use autopilot_core::step::Step;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::collections::BTreeSet;

const BEGAN: i64 = 1_767_268_800_000;

/// A run under way, a second after the other.
pub struct SampleRun {
    pub screen: Screen,
    pub records: Vec<Record>,
}

pub fn manner() -> Manner {
    Manner {
        clock: Box::new(|at| at.rfc3339().chars().skip(11).take(8).collect()),
        clean: Box::new(|text| text.replace("hunter2", "[secret]")),
    }
}

impl SampleRun {
    /// A plan run whose planner is at work.
    pub fn planning() -> SampleRun {
        let mut sample =
            SampleRun { screen: Screen::new(Seat::Controller, manner()), records: Vec::new() };
        let limits = Limits { workers_max: 4, ..Limits::default() };
        let run = RunSpec {
            id: "20260101-120000-abcd".into(),
            flow: Flow::Plan,
            title: "A ledger that balances".into(),
            source: "plan.md".into(),
            started_by: "ada".into(),
            base_branch: "main".into(),
            base: "0".repeat(40),
            branch: "autopilot/run-20260101-120000-abcd".into(),
            switches: BTreeSet::new(),
            limits,
            config: String::new(),
            red_base_allowed: false,
            holdout: None,
            options: Default::default(),
            whole: TaskEntry::default(),
            plan: None,
            tasks: Vec::new(),
        };
        sample.happens(vec![
            Event::RunStarted { run: Box::new(run) },
            Event::TaskAdded {
                task: TaskId::ROOT,
                parent: None,
                pipeline: Pipeline::Plan,
                spec: Box::default(),
            },
            Event::TaskMoved { task: TaskId::ROOT, step: Step::Plan, round: 1 },
            Event::AttemptStarted { task: TaskId::ROOT, step: Step::Plan, lane: 0 },
        ]);
        sample
    }

    /// The plan is made; its tasks are there and not begun.
    pub fn planned(tasks: &[(&str, &[&str])]) -> SampleRun {
        let mut sample = SampleRun::planning();
        sample.ends(TaskId::ROOT, Outcome::Passed, Facts::default());
        let mut events: Vec<Event> = tasks
            .iter()
            .enumerate()
            .map(|(place, (name, needs))| {
                let spec = TaskEntry {
                    name: (*name).to_owned(),
                    title: format!("Work on {name}"),
                    depends_on: needs.iter().map(|need| (*need).to_owned()).collect(),
                    ..TaskEntry::default()
                };
                let (parent, pipeline) = (Some(TaskId::ROOT), Pipeline::Paired);
                let task = TaskId(place as u32 + 1);
                Event::TaskAdded { task, parent, pipeline, spec: Box::new(spec) }
            })
            .collect();
        events.push(Event::TaskMoved { task: TaskId::ROOT, step: Step::Tasks, round: 1 });
        sample.happens(events);
        sample
    }

    pub fn happens(&mut self, events: Vec<Event>) {
        let seq = self.records.len() as u64 + 1;
        let record = Record { seq, at: Time(BEGAN + seq as i64 * 1000), events };
        self.screen.record(&record);
        self.records.push(record);
    }

    /// These tasks come to a step, in one decision.
    pub fn start(&mut self, names: &[&str], step: Step) {
        let events = names.iter().flat_map(|name| {
            let task = self.id(name);
            [
                Event::TaskMoved { task, step, round: 1 },
                Event::AttemptStarted { task, step, lane: 0 },
            ]
        });
        self.happens(events.collect());
    }

    pub fn close(&mut self, name: &str) {
        let task = self.id(name);
        self.ends(task, Outcome::Passed, Facts::default());
        self.happens(vec![Event::TaskSettled { task, end: TaskEnd::Closed }]);
    }

    pub fn ends(&mut self, task: TaskId, outcome: Outcome, facts: Facts) {
        let (id, step) = self.attempt(task);
        let facts = Box::new(facts);
        self.happens(vec![Event::AttemptEnded { id, task, step, outcome, facts }]);
    }

    pub fn costs(&mut self, name: &str, micros: u64) {
        let task = self.id(name);
        let (id, _) = self.attempt(task);
        let bill = Bill { usd: Micros(micros), ..Bill::default() };
        self.happens(vec![Event::Billed { id, task, bill, total: None }]);
    }

    pub fn halts(&mut self, why: HaltWhy) {
        self.happens(vec![Event::Halted { halt: Halt { why, now: false } }]);
    }

    pub fn id(&self, name: &str) -> TaskId {
        self.screen.state.named(name).map(|task| task.id).unwrap()
    }

    pub fn state(&self) -> &State {
        &self.screen.state
    }

    pub fn now(&self) -> Time {
        Time(BEGAN + 61_000)
    }

    /// The screen as text.
    pub fn seen(&self, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, &self.screen, self.now())).unwrap();
        terminal.backend().to_string()
    }

    pub fn attempt(&self, task: TaskId) -> (AttemptId, Step) {
        let of_task = self.state().live.iter().find(|(_, live)| live.task == task);
        of_task.map(|(id, live)| (*id, live.step)).unwrap()
    }
}
