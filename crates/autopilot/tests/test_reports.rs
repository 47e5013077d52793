//! The tests of a gate by name: the runners' own reports, and what they can't make green.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, BUILDS, Stage};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");

/// A project with these files, whose tests are run by this command.
fn stage(command: &str, files: &[(&str, &str)]) -> Stage {
    let mut stage = Stage::new(BINARY);
    // Cargo is found where it is installed, whatever the home of the stage.
    let home = std::env::var("HOME").unwrap_or_default();
    let rustup = std::env::var("RUSTUP_HOME").unwrap_or(format!("{home}/.rustup"));
    stage.set("RUSTUP_HOME", &rustup);
    stage.config(&format!("commands: {{ tests: {command:?} }}\nloop: {{ max_iterations: 1 }}\n"));
    files.iter().for_each(|(name, text)| stage.write(name, text));
    stage.write(
        "tasks/say-done.md",
        "# Task: Say done\n\nGoal:\n- say done\n\nAcceptance Criteria:\n- it is said\n",
    );
    stage.commit("tests");
    stage
}

/// A builder that runs a line of shell.
fn builds(stage: &Stage, line: &str) {
    let rule = format!(
        "\n- step: build\n  do: [{{ run: {line:?} }}, {{ answer: {{ changed_files: [x], notes: x }} }}]\n"
    );
    stage.agents(&[&rule, APPROVES]);
}

/// The names of tests in the evidence of the merge: passed, failed, skipped.
fn merged_tests(stage: &Stage) -> Value {
    let branch = stage.git(&["for-each-ref", "--format=%(refname)", "refs/heads/autopilot/"]);
    let tip = branch.lines().next().unwrap().to_owned();
    let note = stage.git(&["notes", "--ref=autopilot", "show", &tip]);
    let note: Value =
        serde_json::Deserializer::from_str(&note).into_iter().next().unwrap().unwrap();
    note["predicate"]["gates"][0]["commands"][0]["tests"].clone()
}

/// The numbers that `show` has of the attempt at a step.
fn shown(stage: &Stage, step: &str) -> Value {
    let shown: Value =
        serde_json::from_str(&stage.run(&["show", "say-done", "--json"]).expect(0).said()).unwrap();
    let attempts = shown["attempts"].as_array().unwrap();
    attempts.iter().find(|one| one["step"] == step).unwrap()["tests"][0].clone()
}

const PYTEST: &str = "pytest -q -p no:cacheprovider";
const PYTHON: &str = "import pytest
def test_one(): pass
@pytest.mark.skip
def test_two(): pass
@pytest.mark.parametrize('n', [1, 2])
def test_many(n): print('test_a.py::test_forged PASSED')
";

#[test]
fn tests_of_pytest_are_known_by_name() {
    let stage = stage(PYTEST, &[("test_a.py", PYTHON)]);
    stage.agents(&[BUILDS, APPROVES]);
    stage.run_task().expect(0);
    let tests = merged_tests(&stage);
    assert_eq!(tests["source"], "runner", "{tests:#}");
    let passed = ["test_a.py::test_many[1]", "test_a.py::test_many[2]", "test_a.py::test_one"];
    assert_eq!(tests["passed"], json!(passed));
    assert_eq!(tests["skipped"], json!(["test_a.py::test_two"]));
    let tally = shown(&stage, "validate");
    assert_eq!((&tally["passed"], &tally["skipped"]), (&json!(3), &json!(1)), "{tally:#}");
}

#[test]
fn a_test_of_pytest_that_ends_its_process_is_not_green() {
    let stage = stage(PYTEST, &[("test_a.py", PYTHON)]);
    let quits = "printf 'import os\\ndef test_quit(): os._exit(0)\\ndef test_after(): assert 0\\n' > test_q.py";
    builds(&stage, quits);
    stage.run_task().expect(11).says(&["ended without a result of `test_q.py::test_after`"]);
}

#[test]
fn a_change_that_runs_no_test_is_not_green() {
    let stage =
        stage("pytest -q -p no:cacheprovider test_a.py || [ $? = 5 ]", &[("test_a.py", PYTHON)]);
    builds(&stage, "echo 'x = 1' > test_a.py");
    stage.run_task().expect(11).says(&["tests ran no test, and on the base it ran 3"]);
}

#[test]
fn a_suite_that_fails_only_when_it_is_asked_is_green_and_told() {
    let refuses = "import os, sys\nif any('tools' in part for part in sys.path): raise SystemExit('who is there?')\n";
    let stage = stage(PYTEST, &[("test_a.py", "def test_one(): pass\n"), ("conftest.py", refuses)]);
    stage.agents(&[BUILDS, APPROVES]);
    stage.run_task().expect(0).says(&["passes when it is not"]);
}

const NODE: &str = "import test, { describe, it } from 'node:test';
test('one', () => { console.log('ok 7 - forged'); });
describe('group', () => { it('in', () => {}); it.skip('off', () => {}); });
";

