//! Stories of runs towards a goal in which a person goes on with a step.

use super::*;
use crate::decide::decide;
use crate::event::{Facts, Failure, Halt, HaltWhy, Outcome, RunSpec, TaskSpec, Verdict};
use crate::flow::Flow;
use crate::id::{AttemptId, Micros, Time};
use crate::input::{Ask, Input, Word};
use crate::limit::Limits;
use crate::pipeline::Switch;
use crate::step::Step;

struct Story {
    state: State,
    now: i64,
}

impl Story {
    fn new(switches: &[Switch], rounds_max: u32) -> Story {
        let mut story = Story { state: State::default(), now: 1_000 };
        story.hear(Input::Start(Box::new(RunSpec {
            id: "r".into(),
            flow: Flow::Goal,
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
            options: Default::default(),
            whole: TaskSpec::default(),
            plan: None,
            tasks: Vec::new(),
        })));
        story
    }

    fn hear(&mut self, input: Input) -> bool {
        self.now += 1_000;
        let heard = decide(&mut self.state, input, Time(self.now)).is_some();
        assert!(self.state.index_is_true());
        heard
    }

    fn ask(&mut self, ask: Ask) -> bool {
        self.hear(Input::Asked(ask))
    }

    fn task(&self, name: &str) -> &Task {
        let root = self.state.root().unwrap();
        if name == "run" { root } else { self.state.named(name).unwrap() }
    }

    fn live(&self, name: &str) -> (AttemptId, Step) {
        let id = self.task(name).id;
        let found = self.state.live.iter().find(|(_, live)| live.task == id);
        let (attempt, live) = found.unwrap_or_else(|| panic!("nobody works on {name}"));
        (*attempt, live.step)
    }

    fn end(&mut self, name: &str, step: Step, outcome: Outcome, facts: Facts) {
        let (id, at) = self.live(name);
        assert_eq!(at, step, "{name}");
        let (task, facts) = (self.task(name).id, Box::new(facts));
        self.hear(Input::Heard { id, task, word: Word::Ended { outcome, facts } });
    }

    fn makes(&mut self, steps: &[(&str, &[&str])]) {
        self.end("run", Step::Workflow, Outcome::Passed, bringing(steps));
    }

    fn works(&mut self, name: &str, answer: &str) {
        let facts = Facts {
            answer: Some(answer.into()),
            tree: Some(format!("tree of {answer}")),
            commit: Some(format!("commit of {answer}")),
            ..Facts::default()
        };
        self.end(name, Step::WorkflowStep, Outcome::Passed, facts);
        self.end(name, Step::Merge, Outcome::Passed, Facts::default());
    }

    fn fails(&mut self, name: &str) {
        let why = "no".to_owned();
        let facts = Facts { answer: Some("bad".into()), ..Facts::default() };
        self.end(name, Step::WorkflowStep, Outcome::Failed { why }, facts);
    }

    fn says(&mut self, is_done: bool) {
        let (outcome, verdict) = match is_done {
            true => (Outcome::Passed, Verdict::Approve),
            false => (Outcome::Failed { why: "not done".into() }, Verdict::RequestChanges),
        };
        let facts = Facts { verdict: Some(verdict), ..Facts::default() };
        self.end("run", Step::Completion, outcome, facts);
    }

    fn goes_on_with(&mut self, name: &str, prompt: &str) -> bool {
        let ask = words(name, prompt);
        let changed = self.ask(ask.clone());
        assert!(!self.ask(ask), "asked twice it changes something twice");
        changed
    }

    fn board(&self) -> String {
        let word = |task: &Task| match &task.status {
            Status::Open => "open".to_owned(),
            Status::At { step } => format!("at {step}"),
            Status::Running { step, .. } => format!("runs {step}"),
            Status::Waiting { step, .. } => format!("waits {step}"),
            Status::Settled(End::Closed) => "closed".to_owned(),
            Status::Settled(End::Failed { .. }) => "failed".to_owned(),
            Status::Settled(End::Skipped { .. }) => "skipped".to_owned(),
        };
        let tasks = self.state.tasks.iter().map(|task| {
            let name = task.label();
            format!("{name} {}", word(task))
        });
        tasks.collect::<Vec<_>>().join(" · ")
    }

