//! Goals: workflows, their steps, the word on completion, and what comes of it.

use super::{added, check, order, story};
use autopilot_core::event::{Event, Failure, Outcome, Skip, TaskEnd};
use autopilot_core::pipeline::Switch;
use autopilot_core::state::{Status, Task};
use autopilot_core::step::Step;
use autopilot_testkit::scenario::Story;

/// Everything that is done for a step that goes well.
fn worked(name: &str) -> String {
    format!("{name}.step {name}.merge")
}

fn times(story: &Story, start: &str) -> usize {
    story.starts.split(' ').filter(|it| *it == start).count()
}

fn root(story: &Story) -> &Task {
    &story.state.tasks[0]
}

/// The steps and reasons of every failed iteration.
fn reasons(story: &Story) -> Vec<(u32, Step, String)> {
    let mut found = Vec::new();
    for event in story.records.iter().flat_map(|record| &record.events) {
        if let Event::RoundFailed { round, reasons, .. } = event {
            found.extend(reasons.iter().map(|why| (*round, why.step, why.text.clone())));
        }
    }
    found
}

/// The outcomes of a step of the run, in order.
fn outcomes(story: &Story, of: Step) -> Vec<Outcome> {
    let mut found = Vec::new();
    for event in story.records.iter().flat_map(|record| &record.events) {
        if let Event::AttemptEnded { step, outcome, .. } = event
            && *step == of
        {
            found.push(outcome.clone());
        }
    }
    found
}

// Iterations.

#[test]
fn one_iteration_makes_works_proves_and_asks() {
    let story = check("goal a; b after a", "a done · b done — run done");
    let steps = format!("{} {}", worked("a"), worked("b"));
    assert_eq!(story.starts, format!("run.workflow {steps} run.validate run.completion"));
    assert_eq!(story.merged, "a1 b1");
    assert_eq!(root(&story).round, 1);
}

#[test]
fn not_done_without_a_next_workflow_has_one_made() {
    let story = check(
        "goal a; b after a\n run: completion unfinished",
        "a done · b done · a-i2 done · b-i2 done — run done (2 rounds)",
    );
    assert_eq!(times(&story, "run.workflow"), 2);
    assert_eq!(reasons(&story), [(1, Step::Completion, "completion said no".to_owned())]);
    assert_eq!(story.merged, "a1 b1 a-i21 b-i21");
}

#[test]
fn the_next_workflow_is_worked_on_instead_of_another_one_made() {
    let story = check(
        "goal a\n run: completion unfinished bringing c+d<c",
        "a done · c done · d done — run done (2 rounds)",
    );
    assert_eq!(times(&story, "run.workflow"), 1);
    assert_eq!((times(&story, "run.validate"), times(&story, "run.completion")), (2, 2));
    let places =
        order(&story.starts, &["a.merge", "run.completion", "c.step", "c.merge", "d.step"]);
    assert!(places.is_sorted(), "{}", story.starts);
}

#[test]
fn made_and_brought_workflows_follow_each_other() {
    let story = check(
        "goal a
         run: completion unfinished like x bringing c, completion unfinished like y, workflow ok bringing e, completion unfinished like z bringing f",
        "a done · c done · e done · f done — run done (4 rounds)",
    );
    assert_eq!(times(&story, "run.workflow"), 2);
    assert_eq!(story.merged, "a1 c1 e1 f1");
}

#[test]
fn steps_that_come_with_a_yes_are_not_taken() {
    let story = check("goal a\n run: completion done bringing c", "a done — run done");
    assert_eq!(added(&story), ["a"]);
}

#[test]
fn a_step_brings_no_steps() {
    let story = check("goal a\n a: step ok bringing c", "a done — run done");
    assert_eq!(added(&story), ["a"]);
}

#[test]
fn iterations_are_as_many_as_allowed_and_everything_is_kept() {
    let story = check(
        "goal a\n limit rounds 2\n run: completion unfinished, completion unfinished",
        "a done · a-i2 done — run failed: did not converge in 2 iterations (2 rounds)",
    );
    assert_eq!(times(&story, "run.completion"), 2);
    assert_eq!(story.merged, "a1 a-i21", "what was made stays");
    let text =
        "goal a\n limit rounds 2\n run: completion unfinished, completion unfinished bringing c";
    let story = check(
        text,
        "a done · a-i2 done · c open — run failed: did not converge in 2 iterations (2 rounds)",
    );
    assert_eq!(times(&story, "c.step"), 0);
}

