//! Each refusal in words: what happened, what is asked, what is answered.

use super::*;
use crate::decide::tests::{RuleStory, bringing, words};
use crate::event::{Bill, Facts, HaltWhy, Outcome};
use crate::flow::Flow;
use crate::id::Micros;
use crate::input::AttemptWord;
use crate::pipeline::Switch;
use crate::step::Step;

/// The answer to an ask in words, made sure that it is kept: a refusal changes nothing, a yes
/// something.
fn answer(story: &mut RuleStory, ask: Ask) -> String {
    let before = story.state.clone();
    match decide(&mut story.state, Input::Asked(ask), Time(story.now + 1)) {
        Ok(record) => {
            assert!(record.is_some() && story.state != before, "a silent yes");
            "yes".to_owned()
        }
        Err(refusal) => {
            assert_eq!(story.state, before, "{refusal}");
            let json = serde_json::to_string(&refusal).unwrap();
            assert_eq!(serde_json::from_str::<Refusal>(&json).unwrap(), refusal);
            let is = if refusal.is_already_so() { "unchanged: " } else { "" };
            let remedy = refusal.remedy().map(|remedy| format!(" | {remedy}"));
            format!("{is}{refusal}{}", remedy.unwrap_or_default())
        }
    }
}

fn retry(task: &str) -> Ask {
    Ask::Retry { task: task.to_owned() }
}

fn skip(task: &str) -> Ask {
    Ask::Skip { task: task.to_owned() }
}

fn stop(now: bool) -> Ask {
    Ask::Halt { why: HaltWhy::Stop, now }
}

fn approve() -> Ask {
    Ask::Approve { by: "somebody".into(), answer: None }
}

fn reject(why: &str) -> Ask {
    Ask::Reject { by: "somebody".into(), why: why.into() }
}

fn limit(story: &RuleStory, change: impl FnOnce(&mut Limits)) -> Ask {
    let mut limits = story.state.run.limits.clone();
    change(&mut limits);
    Ask::Limit(Box::new(limits))
}

/// A queue in which `a` failed, `b` needed it, and `c` has nothing to do with it.
fn failed_queue() -> RuleStory {
    let mut story = RuleStory::of(Flow::Queue, &[("a", &[]), ("b", &["a"]), ("c", &[])], &[], 1);
    let why = "no".to_owned();
    story.end("a", Step::Build, Outcome::Failed { why }, Facts::default());
    assert_eq!(story.board(), "run at tasks · a failed · b skipped · c runs build");
    story
}

#[test]
fn a_task_that_does_not_exist_is_unknown_whatever_is_asked_of_it() {
    let mut story = failed_queue();
    let unknown = "there is no task `aa` in run r; did you mean `a`? | its tasks are: a, b, c";
    for ask in [retry("aa"), skip("aa"), words("aa", "more")] {
        assert_eq!(answer(&mut story, ask), unknown);
    }
    let unknown = "there is no task `elsewhere` in run r | its tasks are: a, b, c";
    assert_eq!(answer(&mut story, retry("elsewhere")), unknown);
    let many: Vec<(String, &[&str])> = (0..25).map(|n| (format!("t{n:02}"), &[][..])).collect();
    let many: Vec<(&str, &[&str])> = many.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    let mut story = RuleStory::of(Flow::Queue, &many, &[], 1);
    assert!(answer(&mut story, retry("nobody")).ends_with("t18, t19 and 5 more"));
    let mut story = RuleStory::of(Flow::Plan, &[], &[], 1);
    let none = "there is no task `a` in run r | it has no tasks yet; `autopilot status` shows \
                where it stands";
    assert_eq!(answer(&mut story, skip("a")), none);
}

#[test]
fn what_has_not_failed_is_not_retried() {
    let mut story = failed_queue();
    let blocked = "task `b` needs `a`, which failed | `autopilot retry a` retries both";
    assert_eq!(answer(&mut story, retry("b")), blocked);
    let at_work = "task `c` has not failed; there is nothing to retry";
    assert_eq!(answer(&mut story, retry("c")), at_work);
    assert_eq!(answer(&mut story, retry("")), "the run has not failed; there is nothing to retry");
    assert_eq!(answer(&mut story, retry("a")), "yes");
    let again = "task `a` has not failed; there is nothing to retry";
    assert_eq!(answer(&mut story, retry("a")), again);

    let mut story = RuleStory::new(&[], 1);
    story.makes(&[("one", &[])]);
    story.works("one", "first");
    let done = "task `one` is done; there is nothing to retry";
    assert_eq!(answer(&mut story, retry("one")), done);
    let done = "task `one` is done; there is nothing to skip";
    assert_eq!(answer(&mut story, skip("one")), done);
    story.says(true);
    assert_eq!(answer(&mut story, retry("")), "the run is done; there is nothing to retry");
}

