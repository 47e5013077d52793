//! Faults of the machine or of Autopilot itself: no task pays for them, and the run rests only when
//! trying again does not help.

use super::{check, story};
use autopilot_core::event::{Event, THIS_MACHINE};
use autopilot_testkit::scenario::Story;

/// The pauses of the machine in seconds; none is a pause that only a person ends.
fn pauses(story: &Story) -> Vec<Option<u64>> {
    let mut found = Vec::new();
    for record in &story.records {
        for event in &record.events {
            if let Event::AccountHeld { account, until, .. } = event {
                assert_eq!(account, THIS_MACHINE);
                found.push(until.map(|until| until.since_ms(record.at) / 1000));
            }
        }
    }
    found
}

fn count(story: &Story, start: &str) -> usize {
    story.starts.split(' ').filter(|word| *word == start).count()
}

/// Limits under which anything that counted against the task would fail it.
const NOTHING_TO_SPEND: &str = "limit broken 0, rounds 1, retries build 0, retries merge 0";

#[test]
fn a_fault_of_the_machine_spends_nothing_of_the_task_at_any_step() {
    for step in ["build", "validate", "review", "uat_generate", "uat", "merge"] {
        let story = check(
            &format!("task a\n {NOTHING_TO_SPEND}\n a: {step} hindered, {step} hindered"),
            "a done — run done",
        );
        assert_eq!(pauses(&story), [Some(1), Some(2)], "{step}");
        assert_eq!(count(&story, &format!("a.{step}")), 3, "{step}");
        assert_eq!(story.state.tasks[1].spent.hindered, 2, "{step}");
        assert!(story.state.run.accounts.is_empty(), "{step}");
    }
}

#[test]
fn what_does_not_pass_rests_the_run_and_goes_on_when_it_is_resumed() {
    let faults = ["merge hindered"; 7].join(", ");
    let text = format!("plan a; b\n {NOTHING_TO_SPEND}\n a: {faults}");
    let rested = story(&text);
    let board = &rested.board;
    assert!(board.starts_with("a at merge · b"), "{board}");
    assert!(board.contains("run rests: the disk is full"), "{board}");
    assert!(board.contains("make room"), "{board}");
    let seconds = [1, 2, 4, 8, 16, 32].map(Some);
    assert_eq!(pauses(&rested), [&seconds[..], &[None]].concat());
    check(&format!("{text}\n resume"), "a done · b done — run done");
}

#[test]
fn nothing_is_begun_on_a_machine_that_is_held_and_what_runs_goes_on() {
    let story = check(
        "together a; b; c\n limit workers 2\n a: build hindered, merge hindered",
        "a done · b done · c done — run done",
    );
    let mut is_held = false;
    let mut held_while_at_work = 0;
    for record in &story.records {
        for event in &record.events {
            if let Event::AccountHeld { .. } = event {
                is_held = true;
                held_while_at_work += 1;
            }
            is_held &= !matches!(event, Event::AccountFreed { .. });
            let begins = matches!(event, Event::AttemptStarted { .. });
            assert!(!(begins && is_held), "{}", story.trace.join("\n"));
        }
    }
    assert_eq!(held_while_at_work, 2);
    assert_eq!(count(&story, "b.build"), 1, "what was at work was not ended");
}

#[test]
fn other_kinds_of_faults_in_between_are_counted_on() {
    // One that the machine has, another that git has: it is the same machine.
    let faults = ["build hindered", "build git-fails"].repeat(4)[1..].join(", ");
    let rested = story(&format!("task a\n a: {faults}"));
    assert!(rested.board.contains("run rests: "), "{}", rested.board);
    assert_eq!(pauses(&rested).len(), 7);
}

#[test]
fn a_task_that_is_hindered_without_end_rests_the_run_and_does_not_fail() {
    // Each time something else shows that the machine works, so that it is not seven in a row.
    let text = "together a; b\n limit workers 2, interruptions 2\n \
                a: build hindered, build hindered, build hindered";
    let rested = story(text);
    assert!(rested.board.contains("run rests: the disk is full"), "{}", rested.board);
    assert!(!rested.board.contains("failed"), "{}", rested.board);
    assert_eq!(pauses(&rested).last(), Some(&None));
    check(&format!("{text}\n resume"), "a done · b done — run done");
}

#[test]
fn an_agent_that_is_not_installed_is_tried_once_more_and_then_a_person_is_needed() {
    let text =
        "task a\n limit broken 0, lanes build one\n a: build not-installed, build not-installed";
    let rested = story(text);
    assert_eq!(
        rested.board,
        "a at build — run rests: one is unavailable (not installed): it is not there; \
         install that agent or set its `executable`, then run `autopilot resume`"
    );
    check(&format!("{text}\n resume"), "a done — run done");
}

#[test]
fn a_crash_while_the_machine_is_held_changes_nothing() {
    check(
        "together a; b\n limit workers 2, broken 0\n a: merge hindered\n crash during b merge",
        "a done · b done — run done",
    );
}

#[test]
fn a_merge_that_broke_is_tried_again_by_a_retry_and_nothing_is_built_again() {
    let text = "plan a; b after a\n limit retries merge 0\n a: merge broke";
    assert!(story(text).board.starts_with("a failed: merge broke"), "{}", story(text).board);
    let story = check(&format!("{text}\n retry a"), "a done · b done — run done");
    assert_eq!((count(&story, "a.merge"), count(&story, "a.build")), (2, 1), "{}", story.starts);
    assert_eq!((count(&story, "a.fix"), count(&story, "a.validate")), (0, 1), "{}", story.starts);
}
