//! Tests of the base that do not pass as they did: who may account for them, and what follows if nobody
//! does.

use super::check;
use autopilot_core::doubt::DoubtKind;
use autopilot_core::three_runs;
use autopilot_core::yardstick::{TreeView, YardstickRules, YardstickShare};
use std::collections::BTreeSet;

fn once(limits: &str, round: &str) -> String {
    let again = round.replace("build ok, ", "");
    format!("task a\n limit rounds 2{limits}\n a: {round}, fix ok tree t2, {again}")
}

#[test]
fn a_test_of_the_base_that_nobody_accounts_for_fails_the_round() {
    let text = once("", "build ok, validate ok opens t1, review approves");
    check(
        &text,
        "a failed: did not converge in 2 iterations (2 rounds, overruled) — run failed: 1 task failed",
    );
    for accepted in ["accepts t1", "accepts t2 accepts t1"] {
        let text = format!("task a\n a: validate ok opens t1, review approves {accepted}");
        check(&text, "a done — run done");
    }
    let text = once("", "build ok, validate ok opens t1 loses t2, review approves accepts t1");
    check(
        &text,
        "a failed: did not converge in 2 iterations (2 rounds, overruled) — run failed: 1 task failed",
    );
}

#[test]
fn the_next_round_may_mend_what_the_first_has_broken() {
    let text = "task a\n a: build ok, validate ok opens t1, review approves, fix ok, validate ok";
    check(text, "a done (2 rounds, overruled) — run done");
}

#[test]
fn what_the_run_allows_decides_who_may_accept() {
    check("task a\n limit yardstick told\n a: validate ok opens t1", "a done — run done");
    let refused =
        once(", yardstick refused", "build ok, validate ok opens t1, review approves accepts t1");
    check(
        &refused,
        "a failed: did not converge in 2 iterations (2 rounds, overruled) — run failed: 1 task failed",
    );
}

#[test]
fn a_person_is_asked_where_the_run_says_so_and_nobody_else_counts() {
    let text =
        "task a\n limit yardstick person\n a: validate ok opens t1, review approves accepts t1";
    let story = check(&format!("{text}\n approve"), "a done — run done");
    assert!(story.starts.contains("a.accept_tests"), "{}", story.starts);
    let none = check("task a\n limit yardstick person", "a done — run done");
    assert!(!none.starts.contains("accept_tests"), "{}", none.starts);
    let text = format!("{text}, fix ok, validate ok\n reject");
    check(&text, "a done (2 rounds, overruled) — run done");
}

const ASKS: &str = "validate ok opens t1, review approves";

#[test]
fn what_is_in_the_way_of_an_asked_task_alone_lets_the_run_rest() {
    let text = format!(
        "together a, paths src; b, paths src\n limit yardstick person, overlaps wait\n a: {ASKS}"
    );
    let story = check(&text, "a running accept_tests · b at build — run goes on");
    assert!(story.state.is_at_rest());
    check(&format!("{text}\n boot; boot"), "a running accept_tests · b at build — run goes on");
    let story = check(&format!("{text}\n approve"), "a done · b done — run done");
    assert!(story.starts.find("b.build") > story.starts.find("a.merge"), "{}", story.starts);
    check(&format!("{text}\n skip a"), "a skipped · b done — run done");
    // One with other paths is not kept from its work.
    let text = text.replace("b, paths src", "b, paths docs");
    let story = check(&text, "a running accept_tests · b done — run goes on");
    assert!(story.state.is_at_rest());
}

#[test]
fn a_run_that_asks_does_not_rest_over_what_time_alone_brings() {
    let asks = format!("limit yardstick person\n a: {ASKS}");
    for away in ["build quota 2h", "build unreachable", "merge hindered"] {
        let text = format!("together a; b\n {asks}\n b: {away}\n");
        let story = check(&text, "a running accept_tests · b done — run goes on");
        assert!(story.state.is_at_rest(), "{away}");
    }
}

#[test]
fn a_person_who_is_asked_may_leave_the_task_out() {
    let text = format!("together a; b after a; c\n limit yardstick person\n a: {ASKS}\n skip a");
    check(&text, "a skipped · b done · c done — run done");
    // Whoever is asked about two tasks and leaves one out is still asked about the other.
    let two = format!("together a; b\n limit yardstick person\n a: {ASKS}\n b: {ASKS}\n");
    check(&format!("{two} skip a"), "a skipped · b running accept_tests — run goes on");
    check(&format!("{two} skip a; approve"), "a skipped · b done — run done");
    // What is left out with the task it is in is not asked about either.
    let text = format!("plan p, expand; c in p; d\n limit yardstick person\n c: {ASKS}\n skip p");
    let story = check(&text, "p skipped · d done · c stopped by p — run done");
    assert!(story.state.gate().is_none());
}

#[test]
fn tests_that_do_not_compile_are_told_and_fail_no_round() {
    let story = check("task a\n a: validate ok uncompiled t1", "a done — run done");
    let policy = story.state.run.limits.yardstick_changes;
    let told = three_runs::doubts_of(policy, &story.state.tasks[1]);
    assert_eq!(told.iter().map(|doubt| doubt.kind).collect::<Vec<_>>(), [DoubtKind::Yardstick]);
}

#[test]
fn a_goal_is_not_met_over_tests_that_nobody_accepted() {
    let text = "goal a\n limit rounds 1\n run: validate ok opens t1, completion done";
    check(text, "a done — run failed: did not converge in 1 iteration (overruled)");
    let accepted = "run: validate ok opens t1, completion done accepts t1";
    check(&format!("goal a\n {accepted}"), "a done — run done");
    // Where only a person may accept them, the judge's word does not count.
    let text = format!("goal a\n limit yardstick person\n limit rounds 1\n {accepted}");
    check(&text, "a done — run failed: did not converge in 1 iteration (overruled)");
}

#[test]
fn what_a_test_reads_and_what_stands_for_its_runner_decide_as_it_does() {
    let files = [
        ("tests/a.sh", ". helpers/assert.sh; is \"$(cat expected/a.txt)\" \"$(sh a.sh)\""),
        ("helpers/assert.sh", ""),
        ("expected/a.txt", ""),
        ("a.sh", ""),
        ("bin/runs", ""),
    ];
    let paths: BTreeSet<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
    let read =
        |path: &str| files.iter().find(|(own, _)| *own == path).map(|(_, text)| (*text).to_owned());
    let trees = [TreeView { paths: &paths, read: &read }];
    let commands = [("tests".to_owned(), "PATH=bin:$PATH runs tests".to_owned())];
    let rules = YardstickRules::new(&[], &commands, &trees);
    let is_product = |path: &str| rules.share(path, [Some(""), None]) == YardstickShare::None;
    assert!(is_product("a.sh"));
    for path in ["tests/a.sh", "helpers/assert.sh", "expected/a.txt", "bin/runs"] {
        assert!(!is_product(path), "{path}");
    }
}
