//! Repositories with submodules: every agent and gate finds their files, taken from the user's own objects,
//! and no change touches them.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::plan::{self, configure, outside, plan, task};
use autopilot_testkit::stage::{APPROVES, BUILDS, Stage, text};
use std::fs;

#[path = "warm/ground.rs"]
mod ground;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
const TESTS: &str = "commands: { tests: sh test.sh }\n";
/// Tests that need a file of the submodule, and one of the submodule in it.
const NEEDS: &str = "grep -q 42 lib/value.txt || { echo FAILED value; exit 1; }\n\
                     grep -q deep 'lib/in ner/value.txt' || { echo FAILED deep; exit 1; }\n\
                     ! grep broken app.txt\n";

/// Adds the submodule `lib`, which has one itself, to the project of a stage.
fn add_library(stage: &Stage) {
    let (library, inner) = (stage.folder().join("library"), stage.folder().join("inner"));
    for (dir, value) in [(&inner, "deep\n"), (&library, "42\n")] {
        fs::create_dir(dir).unwrap();
        stage.git_in(dir, &["init", "-q", "-b", "main"]);
        fs::write(dir.join("value.txt"), value).unwrap();
        fs::write(dir.join(".gitignore"), "built\n").unwrap();
        if *dir == library {
            submodule(stage, &library, &["add", "../inner", "in ner"]);
        }
        stage.git_in(dir, &["add", "-A"]);
        stage.git_in(dir, &["commit", "-q", "-m", "library"]);
    }
    submodule(stage, &stage.root(), &["add", &text(&library), "lib"]);
    submodule(stage, &stage.root(), &["update", "--init", "--recursive"]);
    stage.commit("a library");
}

fn submodule(stage: &Stage, dir: &std::path::Path, words: &[&str]) {
    let allowed = ["-c", "protocol.file.allow=always", "submodule", "--quiet"];
    stage.git_in(dir, &[&allowed[..], words].concat());
}

fn stage() -> Stage {
    let stage = Stage::new(BINARY);
    stage.write("test.sh", NEEDS);
    stage.write("tasks/say-done.md", TASK);
    add_library(&stage);
    stage
}

/// A task that may change every file.
const TASK: &str = "# Task: Say done\n\nGoal:\n- app.txt says done.\n\nAcceptance Criteria:\n\
                    - app.txt has a line `done`\n";