#[test]
fn a_run_that_failed_by_its_tasks_names_the_one_to_retry() {
    let mut story = failed_queue();
    let why = "no".to_owned();
    story.end("c", Step::Build, Outcome::Failed { why }, Facts::default());
    let its_tasks = "the run failed because of its tasks | retry the one that failed: \
                     `autopilot retry a`";
    assert_eq!(answer(&mut story, retry("")), its_tasks);
    assert_eq!(answer(&mut story, retry("c")), "yes");
}

#[test]
fn what_the_run_has_moved_past_is_neither_retried_nor_skipped() {
    let mut story = RuleStory::new(&[], 2);
    story.makes(&[("one", &[]), ("two", &[])]);
    story.fails("one");
    story.works("two", "x");
    assert_eq!(story.board(), "run runs completion · one failed · two closed");
    let behind = "can't be retried now: the run has moved past its tasks and is judging the result";
    let again = "if it fails, `autopilot retry one` is possible again";
    let wait = "wait for the run to end, or `autopilot stop` it";
    let live = format!("task `one` {behind} | {wait}; {again}");
    assert_eq!(answer(&mut story, retry("one")), live);
    let skipped = live.replace("retried", "skipped").replace("retry", "skip");
    assert_eq!(answer(&mut story, skip("one")), skipped);
    story.ask(stop(false));
    let stopped = format!(
        "task `one` {behind} | let `autopilot resume` finish the run; {again}; you can continue its \
         session: `autopilot resume <session> --prompt …`"
    );
    assert_eq!(answer(&mut story, retry("one")), stopped);
}

#[test]
fn what_was_dropped_stays_so_and_the_way_out_depends_on_the_run() {
    let mut story = RuleStory::new(&[], 1);
    story.makes(&[("one", &[])]);
    story.works("one", "first");
    let no = Outcome::Failed { why: "not done".into() };
    story.end("run", Step::Completion, no, bringing(&[("next", &[])]));
    story.continues("one", "otherwise");
    let dropped = "task `next` was dropped: its workflow was never started, because the one before \
                   it was judged again | ";
    let remedies = [
        "`autopilot resume` continues the run",
        "ask for the missing part in a session (`autopilot sessions` lists them): `autopilot resume \
         <session> --prompt …`, or start another goal",
    ];
    for ask in [retry("next"), skip("next")] {
        assert_eq!(answer(&mut story, ask), format!("{dropped}{}", remedies[0]));
    }
    story.works("one", "second");
    story.ask(Ask::Resume);
    let mut lost = RuleStory { state: story.state.clone(), now: story.now };
    story.says(true);
    assert_eq!(answer(&mut story, retry("next")), format!("{dropped}{}", remedies[1]));
    for _ in 0..=lost.state.run.limits.retries_of(Step::Completion) {
        let broke = Outcome::Broke { why: "no answer".into() };
        lost.end("run", Step::Completion, broke, Facts::default());
    }
    let retried = format!("{dropped}`autopilot retry` continues the run");
    assert_eq!(answer(&mut lost, retry("next")), retried);
}

#[test]
fn rounds_of_a_lifetime_and_money_of_a_task_are_given_once() {
    let mut story = failed_queue();
    let ask = limit(&story, |limits| limits.rounds_lifetime_max = 1);
    assert_eq!(answer(&mut story, ask), "yes");
    let lifetime = "task `a` has used all 1 iterations of its lifetime | the merged work stays \
                    on its branch; start another run for the rest";
    assert_eq!(answer(&mut story, retry("a")), lifetime);

    let mut story = failed_queue();
    let (id, task) = (crate::id::AttemptId { seq: 1, place: 9 }, story.task("a").id);
    let bill = Bill { usd: Micros(2_000_000), ..Bill::default() };
    story.hear(Input::Heard { id, task, word: AttemptWord::Bill(bill) });
    let poor = limit(&story, |limits| limits.usd_per_task_max = Some(Micros(1_000_000)));
    assert_eq!(answer(&mut story, poor), "yes");
    let money = "task `a` has spent $2.00 of its limit of $1.00 | raise its limit in the same \
                 command with `--max-usd-per-task <USD>`";
    assert_eq!(answer(&mut story, retry("a")), money);
    // A limit raised in the same breath counts.
    let rich = limit(&story, |limits| limits.usd_per_task_max = Some(Micros(9_000_000)));
    let both = [rich, retry("a")].map(Input::Asked);
    let after = rehearse(&story.state, both, Time(story.now)).unwrap();
    assert!(!after.named("a").unwrap().is_settled());
    let refused = rehearse(&story.state, [Input::Asked(retry("a"))], Time(story.now)).unwrap_err();
    assert_eq!(refused.deed, Deed::Retry);
}

