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
fn links_that_lead_out_together_must_go() {
    let stage = stage();
    let task = stage.read("tasks/say-done.md");
    let anywhere = task.split("\nAllowed Paths").next().unwrap();
    stage.write("tasks/say-done.md", anywhere);
    told_and_taken_back(
        &stage,
        "ln -s . here; ln -s here/../outside link",
        "rm here link",
        &["the link points to `here/../outside`", "by way of other links"],
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
fn one_long_line_is_over_the_cap() {
    told_and_taken_back(
        &stage(),
        "seq -s x 20000 >> app.txt",
        "printf 'start\\ndone\\n' > app.txt",
        &["KiB of text; the cap of 50 lines stands for at most 11 KiB"],
    );
}

#[test]
fn a_mark_past_the_end_of_long_lines_is_seen() {
    let stage = stage();
    told_and_taken_back(
        &stage,
        "printf 'true %4000s # todo: all of it\\n' '' >> test.sh",
        "sed -i '$d' test.sh",
        &["test.sh:7: new todo"],
    );
}

#[test]
fn letters_that_are_not_what_they_look_like_must_go() {
    for (wrong, told) in [
        ("tru\u{435}", r"tru\u{435}"),
        ("# \u{202e}", r"\u{202e}"),
        ("a=1 # \u{200b}", r"\u{200b}"),
    ] {
        let wrong = format!("echo '{wrong}' >> test.sh");
        told_and_taken_back(&stage(), &wrong, "sed -i '$d' test.sh", &["test.sh:7", told]);
    }
}

#[test]
fn a_name_that_is_taken_for_another_one_must_go() {
    let stage = stage();
    let task = stage.read("tasks/say-done.md");
    stage.write("tasks/say-done.md", &task.replace("- test.sh", "- test.sh\n- Test.sh"));
    told_and_taken_back(
        &stage,
        "echo x > Test.sh",
        "rm Test.sh",
        &["Test.sh: the name can't be told from `test.sh`"],
    );
}

#[test]
fn a_task_does_not_choose_what_its_successor_is_asked_for() {
    let stage = stage();
    stage.task("second", "Say done again");
    for name in ["say-done", "second"] {
        let path = format!("tasks/{name}.md");
        stage.write(&path, &stage.read(&path).replace("- test.sh", "- tasks/"));
    }
    stage.git(&["add", "tasks"]);
    stage.commit("tasks");
    let agents = "
- step: build
  task: say-done
  do:
    - append: { app.txt: \"done\\n\" }
    - run: \"echo '- nothing' >> tasks/second.md\"
    - answer: { changed_files: [app.txt, tasks/second.md], notes: x }
- step: fix
  do:
    - run: \"sed -i '$d' tasks/second.md\"
    - answer: { changed_files: [tasks/second.md], notes: x }
- step: build
  do:
    - append: { app.txt: \"again\\n\" }
    - answer: { changed_files: [app.txt], notes: x }
";
    stage.agents(&[agents, APPROVES]);
    stage.run(&["run", "--queue", "tasks"]).expect(0);
    let told = "tasks/second.md: a task file of this run was changed";
    assert!(stage.texts_of("fix").contains(told), "{}", stage.texts_of("fix"));
}

#[test]
fn a_report_that_differs_from_the_change_is_a_doubt() {
    let stage = stage();
    let agents = "
- step: build
  do:
    - append: { app.txt: \"done\\n\" }
    - run: \"echo '# said' >> test.sh\"
    - answer: { changed_files: [app.txt, lib.sh], commands_ran: [{ cmd: sh test.sh, exit_code: 0 }], notes: x }
";
    stage.agents(&[agents, APPROVES]);
    stage.run_task().expect(0).says(&[
        "the builder says it changed `lib.sh`, which the change does not hold",
        "the builder does not say that it changed `test.sh`",
    ]);
    assert_eq!(stage.first_task()["iteration"], 1, "a doubt does not block");
    assert!(
        stage.texts_of("review").contains("the builder does not say that it changed `test.sh`")
    );
}

#[test]
fn an_honest_report_is_no_doubt() {
    let stage = stage();
    let agents = "
- step: build
  do:
    - append: { app.txt: \"done\\n\" }
    - run: \"echo '# said' >> test.sh\"
    - answer: { changed_files: [./test.sh, app.txt (new line)], commands_ran: [{ cmd: sh test.sh, exit_code: 0 }], tests_ran: true, tests_passed: true, notes: x }
";
    stage.agents(&[agents, APPROVES]);
    let said = stage.run_task().expect(0).said();
    assert!(!said.contains("the builder"), "{said}");
}

#[test]
fn an_empty_file_is_no_change() {
    let stage = stage();
    let agents = "
- step: build
  do:
    - run: \"chmod +x test.sh; echo >> test.sh\"
    - answer: { changed_files: [test.sh], notes: x }
- step: fix
  do:
    - append: { app.txt: \"done\\n\" }
    - run: \"chmod -x test.sh; sed -i '$d' test.sh\"
    - answer: { changed_files: [app.txt], notes: x }
";
    stage.agents(&[agents, APPROVES]);
    stage.run_task().expect(0);
    assert_eq!(stage.first_task()["iteration"], 2, "{:#}", stage.first_task());
    assert!(stage.texts_of("fix").contains("the change adds nothing"), "{}", stage.texts_of("fix"));
}

#[test]
fn a_new_todo_must_go() {
    for wrong in ["# todo: later", "# FIXME(ada) later", "# XXX2"] {
        told_and_taken_back(
            &stage(),
            &format!("echo '{wrong}' >> test.sh"),
            "sed -i '$d' test.sh",
            &["test.sh:7: new ", wrong],
        );
    }
}

#[test]
fn a_todo_is_not_exchanged_for_one_that_was_removed() {
    let stage = stage();
    stage.write("test.sh", &format!("# TODO\n{}", stage.read("test.sh")));
    stage.commit("an old promise");
    told_and_taken_back(
        &stage,
        "sed -i 1d test.sh; echo '# TODO' >> test.sh",
        "sed -i '$d' test.sh; sed -i '1i # TODO' test.sh",
        &["test.sh:7: new TODO"],
    );
}

/// The first build keeps every rule: one round, and these doubts are told to the person.
#[track_caller]
fn done_at_once(stage: &Stage, does: &str, told: &[&str]) {
    let agents = format!(
        "
- step: build
  do:
    - append: {{ app.txt: \"done\\n\" }}
    - run: \"{does}\"
    - answer: {{ changed_files: [], notes: x }}
"
    );
    stage.agents(&[&agents, APPROVES]);
    stage.run_task().expect(0).says(told);
    assert_eq!(stage.first_task()["iteration"], 1, "{:#}", stage.first_task());
}

#[test]
fn a_todo_in_a_document_is_told() {
    done_at_once(&stage(), "echo 'TODO: more' >> app.txt", &["app.txt:3: new TODO: `TODO: more`"]);
}

#[test]
fn a_test_that_the_task_asks_to_delete_may_go() {
    let stage = stage();
    let task = stage.read("tasks/say-done.md").replace("- test.sh", "- tests/");
    let asks = "- app.txt says done.\n- Delete tests/old_test.sh, it tests nothing.\n";
    stage.write("tasks/say-done.md", &task.replace("- app.txt says done.\n", asks));
    done_at_once(
        &stage,
        "rm tests/old_test.sh",
        &["tests/old_test.sh: a test file was deleted, as the task asks"],
    );
}

#[test]
fn the_data_of_a_test_and_a_document_of_a_specification_are_no_tests() {
    let stage = stage();
    stage.write("tests/fixtures/a.json", "{}\n");
    stage.write("spec/protocol.md", "words\n");
    stage.commit("beside the tests");
    let task = stage.read("tasks/say-done.md");
    stage.write("tasks/say-done.md", &task.replace("- test.sh", "- tests/\n- spec/"));
    done_at_once(
        &stage,
        "rm tests/fixtures/a.json spec/protocol.md",
        &["tests/fixtures/a.json: a file beside the tests was deleted"],
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
