//! From a plan to one proven branch by the real binary: order, workers, merges, and what is done
//! about what fails on the way.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::plan::{
    RUN, Stamps, TESTS, branch, builds, builds_when, configure, merged, merged_once_each, outside,
    plan, planner_prompts, says, stage, statuses_are, task, task_with, waits_for, with,
};
use autopilot_testkit::stage::{APPROVES, Stage, Started, text};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");

fn diamond() -> Value {
    let tasks = [
        task("top", &[]),
        task("left", &["top"]),
        task("right", &["top"]),
        task("bottom", &["left", "right"]),
        task("lone", &[]),
        task("other", &[]),
    ];
    with(plan(&tasks), json!({ "test_plan": "# How it is tested\n\nBy hand.\n" }))
}

fn lone_tasks(names: &[&str]) -> Value {
    plan(&names.iter().map(|name| task(name, &[])).collect::<Vec<_>>())
}

/// What every agent finds in its environment, on a line of its own.
fn tells_its_place(stage: &Stage, rule: &str, answer: &Value) -> String {
    let log = text(outside(stage, "places"));
    format!(
        "
- {rule}
  do:
    - run: \"echo \\\"$AUTOPILOT_STEP|$AUTOPILOT_TASK_ID|$AUTOPILOT_PARENT_TASK_ID|$AUTOPILOT_RUN_ID\\\" >> {log}\"
    - run: \"echo x > ${{AUTOPILOT_TASK_ID:-run}}.txt\"
    - answer: {answer}
"
    )
}

#[test]
fn at9_order_is_kept_independent_tasks_overlap_and_workers_are_never_too_many() {
    let stage = stage(BINARY, &diamond());
    let both = |one: &str, other: &str| {
        let rule = format!("step: build\n  task: {one}");
        builds_when(&stage, &rule, &waits_for(&stage, &format!("^+ {other}$"), 1))
    };
    // Each waits until the other has begun: without workers at the same time both would give up.
    let (left, right) = (both("left", "right"), both("right", "left"));
    stage.agents(&[&says(&diamond()), &left, &right, &builds(&stage), APPROVES]);
    configure(&stage, &format!("{TESTS}orchestrator: {{ max_workers: 2 }}\n"));
    let main = stage.git(&["rev-parse", "main"]);
    let before = stage.digest();
    stage.run(&RUN).expect(0).says(&["DONE", "git merge autopilot/run-"]);
    let stamps = Stamps::of(&stage);
    for (first, then) in
        [("top", "left"), ("top", "right"), ("left", "bottom"), ("right", "bottom")]
    {
        assert!(stamps.is_before(first, then), "{first} before {then}: {:?}", stamps.lines);
    }
    assert!(stamps.overlap("left", "right"), "{:?}", stamps.lines);
    assert_eq!(stamps.most_at_once(), 2, "{:?}", stamps.lines);
    let names = ["top", "left", "right", "bottom", "lone", "other"];
    statuses_are(&stage, &names.map(|name| (name, "DONE")));
    merged_once_each(&stage, &names);
    let order = merged(&stage);
    let at = |name: &str| order.iter().position(|merged| merged == name).unwrap();
    assert!(at("top") < at("left") && at("right") < at("bottom"), "{order:?}");
    let branch = branch(&stage);
    for name in names {
        let file = stage.git(&["show", &format!("{branch}:{name}.txt")]);
        assert_eq!(file, format!("{name} 1"));
    }
    let trailers = "--format=%(trailers:key=Autopilot-Attempt,valueonly,separator=%x2C)";
    let log = stage.git(&["log", trailers, &format!("main..{branch}")]);
    assert!(log.lines().all(|line| !line.is_empty()), "each commit names its attempt: {log}");
    assert_eq!(stage.git(&["rev-parse", "main"]), main);
    assert_eq!(stage.digest(), before, "the checkout is as it was");
    stage.git(&["fsck", "--strict", "--no-dangling"]);
    assert!(stage.survivors().is_empty(), "{:?}", stage.survivors());
}