/// A builder that does this and then what it was asked for, and repairs by the latter alone.
fn builds_after(script: &str) -> String {
    format!(
        "
- step: build
  do:
    - run: {script:?}
    - append: {{ app.txt: \"done\\n\" }}
    - answer: {{ changed_files: [app.txt], notes: x }}
- step: fix
  do:
    - run: \"grep -q done app.txt || echo done >> app.txt\"
    - answer: {{ changed_files: [app.txt], notes: x }}
"
    )
}

/// The result names the same commit of the submodule, and nobody has touched what is the user's.
fn is_as_before(stage: &Stage, branch: &str) {
    let changed = stage.git(&["diff", "--name-only", "main", branch]);
    assert!(!changed.contains("lib") && !changed.contains(".gitmodules"), "{changed}");
    assert_eq!(stage.git(&["ls-tree", branch, "lib"]), stage.git(&["ls-tree", "main", "lib"]));
}

#[test]
fn agents_and_gates_have_the_files_of_a_submodule() {
    let stage = stage();
    let looks = "sh test.sh && test -z \"$(git status --porcelain)\" && git submodule status";
    let judge = "
- step: review
  do: [{ run: \"sh test.sh\" }, { answer: { verdict: APPROVE, summary: fine, issues: [] } }]
- step: uat_generate
  do: [{ answer: \"# Cases\\n1. app.txt says done\\n\" }]
";
    stage.agents(&[&builds_after(looks), judge]);
    let before = stage.digest();
    let said = stage.run_task().expect(0).said();
    assert!(!said.contains("Look at this"), "{said}");
    assert_eq!(stage.digest(), before);
    is_as_before(&stage, "autopilot/say-done");
    stage.run(&["replay"]).expect(0).says(&["all the same"]);
    stage.run(&["verify"]).expect(0);
    stage.run(&["verify", "--rerun"]).expect(0).says(&["again   tests (exit 0): sh test.sh"]);
    // A clone without the submodule can't prove it.
    let clone = stage.folder().join("clone");
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    stage.git(&["clone", "-q", "-b", &branch, ".", &text(&clone)]);
    stage.git_in(&clone, &["fetch", "-q", "origin", "refs/notes/*:refs/notes/*"]);
    let there = ["-C", &text(&clone), "verify", "--rerun", "HEAD"];
    stage.run(&there).expect(2).says(&["git submodule update --init --recursive -- lib"]);
    submodule(&stage, &clone, &["update", "--init", "--recursive"]);
    stage.run(&there).expect(0).says(&["again   tests (exit 0): sh test.sh"]);
}

#[test]
fn a_gate_over_what_the_base_built_has_them_too() {
    let stage = ground::shell_stage(NEEDS, "");
    stage.git(&["rm", "-rq", "lib"]);
    stage.commit("room for a library");
    add_library(&stage);
    ground::agents(&stage, "sh test.sh && echo done >> app.txt", "true");
    stage.run_task().expect(0);
    let gates = ground::gates(&stage);
    assert!(gates.contains("say-done.validate+ "), "{gates}");
    is_as_before(&stage, "autopilot/say-done");
    // A gate that changes a file of the submodule has proven nothing.
    ground::agents(&stage, "echo 'echo 42 43 > lib/value.txt' >> checks.sh", "true");
    stage.config(&format!("{TESTS}loop: {{ max_iterations: 1 }}\n"));
    stage.run(&["run", "--fresh", "tasks/say-done.md"]).expect(11).says(&["lib/value.txt"]);
}

#[test]
fn a_gate_that_changes_a_submodule_is_red() {
    let stage = stage();
    stage.config(&format!("{TESTS}loop: {{ max_iterations: 1 }}\n"));
    stage.agents(&[&builds_after("echo 'echo 42 43 > lib/value.txt' >> test.sh"), APPROVES]);
    stage.run_task().expect(11).says(&["lib/value.txt"]);
}

#[test]
fn edits_in_a_submodule_go_back_to_the_builder_and_are_kept() {
    let stage = stage();
    stage.agents(&[&builds_after("echo 43 > lib/value.txt; echo x > lib/built"), APPROVES]);
    let before = stage.digest();
    stage.run_task().expect(0);
    assert_eq!(stage.digest(), before);
    is_as_before(&stage, "autopilot/say-done");
    let prompt = stage.texts_of("say-done-fix/prompt.txt");
    for part in [
        "files of the submodule `lib` were changed (lib/value.txt), and Autopilot does not change \
         submodules",
        "-submodules",
    ] {
        assert!(prompt.contains(part), "`{part}` is not in:\n{prompt}");
    }
    stage.run(&["recover"]).expect(0).says(&["-submodules"]);
}

#[test]
fn what_a_build_leaves_in_a_submodule_is_a_note() {
    let stage = stage();
    stage.agents(&[&builds_after("mkdir lib/cache; echo x > lib/cache/x"), APPROVES]);
    let told = "new files in the submodule `lib` are not in the change (lib/cache/x)";
    let said = stage.run_task().expect(0).says(&[told]).said();
    assert!(!said.contains("Look at this") && !said.contains("iteration 2"), "{said}");
    is_as_before(&stage, "autopilot/say-done");
    stage.run(&["recover"]).expect(0).says(&["-submodules"]);
}

#[test]
fn a_submodule_that_is_moved_removed_or_declared_otherwise_is_not_merged() {
    let moved = format!(
        "git update-index --cacheinfo 160000,{},lib && git commit -qm moved",
        "1".repeat(40)
    );
    for (script, why) in [
        (moved.as_str(), "the submodule `lib` was moved to another commit"),
        ("rm -rf lib; echo true > test.sh", "a submodule was removed or replaced"),
        ("git rm -qf lib; echo true > test.sh", "or removed from git's index"),
        ("rm -rf lib; echo x > lib; echo true > test.sh", "a submodule was removed or replaced"),
        ("sed -i s/library/other/ .gitmodules", "submodules were changed"),
        ("git init -q more; echo x > more/x", "a git repository inside the worktree at more"),
    ] {
        let stage = stage();
        stage.config(&format!("{TESTS}loop: {{ max_iterations: 1 }}\n"));
        stage.agents(&[&builds_after(script), APPROVES]);
        let before = stage.digest();
        stage.run_task().expect(11).says(&[why]);
        assert_eq!(stage.digest(), before, "{script}");
    }
}

#[test]
fn the_tasks_of_a_plan_are_merged_around_a_submodule() {
    let planned = plan(&[task("one", &[]), task("two", &[]), task("three", &["one", "two"])]);
    let stage = plan::stage(BINARY, &planned);
    stage.write("test.sh", NEEDS);
    add_library(&stage);
    let before = stage.digest();
    stage.run(&plan::RUN).expect(0).says(&["DONE"]);
    assert_eq!(stage.digest(), before);
    is_as_before(&stage, &plan::branch(&stage));
    let files = stage.git(&["ls-tree", "--name-only", &plan::branch(&stage)]);
    for name in ["one.txt", "two.txt", "three.txt"] {
        assert!(files.contains(name), "{files}");
    }
}

#[test]
fn a_killed_run_goes_on_and_keeps_what_was_done_to_a_submodule() {
    let stage = stage();
    fs::create_dir(stage.folder().join("stamps")).unwrap();
    configure(&stage, TESTS);
    let stamp = outside(&stage, "begun");
    let waits = format!("echo 43 > lib/value.txt; echo x > {}; sleep 600", text(&stamp));
    stage.agents(&[&builds_after(&waits), APPROVES]);
    let digest = || {
        let mut digest = stage.digest();
        digest.remove("agents.yml");
        digest
    };
    let before = digest();
    let run = stage.start(&["run", "tasks/say-done.md"]);
    stage.wait_until("the builder has edited the submodule", |_| stamp.exists());
    run.signal("KILL");
    run.wait();
    stage.agents(&[BUILDS, APPROVES]);
    stage.run(&["resume"]).expect(0).says(&["DONE"]);
    assert_eq!(digest(), before);
    is_as_before(&stage, "autopilot/say-done");
    stage.run(&["recover"]).expect(0).says(&["-submodules"]);
}
