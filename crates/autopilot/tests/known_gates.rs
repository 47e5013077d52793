//! What a run knows of its gates: what is proven is not proven again, what is flaky is told, and the
//! commands run in the learnt order, or side by side.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::plan::{PLAN_MD, plan, says, task};
use autopilot_testkit::stage::{APPROVES, BUILDS, Stage};
use std::fs;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
/// A builder whose repairs change nothing.
const REPAIRS_NOTHING: &str = "
- step: build
  do: [{ append: { app.txt: \"done\\n\" } }, { answer: { changed_files: [app.txt], notes: x } }]
- step: fix
  do: [{ answer: { changed_files: [], notes: x } }]
";

/// A stage whose commands may write to a file outside, which counts them.
fn stage(commands: &str, more: &str) -> Stage {
    let mut stage = Stage::new(BINARY);
    let folder = stage.folder().display().to_string();
    stage.set("SEEN", &format!("{folder}/seen"));
    stage
        .config(&format!("commands: {{ {commands} }}\nsandbox: {{ write: ['{folder}'] }}\n{more}"));
    fs::write(stage.folder().join("seen"), "").unwrap();
    stage
}

/// A command that notes a word of itself.
fn noting(stage: &Stage, word: &str) -> String {
    format!("echo {word} >> {}/seen", stage.folder().display())
}

fn seen(stage: &Stage) -> String {
    let text = fs::read_to_string(stage.folder().join("seen")).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Tests of which one fails when they run for the second time.
fn flaky_stage(more: &str) -> Stage {
    let stage = stage("tests: sh flaky.sh", more);
    let note = noting(&stage, "tests");
    let count = format!("$(wc -l < {}/seen)", stage.folder().display());
    stage.write(
        "flaky.sh",
        &format!(
            "{note}\nif [ {count} = 2 ]; then echo 'test some::test ... FAILED'; exit 1; fi\n"
        ),
    );
    stage.commit("flaky tests");
    stage
}

#[test]
fn a_flaky_command_passes_only_where_that_is_configured_and_a_person_reads_it() {
    for policy in ["{ flaky: retry_once }", "{ flaky: known, known_flaky: ['some::test'] }"] {
        let stage = flaky_stage(&format!("gates: {policy}\n"));
        let told =
            "`tests` is flaky: it failed (some::test) and then passed on the same tree; logs:";
        stage.run_task().expect(0).says(&["DONE", told]);
        assert_eq!(seen(&stage), "tests tests tests", "the base, the failure, the second try");
        let task = stage.first_task();
        assert_eq!(task["iteration"], 1, "{task:#}");
        let doubt = stage.status()["doubts"][0].clone();
        assert_eq!(doubt["kind"], "flaky", "{doubt:#}");
        let (_, logs) = doubt["text"].as_str().unwrap().split_once("logs: ").unwrap();
        let logs = logs.split(", ");
        let texts: Vec<String> = logs.map(|log| stage.read(log)).collect();
        assert!(texts[0].contains("some::test ... FAILED"), "{texts:?}");
        assert!(texts.len() == 2 && !texts[1].contains("FAILED"), "{texts:?}");
        let prompt = stage.texts_of("prompt");
        assert!(prompt.contains("is flaky: it failed (some::test)"), "{prompt}");
    }
}

#[test]
fn by_default_a_flaky_failure_is_a_failure_and_is_told_when_the_tree_passes_later() {
    for more in ["", "gates: { flaky: known, known_flaky: [another] }\n"] {
        let stage = flaky_stage(more);
        stage.agents(&[REPAIRS_NOTHING, APPROVES]);
        let told = "the commands are flaky: they failed before on the same tree; log of the failure: \
                    .autopilot/logs/validation_tests";
        stage.run_task().expect(0).says(&["DONE", told]);
        assert_eq!(stage.first_task()["iteration"], 2);
        assert_eq!(seen(&stage), "tests tests tests", "the base and two rounds");
    }
}

#[test]
fn a_tree_that_is_proven_is_not_proven_again() {
    let stage = stage("tests: sh count.sh", "");
    stage.write("count.sh", &format!("{}\n", noting(&stage, "tests")));
    stage.commit("counted tests");
    let rejects = "
- step: review
  iteration: 1
  do: [{ answer: { verdict: REQUEST_CHANGES, summary: wrong, issues: [{ severity: major, message: wrong, \
         fix: mend, file: app.txt }] } }]
";
    stage.agents(&[REPAIRS_NOTHING, rejects, APPROVES]);
    let told = "has proven the same tree with the same commands";
    stage.run_task().expect(0).says(&["DONE", told]);
    assert_eq!(stage.first_task()["iteration"], 2);
    assert_eq!(seen(&stage), "tests tests", "the base and the first round");
}

#[test]
fn the_base_is_not_proven_again_by_the_next_run_until_something_changes() {
    let mut stage = stage("tests: sh count.sh", "");
    stage.set("AUTOPILOT_SEED_MS", "0");
    stage.write("count.sh", &format!("{}\n", noting(&stage, "tests")));
    stage.commit("counted tests");
    let run = |args: &[&str]| {
        let before = seen(&stage).split_whitespace().count();
        let all = [&["run", "tasks/say-done.md"][..], args].concat();
        let told = stage.run(&all).expect(0).said();
        (seen(&stage).split_whitespace().count() - before, told)
    };
    let taken = "the base was not proven again: run ";
    let (count, told) = run(&[]);
    assert!(count == 3 && !told.contains(taken), "base, task, last word: {count}\n{told}");
    let (count, told) = run(&[]);
    assert!(count == 2 && told.contains(taken), "{count}\n{told}");
    let (count, told) = run(&["--prove-base"]);
    assert!(count == 3 && !told.contains(taken), "{count}\n{told}");
    stage.write("other.txt", "other\n");
    stage.commit("another base");
    assert_eq!(run(&[]).0, 3);
    // A base without its seed gets it again.
    let states = fs::read_dir(stage.state()).unwrap().map(|entry| entry.unwrap().path());
    let seeds: Vec<_> = states.map(|dir| dir.join("seeds")).filter(|dir| dir.is_dir()).collect();
    assert_eq!(seeds.len(), 1, "{seeds:?}");
    fs::rename(&seeds[0], seeds[0].with_file_name("gone")).unwrap();
    assert_eq!(run(&[]).0, 3);
}

#[test]
fn the_cheapest_command_comes_first_once_the_base_has_shown_which_it_is() {
    for (more, order) in
        [("", "tests lint lint tests"), ("loop: { gate_order: given }\n", "tests lint tests lint")]
    {
        let stage = stage("tests: sh slow.sh, lint: sh quick.sh", more);
        stage.write("slow.sh", &format!("sleep 0.4\n{}\n", noting(&stage, "tests")));
        stage.write("quick.sh", &format!("{}\n", noting(&stage, "lint")));
        stage.commit("a slow and a quick command");
        stage.run_task().expect(0);
        assert_eq!(seen(&stage), order);
    }
}

/// On a change, each of two commands waits for the other to begin.
#[test]
fn commands_run_side_by_side_where_that_is_configured() {
    let meet = |stage: &Stage, own: &str, other: &str| {
        let dir = stage.folder().display();
        format!(
            "grep -q done app.txt || exit 0\ntouch {dir}/{own}\n\
             for _ in $(seq 100); do [ -e {dir}/{other} ] && exit 0; sleep 0.1; done\nexit 1\n"
        )
    };
    let stage = stage("tests: sh one.sh, lint: sh two.sh, parallel: true", "");
    stage.agents(&[BUILDS, APPROVES]);
    stage.write("one.sh", &meet(&stage, "one", "two"));
    stage.write("two.sh", &meet(&stage, "two", "one"));
    stage.commit("two commands that meet");
    stage.run_task().expect(0).says(&["DONE"]);
    assert_eq!(stage.first_task()["iteration"], 1);
}

/// A stage whose base is sealed, and whose tests count themselves. `more` is run with the count.
fn warm_stage(more: &str) -> Stage {
    let mut stage = stage("tests: sh count.sh", "");
    stage.set("AUTOPILOT_SEED_MS", "0");
    let count = format!("count=$(wc -l < {}/seen)", stage.folder().display());
    stage.write("count.sh", &format!("{}\n{count}\n{more}\n", noting(&stage, "tests")));
    stage.commit("counted tests");
    stage
}

/// A review that answers only after the tests have begun a third time: after the base and the task.
fn late_review(stage: &Stage, answer: &str) -> String {
    let wait = format!(
        "for _ in $(seq 100); do [ $(wc -l < {}/seen) -ge 3 ] && exit 0; sleep 0.1; done; exit 1",
        stage.folder().display()
    );
    format!(
        "
- step: review
  iteration: 1
  do: [{{ run: {wait:?} }}, {{ answer: {answer} }}]
"
    )
}

const APPROVAL: &str = "{ verdict: APPROVE, summary: fine, issues: [] }";

#[test]
fn the_result_is_proven_from_nothing_beside_the_review() {
    let stage = warm_stage("");
    stage.agents(&[BUILDS, &late_review(&stage, APPROVAL), APPROVES]);
    let taken = "has proven the same tree with the same commands";
    let cold = "the result was proven once more from nothing (cold)";
    stage.run_task().expect(0).says(&["DONE", taken, cold]);
    assert_eq!(seen(&stage), "tests tests tests", "it was proven once from nothing, not twice");
    let shown = stage.run(&["show", "say-done"]).expect(0).out;
    assert!(shown.contains("prove") && shown.contains("passed (cold)"), "{shown}");
}

#[test]
fn what_fails_from_nothing_beside_a_review_is_not_merged() {
    let stage = warm_stage("[ $count != 3 ] || { echo broken from nothing; exit 1; }");
    stage.agents(&[BUILDS, &late_review(&stage, APPROVAL), APPROVES]);
    let why = "the reviewer approved although it fails from nothing: tests";
    stage.run_task().expect(0).says(&["DONE", why]);
    assert_eq!(stage.first_task()["iteration"], 2, "the failure has cost a round");
    let prompts = stage.texts_of("prompt");
    assert!(prompts.contains("broken from nothing"), "the repair was told what failed");
    assert_eq!(
        seen(&stage).matches("tests").count(),
        4,
        "the second round was proven from nothing"
    );
}

#[test]
fn a_proof_beside_a_review_that_rejects_ends_with_it() {
    let stage = warm_stage("[ $count != 3 ] || sleep 300");
    let rejects = late_review(
        &stage,
        "{ verdict: REQUEST_CHANGES, summary: wrong, issues: [{ severity: major, message: wrong, \
         fix: mend, file: app.txt }] }",
    );
    stage.agents(&[BUILDS, &rejects, APPROVES]);
    stage.run_task().expect(0).says(&["DONE"]);
    assert_eq!(stage.first_task()["iteration"], 2);
    assert_eq!(stage.survivors(), Vec::<String>::new());
}

#[test]
fn the_whole_of_a_plan_is_proven_from_nothing_beside_its_acceptance() {
    let stage = warm_stage("");
    let seen_file = stage.folder().join("seen").display().to_string();
    // It passes only if the tests begin a fourth time while it runs.
    let waits = format!(
        "for i in $(seq 100); do [ $(wc -l < {seen_file}) -ge 4 ] && exit 0; sleep 0.1; done; exit 1"
    );
    let folder = stage.folder().display();
    stage.config(&format!(
        "commands: {{ tests: sh count.sh, uat: {waits:?} }}\nplan: {{ task_uat: false }}\n\
         sandbox: {{ write: ['{folder}'] }}\n"
    ));
    stage.write("plan.md", PLAN_MD);
    let builds = "
- step: build
  do: [{ run: \"echo x > $AUTOPILOT_TASK_ID.txt\" }, { answer: { changed_files: [x], notes: x } }]
";
    let wanted = plan(&[task("a", &[]), task("b", &["a"])]);
    stage.agents(&[&says(&wanted), builds, APPROVES]);
    let told = "run: meanwhile, the result is proven from nothing";
    stage.run(&["run", "plan.md"]).expect(0).says(&["DONE", told]);
    assert_eq!(seen(&stage), "tests tests tests tests", "the base, two tasks, the result");
    assert_eq!(stage.status()["last_word"], "cold");
}

#[test]
fn a_kill_during_the_proof_leaves_nothing_and_pays_no_second_review() {
    let stage = warm_stage("[ $count != 3 ] || sleep 300");
    stage.agents(&[BUILDS, &late_review(&stage, APPROVAL), APPROVES]);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_until("the review has ended and the proof goes on", |stage| {
        // The file is written before the review's end is durable; `status` tells only what is.
        !stage.views("review.json").is_empty() && stage.status()["tasks"][0]["state"] == "VALIDATE"
    });
    run.signal("KILL");
    run.wait();
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    assert_eq!(stage.first_task()["iteration"], 1, "a crash costs no round");
    assert_eq!(stage.views("review.json").len(), 1, "the review was paid once");
    assert_eq!(stage.survivors(), Vec::<String>::new());
}
