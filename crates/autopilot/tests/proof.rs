//! Ways to be called DONE without having earned it, each of them closed.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, Stage};

fn stage(config: &str) -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    // No allowed paths: what is tried here goes further than a guard's rule.
    let task = "# Task: Say done\n\nGoal:\n- say done\n\nAcceptance Criteria:\n- it is said\n";
    stage.write("tasks/say-done.md", task);
    stage.config(config);
    stage
}

/// The builder's first try and its fix, each a line for the shell.
fn agents(stage: &Stage, build: &str, fix: &str) {
    let rules = format!(
        "
- step: build
  do: [{{ run: {build:?} }}, {{ answer: {{ changed_files: [x], notes: x }} }}]
- step: fix
  do: [{{ run: {fix:?} }}, {{ answer: {{ changed_files: [x], notes: x }} }}]
"
    );
    stage.agents(&[&rules, APPROVES]);
}

const TESTS: &str = "commands: { tests: sh test.sh }\nloop: { max_iterations: 2 }\n";

#[test]
fn what_a_gate_leaves_in_its_build_folder_does_not_help_the_next_gate() {
    let stage = stage(TESTS);
    stage.write(".gitignore", "target/\n");
    stage.write("Cargo.lock", "# locked\n");
    stage.commit("a project whose build folder is kept");
    agents(
        &stage,
        "echo 'mkdir -p target; touch target/proof; exit 1' > test.sh",
        "echo '[ -f target/proof ]' > test.sh",
    );
    stage.run_task().expect(11);
}

#[test]
fn what_a_gate_leaves_in_a_package_cache_does_not_help_the_next_gate() {
    let stage = stage(TESTS);
    agents(
        &stage,
        "echo 'touch $CARGO_HOME/proof $XDG_CACHE_HOME/proof; exit 1' > test.sh",
        "echo '[ -f $CARGO_HOME/proof ] || [ -f $XDG_CACHE_HOME/proof ]' > test.sh",
    );
    stage.run_task().expect(11);
}

#[test]
fn what_an_agent_leaves_in_shared_memory_does_not_help_a_gate() {
    let stage = stage(TESTS);
    let file = format!("/dev/shm/autopilot-proof-{}", std::process::id());
    let build = format!("touch {file}; echo '[ -f {file} ]' > test.sh");
    agents(&stage, &build, &build);
    stage.run_task().expect(11);
    assert!(!std::path::Path::new(&file).exists(), "the sandbox let it be written");
}

#[test]
fn every_check_sees_the_commit_and_not_what_the_one_before_made_of_it() {
    let stage = stage(
        "commands: { tests: sh test.sh, lint: grep -q good app.txt }\nloop: { max_iterations: 2 }\n",
    );
    stage.write("app.txt", "good\n");
    stage.commit("good");
    let build = "echo bad > app.txt; echo 'echo good >> app.txt' > test.sh";
    agents(&stage, build, &format!("{build}; echo >> test.sh"));
    stage.run_task().expect(11).says(&["lint failed"]);
}

#[test]
fn a_formatter_with_something_to_do_has_failed() {
    let stage =
        stage("commands: { tests: 'true', format: sh fmt.sh }\nloop: { max_iterations: 1 }\n");
    // Never content: every run changes the file once more.
    stage.write("fmt.sh", "#!/bin/sh\n[ ! -f started ] || echo x >> app.txt\n");
    stage.commit("a formatter");
    agents(&stage, "touch started", "true");
    stage.run_task().expect(11).says(&["format would change files"]);
}

#[test]
fn no_change_at_all_is_not_done() {
    let stage = stage(TESTS);
    agents(&stage, "true", "true");
    stage.run_task().expect(11).says(&["nothing was changed"]);
}

#[test]
fn a_large_binary_counts_against_the_cap() {
    let stage = stage(TESTS);
    let build = "head -c 2000000 /dev/urandom > blob.bin";
    agents(&stage, build, "rm blob.bin; echo more >> app.txt");
    stage.run_task().expect(0);
    assert_eq!(stage.first_task()["iteration"], 2);
    assert!(stage.texts_of("fix").contains("the cap is 800"));
}

