//! What a person sees, at several sizes.

use crate::key::MoveBy;
use crate::page::TextPage;
use crate::sample::SampleRun;
use crate::screen::{Seat, View};
use autopilot_agents::AgentEvent;
use autopilot_core::event::{
    Bill, Event, Facts, Failure, HaltWhy, HoldWhy, Outcome, Skip, TaskEnd,
};
use autopilot_core::id::{Micros, TaskId};
use autopilot_core::step::Step;
use autopilot_engine::feed::Sight;
use insta::assert_snapshot;
use std::time::Duration;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (40, 10)];

fn at_all_sizes(name: &str, sample: &SampleRun) {
    for (width, height) in SIZES {
        assert_snapshot!(format!("{name}_{width}x{height}"), sample.seen(width, height));
    }
}

fn output(text: &str) -> Sight {
    Sight::Output { text: text.to_owned() }
}

fn tool(id: &str, name: &str, summary: &str) -> Sight {
    let (id, name, summary) = (id.to_owned(), name.to_owned(), summary.to_owned());
    Sight::Agent(AgentEvent::ToolCall { id, name, summary })
}

/// Four workers at once, in different steps, and others that wait.
fn busy() -> SampleRun {
    let mut sample = SampleRun::planned(&[
        ("parser", &[]),
        ("ledger", &[]),
        ("report", &[]),
        ("docs", &[]),
        ("export", &["parser", "ledger"]),
        ("release", &["export", "docs"]),
        ("spare", &[]),
    ]);
    sample.start(&["parser", "ledger", "report", "docs"], Step::Build);
    for name in ["ledger", "report"] {
        let task = sample.id(name);
        sample.ends(task, Outcome::Passed, Facts::default());
    }
    sample.start(&["ledger"], Step::Validate);
    sample.start(&["report"], Step::Review);
    sample.costs("parser", 1_234_567);
    let now = sample.now();
    let (parser, ledger, docs) = (sample.id("parser"), sample.id("ledger"), sample.id("docs"));
    let screen = &mut sample.screen;
    screen.sight(parser, Step::Build, &tool("t1", "Task", "look for callers"), now);
    screen.sight(parser, Step::Build, &tool("t2", "Agent", "read the tests"), now);
    screen.sight(parser, Step::Build, &output("writing src/parser.rs\n\n"), now);
    screen.sight(ledger, Step::Validate, &output("test balance ... \u{1b}[32mok\u{1b}[0m"), now);
    screen.sight(docs, Step::Build, &Sight::Suspect { silent: Duration::from_secs(95) }, now);
    sample
}

#[test]
fn planning() {
    at_all_sizes("planning", &SampleRun::planning());
}

#[test]
fn four_workers_busy() {
    let mut sample = busy();
    sample.screen.move_by(MoveBy::Line(1), 10);
    at_all_sizes("busy", &sample);
}

#[test]
fn a_failure_with_its_tail_and_log() {
    let mut sample = busy();
    let ledger = sample.id("ledger");
    let log = "logs/validation_tests_20260101T120003Z_ledger_validate_7.1.log";
    let facts = Facts { exit: Some(101), log: Some(log.into()), ..Facts::default() };
    sample.ends(ledger, Outcome::Failed { why: "tests: 1 failed".into() }, facts);
    assert_eq!(sample.screen.wants_tail(), Some(log));
    let tail = ["---- balance ----", "left: 3", "right: 4", "test result: FAILED"];
    sample.screen.tail(log, tail.map(str::to_owned).to_vec());
    assert_eq!(sample.screen.wants_tail(), None);
    at_all_sizes("failure", &sample);
}

#[test]
fn waiting_for_a_persons_word() {
    let mut sample = SampleRun::planning();
    sample.ends(TaskId::ROOT, Outcome::Passed, Facts::default());
    sample.happens(vec![
        Event::TaskMoved { task: TaskId::ROOT, step: Step::ApprovePlan, round: 1 },
        Event::AttemptStarted { task: TaskId::ROOT, step: Step::ApprovePlan, lane: 0 },
    ]);
    at_all_sizes("approval", &sample);
}

#[test]
fn a_person_is_told_that_one_of_the_tasks_waits_for_them() {
    let mut sample = SampleRun::planned(&[("parser", &[]), ("ledger", &[])]);
    sample.start(&["ledger"], Step::Build);
    assert!(!sample.seen(80, 24).contains("WAITING FOR YOU"));
    sample.start(&["parser"], Step::AcceptTests);
    let seen = sample.seen(80, 24);
    assert!(seen.contains("WAITING FOR YOU to approve the changed tests"), "{seen}");
}

/// Both tasks meet the limit of the account they share, and what was asked has no price.
fn all_waiting() -> SampleRun {
    let mut sample =
        SampleRun::planned(&[("parser", &[]), ("ledger", &[]), ("export", &["parser"])]);
    sample.start(&["parser", "ledger"], Step::Build);
    let parser = sample.id("parser");
    let (id, _) = sample.attempt(parser);
    let bill = Bill { usd: Micros(20_000), unpriced: true, ..Bill::default() };
    sample.happens(vec![Event::Billed { id, task: parser, bill, total: None }]);
    let until = sample.now().plus_ms(28 * 60_000 + 59_000);
    let (account, why) = ("build".to_owned(), HoldWhy::Quota);
    for task in [parser, sample.id("ledger")] {
        sample.ends(task, Outcome::Quota { until }, Facts::default());
        let (account, step) = (account.clone(), Step::Build);
        sample.happens(vec![
            Event::AccountHeld {
                account: account.clone(),
                until: Some(until),
                why,
                text: String::new(),
                trips: 1,
                guess: false,
            },
            Event::WaitBegan { task, step, until, account, why, guess: false },
        ]);
    }
    sample
}

