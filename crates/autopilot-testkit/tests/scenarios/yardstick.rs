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
    let text = "goal a\n run: validate ok opens t1, completion done accepts t1";
    check(text, "a done — run done");
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
