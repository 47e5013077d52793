//! Accounts that are used up, not logged in or not there: who waits, who goes on, what is spent.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use autopilot_core::event::{Event, HoldWhy};
use autopilot_core::id::Time;
use autopilot_testkit::scenario::{Story, play};

const HOUR_MS: u64 = 3_600_000;
/// Added to a time somebody named.
const SPREAD_MAX_MS: u64 = 1_000;

fn check(text: &str, board: &str) -> Story {
    let story = play(text).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(story.board, board, "{}", story.trace.join("\n"));
    story
}

fn story(text: &str) -> Story {
    play(text).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Holds in order: account, why, and how long.
fn holds(story: &Story) -> Vec<(String, HoldWhy, Option<u64>)> {
    let mut found = Vec::new();
    for record in &story.records {
        for event in &record.events {
            if let Event::AccountHeld { account, until, why, .. } = event {
                let ms = until.map(|until: Time| until.since_ms(record.at));
                found.push((account.clone(), *why, ms));
            }
        }
    }
    found
}

fn count(story: &Story, start: &str) -> usize {
    story.starts.split(' ').filter(|word| *word == start).count()
}

const ONE: &str = "limit lanes build one, lanes fix one, lanes review one, lanes uat_generate one";

#[test]
fn an_account_that_is_used_up_is_met_by_one_task_and_the_others_do_not_begin() {
    // Both want to build; a meets the limit before b is begun.
    let story = check(
        &format!("plan a; b\n {ONE}\n limit workers 1, broken 0, rounds 1\n a: build quota 2h"),
        "a done · b done — run done",
    );
    assert_eq!(count(&story, "a.build"), 2);
    assert_eq!(count(&story, "b.build"), 1);
    assert_eq!(holds(&story).len(), 1);
}

#[test]
fn what_runs_on_an_account_goes_on_when_it_is_held() {
    let story = check(
        &format!(
            "together a; b\n {ONE}\n a: build quota 2h\n b: build hangs\n look during b build"
        ),
        "a waiting at build · b running build — run goes on",
    );
    assert_eq!(count(&story, "b.build"), 1);
}

#[test]
fn steps_that_need_no_account_go_on_while_it_is_held() {
    let story = check(
        &format!("together a; b\n {ONE}\n a: build quota 2h\n look during b validate"),
        "a waiting at build · b running validate — run goes on",
    );
    assert!(story.state.tasks[1].spent.waited_ms >= 2 * HOUR_MS - 1);
}

#[test]
fn a_fallback_does_the_work_while_the_preferred_one_is_held() {
    let story = check(
        "task a\n limit lanes build one two, broken 0\n a: build quota 2h",
        "a done — run done",
    );
    assert!(story.starts.starts_with("a.build a.build@two a.validate"), "{}", story.starts);
    assert_eq!(story.state.tasks[1].spent.waited_ms, 0);
}

#[test]
fn a_task_with_an_agent_of_its_own_is_held_by_that_one_only() {
    let limits = "limit lanes build one, lanes fix one, agent own two";
    let story = check(
        &format!(
            "together a; b by own; c by own\n {limits}\n a: build quota 2h\n look during c validate"
        ),
        "a waiting at build · b running validate · c running validate — run goes on",
    );
    assert_eq!(story.state.tasks[2].spent.waited_ms + story.state.tasks[3].spent.waited_ms, 0);
    // And the other way round.
    let story = check(
        &format!("queue a by own; b\n {limits}\n a: build quota 2h"),
        "a done · b done — run done",
    );
    assert_eq!(holds(&story).iter().map(|hold| hold.0.as_str()).collect::<Vec<_>>(), ["two"]);
    let waited_ms = story.state.tasks[1].spent.waited_ms;
    assert!(waited_ms.abs_diff(2 * HOUR_MS) <= SPREAD_MAX_MS, "{waited_ms}");
    // What one of the two is refused, the other is not asked: it is the same account.
    let story = check(
        &format!("queue a by own; b by own\n {limits}\n a: build quota 2h"),
        "a done · b done — run done",
    );
    assert_eq!(count(&story, "b.build"), 1);
}

#[test]
fn a_model_of_its_own_is_another_model_of_the_same_account() {
    let limits = "limit lanes build one/big one/small";
    let story = check(
        &format!("task a model new\n {limits}\n a: build unknown-model"),
        "a done — run done",
    );
    assert!(story.starts.starts_with("a.build a.build@one/small"), "{}", story.starts);
    assert_eq!(holds(&story), [("one/new".to_owned(), HoldWhy::Model, None)]);
    // Whoever looks at it is not whom it names.
    let story = check(
        "task a by own\n limit agent own two, lanes review one\n a: review quota 1h",
        "a done — run done",
    );
    assert_eq!(holds(&story).iter().map(|hold| hold.0.as_str()).collect::<Vec<_>>(), ["one"]);
}

#[test]
fn after_the_hold_the_preferred_one_is_taken_again() {
    let story = check(
        "queue a; b\n limit lanes build one two, broken 0\n a: build quota 30s",
        "a done · b done — run done",
    );
    assert_eq!(count(&story, "a.build@two"), 1);
    assert_eq!(count(&story, "b.build"), 1);
    assert!(story.state.run.accounts.is_empty());
}

#[test]
fn when_all_are_held_the_first_that_comes_back_is_waited_for() {
    let story = check(
        "task a\n limit lanes build one two\n a: build quota 5h, build quota 1h",
        "a done — run done",
    );
    let waited_ms = story.state.tasks[1].spent.waited_ms;
    assert!(waited_ms.abs_diff(HOUR_MS) <= SPREAD_MAX_MS, "{waited_ms}");
    assert_eq!(count(&story, "a.build@two"), 2);
}

#[test]
fn another_model_of_a_used_up_account_is_no_way_out_but_of_an_unknown_one_it_is() {
    let lanes = "limit lanes build one/big one/small";
    let used_up = check(&format!("task a\n {lanes}\n a: build quota 1h"), "a done — run done");
    assert_eq!(used_up.starts.split(' ').take(2).collect::<Vec<_>>(), ["a.build", "a.build"]);
    let unknown = check(&format!("task a\n {lanes}\n a: build unknown-model"), "a done — run done");
    assert!(unknown.starts.starts_with("a.build a.build@one/small"), "{}", unknown.starts);
    assert_eq!(holds(&unknown), [("one/big".to_owned(), HoldWhy::Model, None)]);
}

#[test]
fn an_outage_is_waited_out_ever_longer_and_costs_no_task_a_try() {
    let down = ["build unreachable"; 8].join(", ");
    let story = check(
        &format!("plan a; b\n {ONE}\n limit workers 1, broken 0, interruptions 0\n a: {down}"),
        "a done · b done — run done",
    );
    let seconds: Vec<u64> = holds(&story).iter().map(|(_, _, ms)| ms.unwrap() / 1000).collect();
    assert_eq!(seconds, [30, 60, 120, 240, 480, 900, 900, 900]);
    assert_eq!(count(&story, "a.build"), 9);
    assert_eq!(count(&story, "b.build"), 1, "nobody else finds out for themselves");
}

#[test]
fn a_quota_without_a_time_is_asked_again_ever_later() {
    let empty = ["build empty"; 6].join(", ");
    let story = check(&format!("task a\n {ONE}\n a: {empty}"), "a done — run done");
    let seconds: Vec<u64> = holds(&story).iter().map(|(_, _, ms)| ms.unwrap() / 1000).collect();
    assert_eq!(seconds, [60, 120, 240, 480, 900, 900]);
}

#[test]
fn only_a_time_that_somebody_named_is_the_end_of_a_hold() {
    let guesses = |does: &str| {
        let story = story(&format!("task a\n {ONE}\n limit wait 4h\n a: {does}"));
        let events = story.records.iter().flat_map(|record| record.events.clone());
        let guess = |event| {
            if let Event::AccountHeld { guess, .. } | Event::WaitBegan { guess, .. } = event {
                return Some(guess);
            }
            None
        };
        events.filter_map(guess).collect::<Vec<bool>>()
    };
    assert_eq!(guesses("build quota 2h"), [false, false]);
    assert_eq!(guesses("build empty"), [true, true]);
    assert_eq!(guesses("build unreachable"), [true, true]);
    // Named, and over when it was heard: what follows is not what was named.
    assert_eq!(guesses("build quota 0s, build quota 0s")[2..], [true, true]);
}

#[test]
fn a_reset_time_that_is_over_does_not_make_the_run_spin() {
    let story = check(
        &format!(
            "task a\n {ONE}\n limit wait 1h\n a: build quota 0s, build quota 0s, build quota 0s"
        ),
        "a done — run done",
    );
    let held: Vec<u64> = holds(&story).iter().map(|(_, _, ms)| ms.unwrap()).collect();
    assert!(held[0] >= 1_000, "{held:?}");
    assert_eq!(held[1..], [60_000, 120_000]);
}

#[test]
fn a_success_makes_an_account_trusted_again() {
    let story = check(
        &format!(
            "queue a; b\n {ONE}\n a: build unreachable, build unreachable\n b: build unreachable"
        ),
        "a done · b done — run done",
    );
    let seconds: Vec<u64> = holds(&story).iter().map(|(_, _, ms)| ms.unwrap() / 1000).collect();
    assert_eq!(seconds, [30, 60, 30]);
}

#[test]
fn after_a_hold_one_attempt_finds_out_and_the_rest_wait_for_it() {
    let story = check(
        &format!(
            "plan a; b; c\n {ONE}\n a: build unreachable\n b: build unreachable\n \
             c: build unreachable\n look during a validate"
        ),
        "a running validate · b running build · c running build — run goes on",
    );
    // Three met it together, and that is one trip; then one probes, and the rest follow it.
    assert_eq!(holds(&story).len(), 1);
    let order: Vec<&str> = story.starts.split(' ').skip(2).collect();
    assert_eq!(
        order,
        ["a.build", "b.build", "c.build", "a.build", "a.validate", "b.build", "c.build"]
    );
}

#[test]
fn not_logged_in_is_tried_once_more_and_then_a_person_is_needed() {
    let text = format!("task a\n {ONE}\n limit broken 0\n a: build refused, build refused");
    let rested = story(&text);
    assert_eq!(
        rested.board,
        "a at build — run rests: one is unavailable (not logged in): it is not there; \
         log in to that agent, then run `autopilot resume`"
    );
    let held: Vec<Option<u64>> = holds(&rested).iter().map(|(_, _, ms)| *ms).collect();
    assert_eq!(held, [Some(20_000), None]);
    check(&format!("{text}, build ok\n resume"), "a done — run done");
}

#[test]
fn somebody_who_is_not_logged_in_does_not_stop_the_others() {
    check(
        "together a; b\n limit lanes build one, lanes review two, retries build 3\n \
         a: review refused\n b: build broke, build broke, build broke\n look during b validate",
        "a waiting at review · b running validate (3 retries) — run goes on",
    );
}

#[test]
fn an_unknown_model_rests_the_run_at_once() {
    let rested = story(&format!("task a\n {ONE}\n a: build unknown-model"));
    assert!(rested.board.starts_with("a at build — run rests: one is unavailable (unknown model)"));
    assert!(rested.board.contains("autopilot resume"), "{}", rested.board);
}

#[test]
fn a_run_rests_only_when_what_else_there_is_has_been_done() {
    let story = story(
        "plan a; b\n limit lanes build one, lanes review two\n a: build unknown-model\n \
         b: build hangs",
    );
    // b was at work when a found nobody; its step is done, and then nobody is left.
    assert!(
        story.board.contains("run rests: one is unavailable (unknown model)"),
        "{}",
        story.board
    );
    assert_eq!(count(&story, "b.build"), 1);
}

#[test]
fn a_resume_tries_everybody_at_once_and_gives_back_what_was_not_waited() {
    let text = format!("task a\n {ONE}\n a: build quota 5h");
    let story =
        check(&format!("{text}, build ok\n stop during build; resume"), "a done — run done");
    assert_eq!(story.state.tasks[1].spent.waited_ms, 0);
}

#[test]
fn a_crash_while_an_account_is_held_changes_nothing_of_it() {
    let story = check(
        &format!("together a; b\n {ONE}\n a: build quota 2h\n crash during b validate"),
        "a done · b done (1 interruption) — run done",
    );
    assert_eq!(holds(&story).len(), 1);
    assert_eq!(count(&story, "a.build"), 2);
    let waited_ms = story.state.tasks[1].spent.waited_ms;
    assert!(waited_ms >= 2 * HOUR_MS, "{waited_ms}");
}

#[test]
fn as_many_wait_as_there_are_workers() {
    let story = check(
        &format!(
            "plan a; b; c; d\n {ONE}\n limit workers 2\n a: build quota 2h\n b: build quota 2h"
        ),
        "a done · b done · c done · d done — run done",
    );
    let waits = story.records.iter().flat_map(|record| &record.events);
    let waits = waits.filter(|event| matches!(event, Event::WaitBegan { .. })).count();
    assert_eq!(waits, 2);
}

#[test]
fn what_one_task_has_waited_for_long_enough_the_others_do_not_begin_to_wait_for() {
    let rested = story(&format!(
        "plan a; b\n {ONE}\n limit workers 1, wait 1h\n a: build quota 30m, build quota 50m"
    ));
    assert!(rested.board.contains("run rests: the quota resets"), "{}", rested.board);
    assert_eq!(count(&rested, "b.build"), 0);
}
