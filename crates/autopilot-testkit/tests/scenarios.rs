//! Scenarios: what a run makes of a story, as the specification tells it.
#![allow(clippy::panic, reason = "a story that can't be played fails its test")]

use autopilot_core::event::{Event, Failure, TaskEnd};
use autopilot_core::pipeline::Switch;
use autopilot_testkit::scenario::{Story, play};

#[path = "scenarios/coverage.rs"]
mod coverage;
#[path = "scenarios/goal.rs"]
mod goal;
#[path = "scenarios/guard.rs"]
mod guard;
#[path = "scenarios/holdout.rs"]
mod holdout;
#[path = "scenarios/lost.rs"]
mod lost;
#[path = "scenarios/machine.rs"]
mod machine;
#[path = "scenarios/proof.rs"]
mod proof;
#[path = "scenarios/refusal.rs"]
mod refusal;
#[path = "scenarios/secret.rs"]
mod secret;
#[path = "scenarios/session.rs"]
mod session;
#[path = "scenarios/time.rs"]
mod time;
#[path = "scenarios/turn.rs"]
mod turn;
#[path = "scenarios/whole_review.rs"]
mod whole_review;
#[path = "scenarios/yardstick.rs"]
mod yardstick;

fn story(text: &str) -> Story {
    match play(text) {
        Ok(story) => story,
        Err(what) => panic!("{what}"),
    }
}

#[track_caller]
fn check(text: &str, board: &str) -> Story {
    let story = story(text);
    assert_eq!(story.board, board, "\n{}\n{}", story.starts, story.trace.join("\n"));
    story
}

const ROUND_1: &str = "a.build a.validate a.review a.uat_generate a.uat";
const ROUND_2: &str = "a.fix a.validate a.review a.uat_generate a.uat";

// One task, from the first build to the merge.

#[test]
fn a_small_task_converges_to_done() {
    let story = check("task a", "a done — run done");
    assert_eq!(story.starts, format!("{ROUND_1} a.merge"));
    assert_eq!(story.merged, "a1");
}

#[test]
fn failing_tests_are_reviewed_and_then_fixed() {
    let story = check(
        "task a
         a: build ok, validate fails, review objects, uat_generate ok, uat ok, fix ok",
        "a done (2 rounds) — run done",
    );
    assert_eq!(story.starts, format!("{ROUND_1} {ROUND_2} a.merge"));
    assert_eq!(story.merged, "a2");
}

#[test]
fn a_verdict_against_failing_tests_is_overruled() {
    check(
        "task a
         a: validate fails, review approves",
        "a done (2 rounds, overruled) — run done",
    );
}

#[test]
fn a_verdict_against_a_failing_acceptance_run_is_overruled() {
    check(
        "task a
         a: review approves, uat fails, fix ok",
        "a done (2 rounds, overruled) — run done",
    );
}

#[test]
fn passing_tests_with_a_failing_acceptance_run_loop_until_the_rounds_are_used_up() {
    check(
        "task a
         limit rounds 2
         a: uat fails, fix ok, uat fails",
        "a failed: did not converge in 2 iterations (2 rounds, overruled) — run failed: 1 task failed",
    );
}

#[test]
fn a_request_for_changes_is_another_round() {
    check("task a\n a: review objects, fix ok", "a done (2 rounds) — run done");
}

#[test]
fn a_review_without_a_verdict_has_not_approved() {
    check("task a\n a: review mute, fix ok", "a done (2 rounds) — run done");
}

#[test]
fn acceptance_cases_are_made_and_run_after_the_review() {
    let story = check("task a", "a done — run done");
    let at = |step: &str| story.starts.find(step).unwrap();
    assert!(at("a.review") < at("a.uat_generate") && at("a.uat_generate") < at("a.uat "));
}

#[test]
fn an_acceptance_run_switched_off_is_recorded_and_its_cases_are_made_all_the_same() {
    let story = check("task a\n without uat", "a done — run done");
    assert_eq!(story.starts, "a.build a.validate a.review a.uat_generate a.merge");
    assert!(story.state.task(autopilot_core::id::TaskId(1)).skipped.len() == 1);
}

#[test]
fn findings_without_evidence_do_not_block_under_the_evidence_gate() {
    for cited in [
        "blocker nothing",
        "blocker criterion:3",
        "blocker command:tests",
        "blocker src/a.rs:2",
        "blocker src/b.rs:1",
        "minor criterion:1",
    ] {
        let text = format!("task a\n limit review evidence\n a: review objects citing {cited}");
        check(&text, "a done — run done");
    }
}

#[test]
fn an_issue_that_cites_evidence_blocks_under_the_evidence_gate() {
    for cited in ["major criterion:2", "blocker criterion:1", "major src/a.rs:1"] {
        let text =
            format!("task a\n limit review evidence\n a: review objects citing {cited}, fix ok");
        check(&text, "a done (2 rounds) — run done");
    }
    let story = check(
        "task a\n limit review evidence\n a: validate fails, review objects citing major command:tests",
        "a done (2 rounds) — run done",
    );
    let reasons = story.records.iter().flat_map(|record| &record.events);
    let reviewed = reasons.filter(
        |event| matches!(event, Event::AttemptEnded { facts, .. } if facts.blocking() == 1),
    );
    assert_eq!(reviewed.count(), 1, "a failing check is evidence");
}

#[test]
fn an_advisory_review_blocks_nothing_and_failing_tests_still_do() {
    check(
        "task a\n limit review advisory\n a: review objects citing blocker criterion:1",
        "a done — run done",
    );
    check(
        "task a\n limit review advisory\n a: validate fails, fix ok",
        "a done (2 rounds, overruled) — run done",
    );
}

