//! Stories of runs towards a goal in which a person continues a step.

use crate::decide::MoneyGone;
use crate::decide::refusal::{Hindrance, refusal};
use crate::decide::tests::{RuleStory, bringing, words};
use crate::event::{Facts, Failure, Halt, HaltWhy, HoldWhy, Outcome, TaskEnd};
use crate::id::{Micros, TaskId, Time};
use crate::input::{Ask, AttemptWord, Input};
use crate::limit::Limits;
use crate::pipeline::Switch;
use crate::step::Step;

fn hindrance(story: &RuleStory, name: &str) -> Option<Hindrance> {
    refusal(&story.state, &words(name, "more")).map(|refusal| refusal.why)
}

#[test]
fn after_the_last_round_the_step_is_worked_on_alone_and_the_run_is_judged_again() {
    let mut story = RuleStory::new(&[], 1);
    story.makes(&[("one", &[]), ("two", &["one"])]);
    story.works("one", "first");
    story.works("two", "x");
    story.says(false);
    assert_eq!(story.board(), "run failed · one closed · two closed");
    assert!(story.continues("one", "otherwise"));
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
    assert_eq!(story.state.end(), Some(&TaskEnd::Closed));
}

#[test]
fn what_a_failure_kept_from_beginning_waits_for_the_new_result() {
    let mut story = RuleStory::new(&[Switch::FailFast], 2);
    story.makes(&[("bad", &[]), ("after", &["bad"]), ("beside", &[])]);
    story.fails("bad");
    assert_eq!(story.board(), "run at tasks · bad failed · after skipped · beside runs step");
    // While others work, the run does only that and rests then.
    assert!(story.continues("bad", "otherwise"));
    assert_eq!(story.board(), "run at tasks · bad runs step · after open · beside runs step");
    story.fails("bad");
    assert_eq!(story.board(), "run at tasks · bad failed · after skipped · beside runs step");
    assert_eq!(story.halt(), Some(&HaltWhy::Continued));
    assert!(story.continues("bad", "otherwise"), "the same words are a new turn now");
    story.works("bad", "good");
    assert_eq!(story.board(), "run at tasks · bad closed · after at step · beside runs step");
    story.ask(Ask::Resume);
    story.works("beside", "y");
    story.works("after", "z");
    story.says(true);
    assert_eq!(story.state.end(), Some(&TaskEnd::Closed));
}

#[test]
fn of_an_earlier_round_nothing_else_moves() {
    let mut story = RuleStory::new(&[Switch::FailFast], 3);
    story.makes(&[("bad", &[]), ("after", &["bad"])]);
    story.fails("bad");
    story.says(false);
    assert_eq!(story.board(), "run runs workflow · bad failed · after skipped");
    assert!(!story.continues("bad", "otherwise"), "somebody is asked right now");
    story.ask(Ask::Halt { why: HaltWhy::Stop, now: true });
    assert!(story.continues("bad", "otherwise"));
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
    assert_eq!(story.state.end(), Some(&TaskEnd::Closed));
}

#[test]
fn what_was_proposed_for_a_round_nobody_begun_gives_way() {
    let mut story = RuleStory::new(&[], 1);
    story.makes(&[("one", &[])]);
    story.works("one", "first");
    let no = Outcome::Failed { why: "not done".into() };
    story.end("run", Step::Completion, no, bringing(&[("next", &[])]));
    assert_eq!(story.board(), "run failed · one closed · next open");
    assert!(story.continues("one", "otherwise"));
    assert_eq!(story.board(), "run at tasks · one runs step · next skipped");
    assert!(story.task("next").is_dropped());
    story.works("one", "second");
    story.ask(Ask::Resume);
    assert_eq!(story.board(), "run runs completion · one closed · next skipped");
}

#[test]
fn a_retry_takes_up_what_was_proposed_in_a_round_of_its_own() {
    let mut story = RuleStory::new(&[], 1);
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
    let mut story = RuleStory::new(&[], 3);
    story.makes(&[("one", &[])]);
    story.works("one", "first");
    story.says(true);
    assert_eq!(story.state.end(), Some(&TaskEnd::Closed));
    assert!(story.continues("one", "otherwise"));
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
        let mut story = RuleStory::new(&[], 1);
        story.makes(&[("one", &[]), ("two", &[])]);
        story.works("one", "first");
        story.works("two", "x");
        story.says(false);
        story.continues("one", "otherwise");
        if by_resume {
            story.hear(Input::Boot);
            story.ask(Ask::Resume);
        } else {
            story.ask(Ask::Halt { why: HaltWhy::Stop, now: false });
            story.hear(Input::Boot);
            assert_eq!(story.board(), "run at tasks · one at step · two closed");
            assert!(story.continues("one", "otherwise"));
        }
        assert_eq!(story.task("one").words.as_ref().unwrap().prompt, "otherwise");
        assert_eq!(story.task("one").spent.interruptions, 1);
        story.works("one", "second");
        assert_eq!(story.halt().is_none(), by_resume);
    }
}

