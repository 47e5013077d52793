//! Approved work meets what others have merged: proven together before the branch moves, repaired
//! when it conflicts or breaks, and merged exactly once whatever crashes in between.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, Ended, Stage, Started, files};
use std::cell::RefCell;
use std::path::PathBuf;

/// Works until it is told to go on, so that the branch can move under it.
const WAITS: &str = "
- step: build
  do:
    - run: \"echo mine > mine.txt; while [ ! -e $HOME/go ]; do sleep 0.02; done\"
    - answer: { changed_files: [mine.txt], notes: x }
";
/// The user's tests: a file of theirs and a file of ours can't be there together.
const TESTS: &str = "echo ports $AUTOPILOT_PORT_0 $AUTOPILOT_PORT_1.\n\
[ ! -e mine.txt ] || [ ! -e theirs.txt ] || [ -e both.txt ] || { echo FAILED together; exit 1; }\n";
const TASK: &str = "# Task: Mine\n\nGoal:\n- It is there.\n\nAcceptance Criteria:\n- It is\n";

fn stage(agents: &[&str]) -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    stage.write("test.sh", TESTS);
    stage.commit("Tests");
    stage.write("tasks/mine.md", TASK);
    stage.agents(agents);
    stage
}

fn hub(stage: &Stage) -> PathBuf {
    let head = files(&stage.state()).into_iter().find(|path| path.ends_with("hub.git/HEAD"));
    head.unwrap().parent().unwrap().to_owned()
}

fn branch(stage: &Stage) -> String {
    stage.state_json()["branch_name"].as_str().unwrap().to_owned()
}

/// Somebody else's work comes onto the run's branch.
fn move_branch(stage: &Stage, path: &str, text: &str) {
    stage.git(&["checkout", "-q", "-b", "theirs"]);
    stage.write(path, text);
    stage.git(&["add", path]);
    stage.git(&["commit", "-q", "-m", "Theirs"]);
    stage.git(&["checkout", "-q", "main"]);
    let hub = hub(stage);
    let spec = format!("theirs:refs/heads/{}", branch(stage));
    stage.git_in(&hub, &["fetch", "-q", &stage.root().display().to_string(), &spec]);
}

/// Runs the task; while it is being built, the branch gets this file.
fn run_under(stage: &Stage, path: &str, text: &str) {
    begin_under(stage, path, text, None).expect(0);
}

fn begin_under(stage: &Stage, path: &str, text: &str, failpoint: Option<&str>) -> Ended {
    let mut command = stage.command(&["run", "tasks/mine.md"]);
    command.envs(failpoint.map(|point| ("AUTOPILOT_FAILPOINT", format!("{point}:1"))));
    let run = stage.start_command(command);
    stage.wait_for_step("BUILD");
    stage
        .wait_until("the branch has a name", |stage| stage.state_json()["branch_name"].is_string());
    move_branch(stage, path, text);
    std::fs::write(stage.folder().join("home/go"), "").unwrap();
    run.wait()
}

fn on_the_branch(stage: &Stage, path: &str) -> String {
    stage.git(&["show", &format!("{}:{path}", branch(stage))])
}

#[test]
fn g06_a_branch_that_moved_is_merged_onto_and_the_result_is_proven_before_it_moves_again() {
    let stage = stage(&[WAITS, APPROVES]);
    run_under(&stage, "other.txt", "theirs\n");
    assert_eq!(on_the_branch(&stage, "mine.txt"), "mine");
    assert_eq!(on_the_branch(&stage, "other.txt"), "theirs");
    let logs = stage.views("validation_tests");
    let integration = logs.iter().filter(|path| path.to_string_lossy().contains("_integration_"));
    assert!(integration.count() > 0, "the integrated tree was validated: {logs:?}");
    assert!(stage.texts_of("_integration_").contains("ports "));
    let task = stage.first_task();
    let commit = stage.git(&["rev-parse", "autopilot/mine"]);
    assert_eq!(task["commit"], serde_json::json!(commit), "{task}");
}

#[test]
fn without_revalidation_a_clean_merge_is_not_tested_again() {
    let stage = stage(&[WAITS, APPROVES]);
    stage.config("commands: { tests: sh test.sh }\nintegration: { revalidate: false }\n");
    run_under(&stage, "theirs.txt", "theirs\n");
    assert_eq!(on_the_branch(&stage, "theirs.txt"), "theirs");
    assert_eq!(stage.views("_integration_"), [""; 0].map(PathBuf::from));
}