#[test]
fn review_switched_off_by_a_person_is_recorded() {
    let story = check("task a\n waive review during build", "a done (review left out) — run done");
    assert!(!story.starts.contains("review"));
    assert_eq!(story.state.run.reviews_waived_by, ["a person"]);
    assert!(!story.state.run.switches.contains(&Switch::Review));
}

#[test]
fn a_review_wanted_again_is_asked_for_in_the_next_round() {
    let story = check(
        "task a
         a: build ok, validate fails, uat_generate ok, uat ok, fix ok
         waive review during build; want review during uat",
        "a done (2 rounds) — run done",
    );
    assert_eq!(story.starts.matches("review").count(), 1);
}

#[test]
fn a_merge_conflict_is_a_failed_round_that_a_fix_repairs() {
    let story = check("task a\n a: merge conflicts, fix ok", "a done (2 rounds) — run done");
    assert_eq!(story.merged, "a2");
}

// Each outcome spends its own limit.

#[test]
fn a_reviewer_that_breaks_is_tried_once_more_and_then_the_task_fails() {
    check("task a\n a: review broke", "a done (1 retry) — run done");
    check(
        "task a\n a: review broke, review broke",
        "a failed: review broke: exit status 1 (2 retries) — run failed: 1 task failed",
    );
}

#[test]
fn a_command_that_hangs_is_ended_and_tried_again() {
    check("task a\n a: validate hangs", "a done (1 retry) — run done");
    check(
        "task a\n a: validate hangs, validate hangs",
        "a failed: validate broke: silent and idle: killed (2 retries) — run failed: 1 task failed",
    );
}

#[test]
fn broken_tries_of_all_steps_have_a_limit_of_their_own() {
    check(
        "task a\n limit broken 2\n a: build broke, build ok, validate broke, validate ok, review broke",
        "a failed: review broke: exit status 1 (3 retries) — run failed: 1 task failed",
    );
}

#[test]
fn broken_tries_of_a_step_are_forgotten_in_the_next_round() {
    check(
        "task a\n a: build ok, validate broke, validate fails, fix ok, validate broke, validate ok",
        "a done (2 rounds, 2 retries, overruled) — run done",
    );
}

#[test]
fn a_lost_build_spends_no_round_and_no_retry() {
    check(
        "task a\n limit rounds 1, broken 0, retries build 0\n crash during build",
        "a done (1 interruption) — run done",
    );
}

#[test]
fn a_lost_worker_spends_an_interruption() {
    check("task a\n limit broken 0\n a: validate lost", "a done (1 interruption) — run done");
}

#[test]
fn more_interruptions_than_allowed_fail_the_task() {
    check(
        "task a\n limit interruptions 1\n crash during build; crash during build",
        "a failed: interrupted 2 times (2 interruptions) — run failed: 1 task failed",
    );
    check(
        "task a\n limit interruptions 2\n crash during build; crash during build",
        "a done (2 interruptions) — run done",
    );
}

#[test]
fn rounds_are_as_many_as_allowed_and_not_one_more() {
    check(
        "task a\n limit rounds 3\n a: uat fails, fix ok, uat fails, fix ok, uat ok",
        "a done (3 rounds, overruled) — run done",
    );
    check(
        "task a\n limit rounds 2\n a: uat fails, fix ok, uat fails",
        "a failed: did not converge in 2 iterations (2 rounds, overruled) — run failed: 1 task failed",
    );
}

#[test]
fn quota_waits_and_goes_on_and_spends_nothing_else() {
    let story = check(
        "task a\n limit broken 0, rounds 1, interruptions 0\n a: build quota 2h",
        "a done — run done",
    );
    let waited_ms = story.state.tasks[1].spent.waited_ms;
    let spread = waited_ms - 2 * 3_600_000;
    assert!(spread <= 1_000, "{spread}");
}

#[test]
fn while_quota_is_awaited_the_task_waits() {
    check(
        "together a; b\n a: build quota 2h\n look during b merge",
        "a waiting at build · b running merge — run goes on",
    );
}

#[test]
fn quota_longer_than_allowed_rests_the_run_and_a_resume_tries_again() {
    let text = "task a\n limit wait 1h\n a: build quota 2h";
    let rested = story(text);
    assert!(
        rested.board.starts_with("a at build — run rests: the quota resets"),
        "{}",
        rested.board
    );
    check(&format!("{text}, build ok\n resume"), "a done — run done");
}

#[test]
fn waits_for_quota_add_up() {
    let rested = story("task a\n limit wait 3h\n a: build quota 2h, build quota 2h");
    assert!(rested.board.starts_with("a at build — run rests: the quota"), "{}", rested.board);
}

// Money and time.

#[test]
fn a_bill_said_twice_counts_once_and_the_largest_counts() {
    check("task a\n a: build ok $1 $2 $2 $1", "a done ($2.00) — run done");
}

#[test]
fn a_bill_of_a_dead_attempt_counts() {
    check(
        "task a\n a: build ok $1\n crash during build; late a build $3 during validate",
        "a done (1 interruption, $4.00) — run done",
    );
}

#[test]
fn money_survives_a_crash() {
    check("task a\n a: build ok $2\n crash during merge", "a done ($2.00) — run done");
}

#[test]
fn who_told_no_cost_before_a_crash_is_charged_by_its_time_and_at_most_what_it_was_given() {
    check(
        "task a\n a: build ok given $5\n crash during build",
        "a done (1 interruption, about $0.10) — run done",
    );
    check(
        "task a\n a: build ok given $0.01\n crash during build",
        "a done (1 interruption, about $0.01) — run done",
    );
    // A figure that was told counts, and who has ended owes what it told.
    check(
        "task a\n a: build ok given $5 $1\n crash during build",
        "a done (1 interruption, $2.00) — run done",
    );
    check(
        "task a\n a: build ok given $5 $1\n crash during validate",
        "a done (1 interruption, $1.00) — run done",
    );
}

