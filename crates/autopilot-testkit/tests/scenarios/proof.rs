//! The last word: what was proven over a seed is proven once more from nothing.

use super::{ROUND_1, added, check};
use autopilot_core::event::Event;
use autopilot_core::step::Step;

#[test]
fn the_result_is_proven_from_nothing_before_it_leaves() {
    let story = check("task a\n with cold-proof, push\n a: validate ok warm", "a done — run done");
    assert_eq!(story.starts, format!("{ROUND_1} a.prove a.merge run.prove run.push"));
    let story =
        check("queue a; b\n with cold-proof\n a: merge ok warm", "a done · b done — run done");
    assert_eq!(story.starts.matches("run.prove").count(), 1, "{}", story.starts);
    assert!(story.starts.ends_with("b.merge run.prove"), "{}", story.starts);
}

#[test]
fn where_every_gate_starts_from_nothing_there_is_no_last_one() {
    for (with, why) in [("cold-proof", Some("every gate started from nothing")), ("push", None)] {
        let story = check(&format!("task a\n with {with}"), "a done — run done");
        assert!(!story.starts.contains("prove"), "{}", story.starts);
        let root = &story.state.tasks[0];
        assert_eq!(root.skipped.get(&Step::Prove).map(String::as_str), why);
    }
}

#[test]
fn a_warm_gate_that_failed_asks_for_no_proof() {
    let text = "task a\n with cold-proof\n a: build ok, validate fails warm, fix ok, validate ok";
    let story = check(text, "a done (2 rounds, overruled) — run done");
    assert!(!story.starts.contains("prove"), "{}", story.starts);
}

#[test]
fn what_fails_from_nothing_is_repaired_by_a_task_and_proven_again() {
    for flow in ["task", "queue", "plan"] {
        let story = check(
            &format!(
                "{flow} a; b\n with cold-proof, push\n a: validate ok warm\n run: prove fails, prove ok"
            ),
            "a done · b done · mend-1 done — run done",
        );
        assert_eq!(story.merged, "a1 b1 mend-11", "{flow}");
        assert_eq!(added(&story).last().unwrap(), "mend-1");
        assert!(
            story.starts.ends_with("mend-1.merge run.prove run.push")
                || flow == "plan" && story.starts.ends_with("run.prove run.push"),
            "{}",
            story.starts
        );
        assert_eq!(story.starts.matches("run.prove").count(), 2, "{}", story.starts);
    }
}

#[test]
fn a_result_that_never_holds_from_nothing_is_not_done() {
    let story = check(
        "task a\n with cold-proof, push\n a: validate ok warm\n limit rounds 2\n run: prove fails like x, prove fails like y",
        "a done · mend-1 done · mend-2 open — run failed: did not converge in 2 iterations",
    );
    assert!(!story.starts.contains("push"), "{}", story.starts);
}

#[test]
fn a_goal_that_fails_from_nothing_has_another_iteration() {
    let story = check(
        "goal a; b after a\n with cold-proof, push\n run: validate ok warm, prove fails, workflow ok, prove ok",
        "a done · b done · a-i2 done · b-i2 done — run done (2 rounds)",
    );
    assert!(story.starts.ends_with("run.completion run.prove run.push"), "{}", story.starts);
    let events = story.records.iter().flat_map(|record| &record.events);
    let why = events.into_iter().find_map(|event| {
        let Event::RoundFailed { reasons, .. } = event else { return None };
        Some(reasons.clone())
    });
    let why = why.unwrap();
    assert_eq!((why[0].step, why[0].text.as_str()), (Step::Prove, "prove said no"));
}

#[test]
fn a_proof_that_was_lost_is_made_again_and_a_merge_after_it_undoes_it() {
    let story = check(
        "task a\n with cold-proof\n a: validate ok warm\n crash during run prove",
        "a done — run done",
    );
    assert_eq!(story.starts.matches("run.prove").count(), 2, "{}", story.starts);
}

#[test]
fn after_a_result_failed_from_nothing_no_seed_is_trusted_any_more() {
    let text = "task a\n with cold-proof\n a: validate ok warm\n run: prove fails, prove ok";
    let story = check(text, "a done · mend-1 done — run done");
    assert!(story.state.run.seeds.is_refuted);
    let story = check("task a\n with cold-proof\n a: validate ok warm", "a done — run done");
    assert!(!story.state.run.seeds.is_refuted && story.state.run.seeds.is_used);
}

