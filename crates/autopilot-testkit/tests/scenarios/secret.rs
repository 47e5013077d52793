//! Secrets in a change: a known value blocks and is repaired, what only looks like a key does not.

use super::check;
use autopilot_core::guard::secret::is_ignored;
use autopilot_core::guard::secret_value::is_compared;

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

#[test]
fn of_known_secrets_those_are_compared_that_honest_text_does_not_hold() {
    for (name, value, compared) in [
        ("API_KEY", "http://localhost:3000", false),
        ("API_KEY", "https://me:swordfish@example.com/in", true),
        ("KMS_KEY", "alias/aws/s3", false),
        ("KMS_KEY", "1234abcd-12ab-34cd-56ef-1234567890ab", true),
        ("TOKEN", "changeme", false),
        ("TOKEN", "a8Xk29fq", true),
        ("TOKEN", "hunter22", false),
        ("PASSWORD", "hunter22", true),
    ] {
        assert_eq!(is_compared(name, value), compared, "{name}={value}");
    }
    let ignore = ["KMS_KEY".to_owned()];
    assert!(is_ignored("KMS_KEY", &ignore) && !is_ignored("API_KEY", &ignore));
}