#[test]
fn money_that_may_be_gone_after_a_crash_is_not_given_again() {
    let story = check(
        "task a\n limit usd 0.01\n a: build ok given $0.01\n crash during build",
        "a at build (1 interruption, about $0.01) — run rests: the run has spent $0.00 and an estimated \
         $0.01 of its limit of $0.01",
    );
    assert_eq!(story.starts, "a.build");
    let story = check(
        "plan a; b\n limit usd per task 0.01\n a: build ok given $0.01\n crash during a build",
        "a failed: task a has spent $0.00 and an estimated $0.01 of its limit of $0.01 (1 interruption, \
         about $0.01) · b done (1 interruption) — run failed: 1 task failed",
    );
    assert!(!story.starts.contains("a.validate"), "{}", story.starts);
}

#[test]
fn money_that_is_only_reserved_uses_up_no_limit() {
    let story = check(
        "task a\n limit usd 5\n a: build ok given $5\n crash during build",
        "a done (1 interruption, about $0.10) — run done",
    );
    assert!(story.starts.starts_with("a.build a.build"), "{}", story.starts);
}

#[test]
fn who_was_told_to_end_is_charged_when_its_process_dies_before_it_tells() {
    check(
        "task a\n a: build ok given $5\n stop now during build; resume",
        "a done (about $0.08) — run done",
    );
}

#[test]
fn money_gone_ends_what_runs_and_spends_nothing_else() {
    let story = check(
        "task a\n limit usd 2\n a: build ok $1 $2",
        "a at build ($2.00) — run rests: the run has spent $2.00 of its limit of $2.00",
    );
    assert_eq!(story.starts, "a.build");
}

#[test]
fn money_gone_before_dispatch_starts_nothing() {
    let story = check(
        "task a\n limit usd 5\n a: build ok $2\n set usd 1 during build",
        "a at validate ($2.00) — run rests: the run has spent $2.00 of its limit of $1.00",
    );
    assert_eq!(story.starts, "a.build");
}

#[test]
fn a_resume_without_more_money_starts_nothing() {
    let story = check(
        "task a\n limit usd 2\n a: build ok $2\n resume",
        "a at build ($2.00) — run rests: the run has spent $2.00 of its limit of $2.00",
    );
    assert_eq!(story.starts, "a.build");
}

#[test]
fn a_higher_limit_and_a_resume_go_on() {
    check(
        "task a\n limit usd 2\n a: build ok $2\n set usd 20; resume",
        "a done ($4.00) — run done",
    );
}

#[test]
fn a_task_without_money_ends_alone() {
    let story = check(
        "plan a; b; c after a\n limit usd per task 2\n a: build ok $1 $2\n b: build ok $1",
        "a failed: task a has spent $2.00 of its limit of $2.00 ($2.00) · b done ($1.00) · c blocked by a — run failed: 1 task failed",
    );
    assert_eq!(story.starts.matches("b.build").count(), 1, "{}", story.starts);
    assert_eq!(story.starts.matches("a.").count(), 1, "{}", story.starts);
}

#[test]
fn a_retry_without_more_money_starts_nothing() {
    let story = check(
        "task a\n limit usd per task 2\n a: build ok $2\n retry a; resume",
        "a failed: task a has spent $2.00 of its limit of $2.00 ($2.00) — run failed: 1 task failed",
    );
    assert_eq!(story.starts, "a.build");
    // It is not even opened: that would forget the round it has used.
    check(
        "task a\n limit usd per task 2\n a: review objects, fix ok $2\n retry a; resume",
        "a failed: task a has spent $2.00 of its limit of $2.00 (2 rounds, $2.00) — run failed: 1 task failed",
    );
}

#[test]
fn a_retry_with_more_money_goes_on() {
    check(
        "task a\n limit usd per task 2\n a: build ok $2\n set usd per task 20; retry a; resume",
        "a done ($4.00) — run done",
    );
}

#[test]
fn what_is_owed_late_counts_for_the_limit_of_the_task() {
    check(
        "task a\n limit usd per task 3\n a: build ok $1\n crash during build; late a build $3 during validate",
        "a failed: task a has spent $4.00 of its limit of $3.00 (1 interruption, $4.00) — run failed: 1 task failed",
    );
}

#[test]
fn a_lower_limit_ends_who_has_spent_more_and_no_merge() {
    let text = "together a; b\n limit usd per task 5\n a: build ok $2";
    check(
        &format!("{text}\n set usd per task 1 during a validate"),
        "a failed: task a has spent $2.00 of its limit of $1.00 ($2.00) · b done — run failed: 1 task failed",
    );
    check(
        &format!("{text}\n set usd per task 1 during a merge"),
        "a done ($2.00) · b done — run done",
    );
}

// Crashes and late words.

#[test]
fn a_crash_before_the_merge_merges_once() {
    let story = check("task a\n crash during merge", "a done — run done");
    assert_eq!(story.merged, "a1");
    assert_eq!(story.starts.matches("merge").count(), 1, "it goes on under its own id");
}

#[test]
fn a_crash_between_the_merge_and_its_word_merges_once() {
    let story = check("task a\n crash after merge; crash after merge", "a done — run done");
    assert_eq!(story.merged, "a1");
}

#[test]
fn a_crash_between_the_push_and_its_word_pushes_once() {
    check("task a\n with push\n crash after push", "a done — run done");
}

#[test]
fn a_late_word_from_a_dead_attempt_moves_nothing() {
    let story = check(
        "task a\n crash during build; late a build ok during build; late a build broke during validate",
        "a done (1 interruption) — run done",
    );
    assert_eq!(story.starts, format!("a.build {ROUND_1} a.merge"));
}