#[test]
fn the_plan_the_graph_a_file_per_task_and_the_test_plan_are_where_they_are_looked_for() {
    let stage = stage(BINARY, &diamond());
    stage.run(&RUN).expect(0);
    let read = |name: &str| -> Value { serde_json::from_str(&stage.read(name)).unwrap() };
    let planned = read(".autopilot/plan/plan.json");
    assert_eq!(planned["tasks"].as_array().unwrap().len(), 6);
    assert_eq!(planned["test_plan"], "# How it is tested\n\nBy hand.\n");
    let graph = read(".autopilot/plan/task_graph.json");
    assert_eq!(graph["counts"]["DONE"], 6, "{graph:#}");
    assert_eq!(graph["batches"][0], json!(["top", "lone", "other"]), "{graph:#}");
    assert_eq!(graph["edges"].as_array().unwrap().len(), 4);
    for name in ["top", "left", "right", "bottom", "lone", "other"] {
        let file = stage.read(&format!(".autopilot/plan/tasks/{name}.md"));
        for line in
            [&format!("id: \"{name}\""), "status: DONE", "blocked_by: []", "assigned_worker: null"]
        {
            assert!(file.contains(&format!("\n{line}\n")), "`{line}` in {file}");
        }
        assert!(file.contains(&format!("{name}.txt is there.")), "{file}");
    }
    let bottom = stage.read(".autopilot/plan/tasks/bottom.md");
    assert!(bottom.contains("depends_on: [\"left\", \"right\"]"), "{bottom}");
    let kept = stage.git(&["show", &format!("{}:tests/TEST_PLAN.md", branch(&stage))]);
    assert_eq!(kept, "# How it is tested\n\nBy hand.");
    assert!(!stage.has("tests"), "nothing of it in the checkout");
    assert_eq!(stage.git(&["status", "--short", "--", "tests"]), "");
}

#[test]
fn front_matter_is_current_while_the_tasks_are_worked_on() {
    let stage = stage(BINARY, &diamond());
    let hold = outside(&stage, "go");
    let rule = "step: build\n  task: top";
    let held =
        builds_when(&stage, rule, &format!("while [ ! -e {} ]; do sleep 0.05; done", text(&hold)));
    stage.agents(&[&says(&diamond()), &held, &builds(&stage), APPROVES]);
    let run = stage.start(&RUN);
    let file = |name: &str| {
        let path = stage.path(&format!(".autopilot/plan/tasks/{name}.md"));
        fs::read_to_string(path).unwrap_or_default()
    };
    stage.wait_until("top is running and left is blocked by it", |_| {
        file("top").contains("\nstatus: RUNNING\n")
            && !file("top").contains("assigned_worker: null")
            && file("left").contains("\nblocked_by: [\"top\"]\n")
            && file("bottom").contains("\nblocked_by: [\"left\", \"right\"]\n")
    });
    fs::write(hold, "").unwrap();
    run.wait().expect(0);
    assert!(file("left").contains("\nstatus: DONE\n") && file("left").contains("attempts: "));
}

#[test]
fn the_run_passes_through_its_states_and_says_so() {
    let stage = stage(BINARY, &lone_tasks(&["one"]));
    let slow_plan = says(&lone_tasks(&["one"])).replace("do: [", "do: [{ sleep_ms: 1500 }, ");
    let slow = builds_when(&stage, "step: [build, fix]", "sleep 1.5");
    stage.agents(&[&slow_plan, &slow, APPROVES]);
    let commands = "commands: { tests: sh test.sh, uat: \"sleep 1.5; test -e one.txt\" }\n";
    configure(&stage, &format!("{commands}plan: {{ task_uat: false }}\n"));
    let run = stage.start(&RUN);
    for word in ["PLAN", "MONITOR", "FINAL_UAT_RUN", "DONE"] {
        stage.wait_until(word, |stage| stage.state_json()["current_state"] == word);
    }
    run.wait().expect(0);
    let log = stage.read(".autopilot/logs/controller.log");
    let mut from = 0;
    for line in [
        "run: checking that the base passes",
        "run: planning",
        "run: creating the tasks of the plan",
        "one: building",
        "one: validating",
        "one: reviewing",
        "one: committing and merging",
        "one: DONE",
        "run: validating",
        "run: writing acceptance cases",
        "run: running acceptance",
    ] {
        let place = log[from..].find(line);
        from += place.unwrap_or_else(|| panic!("`{line}` is not in its place in {log}"));
    }
    assert!(stage.has(".autopilot/uat/final_uat.md"));
    let status = stage.read(".autopilot/STATUS.md");
    assert!(status.starts_with("# DONE: Small things"), "{status}");
}