#[test]
fn work_that_is_green_alone_and_broken_together_is_repaired_with_the_evidence() {
    let repairs = "
- step: fix
  prompt: \"passes alone, fails together with other commits on the run's branch: tests failed\"
  do:
    - run: \"cat theirs.txt > both.txt\"
    - answer: { changed_files: [both.txt], notes: x }
";
    let stage = stage(&[WAITS, repairs, APPROVES]);
    run_under(&stage, "theirs.txt", "theirs\n");
    assert_eq!(on_the_branch(&stage, "both.txt"), "theirs");
    let prompt = stage.texts_of("fix");
    assert!(prompt.contains("FAILED together"), "the evidence is in the prompt: {prompt}");
    let merges =
        stage.git(&["rev-list", "--merges", "--count", &format!("main..{}", branch(&stage))]);
    assert_eq!(merges, "1");
}

#[test]
fn a_conflict_is_resolved_in_the_builders_files_and_markers_do_not_pass() {
    let clashes = "
- step: build
  do:
    - run: \"echo mine > app.txt; while [ ! -e $HOME/go ]; do sleep 0.02; done\"
    - answer: { changed_files: [app.txt], notes: x }
- step: fix
  iteration: 2
  prompt: \"both modified:   app.txt\"
  do:
    - run: \"grep -q '^<<<<<<<' app.txt && grep -q mine app.txt && grep -q theirs app.txt && \
touch saw-markers\"
    - answer: { changed_files: [], notes: left as it is }
- step: fix
  iteration: 3
  prompt: \"a conflict marker is left\"
  do:
    - write: { app.txt: \"mine and theirs\\n\" }
    - answer: { changed_files: [app.txt], notes: resolved }
";
    let stage = stage(&[clashes, APPROVES]);
    run_under(&stage, "app.txt", "theirs\n");
    assert_eq!(on_the_branch(&stage, "app.txt"), "mine and theirs");
    assert_eq!(on_the_branch(&stage, "saw-markers"), "");
    let prompt = stage.texts_of("fix");
    for part in [
        "CONFLICT (content): Merge conflict in app.txt",
        "Automatic merge failed",
        "=== app.txt (base, before both) ===\nstart",
        "=== app.txt (ours, the run's branch) ===\ntheirs",
        "=== app.txt (theirs, this task) ===\nmine",
    ] {
        assert!(prompt.contains(part), "{part} is not in {prompt}");
    }
    let range = format!("main..{}", branch(&stage));
    let all = stage.git(&["log", "-p", "--format=%s", &range]);
    assert!(!all.contains("<<<<<<<"), "no commit on the branch has a marker: {all}");
}

/// Where the queue can be cut in two.
const POINTS: [&str; 8] = [
    "commit.written",
    "commit.done",
    "merge.candidate",
    "merge.validated",
    "merge.written",
    "merge.done",
    "publish.done",
    "merge.published",
];

#[test]
fn a_crash_anywhere_on_the_way_to_a_moved_branch_merges_once() {
    for point in POINTS {
        let stage = stage(&[WAITS, APPROVES]);
        let crashed = begin_under(&stage, "other.txt", "theirs\n", Some(point));
        assert_eq!(crashed.code, -1, "{point} was not passed: {}", crashed.said());
        stage.run(&["resume"]).expect(0);
        let range = format!("theirs..{}", branch(&stage));
        let format = "--format=%(trailers:key=Autopilot-Task,valueonly,separator=)";
        let merged = stage.git(&["log", "--merges", format, &range]);
        assert_eq!(merged, "mine", "{point}");
        assert_eq!(on_the_branch(&stage, "other.txt"), "theirs", "{point}");
        assert_eq!(stage.first_task()["iteration"], 1, "{point}: {}", stage.first_task());
        stage.git_in(&hub(&stage), &["fsck", "--strict"]);
    }
}

#[test]
fn every_step_at_work_has_ports_of_its_own() {
    let agents = "
- step: build
  do:
    - run: \"echo $AUTOPILOT_PORT_0 $AUTOPILOT_PORT_1 ${AUTOPILOT_PORT_2-none} > app.txt\"
    - answer: { changed_files: [app.txt], notes: x }
";
    let stage = stage(&[agents, APPROVES]);
    stage.config("commands: { tests: sh test.sh }\nworktrees: { ports: 2 }\n");
    stage.run(&["run", "tasks/mine.md"]).expect(0);
    let ports = on_the_branch(&stage, "app.txt");
    let words: Vec<&str> = ports.split(' ').collect();
    let [first, second, "none"] = words.as_slice() else { panic!("{ports}") };
    let number = |word: &str| word.parse::<u16>().unwrap();
    assert_ne!(number(first), number(second));
    let tests = stage.texts_of("_validate_");
    let said = tests.lines().find(|line| line.contains("ports ")).unwrap();
    let told = said.split("ports ").nth(1).unwrap().trim_end_matches('.');
    let told: Vec<u16> = told.split(' ').map(number).collect();
    assert_eq!(told.len(), 2, "{said}");
}

/// A plan of tasks that know nothing of each other. Each builder waits for `go`, so that all start
/// from the same commit.
fn plan(tasks: &[&str], builds: &[&str]) -> Stage {
    let mut list = String::new();
    for task in tasks {
        list.push_str(&format!(
            "        - {{ id: {task}, title: Task {task}, goal: It is there., \
             acceptance_criteria: [It is], depends_on: [], validation_commands: {{}} }}\n"
        ));
    }
    let planner = format!(
        "- step: plan\n  do:\n  - answer:\n      plan_summary: all\n      tasks:\n{list}\
         \x20     edges: []\n      initial_ready_tasks: []\n      scope_notes: none\n"
    );
    let stage = stage(&[&[planner.as_str()], builds, &[OWN_FILE, APPROVES]].concat());
    stage.write("plan.md", "# Plan: All\n\nGoal:\n- All of it.\n\nAcceptance Criteria:\n- It is\n");
    stage
}

/// Every task writes a file of its own name.
const OWN_FILE: &str = "
- step: build
  do:
    - run: \"while [ ! -e $HOME/go ]; do sleep 0.02; done; echo x > $AUTOPILOT_TASK_ID.txt\"
    - answer: { changed_files: [], notes: x }
";

fn states(stage: &Stage) -> Vec<String> {
    let state = stage.state_json();
    let tasks = state["tasks"].as_array().cloned().unwrap_or_default();
    tasks.iter().map(|task| task["state"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Runs the plan with a worker for each task; they go on once all of them are at work.
fn begin_plan(stage: &Stage, count: usize, more: &str, failpoint: Option<&str>) -> Started {
    stage.config(&format!(
        "commands: {{ tests: sh test.sh }}\norchestrator: {{ max_workers: {count} }}\n{more}"
    ));
    let mut command = stage.command(&["run", "plan.md"]);
    command.envs(failpoint.map(|point| ("AUTOPILOT_FAILPOINT", point)));
    let run = RefCell::new(stage.start_command(command));
    stage.wait_until("all are being built", |stage| {
        assert!(run.borrow_mut().is_running(), "it ended early: {}", run.borrow().err());
        let states = states(stage);
        states.len() == count && states.iter().all(|state| state == "BUILD")
    });
    std::fs::write(stage.folder().join("home/go"), "").unwrap();
    run.into_inner()
}

fn run_plan(stage: &Stage, count: usize, more: &str, failpoint: Option<&str>) -> Ended {
    begin_plan(stage, count, more, failpoint).wait()
}

/// The same with all that are not merged at once waiting in one line.
fn run_as_batch(stage: &Stage, names: &[&str]) {
    stage.write("test.sh", &held(stage));
    stage.commit("Held");
    let run = begin_plan(stage, names.len(), "integration: { batch: 5 }\n", None);
    stage.wait_until("all want to be merged", |stage| {
        states(stage).iter().all(|state| state == "DECIDE" || state == "TASK_DONE")
    });
    std::fs::write(stage.folder().join("home/all"), "").unwrap();
    run.wait().expect(0);
    assert_eq!(sorted(merged(stage)), names);
}

/// The integrated tree is tested when all have come into the line. A tree with the files of two
/// tasks is an integrated one; a gate knows no more of what it is.
fn held(stage: &Stage) -> String {
    let all = stage.folder().join("home/all").display().to_string();
    format!("[ $(ls *.txt | wc -l) -lt 3 ] || while [ ! -e {all} ]; do sleep 0.05; done\n{TESTS}")
}

/// Tasks in the order they were merged in.
fn merged(stage: &Stage) -> Vec<String> {
    let range = format!("main..{}", branch(stage));
    let format = "--format=%(trailers:key=Autopilot-Task,valueonly,separator=)";
    let log = stage.git(&["log", "--first-parent", "--merges", "--reverse", format, &range]);
    log.lines().map(str::to_owned).collect()
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

/// Every merge has evidence that is the same as the journal's.
#[track_caller]
fn evidence_holds(stage: &Stage) {
    stage.run(&["verify"]).expect(0).says(&["the evidence holds, also by the journal"]);
}

fn integrations(stage: &Stage) -> usize {
    let is_test = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.contains("_integration_") && !name.ends_with(".err.log")
    };
    stage.views("validation_tests").into_iter().filter(is_test).count()
}

#[test]
fn a_pair_that_is_green_alone_and_broken_together_is_caught_and_repaired() {
    let repairs = "
- step: fix
  prompt: \"passes alone, fails together with\"
  do:
    - run: \"ls mine.txt theirs.txt > both.txt\"
    - answer: { changed_files: [both.txt], notes: x }
";
    let stage = plan(&["mine", "theirs"], &[repairs]);
    run_plan(&stage, 2, "", None).expect(0);
    let order = merged(&stage);
    assert_eq!(sorted(order.clone()), ["mine", "theirs"]);
    assert_eq!(on_the_branch(&stage, "both.txt"), "mine.txt\ntheirs.txt", "both were in its files");
    let prompt = stage.texts_of("fix");
    let named = format!("fails together with {}: tests failed with exit code 1", order[0]);
    assert!(prompt.contains(&named) && prompt.contains("FAILED together"), "{prompt}");
}

#[test]
fn a_conflicting_pair_converges() {
    let clash = "
- step: build
  do:
    - run: \"while [ ! -e $HOME/go ]; do sleep 0.02; done; echo $AUTOPILOT_TASK_ID > app.txt\"
    - answer: { changed_files: [app.txt], notes: x }
- step: fix
  prompt: \"both modified:   app.txt\"
  do:
    - run: \"grep -v '^[<=>]' app.txt | sort > all; mv all app.txt\"
    - answer: { changed_files: [app.txt], notes: x }
";
    let stage = plan(&["one", "two", "zwei"], &[clash]);
    run_plan(&stage, 3, "", None).expect(0);
    assert_eq!(on_the_branch(&stage, "app.txt"), "one\ntwo\nzwei");
    assert_eq!(sorted(merged(&stage)), ["one", "two", "zwei"]);
}

#[test]
fn a_batch_is_proven_once_for_all_its_members() {
    let names = ["a", "b", "c", "d", "e"];
    let stage = plan(&names, &[]);
    run_as_batch(&stage, &names);
    assert!(integrations(&stage) < 4, "{} for four that were not first", integrations(&stage));
    evidence_holds(&stage);
    let notes = ["log", "--first-parent", "--notes=autopilot", "--format=%N", &branch(&stage)];
    let proven_together = stage.git(&notes).matches("\"kind\": \"merge\"").count();
    assert!(proven_together >= 3, "{proven_together} were proven with what was merged before");
}

#[test]
fn the_culprit_of_a_batch_goes_back_and_the_others_are_merged() {
    let repairs = "
- step: fix
  prompt: \"fails together with\"
  do:
    - run: \"echo x > both.txt\"
    - answer: { changed_files: [both.txt], notes: x }
";
    let names = ["a", "b", "mine", "theirs", "z"];
    let stage = plan(&names, &[repairs]);
    run_as_batch(&stage, &names);
    let state = stage.state_json();
    let again: Vec<&str> = state["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|task| task["iteration"] != 1)
        .map(|task| task["id"].as_str().unwrap())
        .collect();
    assert!(again == ["mine"] || again == ["theirs"], "only the culprit went back: {again:?}");
    let last = merged(&stage).pop().unwrap();
    assert_eq!(last, again[0], "it held up nobody");
}

#[test]
fn a_crash_at_any_stage_of_a_batch_merges_each_task_exactly_once() {
    for (number, point) in POINTS.iter().enumerate() {
        let stage = plan(&["a", "b", "c"], &[]);
        // The second passing of a stage is one with a branch that has moved.
        let point = format!("{point}:{}", 1 + number % 2);
        let crashed = run_plan(&stage, 3, "integration: { batch: 2 }\n", Some(&point));
        assert_eq!(crashed.code, -1, "{point} was not passed: {}", crashed.said());
        stage.run(&["resume"]).expect(0);
        assert_eq!(sorted(merged(&stage)), ["a", "b", "c"], "{point}");
        for name in ["a", "b", "c"] {
            assert_eq!(on_the_branch(&stage, &format!("{name}.txt")), "x", "{point}");
        }
        stage.git_in(&hub(&stage), &["fsck", "--strict"]);
        evidence_holds(&stage);
        assert_eq!(stage.survivors(), [""; 0], "{point}");
    }
}