#[test]
fn a_crash_in_every_step_changes_nothing_in_what_is_made() {
    for step in ["build", "validate", "review", "uat_generate", "uat", "merge"] {
        for when in ["during", "after"] {
            let story = story(&format!("task a\n crash {when} {step}"));
            assert_eq!(story.merged, "a1", "{when} {step}");
            assert!(story.board.ends_with("run done"), "{}", story.board);
        }
    }
}

// Stop, pause, resume.

#[test]
fn stop_waits_for_the_step_boundary() {
    let story = check("task a\n stop during build", "a at validate — run rests: stopped");
    assert_eq!(story.starts, "a.build");
}

#[test]
fn a_stopped_run_goes_on_where_it_stopped() {
    let story = check("task a\n stop during build; resume", "a done — run done");
    assert_eq!(story.starts, format!("{ROUND_1} a.merge"));
}

#[test]
fn pause_rests_at_the_step_boundary_and_resume_goes_on() {
    check("task a\n pause during review", "a at uat_generate — run rests: paused");
    check("task a\n pause during review; resume", "a done — run done");
}

#[test]
fn stop_now_ends_what_runs_and_spends_nothing() {
    check("task a\n stop now during build", "a at build — run rests: stopped");
    let story = check(
        "task a\n limit rounds 1, broken 0, interruptions 0\n stop now during build; resume",
        "a done — run done",
    );
    assert_eq!(story.starts, format!("a.build {ROUND_1} a.merge"));
}

#[test]
fn a_second_stop_is_more_urgent_than_the_first() {
    check("task a\n stop during build; stop now during build", "a at build — run rests: stopped");
}

#[test]
fn stop_now_during_a_merge_leaves_it_wanted_under_its_own_id() {
    let story = check("task a\n stop now during merge; resume", "a done — run done");
    assert_eq!(story.starts.matches("merge").count(), 1);
    assert_eq!(story.merged, "a1");
}

#[test]
fn a_resume_right_after_stop_now_waits_until_the_last_executor_is_gone() {
    check("task a\n stop now during build; resume during build", "a done — run done");
    check("task a\n stop now during merge; resume during merge", "a done — run done");
}

#[test]
fn a_crash_while_stopping_leaves_the_run_stopped() {
    check(
        "task a\n stop during build; crash during build",
        "a at build (1 interruption) — run rests: stopped",
    );
}

// The base, the push.

#[test]
fn a_red_baseline_fails_before_any_build() {
    let story = check(
        "task a\n with baseline\n run: preflight fails",
        "a open — run failed: preflight failed: preflight said no",
    );
    assert_eq!(story.starts, "run.preflight");
}

#[test]
fn a_command_that_cannot_be_run_ends_the_run_at_once_and_may_be_tried_again() {
    let story = check(
        "task a\n with baseline\n run: preflight misconfigured",
        "a open — run failed: preflight can't be done as configured: no such command",
    );
    assert_eq!(story.starts, "run.preflight");
    check(
        "task a\n with baseline\n run: preflight misconfigured, preflight ok\n retry run",
        "a done — run done",
    );
    check(
        "goal a\n with baseline\n run: preflight misconfigured",
        " — run failed: preflight can't be done as configured: no such command",
    );
}

#[test]
fn a_review_may_be_spared_after_failing_tests_and_never_after_passing_ones() {
    let story = check(
        "task a
         with spare-review
         a: build ok, validate fails, fix ok",
        "a done (2 rounds) — run done",
    );
    let red = "a.build a.validate a.uat_generate a.uat";
    assert_eq!(story.starts, format!("{red} {ROUND_2} a.merge"));
    let skipped = |event: &&Event| matches!(event, Event::StageSkipped { why, .. } if why.contains("review_on_red"));
    let events = story.records.iter().flat_map(|record| &record.events);
    assert_eq!(events.filter(skipped).count(), 1, "and it is on the record");
}

#[test]
fn cases_that_nothing_runs_may_be_spared_for_a_task_and_for_the_whole() {
    let story = check("task a\n with spare-cases\n without uat", "a done — run done");
    assert_eq!(story.starts, "a.build a.validate a.review a.merge");
    let story = check("task a\n with spare-cases", "a done — run done");
    assert_eq!(story.starts, format!("{ROUND_1} a.merge"), "a command runs them here");
    let story = check("plan a\n with spare-cases\n without uat", "a done — run done");
    assert!(!story.starts.contains("uat_generate"), "{}", story.starts);
}

#[test]
fn a_retry_of_the_run_proves_the_base_again() {
    let story = check(
        "task a\n with baseline\n run: preflight fails, preflight ok\n retry run",
        "a done — run done",
    );
    assert!(story.starts.starts_with("run.preflight run.preflight a.build"), "{}", story.starts);
}

#[test]
fn a_push_that_is_refused_fails_the_run_over_finished_work() {
    let story = check(
        "task a\n with push\n run: push fails",
        "a done — run failed: push failed: push said no",
    );
    let Some(TaskEnd::Failed { why }) = story.state.end() else {
        panic!("{:?}", story.state.end())
    };
    assert!(why.is_push() && !why.is_no_convergence());
    assert_eq!(story.merged, "a1");
}

#[test]
fn a_push_that_breaks_is_tried_twice_more() {
    check("task a\n with push\n run: push broke, push broke", "a done — run done");
    let story = story("task a\n with push\n run: push broke, push broke, push broke");
    assert!(
        matches!(story.state.end(), Some(TaskEnd::Failed { why: why @ Failure::Broke { .. } }) if why.is_push())
    );
}

