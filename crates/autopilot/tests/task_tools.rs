//! `autopilot task`: task files written, listed and checked by the real binary.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{Ended, Stage, TASK};
use serde_json::Value;

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_autopilot"))
}

fn parsed(ended: &Ended) -> Value {
    serde_json::from_str(&ended.out).unwrap()
}

#[test]
fn a_new_task_has_a_dated_name_nobody_has_and_the_title_in_it() {
    let stage = stage();
    let first = stage.run(&["task", "new", "Fix the Login!"]).expect(0);
    let path = first.out.trim().to_owned();
    let (date, rest) = path.strip_prefix("tasks/").unwrap().split_once('_').unwrap();
    assert_eq!((date.len(), rest), (10, "fix-the-login.md"), "{path}");
    assert!(stage.read(&path).starts_with("# Task: Fix the Login!\n\nGoal:\n"));
    assert!(first.err.contains("autopilot run tasks/"), "{}", first.err);

    let second = parsed(&stage.run(&["task", "new", "Fix the Login!", "--json"]).expect(0));
    assert_eq!(second["id"], "fix-the-login-2");
    assert!(stage.has(second["path"].as_str().unwrap()));
    assert!(stage.read(&path).starts_with("# Task: Fix the Login!"), "the first one stays");
}

#[test]
fn a_template_of_ones_own_is_taken_and_a_faulty_one_is_not() {
    let stage = stage();
    stage.write(
        "tasks/TEMPLATE.md",
        &TASK.replace("Say done", "<title>").replace("says done.", "of ours."),
    );
    let path = stage.run(&["task", "new", "Ours"]).expect(0).out;
    assert!(stage.read(path.trim()).contains("of ours."));
    stage.write("other.md", &TASK.replace("says done.", "of others."));
    let path = stage.run(&["task", "new", "Theirs", "--template", "other.md"]).expect(0).out;
    assert!(stage.read(path.trim()).contains("of others."));
    let before = std::fs::read_dir(stage.path("tasks")).unwrap().count();
    stage.write("bad.md", "# Task: <title>\n\nGoal:\n- g\n");
    let bad = ["task", "new", "X", "--template", "bad.md"];
    stage.run(&bad).expect(10).says(&["bad.md", "Acceptance Criteria"]);
    stage.write("bad.md", "no heading\n");
    stage.run(&bad).expect(10).says(&["bad.md", "# Task: <title>"]);
    stage.run(&["task", "new", "X", "--template", "gone.md"]).expect(64).says(&["gone.md"]);
    for title in ["", "a\nb", &"x".repeat(201)] {
        stage.run(&["task", "new", title]).expect(64).says(&["title"]);
    }
    assert_eq!(std::fs::read_dir(stage.path("tasks")).unwrap().count(), before);
}

#[test]
fn an_editor_gets_the_file_and_its_faults_are_told() {
    let mut stage = stage();
    stage.run(&["task", "new", "X", "--edit"]).expect(64).says(&["EDITOR"]);
    assert_eq!(std::fs::read_dir(stage.path("tasks")).unwrap().count(), 1, "nothing was written");
    stage.write_program("edit.sh", "#!/bin/sh\necho \"$1\" > args\necho '- Mine.' >> \"$2\"\n");
    stage.set("EDITOR", "./edit.sh --wait");
    let ended = stage.run(&["task", "new", "It's mine", "--edit", "--dir", "my tasks"]).expect(0);
    assert_eq!(stage.read("args").trim(), "--wait");
    assert!(stage.read(ended.out.trim()).ends_with("- Mine.\n"));
    assert!(ended.err.contains("still the template's"), "{}", ended.err);
    stage.set("EDITOR", "false");
    stage.run(&["task", "new", "Y", "--edit"]).expect(10).says(&["editor", "tasks/"]);
}

#[test]
fn the_list_shows_what_a_queue_would_take_and_how_each_stood_last() {
    let stage = stage();
    stage.run_task().expect(0);
    stage.task("2026-01-01_later", "Later");
    stage.write("tasks/broken.md", "# Task: B\n");
    stage.write("tasks/README.md", "no task\n");
    stage.write("tasks/TEMPLATE.md", "no task\n");
    stage.write("tasks/.hidden.md", "no task\n");
    let run = stage.state_json()["run_id"].clone();
    let listed = parsed(&stage.run(&["task", "list", "--json"]).expect(0));
    let told: Vec<String> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|t| {
            format!("{} {} {}", t["id"], t["last_status"], t["faults"].as_array().unwrap().len())
        })
        .collect();
    assert_eq!(told, ["\"later\" null 0", "\"broken\" null 2", "\"say-done\" \"DONE\" 0"]);
    assert_eq!(listed[2]["last_run"], run);
    let text = stage.run(&["task", "list"]).expect(0);
    assert!(text.out.contains("say-done  DONE  tasks/say-done.md"), "{}", text.out);
    assert!(text.out.contains("(2 faults)") && text.err.contains("task lint"), "{text:?}");
}

#[test]
fn the_list_says_what_to_do_where_there_is_nothing() {
    let stage = Stage::bare(env!("CARGO_BIN_EXE_autopilot"));
    stage.git(&["init", "-q", "-b", "main"]);
    stage.run(&["task", "list"]).expect(0).says(&["autopilot task new"]);
    stage.run(&["task", "list", "--dir", "nowhere"]).expect(64).says(&["nowhere", "task new"]);
    stage.run(&["task", "lint"]).expect(64).says(&["task new"]);
}

#[test]
fn clean_files_pass_and_every_fault_has_its_place() {
    let stage = stage();
    stage.run(&["task", "lint"]).expect(0).says(&["1 task file: 0 faults, 0 warnings"]);
    stage.write("tasks/a.md", "# Task: A\n\nGoal:\n- g\n\nAlowed Paths:\n- src/\n");
    stage.write("tasks/b.md", &format!("{TASK}\n## Colours\n- red\n"));
    stage.write("tasks/2026-01-01_b.md", TASK);
    stage.write("tasks/d.md", &format!("---\ndepends_on: [b, nowhere]\n---\n{TASK}"));
    stage.write("tasks/plan.md", "# Plan: big\n");
    let new = stage.run(&["task", "new", "Fresh"]).expect(0).out.trim().to_owned();
    let said = stage.run(&["task", "lint"]).expect(10).says(&[
        "tasks/a.md:1:1: error: there are no Acceptance Criteria",
        "tasks/a.md:6:1: error: unknown section `Alowed Paths`; did you mean `Allowed Paths`?",
        "tasks/b.md:1:1: error: the id `b` is that of `tasks/2026-01-01_b.md` too",
        "tasks/b.md:13:1: warning: unknown section `Colours` is kept as a note",
        "tasks/d.md:1:1: warning: depends_on names `nowhere`",
        "tasks/plan.md:1:1: error: this is a plan",
        &format!("{new}:4:1: error: `- <what should change>` is still the template's"),
        "7 task files: 6 faults, 2 warnings",
    ]);
    assert!(!said.out.contains("names `b`"), "{}", said.out);

    let data = parsed(&stage.run(&["task", "lint", "tasks/a.md", "--json"]).expect(10));
    assert_eq!((&data["files"], &data["faults"][1]["line"]), (&1.into(), &6.into()));
    let warned = ["task", "lint", "tasks/b.md", "tasks/plan.md"];
    stage.run(&warned).expect(0).says(&["2 task files: 0 faults, 1 warning"]);
    stage.run(&["task", "lint", "tasks/say-doen.md"]).expect(64).says(&["say-done.md"]);
}
