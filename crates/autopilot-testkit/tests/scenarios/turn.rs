//! A person's turn on a step that is done: whatever comes of it, what was merged stays.

use super::check;

#[test]
fn a_turn_whose_repair_fails_leaves_the_step_done() {
    let story = check(
        "goal a; b
         limit rounds 1, rounds below 1
         a: step ok, merge ok, step ok, merge conflicts
         continue a; resume",
        "a done (2 rounds) · b done — run done",
    );
    assert_eq!(story.merged, "a1 b1", "nothing of the turn is merged");
}

#[test]
fn a_turn_that_breaks_in_its_repair_leaves_the_step_done() {
    let story = check(
        "goal a
         limit retries fix 0
         a: step ok, merge ok, step ok, merge conflicts, fix broke
         continue a; resume",
        "a done (3 rounds, 1 retry) — run done",
    );
    assert_eq!(story.merged, "a1");
}

#[test]
fn a_turn_without_its_program_ends_when_the_run_rests_and_the_step_is_done() {
    let story = check(
        "goal a
         a: step ok, merge ok, step not-installed, step not-installed
         continue a; resume",
        "a done (2 rounds) — run done",
    );
    assert_eq!(story.merged, "a1");
}

#[test]
fn a_turn_that_a_limit_of_money_ends_leaves_the_step_done() {
    let text = |limit| {
        format!("goal a\n limit {limit}\n a: step ok 1, merge ok, step ok 5 5\n continue a")
    };
    let story = check(
        &text("usd 5"),
        "a done (2 rounds, $6.00) — run rests: the run has spent $6.00 of its limit of $5.00",
    );
    assert_eq!(story.merged, "a1");
    let story = check(
        &text("usd per task 5"),
        "a done (2 rounds, $6.00) — run rests: the step was continued, as asked",
    );
    assert_eq!(story.merged, "a1");
}
