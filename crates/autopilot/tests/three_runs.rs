//! A change that edits its own judge is judged by the base's tests as well, and what it breaks of them
//! has to be accounted for by the task, the reviewer or a person.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::goal::{GOAL, answers, step, workflow};
use autopilot_testkit::stage::{APPROVES, Stage, files};
use serde_json::json;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
/// Two programs of tests, each with one expectation.
const RUNNER: &str = "for t in tests/*.sh; do sh $t || { echo \"FAILED $t\"; exit 1; }; done\n";
const GREETS: &str = "test \"$(sh greet.sh)\" = 'Hello Ada'\n";

fn stage(task: &str, more: &str) -> Stage {
    let stage = Stage::new(BINARY);
    stage.write("greet.sh", "echo Hello Ada\n");
    stage.write("test.sh", RUNNER);
    stage.write("tests/greet.sh", GREETS);
    stage.write("tests/app.sh", "test -s app.txt\n");
    stage.commit("a greeting and its test");
    let task = format!(
        "# Task: Greet\n\nGoal:\n- {task}\n\nAcceptance Criteria:\n- the greeting is right\n"
    );
    stage.write("tasks/say-done.md", &task);
    stage.config(&format!(
        "commands: {{ tests: sh test.sh }}\nloop: {{ max_iterations: 2 }}\n{more}"
    ));
    stage
}

