//! Runs that tests tell word by word, without a world around them.

use crate::decide::decide;
use crate::event::{
    Facts, HaltWhy, Outcome, RunSpec, SessionPrompt, StepAnswer, TaskEnd, TaskEntry,
};
use crate::flow::Flow;
use crate::id::{AttemptId, Time};
use crate::input::{Ask, AttemptWord, Input};
use crate::limit::Limits;
use crate::pipeline::Switch;
use crate::state::{State, Status, Task};
use crate::step::Step;

/// Names of tasks, and what each needs.
pub(super) type Specs<'a> = &'a [(&'a str, &'a [&'a str])];

/// A run that a test tells word by word.
pub(super) struct RuleStory {
    pub state: State,
    pub now: i64,
}

impl RuleStory {
    /// A run towards a goal.
    pub fn new(switches: &[Switch], rounds_max: u32) -> RuleStory {
        RuleStory::of(Flow::Goal, &[], switches, rounds_max)
    }

    pub fn of(flow: Flow, tasks: Specs<'_>, switches: &[Switch], rounds_max: u32) -> RuleStory {
        let mut story = RuleStory { state: State::default(), now: 1_000 };
        story.hear(Input::Start(Box::new(RunSpec {
            id: "r".into(),
            flow,
            title: "a goal".into(),
            source: "a goal".into(),
            started_by: "somebody".into(),
            base_branch: "main".into(),
            base: "0".into(),
            branch: "b".into(),
            switches: switches.iter().copied().collect(),
            limits: Limits { rounds_max, workers_max: 4, ..Limits::default() },
            config: "c".into(),
            red_base_allowed: false,
            holdout: None,
            options: Default::default(),
            whole: TaskEntry::default(),
            plan: None,
            tasks: bringing(tasks).tasks,
        })));
        story
    }

    pub fn hear(&mut self, input: Input) -> bool {
        self.now += 1_000;
        let heard =
            decide(&mut self.state, input, Time(self.now)).is_ok_and(|record| record.is_some());
        assert!(self.state.index_is_true());
        heard
    }

    pub fn ask(&mut self, ask: Ask) -> bool {
        self.hear(Input::Asked(ask))
    }

    pub fn task(&self, name: &str) -> &Task {
        let root = self.state.root().unwrap();
        if name == "run" { root } else { self.state.named(name).unwrap() }
    }

    pub fn live(&self, name: &str) -> (AttemptId, Step) {
        let id = self.task(name).id;
        let found = self.state.live.iter().find(|(_, live)| live.task == id);
        let (attempt, live) = found.unwrap_or_else(|| panic!("nobody works on {name}"));
        (*attempt, live.step)
    }

    pub fn end(&mut self, name: &str, step: Step, outcome: Outcome, facts: Facts) {
        let (id, at) = self.live(name);
        assert_eq!(at, step, "{name}");
        let (task, facts) = (self.task(name).id, Box::new(facts));
        self.hear(Input::Heard { id, task, word: AttemptWord::Ended { outcome, facts } });
    }

    pub fn makes(&mut self, steps: Specs<'_>) {
        self.end("run", Step::Workflow, Outcome::Passed, bringing(steps));
    }

    pub fn works(&mut self, name: &str, answer: &str) {
        let facts = Facts {
            answer: Some(answer.into()),
            tree: Some(format!("tree of {answer}")),
            commit: Some(format!("commit of {answer}")),
            ..Facts::default()
        };
        self.end(name, Step::WorkflowStep, Outcome::Passed, facts);
        self.end(name, Step::Merge, Outcome::Passed, Facts::default());
    }

    pub fn fails(&mut self, name: &str) {
        let why = "no".to_owned();
        let facts = Facts { answer: Some("bad".into()), ..Facts::default() };
        self.end(name, Step::WorkflowStep, Outcome::Failed { why }, facts);
    }

    pub fn says(&mut self, is_done: bool) {
        let outcome = match is_done {
            true => Outcome::Passed,
            false => Outcome::Failed { why: "not done".into() },
        };
        let said = Some(StepAnswer::Completion { done: is_done });
        let facts = Facts { said, ..Facts::default() };
        self.end("run", Step::Completion, outcome, facts);
    }

    pub fn continues(&mut self, name: &str, prompt: &str) -> bool {
        let ask = words(name, prompt);
        let changed = self.ask(ask.clone());
        assert!(!self.ask(ask), "asked twice it changes something twice");
        changed
    }

    pub fn board(&self) -> String {
        let word = |task: &Task| match &task.status {
            Status::Open => "open".to_owned(),
            Status::At { step } => format!("at {step}"),
            Status::Running { step, .. } => format!("runs {step}"),
            Status::Waiting { step, .. } => format!("waits {step}"),
            Status::Settled(TaskEnd::Closed) => "closed".to_owned(),
            Status::Settled(TaskEnd::Failed { .. }) => "failed".to_owned(),
            Status::Settled(TaskEnd::Skipped { .. }) => "skipped".to_owned(),
        };
        let tasks = self.state.tasks.iter().map(|task| format!("{} {}", task.label(), word(task)));
        tasks.collect::<Vec<_>>().join(" · ")
    }

    pub fn halt(&self) -> Option<&HaltWhy> {
        self.state.run.halt.as_ref().map(|halt| &halt.why)
    }
}

pub(super) fn bringing(steps: Specs<'_>) -> Facts {
    let tasks = steps.iter().map(|(name, needs)| TaskEntry {
        name: (*name).to_owned(),
        depends_on: needs.iter().map(|need| (*need).to_owned()).collect(),
        ..TaskEntry::default()
    });
    Facts { tasks: tasks.collect(), ..Facts::default() }
}

pub(super) fn words(name: &str, prompt: &str) -> Ask {
    let words = SessionPrompt {
        prompt: prompt.to_owned(),
        session: format!("s-{name}"),
        is_its_own: true,
        attempt: AttemptId { seq: 1, place: 0 },
        lane: 0,
    };
    Ask::Continue { task: name.to_owned(), words: Box::new(words) }
}
