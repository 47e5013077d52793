//! Secrets in a change: a known value blocks and is repaired, what only looks like a key does not.

use super::check;

#[test]
fn a_known_secret_in_a_change_spends_a_round_and_is_repaired() {
    let story = check(
        "task a\n a: validate leaks known, fix ok",
        "a done (2 rounds, overruled) — run done",
    );
    assert!(story.starts.contains("a.fix"), "{}", story.starts);
    assert_eq!(story.merged, "a2", "only the repaired work is merged");
}

#[test]
fn a_known_secret_that_stays_is_never_merged() {
    let story = check(
        "task a
         limit rounds 2
         a: validate leaks known, fix ok, validate leaks known",
        "a failed: did not converge in 2 iterations (2 rounds, overruled) — run failed: 1 task failed",
    );
    assert_eq!(story.merged, "");
}

#[test]
fn an_example_key_in_a_change_does_not_block() {
    let story = check("task a\n a: validate leaks example", "a done — run done");
    assert_eq!(story.starts.matches("a.fix").count(), 0, "{}", story.starts);
}

#[test]
fn what_would_leave_the_machine_with_a_secret_is_not_merged() {
    let story = check("task a\n a: merge leaks outside, fix ok", "a done (2 rounds) — run done");
    assert_eq!(story.merged, "a2");
}