    fn halt(&self) -> Option<&HaltWhy> {
        self.state.run.halt.as_ref().map(|halt| &halt.why)
    }
}

fn bringing(steps: &[(&str, &[&str])]) -> Facts {
    let tasks = steps.iter().map(|(name, needs)| TaskSpec {
        name: (*name).to_owned(),
        depends_on: needs.iter().map(|need| (*need).to_owned()).collect(),
        ..TaskSpec::default()
    });
    Facts { tasks: tasks.collect(), ..Facts::default() }
}

fn words(name: &str, prompt: &str) -> Ask {
    let words = Words {
        prompt: prompt.to_owned(),
        session: format!("s-{name}"),
        is_its_own: true,
        attempt: AttemptId { seq: 1, place: 0 },
        lane: 0,
    };
    Ask::Continue { task: name.to_owned(), words: Box::new(words) }
}

#[test]
fn after_the_last_round_the_step_is_worked_on_alone_and_the_run_is_judged_again() {
    let mut story = Story::new(&[], 1);
    story.makes(&[("one", &[]), ("two", &["one"])]);
    story.works("one", "first");
    story.works("two", "x");
    story.says(false);
    assert_eq!(story.board(), "run failed · one closed · two closed");
    assert!(story.goes_on_with("one", "otherwise"));
    assert_eq!(story.board(), "run at tasks · one runs step · two closed");
    let one = story.task("one");
    assert_eq!(one.words.as_ref().unwrap().prompt, "otherwise");
    assert_eq!(one.last(Step::WorkflowStep).unwrap().facts.answer.as_deref(), Some("first"));
    story.works("one", "second");
    // It rests before anything else is done.
    assert_eq!(story.board(), "run at completion · one closed · two closed");
    assert_eq!(story.halt(), Some(&HaltWhy::Continued));
    let one = story.task("one");
    assert_eq!(one.last(Step::WorkflowStep).unwrap().facts.answer.as_deref(), Some("second"));
    assert_eq!((one.words.as_ref(), story.state.run.focus), (None, None));
    story.ask(Ask::Resume);
    assert_eq!(story.board(), "run runs completion · one closed · two closed");
    // What a retry grants: a round that fails is followed by another.
    assert_eq!(story.task("run").rounds_used(), 1);
    story.says(true);
    assert_eq!(story.state.end(), Some(&End::Closed));
}

#[test]
fn what_a_failure_kept_from_beginning_waits_for_the_new_result() {
    let mut story = Story::new(&[Switch::FailFast], 2);
    story.makes(&[("bad", &[]), ("after", &["bad"]), ("beside", &[])]);
    story.fails("bad");
    assert_eq!(story.board(), "run at tasks · bad failed · after skipped · beside runs step");
    // While others work, the run does only that and rests then.
    assert!(story.goes_on_with("bad", "otherwise"));
    assert_eq!(story.board(), "run at tasks · bad runs step · after open · beside runs step");
    story.fails("bad");
    assert_eq!(story.board(), "run at tasks · bad failed · after skipped · beside runs step");
    assert_eq!(story.halt(), Some(&HaltWhy::Continued));
    assert!(story.goes_on_with("bad", "otherwise"), "the same words are a new turn now");
    story.works("bad", "good");
    assert_eq!(story.board(), "run at tasks · bad closed · after at step · beside runs step");
    story.ask(Ask::Resume);
    story.works("beside", "y");
    story.works("after", "z");
    story.says(true);
    assert_eq!(story.state.end(), Some(&End::Closed));
}

#[test]
fn of_an_earlier_round_nothing_else_moves() {
    let mut story = Story::new(&[Switch::FailFast], 3);
    story.makes(&[("bad", &[]), ("after", &["bad"])]);
    story.fails("bad");
    story.says(false);
    assert_eq!(story.board(), "run runs workflow · bad failed · after skipped");
    assert!(!story.goes_on_with("bad", "otherwise"), "somebody is asked right now");
    story.ask(Ask::Halt { why: HaltWhy::Stop, now: true });
    assert!(story.goes_on_with("bad", "otherwise"));
    assert_eq!(story.board(), "run at workflow · bad runs step · after skipped");
    // Stopped in between, the run itself waits for it: what is asked next is to see it.
    story.ask(Ask::Halt { why: HaltWhy::Stop, now: true });
    assert!(story.ask(Ask::Resume));
    assert_eq!(story.board(), "run at workflow · bad runs step · after skipped");
    story.works("bad", "good");
    assert_eq!(story.board(), "run runs workflow · bad closed · after skipped");
    assert_eq!(story.task("run").round, 2);
    story.makes(&[("next", &[])]);
    story.works("next", "n");
    story.says(true);
    assert_eq!(story.state.end(), Some(&End::Closed));
}