#[test]
fn a_run_that_did_not_converge_goes_on_with_the_next_iteration_when_a_person_asks() {
    let story = check(
        "goal a\n limit rounds 1\n run: completion unfinished\n retry run",
        "a done · a-i2 done — run done (2 rounds)",
    );
    assert_eq!(times(&story, "run.workflow"), 2);
    let story = check(
        "goal a\n limit rounds 1\n run: completion unfinished bringing c\n retry run",
        "a done · c done — run done (2 rounds)",
    );
    assert_eq!(times(&story, "run.workflow"), 1, "what was brought is what comes next");
    // As many as were allowed are allowed once more.
    check(
        "goal a
         limit rounds 2
         run: completion unfinished like x, completion unfinished like y, completion unfinished, completion unfinished like x
         retry run",
        "a done · a-i2 done · a-i3 done · a-i4 done — run failed: did not converge in 2 iterations (4 rounds)",
    );
}

#[test]
fn a_lifetime_of_iterations_is_not_begun_anew() {
    let story = check(
        "goal a\n limit rounds 5, lifetime 1\n run: completion unfinished\n retry run",
        "a done — run failed: stopped: the task has used all its rounds (1)",
    );
    assert_eq!(times(&story, "run.workflow"), 1);
}

#[test]
fn the_same_words_over_and_over_trip_a_rail() {
    check(
        "goal a
         limit same 2
         run: completion unfinished, completion unfinished",
        "a done · a-i2 done — run failed: stopped: the same failure 2 rounds in a row (2 rounds)",
    );
}

// Workflows that can't be worked on.

#[test]
fn a_workflow_that_is_refused_costs_its_iteration_and_the_next_is_tried() {
    let story = check("goal a\n run: workflow fails", "a-i2 done — run done (2 rounds)");
    assert_eq!(reasons(&story), [(1, Step::Workflow, "workflow said no".to_owned())]);
    assert_eq!(times(&story, "run.completion"), 1, "of nothing nothing is asked");
}

#[test]
fn a_workflow_that_is_refused_in_the_last_iteration_ends_the_run() {
    let text = "goal a\n limit rounds 2\n run: completion unfinished, workflow fails";
    let story = check(text, "a done — run failed: did not converge in 2 iterations (2 rounds)");
    assert_eq!(story.merged, "a1");
    let story = check(&format!("{text}\n retry run"), "a done · a-i3 done — run done (3 rounds)");
    assert_eq!(times(&story, "run.completion"), 2);
}

#[test]
fn a_workflow_that_breaks_is_tried_again_in_its_iteration() {
    check("goal a\n run: workflow broke", "a done — run done (1 retry)");
    let text = "goal a\n run: workflow broke, workflow broke";
    check(text, " — run failed: workflow broke: exit status 1 (2 retries)");
    check(&format!("{text}\n retry run"), "a done — run done");
}

#[test]
fn a_second_workflow_that_broke_is_made_when_the_run_is_retried() {
    let story = check(
        "goal a\n run: completion unfinished, workflow broke, workflow broke\n retry run",
        "a done · a-i2 done — run done (2 rounds)",
    );
    assert_eq!(times(&story, "run.completion"), 2, "an iteration of nothing is not assessed");
}

#[test]
fn a_workflow_without_steps_has_broken() {
    check("goal a\n run: workflow ok bringing nothing", "a done — run done (1 retry)");
}

#[test]
fn names_are_unique_over_all_iterations() {
    let story = check(
        "goal a\n run: completion unfinished, workflow ok bringing a",
        "a done · a-i2 done — run done (2 rounds, 1 retry)",
    );
    assert_eq!(added(&story), ["a", "a-i2"]);
    // So has a word on completion that brings a step there is.
    check("goal a\n run: completion unfinished bringing a", "a done — run done (1 retry)");
    check(
        "goal a\n run: completion unfinished bringing c+c, completion unfinished bringing c<b",
        "a done — run failed: completion broke: it returned task c before b, which it needs (2 retries)",
    );
}

// Steps that fail.

