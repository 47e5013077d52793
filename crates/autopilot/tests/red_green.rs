//! `gates.proof: red_green`: nothing is done before each acceptance criterion has a test that fails
//! without the change, and whoever says which test that is is not believed.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::goal::{GOAL, answers, step, workflow};
use autopilot_testkit::plan;
use autopilot_testkit::stage::{APPROVES, Stage};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
const PYTEST: &str = "pytest -q -p no:cacheprovider";
const ADDS: &str = "def add(a, b):\n    return a + b\n";
const TEST_ADD: &str = "import calc\n\ndef test_add():\n    assert calc.add(1, 2) == 3\n";

/// A small program with a test, and the task to subtract as well.
fn stage(more: &str, files: &[(&str, &str)]) -> Stage {
    let mut stage = Stage::new(BINARY);
    // Cargo is found where it is installed, whatever the home of the stage.
    let home = std::env::var("HOME").unwrap_or_default();
    let rustup = std::env::var("RUSTUP_HOME").unwrap_or(format!("{home}/.rustup"));
    stage.set("RUSTUP_HOME", &rustup);
    files.iter().for_each(|(name, text)| stage.write(name, text));
    stage.commit("a program and its test");
    stage.write(
        "tasks/say-done.md",
        "# Task: Subtract\n\nGoal:\n- Numbers are subtracted.\n\nAcceptance Criteria:\n\
         - sub(3, 1) is 2\n- neg(1) is -1\n",
    );
    stage.config(more);
    stage
}

fn config(command: &str, rounds: u32) -> String {
    format!(
        "commands: {{ tests: {command:?} }}\ngates: {{ proof: red_green }}\n\
         loop: {{ max_iterations: {rounds} }}\n"
    )
}

fn of_python(rounds: u32) -> Stage {
    stage(&config(PYTEST, rounds), &[("calc.py", ADDS), ("test_add.py", TEST_ADD)])
}

/// An agent that writes these files at a step. JSON is YAML.
fn writes(step: &str, files: &[(&str, &str)]) -> String {
    let written = files.iter().map(|(name, text)| json!({ "write": { *name: text } }));
    let answer = json!({ "answer": { "changed_files": [], "notes": "x" } });
    let acts: Vec<Value> = written.chain([answer]).collect();
    format!("\n- step: {step}\n  do: {}\n", json!(acts))
}

fn maps(answer: &Value) -> String {
    format!("\n- step: coverage\n  do: [{{ answer: {answer} }}]\n")
}

fn covering(first: &[&str], second: &[&str]) -> Value {
    let map = json!([
        { "criterion": "AC-1", "tests": first },
        { "criterion": "AC-2", "tests": second },
    ]);
    json!({ "map": map, "allCovered": true, "uncovered": [] })
}

const SUBTRACTS: &str = "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n    return a - b\n\n\
    def neg(a):\n    return -a\n";
const TEST_SUB: &str = "import calc\n\ndef test_sub():\n    assert calc.sub(3, 1) == 2\n\n\
    def test_neg():\n    assert calc.neg(1) == -1\n";
const SUB: &str = "test_sub.py::test_sub";
const NEG: &str = "test_sub.py::test_neg";
const CHANGE: &[(&str, &str)] = &[("calc.py", SUBTRACTS), ("test_sub.py", TEST_SUB)];

/// The statement on the last commit of the run.
fn note(stage: &Stage) -> Value {
    let branch = stage.git(&["for-each-ref", "--format=%(refname)", "refs/heads/autopilot/"]);
    let tip = branch.lines().find(|name| name.contains("/run-")).unwrap().to_owned();
    let note = stage.git(&["notes", "--ref=autopilot", "show", &tip]);
    serde_json::Deserializer::from_str(&note).into_iter().next().unwrap().unwrap()
}

