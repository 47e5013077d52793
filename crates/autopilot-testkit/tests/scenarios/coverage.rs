//! Criteria and the tests that prove them: what is merged or reached where each criterion needs a test
//! that fails without the change.

use super::{added, check, story};
use autopilot_core::flow::merging::failed_merge;
use autopilot_core::step::Step;

const WITH: &str = "task a\n with red-green";

#[test]
fn tests_are_mapped_after_they_passed_and_only_where_it_is_asked_for() {
    let story = check(WITH, "a done — run done");
    assert!(story.starts.starts_with("a.build a.validate a.coverage a.review"), "{}", story.starts);
    let story = check("task a", "a done — run done");
    assert!(!story.starts.contains("coverage"), "{}", story.starts);
    assert!(!story.state.tasks[1].skipped.contains_key(&Step::Coverage), "nobody is told of it");
}

#[test]
fn a_criterion_without_a_test_fails_the_round_and_the_next_may_add_one() {
    let story =
        check(&format!("{WITH}\n a: coverage fails"), "a done (2 rounds, overruled) — run done");
    assert_eq!(story.starts.matches("a.coverage").count(), 2, "{}", story.starts);
    let text = format!(
        "{WITH}\n limit rounds 2\n a: build ok, validate ok, coverage fails, fix ok, validate ok, coverage fails"
    );
    check(
        &text,
        "a failed: did not converge in 2 iterations (2 rounds, overruled) — run failed: 1 task failed",
    );
}

#[test]
fn a_yes_that_the_controller_has_not_checked_is_not_believed() {
    let story =
        check(&format!("{WITH}\n a: coverage mute"), "a done (2 rounds, overruled) — run done");
    assert!(failed_merge(&story.state.tasks[1]).is_none());
}

#[test]
fn nobody_is_asked_which_tests_cover_a_change_whose_tests_fail() {
    let story =
        check(&format!("{WITH}\n a: validate fails"), "a done (2 rounds, overruled) — run done");
    assert_eq!(story.starts.matches("a.coverage").count(), 1, "{}", story.starts);
}

#[test]
fn a_repair_is_proven_by_the_commands_that_it_repairs() {
    let text = "plan a; b\n with red-green\n run: validate fails, validate ok";
    let story = check(text, "a done · b done · mend-1 done — run done");
    assert_eq!(added(&story).last().unwrap(), "mend-1");
    assert!(story.starts.contains("a.coverage") && story.starts.contains("b.coverage"));
    assert!(!story.starts.contains("mend-1.coverage"), "{}", story.starts);
}

#[test]
fn a_goal_needs_a_test_that_fails_without_what_was_done() {
    let story = check("goal a\n with red-green", "a done — run done");
    assert!(story.starts.contains("run.validate run.coverage run.completion"), "{}", story.starts);
    let text = "goal a\n with red-green\n limit rounds 1\n run: coverage fails, completion done";
    check(text, "a done — run failed: did not converge in 1 iteration (overruled)");
    let story = check(
        "goal a\n with red-green\n run: coverage fails, completion done",
        "a done · a-i2 done — run done (2 rounds, overruled)",
    );
    assert_eq!(story.starts.matches("run.coverage").count(), 2, "{}", story.starts);
}

#[test]
fn a_crash_while_tests_are_mapped_costs_neither_a_round_nor_the_work() {
    for text in [
        "task a\n with red-green\n crash during a coverage",
        "goal a\n with red-green\n crash during run coverage",
    ] {
        let story = story(text);
        assert!(
            story.board.contains("run done") && !story.board.contains("round"),
            "{}",
            story.board
        );
        assert_eq!(story.starts.matches("coverage").count(), 2, "{}", story.starts);
    }
}

/// A task whose first map is this one. A round that fails is followed by one that is covered.
fn mapped(words: &str) -> String {
    let said: String = words.split_whitespace().map(|word| format!(" maps {word}")).collect();
    format!("{WITH}\n a: coverage ok{said}")
}

#[test]
fn a_map_is_believed_only_of_tests_that_fail_without_the_change() {
    for words in ["AC-1=red AC-2=weak", "AC-1=red+old AC-2=red", "AC-1=weak AC-2=mended"] {
        let story = check(&mapped(words), "a done — run done");
        let doubts = &story.state.tasks[1].results[&Step::Coverage].facts.doubts;
        assert!(doubts.len() == 1 && doubts[0].text.contains("`vacuous`"), "{doubts:?}");
    }
    for words in [
        "AC-1=red AC-2=old",
        "AC-1=vacuous AC-2=red",
        "AC-1=red AC-2=none",
        "AC-1=red AC-2=file.sh",
        "AC-1=red",
        "AC-1=red AC-3=red",
        "AC-1=red AC-2=red no:AC-2",
        "AC-1=red AC-2=red unsure",
        "AC-1=red AC-2=red nothing-red",
    ] {
        let story = check(&mapped(words), "a done (2 rounds, overruled) — run done");
        assert_eq!(story.starts.matches("a.coverage").count(), 2, "{words}: {}", story.starts);
    }
}

#[test]
fn names_that_nobody_knows_are_asked_for_again() {
    for (words, faults) in [("AC-1=red AC-2=old", 0), ("AC-1=none AC-3=red", 3)] {
        let text = format!("{}\n limit rounds 1", mapped(words));
        let story = story(&text);
        let notes = &story.state.tasks[1].results[&Step::Coverage].facts.notes;
        assert_eq!(notes.len(), faults, "{notes:?}");
    }
}

#[test]
fn what_was_red_on_the_base_of_the_run_counts_where_the_change_stands_on_it() {
    let text = "queue a; b\n with red-green\n limit rounds 1
         a: coverage ok maps AC-1=mended maps AC-2=mended
         b: coverage ok maps AC-1=mended maps AC-2=mended";
    check(
        text,
        "a done · b failed: did not converge in 1 iteration (overruled) — run failed: 1 task failed",
    );
}

#[test]
fn tests_without_names_are_a_fault_of_the_configuration() {
    let story = story(&mapped("AC-1=red AC-2=red no-names"));
    assert!(story.board.contains("gates.reports"), "{}", story.board);
}
