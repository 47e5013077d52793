//! The time that a run has worked, and its limit.

use super::{check, story};
use autopilot_core::decide::decide;
use autopilot_core::input::{Ask, Input};

#[test]
fn the_time_limit_rests_the_run() {
    check(
        "task a\n limit wall 10m\n a: build hangs",
        "a at build — run rests: the run has reached its time limit",
    );
}

#[test]
fn time_between_a_stop_and_a_resume_does_not_count() {
    let story = check("task a\n limit wall 70s\n stop during build; resume", "a done — run done");
    assert!(story.state.run.active_ms < 70_000, "{}", story.state.run.active_ms);
}

#[test]
fn time_worked_after_a_stop_counts_until_the_step_is_over() {
    let text = "together a; b\n limit wall 10m\n a: build ok\n b: build hangs";
    let rests = "a at validate · b at build — run rests: the run has reached its time limit";
    for halt in ["stop", "pause"] {
        let story = check(&format!("{text}\n {halt} during a build"), rests);
        let worked_ms = story.state.run.active_ms;
        assert!((600_000..720_000).contains(&worked_ms), "{halt}: {worked_ms}");
    }
    // What outlives a stop that ends everything is not worked on.
    let story = check("task a\n stop now during merge; resume", "a done — run done");
    let all_ms = story.state.at.since_ms(story.state.run.started_at);
    assert!(all_ms >= story.state.run.active_ms + 60_000, "{}", story.state.run.active_ms);
}

#[test]
fn time_in_which_all_wait_does_not_count() {
    let text = "task a\n limit wall 10m";
    for away in ["build quota 2h", "build unreachable, build unreachable, build unreachable"] {
        let story = check(&format!("{text}\n a: {away}"), "a done — run done");
        let all_ms = story.state.at.since_ms(story.state.run.started_at);
        assert!(all_ms > story.state.run.active_ms + 60_000, "{away}");
        assert!(story.state.run.active_ms < 600_000, "{}", story.state.run.active_ms);
    }
}

#[test]
fn time_in_which_one_waits_and_another_works_counts() {
    check(
        "together a; b\n limit wall 10m\n a: build quota 2h\n b: build hangs",
        "a waiting at build · b at build — run rests: the run has reached its time limit",
    );
}

#[test]
fn time_in_which_only_a_person_is_asked_does_not_count() {
    let mut state = story("plan a\n with plan-gate").state;
    assert!(state.gate().is_some());
    let (worked_ms, an_hour) = (state.run.active_ms, state.at.plus_ms(3_600_000));
    let mut limits = state.run.limits.clone();
    limits.rounds_max += 1;
    let record = decide(&mut state, Input::Asked(Ask::Limit(Box::new(limits))), an_hour);
    assert!(record.unwrap().is_some(), "the same process hears of something else");
    assert_eq!(state.run.active_ms, worked_ms);
}
