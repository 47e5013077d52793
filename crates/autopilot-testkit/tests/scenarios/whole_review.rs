//! The review of what all tasks of a plan make together.

use super::{check, story};
use autopilot_core::step::Step;

const WHOLE: &str = "plan a\n with whole-review\n limit rounds 2\n";

fn reviews(starts: &str) -> usize {
    starts.split(' ').filter(|start| *start == "run.whole_review").count()
}

#[test]
fn a_whole_that_is_approved_goes_on_and_one_that_is_not_is_mended_and_reviewed_again() {
    let story = check("plan a\n with whole-review", "a done — run done");
    let rest = story.starts.split_once("run.validate ").map_or("", |(_, rest)| rest);
    assert_eq!(rest, "run.whole_review run.uat_generate run.uat");
    let text = format!("{WHOLE} run: whole_review objects");
    let story = check(&text, "a done · mend-1 done — run done");
    assert_eq!(reviews(&story.starts), 2, "{}", story.starts);
}

#[test]
fn a_whole_that_never_pleases_ends_at_the_limit_of_rounds() {
    let text = format!("{WHOLE} run: whole_review objects like x, whole_review objects like y");
    check(
        &text,
        "a done · mend-1 done · mend-2 open — run failed: did not converge in 2 iterations",
    );
}

#[test]
fn it_is_not_asked_for_where_it_is_off_or_reviews_are_waived() {
    let waived = "plan a\n with whole-review\n waive review during a build";
    for (text, is_recorded) in [("plan a", false), (waived, true)] {
        let story = story(text);
        assert_eq!(reviews(&story.starts), 0, "{text}: {}", story.starts);
        let skipped = &story.state.tasks[0].skipped;
        assert_eq!(skipped.contains_key(&Step::WholeReview), is_recorded, "{text}");
    }
    for text in ["task a\n with whole-review", "goal a\n with whole-review"] {
        assert_eq!(reviews(&story(text).starts), 0, "{text}");
    }
    let divided = story("plan big expand; x in big\n with whole-review");
    assert_eq!(reviews(&divided.starts), 1, "{}", divided.starts);
}

#[test]
fn only_what_the_gate_lets_block_is_mended() {
    for (gate, cited, is_mended) in [
        ("required", "citing minor nothing", true),
        ("evidence", "citing blocker nothing", false),
        ("evidence", "citing minor criterion:1", false),
        ("evidence", "citing major criterion:1", true),
        ("evidence", "citing major criterion:3", false),
        ("advisory", "citing blocker criterion:1", false),
    ] {
        let text = format!("{WHOLE} limit review {gate}\n run: whole_review objects {cited}");
        let story = story(&text);
        assert_eq!(reviews(&story.starts), 1 + usize::from(is_mended), "{gate}, {cited}");
        assert!(story.board.contains("run done"), "{gate}, {cited}: {}", story.board);
    }
}

#[test]
fn tests_that_are_open_in_the_end_are_accepted_by_whoever_reviews_the_whole() {
    let of = |review: &str| format!("{WHOLE} run: validate ok opens t1, {review}");
    check(&of("whole_review approves accepts t1"), "a done — run done");
    let refused = story(&of("whole_review approves accepts t2"));
    assert_eq!(refused.board, "a done · mend-1 done — run done");
    // A no stays a no, whatever it accepts.
    let no = story(&of("whole_review objects accepts t1"));
    assert_eq!(no.board, "a done · mend-1 done — run done");
    for policy in ["person", "refused"] {
        let text =
            format!("{} \n limit yardstick {policy}", of("whole_review approves accepts t1"));
        let story = story(&text);
        // Nobody who is asked later could accept them: the validation itself fails.
        assert_eq!(reviews(&story.starts), 1, "{policy}: {}", story.starts);
        assert_eq!(story.board, "a done · mend-1 done — run done", "{policy}");
    }
    let off = story("plan a\n limit rounds 2\n run: validate ok opens t1");
    assert_eq!(off.board, "a done · mend-1 done — run done");
}

#[test]
fn reviews_that_are_waived_too_late_leave_no_test_unaccounted_for() {
    // The validation has left the tests to the review when a person waives it.
    let text = format!("{WHOLE} run: validate ok opens t1\n waive review during run validate");
    let story = story(&text);
    assert_eq!(reviews(&story.starts), 1, "{}", story.starts);
    assert_eq!(story.board, "a done · mend-1 done (review left out) — run done");
}

#[test]
fn a_crash_in_the_middle_of_it_reviews_again_and_spends_no_round() {
    let text = "plan a\n with whole-review\n crash during run whole_review";
    let story = check(text, "a done — run done");
    assert_eq!(reviews(&story.starts), 2, "{}", story.starts);
    let text = "plan a\n with whole-review\n run: whole_review broke";
    assert_eq!(reviews(&check(text, "a done — run done").starts), 2);
}