#[test]
fn other_words_take_the_place_of_those_nobody_has_answered() {
    let mut story = RuleStory::new(&[], 1);
    story.makes(&[("one", &[])]);
    story.ask(Ask::Halt { why: HaltWhy::Stop, now: true });
    assert_eq!(story.board(), "run at tasks · one at step");
    assert!(story.continues("one", "otherwise"));
    story.ask(Ask::Halt { why: HaltWhy::Stop, now: true });
    assert!(story.continues("one", "no, like this"));
    let one = story.task("one");
    assert_eq!((one.words.as_ref().unwrap().prompt.as_str(), one.round), ("no, like this", 1));
}

#[test]
fn what_can_not_be_continued_changes_nothing() {
    let mut story = RuleStory::new(&[Switch::FailFast, Switch::EndGate], 2);
    story.makes(&[("bad", &[]), ("after", &["bad"])]);
    assert!(!story.continues("bad", "x"), "it is being worked on");
    story.fails("bad");
    assert!(!story.continues("after", "x"), "it was never begun");
    assert!(!story.continues("nobody", "x"));
    assert!(!story.continues("", "x"), "the run is no step");
    assert_eq!(hindrance(&story, ""), Some(Hindrance::NotAStep));
    assert_eq!(hindrance(&story, "bad"), Some(Hindrance::AtWork), "it is judged");
    story.says(true);
    assert_eq!(hindrance(&story, "bad"), Some(Hindrance::Publishing));
    assert!(!story.continues("bad", "x"));
}

#[test]
fn neither_money_nor_rounds_are_given_twice() {
    let mut story = RuleStory::new(&[], 1);
    story.makes(&[("one", &[])]);
    let (id, _) = story.live("one");
    let bill = crate::event::Bill { usd: Micros(9), ..Default::default() };
    story.hear(Input::Heard { id, task: TaskId(1), word: AttemptWord::Bill(bill) });
    story.works("one", "first");
    story.says(false);
    let limits = story.state.run.limits.clone();
    let poor = Limits { usd_per_task_max: Some(Micros(9)), ..limits.clone() };
    story.ask(Ask::Limit(Box::new(poor)));
    let money = Hindrance::Money(MoneyGone {
        told: Micros(9),
        estimated: Micros(0),
        max: Micros(9),
        is_of_task: true,
    });
    assert_eq!(hindrance(&story, "one"), Some(money));
    assert!(!story.continues("one", "x"));
    let old = Limits { rounds_lifetime_max: 1, ..limits };
    story.ask(Ask::Limit(Box::new(old)));
    assert_eq!(hindrance(&story, "one"), Some(Hindrance::Lifetime { rounds_max: 1 }));
    assert!(!story.continues("one", "x"));
    assert!(matches!(story.state.end(), Some(TaskEnd::Failed { why: Failure::Rounds { .. } })));
}

#[test]
fn the_agent_that_had_the_session_is_preferred_as_long_as_it_is_there() {
    let mut story = RuleStory::new(&[], 1);
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
    let mut story = RuleStory::new(&[], 2);
    story.makes(&[("one", &[]), ("two", &[])]);
    story.works("one", "first");
    story.continues("one", "otherwise");
    story.ask(Ask::Halt { why: HaltWhy::Stop, now: false });
    let halt = Halt { why: HaltWhy::Stop, now: false };
    assert_eq!((story.state.run.halt.as_ref(), story.state.run.focus), (Some(&halt), None));
    story.end("one", Step::WorkflowStep, Outcome::Passed, Facts::default());
    assert_eq!(story.board(), "run at tasks · one at merge · two runs step");
    assert_eq!(hindrance(&story, "one"), Some(Hindrance::Merging));
    story.ask(Ask::Resume);
    story.end("one", Step::Merge, Outcome::Passed, Facts::default());
    assert_eq!(story.board(), "run at tasks · one closed · two runs step");
    assert!(story.halt().is_none());
}