#[test]
fn an_honest_change_is_done_without_a_doubt_and_every_surface_has_the_map() {
    let stage = of_python(2);
    stage.agents(&[&writes("build", CHANGE), &maps(&covering(&[SUB], &[NEG])), APPROVES]);
    let said = stage.run_task().expect(0).said();
    assert!(!said.contains("Look at this"), "{said}");
    let line = format!("AC-1: covered by `{SUB}`");
    let prompt = stage.texts_of("say-done-coverage/prompt.txt");
    for part in ["- AC-1: sub(3, 1) is 2\n- AC-2: neg(1) is -1", "They fail without the change:"] {
        assert!(prompt.contains(part), "`{part}` is not in:\n{prompt}");
    }
    let old = "so they do not count:\n\n- `test_add.py::test_add`";
    assert!(prompt.contains(old), "{prompt}");
    assert!(stage.first_task()["notes"].to_string().contains(&line));
    assert!(stage.read(".autopilot/STATUS.md").contains(&line));
    stage.run(&["show", "say-done"]).expect(0).says(&[&line]);
    let shown = stage.run(&["show", "say-done", "--json"]).expect(0).out;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let attempts = shown["attempts"].as_array().unwrap();
    let coverage = &attempts.iter().find(|one| one["step"] == "coverage").unwrap()["coverage"];
    assert_eq!(coverage["verdict"], "covered");
    assert_eq!(coverage["criteria"][1]["tests"], json!([NEG]));
    let told = &note(&stage)["predicate"]["coverage"];
    let first = json!({ "criterion": "AC-1", "text": "sub(3, 1) is 2", "tests": [SUB] });
    assert_eq!(told[0], first, "{told:#}");
    stage.run(&["verify"]).expect(0);
    stage.run(&["report"]).expect(0);
    let page = stage.texts_of("report.html");
    assert!(page.contains("AC-1: covered by"), "{page}");
}

#[test]
fn a_vacuous_test_fails_the_round_and_the_repair_is_told_each_criterion() {
    let stage = of_python(3);
    let vacuous = "def test_sub():\n    assert True\n\ndef test_neg():\n    assert True\n";
    stage.agents(&[
        &writes("build", &[("calc.py", SUBTRACTS), ("test_sub.py", vacuous)]),
        &writes("fix", &[("test_sub.py", TEST_SUB)]),
        &maps(&covering(&[SUB], &[NEG])),
        APPROVES,
    ]);
    let said = stage.run_task().expect(0).said();
    assert!(!said.contains("Look at this"), "{said}");
    // Where no test is red, nobody is paid to say so.
    assert_eq!(stage.views("say-done-coverage/prompt.txt").len(), 1);
    let prompt = stage.texts_of("say-done-fix/prompt.txt");
    for part in [
        "no test fails without the change",
        "AC-1 (“sub(3, 1) is 2”) is not covered",
        "AC-2 (“neg(1) is -1”) is not covered",
    ] {
        assert!(prompt.contains(part), "`{part}` is not in:\n{prompt}");
    }
}

#[test]
fn a_criterion_that_no_test_covers_is_named_and_the_others_are_not() {
    let stage = of_python(3);
    let half = "import calc\n\ndef test_sub():\n    assert calc.sub(3, 1) == 2\n";
    let no = json!({
        "map": [{ "criterion": "AC-1", "tests": [SUB] }],
        "allCovered": false,
        "uncovered": ["AC-2"],
    });
    let second = format!(
        "\n- step: coverage\n  iteration: 2\n  do: [{{ answer: {} }}]\n",
        covering(&[SUB], &[NEG])
    );
    stage.agents(&[
        &writes("build", &[("calc.py", SUBTRACTS), ("test_sub.py", half)]),
        &writes("fix", &[("test_sub.py", TEST_SUB)]),
        &second,
        &maps(&no),
        APPROVES,
    ]);
    stage.run_task().expect(0);
    let prompt = stage.texts_of("say-done-fix/prompt.txt");
    assert!(prompt.contains("AC-2 (“neg(1) is -1”) is not covered"), "{prompt}");
    assert!(!prompt.contains("AC-1 (“"), "{prompt}");
}