#[test]
fn a_skip_needs_a_task_that_can_be_left_out() {
    let mut story = failed_queue();
    let run = "the run itself can't be skipped | name one of its tasks";
    assert_eq!(answer(&mut story, skip("")), run);
    assert_eq!(answer(&mut story, skip("b")), "yes");
    assert_eq!(answer(&mut story, skip("b")), "unchanged: task `b` is already skipped");

    let mut story = RuleStory::new(&[], 1);
    story.makes(&[("one", &[])]);
    story.end("one", Step::WorkflowStep, Outcome::Passed, Facts::default());
    assert_eq!(story.board(), "run at tasks · one runs merge");
    let acting = "task `one` can't be skipped now: its merge has started and may be complete \
                  | wait until the merge is done";
    assert_eq!(answer(&mut story, skip("one")), acting);
}

#[test]
fn what_lies_in_a_task_that_was_left_out_stays_out_with_it() {
    let mut story = RuleStory::of(Flow::Plan, &[], &[], 1);
    story.end("run", Step::Plan, Outcome::Passed, Facts::default());
    let mut big = bringing(&[("big", &[]), ("other", &[])]);
    big.tasks[0].expand = true;
    story.end("run", Step::Schedule, Outcome::Passed, big);
    story.end("big", Step::Plan, Outcome::Passed, Facts::default());
    story.end("big", Step::Schedule, Outcome::Passed, bringing(&[("inner", &[])]));
    assert_eq!(answer(&mut story, skip("big")), "yes");
    let left_out =
        "task `inner` was skipped together with `big` | `autopilot retry big` retries both";
    assert_eq!(answer(&mut story, skip("inner")), left_out);
}

#[test]
fn a_session_is_continued_only_where_there_is_one_and_nobody_is_in_it() {
    let mut story = RuleStory::new(&[Switch::FailFast, Switch::EndGate], 2);
    story.makes(&[("bad", &[]), ("after", &["bad"])]);
    let said = |story: &mut RuleStory, name: &str| answer(story, words(name, "more"));
    let sessions = "`autopilot sessions` lists the sessions that can be continued";
    let first = "let `autopilot resume` finish that first, then try again";
    let at_work = "task `bad` can't be continued now: it is being worked on";
    assert_eq!(said(&mut story, "bad"), format!("{at_work} | {first}"));
    let not_a_step = "the run is not a step of a workflow";
    assert_eq!(said(&mut story, ""), format!("{not_a_step} | {sessions}"));
    story.fails("bad");
    let never = "task `after` can't be continued now: it was never started";
    assert_eq!(said(&mut story, "after"), format!("{never} | {sessions}"));
    story.says(true);
    let publishing = "task `bad` can't be continued now: the result of the run is about to be \
                      approved or published | `autopilot reject \"why\"` it, or let `autopilot \
                      resume` publish it first";
    assert_eq!(said(&mut story, "bad"), publishing);

    let mut story = RuleStory::new(&[], 1);
    story.makes(&[("one", &[])]);
    story.works("one", "first");
    story.says(false);
    let old = limit(&story, |limits| limits.rounds_lifetime_max = 1);
    let mut worn = RuleStory { state: story.state.clone(), now: story.now };
    worn.ask(old);
    let lifetime = "task `one` has used all 1 iterations of its lifetime | ask outside the \
                    run: `autopilot resume <session> --read-only --prompt …`";
    assert_eq!(said(&mut worn, "one"), lifetime);
    assert_eq!(said(&mut story, "one"), "yes");
    let again = "unchanged: task `one` is already being continued with this prompt";
    assert_eq!(said(&mut story, "one"), again);
    story.ask(stop(false));
    story.end("one", Step::WorkflowStep, Outcome::Passed, Facts::default());
    let merging = "task `one` can't be continued now: its work is about to be merged";
    assert_eq!(said(&mut story, "one"), format!("{merging} | {first}"));
}