#[test]
fn a_failed_step_is_not_tried_again_and_is_weighed_with_the_rest() {
    let story = check(
        "goal a; b\n a: step fails",
        "a failed: step failed: step said no · b done — run done",
    );
    assert_eq!(times(&story, "a.step"), 1);
    assert_eq!(times(&story, "a.merge"), 0, "nothing of it is on the branch");
    assert_eq!(story.merged, "b1");
}

#[test]
fn a_step_that_runs_out_of_time_has_failed() {
    let story = check(
        "goal a; b after a\n a: step times-out",
        "a failed: step failed: it ran into its time limit · b done — run done",
    );
    assert_eq!(times(&story, "a.step"), 1);
}

#[test]
fn without_fail_fast_what_depends_on_a_failure_is_begun_all_the_same() {
    let story = check(
        "goal a; b after a; c after b\n a: step fails",
        "a failed: step failed: step said no · b done · c done — run done",
    );
    assert!(order(&story.starts, &["a.step", "b.step", "b.merge", "c.step"]).is_sorted());
}

#[test]
fn with_fail_fast_what_depends_on_a_failure_is_left_out_and_the_rest_goes_on() {
    let story = check(
        "goal a; b after a; c after b; d; e after d\n with fail-fast\n a: step fails",
        "a failed: step failed: step said no · b blocked by a · c blocked by a · d done · e done — run done",
    );
    assert_eq!(times(&story, "b.step") + times(&story, "c.step"), 0);
    assert_eq!(times(&story, "run.completion"), 1, "it is assessed");
}

#[test]
fn a_step_waits_for_all_it_needs_and_for_no_more() {
    let story = check(
        "goal a; b; c after a b; d after b
         a: step times-out
         look during d step",
        "a running step · b done · c open · d running step — run goes on",
    );
    assert_eq!(times(&story, "c.step"), 0);
}

#[test]
fn when_all_steps_have_failed_somebody_is_asked_all_the_same() {
    let story = check(
        "goal a; b\n a: step fails\n b: step fails\n run: completion unfinished",
        "a failed: step failed: step said no · b failed: step failed: step said no · a-i2 done · b-i2 done — run done (2 rounds)",
    );
    let words = ["a.step", "run.validate", "run.completion", "run.workflow"];
    assert!(order(&story.starts[12..], &words[..3]).is_sorted(), "{}", story.starts);
}

#[test]
fn a_failure_of_an_earlier_iteration_does_not_stand_in_the_way_of_a_later_one() {
    // To wait for what does not come is no next step: whoever says so has broken.
    check(
        "goal a; b after a\n with fail-fast\n a: step fails\n run: completion unfinished bringing c<b",
        "a failed: step failed: step said no · b blocked by a — run done (1 retry)",
    );
    check(
        "goal a; b after a\n with fail-fast\n a: step fails\n run: completion unfinished",
        "a failed: step failed: step said no · b blocked by a · a-i2 done · b-i2 done — run done (2 rounds)",
    );
}

#[test]
fn nobody_is_asked_before_every_step_is_over() {
    let story = story("goal a; b; c after a\n limit workers 2\n b: step times-out");
    let words = ["b.step", "c.merge", "run.validate", "run.completion"];
    assert!(order(&story.starts, &words).is_sorted(), "{}", story.starts);
    let at = |step| outcomes(&story, step).len();
    assert_eq!((at(Step::Validate), at(Step::Completion)), (1, 1));
}

#[test]
fn as_many_steps_at_once_as_allowed() {
    check(
        "goal a; b; c\n limit workers 2\n look during b step",
        "a running step · b running step · c at step — run goes on",
    );
    let story = story("goal a; b; c\n limit workers 1");
    let words = ["a.step", "b.step", "c.step"];
    assert!(order(&story.starts, &words).is_sorted(), "{}", story.starts);
}

// Proof.

#[test]
fn done_over_failing_tests_is_overruled_and_the_reason_is_carried_on() {
    let story = check(
        "goal a\n run: validate fails, completion done",
        "a done · a-i2 done — run done (2 rounds, overruled)",
    );
    assert_eq!(reasons(&story), [(1, Step::Validate, "validate said no".to_owned())]);
    assert_eq!(times(&story, "run.workflow"), 2);
    assert!(root(&story).notes.iter().any(|note| note.contains("although validate said no")));
}