#[test]
fn agents_find_their_step_their_task_and_what_is_above_it_in_their_environment() {
    let big = plan(&[task_with("big", &[], json!({ "expand": true })), task("lone", &[])]);
    let stage = stage(BINARY, &big);
    let summary = json!({ "changed_files": [], "notes": "x" });
    let verdict =
        json!({ "verdict": "APPROVE", "summary": "fine", "issues": [], "accepted_tests": [] });
    let inner = plan(&[task("part", &[])]);
    stage.agents(&[
        &tells_its_place(&stage, "step: plan\n  task: big", &inner),
        &tells_its_place(&stage, "step: plan", &big),
        &tells_its_place(&stage, "step: [build, fix]", &summary),
        &tells_its_place(&stage, "step: review", &verdict),
        &tells_its_place(&stage, "step: uat_generate", &json!("# Cases\n1. x\n")),
    ]);
    stage.run(&RUN).expect(0);
    let run = stage.state_json()["run_id"].as_str().unwrap().to_owned();
    let places = fs::read_to_string(outside(&stage, "places")).unwrap();
    let seen: BTreeSet<&str> = places.lines().collect();
    for place in [
        "plan||",
        "plan|big|",
        "build|lone|",
        "review|lone|",
        "uat_generate|lone|",
        "build|part|big",
        "review|part|big",
        "uat_generate|part|big",
        "uat_generate||",
    ] {
        let line = format!("{place}|{run}");
        assert!(seen.contains(line.as_str()), "`{line}` is not in {places}");
    }
}

#[test]
fn a_task_that_is_planned_in_its_turn_becomes_tasks_and_what_depends_on_it_waits_for_all() {
    let outer = plan(&[
        task("first", &[]),
        task_with("big", &["first"], json!({ "expand": true })),
        task("after", &["big"]),
    ]);
    let stage = stage(BINARY, &outer);
    let inner = says(&plan(&[task("small-1", &[]), task("small-2", &["small-1"])]));
    let inner = inner.replace("- step: plan\n", "- step: plan\n  task: big\n");
    stage.agents(&[&inner, &says(&outer), &builds(&stage), APPROVES]);
    stage.run(&RUN).expect(0);
    let stamps = Stamps::of(&stage);
    for (first, then) in [("first", "small-1"), ("small-1", "small-2"), ("small-2", "after")] {
        assert!(stamps.is_before(first, then), "{first} before {then}: {:?}", stamps.lines);
    }
    assert!(!stamps.has_begun("big"), "nobody builds what was divided");
    assert_eq!(merged(&stage), ["first", "small-1", "small-2", "after"]);
    let prompts = planner_prompts(&stage);
    assert_eq!(prompts.len(), 2);
    assert!(
        prompts[1].contains("big.txt is there.") && prompts[1].contains("# Plan: Small things")
    );
    assert!(prompts[1].contains("`after`"), "ids that are taken are named");
    assert!(stage.has(".autopilot/plan/big.plan.json"));
}

#[test]
fn a_task_that_fails_blocks_what_needs_it_the_rest_goes_on_and_retry_finishes_the_run() {
    let planned = plan(&[
        task("bad", &[]),
        task("needs", &["bad"]),
        task("needs-too", &["needs"]),
        task("good", &[]),
        task("better", &["good"]),
    ]);
    let stage = stage(BINARY, &planned);
    let fails = "\n- step: build\n  task: bad\n  do: [{ exit: 1 }]\n";
    stage.agents(&[fails, &says(&planned), &builds(&stage), APPROVES]);
    let ended = stage.run(&RUN).expect(10);
    let line = |name: &str, word: &str| {
        ended.out.lines().any(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some(name) && words.next() == Some(word)
        })
    };
    for (name, word) in
        [("bad", "FAILED"), ("needs", "BLOCKED"), ("needs-too", "BLOCKED"), ("better", "DONE")]
    {
        assert!(line(name, word), "{name} {word} in the table:\n{}", ended.out);
    }
    let ended = ended.says(&["FAILED: Small things", "autopilot retry"]);
    assert!(!ended.out.contains("final"), "{}", ended.out);
    statuses_are(
        &stage,
        &[
            ("bad", "FAILED"),
            ("needs", "BLOCKED"),
            ("needs-too", "BLOCKED"),
            ("good", "DONE"),
            ("better", "DONE"),
        ],
    );
    let blocked = stage.read(".autopilot/plan/tasks/needs.md");
    assert!(blocked.contains("\nblocked_by: [\"bad\"]\n"), "{blocked}");
    stage.run(&["retry", "needs"]).expect(64).says(&["autopilot retry bad"]);
    stage.agents(&[&says(&planned), &builds(&stage), APPROVES]);
    stage.run(&["retry", "bad"]).expect(0);
    merged_once_each(&stage, &["bad", "needs", "needs-too", "good", "better"]);
    assert_eq!(Stamps::of(&stage).begun("good"), 1, "what was done is not done again");
    assert_eq!(planner_prompts(&stage).len(), 1, "nor planned again");
}