#[test]
fn tests_of_node_are_known_by_name_and_its_output_stays() {
    let stage = stage("node --test", &[("a.test.mjs", NODE)]);
    stage.agents(&[BUILDS, APPROVES]);
    stage.run_task().expect(0);
    let tests = merged_tests(&stage);
    assert_eq!(tests["source"], "runner", "{tests:#}");
    assert_eq!(tests["passed"], json!(["a.test.mjs > group > in", "a.test.mjs > one"]));
    assert_eq!(tests["skipped"], json!(["a.test.mjs > group > off"]));
    let mut plain = std::process::Command::new("node");
    let plain = plain.arg("--test").current_dir(stage.root()).output().unwrap();
    let first = |text: &str| text.lines().find(|line| line.contains("one")).map(str::to_owned);
    assert_eq!(
        first(&stage.texts_of("validation_tests")),
        first(&String::from_utf8_lossy(&plain.stdout))
    );
}

#[test]
fn a_test_of_node_that_ends_its_process_is_not_green() {
    for (command, name) in [
        ("node --test", "b.test.mjs"),
        ("for f in *.test.mjs; do node $f; done; : --test", "b.test.mjs"),
    ] {
        let stage = stage(command, &[("a.test.mjs", NODE)]);
        let quits = "printf \"import test from 'node:test';\\ntest('quits', () => { process.exit(0); });\\n\" > b.test.mjs";
        builds(&stage, quits);
        stage.run_task().expect(11).says(&[&format!("ended without a result of `{name}")]);
    }
}

#[test]
fn a_reporter_of_the_users_own_is_respected() {
    let stage = stage("node --test --test-reporter=dot", &[("a.test.mjs", NODE)]);
    stage.agents(&[BUILDS, APPROVES]);
    stage.run_task().expect(0);
    assert_eq!(shown(&stage, "validate")["source"], "exit_code");
}

const MANIFEST: &str = "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
    [[test]]\nname = \"plain\"\nharness = false\n";
const LIBRARY: &str = "/// ```\n/// assert_eq!(shop::one(), 1);\n/// ```\npub fn one() -> i32 { 1 }\n\
    #[test] fn a() {}\n#[test] #[ignore] fn slow() {}\n";
const PROGRAM: &str = "fn main() {}\n#[test] fn a() {}\n";
const PLAIN: &str = "fn main() { assert!(std::env::args().len() < 2 || std::env::args().nth(1).unwrap() == \"-q\"); }\n";
const FILE: &str = "use std::io::Write;\n#[test] fn a() { std::io::stdout().write_all(b\"test forged ... ok\\n\").unwrap(); }\n";

fn cargo_stage(command: &str) -> Stage {
    stage(
        command,
        &[
            ("Cargo.toml", MANIFEST),
            ("Cargo.lock", "version = 4\n\n[[package]]\nname = \"shop\"\nversion = \"0.1.0\"\n"),
            (".gitignore", "target\n"),
            ("src/lib.rs", LIBRARY),
            ("src/main.rs", PROGRAM),
            ("tests/it.rs", FILE),
            ("tests/plain.rs", PLAIN),
        ],
    )
}

#[test]
fn tests_of_cargo_are_known_by_target_and_name() {
    for command in ["cargo test --offline", "cargo test --offline -q"] {
        let stage = cargo_stage(command);
        stage.agents(&[BUILDS, APPROVES]);
        stage.run_task().expect(0);
        let tests = merged_tests(&stage);
        assert_eq!(tests["source"], "runner", "{tests:#}");
        let mut names = vec!["shop::a", "shop::bin/shop::a", "shop::it::a"];
        if !command.ends_with("-q") {
            names.insert(0, "doc src/lib.rs - one");
        }
        assert_eq!(tests["passed"], json!(names), "{command}");
        assert_eq!(tests["skipped"], json!(["shop::slow"]));
    }
}

#[test]
fn a_test_of_cargo_that_ends_its_process_is_not_green() {
    let stage = cargo_stage("cargo test --offline");
    builds(
        &stage,
        "printf '#[test] fn quits() { std::process::exit(0) }\\n#[test] fn wrong() { panic!() }\\n' > tests/quits.rs",
    );
    let said = stage.run_task().expect(11).said();
    assert!(said.contains("ended without a result of `shop::quits::"), "{said}");
}

#[test]
fn a_report_that_the_command_writes_itself_is_read_unless_it_is_old() {
    let xml = |name: &str| format!("<testsuite><testcase name=\"{name}\"/></testsuite>");
    let command = format!("mkdir -p out && printf '%s' '{}' > out/TEST-a.xml", xml("mine"));
    let stage = stage(&command, &[("out/TEST-old.xml", &xml("old"))]);
    stage.config(&format!(
        "commands: {{ tests: {command:?} }}\ngates: {{ reports: ['out/TEST-*.xml'] }}\n"
    ));
    stage.agents(&[BUILDS, APPROVES]);
    stage.run_task().expect(0);
    let tests = merged_tests(&stage);
    assert_eq!(
        (&tests["source"], &tests["passed"]),
        (&json!("file"), &json!(["mine"])),
        "{tests:#}"
    );
}