#[test]
fn done_over_failing_tests_in_the_last_iteration_is_not_done() {
    let story = check(
        "goal a\n with push\n limit rounds 1\n run: validate fails, completion done",
        "a done — run failed: did not converge in 1 iteration (overruled)",
    );
    assert_eq!(times(&story, "run.push"), 0);
}

#[test]
fn failing_tests_and_a_no_are_no_contradiction() {
    let story = check(
        "goal a\n run: validate fails, completion unfinished bringing c",
        "a done · c done — run done (2 rounds)",
    );
    assert_eq!(reasons(&story), [(1, Step::Completion, "completion said no".to_owned())]);
}

#[test]
fn every_iteration_is_proven_anew() {
    let story = check(
        "goal a\n run: validate ok, completion unfinished bringing c, validate fails, completion done, workflow ok bringing d",
        "a done · c done · d done — run done (3 rounds, overruled)",
    );
    assert_eq!(times(&story, "run.validate"), 3);
    let words = ["d.merge", "run.validate", "run.completion"];
    let last = story.starts.find("d.step").unwrap();
    assert!(order(&story.starts[last..], &words).is_sorted(), "{}", story.starts);
}

#[test]
fn without_tests_the_word_counts_and_it_is_on_the_record_that_nothing_was_proven() {
    let story = check("goal a\n without proof", "a done — run done");
    assert_eq!(times(&story, "run.validate"), 0);
    assert!(root(&story).skipped[&Step::Validate].contains("nothing was proven"));
    check(
        "goal a\n without proof\n run: completion unfinished",
        "a done · a-i2 done — run done (2 rounds)",
    );
}

#[test]
fn a_base_that_fails_begins_nothing() {
    let story = check(
        "goal a\n with baseline\n run: preflight fails",
        " — run failed: preflight failed: preflight said no",
    );
    assert_eq!(story.starts, "run.preflight");
    check("goal a\n with baseline", "a done — run done");
}

#[test]
fn what_needs_a_step_that_is_continued_waits_for_it() {
    for cut in ["crash during a step", "stop during a step"] {
        let story = story(&format!(
            "goal a; b after a\n stop now during b step; continue a; {cut}; resume"
        ));
        assert!(story.board.ends_with("run done"), "{cut}: {}", story.board);
        let of_steps = story.starts.split(' ').filter(|it| !it.starts_with("run."));
        let order: Vec<&str> = of_steps.collect();
        let (last_of_a, last_of_b) = (
            order.iter().rposition(|it| it.starts_with("a.")),
            order.iter().rposition(|it| *it == "b.step"),
        );
        assert!(last_of_a < last_of_b, "{cut}: {}", story.starts);
        assert_eq!(times(&story, "b.step"), 2, "{cut}: {}", story.starts);
    }
}

// Merging.

#[test]
fn a_step_whose_merge_conflicts_is_repaired_and_merged_once() {
    let story = check("goal a; b\n a: merge conflicts", "a done (2 rounds) · b done — run done");
    assert_eq!((times(&story, "a.step"), times(&story, "a.fix")), (1, 1));
    let mut merged: Vec<&str> = story.merged.split(' ').collect();
    merged.sort_unstable();
    assert_eq!(merged, ["a2", "b1"]);
}

#[test]
fn a_conflict_is_repaired_also_in_the_only_iteration_of_a_run() {
    let text = "goal a; b\n limit rounds 1, rounds below 2\n a: merge conflicts";
    check(text, "a done (2 rounds) · b done — run done");
    check(
        &format!("{text}, fix ok, merge conflicts"),
        "a failed: did not converge in 2 iterations (2 rounds) · b done — run done",
    );
    // The run itself has no more than the one.
    check(
        &format!("{text}\n run: completion unfinished"),
        "a done (2 rounds) · b done — run failed: did not converge in 1 iteration",
    );
}

#[test]
fn a_step_whose_conflicts_are_not_repaired_has_failed() {
    check(
        "goal a; b\n limit rounds 2\n a: merge conflicts, fix fails",
        "a failed: did not converge in 2 iterations (2 rounds) · b done — run done",
    );
    check(
        "goal a; b\n limit rounds 2\n a: merge conflicts, fix ok, merge conflicts",
        "a failed: did not converge in 2 iterations (2 rounds) · b done — run done",
    );
}