#[test]
fn an_answer_needs_a_question() {
    let mut story = RuleStory::new(&[Switch::EndGate], 1);
    let no_gate = "nothing is waiting for approval | `autopilot status` shows where the run stands";
    for ask in [approve(), reject("no")] {
        assert_eq!(answer(&mut story, ask), no_gate);
    }
    story.makes(&[("one", &[])]);
    story.works("one", "first");
    story.says(true);
    let no_reason = "a rejection needs a reason | say why: `autopilot reject \"why\"`";
    assert_eq!(answer(&mut story, reject(" ")), no_reason);
    assert_eq!(answer(&mut story, approve()), "yes");
    assert_eq!(answer(&mut story, approve()), no_gate);
}

#[test]
fn asking_for_what_already_is_is_a_yes_that_changes_nothing() {
    let mut story = RuleStory::new(&[Switch::Review], 1);
    let not_stopped = "unchanged: the run is not stopped";
    assert_eq!(answer(&mut story, Ask::Resume), not_stopped);
    assert_eq!(answer(&mut story, stop(false)), "yes");
    let stopped = "unchanged: the run is already stopping or over";
    assert_eq!(answer(&mut story, stop(false)), stopped);
    assert_eq!(answer(&mut story, stop(true)), "yes", "more urgent than before");
    assert_eq!(answer(&mut story, stop(true)), stopped);
    assert_eq!(answer(&mut story, Ask::Resume), "yes");
    let same = "unchanged: nothing would change";
    let limits = limit(&story, |_| {});
    assert_eq!(answer(&mut story, limits), same);
    let waive = |on| Ask::Switch { switch: Switch::Review, on, by: "somebody".into() };
    assert_eq!(answer(&mut story, waive(true)), same);
    assert_eq!(answer(&mut story, waive(false)), "yes");
    let limits = Box::new(story.state.run.limits.clone());
    let models = |config: &str| Ask::Models {
        limits: limits.clone(),
        config: config.to_owned(),
        model: None,
    };
    assert_eq!(answer(&mut story, models("c")), same);
    assert_eq!(answer(&mut story, models("d")), "yes");
    story.makes(&[("one", &[])]);
    story.works("one", "first");
    story.says(true);
    assert_eq!(answer(&mut story, stop(true)), stopped, "it is over");
}

#[test]
fn only_a_pause_is_cancelled_and_a_stop_ends_a_pause() {
    let mut story = RuleStory::new(&[], 1);
    let pause = || Ask::Halt { why: HaltWhy::Pause, now: false };
    let not_paused = "unchanged: the run is not paused";
    assert_eq!(answer(&mut story, Ask::Unpause), not_paused);
    assert_eq!(answer(&mut story, pause()), "yes");
    let paused = "unchanged: the run is already paused, stopping or over";
    assert_eq!(answer(&mut story, pause()), paused);
    assert_eq!(answer(&mut story, Ask::Unpause), "yes");
    assert_eq!(story.state.run.halt, None);
    assert_eq!(answer(&mut story, pause()), "yes");
    assert_eq!(answer(&mut story, stop(false)), "yes", "a waiting process must end");
    assert_eq!(answer(&mut story, stop(false)), "unchanged: the run is already stopping or over");
    assert_eq!(answer(&mut story, pause()), paused);
    assert_eq!(answer(&mut story, Ask::Unpause), not_paused, "a stop is not cancelled by it");
}

#[test]
fn a_limit_of_nothing_is_refused() {
    let mut story = RuleStory::new(&[], 1);
    for (name, ask) in [
        ("workers_max", limit(&story, |limits| limits.workers_max = 0)),
        ("effects_max", limit(&story, |limits| limits.effects_max = 0)),
        ("rounds_max", limit(&story, |limits| limits.rounds_max = 0)),
        ("rounds_below_max", limit(&story, |limits| limits.rounds_below_max = Some(0))),
    ] {
        let refused = format!("a limit of 0 for {name} is not valid | set it to at least 1");
        assert_eq!(answer(&mut story, ask), refused);
    }
}

#[test]
fn an_ask_is_read_as_it_was_written() {
    let story = RuleStory::new(&[], 1);
    for ask in [
        stop(true),
        Ask::Resume,
        retry("a"),
        words("a", "more"),
        skip("a"),
        approve(),
        reject("no"),
        limit(&story, |_| {}),
        Ask::Switch { switch: Switch::Review, on: false, by: "somebody".into() },
    ] {
        let json = serde_json::to_string(&ask).unwrap();
        assert_eq!(serde_json::from_str::<Ask>(&json).unwrap(), ask, "{json}");
        assert!(!ask.carried_out().is_empty());
    }
    assert_eq!(serde_json::to_string(&retry("a")).unwrap(), r#"{"retry":{"task":"a"}}"#);
    assert_eq!(retry("a").carried_out(), "retrying task `a`");
    assert_eq!(retry("").carried_out(), "retrying the run");
}