/// A run that is done, with a person's turn on its only step under way.
fn continued_when_done(limits: impl Fn(&mut Limits)) -> RuleStory {
    let mut story = RuleStory::new(&[], 3);
    story.makes(&[("one", &[])]);
    let facts = Facts {
        tree: Some("t1".into()),
        commit: Some("c1".into()),
        answer: Some("first".into()),
        ..Facts::default()
    };
    story.end("one", Step::WorkflowStep, Outcome::Passed, facts);
    story.end("one", Step::Merge, Outcome::Passed, Facts::default());
    story.says(true);
    assert_eq!(story.state.end(), Some(&TaskEnd::Closed));
    let mut changed = story.state.run.limits.clone();
    limits(&mut changed);
    story.ask(Ask::Limit(Box::new(changed)));
    assert!(story.continues("one", "otherwise"));
    story
}

/// The step is done with what it had before, and the failure of the turn is told.
fn stands(story: &RuleStory, why: &str) {
    let one = story.task("one");
    assert!(one.is_closed(), "{}", story.board());
    assert_eq!((one.tree.as_deref(), one.commit.as_deref()), (Some("t1"), Some("c1")));
    let result = one.last(Step::WorkflowStep).unwrap();
    assert_eq!(result.facts.answer.as_deref(), Some("first"));
    let told = one.talk.failed_turn.as_deref().unwrap();
    assert!(told.contains(why) && told.ends_with("its earlier result stands"), "{told}");
    assert!(one.notes.iter().any(|note| note == told));
    assert!(one.talk.stands.is_none());
}

fn second() -> Facts {
    Facts { tree: Some("t2".into()), commit: Some("c2".into()), ..Facts::default() }
}

#[test]
fn a_turn_whose_repair_fails_takes_nothing_from_what_was_merged() {
    let mut story = continued_when_done(|limits| limits.retries_max = 1);
    story.end("one", Step::WorkflowStep, Outcome::Passed, second());
    story.end("one", Step::Merge, Outcome::Failed { why: "conflict".into() }, Facts::default());
    while story.state.task(TaskId(1)).step() == Some(Step::Fix) {
        story.end("one", Step::Fix, Outcome::Broke { why: "gave up".into() }, Facts::default());
    }
    stands(&story, "gave up");
    assert_eq!(story.halt(), Some(&HaltWhy::Continued));
    story.ask(Ask::Resume);
    story.says(true);
    assert_eq!(story.state.end(), Some(&TaskEnd::Closed));
}

#[test]
fn a_turn_that_ends_by_a_limit_of_money_takes_nothing_from_what_was_merged() {
    let bill = |story: &mut RuleStory, usd| {
        let (id, _) = story.live("one");
        let bill = crate::event::Bill { usd: Micros(usd), ..Default::default() };
        story.hear(Input::Heard { id, task: TaskId(1), word: AttemptWord::Bill(bill) });
    };
    let mut of_run = continued_when_done(|limits| limits.usd_max = Some(Micros(9)));
    bill(&mut of_run, 9);
    stands(&of_run, "limit");
    assert!(matches!(of_run.halt(), Some(HaltWhy::Money { .. })));
    let mut of_task = continued_when_done(|limits| limits.usd_per_task_max = Some(Micros(9)));
    bill(&mut of_task, 9);
    stands(&of_task, "limit");
    assert_eq!(of_task.halt(), Some(&HaltWhy::Continued));
}

#[test]
fn a_turn_without_its_program_ends_when_the_run_rests_and_one_without_a_login_waits() {
    let away = |why| Outcome::Away { why, text: "no".into(), until: None };
    for (why, is_over) in [(HoldWhy::Program, true), (HoldWhy::Auth, false)] {
        let mut story = continued_when_done(|_| {});
        for _ in 0..2 {
            story.end("one", Step::WorkflowStep, away(why), Facts::default());
            story.now += 60_000;
            story.hear(Input::Tick);
        }
        assert!(matches!(story.halt(), Some(HaltWhy::Away { .. })), "{:?}", story.halt());
        if is_over {
            stands(&story, "no");
        } else {
            assert_eq!(story.task("one").words.as_ref().unwrap().prompt, "otherwise");
            story.ask(Ask::Resume);
            story.end("one", Step::WorkflowStep, Outcome::Passed, second());
            story.end("one", Step::Merge, Outcome::Passed, Facts::default());
            assert_eq!(story.task("one").commit.as_deref(), Some("c2"));
        }
    }
}

#[test]
fn a_turn_that_a_person_stopped_is_taken_up() {
    let mut story = continued_when_done(|_| {});
    story.ask(Ask::Halt { why: HaltWhy::Stop, now: true });
    assert_eq!(story.board(), "run at tasks · one at step");
    story.ask(Ask::Resume);
    let failed = Outcome::Failed { why: "no".into() };
    story.end("one", Step::WorkflowStep, failed, Facts::default());
    stands(&story, "no");
}