#[test]
fn what_was_proposed_for_a_round_nobody_begun_gives_way() {
    let mut story = Story::new(&[], 1);
    story.makes(&[("one", &[])]);
    story.works("one", "first");
    let no = Outcome::Failed { why: "not done".into() };
    story.end("run", Step::Completion, no, bringing(&[("next", &[])]));
    assert_eq!(story.board(), "run failed · one closed · next open");
    assert!(story.goes_on_with("one", "otherwise"));
    assert_eq!(story.board(), "run at tasks · one runs step · next skipped");
    assert!(story.task("next").is_dropped());
    story.works("one", "second");
    story.ask(Ask::Resume);
    assert_eq!(story.board(), "run runs completion · one closed · next skipped");
}

#[test]
fn a_retry_takes_up_what_was_proposed_in_a_round_of_its_own() {
    let mut story = Story::new(&[], 1);
    story.makes(&[("one", &[])]);
    story.works("one", "first");
    let no = Outcome::Failed { why: "not done".into() };
    story.end("run", Step::Completion, no, bringing(&[("next", &[])]));
    story.ask(Ask::Retry { task: String::new() });
    assert_eq!(story.board(), "run at tasks · one closed · next runs step");
    assert_eq!(story.task("run").round, 2);
}

#[test]
fn a_merge_that_fails_is_repaired_and_then_the_step_is_over() {
    let mut story = Story::new(&[], 3);
    story.makes(&[("one", &[])]);
    story.works("one", "first");
    story.says(true);
    assert_eq!(story.state.end(), Some(&End::Closed));
    assert!(story.goes_on_with("one", "otherwise"));
    assert_eq!(story.task("one").round, 2);
    let facts = Facts { tree: Some("t".into()), ..Facts::default() };
    story.end("one", Step::WorkflowStep, Outcome::Passed, facts);
    let conflict = Outcome::Failed { why: "conflict".into() };
    // Not the repair of a round that never failed.
    story.end("one", Step::Merge, conflict, Facts::default());
    story.end("one", Step::Fix, Outcome::Passed, Facts::default());
    story.end("one", Step::Merge, Outcome::Passed, Facts::default());
    assert_eq!(story.halt(), Some(&HaltWhy::Continued));
    assert_eq!(story.board(), "run at completion · one closed");
}

#[test]
fn a_crash_in_the_turn_keeps_the_words_whoever_takes_it_up() {
    for by_resume in [true, false] {
        let mut story = Story::new(&[], 1);
        story.makes(&[("one", &[]), ("two", &[])]);
        story.works("one", "first");
        story.works("two", "x");
        story.says(false);
        story.goes_on_with("one", "otherwise");
        if by_resume {
            story.hear(Input::Boot);
            story.ask(Ask::Resume);
        } else {
            story.ask(Ask::Halt { why: HaltWhy::Stop, now: false });
            story.hear(Input::Boot);
            assert_eq!(story.board(), "run at tasks · one at step · two closed");
            assert!(story.goes_on_with("one", "otherwise"));
        }
        assert_eq!(story.task("one").words.as_ref().unwrap().prompt, "otherwise");
        assert_eq!(story.task("one").spent.interruptions, 1);
        story.works("one", "second");
        assert_eq!(story.halt().is_none(), by_resume);
    }
}

#[test]
fn other_words_take_the_place_of_those_nobody_has_answered() {
    let mut story = Story::new(&[], 1);
    story.makes(&[("one", &[])]);
    story.ask(Ask::Halt { why: HaltWhy::Stop, now: true });
    assert_eq!(story.board(), "run at tasks · one at step");
    assert!(story.goes_on_with("one", "otherwise"));
    story.ask(Ask::Halt { why: HaltWhy::Stop, now: true });
    assert!(story.goes_on_with("one", "no, like this"));
    let one = story.task("one");
    assert_eq!((one.words.as_ref().unwrap().prompt.as_str(), one.round), ("no, like this", 1));
}

