//! The result of a plan is judged as a whole by the plan itself, before the run is done: what its tasks
//! were asked for one by one may be less than what the plan asks for.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::plan::{
    RUN, TESTS, branch, builds, builds_when, configure, merged, merged_once_each, plan, says,
    stage, statuses_are, task,
};
use autopilot_testkit::stage::{APPROVES, Stage};
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
const PLAN: &str = "# Plan: Two files\n\nGoal:\n- The project has two files and one that joins them.\n\n\
                    Acceptance Criteria:\n- one.txt and two.txt are there\n- both.txt joins them\n\n\
                    Constraints:\n- plain text only\n";
const WHOLE: &str = "prompt: You review the result of a plan as a whole";
const APPROVED: &str = "{ verdict: APPROVE, summary: fine, issues: [] }";
/// Names the criterion of the plan that no task was asked to meet.
const REFUSED: &str = "{ verdict: REQUEST_CHANGES, summary: nothing joins the files, issues: \
                       [{ severity: major, message: both.txt is missing, fix: write it, criterion: 2 }] }";
const VAGUE: &str = "{ verdict: REQUEST_CHANGES, summary: I do not like it, issues: \
                     [{ severity: blocker, message: it is not nice, fix: do it again }] }";

/// A reviewer who says this of the whole in a round of the run.
fn whole_says(round: u32, answer: &str) -> String {
    format!("\n- step: review\n  {WHOLE}\n  iteration: {round}\n  do: [{{ answer: {answer} }}]\n")
}