#[test]
fn an_edit_of_the_file_that_decides_is_shown_to_the_reviewer() {
    let stage = stage(TESTS);
    agents(&stage, "echo 'exit 0' > test.sh; echo more >> app.txt", "true");
    stage.run_task().expect(0);
    let prompt = stage.texts_of("review");
    assert!(prompt.contains("which the tests command runs"), "{prompt}");
}

/// On a base whose tests fail with `base`, a change whose tests fail with `change` is refused.
#[track_caller]
fn is_a_new_failure(base: &str, change: &str) {
    let stage =
        stage("commands: { tests: sh test.sh, lint: sh lint.sh }\nloop: { max_iterations: 1 }\n");
    stage.write("test.sh", base);
    stage.write("lint.sh", "exit 0\n");
    stage.commit("red");
    let rules = format!(
        "
- step: build
  do:
    - write: {change}
    - answer: {{ changed_files: [x], notes: x }}
"
    );
    stage.agents(&[&rules, APPROVES]);
    stage.run(&["run", "tasks/say-done.md", "--allow-red-base"]).expect(11);
}

#[test]
fn a_new_failure_far_above_the_old_one_is_new() {
    is_a_new_failure(
        "echo 'test a ... FAILED'; exit 1\n",
        "{ test.sh: \"echo 'test b ... FAILED'; seq 400; echo 'test a ... FAILED'; exit 1\\n\" }",
    );
}

#[test]
fn a_crash_after_the_old_failure_is_new() {
    is_a_new_failure(
        "echo 'test a ... FAILED'; exit 1\n",
        "{ test.sh: \"echo 'test a ... FAILED'; kill -SEGV $$\\n\" }",
    );
}

#[test]
fn another_way_to_fail_in_silence_is_new() {
    is_a_new_failure("exit 1\n", "{ test.sh: \"exit 99\\n\" }");
    is_a_new_failure("exit 1\n", "{ test.sh: \"true; exit 1\\n\" }");
}

#[test]
fn another_check_that_fails_like_the_first_is_new() {
    is_a_new_failure(
        "echo 'test a ... FAILED'; exit 1\n",
        "{ lint.sh: \"echo 'test a ... FAILED'; exit 1\\n\" }",
    );
}

#[test]
fn a_review_is_waived_only_while_the_file_is_there() {
    let stage = stage(TESTS);
    stage.task("a", "First");
    stage.task("b", "Second");
    std::fs::remove_file(stage.path("tasks/say-done.md")).unwrap();
    let build = "
- step: build
  task: a
  do: [{ run: 'echo a >> app.txt; sleep 1' }, { answer: { changed_files: [x], notes: x } }]
- step: build
  task: b
  do: [{ run: 'echo b >> app.txt; sleep 1' }, { answer: { changed_files: [x], notes: x } }]
";
    stage.agents(&[build, APPROVES]);
    let run = stage.start(&["run", "--queue", "tasks"]);
    stage.wait_for_step("BUILD");
    stage.write(".autopilot/AUTOPILOT_SKIP_REVIEW", "");
    stage.wait_until("the first is done", |stage| stage.status()["tasks"][0]["status"] == "DONE");
    std::fs::remove_file(stage.path(".autopilot/AUTOPILOT_SKIP_REVIEW")).unwrap();
    run.wait().expect(0);
    let reviews = stage.views("review.json");
    assert_eq!(reviews.len(), 1, "only the second was reviewed: {reviews:?}");
    assert!(stage.read(".autopilot/STATUS.md").contains("REVIEW WAS SKIPPED"));
}

#[test]
fn a_link_in_the_place_of_a_cache_opens_nothing() {
    let stage = stage(
        "commands: { tests: sh test.sh }\nworktrees: { setup: sh setup.sh }\n\
         loop: { max_iterations: 1 }\n",
    );
    stage.write("setup.sh", "exit 0\n");
    stage.commit("with a setup");
    let target = stage.folder().join("outside");
    std::fs::create_dir(&target).unwrap();
    let build = format!(
        "echo 'rm -rf $CARGO_HOME; ln -s {0} $CARGO_HOME; exit 0' > setup.sh; \
         echo 'echo evil > {0}/file; echo evil > $CARGO_HOME/file' > test.sh",
        target.display()
    );
    agents(&stage, &build, "true");
    let _either_way = stage.run_task();
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0, "it was written from a gate");
}