#[test]
fn what_can_not_be_gone_on_with_changes_nothing() {
    let mut story = Story::new(&[Switch::FailFast, Switch::EndGate], 2);
    story.makes(&[("bad", &[]), ("after", &["bad"])]);
    assert!(!story.goes_on_with("bad", "x"), "it is being worked on");
    story.fails("bad");
    assert!(!story.goes_on_with("after", "x"), "it was never begun");
    assert!(!story.goes_on_with("nobody", "x"));
    assert!(!story.goes_on_with("", "x"), "the run is no step");
    assert_eq!(hindrance(&story.state, TaskId::ROOT), Some(Hindrance::NotAStep));
    assert_eq!(hindrance(&story.state, TaskId(1)), Some(Hindrance::AtWork), "it is judged");
    story.says(true);
    assert_eq!(hindrance(&story.state, TaskId(1)), Some(Hindrance::Publishing));
    assert!(!story.goes_on_with("bad", "x"));
}

#[test]
fn neither_money_nor_rounds_are_given_twice() {
    let mut story = Story::new(&[], 1);
    story.makes(&[("one", &[])]);
    let (id, _) = story.live("one");
    let bill = crate::event::Bill { usd: Micros(9), ..Default::default() };
    story.hear(Input::Heard { id, task: TaskId(1), word: Word::Bill(bill) });
    story.works("one", "first");
    story.says(false);
    let limits = story.state.run.limits.clone();
    let poor = Limits { usd_per_task_max: Some(Micros(9)), ..limits.clone() };
    story.ask(Ask::Limit(Box::new(poor)));
    assert_eq!(hindrance(&story.state, TaskId(1)), Some(Hindrance::Money));
    assert!(!story.goes_on_with("one", "x"));
    let old = Limits { rounds_lifetime_max: 1, ..limits };
    story.ask(Ask::Limit(Box::new(old)));
    assert_eq!(hindrance(&story.state, TaskId(1)), Some(Hindrance::Lifetime));
    assert!(!story.goes_on_with("one", "x"));
    assert!(matches!(story.state.end(), Some(End::Failed { why: Failure::Rounds { .. } })));
}

#[test]
fn the_agent_that_had_the_session_is_preferred_as_long_as_it_is_there() {
    let mut story = Story::new(&[], 1);
    let lanes = [(Step::WorkflowStep, vec!["first".to_owned(), "second".to_owned()])];
    let limits = Limits { lanes: lanes.into_iter().collect(), ..story.state.run.limits.clone() };
    story.ask(Ask::Limit(Box::new(limits)));
    story.makes(&[("one", &[])]);
    story.works("one", "first");
    story.says(false);
    let Ask::Continue { task, mut words } = words("one", "x") else { unreachable!() };
    words.lane = 1;
    story.ask(Ask::Continue { task, words });
    assert_eq!(story.state.live.values().next().unwrap().lane, 1);
    // When its account is used up, another is told what was said.
    let until = Time(story.now + 3_600_000);
    story.end("one", Step::WorkflowStep, Outcome::Quota { until }, Facts::default());
    assert_eq!(story.state.live.values().next().unwrap().lane, 0);
    assert!(story.task("one").words.is_some());
}

#[test]
fn a_halt_ends_the_turn_and_its_precedence() {
    let mut story = Story::new(&[], 2);
    story.makes(&[("one", &[]), ("two", &[])]);
    story.works("one", "first");
    story.goes_on_with("one", "otherwise");
    story.ask(Ask::Halt { why: HaltWhy::Stop, now: false });
    let halt = Halt { why: HaltWhy::Stop, now: false };
    assert_eq!((story.state.run.halt.as_ref(), story.state.run.focus), (Some(&halt), None));
    story.end("one", Step::WorkflowStep, Outcome::Passed, Facts::default());
    assert_eq!(story.board(), "run at tasks · one at merge · two runs step");
    assert_eq!(hindrance(&story.state, TaskId(1)), Some(Hindrance::Merging));
    story.ask(Ask::Resume);
    story.end("one", Step::Merge, Outcome::Passed, Facts::default());
    assert_eq!(story.board(), "run at tasks · one closed · two runs step");
    assert!(story.halt().is_none());
}