#[test]
fn a_retry_of_the_run_pushes_what_was_left_unpushed() {
    let story =
        check("task a\n with push\n run: push fails, push ok\n retry run", "a done — run done");
    assert_eq!(story.starts.matches("push").count(), 2);
    assert_eq!(story.merged, "a1");
}

// Queues and tasks side by side.

#[test]
fn a_queue_works_in_order_each_on_top_of_the_last() {
    let story = check("queue a; b; c", "a done · b done · c done — run done");
    assert_eq!(story.merged, "a1 b1 c1");
    let last_of_a = story.starts.rfind("a.").unwrap();
    assert!(last_of_a < story.starts.find("b.").unwrap(), "{}", story.starts);
}

#[test]
fn a_failed_task_of_a_queue_does_not_keep_the_others_from_going_on() {
    let story = check(
        "queue a; b after a; c\n a: build broke, build broke",
        "a failed: build broke: exit status 1 (2 retries) · b blocked by a · c done — run failed: 1 task failed",
    );
    assert_eq!(story.merged, "c1");
}

#[test]
fn what_is_open_is_stopped_by_a_failure_where_the_flow_stops() {
    check(
        "together a; b; c after b\n a: build broke, build broke",
        "a failed: build broke: exit status 1 (2 retries) · b done · c stopped by a — run failed: 1 task failed",
    );
}

#[test]
fn no_more_work_at_once_than_workers() {
    let story = check("together a; b; c\n limit workers 1", "a done · b done · c done — run done");
    assert!(story.starts.starts_with("a.build a.validate"), "{}", story.starts);
    let story = self::story("together a; b; c\n limit workers 2\n look during a build");
    assert_eq!(story.board, "a running build · b running build · c at build — run goes on");
}

#[test]
fn merges_go_one_at_a_time() {
    check("together a; b\n look during a merge", "a running merge · b at merge — run goes on");
}

// Retry and skip.

#[test]
fn retry_reopens_what_it_blocked() {
    let story = check(
        "queue a; b after a; c\n a: build broke, build broke\n retry a",
        "a done · b done · c done — run done",
    );
    assert_eq!(story.merged, "c1 a1 b1");
}

#[test]
fn a_retry_of_the_run_does_nothing_for_its_failed_tasks() {
    let text = "task a\n a: build broke, build broke";
    let (once, again) = (story(text), story(&format!("{text}\n retry run")));
    assert_eq!(once.board, again.board);
    let reopened = |event: &Event| matches!(event, Event::TaskReopened { .. });
    assert!(!again.records.iter().any(|record| record.events.iter().any(reopened)));
}

#[test]
fn a_task_blocked_twice_stays_blocked_until_both_are_retried() {
    let head =
        "queue a; b; c after a b\n a: build broke, build broke\n b: build broke, build broke";
    check(
        &format!("{head}\n retry a"),
        "a done · b failed: build broke: exit status 1 (2 retries) · c blocked by b — run failed: 1 task failed",
    );
    check(&format!("{head}\n retry a; retry b"), "a done · b done · c done — run done");
}

#[test]
fn a_retry_repairs_the_work_there_is_with_a_new_grant_of_rounds() {
    let story = check(
        "task a\n limit rounds 2\n a: uat fails, fix ok, uat fails, fix ok, uat fails, fix ok, uat ok\n retry a",
        "a done (4 rounds, overruled) — run done",
    );
    assert_eq!(story.merged, "a4");
    assert_eq!(story.starts.matches("build").count(), 1);
}

#[test]
fn a_retry_beside_another_task_of_the_queue_waits_its_turn() {
    let story = check(
        "queue a; b; c; d\n a: uat fails, fix ok\n limit rounds 1\n retry a during b build; skip d during b validate",
        "a done (2 rounds, overruled) · b done · c done · d skipped — run done",
    );
    assert_eq!(story.merged, "b1 a2 c1");
}

#[test]
fn a_retry_before_the_base_is_proven_starts_no_build() {
    let story = check(
        "queue a; b\n with baseline\n skip a during preflight; retry a during preflight",
        "a done · b done — run done",
    );
    assert!(story.starts.starts_with("run.preflight a.build"), "{}", story.starts);
}

#[test]
fn a_retry_during_the_push_comes_too_late() {
    check(
        "queue a; b\n with push\n skip b during a build; retry b during push",
        "a done · b skipped — run done",
    );
}

#[test]
fn a_lifetime_of_rounds_is_not_reset_by_a_retry() {
    check(
        "task a\n limit rounds 2, lifetime 2\n a: uat fails, fix ok, uat fails\n retry a",
        "a failed: stopped: the task has used all its rounds (2) (2 rounds, overruled) — run failed: 1 task failed",
    );
}

#[test]
fn a_skipped_task_is_vouched_for() {
    let story =
        check("queue a; b after a\n skip a during a build", "a skipped · b done — run done");
    assert_eq!(story.merged, "b1");
}

#[test]
fn a_failed_task_that_is_skipped_closes_the_run_that_was_over() {
    check(
        "queue a; b after a\n a: build broke, build broke\n skip a",
        "a skipped · b done — run done",
    );
}

#[test]
fn a_failed_task_that_is_skipped_frees_what_it_blocked() {
    check(
        "queue a; b after a; c\n a: build broke, build broke\n skip a during c build",
        "a skipped · b done · c done — run done",
    );
}

#[test]
fn a_blocked_task_that_is_skipped_frees_what_only_it_kept_from_the_failure() {
    let text = "plan a; b after a; c after b; d after b a; e\n a: build broke, build broke";
    check(
        &format!("{text}\n skip b during e review"),
        "a failed: build broke: exit status 1 (2 retries) · b skipped · c done · d blocked by a \
         · e done — run failed: 1 task failed",
    );
    check(
        &format!("{text}\n skip b during e review; skip a during e uat"),
        "a skipped · b skipped · c done · d done · e done — run done",
    );
}