#[test]
fn what_becomes_the_result_is_proven_from_nothing_before_it_is_merged() {
    let story = check(
        "task a\n with cold-proof\n a: validate ok warm, prove fails, fix ok",
        "a done (2 rounds, overruled) — run done",
    );
    assert_eq!(story.merged, "a2", "what fails from nothing is not merged");
    assert!(story.state.run.seeds.is_refuted, "no other gate of the run trusts a seed");
    let story = check(
        "queue a; b\n with cold-proof\n a: validate ok warm\n b: validate ok warm",
        "a done · b done — run done",
    );
    assert!(story.starts.ends_with("b.merge run.prove"), "{}", story.starts);
    let own = story.starts.contains("a.prove") || story.starts.contains("b.prove");
    assert!(!own, "one is to come after `a`, and `a` is in `b`: {}", story.starts);
}

#[test]
fn work_that_is_refused_anyway_is_not_proven_from_nothing() {
    let story = check(
        "task a\n with cold-proof\n a: validate ok warm, review fails, fix ok, validate ok warm",
        "a done (2 rounds) — run done",
    );
    assert_eq!(story.starts.matches("a.prove").count(), 1, "{}", story.starts);
    assert!(story.starts.ends_with("a.prove a.merge run.prove"), "{}", story.starts);
}

#[test]
fn a_crash_in_the_proof_of_a_task_pays_no_second_review() {
    let story = check(
        "task a\n with cold-proof\n a: validate ok warm\n crash during a prove",
        "a done (1 interruption) — run done",
    );
    assert_eq!(story.starts.matches("a.prove").count(), 2, "{}", story.starts);
    assert_eq!(story.starts.matches("a.review").count(), 1, "{}", story.starts);
}

#[test]
fn what_a_failed_run_has_merged_is_proven_from_nothing_before_it_ends() {
    let fails = "b: build broke, build broke";
    for flow in ["queue a; b", "together a; b", "plan a; b"] {
        let story = check(
            &format!("{flow}\n with cold-proof, push\n a: merge ok warm\n {fails}"),
            "a done · b failed: build broke: exit status 1 (2 retries) — run failed: 1 task failed",
        );
        assert!(story.starts.ends_with("run.prove"), "{flow}: {}", story.starts);
        assert!(!story.starts.contains("push"), "{flow}: {}", story.starts);
        // Where nothing was warm, or nothing was merged, there is nothing to say.
        for (text, end) in [
            (format!("{flow}\n with cold-proof\n {fails}"), "a done"),
            (
                format!(
                    "{flow}\n with cold-proof\n a: validate ok warm, merge broke, merge broke\n {fails}"
                ),
                "a failed",
            ),
        ] {
            let story = super::story(&text);
            assert!(story.board.starts_with(end), "{}", story.board);
            assert!(!story.starts.contains("run.prove"), "{flow}: {}", story.starts);
        }
    }
}

#[test]
fn what_a_failed_run_has_merged_and_fails_from_nothing_is_repaired_and_proven_again() {
    let story = check(
        "queue a; b\n with cold-proof\n a: merge ok warm\n b: build broke, build broke\n run: prove fails, prove ok",
        "a done · b failed: build broke: exit status 1 (2 retries) · mend-1 done — run failed: 1 task failed",
    );
    assert_eq!(story.merged, "a1 mend-11");
    assert!(story.starts.ends_with("mend-1.merge run.prove"), "{}", story.starts);
}

#[test]
fn a_failed_run_whose_proof_was_cut_short_is_proven_when_it_goes_on() {
    let story = check(
        "queue a; b\n with cold-proof\n a: merge ok warm\n b: build broke, build broke\n crash during run prove",
        "a done · b failed: build broke: exit status 1 (2 retries) — run failed: 1 task failed",
    );
    assert_eq!(story.starts.matches("run.prove").count(), 2, "{}", story.starts);
    let text =
        "queue a; b\n with cold-proof\n a: merge ok warm\n b: build broke, build broke\n retry b";
    let story = check(text, "a done · b done — run done");
    assert!(story.starts.ends_with("b.merge run.prove"), "{}", story.starts);
}