#[test]
fn a_repair_that_is_refused_is_repaired_and_never_merged() {
    let story = check(
        "goal a; b\n a: merge conflicts, fix fails, fix ok",
        "a done (3 rounds) · b done — run done",
    );
    assert_eq!((times(&story, "a.fix"), times(&story, "a.merge")), (2, 2));
    assert!(story.merged.split(' ').all(|it| it != "a2"), "{}", story.merged);
}

// Each outcome spends its own limit.

#[test]
fn a_completion_that_breaks_is_asked_again_and_then_the_run_fails() {
    let story = check("goal a\n run: completion broke", "a done — run done (1 retry)");
    assert_eq!(times(&story, "run.validate"), 1, "what was proven stays proven");
    let text = "goal a\n run: completion broke, completion broke";
    check(text, "a done — run failed: completion broke: exit status 1 (2 retries)");
    let story = check(&format!("{text}\n retry run"), "a done — run done");
    assert_eq!(times(&story, "a.step"), 1);
    assert_eq!(times(&story, "run.workflow"), 1);
}

#[test]
fn a_completion_without_a_verdict_is_not_a_yes() {
    let story = check("goal a\n run: completion mute", "a done · a-i2 done — run done (2 rounds)");
    assert_eq!(reasons(&story)[0].1, Step::Completion);
}

#[test]
fn quota_of_a_step_and_of_the_completion_costs_no_retry_and_no_iteration() {
    let story = check(
        "goal a
         limit rounds 1, broken 0, interruptions 0
         a: step quota 1h
         run: workflow quota 1h, workflow ok, completion quota 1h",
        "a done — run done",
    );
    assert_eq!((times(&story, "a.step"), times(&story, "run.completion")), (2, 2));
}

#[test]
fn an_account_that_is_held_is_not_asked_by_other_steps_and_they_use_another() {
    let story = check(
        "goal a; b after a
         limit lanes step one two, lanes workflow one, lanes completion two
         a: step empty",
        "a done · b done — run done",
    );
    assert!(story.starts.contains("a.step a.step@two"), "{}", story.starts);
    let story = story_of_refusal();
    assert!(story.board.contains("run rests"), "{}", story.board);
    assert_eq!(times(&story, "a.merge"), 0);
}

fn story_of_refusal() -> Story {
    story("goal a; b\n limit lanes step one\n a: step refused, step refused\n b: step refused")
}

#[test]
fn a_step_that_has_spent_its_own_money_fails_and_the_run_goes_on() {
    check(
        "goal a; b after a\n limit usd per task 2\n a: step ok $1 $2",
        "a failed: task a has spent $2.00 of its limit of $2.00 ($2.00) · b done — run done",
    );
    // The run itself makes workflows and asks without such a limit.
    check(
        "goal a\n limit usd per task 2\n run: workflow ok $3, validate ok, completion done $3",
        "a done — run done ($6.00)",
    );
}

#[test]
fn money_of_the_run_ends_all_steps() {
    let story = check(
        "goal a; b\n limit usd 2\n a: step ok $1 $2",
        "a at step ($2.00) · b at step — run rests: the run has spent $2.00 of its limit of $2.00",
    );
    assert_eq!(story.starts, "run.workflow a.step b.step");
    check(
        "goal a; b\n limit usd 2\n a: step ok $1 $2\n set usd 9; resume",
        "a done ($4.00) · b done — run done",
    );
}

// People.

#[test]
fn a_failed_step_is_done_again_when_a_person_asks_and_all_is_assessed_again() {
    let story = check(
        "goal a; b after a
         limit rounds 1
         a: step fails
         run: completion unfinished
         retry a",
        "a done (2 rounds) · b done — run done",
    );
    assert_eq!((times(&story, "b.step"), times(&story, "run.workflow")), (1, 1));
    // The step itself, not a repair of what was refused.
    assert_eq!((times(&story, "a.step"), times(&story, "a.fix")), (2, 0));
    assert_eq!((times(&story, "run.validate"), times(&story, "run.completion")), (2, 2));
    assert_eq!(story.merged, "b1 a2");
}