#[test]
fn a_task_does_not_wait_for_the_paths_of_one_that_waits_for_it() {
    check(
        "plan a; b after a, paths docs; c after b, paths docs\n skip b during a build; skip a during c build; \
         retry b during c build",
        "a skipped · b done · c done — run done",
    );
}

#[test]
fn a_failed_task_that_is_skipped_frees_what_it_stopped_and_did_not_hold_up() {
    check(
        "task a; b; c after b\n a: build broke, build broke\n skip a",
        "a skipped · b done · c done — run done",
    );
}

#[test]
fn a_task_at_its_merge_can_no_longer_be_skipped() {
    let story = check("task a\n skip a during merge", "a done — run done");
    assert_eq!(story.merged, "a1");
}

// Rails.

#[test]
fn the_same_failure_round_after_round_trips_a_rail() {
    check(
        "task a\n a: validate fails like x, fix ok, validate fails like x, fix ok, validate fails like x",
        "a failed: stopped: the same failure 3 rounds in a row (3 rounds, overruled) — run failed: 1 task failed",
    );
}

#[test]
fn a_change_that_comes_back_trips_a_rail() {
    check(
        "task a\n a: build ok tree x, validate fails, fix ok tree y, validate fails, fix ok tree x, validate fails",
        "a failed: stopped: round 3 brought back the change that failed in round 1 (3 rounds, overruled) — run failed: 1 task failed",
    );
}

#[test]
fn rounds_that_change_nothing_trip_a_rail() {
    check(
        "task a\n limit no-ops 1\n a: build ok tree x, validate fails, fix ok tree x, validate fails",
        "a failed: stopped: 1 rounds in a row changed nothing (2 rounds, overruled) — run failed: 1 task failed",
    );
}

#[test]
fn a_lifetime_of_rounds_trips_a_rail() {
    check(
        "task a\n limit lifetime 1\n a: uat fails",
        "a failed: stopped: the task has used all its rounds (1) (overruled) — run failed: 1 task failed",
    );
}

// Plans: order, urgency, and what stands in the way.

/// Everything a worker or the controller did for one task of a plan that goes well.
fn whole(name: &str) -> String {
    let steps = ["build", "validate", "review", "uat_generate", "uat", "merge"];
    steps.map(|step| format!("{name}.{step}")).join(" ")
}

/// Where each of the words first comes in a text.
fn order(text: &str, words: &[&str]) -> Vec<usize> {
    words.iter().map(|word| text.find(word).unwrap_or_else(|| panic!("{word}: {text}"))).collect()
}

/// The tasks that came, by name.
fn added(story: &Story) -> Vec<String> {
    let mut names = Vec::new();
    for event in story.records.iter().flat_map(|record| &record.events) {
        if let Event::TaskAdded { parent: Some(_), spec, .. } = event {
            names.push(spec.name.clone());
        }
    }
    names
}

#[test]
fn a_plan_is_made_carried_out_and_proven_as_a_whole() {
    let story = check("plan a", "a done — run done");
    let rest = "run.validate run.uat_generate run.uat";
    assert_eq!(story.starts, format!("run.plan run.schedule {} {rest}", whole("a")));
    assert_eq!(story.merged, "a1");
}

#[test]
fn a_diamond_is_worked_on_in_its_order() {
    let story = check(
        "plan a; b after a; c after a; d after b c",
        "a done · b done · c done · d done — run done",
    );
    let words = ["a.merge", "b.build", "c.build", "b.merge", "d.build", "run.validate"];
    let places = order(&story.starts, &words);
    assert!(places.is_sorted(), "{}", story.starts);
    let last = story.starts.find("c.merge") < story.starts.find("d.build");
    assert!(last && places[2] < story.starts.find("b.validate").unwrap(), "{}", story.starts);
}

#[test]
fn what_does_not_depend_on_a_failure_goes_on() {
    let story = check(
        "plan a; b after a; c after b; d; e after d
         a: build broke, build broke",
        "a failed: build broke: exit status 1 (2 retries) · b blocked by a · c blocked by a · d done · e done — run failed: 1 task failed",
    );
    assert_eq!(story.merged, "d1 e1");
    assert!(!story.starts.contains("run.validate"), "{}", story.starts);
}

#[test]
fn a_retry_of_a_planned_task_reopens_what_it_blocked_and_plans_nothing_anew() {
    let story = check(
        "plan a; b after a; c after b; d
         a: build broke, build broke
         retry a",
        "a done · b done · c done · d done — run done",
    );
    assert_eq!(story.starts.matches("run.plan").count(), 1);
    assert_eq!(story.merged, "d1 a1 b1 c1");
}

#[test]
fn the_important_comes_first_then_what_most_others_wait_for() {
    let starts = |text: &str| story(&format!("{text}\n limit workers 1")).starts;
    let by_priority = starts("plan a; b, priority 2; c, priority 1");
    assert!(order(&by_priority, &["b.build", "c.build", "a.build"]).is_sorted(), "{by_priority}");
    let by_urgency = starts("plan a; b; c after b; d after c; e; f after e");
    let words = ["b.build", "e.build", "c.build", "a.build"];
    assert!(order(&by_urgency, &words).is_sorted(), "{by_urgency}");
    // What is begun is finished before something new is.
    let begun = order(&by_urgency, &["b.build", "b.uat", "e.build"]);
    assert!(begun.is_sorted(), "{by_urgency}");
}

#[test]
fn tasks_that_write_in_the_same_place_come_one_after_the_other() {
    let text = "plan a, paths src; b, paths src/b docs; c, paths docs/guide.md; d
         look during c build";
    check(text, "a running build · b at build · c running build · d running build — run goes on");
    let story = story("plan a, paths src; b, paths src/b");
    assert!(order(&story.starts, &["a.merge", "b.build"]).is_sorted(), "{}", story.starts);
}