#[test]
fn everything_waits_for_an_account() {
    let mut sample = all_waiting();
    at_all_sizes("waiting", &sample);
    sample.screen.view = View::Tasks;
    assert_snapshot!("waiting_tasks_80x24", sample.seen(80, 24));
}

#[test]
fn while_somebody_works_nothing_is_said_to_wait_and_the_account_is_shown_all_the_same() {
    let mut sample = all_waiting();
    sample.happens(vec![Event::WaitEnded { task: sample.id("ledger") }]);
    sample.start(&["ledger"], Step::Validate);
    let seen = sample.seen(80, 24);
    assert!(!seen.contains("WAITING") && !seen.contains("nothing runs"), "{seen}");
    assert!(seen.contains("1 task running") && seen.contains("build has no quota until"), "{seen}");
}

#[test]
fn everything_done() {
    let mut sample = SampleRun::planned(&[("a", &[]), ("b", &["a"])]);
    sample.start(&["a"], Step::Merge);
    sample.close("a");
    sample.start(&["b"], Step::Merge);
    sample.close("b");
    sample.happens(vec![Event::TaskSettled { task: TaskId::ROOT, end: TaskEnd::Closed }]);
    at_all_sizes("done", &sample);
}

#[test]
fn failed_with_what_it_blocks() {
    let mut sample = SampleRun::planned(&[("a", &[]), ("b", &["a"])]);
    sample.start(&["a"], Step::Build);
    let (a, b) = (sample.id("a"), sample.id("b"));
    sample.ends(a, Outcome::Broke { why: "no answer".into() }, Facts::default());
    let why = Failure::Broke { step: Step::Build, why: "no answer".into() };
    sample.happens(vec![
        Event::TaskSettled { task: a, end: TaskEnd::Failed { why } },
        Event::TaskSettled { task: b, end: TaskEnd::Skipped { why: Skip::Blocked { by: a } } },
    ]);
    sample.screen.view = View::Tasks;
    assert_snapshot!("failed_tasks_80x24", sample.seen(80, 24));
}

#[test]
fn paused_help_and_pages() {
    let mut sample = busy();
    sample.halts(HaltWhy::Pause);
    assert_snapshot!("pausing_80x24", sample.seen(80, 24));
    sample.screen.seat = Seat::Onlooker;
    sample.screen.view = View::Help;
    assert_snapshot!("help_80x24", sample.seen(80, 24));
    let text: String = (1..=30).map(|n| format!("line {n}\n")).collect();
    sample.screen.view = View::Page(TextPage::log("parser: .autopilot/logs/x.log".into(), &text));
    assert_snapshot!("log_40x10", sample.seen(40, 10));
    let patch = "diff --git a/x b/x\n@@ -1 +1 @@\n-old\n+new\n";
    sample.screen.view = View::Page(TextPage::diff("parser: changed so far".into(), patch));
    assert_snapshot!("diff_40x10", sample.seen(40, 10));
}

#[test]
fn no_size_is_too_small_or_too_large() {
    let mut sample = busy();
    let failed = Outcome::Failed { why: "red".into() };
    let report = sample.id("report");
    sample.ends(report, failed, Facts { log: Some("logs/x.log".into()), ..Facts::default() });
    let page = View::Page(TextPage::log("l".into(), "a\nb\n"));
    for view in [View::Board, View::Tasks, View::Help, page] {
        sample.screen.view = view;
        for width in [1, 2, 3, 5, 8, 13, 21, 39, 60, 79, 100, 300] {
            for height in [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 15, 90] {
                sample.seen(width, height);
            }
        }
    }
}

#[test]
fn nothing_an_agent_prints_acts_on_the_terminal_and_no_secret_is_shown() {
    let mut sample = busy();
    let parser = sample.id("parser");
    let now = sample.now();
    let nasty = output("\u{1b}]0;owned\u{7}\u{9b}2J key=hunter2\r");
    sample.screen.sight(parser, Step::Build, &nasty, now);
    sample.screen.notice("hunter2\nsecond line", now);
    let seen = sample.seen(120, 40);
    assert!(!seen.contains("hunter2") && seen.contains("[secret]"), "{seen}");
    assert!(!seen.chars().any(|c| c.is_control() && c != '\n'), "{seen:?}");
    assert!(seen.contains("\\nsecond line"), "{seen}");
}

#[test]
fn of_ten_thousand_tasks_those_that_fit_are_drawn() {
    let names: Vec<String> = (0..10_000).map(|n| format!("task-{n:05}")).collect();
    let needs: Vec<Vec<&str>> = (0..10_000)
        .map(|n: usize| if n < 100 { Vec::new() } else { vec![names[n - 100].as_str()] })
        .collect();
    let tasks: Vec<(&str, &[&str])> =
        names.iter().zip(&needs).map(|(name, needs)| (name.as_str(), needs.as_slice())).collect();
    let mut sample = SampleRun::planned(&tasks);
    sample.start(&["task-00000", "task-00001", "task-00002", "task-00003"], Step::Build);
    assert_snapshot!("ten_thousand_80x24", sample.seen(80, 24));
    sample.screen.toggle(View::Tasks);
    sample.screen.move_by(MoveBy::Last, 10);
    assert_snapshot!("ten_thousand_tasks_80x24", sample.seen(80, 24));
}