#[test]
fn what_one_run_leaves_in_a_cache_does_not_help_the_next() {
    let stage = stage("commands: { tests: sh test.sh }\nloop: { max_iterations: 1 }\n");
    agents(
        &stage,
        "echo 'mkdir -p $GOMODCACHE/m; touch $GOMODCACHE/m/f $CARGO_HOME/f; chmod 555 $GOMODCACHE/m; exit 1' > test.sh",
        "true",
    );
    stage.run_task().expect(11);
    agents(&stage, "echo '[ -f $GOMODCACHE/m/f ] || [ -f $CARGO_HOME/f ]' > test.sh", "true");
    stage.run_task().expect(11);
}

#[test]
fn what_the_base_of_one_run_left_in_a_cache_does_not_help_the_next_run() {
    let stage = stage("commands: { tests: sh test.sh }\nloop: { max_iterations: 1 }\n");
    stage.write("test.sh", "touch $CARGO_HOME/proof\n");
    stage.commit("tests that leave something");
    agents(&stage, "echo more >> app.txt", "true");
    stage.run_task().expect(0);
    stage.git(&["reset", "-q", "--hard", "HEAD~1"]);
    agents(&stage, "echo '[ -f $CARGO_HOME/proof ]' > test.sh", "true");
    stage.run_task().expect(11);
}

#[test]
fn what_setup_made_is_there_for_every_check() {
    let stage = stage(
        "commands: { tests: sh test.sh, lint: test -f venv/ready }\n\
         worktrees: { setup: 'mkdir -p venv && touch venv/ready' }\n",
    );
    stage.write(".gitignore", "venv/\n");
    stage.write("test.sh", "touch coverage.xml\n");
    stage.commit("tests that leave a file, a lint that needs the setup");
    agents(&stage, "echo more >> app.txt", "true");
    stage.run_task().expect(0);
}

#[test]
fn a_check_does_not_see_the_ignored_files_of_the_one_before() {
    let stage =
        stage("commands: { tests: sh test.sh, lint: sh lint.sh }\nloop: { max_iterations: 1 }\n");
    stage.write("app.txt", "good\n");
    stage.write("lint.sh", "[ ! -f plugins/x.sh ] || . plugins/x.sh\ngrep -q good app.txt\n");
    stage.commit("a lint with plugins");
    let build = "echo bad > app.txt; echo \"mkdir -p plugins; echo '*' > plugins/.gitignore; \
                 echo exit 0 > plugins/x.sh\" > test.sh";
    agents(&stage, build, "true");
    stage.run_task().expect(11).says(&["lint failed"]);
}

#[test]
fn a_known_failure_stays_known_when_the_tests_leave_a_file() {
    let stage =
        stage("commands: { tests: sh test.sh, lint: 'true' }\nloop: { max_iterations: 1 }\n");
    stage.write("test.sh", "touch cov.xml; echo 'test a ... FAILED'; exit 1\n");
    stage.commit("red");
    agents(&stage, "echo more >> app.txt", "true");
    stage.run(&["run", "tasks/say-done.md", "--allow-red-base"]).expect(0);
}

#[test]
fn a_base_that_is_not_formatted_does_not_make_the_task_format_it() {
    let stage = stage(
        "commands: { tests: 'true', format: 'sed -i s,zz,yy, old.txt' }\n\
         loop: { max_iterations: 1 }\n",
    );
    stage.write("old.txt", "zz\n");
    stage.commit("rough");
    agents(&stage, "echo more >> app.txt", "true");
    stage.run(&["run", "tasks/say-done.md", "--allow-red-base"]).expect(0);
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    assert_eq!(stage.git(&["diff", "--name-only", "main", &branch]), "app.txt");
}