#[test]
fn a_step_after_a_failure_can_be_done_again_where_failures_do_not_stop_it() {
    check(
        "goal a; b after a
         limit rounds 1
         a: step fails
         b: step fails
         run: completion unfinished
         retry b",
        "a failed: step failed: step said no · b done (2 rounds) — run done",
    );
    // With fail-fast it was never begun, and still has nothing to begin with.
    let story = check(
        "goal a; b after a
         with fail-fast
         limit rounds 1
         a: step fails
         run: completion unfinished
         retry b; retry a",
        "a done (2 rounds) · b done — run done",
    );
    assert!(order(&story.starts, &["a.merge", "b.step"]).is_sorted(), "{}", story.starts);
}

#[test]
fn an_iteration_that_is_mended_is_judged_again_before_the_next_one_begins() {
    let text = "goal a\n limit rounds 1\n a: step fails\n run: completion unfinished bringing c";
    let story = check(&format!("{text}\n retry a"), "a done (2 rounds) · c dropped — run done");
    assert_eq!((times(&story, "run.workflow"), times(&story, "run.completion")), (1, 2));
    check(&format!("{text}\n skip a"), "a skipped · c dropped — run done");
    let story =
        check(&format!("{text}\n continue a; resume"), "a done (2 rounds) · c dropped — run done");
    assert_eq!((times(&story, "run.validate"), times(&story, "run.completion")), (2, 2));
}

#[test]
fn what_was_dropped_with_its_round_stays_so_and_opens_nothing() {
    let text =
        "goal a\n limit rounds 1\n a: step fails\n run: completion unfinished bringing c\n retry a";
    for asks in ["retry c", "skip c"] {
        let story = check(&format!("{text}\n {asks}"), "a done (2 rounds) · c dropped — run done");
        assert_eq!(times(&story, "run.completion"), 2, "{asks}: nobody is asked once more");
    }
}

#[test]
fn a_failed_step_that_a_later_workflow_has_replaced_is_done_again_and_judged_with_the_rest() {
    let story = check(
        "goal a\n a: step fails\n run: completion unfinished bringing c\n retry a",
        "a done (2 rounds) · c done — run done (2 rounds)",
    );
    assert_eq!(story.merged, "c1 a2");
    let last = story.starts.rfind("a.step").unwrap();
    let order = order(&story.starts[last..], &["a.merge", "run.validate", "run.completion"]);
    assert!(order.is_sorted(), "{}", story.starts);
}

#[test]
fn a_person_continues_a_step_and_nothing_else() {
    let story = check(
        "goal a; b after a
         a: step fails
         stop during b step; continue a",
        "a done (2 rounds) · b at merge — run rests: the step was continued, as asked",
    );
    assert_eq!(story.merged, "a2");
    let story = check(
        "goal a; b after a
         a: step fails
         stop during b step; continue a; resume",
        "a done (2 rounds) · b done — run done",
    );
    assert_eq!((times(&story, "a.step"), times(&story, "b.step")), (2, 1));
    assert_eq!(story.merged, "a2 b1");
}

#[test]
fn a_done_step_that_is_continued_is_merged_again_and_all_is_proven_again() {
    let story =
        check("goal a; b after a\n continue a; resume", "a done (2 rounds) · b done — run done");
    assert_eq!(story.merged, "a1 b1 a2");
    assert_eq!(times(&story, "b.step"), 1, "what followed from it is not done again");
    assert_eq!((times(&story, "run.validate"), times(&story, "run.completion")), (2, 2));
    let words = ["a.step", "run.validate", "run.completion"];
    let last = story.starts.rfind("a.step").unwrap();
    assert!(order(&story.starts[last..], &words).is_sorted(), "{}", story.starts);
}