#[test]
fn only_failures_to_converge_end_with_11() {
    let stage = stage(BINARY, &lone_tasks(&["one", "two"]));
    let broken = "
- step: [build, fix]
  task: two
  do:
    - run: \"echo broken $AUTOPILOT_ITERATION >> app.txt\"
    - answer: { changed_files: [app.txt], notes: x }
";
    stage.agents(&[broken, &says(&lone_tasks(&["one", "two"])), &builds(&stage), APPROVES]);
    configure(&stage, &format!("{TESTS}loop: {{ max_iterations: 2 }}\n"));
    stage.run(&RUN).expect(11).says(&["two", "FAILED"]);
    statuses_are(&stage, &[("one", "DONE"), ("two", "FAILED")]);
    assert_eq!(merged(&stage), ["one"]);
}

/// The acceptance of the whole passes when a file is there.
const UAT: &str = "commands: { tests: sh test.sh, uat: \"test -e accepted.txt || { echo not accepted; exit 3; }\" }\n\
     plan: { task_uat: false }\n";

#[test]
fn a_final_acceptance_that_fails_becomes_a_task_that_mends_it() {
    let planned = lone_tasks(&["one", "two"]);
    let stage = stage(BINARY, &planned);
    let mends = "
- step: [build, fix]
  task: uat-fix-*
  do:
    - write: { accepted.txt: \"yes\\n\" }
    - answer: { changed_files: [accepted.txt], notes: x }
";
    stage.agents(&[mends, &says(&planned), &builds(&stage), APPROVES]);
    configure(&stage, UAT);
    stage.run(&RUN).expect(0);
    merged_once_each(&stage, &["one", "two", "uat-fix-1"]);
    assert_eq!(merged(&stage)[2], "uat-fix-1");
    let prompt = stage.texts_of("uat-fix-1-build");
    assert!(prompt.contains("not accepted") && prompt.contains("app.txt says done"), "{prompt}");
    assert!(stage.has(".autopilot/plan/tasks/uat-fix-1.md"));
    assert_eq!(stage.git(&["show", &format!("{}:accepted.txt", branch(&stage))]), "yes");
    assert_eq!(planner_prompts(&stage).len(), 1);
}

#[test]
fn a_final_acceptance_that_never_passes_ends_at_the_limit_of_rounds() {
    let planned = lone_tasks(&["one"]);
    let stage = stage(BINARY, &planned);
    // Each task passes for itself, and the whole never does. A gate is not told whose it is; the two
    // take turns.
    let turns = text(outside(&stage, "turns"));
    let commands = format!(
        "commands: {{ tests: sh test.sh, uat: \"echo x >> {turns}; \
         test $(( $(wc -l < {turns}) % 2 )) = 1 || {{ cat *.txt; exit 3; }}\" }}\n"
    );
    configure(&stage, &format!("{commands}loop: {{ max_iterations: 3 }}\n"));
    stage.run(&RUN).expect(11).says(&["FAILED: Small things"]);
    merged_once_each(&stage, &["one", "uat-fix-1", "uat-fix-2"]);
    assert_eq!(stage.state_json()["current_state"], "FAILED");
}

#[test]
fn a_task_that_mends_and_does_not_converge_ends_the_run_with_11() {
    let planned = lone_tasks(&["one"]);
    let stage = stage(BINARY, &planned);
    configure(&stage, &format!("{UAT}loop: {{ max_iterations: 2 }}\n"));
    stage.run(&RUN).expect(11).says(&["uat-fix-1", "FAILED"]);
    assert_eq!(merged(&stage), ["one"]);
}

#[test]
fn a_whole_that_is_broken_although_its_parts_are_not_is_mended_by_a_task() {
    let planned = lone_tasks(&["one", "two"]);
    let stage = stage(BINARY, &planned);
    let both = waits_for(&stage, "^+ ", 2);
    let mends = "
- step: [build, fix]
  task: integration-fix-*
  do:
    - write: { peace.txt: \"yes\\n\" }
    - answer: { changed_files: [peace.txt], notes: x }
";
    let builds = builds_when(&stage, "step: [build, fix]", &both);
    stage.agents(&[mends, &says(&planned), &builds, APPROVES]);
    stage.write(
        "test.sh",
        "#!/bin/sh\nif [ -e one.txt ] && [ -e two.txt ] && [ ! -e peace.txt ]; then\n\
         echo FAILED one and two; exit 1\nfi\n",
    );
    stage.commit("parts that do not go together");
    configure(&stage, &format!("{TESTS}integration: {{ revalidate: false }}\n"));
    stage.run(&RUN).expect(0);
    merged_once_each(&stage, &["one", "two", "integration-fix-1"]);
    assert!(stage.texts_of("integration-fix-1-build").contains("FAILED one and two"));
}

#[test]
fn acceptance_of_each_task_can_be_left_to_the_whole() {
    for (each, times) in [(true, 3), (false, 1)] {
        let stage = stage(BINARY, &lone_tasks(&["one", "two"]));
        let log = text(outside(&stage, "uat"));
        let commands = format!("commands: {{ tests: sh test.sh, uat: \"echo uat >> {log}\" }}\n");
        configure(&stage, &format!("{commands}plan: {{ task_uat: {each} }}\n"));
        stage.run(&RUN).expect(0);
        let ran = fs::read_to_string(log).unwrap().lines().count();
        assert_eq!(ran, times, "task_uat: {each}");
    }
}

fn overlapping() -> Value {
    let task = |name: &str, path: &str| task_with(name, &[], json!({ "allowed_paths": [path] }));
    plan(&[task("one", "lib/"), task("two", "lib/x.txt"), task("three", "docs/")])
}

/// Builders that write where they may, and wait a moment for another to begin.
fn writes_in(stage: &Stage, places: &[(&str, &str)], patience: &str) -> String {
    let log = text(outside(stage, "log"));
    let one = |(task, path): &(&str, &str)| {
        format!(
            "
- step: [build, fix]
  task: {task}
  do:
    - run: \"echo \\\"+ {task}\\\" >> {log}; mkdir -p $(dirname {path}); echo {task} > {path}; {patience}\"
    - run: \"echo \\\"- {task}\\\" >> {log}\"
    - answer: {{ changed_files: [], notes: x }}
"
        )
    };
    places.iter().map(one).collect()
}

#[test]
fn tasks_that_may_change_the_same_paths_are_worked_on_one_after_the_other() {
    let stage = stage(BINARY, &overlapping());
    let places = [("one", "lib/y.txt"), ("two", "lib/x.txt"), ("three", "docs/z.txt")];
    stage.agents(&[&says(&overlapping()), &writes_in(&stage, &places, "sleep 1"), APPROVES]);
    stage.run(&RUN).expect(0).says(&["`one` and `two`", "one after the other"]);
    let stamps = Stamps::of(&stage);
    assert!(!stamps.overlap("one", "two"), "{:?}", stamps.lines);
    let merged = merged(&stage);
    let at = |name: &str| merged.iter().position(|task| task == name).unwrap();
    let (first, second) = if at("one") < at("two") { ("one", "two") } else { ("two", "one") };
    // Not even begun before the other is merged: it would build on what is about to change.
    let log = stage.read(".autopilot/logs/controller.log");
    let done = log.find(&format!("{first}: DONE")).unwrap();
    assert!(log.find(&format!("{second}: building")).unwrap() > done, "{log}");
}

#[test]
fn overlapping_tasks_run_at_once_where_that_is_asked_for() {
    let stage = stage(BINARY, &overlapping());
    let places = [("one", "lib/y.txt"), ("two", "lib/x.txt"), ("three", "docs/z.txt")];
    let patience = waits_for(&stage, "^+ ", 3);
    stage.agents(&[&says(&overlapping()), &writes_in(&stage, &places, &patience), APPROVES]);
    configure(&stage, &format!("{TESTS}orchestrator: {{ serialize_overlapping: false }}\n"));
    stage.run(&RUN).expect(0).says(&["expect conflicts"]);
    let stamps = Stamps::of(&stage);
    assert!(stamps.overlap("one", "two"), "{:?}", stamps.lines);
}

#[test]
fn priority_and_the_longest_chain_decide_who_begins_first() {
    let planned = plan(&[
        task("plain", &[]),
        task("chain-1", &[]),
        task("chain-2", &["chain-1"]),
        task_with("urgent", &[], json!({ "priority": 5 })),
    ]);
    let stage = stage(BINARY, &planned);
    configure(&stage, &format!("{TESTS}orchestrator: {{ max_workers: 1 }}\n"));
    stage.run(&RUN).expect(0);
    let stamps = Stamps::of(&stage);
    assert_eq!(stamps.most_at_once(), 1);
    let began: Vec<&str> =
        stamps.lines.iter().filter(|(begins, _)| *begins).map(|(_, task)| task.as_str()).collect();
    assert_eq!(began[..2], ["urgent", "chain-1"], "{began:?}");
    assert!(stamps.is_before("chain-1", "plain"));
}

#[test]
fn short_of_memory_one_worker_goes_on_and_it_is_said() {
    let planned = lone_tasks(&["one", "two", "three"]);
    let stage = stage(BINARY, &planned);
    let slow = builds_when(&stage, "step: [build, fix]", "sleep 0.5");
    stage.agents(&[&says(&planned), &slow, APPROVES]);
    configure(&stage, &format!("{TESTS}orchestrator: {{ min_free_memory_mb: 900000000 }}\n"));
    let ended = stage.run(&RUN).expect(0);
    ended.says(&["not starting more workers", "orchestrator.min_free_memory_mb is 900000000"]);
    assert_eq!(Stamps::of(&stage).most_at_once(), 1);
}

#[test]
fn every_worktree_is_set_up_before_an_agent_or_a_command_works_in_it() {
    let planned = lone_tasks(&["one", "two"]);
    let stage = stage(BINARY, &planned);
    stage.write(".gitignore", "set-up.txt\n");
    stage.write("test.sh", "#!/bin/sh\ntest -s set-up.txt\n");
    stage.commit("tests that need a worktree that is set up");
    let needs = builds_when(&stage, "step: [build, fix]", "test -s set-up.txt || kill -9 $PPID");
    stage.agents(&[&says(&planned), &needs, APPROVES]);
    let log = text(outside(&stage, "set-up"));
    configure(
        &stage,
        &format!(
            "{TESTS}worktrees: {{ setup: \"echo ready > set-up.txt; echo $AUTOPILOT_STEP $AUTOPILOT_TASK_ID in $PWD >> {log}\" }}\n"
        ),
    );
    stage.run(&RUN).expect(0);
    let set_up = fs::read_to_string(log).unwrap();
    for who in ["build one in ", "build two in "] {
        assert!(set_up.lines().any(|seen| seen.starts_with(who)), "`{who}` in {set_up}");
    }
    // Gates are not told that they are one: their lines name nobody.
    assert!(
        set_up
            .lines()
            .any(|seen| seen.starts_with("in ") && Path::new(seen).ends_with("work/tree")),
        "{set_up}"
    );
    let files = stage.git(&["ls-tree", "-r", "--name-only", &branch(&stage)]);
    assert!(!files.contains("set-up.txt"), "{files}");
}

#[test]
fn a_worktree_that_can_not_be_set_up_fails_with_the_command_and_its_log() {
    let stage = stage(BINARY, &lone_tasks(&["one"]));
    configure(&stage, &format!("{TESTS}worktrees: {{ setup: \"echo no disk here; exit 7\" }}\n"));
    stage.run(&RUN).expect(10).says(&["setup", "exit code 7", ".autopilot/logs/"]);
    assert!(planner_prompts(&stage).is_empty(), "nobody was paid");
}

#[test]
fn ports_are_leased_to_each_worker_and_no_two_at_once_have_the_same() {
    let planned = lone_tasks(&["one", "two", "three"]);
    let stage = stage(BINARY, &planned);
    let log = text(outside(&stage, "ports"));
    let all = waits_for(&stage, "^+ ", 3);
    let tells =
        format!("echo $AUTOPILOT_PORT_0 $AUTOPILOT_PORT_1 x$AUTOPILOT_PORT_2 >> {log}; {all}");
    let builds = builds_when(&stage, "step: [build, fix]", &tells);
    stage.agents(&[&says(&planned), &builds, APPROVES]);
    configure(&stage, &format!("{TESTS}worktrees: {{ ports: 2 }}\n"));
    stage.run(&RUN).expect(0);
    assert_eq!(Stamps::of(&stage).most_at_once(), 3);
    let told = fs::read_to_string(log).unwrap();
    let ports: Vec<u16> = told
        .split_whitespace()
        .filter(|word| *word != "x")
        .map(|word| word.parse().unwrap())
        .collect();
    let distinct: BTreeSet<&u16> = ports.iter().collect();
    assert_eq!((ports.len(), distinct.len()), (6, 6), "{told}");
}

#[test]
fn what_the_planner_suggests_reaches_the_builder() {
    let planned = plan(&[task_with(
        "one",
        &[],
        json!({
            "suggested_claude_skills": ["carving"],
            "suggested_mcp_servers": ["timber-yard"],
            "suggested_subagents": ["apprentice", { "name": "master", "purpose": "joints" }],
        }),
    )]);
    let stage = stage(BINARY, &planned);
    // A suggested skill that nobody has would be left out.
    let skill = "---\nname: carving\ndescription: Carves wood\n---\n\nCarve.\n";
    stage.write(".agents/skills/carving/SKILL.md", skill);
    stage.commit("a skill");
    stage.run(&RUN).expect(0);
    let prompt = stage.texts_of("one-build");
    for name in ["carving", "timber-yard", "apprentice", "master (joints)"] {
        assert!(prompt.contains(name), "{name} in {prompt}");
    }
    let file = stage.read(".autopilot/plan/tasks/one.md");
    assert!(file.contains("- timber-yard"), "{file}");
}

#[test]
fn the_planner_is_told_of_limits_and_files_but_gets_no_contents() {
    let stage = stage(BINARY, &lone_tasks(&["one"]));
    stage.write("lib/deep/engine.txt", "a secret recipe\n");
    stage.commit("files");
    stage.write(
        "plan.md",
        "# Plan: Small things\n\nGoal:\n- Every task leaves a file.\n\nConstraints:\n- no new words\n\n\
         Allowed Paths:\n- one.txt\n- lib/\n\nDeny Paths:\n- lib/deep/\n",
    );
    stage.run(&RUN).expect(0);
    let prompts = planner_prompts(&stage);
    let prompt = &prompts[0];
    for part in ["no new words", "`one.txt`", "`lib/deep/`", "lib/deep", "sh test.sh", "At most"] {
        assert!(prompt.contains(part), "{part} in {prompt}");
    }
    assert!(!prompt.contains("secret recipe"));
}

fn crashed(stage: &Stage, failpoint: &str) {
    let mut command = stage.command(&RUN);
    command.env("AUTOPILOT_FAILPOINT", failpoint);
    stage.start_command(command).wait().expect(-1);
}

fn killed(run: Started) {
    run.signal("KILL");
    run.wait().expect(-1);
}

/// As if nothing had happened: each task there once, merged once, and the test plan kept once.
#[track_caller]
fn is_whole(stage: &Stage, names: &[&str]) {
    let done: Vec<(&str, &str)> = names.iter().map(|name| (*name, "DONE")).collect();
    statuses_are(stage, &done);
    let ids: Vec<Value> = stage.state_json()["tasks"].as_array().unwrap().clone();
    assert_eq!(ids.len(), names.len(), "no task twice");
    merged_once_each(stage, names);
    let log = stage.git(&["log", "--format=%s", &format!("main..{}", branch(stage))]);
    assert_eq!(log.lines().filter(|line| *line == "Test plan").count(), 1, "{log}");
    assert!(stage.survivors().is_empty(), "{:?}", stage.survivors());
}

const DIAMOND: [&str; 6] = ["top", "left", "right", "bottom", "lone", "other"];

#[test]
fn a_crash_while_the_tasks_are_made_makes_each_once() {
    for failpoint in ["document.written:1", "document.done:1"] {
        let stage = stage(BINARY, &diamond());
        crashed(&stage, failpoint);
        stage.run(&["resume"]).expect(0);
        is_whole(&stage, &DIAMOND);
        assert_eq!(planner_prompts(&stage).len(), 1, "{failpoint}: not planned again");
    }
}

#[test]
fn a_crash_while_the_planner_thinks_asks_it_again() {
    let stage = stage(BINARY, &diamond());
    let thinks = "\n- step: plan\n  attempt: 1\n  do: [{ run: \"sleep 600\" }]\n";
    stage.agents(&[thinks, &says(&diamond()), &builds(&stage), APPROVES]);
    let run = stage.start(&RUN);
    stage.wait_until("it plans", |stage| !planner_prompts(stage).is_empty());
    killed(run);
    stage.run(&["resume"]).expect(0);
    is_whole(&stage, &DIAMOND);
}

#[test]
fn a_crash_in_the_middle_of_the_tasks_does_none_twice() {
    let stage = stage(BINARY, &diamond());
    let waits = "\n- step: build\n  task: right\n  attempt: 1\n  do: [{ run: \"sleep 600\" }]\n";
    stage.agents(&[waits, &says(&diamond()), &builds(&stage), APPROVES]);
    let run = stage.start(&RUN);
    stage.wait_until("left is merged", |stage| {
        let state = stage.state_json();
        let tasks = state["tasks"].as_array().cloned().unwrap_or_default();
        let of = |name: &str| tasks.iter().find(|task| task["id"] == name).cloned();
        of("left").is_some_and(|task| task["status"] == "DONE")
            && of("right").is_some_and(|task| task["state"] == "BUILD")
    });
    killed(run);
    stage.run(&["resume"]).expect(0);
    is_whole(&stage, &DIAMOND);
    assert_eq!(Stamps::of(&stage).begun("left"), 1);
}

#[test]
fn work_cut_short_undoes_nothing_that_was_merged_meanwhile() {
    let stage = stage(BINARY, &lone_tasks(&["ahead", "cut"]));
    // It says nowhere where it writes, so no guard would see what it takes away.
    let cut = "\n- step: build\n  task: cut\n  attempt: 1\n  do:\n    - write: { early.txt: \"x\\n\" }\n    \
               - run: \"sleep 600\"\n";
    let ahead = "\n- step: [build, fix]\n  task: ahead\n  do:\n    \
                 - append: { app.txt: \"more\\n\" }\n    - write: { ahead.txt: \"x\\n\" }\n    \
                 - answer: { changed_files: [ahead.txt], notes: x }\n";
    let plan = says(&lone_tasks(&["ahead", "cut"]));
    stage.agents(&[cut, ahead, &plan, &builds(&stage), APPROVES]);
    let run = stage.start(&RUN);
    stage.wait_until("the other is merged", |stage| {
        let state = stage.state_json();
        let tasks = state["tasks"].as_array().cloned().unwrap_or_default();
        let of = |name: &str| tasks.iter().find(|task| task["id"] == name).cloned();
        of("ahead").is_some_and(|task| task["status"] == "DONE")
            && of("cut").is_some_and(|task| task["state"] == "BUILD")
    });
    killed(run);
    stage.run(&["resume"]).expect(0);
    statuses_are(&stage, &[("ahead", "DONE"), ("cut", "DONE")]);
    let branch = branch(&stage);
    let files = stage.git(&["ls-tree", "-r", "--name-only", &branch]);
    for file in ["ahead.txt", "early.txt"] {
        assert!(files.lines().any(|line| line == file), "{file} is not in\n{files}");
    }
    assert!(stage.git(&["show", &format!("{branch}:app.txt")]).contains("more"));
}

#[test]
fn a_test_plan_takes_nothing_away() {
    for (name, text) in [("tests", "a file\n"), ("tests/TEST_PLAN.md", "our own\n")] {
        let stage = stage(BINARY, &diamond());
        stage.write(name, text);
        stage.commit("something in the way");
        stage.run(&RUN).expect(0).says(&["the test plan was not committed"]);
        let kept = stage.git(&["show", &format!("{}:{name}", branch(&stage))]);
        assert_eq!(kept.trim(), text.trim());
    }
}

#[test]
fn a_crash_in_the_final_acceptance_runs_it_again_and_nothing_else() {
    let stage = stage(BINARY, &diamond());
    let flag = text(outside(&stage, "flag"));
    configure(
        &stage,
        &format!(
            "commands: {{ tests: sh test.sh, uat: \"test -e {flag} || {{ echo > {flag}; sleep 600; }}\" }}\n\
             plan: {{ task_uat: false }}\n"
        ),
    );
    let run = stage.start(&RUN);
    stage.wait_until("the final acceptance runs", |_| fs::exists(&flag).unwrap());
    killed(run);
    let before = merged(&stage);
    stage.run(&["resume"]).expect(0);
    assert_eq!(merged(&stage), before);
    is_whole(&stage, &DIAMOND);
}

#[test]
fn a_stop_rests_the_run_and_resume_goes_on_with_what_is_left() {
    let stage = stage(BINARY, &diamond());
    let waits = "\n- step: build\n  task: top\n  attempt: 1\n  do: [{ run: \"sleep 600\" }]\n";
    stage.agents(&[waits, &says(&diamond()), &builds(&stage), APPROVES]);
    let run = stage.start(&RUN);
    stage.wait_until("top builds", |stage| stage.first_task()["state"] == "BUILD");
    stage.run(&["stop", "--now"]).expect(0);
    run.wait().expect(2).says(&["autopilot resume"]);
    assert!(stage.survivors().is_empty(), "{:?}", stage.survivors());
    stage.run(&["resume"]).expect(0);
    is_whole(&stage, &DIAMOND);
    stage.run(&["resume"]).expect(64);
}