#[test]
fn whoever_says_more_than_the_runs_have_shown_is_not_believed() {
    let all = json!({ "map": [], "allCovered": true, "uncovered": [] });
    for (answer, why) in [
        (
            covering(&[SUB], &["test_add.py::test_add"]),
            "`test_add.py::test_add` does not fail without",
        ),
        (covering(&[SUB], &["test_sub.py::test_none"]), "`test_sub.py::test_none` does not pass"),
        (covering(&[SUB], &["test_sub.py"]), "`test_sub.py` does not pass"),
        (all, "AC-1 (“sub(3, 1) is 2”): no test of the change covers it"),
    ] {
        let stage = of_python(1);
        stage.agents(&[&writes("build", CHANGE), &maps(&answer), APPROVES]);
        stage.run_task().expect(11).says(&["criteria without a test that fails", why]);
    }
}

#[test]
fn a_test_that_does_not_load_without_the_change_counts_and_is_marked() {
    let stage = of_python(1);
    let test = "from calc import neg, sub\n\ndef test_sub():\n    assert sub(3, 1) == 2\n\n\
                def test_neg():\n    assert neg(1) == -1\n";
    stage.agents(&[
        &writes("build", &[("calc.py", SUBTRACTS), ("test_sub.py", test)]),
        &maps(&covering(&[SUB], &[NEG])),
        APPROVES,
    ]);
    let said = stage.run_task().expect(0).said();
    assert!(!said.contains("Look at this"), "{said}");
    let notes = stage.first_task()["notes"].to_string();
    assert!(notes.contains(&format!("AC-1: weakly covered by `{SUB}`")), "{notes}");
    assert_eq!(note(&stage)["predicate"]["coverage"][0]["weakTests"], json!([SUB]));
}

#[test]
fn a_new_test_that_passes_without_the_change_is_a_doubt() {
    let stage = of_python(1);
    let more = format!("{TEST_SUB}\ndef test_nothing():\n    assert calc.add(0, 0) == 0\n");
    stage.agents(&[
        &writes("build", &[("calc.py", SUBTRACTS), ("test_sub.py", &more)]),
        &maps(&covering(&[SUB], &[NEG])),
        APPROVES,
    ]);
    let told = "the test `test_sub.py::test_nothing` is new or changed and does not fail without the change";
    stage.run_task().expect(0).says(&["Look at this before you merge", told]);
}

#[test]
fn without_the_gate_nobody_maps_anything() {
    let stage = of_python(1);
    stage.config(&format!("commands: {{ tests: {PYTEST:?} }}\n"));
    stage.agents(&[&writes("build", CHANGE), APPROVES]);
    let said = stage.run_task().expect(0).said();
    assert!(!said.contains("Look at this"), "{said}");
    assert_eq!(stage.views("coverage").len(), 0);
    assert!(note(&stage)["predicate"].get("coverage").is_none());
}

#[test]
fn an_answer_that_cannot_be_read_is_asked_for_once_more() {
    let stage = of_python(1);
    let again = format!(
        "\n- step: coverage\n  prompt: Your last answer could not be used\n  do: [{{ answer: {} }}]\n",
        covering(&[SUB], &[NEG])
    );
    stage.agents(&[
        &writes("build", CHANGE),
        &again,
        &maps(&json!({ "map": "all of it" })),
        APPROVES,
    ]);
    stage.run_task().expect(0);
    let prompts = stage.texts_of("say-done-coverage/prompt.txt");
    assert!(prompts.contains("allCovered"), "{prompts}");
    // An answer that stays wrong is none, and the step is tried again, not taken for a yes.
    stage.agents(&[&writes("build", CHANGE), &maps(&json!({ "map": "all of it" })), APPROVES]);
    stage.run(&["run", "--fresh", "tasks/say-done.md"]).expect(10);
}

#[test]
fn a_kill_while_tests_are_mapped_loses_nothing() {
    let stage = of_python(1);
    let gate = stage.folder().join("gate");
    let waits = format!(
        "\n- step: coverage\n  do:\n    - run: 'while [ ! -e {} ]; do sleep 0.02; done'\n    - answer: {}\n",
        gate.display(),
        covering(&[SUB], &[NEG])
    );
    stage.agents(&[&writes("build", CHANGE), &waits, APPROVES]);
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_until("tests are mapped", |it| !it.views("say-done-coverage/prompt.txt").is_empty());
    run.signal("KILL");
    run.wait();
    std::fs::write(gate, "").unwrap();
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    assert_eq!(stage.views("say-done-build/prompt.txt").len(), 1);
}

