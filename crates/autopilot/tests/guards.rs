//! Changes a task may not make: told to the builder, and never merged.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, Stage};

fn stage() -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    stage.write("infra/net.txt", "net\n");
    stage.write("tests/old_test.sh", "#!/bin/sh\nexit 0\n");
    stage.commit("more to guard");
    stage.config(
        "commands: { tests: sh test.sh }\nsafety: { deny_paths: [infra/], forbid_todos: true }\n\
         loop: { diff_line_cap: 50 }\n",
    );
    stage
}

/// The first build breaks a rule by `wrong`; the fix takes it back by `right`.
#[track_caller]
fn told_and_taken_back(stage: &Stage, wrong: &str, right: &str, told: &[&str]) {
    let agents = format!(
        "
- step: build
  do:
    - append: {{ app.txt: \"done\\n\" }}
    - run: \"{wrong}\"
    - answer: {{ changed_files: [app.txt], notes: x }}
- step: fix
  do:
    - run: \"{right}\"
    - answer: {{ changed_files: [app.txt], notes: x }}
"
    );
    stage.agents(&[&agents, APPROVES]);
    stage.run_task().expect(0);
    assert_eq!(stage.first_task()["iteration"], 2, "{:#}", stage.first_task());
    let prompt = stage.texts_of("fix");
    for text in told {
        assert!(prompt.contains(text), "`{text}` is not in the prompt:\n{prompt}");
    }
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    assert_eq!(stage.git(&["diff", "--name-only", "main", &branch]), "app.txt");
}

#[test]
fn a_file_outside_the_allowed_paths_must_go() {
    told_and_taken_back(
        &stage(),
        "echo x > other.txt",
        "rm other.txt",
        &["other.txt", "may be changed"],
    );
}

#[test]
fn a_link_out_of_the_allowed_paths_must_go() {
    told_and_taken_back(&stage(), "ln -s /etc/passwd extra", "rm extra", &["extra"]);
}

#[test]
fn a_denied_path_must_stay_as_it_is_even_if_the_task_allows_it() {
    let stage = stage();
    let task = stage.read("tasks/say-done.md");
    stage.write("tasks/say-done.md", &task.replace("- test.sh", "- infra/"));
    told_and_taken_back(
        &stage,
        "echo x >> infra/net.txt",
        "echo net > infra/net.txt",
        &["infra/net.txt"],
    );
}

#[test]
fn a_change_over_the_line_cap_must_shrink() {
    told_and_taken_back(
        &stage(),
        "seq 60 >> app.txt",
        "printf 'start\\ndone\\n' > app.txt",
        &["50"],
    );
}

#[test]
fn a_new_todo_must_go() {
    told_and_taken_back(
        &stage(),
        "echo '# TODO later' >> app.txt",
        "printf 'start\\ndone\\n' > app.txt",
        &["TODO"],
    );
}

#[test]
fn a_deleted_test_is_told_to_the_reviewer_or_blocks() {
    let stage = stage();
    let task = stage.read("tasks/say-done.md");
    stage.write("tasks/say-done.md", &task.replace("- test.sh", "- tests/"));
    told_and_taken_back(
        &stage,
        "rm tests/old_test.sh",
        "mkdir -p tests; printf '#!/bin/sh\\nexit 0\\n' > tests/old_test.sh",
        &["tests/old_test.sh"],
    );
}

#[test]
fn a_rule_that_stays_broken_is_never_merged() {
    let stage = stage();
    let agents = "
- step: [build, fix]
  do:
    - run: \"echo $AUTOPILOT_ITERATION >> infra/net.txt\"
    - answer: { changed_files: [], notes: x }
";
    stage.agents(&[agents, APPROVES]);
    stage.run_task().expect(11);
    assert_eq!(stage.git(&["branch", "--list", "autopilot/*"]), "");
}

#[test]
fn a_repository_inside_the_worktree_is_not_committed() {
    told_and_taken_back(
        &stage(),
        "git init -q inner && echo x > inner/a",
        "rm -rf inner",
        &["inner"],
    );
}
