//! `autopilot goal`: workflow, steps, completion, and again until it is reached. The real binary,
//! real git, scripted agents.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test file; its functions are test code too"
)]

use autopilot_testkit::goal::{GOAL, done, manifest, step, workflow};
use autopilot_testkit::plan::{branch, configure, outside};
use autopilot_testkit::stage::Stage;
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");

/// The rule of an agent that answers so.
fn answers(step: &str, more: &str, answer: &Value) -> String {
    format!("\n- step: {step}\n{more}  do: [{{ answer: {answer} }}]\n")
}

fn in_iteration(n: u32) -> String {
    format!("  iteration: {n}\n")
}

/// A step that writes a file of its name and says so.
const WORKS: &str = "
- step: step
  do:
    - run: 'echo \"$AUTOPILOT_TASK_ID\" > \"$AUTOPILOT_TASK_ID.txt\"; echo done >> app.txt'
    - cost_usd: 0.01
    - answer: \"Done: wrote it\"
";

fn stage(rules: &[&str]) -> Stage {
    let stage = Stage::new(BINARY);
    stage.agents(rules);
    stage.config("commands: { tests: sh test.sh }\n");
    stage
}

fn on_branch(stage: &Stage, file: &str) -> String {
    stage.git(&["show", &format!("{}:{file}", branch(stage))]).trim().to_owned()
}

#[test]
fn a_goal_is_reached_in_one_iteration() {
    let made = workflow("w1", &[step("look", &[]), step("write", &["look"])]);
    let stage = stage(&[
        &answers("workflow", "", &made),
        WORKS,
        &answers("completion", "", &done("it is done")),
    ]);
    stage.run(&GOAL).expect(0).says(&["DONE", "iteration 1 of 4; reviewer: done: it is done"]);
    assert_eq!(on_branch(&stage, "look.txt"), "look");
    assert_eq!(on_branch(&stage, "write.txt"), "write");
    let asked = stage.texts_of("write-step/prompt.txt");
    let parts = [
        "Do write.",
        "Overall task: Make app.txt say done",
        "Dependency outputs:",
        "--- look (succeeded) ---",
        "Done: wrote it",
        "If you make code changes, run the most relevant checks/tests and report results.",
    ];
    let places = parts.map(|part| asked.find(part).unwrap_or_else(|| panic!("{part}: {asked}")));
    assert!(places.is_sorted(), "{asked}");
    assert_eq!(stage.survivors(), [""; 0]);
}

#[test]
fn a_no_with_the_next_workflow_is_followed_without_another_one_being_made() {
    let first = workflow("w1", &[step("one", &[])]);
    let next = workflow("w2", &[step("one", &[]), step("two", &["one"])]);
    let no = json!({ "done": false, "reason": "half of it is missing", "nextWorkflow": next });
    let stage = stage(&[
        &answers("workflow", "", &first),
        WORKS,
        &answers("completion", &in_iteration(1), &no),
        &answers("completion", &in_iteration(2), &done("now it is")),
    ]);
    stage.run(&GOAL).expect(0).says(&["DONE"]);
    assert_eq!(stage.views("run-workflow/prompt.txt").len(), 1, "nobody was asked for another");
    for name in ["one", "one-i2", "two-i2"] {
        assert_eq!(on_branch(&stage, &format!("{name}.txt")), name);
    }
    assert!(stage.texts_of("two-i2-step/prompt.txt").contains("--- one (succeeded) ---"));
}

#[test]
fn what_was_not_reached_is_carried_into_the_next_workflow() {
    let stage = stage(&[
        &answers("workflow", &in_iteration(1), &workflow("w1", &[step("one", &[])])),
        &answers("workflow", &in_iteration(2), &workflow("w2", &[step("two", &[])])),
        WORKS,
        &answers("completion", &in_iteration(1), &json!({ "done": false, "reason": "not yet" })),
        &answers("completion", &in_iteration(2), &done("now it is")),
    ]);
    stage.run(&GOAL).expect(0);
    let asked = stage.texts_of("run-workflow/prompt.txt");
    for part in
        ["Previous workflow: w1", "- one: succeeded (session", "Reviewer: not done (", "not yet"]
    {
        assert!(asked.contains(part), "{part}: {asked}");
    }
}