#[test]
fn tests_of_node_cargo_and_a_script_that_names_them_can_cover() {
    let node = "import test from 'node:test';\nimport assert from 'node:assert';\n\
                import * as calc from './calc.mjs';\ntest('sub', () => assert.equal(calc.sub?.(3, 1), 2));\n\
                test('neg', () => assert.equal(calc.neg?.(1), -1));\n";
    let library = "pub fn add(a: i32, b: i32) -> i32 { a + b }\n";
    let subtracts =
        "pub fn sub(a: i32, b: i32) -> i32 { a - b }\npub fn neg(a: i32) -> i32 { -a }\n";
    let tests = "#[test] fn sub() { assert_eq!(calc::sub(3, 1), 2); }\n#[test] fn neg() { assert_eq!(calc::neg(1), -1); }\n";
    let script = "n=0; code=0\nfor t in tests/*.sh; do n=$((n+1)); if sh $t; then echo \"ok $n - $t\"; \
                  else echo \"not ok $n - $t\"; code=1; fi; done\necho 1..$n\nexit $code\n";
    let manifest = "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    let rust = format!("{library}{subtracts}");
    for (command, before, change, covers, is_weak) in [
        (
            "node --test",
            vec![
                ("calc.mjs", "export const add = (a, b) => a + b;\n"),
                ("a.test.mjs", "import test from 'node:test';\ntest('one', () => {});\n"),
            ],
            vec![
                (
                    "calc.mjs",
                    "export const sub = (a, b) => a - b;\nexport const neg = (a) => -a;\n",
                ),
                ("b.test.mjs", node),
            ],
            ["b.test.mjs > sub", "b.test.mjs > neg"],
            false,
        ),
        (
            "cargo test --offline",
            vec![
                ("Cargo.toml", manifest),
                ("src/lib.rs", library),
                (".gitignore", "/target\nCargo.lock\n"),
            ],
            vec![("src/lib.rs", rust.as_str()), ("tests/calc.rs", tests)],
            ["calc::calc::sub", "calc::calc::neg"],
            true,
        ),
        (
            "sh test.sh",
            vec![
                ("test.sh", script),
                ("calc.sh", "echo $(($1 + $2))\n"),
                ("tests/add.sh", "[ $(sh calc.sh 1 2) = 3 ]\n"),
            ],
            vec![
                ("sub.sh", "echo $(($1 - $2))\n"),
                ("tests/sub.sh", "[ \"$(sh sub.sh 3 1)\" = 2 ]\n"),
                ("tests/neg.sh", "[ \"$(sh sub.sh 0 1)\" = -1 ]\n"),
            ],
            ["tests/sub.sh", "tests/neg.sh"],
            false,
        ),
    ] {
        let stage = self::stage(&config(command, 1), &before);
        let answer = covering(&covers[..1], &covers[1..]);
        stage.agents(&[&writes("build", &change), &maps(&answer), APPROVES]);
        let said = stage.run_task().expect(0).said();
        assert!(!said.contains("Look at this"), "{command}: {said}");
        let told = note(&stage)["predicate"]["coverage"][0].clone();
        let key = if is_weak { "weakTests" } else { "tests" };
        assert_eq!(told[key], json!([covers[0]]), "{command}");
    }
}

#[test]
fn an_exit_code_alone_covers_nothing_and_the_configuration_is_named() {
    let stage = stage(&config("sh test.sh", 3), &[]);
    stage.agents(&[
        &writes("build", &[("app.txt", "done\n"), ("test.sh", "grep done app.txt\n")]),
        APPROVES,
    ]);
    stage
        .run_task()
        .expect(10)
        .says(&["`gates.proof: red_green` needs the names of tests", "`gates.reports`"]);
    assert_eq!(stage.views("say-done-fix").len(), 0, "no agent can mend that");
}