#[test]
fn an_iteration_lost_without_steps_is_not_repeated_when_an_earlier_step_is_continued() {
    let text = "goal a\n limit rounds 2\n run: completion unfinished, workflow fails";
    let story = check(
        &format!("{text}\n continue a"),
        "a done (2 rounds) — run rests: the step was continued, as asked",
    );
    assert_eq!(root(&story).round, 3);
    assert_eq!(times(&story, "run.workflow"), 2, "the next workflow waits for a person");
    let story = check(
        &format!("{text}\n continue a; resume"),
        "a done (2 rounds) · a-i3 done — run done (3 rounds)",
    );
    assert_eq!(times(&story, "run.workflow"), 3);
    // As after a retry of the run, as many iterations are allowed as at first, and no more.
    check(
        &format!("{text}, workflow fails like x, workflow fails like y\n continue a; resume"),
        "a done (2 rounds) — run failed: did not converge in 2 iterations (4 rounds)",
    );
    // A workflow that broke has lost no iteration.
    let story = check(
        "goal a\n limit retries workflow 0\n run: completion unfinished, workflow broke
         continue a; resume",
        "a done (2 rounds) · a-i2 done — run done (2 rounds)",
    );
    assert_eq!(times(&story, "run.workflow"), 3);
}

#[test]
fn an_iteration_without_steps_that_was_judged_is_judged_again_when_a_step_is_continued() {
    let text = "goal a\n limit rounds 2\n a: step fails
         run: completion unfinished, workflow fails
         retry a";
    for stop in ["; boot", "; stop during run validate", "; stop during run completion"] {
        let story = check(
            &format!("{text}{stop}; continue a; resume"),
            "a done (3 rounds) — run done (2 rounds)",
        );
        assert_eq!(times(&story, "run.workflow"), 2, "{stop}: no other workflow is made");
        let last = story.starts.rfind("a.step").unwrap();
        let places = order(&story.starts[last..], &["a.merge", "run.validate", "run.completion"]);
        assert!(places.is_sorted(), "{stop}: {}", story.starts);
    }
}

#[test]
fn a_step_of_an_earlier_iteration_that_is_continued_is_in_what_is_proven() {
    let story = check(
        "goal a\n run: completion unfinished bringing c\n stop during c merge; continue a; resume",
        "a done (2 rounds) · c done — run done (2 rounds)",
    );
    let mut merged: Vec<&str> = story.merged.split(' ').collect();
    merged.sort_unstable();
    assert_eq!(merged, ["a1", "a2", "c1"]);
    // Also where the tests of the iteration had passed already.
    let story = check(
        "goal a\n run: completion unfinished bringing c
         stop during run validate; resume; stop during run validate; continue a; resume",
        "a done (2 rounds) · c done — run done (2 rounds)",
    );
    let last = story.starts.rfind("a.step").unwrap();
    assert!(
        order(&story.starts[last..], &["a.merge", "run.validate", "run.completion"]).is_sorted()
    );
}

#[test]
fn a_crash_while_a_step_is_continued_changes_nothing() {
    for crash in ["crash during a step", "crash after a step", "crash during a merge"] {
        let story = story(&format!("goal a; b after a\n continue a; {crash}; resume"));
        assert_eq!(story.merged, "a1 b1 a2", "{crash}");
        assert!(story.board.ends_with("run done"), "{crash}: {}", story.board);
    }
}

#[test]
fn what_was_never_begun_can_not_be_continued() {
    let text = "goal a; b after a\n with fail-fast\n limit rounds 1\n a: step fails\n run: completion unfinished";
    let plain = story(text);
    let asked = story(&format!("{text}\n continue b"));
    assert_eq!(plain.board, asked.board);
    assert_eq!(plain.starts, asked.starts);
}

#[test]
fn a_step_that_a_person_leaves_out_counts_as_done() {
    let story = check(
        "goal a; b after a\n with fail-fast\n skip a during a step",
        "a skipped · b done — run done",
    );
    assert_eq!(story.merged, "b1");
    check(
        "goal a; b after a\n with fail-fast\n limit rounds 1\n a: step fails\n run: completion unfinished\n skip a",
        "a skipped · b done — run done",
    );
}

#[test]
fn while_it_is_assessed_no_step_is_done_again() {
    let story = check(
        "goal a; b\n a: step fails\n retry a during completion; retry b during completion",
        "a failed: step failed: step said no · b done — run done",
    );
    assert_eq!(times(&story, "run.completion"), 1);
}

#[test]
fn a_done_step_is_not_done_again() {
    let story = check("goal a; b after a\n retry a during b step", "a done · b done — run done");
    assert_eq!(times(&story, "a.step"), 1);
}