#[test]
fn the_iterations_are_limited_and_everything_is_kept() {
    let no = |n: u32| {
        let reason = format!("missing part {n}");
        answers("completion", &in_iteration(n), &json!({ "done": false, "reason": reason }))
    };
    let made = |n: u32| {
        answers("workflow", &in_iteration(n), &workflow(&format!("w{n}"), &[step("one", &[])]))
    };
    let stage = stage(&[&made(1), &made(2), WORKS, &no(1), &no(2)]);
    let args = [&GOAL[..], &["--max-iterations", "2"]].concat();
    stage.run(&args).expect(11).says(&["did not converge in 2 iterations"]);
    assert_eq!(on_branch(&stage, "one-i2.txt"), "one-i2", "the work is there");
}

#[test]
fn done_over_failing_tests_is_overruled_and_the_failure_carried_on() {
    let breaks = "
- step: step
  iteration: 1
  task: one
  do:
    - append: { app.txt: \"broken\\n\" }
    - answer: Done
- step: step
  do:
    - write: { app.txt: \"start\\ndone\\n\" }
    - answer: Done
";
    let stage = stage(&[
        &answers("workflow", &in_iteration(1), &workflow("w1", &[step("one", &[])])),
        &answers("workflow", &in_iteration(2), &workflow("w2", &[step("two", &[])])),
        breaks,
        &answers("completion", "", &done("all is well")),
    ]);
    let told = stage.run(&GOAL).expect(0);
    assert!(told.said().contains("although"), "{}", told.said());
    let asked = stage.texts_of("run-workflow/prompt.txt");
    // Who said what, which command failed, how, and what is to be repaired.
    for part in REFUTED {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    assert!(!asked.contains("Reviewer: not done"), "{asked}");
    assert_eq!(on_branch(&stage, "app.txt"), "start\ndone");
}

const REFUTED: [&str; 5] = [
    "Reviewer: done\nController: not done.",
    "validation of the result failed (tests failed with exit code 1)",
    "tests: `sh test.sh`",
    "exit code 1 (failed)",
    "FAILED broken",
];

#[test]
fn what_was_refuted_is_still_told_after_a_workflow_that_could_not_be_used() {
    let stage = stage(&[
        &answers("workflow", &in_iteration(1), &workflow("w1", &[step("one", &[])])),
        &answers("workflow", &in_iteration(2), &json!("no workflow at all")),
        &answers("workflow", &in_iteration(3), &workflow("w3", &[step("three", &[])])),
        "
- step: step
  iteration: 1
  task: one
  do: [{ append: { app.txt: \"broken\\n\" } }, { answer: Done }]
- step: step
  do: [{ write: { app.txt: \"start\\ndone\\n\" } }, { answer: Done }]
",
        &answers("completion", "", &done("all is well")),
    ]);
    stage.run(&GOAL).expect(0);
    let mut asked = stage.views("run-workflow/prompt.txt");
    asked.sort();
    let last = std::fs::read_to_string(asked.last().unwrap()).unwrap();
    for part in REFUTED.iter().chain(&["Why your last workflow was rejected"]) {
        assert!(last.contains(part), "{part}: {last}");
    }
}

#[test]
fn a_workflow_that_is_malformed_twice_costs_the_iteration() {
    let stage = stage(&[
        &answers("workflow", &in_iteration(1), &json!("no workflow at all")),
        &answers("workflow", &in_iteration(2), &workflow("w2", &[step("one", &[])])),
        WORKS,
        &answers("completion", "", &done("fine")),
    ]);
    stage.run(&GOAL).expect(0).says(&["the workflow is not valid"]);
    // Asked once, once more for the repair, and anew in the next iteration.
    assert_eq!(stage.views("run-workflow/prompt.txt").len(), 3);
}

#[test]
fn a_circle_is_named_with_its_path() {
    let circle = workflow("w", &[step("a", &["b"]), step("b", &["a"])]);
    let stage = stage(&[&answers("workflow", "", &circle)]);
    let args = [&GOAL[..], &["--max-iterations", "1"]].concat();
    let told = stage.run(&args).expect(11);
    let said = told.said();
    let account = said.split_once("why:").unwrap().1;
    assert!(account.contains("last: the workflow is not valid"), "{account}");
    assert!(account.contains("Workflow stuck") && account.contains("a → b → a"), "{account}");
}

const FAILS: &str = "
- step: step
  task: bad
  do: [{ say: it could not be done }, { exit: 1 }]
";

#[test]
fn a_failed_step_is_assessed_and_what_depends_on_it_goes_on() {
    let made = workflow("w", &[step("bad", &[]), step("after", &["bad"]), step("beside", &[])]);
    let stage = stage(&[
        &answers("workflow", "", &made),
        FAILS,
        WORKS,
        &answers("completion", "", &done("good enough")),
    ]);
    stage.run(&GOAL).expect(0);
    let asked = stage.texts_of("after-step/prompt.txt");
    assert!(asked.contains("--- bad (failed) ---"), "{asked}");
    let weighed = stage.texts_of("run-completion/prompt.txt");
    let order = ["--- bad (failed) ---", "--- after (succeeded) ---", "--- beside (succeeded) ---"]
        .map(|part| weighed.find(part).unwrap_or_else(|| panic!("{part}: {weighed}")));
    assert!(order.is_sorted(), "in the order of the workflow");
    assert_eq!(stage.views("bad-step/prompt.txt").len(), 1, "it is not tried again");
}

#[test]
fn with_fail_fast_what_depends_on_a_failed_step_is_left_out() {
    let made = workflow("w", &[step("bad", &[]), step("after", &["bad"]), step("beside", &[])]);
    let stage = stage(&[
        &answers("workflow", "", &made),
        FAILS,
        WORKS,
        &answers("completion", "", &done("good enough")),
    ]);
    let args = [&GOAL[..], &["--fail-fast"]].concat();
    stage.run(&args).expect(0);
    assert!(stage.views("after-step/prompt.txt").is_empty());
    let weighed = stage.texts_of("run-completion/prompt.txt");
    assert!(weighed.contains("--- after (skipped) ---"), "{weighed}");
    assert!(weighed.contains("Skipped: dependencies failed [bad]"), "{weighed}");
    assert!(weighed.contains("--- beside (succeeded) ---"), "{weighed}");
}

#[test]
fn a_step_that_takes_too_long_has_failed() {
    let mut slow = step("slow", &[]);
    slow["timeoutSec"] = 1.into();
    let stage = stage(&[
        &answers("workflow", "", &workflow("w", &[slow])),
        "\n- step: step\n  do: [{ hang: true }]\n",
        &answers("completion", "", &done("without it")),
    ]);
    stage.run(&GOAL).expect(0);
    let weighed = stage.texts_of("run-completion/prompt.txt");
    assert!(weighed.contains("--- slow (failed) ---"), "{weighed}");
}

#[test]
fn finished_steps_are_not_repeated_after_a_kill() {
    let made = workflow("w", &[step("one", &[]), step("two", &["one"])]);
    let gate = |stage: &Stage| stage.folder().join("gate");
    let stage = Stage::new(BINARY);
    let waits = format!(
        "\n- step: step\n  task: two\n  do:\n    - run: 'while [ ! -e {} ]; do sleep 0.1; done'\n    - answer: Done\n",
        gate(&stage).display()
    );
    stage.agents(&[
        &answers("workflow", "", &made),
        &waits,
        WORKS,
        &answers("completion", "", &done("fine")),
    ]);
    stage.config("commands: { tests: sh test.sh }\n");
    let run = stage.start(&GOAL);
    stage.wait_until("the second step works", |stage| {
        !stage.views("two-step/prompt.txt").is_empty()
    });
    run.signal("KILL");
    run.wait();
    std::fs::write(gate(&stage), "").unwrap();
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    assert_eq!(stage.views("one-step/prompt.txt").len(), 1);
    assert_eq!(stage.views("run-workflow/prompt.txt").len(), 1);
    assert_eq!(on_branch(&stage, "one.txt"), "one");
}

#[test]
fn without_tests_it_is_said_that_nothing_was_proven() {
    let stage = stage(&[
        &answers("workflow", "", &workflow("w", &[step("one", &[])])),
        WORKS,
        &answers("completion", "", &done("I believe so")),
    ]);
    stage.config("commands: { lint: 'true' }\n");
    let told = stage.run(&GOAL).expect(0);
    assert!(told.said().contains("proof: none;"), "{}", told.said());
    assert!(told.said().contains("nothing was proven"), "{}", told.said());
    assert!(stage.read(".autopilot/STATUS.md").contains("nothing was proven"));
    stage.run(&["run", "tasks/say-done.md", "--fresh"]).expect(78).says(&["commands.tests"]);
}

#[test]
fn a_goal_nobody_can_work_on_is_refused_before_anything_begins() {
    let stage = stage(&[WORKS]);
    stage.run(&["goal", "  "]).expect(64).says(&["the goal is empty"]);
    stage.run(&["goal", "x", "--adapter", "nobody"]).expect(64).says(&["`nobody`", "claude"]);
    assert!(!stage.has(".autopilot/state.json"));
}

#[test]
fn who_is_not_logged_in_rests_the_run_with_the_next_step_and_resume_goes_on() {
    let away =
        "\n- step: workflow\n  attempt: [1, 2]\n  do: [{ fail: { kind: auth, why: not now } }]\n";
    let stage = stage(&[
        away,
        &answers("workflow", "", &workflow("w", &[step("one", &[])])),
        WORKS,
        &answers("completion", "", &done("fine")),
    ]);
    let told = stage.run(&GOAL).expect(2);
    told.says(&[
        "script is unavailable (not logged in): not now",
        "log in to that agent",
        "autopilot resume",
    ]);
    assert!(stage.views("one-step").is_empty(), "nothing else was begun");
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    assert_eq!(on_branch(&stage, "one.txt"), "one");
}

#[test]
fn a_step_that_is_not_logged_in_is_nobody_elses_failure() {
    let away = "\n- step: step\n  task: two\n  attempt: [1, 2]\n  do: [{ fail: { kind: auth, why: not now } }]\n";
    let stage = stage(&[
        &answers("workflow", "", &workflow("w", &[step("one", &[]), step("two", &["one"])])),
        away,
        WORKS,
        &answers("completion", "", &done("fine")),
    ]);
    stage.run(&GOAL).expect(2).says(&["not logged in", "autopilot resume"]);
    assert!(stage.views("run-completion").is_empty(), "nobody was asked to weigh it");
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    assert_eq!(stage.views("one-step/prompt.txt").len(), 1);
    assert_eq!(on_branch(&stage, "two.txt"), "two");
}

const DENIED: &str = "commands: { tests: sh test.sh }\nsafety: { deny_paths: [infra/] }\n";
const NOT_DENIED: &str = "{ answer: { changed_files: [app.txt], tests_ran: false, tests_passed: \
                          false, notes: joined } }";

/// Two steps that change the same line of the same commit, and whoever repairs it.
fn in_conflict(fixes: &str) -> Stage {
    let stage = Stage::new(BINARY);
    let both = outside(&stage, "begun");
    std::fs::create_dir_all(&both).unwrap();
    let both = both.display();
    let works = format!(
        "
- step: step
  do:
    - run: 'touch {both}/$AUTOPILOT_TASK_ID; while [ $(ls {both} | wc -l) -lt 2 ]; do sleep 0.1; done'
    - run: 'echo \"$AUTOPILOT_TASK_ID\" > app.txt'
    - answer: Done
"
    );
    stage.agents(&[
        &answers("workflow", "", &workflow("w", &[step("one", &[]), step("two", &[])])),
        &works,
        fixes,
        &answers("completion", "", &done("fine")),
    ]);
    configure(&stage, DENIED);
    stage
}

fn has(stage: &Stage, file: &str) -> bool {
    stage.git(&["ls-tree", "-r", "--name-only", &branch(stage)]).lines().any(|it| it == file)
}

#[test]
fn a_repair_that_breaks_a_rule_is_told_and_not_merged() {
    let fixes = format!(
        "
- step: fix
  prompt: 'infra/evil.txt'
  do: [{{ delete: infra/evil.txt }}, {{ write: {{ app.txt: \"both\\n\" }} }}, {NOT_DENIED}]
- step: fix
  do: [{{ write: {{ infra/evil.txt: \"x\\n\" }} }}, {NOT_DENIED}]
"
    );
    let stage = in_conflict(&fixes);
    stage.run(&GOAL).expect(0).says(&["DONE"]);
    assert_eq!(on_branch(&stage, "app.txt"), "both");
    assert!(!has(&stage, "infra/evil.txt"));
}

#[test]
fn a_repair_that_leaves_the_conflict_is_never_merged() {
    let stage = in_conflict(&format!("\n- step: fix\n  do: [{NOT_DENIED}]\n"));
    stage.run(&GOAL).expect(0);
    let left = on_branch(&stage, "app.txt");
    assert!(["one", "two"].contains(&left.as_str()), "{left}");
    let weighed = stage.texts_of("run-completion/prompt.txt");
    assert!(weighed.contains("(failed) ---"), "{weighed}");
}

#[test]
fn a_step_that_was_refused_is_done_again_when_it_is_retried() {
    let stage = Stage::new(BINARY);
    stage.agents(&[
        &answers("workflow", "", &workflow("w", &[step("one", &[])])),
        "
- step: step
  prompt: 'infra/evil.txt'
  do: [{ delete: infra/evil.txt }, { write: { app.txt: \"good\\n\" } }, { answer: second answer }]
- step: step
  do: [{ write: { infra/evil.txt: \"x\\n\" } }, { answer: first answer }]
- step: fix
  do: [{ answer: { changed_files: [], tests_ran: false, tests_passed: false, notes: nothing } }]
- step: completion
  prompt: second answer
  do: [{ answer: { done: true, summary: fine } }]
",
        &answers("completion", "", &json!({ "done": false, "reason": "it failed" })),
    ]);
    stage.config(DENIED);
    stage.run(&[&GOAL[..], &["--max-iterations", "1"]].concat()).expect(11);
    stage.run(&["retry", "one"]).expect(0).says(&["DONE"]);
    assert!(!has(&stage, "infra/evil.txt"));
    assert_eq!(on_branch(&stage, "app.txt"), "good");
    assert!(stage.views("one-fix/prompt.txt").is_empty());
}

#[test]
fn a_failed_step_is_not_taken_up_behind_the_back_of_whoever_judges() {
    let made = workflow("w", &[step("one", &[]), step("two", &[])]);
    let stage = stage(&[]);
    let gate = stage.folder().join("gate");
    let waits = format!(
        "
- step: step
  task: one
  do: [{{ say: no }}, {{ exit: 1 }}]
- step: completion
  do:
    - run: 'while [ ! -e {} ]; do sleep 0.1; done'
    - answer: {{ done: true, summary: fine }}
",
        gate.display()
    );
    stage.agents(&[&answers("workflow", "", &made), &waits, WORKS]);
    let run = stage.start(&GOAL);
    stage.wait_until("somebody judges", |stage| {
        !stage.views("run-completion/prompt.txt").is_empty()
    });
    let told = stage.run(&["retry", "one"]).expect(64).said();
    assert!(told.contains("`autopilot stop`") && !told.contains("autopilot resume"), "{told}");
    stage.run(&["stop", "--now"]).expect(0);
    run.wait().expect(2);
    for word in ["retry", "skip"] {
        let told = stage.run(&[word, "one"]).expect(64);
        told.says(&["task `one` can't be", "moved past", "`autopilot resume`", "<session>"]);
    }
    std::fs::write(&gate, "").unwrap();
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
}

#[test]
fn a_step_without_money_of_its_own_is_not_passed_over_in_silence() {
    let made = workflow("w", &[step("one", &[]), step("two", &[])]);
    let spends = "
- step: step
  task: one
  do: [{ cost_usd: 0.9 }, { hang: true }]
";
    let stage = stage(&[
        &answers("workflow", "", &made),
        spends,
        WORKS,
        &answers("completion", "", &done("fine")),
    ]);
    stage.config("commands: { tests: sh test.sh }\nbudget: { max_usd_per_task: 0.5 }\n");
    stage.run(&GOAL).expect(0);
    let told = stage.run(&["retry", "one"]).expect(10);
    told.says(&["task `one` has spent $0.90 of its limit of $0.50", "--max-usd-per-task"]);
    stage.agents(&[WORKS, &answers("completion", "", &done("fine"))]);
    stage.run(&["retry", "one", "--max-usd-per-task", "5"]).expect(0).says(&["DONE"]);
    assert_eq!(on_branch(&stage, "one.txt"), "one");
}

#[test]
fn a_step_that_was_dropped_with_its_workflow_is_refused_with_what_to_do_instead() {
    let next = workflow("w2", &[step("more", &[])]);
    let no = json!({ "done": false, "reason": "it failed", "nextWorkflow": next });
    let stage = stage(&[
        &answers("workflow", "", &workflow("w", &[step("one", &[])])),
        "
- step: step
  prompt: This step was done before
  do: [{ write: { app.txt: \"good\\n\" } }, { answer: second answer }]
- step: step
  do: [{ say: no }, { exit: 1 }]
- step: completion
  prompt: second answer
  do: [{ answer: { done: true, summary: fine } }]
",
        &answers("completion", "", &no),
    ]);
    stage.run(&[&GOAL[..], &["--max-iterations", "1"]].concat()).expect(11);
    stage.run(&["retry", "one"]).expect(0).says(&["DONE"]);
    let asked = stage.views("run-completion/prompt.txt").len();
    for word in ["retry", "skip"] {
        let told = stage.run(&[word, "more-i2"]).expect(64);
        told.says(&["task `more-i2` was dropped", "autopilot sessions", "another goal"]);
    }
    assert_eq!(stage.views("run-completion/prompt.txt").len(), asked, "nobody was asked again");
}

#[test]
fn a_weakened_check_is_told_to_whoever_checks_and_in_the_account() {
    let stage = stage(&[
        &answers("workflow", "", &workflow("w", &[step("one", &[])])),
        "\n- step: step\n  do: [{ write: { test.sh: \"exit 0\\n\" } }, { answer: fixed }]\n",
        &answers("completion", "", &done("fine")),
    ]);
    stage.run(&GOAL).expect(0);
    let found = "the change edits `test.sh`, which the tests command runs";
    let weighed = stage.texts_of("run-completion/prompt.txt");
    assert!(weighed.contains(found), "{weighed}");
    let status = stage.texts_of("STATUS.md");
    assert!(status.contains(found), "{status}");
}

#[test]
fn a_step_is_formatted_before_it_is_taken() {
    let stage = stage(&[
        &answers("workflow", "", &workflow("w", &[step("one", &[])])),
        "\n- step: step\n  do: [{ write: { app.txt: \"good   \\n\" } }, { answer: did }]\n",
        &answers("completion", "", &done("fine")),
    ]);
    stage.config("commands: { tests: sh test.sh, format: \"sed -i 's/ *$//' app.txt\" }\n");
    stage.run(&GOAL).expect(0).says(&["DONE"]);
}

#[test]
fn a_workflow_does_not_raise_the_limit_of_the_user() {
    let mut slow = step("slow", &[]);
    slow["timeoutSec"] = 600.into();
    let mut slower = step("slower", &[]);
    slower["timeoutSec"] = 700.into();
    let next = workflow("w2", &[slower]);
    let no = json!({ "done": false, "reason": "not yet", "nextWorkflow": next });
    let stage = stage(&[
        &answers("workflow", "", &workflow("w", &[slow])),
        "\n- step: step\n  do: [{ hang: true }]\n",
        &answers("completion", &in_iteration(1), &no),
        &answers("completion", "", &done("without it")),
    ]);
    stage.config("commands: { tests: sh test.sh }\nloop: { step_timeouts_sec: { step: 1 } }\n");
    let warnings = [
        "step `slow` asks for 600 s; the configured limit of 1 s applies",
        "step `slower` asks for 700 s; the configured limit of 1 s applies",
    ];
    stage.run(&GOAL).expect(0).says(&warnings);
    let weighed = stage.texts_of("run-completion/prompt.txt");
    assert!(weighed.contains("--- slow (failed) ---"), "{weighed}");
    // Of the workflow that was made and of the one that came with the no.
    let warned = manifest(&stage)["graph"]["warnings"].to_string();
    assert!(warnings.iter().all(|warning| warned.contains(warning)), "{warned}");
}

#[test]
fn a_step_that_begins_without_its_earlier_changes_is_told_so() {
    let again = "Your earlier changes to app.txt, extra.txt are not in your working directory";
    let acts = format!(
        "
- step: step
  task: one
  prompt: '{again}'
  do: [{{ answer: second answer }}]
- step: step
  task: one
  do: [{{ write: {{ app.txt: \"one\\n\", extra.txt: \"x\\n\" }} }}, {{ say: no }}, {{ exit: 1 }}]
- step: step
  do: [{{ write: {{ app.txt: \"two\\n\" }} }}, {{ answer: Done }}]
- step: completion
  prompt: second answer
  do: [{{ answer: {{ done: true, summary: fine }} }}]
"
    );
    let stage = stage(&[
        &answers("workflow", "", &workflow("w", &[step("one", &[]), step("two", &["one"])])),
        &acts,
        &answers("completion", "", &json!({ "done": false, "reason": "it failed" })),
    ]);
    stage.run(&[&GOAL[..], &["--max-iterations", "1"]].concat()).expect(11);
    stage.run(&["retry", "one"]).expect(0).says(&["DONE"]);
    let asked = stage.texts_of("one-step/prompt.txt");
    assert!(!asked.contains("is in your working directory"), "{asked}");
    assert_eq!(on_branch(&stage, "app.txt"), "two");
}

#[test]
fn a_step_that_was_killed_and_begins_without_its_changes_is_told_so() {
    let stage = Stage::new(BINARY);
    let gate = outside(&stage, "written");
    std::fs::create_dir_all(&gate).unwrap();
    let gate = gate.display();
    let acts = format!(
        "
- step: step
  task: one
  prompt: 'Your earlier changes to app.txt are not in your working directory'
  do: [{{ answer: second answer }}]
- step: step
  task: one
  do:
    - write: {{ app.txt: \"one\\n\" }}
    - run: 'touch {gate}/one'
    - hang: true
- step: step
  do:
    - run: 'while [ ! -e {gate}/one ]; do sleep 0.1; done'
    - write: {{ app.txt: \"two\\n\" }}
    - answer: Done
"
    );
    stage.agents(&[
        &answers("workflow", "", &workflow("w", &[step("one", &[]), step("two", &[])])),
        &acts,
        &answers("completion", "", &done("fine")),
    ]);
    configure(&stage, "");
    let run = stage.start(&GOAL);
    stage.wait_until("two is merged while one works", |stage| {
        let tasks = stage.state_json()["tasks"].as_array().cloned().unwrap_or_default();
        tasks.iter().any(|task| task["id"] == "two" && task["status"] == "DONE")
    });
    run.signal("KILL");
    run.wait();
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    assert_eq!(on_branch(&stage, "app.txt"), "two");
}

#[test]
fn a_step_that_is_taken_up_undoes_nothing_that_was_merged_meanwhile() {
    let stage = Stage::new(BINARY);
    let both = outside(&stage, "begun");
    std::fs::create_dir_all(&both).unwrap();
    let both = both.display();
    let waits = format!(
        "run: 'touch {both}/$AUTOPILOT_TASK_ID; while [ $(ls {both} | wc -l) -lt 2 ]; do sleep 0.1; done'"
    );
    let works = format!(
        "
- step: step
  prompt: This step was done before
  do: [{{ write: {{ new.txt: \"new\\n\" }} }}, {{ answer: once more }}]
- step: step
  task: one
  do:
    - {waits}
    - delete: app.txt
    - answer: Done
- step: step
  task: two
  do:
    - {waits}
    - write: {{ app.txt: \"two\\n\" }}
    - fail: {{ kind: broke, why: could not }}
- step: completion
  prompt: once more
  do: [{{ answer: {{ done: true, summary: fine }} }}]
"
    );
    stage.agents(&[
        &answers("workflow", "", &workflow("w", &[step("one", &[]), step("two", &[])])),
        &works,
        &answers("completion", "", &json!({ "done": false, "reason": "it failed" })),
    ]);
    configure(&stage, "");
    stage.run(&[&GOAL[..], &["--max-iterations", "1"]].concat()).expect(11);
    stage.run(&["retry", "two"]).expect(0).says(&["DONE"]);
    assert!(has(&stage, "new.txt") && !has(&stage, "app.txt"));
}

fn reached() -> [String; 2] {
    let made = answers("workflow", "", &workflow("w1", &[step("look", &[])]));
    [made, answers("completion", "", &done("it is done"))]
}

fn report(stage: &Stage) -> String {
    let run = stage.status()["run_id"].as_str().unwrap().to_owned();
    stage.read(&format!("runs/autopilot/{run}/report.html"))
}

#[test]
fn what_fails_as_on_the_base_is_let_pass_and_never_called_proven() {
    let [made, said] = reached();
    let run = |works: &str| {
        let stage = stage(&[&made, works, &said]);
        stage.write("app.txt", "broken before\n");
        stage.commit("red");
        let told = stage.run(&[&GOAL[..], &["--allow-red-base"]].concat()).expect(0);
        (report(&stage), told)
    };
    let (page, told) = run(WORKS);
    let proof = "proof: only that nothing more fails than on the base; on the result tests failed";
    told.says(&["DONE", proof]);
    assert!(!page.contains("and it passed"), "{page}");
    assert!(!page.contains("own validation of the result passed"), "{page}");
    let unknown = "did not pass: tests failed with exit code 1 \
                   (which tests fail is unknown, the output is the same), as on the base";
    assert!(page.contains(unknown), "{page}");
    // What was repaired is proven like anything else.
    let repairs = WORKS.replace("echo done >> app.txt", "echo done > app.txt");
    let (page, told) = run(&repairs);
    assert!(!told.out.contains("proof:"), "{}", told.out);
    assert!(page.contains("and it passed"), "{page}");
}

#[test]
fn a_review_that_is_switched_off_is_not_told_of_a_goal() {
    let [made, said] = reached();
    let stage = stage(&[&made, WORKS, &said]);
    stage.write(".autopilot/AUTOPILOT_SKIP_REVIEW", "");
    let told = stage.run(&GOAL).expect(0);
    assert!(!told.out.contains("review was skipped"), "{}", told.out);
    assert!(!stage.read(".autopilot/STATUS.md").contains("REVIEW WAS SKIPPED"));
    assert_eq!(stage.views("run-completion/prompt.txt").len(), 1, "completion was asked for");
}

#[test]
fn a_dry_run_shows_the_question_the_limits_and_the_timeouts_of_a_goal() {
    let [made, said] = reached();
    let stage = stage(&[&made, WORKS, &said]);
    let told = stage.run(&[&GOAL[..], &["--dry-run", "--max-iterations", "2"]].concat()).expect(0);
    let told = told.says(&[
        "tests   sh test.sh",
        "prompt of the first workflow:",
        "Overall task: Make app.txt say done",
        "limits: 2 iterations",
        "of a step whose merge conflicts: ",
        "timeout workflow: ",
        "timeout step: ",
        "timeout completion: ",
    ]);
    for other in ["prompt of the planner", "timeout review", "timeout uat"] {
        assert!(!told.out.contains(other), "{other}: {}", told.out);
    }
    let shown = told.out.split("prompt of the first workflow:\n").nth(1).unwrap().to_owned();
    stage.run(&GOAL).expect(0);
    let asked = stage.texts_of("run-workflow/prompt.txt");
    assert!(shown.starts_with(asked.trim_end()), "{shown}\n---\n{asked}");
}

#[test]
fn more_iterations_than_there_may_ever_be_are_refused() {
    let [made, said] = reached();
    let stage = stage(&[&made, WORKS, &said]);
    let told = stage.run(&[&GOAL[..], &["--max-iterations", "51"]].concat()).expect(64);
    told.says(&["--max-iterations", "51 is not in 1..=50"]);
    stage.run(&["resume", "--max-iterations", "51"]).expect(64).says(&["51 is not in 1..=50"]);
}