/// A builder of what the reviewer of the whole misses.
const MENDS: &str = "
- step: [build, fix]
  task: review-fix-*
  do:
    - write: { both.txt: \"one two\\n\" }
    - answer: { changed_files: [both.txt], notes: joined }
";

fn two() -> Value {
    plan(&[task("one", &[]), task("two", &["one"])])
}

/// A plan of two tasks that pass one by one, and agents with these rules before the usual ones.
fn planned(rules: &[&str], config: &str) -> Stage {
    let stage = stage(BINARY, &two());
    stage.write("plan.md", PLAN);
    let (planner, builder) = (says(&two()), builds(&stage));
    stage.agents(&[rules, &[planner.as_str(), &builder, APPROVES]].concat());
    configure(&stage, &format!("{TESTS}{config}"));
    stage
}

/// The prompts of the reviews of the whole, in order.
fn prompts(stage: &Stage) -> Vec<String> {
    let mut files = stage.views("artifacts/");
    files.retain(|path| path.to_string_lossy().ends_with("run-review/prompt.txt"));
    files.sort();
    files.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// The evidence on the last commit of the run's branch.
fn evidence(stage: &Stage) -> Value {
    let text = stage.git(&["notes", "--ref", "refs/notes/autopilot", "show", &branch(stage)]);
    let mut values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    values.next().unwrap().unwrap()["predicate"]["whole"].clone()
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn tasks_that_pass_one_by_one_are_not_done_before_the_plan_is_met() {
    let stage = planned(&[&whole_says(1, REFUSED), MENDS], "");
    let said = stage.run(&RUN).expect(0).said();
    assert!(!said.contains("Look at this"), "{said}");
    merged_once_each(&stage, &["one", "two", "review-fix-1"]);
    assert_eq!(merged(&stage)[2], "review-fix-1");
    assert_eq!(prompts(&stage).len(), 2, "what was mended is reviewed again");
    has(
        &stage.texts_of("review-fix-1-build/prompt.txt"),
        &["nothing joins the files", "- major: both.txt is missing", "both.txt joins them"],
    );
    let task = stage.read(".autopilot/plan/tasks/review-fix-1.md");
    has(&task, &["- both.txt joins them"]);
    assert!(!task.contains("one.txt and two.txt are there"), "only what is missed: {task}");
    let reviews = evidence(&stage)["reviews"].clone();
    assert_eq!(reviews.as_array().unwrap().len(), 1, "{reviews}");
    assert_eq!(reviews[0]["step"], "whole_review");
    assert_eq!(
        (&reviews[0]["verdict"], &reviews[0]["overruled"]),
        (&"APPROVE".into(), &false.into())
    );
    stage.run(&["verify"]).expect(0);
    assert_eq!(stage.state_json()["whole_review"]["verdict"], "APPROVE");
    stage.run(&["show"]).expect(0).says(&["whole_review"]);
    stage.run(&["replay"]).expect(0);
}

#[test]
fn the_reviewer_of_the_whole_sees_the_plan_its_tasks_the_change_and_what_proves_it() {
    let stage = planned(&[], "");
    stage.run(&RUN).expect(0);
    let prompts = prompts(&stage);
    assert_eq!(prompts.len(), 1);
    has(
        &prompts[0],
        &[
            "The project has two files and one that joins them.",
            "1. one.txt and two.txt are there\n2. both.txt joins them\n",
            "## Constraints\n\n- plain text only\n",
            "one (DONE): Write one\n  1. one.txt has a line\n",
            "two (DONE): Write two\n",
            "+one 1\n",
            "+two 1\n",
            "tests: `sh test.sh`\nexit code 0 (passed)",
            "\"accepted_tests\"",
        ],
    );
}

#[test]
fn a_reviewer_who_never_agrees_ends_the_run_with_the_reason() {
    let never = format!("\n- step: review\n  {WHOLE}\n  do: [{{ answer: {REFUSED} }}]\n");
    let stage = planned(&[&never], "loop: { max_iterations: 2 }\n");
    stage.run(&RUN).expect(11).says(&["nothing joins the files", "FAILED"]);
    merged_once_each(&stage, &["one", "two", "review-fix-1"]);
    assert_eq!(stage.state_json()["current_state"], "FAILED");
    stage.run(&["status"]).says(&["nothing joins the files"]);
}

#[test]
fn an_approval_that_contradicts_itself_is_none() {
    let torn = "{ verdict: APPROVE, summary: fine, issues: [{ severity: blocker, message: it loses \
                data, fix: mend it }] }";
    let stage = planned(&[&whole_says(1, torn), MENDS], "");
    stage.run(&RUN).expect(0);
    merged_once_each(&stage, &["one", "two", "review-fix-1"]);
    has(
        &stage.texts_of("review-fix-1-build/prompt.txt"),
        &["even when asked again", "the issue “it loses data” is resolved"],
    );
}

#[test]
fn the_gate_of_reviews_holds_for_the_whole() {
    for (gate, answer, is_mended) in [
        ("required", VAGUE, true),
        ("evidence", VAGUE, false),
        ("evidence", REFUSED, true),
        ("advisory", REFUSED, false),
    ] {
        let config = format!("gates: {{ review: {gate} }}\n");
        let stage = planned(&[&whole_says(1, answer), MENDS], &config);
        let said = stage.run(&RUN).expect(0).said();
        let has_mended = merged(&stage).contains(&"review-fix-1".to_owned());
        assert_eq!(has_mended, is_mended, "{gate}: {said}");
        let told = format!("(`gates.review: {gate}`)");
        assert_eq!(said.contains("Look at this before you merge"), !is_mended, "{gate}: {said}");
        assert_eq!(said.contains(&told), !is_mended, "{gate}: {said}");
        assert_eq!(evidence(&stage)["reviews"][0]["overruled"], !is_mended, "{gate}");
        let shown = stage.run(&["show"]).expect(0).said();
        assert_eq!(shown.contains("whole_review overruled"), !is_mended, "{gate}: {shown}");
    }
}

#[test]
fn a_review_of_the_whole_that_is_switched_off_is_not_asked_for() {
    let off = "gates: { whole_review: false }\n";
    let stage = planned(&[&whole_says(1, REFUSED), MENDS], off);
    let said = stage.run(&RUN).expect(0).said();
    assert!(!said.contains("Look at this"), "{said}");
    assert_eq!(merged(&stage), ["one", "two"]);
    assert_eq!(prompts(&stage).len(), 0);
    let waived = evidence(&stage)["waived"].to_string();
    assert!(waived.contains("review of the whole skipped"), "{waived}");
    let dry = |stage: &Stage| stage.run(&["run", "plan.md", "--dry-run"]).expect(0).said();
    let told = "the reviewer then judges the whole";
    assert!(!dry(&stage).contains(told));
    configure(&stage, TESTS);
    assert!(dry(&stage).contains(told));
}

#[test]
fn a_person_who_waives_reviews_waives_that_of_the_whole() {
    let stage = planned(&[&whole_says(1, REFUSED), MENDS], "");
    stage.write(".autopilot/AUTOPILOT_SKIP_REVIEW", "");
    stage.run(&RUN).expect(0).says(&["Look at this", "the review was skipped"]);
    assert_eq!(merged(&stage), ["one", "two"]);
    assert_eq!(prompts(&stage).len(), 0);
}

#[test]
fn where_nothing_was_merged_there_is_nothing_to_review() {
    let stage = planned(&[], "");
    let slow = builds_when(&stage, "step: [build, fix]", "sleep 600");
    stage.agents(&[&says(&two()), &slow, APPROVES]);
    let run = stage.start(&RUN);
    stage.wait_until("it builds", |stage| stage.state_json()["tasks"][0]["state"] == "BUILD");
    for name in ["one", "two"] {
        stage.run(&["skip", name]).expect(0);
    }
    run.wait().expect(0).says(&["every task was skipped"]);
    statuses_are(&stage, &[("one", "SKIPPED"), ("two", "SKIPPED")]);
    assert_eq!(prompts(&stage).len(), 0);
}

#[test]
fn killed_in_the_middle_of_the_review_it_is_reviewed_again_and_nothing_is_done_twice() {
    let hangs = format!(
        "\n- step: review\n  {WHOLE}\n  iteration: 1\n  attempt: 1\n  do: [{{ run: \"sleep 600\" }}]\n"
    );
    let stage = planned(&[&hangs, &whole_says(1, REFUSED), MENDS], "");
    let run = stage.start(&RUN);
    stage.wait_until("the whole is reviewed", |stage| {
        prompts(stage).len() == 1 && stage.state_json()["current_state"] == "FINAL_REVIEW"
    });
    run.signal("KILL");
    run.wait().expect(-1);
    stage.run(&["resume"]).expect(0);
    merged_once_each(&stage, &["one", "two", "review-fix-1"]);
    assert_eq!(prompts(&stage).len(), 3);
    assert!(stage.survivors().is_empty(), "{:?}", stage.survivors());
}

/// Two tasks that break a test of the base only together, of which the first makes the test fit.
fn breaks_together(whole: &str, config: &str) -> Stage {
    let stage = planned(&[], "");
    stage.write(
        "test.sh",
        "for t in tests/*.sh; do sh $t || { echo \"FAILED $t\"; exit 1; }; done\n",
    );
    stage.write("tests/app.sh", "test -s app.txt\n");
    stage.write("tests/few.sh", "test ! -e one.txt || test ! -e two.txt\n");
    stage.commit("tests");
    let one = "
- step: [build, fix]
  task: one
  do:
    - write: { one.txt: \"one 1\\n\" }
    - write: { tests/few.sh: \"test -s app.txt\\n\" }
    - answer: { changed_files: [one.txt, tests/few.sh], notes: x }
";
    stage.agents(&[one, whole, &says(&two()), &builds(&stage), APPROVES]);
    configure(&stage, &format!("{TESTS}{config}loop: {{ max_iterations: 1 }}\n"));
    stage
}

#[test]
fn tests_of_the_base_that_break_only_together_need_the_reviewer_of_the_whole() {
    let accepted = "{ verdict: APPROVE, summary: fine, issues: [], accepted_tests: \
                    [{ id: tests/few.sh, reason: two files are what the plan asks for }] }";
    let stage = breaks_together(&whole_says(1, accepted), "");
    stage.run(&RUN).expect(0).says(&[
        "Look at this before you merge",
        "`tests/few.sh` fails with the change; the reviewer accepts that: two files are what",
    ]);
    has(&prompts(&stage)[0], &["- `tests/few.sh` fails", "`accepted_tests`"]);

    let stage = breaks_together(&whole_says(1, APPROVED), "");
    let why = "neither the task nor the review accounts for it: `tests/few.sh`";
    stage.run(&RUN).expect(11).says(&[why]);
    assert_eq!(prompts(&stage).len(), 1);
    // Without a review of the whole nobody could accept them.
    for config in [
        "gates: { whole_review: false }\n",
        "gates: { yardstick_changes: person }\n",
        "gates: { yardstick_changes: refused }\n",
    ] {
        let stage = breaks_together(&whole_says(1, accepted), config);
        stage.run(&RUN).expect(11).says(&["`tests/few.sh`"]);
        assert_eq!(prompts(&stage).len(), 0, "{config}");
    }
}