#[test]
fn tasks_that_write_in_the_same_place_may_be_allowed_to() {
    check(
        "plan a, paths src; b, paths src/b
         limit overlaps go
         look during b build",
        "a running build · b running build — run goes on",
    );
}

#[test]
fn a_task_that_is_retried_goes_on_beside_one_that_writes_in_its_place() {
    check(
        "plan a, priority 1, paths src; b, paths src; c after b
         limit workers 1, rounds 1
         a: uat fails, fix ok
         retry a during b build
         look during c build",
        "a done (2 rounds, overruled) · b done · c running build — run goes on",
    );
}

#[test]
fn in_a_machine_that_is_short_of_room_nothing_begins_beside_another() {
    check(
        "plan a; b; c\n short memory during a build\n look during a review",
        "a running review · b at validate · c at validate — run goes on",
    );
    let alone = story("plan a; b after a; c after a\n short disk during a build");
    assert!(alone.board.ends_with("run done"), "with nothing at work one is let in");
    let places = order(&alone.starts, &["b.build", "b.merge", "c.build"]);
    assert!(places.is_sorted(), "{}", alone.starts);
    let again = story("plan a; b; c\n short disk during a build; room during a build");
    assert_eq!(again.board, "a done · b done · c done — run done");
}

#[test]
fn as_many_effects_at_once_as_allowed() {
    check(
        "plan a; b; c\n limit effects 2\n look during b merge",
        "a running merge · b running merge · c at merge — run goes on",
    );
}

// Plans: tasks that are divided when their turn comes.

#[test]
fn a_large_task_is_divided_when_its_turn_comes() {
    let story = check(
        "plan a; big after a, expand, paths src; z after big; x in big, paths src/x; y after x, in big",
        "a done · big done · z done · x done · y done — run done",
    );
    let words = ["a.merge", "big.plan", "big.schedule", "x.build", "x.merge", "y.build", "z.build"];
    assert!(order(&story.starts, &words).is_sorted(), "{}", story.starts);
    assert_eq!(story.merged, "a1 x1 y1 z1");
}

#[test]
fn a_failure_inside_of_a_divided_task_is_its_own_and_can_be_retried() {
    let text = "plan big expand; z after big; x in big; y in big
         x: build broke, build broke";
    check(
        text,
        "big failed: 1 task failed · z blocked by big · x failed: build broke: exit status 1 (2 retries) · y done — run failed: 1 task failed",
    );
    let story =
        check(&format!("{text}\n retry x"), "big done · z done · x done · y done — run done");
    assert_eq!(story.starts.matches("big.plan").count(), 1);
}

#[test]
fn a_divided_task_that_is_skipped_takes_what_is_in_it_along() {
    let text = "plan big expand; z after big; x in big; y after x, in big
         limit workers 1
         skip big during x build";
    let story =
        check(text, "big skipped · z done · x stopped by big · y stopped by big — run done");
    assert_eq!(story.merged, "z1");
    let story =
        check(&format!("{text}; retry big"), "big done · z done · x done · y done — run done");
    assert_eq!(story.merged, "z1 x1 y1");
}

#[test]
fn a_skipped_task_is_not_reopened_by_a_skip_inside_of_it() {
    check(
        "plan big expand; z after big; x in big\n skip big during x build; skip x during z build",
        "big skipped · z done · x stopped by big — run done",
    );
}

#[test]
fn a_divided_task_can_not_be_skipped_while_one_in_it_is_merged() {
    let story = check(
        "plan big expand; z after big; x in big\n skip big during x merge",
        "big done · z done · x done — run done",
    );
    assert_eq!(story.merged, "x1 z1");
}

// Plans: what brings tasks.

#[test]
fn a_schedule_that_brings_nothing_has_broken() {
    check(
        "plan a\n run: schedule ok bringing nothing, schedule ok bringing a",
        "a done — run done",
    );
    check(
        "plan a\n run: schedule ok bringing nothing, schedule ok bringing nothing",
        " — run failed: schedule broke: it returned no tasks",
    );
}

#[test]
fn a_schedule_that_brings_a_task_twice_has_broken() {
    check(
        "plan a\n run: schedule ok bringing a+a, schedule ok bringing a+a",
        " — run failed: schedule broke: it returned task a, which already exists",
    );
}

#[test]
fn a_schedule_that_brings_a_task_before_what_it_needs_has_broken() {
    check(
        "plan b after a; a",
        " — run failed: schedule broke: it returned task b before a, which it needs",
    );
}

#[test]
fn tasks_of_a_schedule_that_did_not_pass_do_not_come() {
    let story = check(
        "plan a\n run: schedule broke, schedule fails",
        " — run failed: schedule failed: schedule said no",
    );
    assert_eq!(added(&story), [""; 0]);
}

#[test]
fn what_does_not_hold_together_is_mended_by_a_task() {
    let story = check(
        "plan a; b\n run: validate fails, validate ok, uat fails",
        "a done · b done · mend-1 done · mend-2 done — run done",
    );
    assert_eq!(story.merged, "a1 b1 mend-11 mend-21");
    assert_eq!(story.starts.matches("run.validate").count(), 3, "{}", story.starts);
    assert_eq!(story.state.root().unwrap().round, 3);
}

#[test]
fn the_whole_is_not_mended_for_ever() {
    let story = check(
        "plan a\n limit rounds 2\n run: validate fails like x, validate fails like y",
        "a done · mend-1 done · mend-2 open — run failed: did not converge in 2 iterations",
    );
    assert_eq!(story.merged, "a1 mend-11");
    check(
        "plan a\n limit rounds 2\n run: validate fails like x, validate fails like y\n retry run",
        "a done · mend-1 done · mend-2 done — run done",
    );
}

