//! What people ask for and can't have: they are told, and the run is as it was.

use super::check;

const BLOCKED: &str = "plan a; b after a; c\n limit rounds 1\n a: validate fails";
const FAILED: &str = "a failed: did not converge in 1 iteration (overruled) · b blocked by a · c done — run failed: 1 task failed";

/// Plays a story and compares what was refused in it, in order.
#[track_caller]
fn refused(text: &str, board: &str, refusals: &[&str]) {
    let story = check(text, board);
    assert_eq!(story.refusals, refusals, "\n{}", story.trace.join("\n"));
}

#[test]
fn what_is_done_is_neither_retried_nor_skipped() {
    refused(
        "task a\n retry a; skip a; retry run",
        "a done — run done",
        &[
            "task `a` is done; there is nothing to retry",
            "task `a` is done; there is nothing to skip",
            "the run is done; there is nothing to retry",
        ],
    );
}

#[test]
fn what_is_worked_on_is_not_retried() {
    refused(
        "task a\n retry a during build; retry run during build",
        "a done — run done",
        &[
            "task `a` has not failed; there is nothing to retry",
            "the run has not failed; there is nothing to retry",
        ],
    );
}

#[test]
fn a_retry_names_what_stands_in_its_way() {
    refused(
        &format!("{BLOCKED}\n retry b; retry run; retry nobody"),
        FAILED,
        &[
            "task `b` needs `a`, which failed",
            "the run failed because of its tasks",
            "there is no task `nobody` in run run",
        ],
    );
}

#[test]
fn rounds_of_a_lifetime_are_not_given_again() {
    refused(
        "task a\n limit rounds 1, lifetime 1\n a: validate fails\n retry a",
        "a failed: stopped: the task has used all its rounds (1) (overruled) — run failed: 1 task failed",
        &["task `a` has used all 1 iterations of its lifetime"],
    );
}

#[test]
fn what_the_run_has_moved_past_waits_for_its_judgement() {
    refused(
        "goal a; b\n a: step fails\n retry a during run completion; skip a during run completion",
        "a failed: step failed: step said no · b done — run done",
        &[
            "task `a` can't be retried now: the run has moved past its tasks and is judging the result",
            "task `a` can't be skipped now: the run has moved past its tasks and is judging the result",
        ],
    );
}

#[test]
fn a_skip_is_said_once_and_of_a_task() {
    refused(
        "queue a; b\n skip run during a build; skip b during a build; skip b during a build",
        "a done · b skipped — run done",
        &["the run itself can't be skipped", "task `b` is already skipped"],
    );
}

#[test]
fn what_lies_in_a_skipped_task_is_not_skipped_by_itself() {
    refused(
        "plan big, expand; x, in big; other\n skip big during x build; skip x",
        "big skipped · other done · x stopped by big — run done",
        &["task `x` was skipped together with `big`"],
    );
}

#[test]
fn a_merge_is_not_skipped() {
    refused(
        "task a\n skip a during merge",
        "a done — run done",
        &["task `a` can't be skipped now: its merge has started and may be complete"],
    );
}

#[test]
fn an_answer_needs_a_question_and_a_no_needs_a_reason() {
    refused(
        "task a\n with end-gate\n approve during a build; reject silently; approve",
        "a done — run done",
        &["nothing is waiting for approval", "a rejection needs a reason"],
    );
}

#[test]
fn limits_of_nothing_and_the_same_limits_change_nothing() {
    refused(
        "task a\n set workers 3 during build; set workers 0 during build",
        "a done — run done",
        &["nothing would change", "a limit of 0 for workers_max is not valid"],
    );
}

#[test]
fn a_session_that_an_agent_is_in_is_not_continued() {
    refused(
        "goal a\n continue a during a step; continue a during a merge",
        "a done — run done",
        &[
            "task `a` can't be continued now: it is being worked on",
            "task `a` can't be continued now: it is being worked on",
        ],
    );
}

#[test]
fn a_stop_and_a_resume_are_heard_once() {
    refused(
        "task a\n resume during build; stop during build; stop during build; resume",
        "a done — run done",
        &["the run is not stopped", "the run is already stopping or over"],
    );
}