/// A builder that greets in other words, and makes the test fit.
const REWRITES: &str = "
- step: [build, fix]
  do:
    - write: { greet.sh: \"echo Bye\\n\" }
    - write: { tests/greet.sh: \"test \\\"$(sh greet.sh)\\\" = Bye\\n\" }
    - answer: { changed_files: [greet.sh, tests/greet.sh], notes: x }
";

fn reviewer(accepted: &str) -> String {
    format!(
        "
- step: review
  do: [{{ answer: {{ verdict: APPROVE, summary: fine, issues: [], accepted_tests: {accepted} }} }}]
- step: uat_generate
  do: [{{ answer: \"# Cases\\n1. it greets\\n\" }}]
"
    )
}

const ACCEPTED: &str = "[{ id: tests/greet.sh, reason: the words are new }]";

#[test]
fn whoever_rewrites_the_test_that_its_work_breaks_is_not_done() {
    let stage = stage("greet in a friendlier way", "");
    stage.agents(&[REWRITES, APPROVES]);
    let ended = stage.run_task().expect(11);
    ended.says(&[
        "tests of the base do not pass as they did",
        "`tests/greet.sh` fails with the change",
    ]);
    let prompt = stage.texts_of("say-done-fix/prompt.txt");
    assert!(
        prompt.contains("a test of the base: `tests/greet.sh` fails with the change"),
        "{prompt}"
    );
    let prompt = stage.texts_of("say-done-review/prompt.txt");
    for part in [
        "Tests of the base that do not pass as they did",
        "- `tests/greet.sh` fails",
        "`accepted_tests`",
    ] {
        assert!(prompt.contains(part), "`{part}` is not in:\n{prompt}");
    }
}

#[test]
fn a_reviewer_accepts_a_broken_test_by_its_name_and_the_person_is_told() {
    let stage = stage("greet in a friendlier way", "");
    stage.agents(&[REWRITES, &reviewer(ACCEPTED)]);
    stage.run_task().expect(0).says(&[
        "Look at this before you merge",
        "the base's `tests/greet.sh` fails with the change; the reviewer accepts that: the words are new",
    ]);
    // Patterns and other names accept nothing.
    for accepted in ["[{ id: \"tests/*\", reason: all }]", "[{ id: greet, reason: all }]"] {
        let stage = self::stage("greet in a friendlier way", "");
        stage.agents(&[REWRITES, &reviewer(accepted)]);
        stage.run_task().expect(11);
    }
}

#[test]
fn what_the_task_asks_for_is_done_without_a_word() {
    for task in ["change tests/greet.sh to expect a goodbye", "greet with `Bye`"] {
        let stage = stage(task, "");
        stage.agents(&[&REWRITES.replace("= Bye", "= 'Bye'"), APPROVES]);
        let said = stage.run_task().expect(0).said();
        assert!(!said.contains("Look at this"), "{task}: {said}");
    }
}

#[test]
fn allowed_paths_that_name_the_test_let_it_be_changed_and_the_person_is_told() {
    let stage = stage("greet in a friendlier way", "");
    let task = stage.read("tasks/say-done.md");
    let paths = "\nAllowed Paths:\n- greet.sh\n- tests/greet.sh\n";
    stage.write("tasks/say-done.md", &format!("{task}{paths}"));
    stage.agents(&[REWRITES, APPROVES]);
    stage.run_task().expect(0).says(&["the task may change its file and does not ask for this"]);
    stage.write("tasks/say-done.md", &format!("{task}\nAllowed Paths:\n- greet.sh\n- tests/\n"));
    stage.run(&["run", "--fresh", "tasks/say-done.md"]).expect(11);
}

#[test]
fn the_configuration_says_who_may_account_for_a_broken_test() {
    let of = |policy: &str| {
        let stage = stage(
            "greet in a friendlier way",
            &format!("gates: {{ yardstick_changes: {policy} }}\n"),
        );
        stage.agents(&[REWRITES, &reviewer(ACCEPTED)]);
        stage
    };
    of("refused").run_task().expect(11).says(&["nothing in the task accounts for it"]);
    let told = of("told");
    told.agents(&[REWRITES, APPROVES]);
    told.run_task().expect(0).says(&["the base's `tests/greet.sh` fails with the change"]);
    let asked = of("person");
    asked
        .run_task()
        .expect(2)
        .says(&["waiting for you to accept changed tests", "autopilot approve"]);
    asked.run(&["approve"]).expect(0).says(&["DONE"]);
    let refused = of("person");
    refused.run_task().expect(2);
    refused.run(&["reject", "the test was right"]).expect(2);
    let prompt = refused.texts_of("say-done-fix/prompt.txt");
    assert!(prompt.contains("the test was right"), "{prompt}");
}

#[test]
fn an_honest_change_with_new_tests_ends_without_a_doubt() {
    let stage = stage("say goodbye as well", "");
    let build = "
- step: build
  do:
    - write: { bye.sh: \"echo Bye\\n\" }
    - write: { tests/bye.sh: \"test \\\"$(sh bye.sh)\\\" = Bye\\n\" }
    - answer: { changed_files: [bye.sh, tests/bye.sh], notes: x }
";
    stage.agents(&[build, APPROVES]);
    let said = stage.run_task().expect(0).said();
    assert!(!said.contains("Look at this"), "{said}");
    let evidence = stage.first_task()["notes"].to_string();
    assert!(evidence.contains("new and changed tests"), "{evidence}");
}

#[test]
fn a_goal_is_not_met_by_rewriting_tests_unless_the_judge_accepts_them_by_name() {
    let of = |accepted: serde_json::Value| {
        let stage = stage("", "");
        let agents = [
            answers("workflow", 1, &workflow("w", &[step("greet", &[])])),
            REWRITES.replace("[build, fix]", "step"),
            answers(
                "completion",
                1,
                &json!({ "done": true, "summary": "ok", "accepted_tests": accepted }),
            ),
        ];
        let agents: Vec<&str> = agents.iter().map(String::as_str).collect();
        stage.agents(&agents);
        stage.run(&[&GOAL[..], &["--max-iterations", "1"]].concat())
    };
    of(json!([])).expect(11).says(&["`tests/greet.sh` fails with the change"]);
    of(json!([{ "id": "tests/greet.sh", "reason": "the words are new" }]))
        .expect(0)
        .says(&["the reviewer accepts that: the words are new"]);
}

#[test]
fn tests_that_others_merged_are_not_lost_by_a_merge() {
    // Each passes alone: one adds a test, the other runs fewer files than before.
    let stage = stage("run the greeting alone in test.sh", "");
    let go = stage.folder().join("go");
    let builds = format!(
        "
- step: [build, fix]
  do:
    - run: \"while [ ! -e {} ]; do sleep 0.02; done; echo mine > mine.txt\"
    - write: {{ test.sh: \"sh tests/greet.sh\\n\" }}
    - answer: {{ changed_files: [mine.txt, test.sh], notes: x }}
",
        go.display()
    );
    stage.agents(&[&builds, APPROVES]);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_for_step("BUILD");
    stage.wait_until("the branch has a name", |it| it.state_json()["branch_name"].is_string());
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    stage.git(&["checkout", "-q", "-b", "theirs"]);
    stage.write("tests/theirs.sh", "[ ! -e mine.txt ]\n");
    stage.git(&["add", "tests/theirs.sh"]);
    stage.git(&["commit", "-q", "-m", "Theirs"]);
    stage.git(&["checkout", "-q", "main"]);
    let hub = files(&stage.state()).into_iter().find(|path| path.ends_with("hub.git/HEAD"));
    let hub = hub.unwrap().parent().unwrap().to_owned();
    let spec = format!("theirs:refs/heads/{branch}");
    stage.git_in(&hub, &["fetch", "-q", &stage.root().display().to_string(), &spec]);
    std::fs::write(go, "").unwrap();
    run.wait().expect(11).says(&["passes alone, fails together", "tests of the base"]);
}

/// A small project whose tests pytest runs, and a builder that runs a line of shell.
fn project(files: &[(&str, &str)], task: &str, changes: &str, line: &str) -> Stage {
    let stage = Stage::new(BINARY);
    files.iter().for_each(|(name, text)| stage.write(name, text));
    stage.write(
        "tasks/say-done.md",
        &format!("# Task: Greet\n\nGoal:\n- {task}\n\nAcceptance Criteria:\n- it is right\n"),
    );
    stage.commit("a project");
    stage.config(
        "commands: { tests: pytest -q -p no:cacheprovider }\nloop: { max_iterations: 1 }\n",
    );
    let build = format!(
        "\n- step: build\n  do: [{{ run: {line:?} }}, {{ answer: {{ changed_files: [{changes}], notes: x }} }}]\n"
    );
    stage.agents(&[&build, APPROVES]);
    stage
}

const SKIPS: &str = "import pytest, greet
def test_words():
    if greet.OLD: pytest.skip('old')
    assert greet.words() == 'Hello'
def test_more(): pass
@pytest.mark.parametrize('name', greet.NAMES)
def test_names(name): pass
";

#[test]
fn a_change_of_the_product_alone_that_loses_tests_is_told() {
    let product = |old: &str, names: &str| {
        format!("OLD = {old}\nNAMES = {names}\ndef words(): return 'Hello'\n")
    };
    let before = product("False", "['a', 'b']");
    let files = [("greet.py", before.as_str()), ("test_greet.py", SKIPS)];
    let of = |old: &str, names: &str, task: &str| {
        let line = format!("cat > greet.py <<'END'\n{}END", product(old, names));
        project(&files, task, "greet.py", &line).run_task().expect(0)
    };
    of("True", "['a']", "greet").says(&[
        "Look at this before you merge",
        "`test_greet.py::test_words` ran on the base and is skipped now",
        "`test_greet.py::test_names[b]` ran on the base and is gone",
    ]);
    for (old, names, task) in
        [("0", "['a', 'c']", "greet others"), ("True", "['a', 'b']", "let test_words be skipped")]
    {
        let said = of(old, names, task).said();
        assert!(!said.contains("Look at this"), "{task}: {said}");
    }
}

#[test]
fn settings_that_no_run_can_exchange_are_told_unless_the_task_names_them() {
    let files = [("test_greet.py", "def test_words(): pass\n")];
    let line = "echo 'x = 1' > sitecustomize.py";
    project(&files, "greet", "sitecustomize.py", line)
        .run_task()
        .expect(0)
        .says(&["`sitecustomize.py` decides how tests run and can't be exchanged for the base's"]);
    let said = project(&files, "set x in sitecustomize.py", "sitecustomize.py", line)
        .run_task()
        .expect(0)
        .said();
    assert!(!said.contains("Look at this"), "{said}");
}