#[test]
fn the_gate_needs_tests_before_anything_begins() {
    let stage = stage("gates: { proof: red_green }\n", &[]);
    let why = "`gates.proof: red_green` needs `commands.tests`";
    stage.run(&GOAL).expect(78).says(&[why]);
    stage.run_task().expect(78).says(&[why]);
    assert_eq!(stage.views("prompt.txt").len(), 0);
    assert!(stage.run(&["doctor"]).said().contains(why));
}

#[test]
fn a_test_that_is_red_on_the_base_covers_what_turns_it_green() {
    let red = [("calc.py", ADDS), ("test_add.py", TEST_ADD), ("test_sub.py", TEST_SUB)];
    let stage = stage(&config(PYTEST, 1), &red);
    stage.agents(&[
        &writes("build", &[("calc.py", SUBTRACTS)]),
        &maps(&covering(&[SUB], &[NEG])),
        APPROVES,
    ]);
    stage.run(&["run", "--allow-red-base", "tasks/say-done.md"]).expect(0);
    let notes = stage.first_task()["notes"].to_string();
    assert!(notes.contains(&format!("AC-2: covered by `{NEG}`")), "{notes}");
}

#[test]
fn a_goal_needs_a_test_that_fails_without_what_was_done() {
    let covers = |test: &str| json!({ "map": [{ "criterion": "AC-1", "tests": [test] }], "allCovered": true, "uncovered": [] });
    let goal = |test: &str, iterations: &str| {
        let stage = of_python(1);
        stage.agents(&[
            &answers("workflow", 1, &workflow("w", &[step("one", &[])])),
            &answers("workflow", 2, &workflow("w", &[step("two", &[])])),
            &writes("step", CHANGE),
            &maps(&covers(test)),
            "\n- step: completion\n  do: [{ answer: { done: true, summary: fine } }]\n",
        ]);
        let ended = stage.run(&[&GOAL[..], &["--max-iterations", iterations]].concat());
        (stage, ended)
    };
    let (stage, ended) = goal(SUB, "1");
    let said = ended.expect(0).said();
    assert!(!said.contains("Look at this"), "{said}");
    assert_eq!(note(&stage)["predicate"]["whole"]["coverage"][0]["tests"], json!([SUB]));
    let prompt = stage.texts_of("run-coverage/prompt.txt");
    assert!(prompt.contains("- AC-1: Make app.txt say done"), "{prompt}");
    let (stage, ended) = goal("test_add.py::test_add", "2");
    ended.expect(11).says(&["`test_add.py::test_add` does not fail without the change"]);
    let prompts = stage.texts_of("run-workflow/prompt.txt");
    assert!(prompts.contains("criteria without a test that fails without the change"), "{prompts}");
    let prompts = stage.texts_of("run-completion/prompt.txt");
    assert!(prompts.contains("A test of the goal has to fail without the change"), "{prompts}");
}

#[test]
fn each_task_of_a_plan_is_covered_by_its_own_tests() {
    let stage = of_python(2);
    stage.write("plan.md", plan::PLAN_MD);
    let of = |name: &str| {
        let (text, file) = (format!("{name}.txt"), format!("test_{name}.py"));
        let test = format!("def test_it():\n    assert open('{text}').read()\n");
        let covers = json!({
            "map": [{ "criterion": "AC-1", "tests": [format!("{file}::test_it")] }],
            "allCovered": true,
            "uncovered": [],
        });
        let rules = [writes("build", &[(&text, "x\n"), (&file, &test)]), maps(&covers)].concat();
        rules.replace("  do:", &format!("  task: {name}\n  do:"))
    };
    let tasks = plan::plan(&[plan::task("a", &[]), plan::task("b", &["a"])]);
    stage.agents(&[&plan::says(&tasks), &of("a"), &of("b"), APPROVES]);
    stage.run(&plan::RUN).expect(0);
    for name in ["a", "b"] {
        assert_eq!(stage.views(&format!("{name}-coverage/prompt.txt")).len(), 1, "{name}");
    }
}