#[test]
fn a_stopped_goal_goes_on_where_it_was() {
    for step in ["workflow", "a step", "a merge", "run validate", "completion"] {
        for how in ["stop", "stop now", "pause"] {
            let story = check(
                &format!("goal a; b after a\n {how} during {step}; resume"),
                "a done · b done — run done",
            );
            assert_eq!(story.merged, "a1 b1", "{how} during {step}");
            assert_eq!(times(&story, "a.merge"), 1, "{how} during {step}: {}", story.starts);
        }
    }
    check("goal a; b after a\n stop during a step", "a at merge · b open — run rests: stopped");
}

#[test]
fn a_result_that_a_person_rejects_is_not_pushed() {
    let text = "goal a\n with end-gate, push, pr";
    check(text, "a done — run asks: approve_result");
    let story = check(&format!("{text}\n approve"), "a done — run done");
    assert!(order(&story.starts, &["run.approve_result", "run.push"]).is_sorted());
    let story = check(
        &format!("{text}\n reject"),
        "a done — run failed: approve_result failed: rejected by a person: not like this",
    );
    assert_eq!(times(&story, "run.push"), 0);
    let story = check(&format!("{text}\n reject; retry run; boot; approve"), "a done — run done");
    assert_eq!(times(&story, "run.validate"), 2, "it is proven again");
}

// Crashes.

#[test]
fn a_crash_during_or_after_any_step_changes_nothing_in_what_is_made() {
    let steps = [
        "preflight",
        "workflow",
        "a step",
        "a merge",
        "b step",
        "b fix",
        "run validate",
        "completion",
        "c step",
        "c merge",
        "push",
        "pull_request",
    ];
    for step in steps {
        for when in ["during", "after"] {
            let story = story(&format!(
                "goal a; b after a
                 with baseline, push, pr
                 limit rounds 2, broken 0
                 b: merge conflicts
                 run: completion unfinished bringing c
                 crash {when} {step}"
            ));
            assert_eq!(story.merged, "a1 b2 c1", "{when} {step}");
            assert_eq!(added(&story), ["a", "b", "c"], "{when} {step}");
            assert!(story.board.contains("run done (2 rounds"), "{when} {step}: {}", story.board);
            for once in ["a.merge", "c.merge", "run.push", "run.pull_request"] {
                assert_eq!(times(&story, once), 1, "{when} {step}: {}", story.starts);
            }
        }
    }
}

#[test]
fn a_crash_repeats_no_step_that_was_over() {
    let story = check(
        "goal a; b after a; c after b
         a: step fails
         crash during b step; crash during c step; crash during completion",
        "a failed: step failed: step said no · b done (1 interruption) · c done (1 interruption) — run done (1 interruption)",
    );
    let counts = ["run.workflow", "a.step", "b.step", "c.step", "run.validate", "run.completion"];
    assert_eq!(counts.map(|start| times(&story, start)), [1, 1, 2, 2, 1, 2]);
}

#[test]
fn more_interruptions_than_allowed_fail_a_step_and_not_the_run() {
    check(
        "goal a; b\n limit interruptions 0\n a: step lost",
        "a failed: interrupted 1 time (1 interruption) · b done — run done",
    );
}

#[test]
fn a_word_of_a_dead_session_moves_nothing() {
    check(
        "goal a; b after a\n crash during a step; late a step ok during a step",
        "a done (1 interruption) · b done — run done",
    );
    check(
        "goal a\n run: completion unfinished\n crash during completion; late run completion ok during completion",
        "a done · a-i2 done — run done (2 rounds, 1 interruption)",
    );
}

// What is on the record.

#[test]
fn a_run_that_did_not_converge_says_so_in_its_end() {
    let story = story("goal a\n limit rounds 1\n run: completion unfinished");
    let end = TaskEnd::Failed { why: Failure::Rounds { rounds: 1 } };
    assert_eq!(root(&story).status, Status::Settled(end));
}

#[test]
fn who_was_left_out_is_told_for_whom() {
    let story = story("goal a; b after a; c after b\n with fail-fast\n a: step fails");
    let by = story.state.named("a").unwrap().id;
    for name in ["b", "c"] {
        let end = TaskEnd::Skipped { why: Skip::Blocked { by } };
        assert_eq!(story.state.named(name).unwrap().status, Status::Settled(end));
    }
    assert!(story.state.run.switches.contains(&Switch::FailFast));
}