#[test]
fn a_whole_that_fails_without_a_task_to_mend_it_has_broken() {
    check("plan a\n run: validate fails bringing nothing, validate ok", "a done — run done");
    check(
        "plan a\n run: uat fails bringing nothing, uat fails bringing nothing",
        "a done — run failed: uat broke: it returned no tasks",
    );
}

#[test]
fn a_task_that_mends_may_need_one_that_a_person_vouched_for() {
    check(
        "plan a; b\n run: validate fails bringing m<a\n skip a during a build",
        "a skipped · b done · m done — run done",
    );
}

#[test]
fn a_task_that_mends_and_fails_fails_the_run() {
    check(
        "plan a\n run: validate fails\n mend-1: build broke, build broke",
        "a done · mend-1 failed: build broke: exit status 1 (2 retries) — run failed: 1 task failed",
    );
}

// Plans: people.

#[test]
fn a_plan_waits_for_a_person() {
    check("plan a\n with plan-gate", " — run asks: approve_plan");
    check("plan a\n with plan-gate\n boot; boot", " — run asks: approve_plan");
    check("plan a\n with plan-gate\n boot; approve", "a done — run done");
}

#[test]
fn a_rejected_plan_is_made_anew() {
    let story = check("plan a\n with plan-gate\n reject; approve", "a done — run done");
    assert_eq!(story.starts.matches("run.plan").count(), 2);
    assert_eq!(story.starts.matches("run.schedule").count(), 1);
    assert_eq!(story.state.root().unwrap().round, 2, "a rejection spends a round");
}

#[test]
fn a_plan_is_not_rejected_for_ever() {
    check(
        "plan a\n with plan-gate\n limit rounds 2\n reject; reject",
        " — run failed: did not converge in 2 iterations",
    );
}

#[test]
fn a_result_that_is_rejected_is_not_pushed() {
    let text = "plan a\n with end-gate, push, pr";
    let story = check(
        &format!("{text}\n reject"),
        "a done — run failed: approve_result failed: rejected by a person: not like this",
    );
    assert!(!story.starts.contains("push"), "{}", story.starts);
    let story = check(&format!("{text}\n reject; retry run; boot; approve"), "a done — run done");
    let words = ["run.push", "run.pull_request"];
    assert!(order(&story.starts, &words).is_sorted(), "{}", story.starts);
    assert_eq!(story.starts.matches("run.validate").count(), 2, "it is proven again");
}

#[test]
fn an_answer_at_no_gate_changes_nothing() {
    let plain = story("plan a; b after a\n with end-gate\n approve");
    let eager = story(
        "plan a; b after a\n with end-gate
         approve during plan; approve during schedule; reject during a build
         approve; approve; reject",
    );
    assert_eq!(plain.board, "a done · b done — run done");
    assert_eq!(plain.board, eager.board);
    assert_eq!(plain.starts, eager.starts);
}

#[test]
fn a_gate_in_a_stopped_run_waits_until_it_goes_on() {
    check("plan a\n with plan-gate\n stop during plan; approve", " — run rests: stopped");
    check("plan a\n with plan-gate\n stop during plan; resume; approve", "a done — run done");
}

// Plans: crashes.

#[test]
fn a_crash_in_every_step_of_the_run_changes_nothing_in_what_is_made() {
    let steps = [
        "preflight",
        "plan",
        "schedule",
        "run validate",
        "run uat_generate",
        "run uat",
        "push",
        "pull_request",
    ];
    for step in steps {
        for when in ["during", "after"] {
            let story = story(&format!(
                "plan a; b after a\n with baseline, push, pr, plan-gate, end-gate
                 {}",
                around(&format!("crash {when} {step}"), step)
            ));
            assert_eq!(story.merged, "a1 b1", "{when} {step}");
            assert_eq!(added(&story), ["a", "b"], "{when} {step}");
            assert!(story.board.ends_with("run done"), "{when} {step}: {}", story.board);
            let once = ["run.schedule", "run.push", "run.pull_request", "run.approve_plan"];
            for step in once {
                assert_eq!(story.starts.matches(step).count(), 1, "{}", story.starts);
            }
        }
    }
}

/// The two answers at the gates, and the crash where it belongs among them.
fn around(crash: &str, step: &str) -> String {
    match step {
        "preflight" | "plan" => format!("{crash}; approve; approve"),
        "push" | "pull_request" => format!("approve; approve; {crash}"),
        _ => format!("approve; {crash}; approve"),
    }
}

#[test]
fn a_crash_between_a_schedule_and_its_word_divides_once() {
    let story = check(
        "plan big expand; x in big\n crash after run schedule; crash after big schedule",
        "big done · x done — run done",
    );
    assert_eq!(added(&story), ["big", "x"]);
}

// The kit itself.

#[test]
fn a_story_that_is_not_played_to_its_end_is_an_error() {
    assert!(play("task a\n crash during fix").is_err());
    assert!(play("task a\n a: fix ok").is_err());
    assert!(play("task a\n dance").is_err());
}

#[test]
fn every_record_reads_back_as_it_was_written() {
    let story =
        story("queue a; b after a\n a: build ok $1, validate fails, fix ok\n crash during merge");
    for record in &story.records {
        let text = serde_json::to_string(record).unwrap();
        assert_eq!(serde_json::from_str::<autopilot_core::event::Record>(&text).unwrap(), *record);
    }
    let overruled = |event: &Event| matches!(event, Event::Overruled { .. });
    assert!(story.records.iter().any(|record| record.events.iter().any(overruled)));
}
